//! Sweeps of tests in other processes, which ask for each run: the verbs `sweep_...`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use minikeeper_core::clock::Stopwatch;
use parking_lot::Mutex;

use crate::{
    orders::{
        chooser::Goal,
        run::{OrderSeen, OrderedRun},
        serving::{OrderedPrograms, Programs},
    },
    sweep::{
        SweepError,
        armed::Armed,
        plan::{Next, Plan, Run, RunVerdict, SweepOptions},
        report::SweepReport,
    },
    universe::Universe,
};

/// The maximum number of sweeps that a server keeps; the oldest is forgotten.
const SWEEPS_MAX: usize = 64;

/// The longest name of a story's page. Unit: bytes.
const STORY_BYTES_MAX: usize = 4_096;

/// The sweeps of a server.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    kept: Mutex<KeptSweeps>,
}

#[derive(Debug, Default)]
struct KeptSweeps {
    begun: u64,
    /// Oldest first.
    sweeps: Vec<RemoteSweep>,
}

/// A sweep whose caller does one run after the other.
#[derive(Debug)]
struct RemoteSweep {
    number: u64,
    plan: Plan,
    watch: Stopwatch,
    /// The programs of its clients, if it tries orders.
    clients: OrderedClients,
    /// The run that is being done.
    running: Option<RemoteRun>,
}

/// What is known of the clients of a sweep of orders.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OrderedClients {
    /// The process that has them, itself or in processes that it has started.
    pub(crate) process: Option<u32>,
    /// How many there are.
    pub(crate) count: Option<usize>,
}

#[derive(Debug)]
struct RemoteRun {
    run: Run,
    armed: Armed,
    serving: Option<Serving>,
}

/// A thread that serves the requests of a run in an order.
#[derive(Debug)]
struct Serving {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<OrderSeen>,
}

impl Serving {
    fn begin(universe: &Universe, goal: &Goal, clients: OrderedClients) -> Self {
        universe.freeze();
        let programs = OrderedPrograms {
            run: OrderedRun::begin(universe, goal.clone()),
            programs: clients.process.map(Programs::Process),
            clients: clients.count,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let is_ended = Arc::clone(&is_over);
        // When it has stopped, requests pass, and the test ends in some way.
        let thread = thread::spawn(move || programs.serve(&is_ended, || ()));
        Self { is_over, thread }
    }

    /// Ends the thread, which blocks the calling one for some milliseconds.
    fn end(self) -> OrderSeen {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| OrderSeen::broken())
    }
}

impl Sweeps {
    /// Begins a sweep. Returns its number.
    pub(crate) fn begin(&self, options: SweepOptions, clients: OrderedClients) -> u64 {
        let mut kept = self.kept.lock();
        kept.begun += 1;
        let number = kept.begun;
        if kept.sweeps.len() >= SWEEPS_MAX {
            kept.sweeps.remove(0);
        }
        kept.sweeps.push(RemoteSweep {
            number,
            plan: Plan::new(options),
            watch: Stopwatch::start(),
            clients,
            running: None,
        });
        number
    }

    /// Prepares a universe, which no client uses yet, for the next run. Returns `None` if the sweep is
    /// over.
    pub(crate) fn next(&self, number: u64, universe: &Universe) -> Result<Option<Run>, SweepError> {
        self.with(number, |sweep| {
            if sweep.running.is_some() {
                return Err(SweepError(format!(
                    "sweep {number}: the last run has not ended; call sweep_end"
                )));
            }
            match sweep.plan.next(sweep.watch.elapsed()) {
                Next::Run(run) => {
                    let armed = Armed::new(universe, &run)?;
                    let goal = run.goal.as_ref();
                    let serving = goal.map(|goal| Serving::begin(universe, goal, sweep.clients));
                    sweep.running = Some(RemoteRun {
                        run: run.clone(),
                        armed,
                        serving,
                    });
                    Ok(Some(run))
                }
                Next::Wait | Next::Over => Ok(None),
            }
        })
    }

    /// Ends the run that is being done. Returns whether it tells anything about its points.
    pub(crate) async fn end(
        &self,
        number: u64,
        verdict: RunVerdict,
        story: Option<String>,
    ) -> Result<bool, SweepError> {
        if let Some(length) = story.as_ref().map(String::len)
            && length > STORY_BYTES_MAX
        {
            return Err(SweepError(format!(
                "story: {length} bytes, more than the limit of {STORY_BYTES_MAX} bytes; give the path of a page"
            )));
        }
        let running = self.with(number, |sweep| Ok(sweep.running.take()))?;
        let RemoteRun {
            run,
            armed,
            serving,
        } = running.ok_or_else(|| {
            SweepError(format!(
                "sweep {number}: no run is being done; call sweep_next"
            ))
        })?;
        let mut seen = OrderSeen::default();
        if let Some(serving) = serving {
            let ended = tokio::task::spawn_blocking(|| serving.end()).await;
            seen = ended.unwrap_or_else(|_| OrderSeen::broken());
        }
        self.with(number, |sweep| {
            let mut result = armed.end(verdict);
            result.story = story;
            result.order = seen;
            let is_reached = result.is_reached;
            sweep.plan.ended(run, result);
            Ok(is_reached)
        })
    }

    pub(crate) fn report(&self, number: u64) -> Result<SweepReport, SweepError> {
        self.with(number, |sweep| {
            let mut report = sweep.plan.report();
            report.elapsed = sweep.watch.elapsed();
            Ok(report)
        })
    }

    fn with<T>(
        &self,
        number: u64,
        act: impl FnOnce(&mut RemoteSweep) -> Result<T, SweepError>,
    ) -> Result<T, SweepError> {
        let mut kept = self.kept.lock();
        let sweep = kept.sweeps.iter_mut().find(|sweep| sweep.number == number);
        act(sweep.ok_or_else(|| {
            SweepError(format!(
                "sweep {number}: unknown; a server keeps the last {SWEEPS_MAX} sweeps"
            ))
        })?)
    }
}
