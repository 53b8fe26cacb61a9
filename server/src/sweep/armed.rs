//! The faults of one run, injected into a universe.

use std::{sync::Arc, time::Duration};

use minikeeper_core::{
    faults::{action::FaultAction, hits::Hits},
    recording::Recording,
    state::{resources::ResourceVerdict, session_info::SessionInfo},
};
use tokio::task::AbortHandle;

use crate::{
    orders::fault::{FaultExtent, SHORT_DELAY, SweepFault},
    sweep::{
        SweepError,
        acts::ENTRIES_MAX,
        oracle::End,
        plan::{Run, RunResult, RunVerdict},
        report::text_of,
    },
    universe::Universe,
};

/// The maximum length of the recording of a run. Unit: bytes.
const RECORDING_BYTES_MAX: usize = 16 << 20;

/// How long the session of a client that has died lives on: its program takes the rest of the timeout to start again.
const DEAD_FOR: Duration = Duration::from_secs(1);

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
    /// The counts of the fault with which clients die.
    crash: Option<Arc<Hits>>,
    /// Whether what the run leaves is compared.
    compares: bool,
}

/// What runs a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunBy {
    /// This process or one that asks for runs: if clients die, the server no longer serves them.
    Caller,
    /// A command, whose process is killed while it waits for a reply.
    Command,
}

impl Armed {
    /// Injects the faults of a run into a universe that no client uses yet.
    ///
    /// # Errors
    /// When a point makes no sense, or the server keeps no journal.
    pub(crate) fn new(universe: &Universe, run: &Run, by: RunBy) -> Result<Self, SweepError> {
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
            crash: None,
            compares: run.compares,
        };
        universe.shared.run_notes.lock().points = Some(text_of(&run.points));
        universe.shared.resources.lock().clear();
        // What cannot be recorded, such as a server with SASL users, is swept nevertheless. Most runs of orders
        // pass, and are not looked at.
        armed.is_recorded = (run.goal.is_none() || run.is_repeated())
            && universe.start_recording(RECORDING_BYTES_MAX).is_ok();
        armed.has_order = run.goal.is_some();
        let config = &universe.shared.config;
        let late_ms = u64::from(config.timeout_max_ms()) + u64::from(config.tick_time_ms);
        let late = Duration::from_millis(late_ms);
        let extent = FaultExtent {
            late,
            outage: run.outage,
            rollback: run.rollback,
        };
        for (point, place) in run.points.iter().zip(&run.places) {
            let mut fault = point.to_fault(extent)?;
            let is_crash = point.fault == SweepFault::ClientCrash;
            if is_crash && by == RunBy::Command {
                fault.action = FaultAction::NeverAnswer;
            }
            let injected = universe.inject_at(fault, place.clone());
            let (id, hits) = injected.map_err(|error| refused(&error))?;
            armed.faults.push((id, Arc::clone(&hits)));
            if is_crash {
                armed.crash = Some(Arc::clone(&hits));
            }
            if let Some(then) = FollowUp::of(point.fault, extent) {
                let then = then.after(universe.clone(), (id, hits));
                let task = universe.shared.server.runtime.spawn(then);
                armed.tasks.push(task.abort_handle());
            }
        }
        Ok(armed)
    }

    /// Returns the counts of the fault with which clients die, after which the test begins again.
    pub(crate) fn crash(&self) -> Option<Arc<Hits>> {
        self.crash.clone()
    }

    /// Returns the ports of all clients that are connected, and that of the client whose request a fault has acted on.
    pub(crate) fn ports(&self, hits: &Hits) -> (Vec<u16>, Option<u16>) {
        let session = hits.last().and_then(|hit| hit.session);
        let sessions = self.universe.sessions();
        let port = |info: &SessionInfo| info.address.map(|address| address.port());
        let of_fault = sessions.iter().find(|info| Some(info.id) == session);
        (
            sessions.iter().filter_map(port).collect(),
            of_fault.and_then(port),
        )
    }

    /// Returns the recording of the run so far.
    pub(crate) fn recording(&self) -> Option<Recording> {
        let recorded = self.is_recorded.then(|| self.universe.recording());
        recorded?.ok()
    }

    /// Removes the faults. Returns the result of the run.
    pub(crate) async fn end(mut self, verdict: RunVerdict) -> RunResult {
        let is_reached = (self.faults.iter()).all(|(_, hits)| hits.seen().hits > 0);
        self.remove();
        let notes = std::mem::take(&mut *self.universe.shared.run_notes.lock());
        let goals = notes.goals;
        let verdict = match verdict {
            RunVerdict::Passed => self.judged(),
            failed => failed,
        };
        let has_passed = verdict == RunVerdict::Passed;
        if self.has_order && has_passed {
            return RunResult {
                goals,
                ..RunResult::new(verdict, is_reached)
            };
        }
        let end = match self.compares && has_passed {
            true => Some(End::of(&self.universe).await),
            false => None,
        };
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
            end,
            goals,
            ..RunResult::new(verdict, is_reached)
        }
    }

    /// Returns how the run has ended by what was done to the resources that locks protect.
    fn judged(&self) -> RunVerdict {
        let reports = self.universe.resources();
        let not_safe = reports
            .iter()
            .find(|it| it.verdict != ResourceVerdict::Safe);
        not_safe.map_or(RunVerdict::Passed, |report| {
            RunVerdict::Failed(report.to_string())
        })
    }

    /// Notes that all clients of the run have died.
    pub(crate) fn all_died(&self) {
        self.universe.shared.resources.lock().all_died();
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

/// What a fault cannot do by itself, once it has acted.
#[derive(Clone, Copy, Debug)]
enum FollowUp {
    /// The clock moves by this time.
    Advance(Duration),
    /// All connections close.
    Disconnect,
    /// The sessions of clients that have died expire after a second.
    ExpireDead,
    /// The fault ends after this time, also if the server's clock is frozen.
    End(Duration),
}

impl FollowUp {
    fn of(fault: SweepFault, extent: FaultExtent) -> Option<Self> {
        Some(match fault {
            SweepFault::ReplyLate => Self::Advance(extent.late),
            SweepFault::ServerRestarted => Self::Disconnect,
            SweepFault::EventLate | SweepFault::RequestLate => Self::End(SHORT_DELAY),
            // It stands still, and has the same time again before it learns of that.
            SweepFault::ClientPaused => Self::End(3 * SHORT_DELAY),
            SweepFault::ClientCrash => Self::ExpireDead,
            SweepFault::Outage | SweepFault::ClientOutage if extent.outage < Duration::MAX => {
                Self::End(extent.outage)
            }
            _ => return None,
        })
    }

    async fn after(self, universe: Universe, (id, hits): (u64, Arc<Hits>)) {
        if hits.until(1).await.is_removed {
            return;
        }
        match self {
            Self::Advance(by) => universe.advance(by),
            Self::Disconnect => universe.disconnect_all(),
            Self::ExpireDead => {
                let sessions = universe.sessions();
                tokio::time::sleep(DEAD_FOR).await;
                for session in sessions {
                    // Those of other processes are still connected.
                    let is_connected = |now: &SessionInfo| now.id == session.id && now.is_connected;
                    if !universe.sessions().iter().any(is_connected) {
                        // It may have expired.
                        let _ = universe.expire(session.id);
                    }
                }
            }
            Self::End(after) => {
                tokio::time::sleep(after).await;
                // It is optional.
                let _ = universe.remove_fault(id);
            }
        }
    }
}
