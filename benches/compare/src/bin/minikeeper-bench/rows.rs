//! Makes the rows of the report from the blocks of all rounds.

use hdrhistogram::Histogram;
use minikeeper_bench::{
    figures,
    holds::{self, holds},
    judge::{self, Finding, Verdict},
    report::{Hold, Row, Workload},
    stats::{self, as_f64},
};

use crate::{contestants::Contestant, measure::Block};

/// The number of holds in the chart of a hand-over.
const PICTURED: usize = 60;

/// An empty row.
pub(crate) fn row(workload: Workload, contestant: &Contestant, timeout_ns: Option<f64>) -> Row {
    Row {
        workload,
        contestant: contestant.name(),
        promises: contestant.promises(),
        rounds: Vec::new(),
        latencies: stats::latencies(),
        timeline: Vec::new(),
        grants: Vec::new(),
        verdict: Verdict {
            exclusion: Finding::NotChecked("it did not run".into()),
            fencing: Finding::NotChecked("it did not run".into()),
            unknown: 0,
            refusal: None,
        },
        refused: Vec::new(),
        timeout_ns,
    }
}

/// Has the judge check one round and adds its results.
pub(crate) fn add(row: &mut Row, block: &Block, echo_ns: f64) {
    let verdict = judge::judge(&block.history, block.busy);
    let refusal = verdict.refusal.clone();
    let is_first = row.rounds.is_empty() && row.refused.is_empty();
    row.verdict = if is_first {
        verdict
    } else {
        row.verdict.clone().and(verdict)
    };
    if let Some(why) = refusal {
        refuse(row, why);
        return;
    }
    // The judge has already read it.
    let Ok(holds) = holds(&block.history) else {
        return;
    };
    if figures::grants(&block.history, &holds, &block.timed)
        .iter()
        .all(|grants| *grants == 0)
    {
        // Figures of no grants would look like results.
        refuse(
            row,
            "no contender got the lock in the part that counts".into(),
        );
        return;
    }
    let times = figures::times(row.workload, &holds, &block.timed);
    let mut found = figures::figures(&block.history, &holds, &block.timed, &times);
    let each = |sum: u64| as_f64(sum) / as_f64(holds.len().max(1) as u64);
    found.echo_ns = echo_ns;
    found.server_cpu_ns = block.server_cpu_ns.map(each);
    found.client_cpu_ns = block.client_cpu_ns.map(each);
    found.busy = block.busy;
    found.bytes = block.traffic.map(|traffic| each(traffic.bytes));
    found.events = block.traffic.and_then(|traffic| traffic.events).map(each);
    if row.rounds.is_empty() {
        row.timeline = timeline(&holds, block.timed.start);
        row.grants = figures::grants(&block.history, &holds, &block.timed);
    }
    merge(&mut row.latencies, &times);
    row.rounds.push(found);
}

/// Notes the reason why a round is not published.
pub(crate) fn refuse(row: &mut Row, why: String) {
    // The same reason in many rounds is listed once.
    if !row.refused.contains(&why) {
        row.refused.push(why);
    }
}

fn merge(all: &mut Histogram<u64>, more: &Histogram<u64>) {
    // Both have the same bounds, so this cannot fail.
    let _ = all.add(more);
}

fn timeline(holds: &[holds::Hold], from_ns: u64) -> Vec<Hold> {
    let pictured = holds
        .iter()
        .filter(|hold| hold.granted_ns >= from_ns)
        .take(PICTURED);
    let since = |at_ns: u64| at_ns.saturating_sub(from_ns);
    pictured
        .map(|hold| Hold {
            contender: hold.contender,
            asked_ns: since(hold.asked_ns),
            granted_ns: since(hold.granted_ns),
            releasing_ns: since(hold.end_ns),
            released_ns: since(hold.released_ns.unwrap_or(hold.end_ns)),
        })
        .collect()
}
