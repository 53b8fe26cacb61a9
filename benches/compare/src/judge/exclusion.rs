//! Did holds that exclude one another overlap?

use crate::{
    history::History,
    holds::Hold,
    peers::{Access, Kind},
};

use super::{Finding, counterexample};

pub(super) fn check(history: &History, holds: &[Hold]) -> Finding {
    let Some(first) = holds.first() else {
        return Finding::NotChecked("no contender got the lock".into());
    };
    if holds.iter().all(|hold| hold.contender == first.contender) {
        return Finding::NotChecked(
            "only one contender got the lock, so no holds could overlap".into(),
        );
    }
    if let Kind::Semaphore(leases) = history.kind
        && history.sessions.len() <= usize::try_from(leases).unwrap_or(usize::MAX)
    {
        return Finding::NotChecked(format!(
            "{} contenders cannot exceed {leases} leases",
            history.sessions.len()
        ));
    }
    let broken = violations(history.kind, holds);
    let Some(smallest) = broken.iter().min_by_key(|group| size(group)) else {
        return Finding::Holds {
            checked: holds.len(),
        };
    };
    Finding::Violated {
        times: broken.len(),
        counterexample: counterexample::of(history, smallest),
    }
}

/// Every grant at which too many contenders had the lock, with all the holds at that time.
fn violations(kind: Kind, holds: &[Hold]) -> Vec<Vec<&Hold>> {
    let mut held: Vec<&Hold> = Vec::new();
    let mut broken = Vec::new();
    for hold in holds {
        // A hold may begin at the very moment at which another ends.
        held.retain(|other| other.end_ns > hold.granted_ns);
        match kind {
            Kind::Mutex => broken.extend(held.iter().map(|other| vec![*other, hold])),
            Kind::ReadWrite => broken.extend(
                held.iter()
                    .filter(|other| {
                        hold.access == Access::Exclusive || other.access == Access::Exclusive
                    })
                    .map(|other| vec![*other, hold]),
            ),
            Kind::Semaphore(leases) => {
                if held.len() >= usize::try_from(leases).unwrap_or(usize::MAX) {
                    broken.push(held.iter().copied().chain([hold]).collect());
                }
            }
        }
        held.push(hold);
    }
    broken
}

/// The order of counterexamples: fewer holds first, then fewer writes, then a shorter time.
fn size(group: &[&Hold]) -> (usize, usize, u64) {
    let from = group.iter().map(|hold| hold.asked_ns).min().unwrap_or(0);
    let until = group.iter().map(|hold| hold.granted_ns).max().unwrap_or(0);
    let writes = group.iter().map(|hold| hold.writes.len()).sum();
    (group.len(), writes, until - from)
}
