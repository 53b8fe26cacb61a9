//! Serves the requests of programs in an order: each once no further request is coming.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use minikeeper_core::{
    clock::Stopwatch,
    state::{picking, timers},
};
use minikeeper_protocol::SessionId;

pub(crate) use crate::orders::quiet::Programs;
use crate::orders::{
    quiet::{BETWEEN_LOOKS, Threads},
    run::{OrderSeen, OrderedRun, Quiet},
};

/// How long no request comes, at least, before none is expected where the system does not tell.
const SILENCE: Duration = Duration::from_millis(5);

/// How long the threads of the programs run without a request before that is taken for waiting: they poll. It is
/// the time that they have had a processor, so that a busy machine does not matter.
const BUSY: Duration = Duration::from_secs(3);

/// How long all clients wait without a request, in real time, before the clock advances to the next
/// deadline.
const IDLE: Duration = Duration::from_secs(1);

/// How often a client whose request waits is told that the server is there.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// How long the thread waits for a request before it looks again.
const PAUSE: Duration = Duration::from_millis(1);

/// Programs whose requests are served one after the other.
pub(crate) struct OrderedPrograms {
    pub(crate) run: OrderedRun,
    /// Where its clients are; `None` if that is not known.
    pub(crate) programs: Option<Programs>,
    /// The number of their clients, if the caller knows it.
    pub(crate) clients: Option<usize>,
}

impl OrderedPrograms {
    /// Serves requests until the run is over. Calls `stopped` if it can no longer do so in order.
    pub(crate) fn serve(mut self, is_over: &AtomicBool, stopped: impl FnOnce()) -> OrderSeen {
        let mut threads = self.programs.and_then(Threads::of);
        let watch = Stopwatch::start();
        // When a request came last, when one was served last, and when clients were last told.
        let (mut came, mut kept) = (Duration::ZERO, Duration::ZERO);
        // What the threads had run when a request came or was served last.
        let (mut known, mut ran) = (0, None);
        let mut late = Late::default();
        // Whether nobody does anything with an event of the last request any more: a thread that it wakes may change
        // what its client asks next.
        let mut is_settled = true;
        // What each client waited for when all did: a run that hangs is ended, and its sessions with it.
        let mut waiting = Vec::new();
        while !is_over.load(Ordering::Acquire) {
            let count = self.run.count();
            if count != known {
                (known, came) = (count, watch.elapsed());
                ran = None;
            }
            let quiet_for = watch.elapsed().saturating_sub(came);
            if watch.elapsed().saturating_sub(kept) > KEEP_ALIVE {
                kept = watch.elapsed();
                picking::keep_alive(&self.run.universe().shared);
            }
            if count == 0 {
                // Their watchers send nothing until they come.
                if self.run.has_late_events()
                    && match &mut threads {
                        Some(threads) => threads.are_quiet(),
                        None => quiet_for > SILENCE,
                    }
                {
                    self.run.send_all_late_events();
                    is_settled = false;
                    came = watch.elapsed();
                } else if quiet_for > IDLE {
                    waiting = self.run.waiting();
                    timers::advance_to_next(&self.run.universe().shared);
                    is_settled = false;
                    came = watch.elapsed();
                }
                picking::wait_for_request(&self.run.universe().shared, PAUSE);
                continue;
            }
            let named = is_settled.then(|| self.run.serve_named()).flatten();
            let served = if let Some(served) = named {
                late.known = None;
                served
            } else {
                let has_all = is_settled
                    && self
                        .clients
                        .is_some_and(|clients| self.run.have_all(clients));
                let are_quiet = |threads: &mut Threads| threads.are_quiet();
                let is_sure = has_all || threads.as_mut().is_some_and(are_quiet);
                let is_guessed = match &threads {
                    None => quiet_for > SILENCE,
                    Some(threads) => {
                        let before = *ran.get_or_insert_with(|| threads.ran());
                        threads.ran().saturating_sub(before) > BUSY
                    }
                };
                if !is_sure && !is_guessed {
                    // Leaves the processor to the threads.
                    let pause = threads.as_ref().map_or(PAUSE, |_| BETWEEN_LOOKS);
                    picking::wait_for_request(&self.run.universe().shared, pause);
                    continue;
                }
                // None came while the threads were looked at.
                if !has_all && self.run.count() != count {
                    continue;
                }
                if !is_settled {
                    is_settled = true;
                    continue;
                }
                late.choosing(&self.run, is_sure);
                let owners = |ports: &[u16]| match &threads {
                    Some(threads) => threads.owners(ports),
                    None => BTreeMap::new(),
                };
                self.run.quiet(&owners)
            };
            if served == Quiet::Stopped {
                stopped();
                break;
            }
            (known, came) = (self.run.count(), watch.elapsed());
            ran = None;
            is_settled = !self.run.take_may_have_told();
        }
        let mut seen = OrderSeen::of(self.run, true);
        seen.late = late.count;
        if !waiting.is_empty() {
            seen.waiting = waiting;
        }
        seen
    }
}

/// Counts the requests that came after a choice that was made because none had come for some time.
#[derive(Debug, Default)]
struct Late {
    /// The sessions that had a request when the last choice was guessed.
    known: Option<BTreeSet<SessionId>>,
    count: u64,
}

impl Late {
    fn choosing(&mut self, run: &OrderedRun, is_sure: bool) {
        let waiting = run.waiting_sessions();
        if let Some(mut known) = self.known.take() {
            known.extend(run.last_session());
            self.count += waiting.difference(&known).count() as u64;
        }
        if !is_sure {
            self.known = Some(waiting);
        }
    }
}
