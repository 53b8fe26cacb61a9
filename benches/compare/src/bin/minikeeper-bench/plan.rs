//! The workloads and their sizes.

use std::time::Duration;

use minikeeper_bench::{contest::Contest, open_loop::OpenLoop, report::Workload};

/// How long a lock is held: long enough for all waiting contenders to settle, short enough to keep
/// caches warm.
const HOLD: Duration = Duration::from_micros(200);

/// The size of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// For figures.
    Full,
    /// To check that it runs.
    Quick,
}

/// All workloads, in the order of the report.
pub(crate) fn workloads(size: Size) -> Vec<Workload> {
    let queues: &[u32] = match size {
        Size::Full => &[2, 8, 32, 128, 1_000],
        Size::Quick => &[2, 8],
    };
    let mut workloads = vec![Workload::Cycle];
    workloads.extend(queues.iter().map(|count| Workload::HandOver(*count)));
    workloads.extend(
        queues
            .iter()
            .filter(|count| **count <= 32)
            .map(|count| Workload::Saturated(*count)),
    );
    for readers in [50, 90, 99] {
        workloads.push(Workload::ReadWrite {
            contenders: 8,
            readers,
        });
    }
    workloads.push(Workload::Semaphore {
        contenders: 8,
        leases: 3,
    });
    for rate in [500, 2_000] {
        workloads.push(Workload::OpenLoop {
            contenders: 32,
            rate,
        });
    }
    workloads.push(Workload::Recovery);
    workloads.extend(
        queues
            .iter()
            .filter(|count| (8..1_000).contains(*count))
            .map(|count| Workload::Herd(*count)),
    );
    workloads
}

/// The contest of a workload, if it is one.
pub(crate) fn contest(workload: Workload, size: Size) -> Option<Contest> {
    let (contenders, readers, hold) = match workload {
        Workload::Cycle => (1, 0, Duration::ZERO),
        Workload::HandOver(contenders) | Workload::Herd(contenders) => (contenders, 0, HOLD),
        Workload::Saturated(contenders) => (contenders, 0, Duration::ZERO),
        Workload::ReadWrite {
            contenders,
            readers,
        } => (contenders, readers, HOLD),
        Workload::Semaphore { contenders, .. } => (contenders, 0, HOLD),
        Workload::OpenLoop { .. } | Workload::Recovery => return None,
    };
    let scale = if size == Size::Full { 1 } else { 10 };
    Some(Contest {
        contenders,
        readers,
        in_turn: matches!(workload, Workload::HandOver(_) | Workload::Herd(_)),
        hold,
        warmup: warmup(contenders),
        grants: match workload {
            Workload::Saturated(_) => 2_000 / scale,
            Workload::Herd(_) => 4 * contenders,
            // So that all contenders can get it equally often.
            _ => (300 / scale).next_multiple_of(contenders),
        },
        limit: match contenders {
            0..=32 => Duration::from_secs(1),
            33..=128 => Duration::from_millis(1_500),
            _ => Duration::from_secs(10),
        },
    })
}

/// The number of grants that do not count, before those that do.
pub(crate) fn warmup(contenders: u32) -> u32 {
    contenders.max(5)
}

/// The open loop of a workload, if it is one.
pub(crate) fn open_loop(workload: Workload, round: u32, size: Size) -> Option<OpenLoop> {
    let Workload::OpenLoop { contenders, rate } = workload else {
        return None;
    };
    Some(OpenLoop {
        contenders,
        rate,
        duration: Duration::from_millis(if size == Size::Full { 200 } else { 50 }),
        seed: 0x9e37_79b9 + u64::from(round),
    })
}

/// Rounds of a workload: a recovery that takes seconds, and equally long each time, runs in fewer
/// of them.
pub(crate) fn rounds(workload: Workload, timeout: Option<Duration>, rounds: u32) -> u32 {
    let is_long = timeout.is_none_or(|timeout| timeout >= Duration::from_secs(1));
    if workload == Workload::Recovery && is_long {
        rounds.min(2)
    } else {
        rounds
    }
}
