//! Which requests of a failed order matter: those with which the test passes if they come the other way round.

use crate::orders::choice::{ChoicePoint, RequestOrder};

/// How many pairs of requests of a failure are swapped to find one that matters.
const SWAPS_MAX: usize = 12;

/// Returns the last pairs of requests of different clients that follow each other directly and do not commute.
/// Those at the end have more to do with the failure than those at the beginning.
pub(crate) fn swaps_of(steps: &[ChoicePoint]) -> Vec<(usize, usize)> {
    let clash = |first: usize| {
        let one = &steps[first];
        let is_other = |other: &ChoicePoint| other.client() != one.client();
        let mut later = steps.iter().enumerate().skip(first + 1);
        let (second, _) = later.find(|(_, other)| is_other(other) && !commute(one, other))?;
        // The swapped order ends with the second one: what else happens later may be why the test fails.
        let is_last = steps[second + 1..].iter().all(|step| step.marks.is_empty());
        is_last.then_some((first, second))
    };
    let mut swaps: Vec<_> = (0..steps.len())
        .rev()
        .filter_map(clash)
        .take(SWAPS_MAX)
        .collect();
    swaps.reverse();
    swaps
}

/// Returns whether two requests could also be served in the other order, with the same result.
fn commute(one: &ChoicePoint, other: &ChoicePoint) -> bool {
    let has_fault = |step: &ChoicePoint| {
        let mut marks = step.marks.iter();
        marks.any(|mark| !mark.fault.is_late_event())
    };
    let is_clear = !has_fault(one) && !has_fault(other);
    let (one, other) = (one.picked(), other.picked());
    is_clear && one.client != other.client && one.footprint.commutes_with(&other.footprint)
}

/// Returns the order of a run up to the second of these requests, which comes before the first one and what
/// depends on that.
pub(crate) fn swapped(steps: &[ChoicePoint], (first, second): (usize, usize)) -> RequestOrder {
    let mut order: Vec<&ChoicePoint> = steps[..first].iter().collect();
    let mut later = vec![&steps[first]];
    for step in &steps[first + 1..second] {
        let depends = later.iter().any(|before| !commute(before, step));
        if depends {
            later.push(step);
        } else {
            order.push(step);
        }
    }
    order.push(&steps[second]);
    order.push(later[0]);
    RequestOrder::of(order)
}
