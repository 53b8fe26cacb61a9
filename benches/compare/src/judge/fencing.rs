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
            "leases are held at the same time: their tokens identify them but have no order".into(),
        );
    }
    // Readers do not write, so they do not raise the highest token seen.
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
        (0, 0) => Finding::NotChecked("no contender got the lock to write".into()),
        (0, _) => Finding::NotChecked("the lock gives no token".into()),
        (1, _) => {
            Finding::NotChecked("there was only one grant, so there is no order to check".into())
        }
        (some, all) if some < all => {
            Finding::NotChecked(format!("{} of {all} grants had no token", all - some))
        }
        (checked, _) => Finding::Holds { checked },
    }
}

/// Grants whose token is not larger than that of the previous grant.
fn disorder(history: &History, writers: &[&Hold]) -> Vec<String> {
    writers
        .windows(2)
        .filter(|pair| matches!((pair[0].token, pair[1].token), (Some(a), Some(b)) if b <= a))
        .map(|pair| counterexample::until(history, pair, pair[1].granted_ns))
        .collect()
}

/// Refused writes of the contender that has the lock, and writes accepted after that of a later
/// holder.
fn wrong_writes(history: &History, writers: &[&Hold]) -> Vec<String> {
    let mut broken = Vec::new();
    // Holds with an accepted write, in the order of those writes.
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
            // A late write that is refused: this is the purpose of a token.
            (false, Some(_)) => {}
            (false, None) => broken.push(counterexample::until(history, &[hold], at_ns)),
        }
    }
    broken
}
