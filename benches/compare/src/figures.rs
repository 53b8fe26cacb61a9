//! Computes figures from a history: latencies, fairness, rate.

use std::ops::Range;

use hdrhistogram::Histogram;

use crate::{
    history::History,
    holds::Hold,
    report::{Figures, Workload},
    stats::{as_f64, interpolated, latencies},
};

/// A contender asked clearly earlier than another if it asked this much earlier: with less, both
/// requests may have been on their way at the same time.
pub const CLEARLY_NS: u64 = 200_000;

/// The latencies of a workload, in nanoseconds, for holds granted in the part that counts.
#[must_use]
pub fn times(workload: Workload, holds: &[Hold], timed: &Range<u64>) -> Histogram<u64> {
    let mut histogram = latencies();
    for (at, hold) in holds.iter().enumerate() {
        if !timed.contains(&hold.granted_ns) {
            continue;
        }
        let time = match workload {
            Workload::Cycle => hold.released_ns.map(|at_ns| at_ns - hold.asked_ns),
            Workload::HandOver(_) | Workload::Saturated(_) | Workload::Herd(_) => at
                .checked_sub(1)
                .and_then(|before| hand_over(&holds[before], hold)),
            Workload::Recovery => at
                .checked_sub(1)
                .map(|before| hold.granted_ns.saturating_sub(holds[before].end_ns)),
            Workload::OpenLoop { .. } => Some(hold.granted_ns - hold.due_ns),
            Workload::ReadWrite { .. } | Workload::Semaphore { .. } => {
                Some(hold.granted_ns - hold.asked_ns)
            }
        };
        if let Some(time) = time {
            histogram.saturating_record(time.max(1));
        }
    }
    histogram
}

/// The time from a release to the grant to another contender that was waiting by then.
fn hand_over(before: &Hold, hold: &Hold) -> Option<u64> {
    let waited = hold.contender != before.contender && hold.asked_ns < before.end_ns;
    waited
        .then(|| hold.granted_ns.checked_sub(before.end_ns))
        .flatten()
}

/// The figures of a round, except those that do not come from its history: echo, CPU time, traffic.
#[must_use]
pub fn figures(
    history: &History,
    holds: &[Hold],
    timed: &Range<u64>,
    histogram: &Histogram<u64>,
) -> Figures {
    let counted: Vec<usize> = (0..holds.len())
        .filter(|at| timed.contains(&holds[*at].granted_ns))
        .collect();
    let count = counted.len();
    let seconds = as_f64(timed.end.saturating_sub(timed.start)) / 1e9;
    let is_contest = history.sessions.len() > 1;
    let share = |number: usize| (count > 0 && is_contest).then(|| ratio(number, count));
    Figures {
        p50_ns: interpolated(histogram, 0.5),
        p90_ns: interpolated(histogram, 0.9),
        p99_ns: interpolated(histogram, 0.99),
        p999_ns: interpolated(histogram, 0.999),
        max_ns: as_f64(if histogram.is_empty() {
            0
        } else {
            histogram.max()
        }),
        rate: if seconds > 0.0 {
            ratio(count, 1) / seconds
        } else {
            0.0
        },
        jain: is_contest
            .then(|| jain(&grants(history, holds, timed)))
            .flatten(),
        inversions: share(inversions(holds, timed)),
        regrabs: share(regrabs(holds, timed)),
        ..Figures::default()
    }
}

/// The number of grants of each contender in the part that counts.
#[must_use]
pub fn grants(history: &History, holds: &[Hold], timed: &Range<u64>) -> Vec<u64> {
    let mut grants = vec![0; history.sessions.len()];
    for hold in holds {
        if timed.contains(&hold.granted_ns)
            && let Ok(at) = usize::try_from(hold.contender)
        {
            grants[at] += 1;
        }
    }
    grants
}

/// Jain's fairness index: 1 if all got the same number, 1/n if one got all.
#[must_use]
pub fn jain(grants: &[u64]) -> Option<f64> {
    let sum: f64 = grants.iter().map(|grants| as_f64(*grants)).sum();
    let squares: f64 = grants.iter().map(|grants| as_f64(*grants).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (ratio(grants.len(), 1) * squares))
}

