//! The faults of one run, injected into a universe.

use std::{sync::Arc, time::Duration};

use minikeeper_core::{faults::hits::Hits, recording::Recording};
use tokio::task::AbortHandle;

use crate::{
    orders::fault::{EVENT_DELAY, SweepFault},
    sweep::{
        SweepError,
        acts::ENTRIES_MAX,
        plan::{Run, RunResult, RunVerdict},
    },
    universe::Universe,
};

/// The maximum length of the recording of a run. Unit: bytes.
const RECORDING_BYTES_MAX: usize = 16 << 20;

/// Faults that are in force until this is [ended](Armed::end), with what happens once they act.
#[derive(Debug)]
pub(crate) struct Armed {
    universe: Universe,
    faults: Vec<(u64, Arc<Hits>)>,
    /// The first entry of the journal that belongs to the run.
    since: u64,
    tasks: Vec<AbortHandle>,
    /// Whether it has started a recording.
    is_recorded: bool,
    /// Whether the run has an order: then its journal tells only of a failure.
    has_order: bool,
}

impl Armed {
    /// Injects the faults of a run into a universe that no client uses yet.
    ///
    /// # Errors
    /// When a point makes no sense, or the server keeps no journal.
    pub(crate) fn new(universe: &Universe, run: &Run) -> Result<Self, SweepError> {
        let refused = |error: &dyn std::error::Error| SweepError(error.to_string());
        let mut armed = Self {
            universe: universe.clone(),
            faults: Vec::new(),
            since: universe
                .next_journal_entry()
                .map_err(|error| refused(&error))?,
            tasks: Vec::new(),
            is_recorded: false,
            has_order: false,
        };
        // What cannot be recorded, such as a server with SASL users, is swept nevertheless. Most runs of orders
        // pass, and are not looked at.
        armed.is_recorded = (run.goal.is_none() || run.is_repeated())
            && universe.start_recording(RECORDING_BYTES_MAX).is_ok();
        armed.has_order = run.goal.is_some();
        let config = &universe.shared.config;
        let late_ms = u64::from(config.timeout_max_ms()) + u64::from(config.tick_time_ms);
        let late = Duration::from_millis(late_ms);
        for (point, place) in run.points.iter().zip(&run.places) {
            let injected = universe.inject_at(point.to_fault(late)?, place.clone());
            let (id, hits) = injected.map_err(|error| refused(&error))?;
            armed.faults.push((id, Arc::clone(&hits)));
            if let SweepFault::ReplyLate | SweepFault::ServerRestarted | SweepFault::EventLate =
                point.fault
            {
                let then = follow_up(universe.clone(), (id, hits), point.fault, late);
                let task = universe.shared.server.runtime.spawn(then);
                armed.tasks.push(task.abort_handle());
            }
        }
        Ok(armed)
    }

    /// Returns the recording of the run so far.
    pub(crate) fn recording(&self) -> Option<Recording> {
        let recorded = self.is_recorded.then(|| self.universe.recording());
        recorded?.ok()
    }

    /// Removes the faults. Returns the result of the run.
    pub(crate) fn end(mut self, verdict: RunVerdict) -> RunResult {
        let is_reached = (self.faults.iter()).all(|(_, hits)| hits.seen().hits > 0);
        self.remove();
        if self.has_order && verdict == RunVerdict::Passed {
            return RunResult::new(verdict, is_reached);
        }
        let next = self.universe.next_journal_entry().unwrap_or(self.since);
        let entries = self.universe.copy_journal(self.since);
        let entries: Vec<_> = entries.map_or_else(
            |_| Vec::new(),
            |copied| copied.entries().take(ENTRIES_MAX).collect(),
        );
        let missing = next.saturating_sub(self.since + entries.len() as u64);
        RunResult {
            entries,
            missing,
            ..RunResult::new(verdict, is_reached)
        }
    }

    fn remove(&mut self) {
        if std::mem::take(&mut self.is_recorded) {
            // The test may have stopped it.
            drop(self.universe.stop_recording());
        }
        for task in self.tasks.drain(..) {
            task.abort();
        }
        for (id, _) in self.faults.drain(..) {
            // It is optional.
            let _ = self.universe.remove_fault(id);
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Does what a fault cannot do by itself, once it has acted.
async fn follow_up(
    universe: Universe,
    (id, hits): (u64, Arc<Hits>),
    fault: SweepFault,
    late: Duration,
) {
    if hits.until(1).await.is_removed {
        return;
    }
    match fault {
        SweepFault::ReplyLate => universe.advance(late),
        SweepFault::EventLate => {
            // The server's clock may be frozen.
            tokio::time::sleep(EVENT_DELAY).await;
            // It is optional.
            let _ = universe.remove_fault(id);
        }
        _ => universe.disconnect_all(),
    }
}
