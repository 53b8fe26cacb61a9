//! Do the tokens protect the resource?
//!
//! Source: `docs/curator-recipes.md` section 10.

use crate::{
    history::History,
    holds::Hold,
    peers::{Access, Kind},
};

use super::{Finding, counterexample};

pub(super) fn check(history: &History, holds: &[Hold]) -> Finding {
    if matches!(history.kind, Kind::Semaphore(_)) {
        return Finding::NotChecked(
            "leases are held side by side: their tokens tell them apart, and are in no order"
                .into(),
        );
    }
    // Readers do not write, so they raise no mark.
    let writers: Vec<&Hold> = holds
        .iter()
        .filter(|hold| hold.access == Access::Exclusive)
        .collect();
    let mut broken = disorder(history, &writers);
    broken.extend(wrong_writes(history, &writers));
    if let Some(smallest) = broken.iter().min_by_key(|text| text.lines().count()) {
        return Finding::Violated {
            times: broken.len(),
            counterexample: smallest.clone(),
        };
    }
    let with_token = writers.iter().filter(|hold| hold.token.is_some()).count();
    match (with_token, writers.len()) {
        (0, 0) => Finding::NotChecked("no contender got it to write".into()),
        (0, _) => Finding::NotChecked("the lock gives no token".into()),
        (1, _) => Finding::NotChecked("one grant has no order".into()),
        (some, all) if some < all => {
            Finding::NotChecked(format!("{} of {all} grants had no token", all - some))
        }
        (checked, _) => Finding::Holds { checked },
    }
}

/// Grants whose token is not larger than that of the grant before.
fn disorder(history: &History, writers: &[&Hold]) -> Vec<String> {
    writers
        .windows(2)
        .filter(|pair| matches!((pair[0].token, pair[1].token), (Some(a), Some(b)) if b <= a))
        .map(|pair| counterexample::until(history, pair, pair[1].granted_ns))
        .collect()
}

/// Writes refused to the one who has the lock, and writes accepted after that of a later holder.
fn wrong_writes(history: &History, writers: &[&Hold]) -> Vec<String> {
    let mut broken = Vec::new();
    // The latest holds of which a write was accepted, by the time of that write.
    let mut accepted: Vec<(u64, &Hold)> = Vec::new();
    let mut writes: Vec<(u64, bool, &Hold)> = writers
        .iter()
        .flat_map(|hold| {
            hold.writes
                .iter()
                .map(|(at_ns, is_accepted)| (*at_ns, *is_accepted, *hold))
        })
        .collect();
    writes.sort_by_key(|(at_ns, ..)| *at_ns);
    for (at_ns, is_accepted, hold) in writes {
        let later = accepted
            .last()
            .filter(|(_, other)| other.granted_ns > hold.granted_ns);
        match (is_accepted, later) {
            (true, Some((_, other))) => {
                broken.push(counterexample::until(history, &[hold, other], at_ns));
            }
            (true, None) => accepted.push((at_ns, hold)),
            // Late, and refused: that is what a token is for.
            (false, Some(_)) => {}
            (false, None) => broken.push(counterexample::until(history, &[hold], at_ns)),
        }
    }
    broken
}