/// Counts grants to a contender that had asked clearly later than another one that got the lock
/// afterwards.
fn inversions(holds: &[Hold], timed: &Range<u64>) -> usize {
    let mut earliest = u64::MAX;
    let mut count = 0;
    // From the last to the first: the contenders still waiting at a grant are those granted after
    // it.
    for hold in holds.iter().rev() {
        let is_overtaking = earliest.saturating_add(CLEARLY_NS) < hold.asked_ns;
        if timed.contains(&hold.granted_ns) && is_overtaking {
            count += 1;
        }
        earliest = earliest.min(hold.asked_ns);
    }
    count
}

/// Counts grants to the previous holder while others waited.
fn regrabs(holds: &[Hold], timed: &Range<u64>) -> usize {
    let mut earliest = u64::MAX;
    let mut count = 0;
    for (at, hold) in holds.iter().enumerate().rev() {
        let before = at.checked_sub(1).map(|before| &holds[before]);
        if let Some(before) = before
            && timed.contains(&hold.granted_ns)
            && before.contender == hold.contender
            && earliest < before.end_ns
        {
            count += 1;
        }
        earliest = earliest.min(hold.asked_ns);
    }
    count
}

fn ratio(number: usize, of: usize) -> f64 {
    as_f64(number as u64) / as_f64(of as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{Access, Kind};

    /// Holds of `(contender, asked, granted, end)`.
    fn holds(parts: &[(u32, u64, u64, u64)]) -> Vec<Hold> {
        parts
            .iter()
            .map(|&(contender, asked_ns, granted_ns, end_ns)| Hold {
                contender,
                access: Access::Exclusive,
                due_ns: asked_ns,
                asked_ns,
                granted_ns,
                end_ns,
                released_ns: Some(end_ns + 5),
                token: None,
                writes: Vec::new(),
            })
            .collect()
    }

    fn history(contenders: usize) -> History {
        History {
            kind: Kind::Mutex,
            sessions: vec![String::new(); contenders],
            events: Vec::new(),
        }
    }

    #[test]
    fn hand_over_counts_only_for_waiting_contenders() {
        let holds = holds(&[
            (0, 0, 10, 20),
            (1, 5, 27, 30),
            (0, 40, 45, 50),
            (0, 55, 60, 61),
        ]);
        let times = times(Workload::HandOver(2), &holds, &(0..100));
        assert_eq!(times.len(), 1, "the others asked when the lock was free");
        assert_eq!(times.max(), 7);
    }

    #[test]
    fn cycle_counts_from_request_to_end_of_release() {
        let holds = holds(&[(0, 0, 10, 20)]);
        assert_eq!(times(Workload::Cycle, &holds, &(0..100)).max(), 25);
    }

    #[test]
    fn fairness_of_a_lock_that_keeps_its_holder() {
        let late = CLEARLY_NS;
        // Contender 1 waits from the beginning; contender 0 gets the lock three times before it.
        let holds = holds(&[
            (0, 0, 1, 2),
            (0, late + 2, late + 3, late + 4),
            (0, late + 5, late + 6, late + 7),
            (1, 1, late + 8, late + 9),
        ]);
        let all = 0..10 * late;
        assert_eq!(grants(&history(2), &holds, &all), [3, 1]);
        assert_eq!(jain(&[3, 1]), Some(16.0 / 20.0));
        assert_eq!(
            inversions(&holds, &all),
            2,
            "two of them asked clearly later"
        );
        assert_eq!(regrabs(&holds, &all), 2);
    }

    #[test]
    fn empty_history_gives_no_figures() {
        let times = times(Workload::Cycle, &[], &(0..0));
        let figures = figures(&history(0), &[], &(0..0), &times);
        assert_eq!(
            (figures.p50_ns, figures.rate, figures.jain),
            (0.0, 0.0, None)
        );
        assert_eq!(jain(&[0, 0]), None);
    }
}
