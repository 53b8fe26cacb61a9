//! Sweeps of tests in other processes, which ask for each run: the verbs `sweep_...`.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use minikeeper_core::clock::Stopwatch;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    orders::{
        chooser::Goal,
        run::{OrderSeen, OrderedRun},
        serving::{OrderedPrograms, Programs},
    },
    story::cut,
    sweep::{
        SweepError,
        armed::{Armed, RunBy},
        plan::{Next, Plan, Run, RunVerdict, SweepOptions},
        report::SweepReport,
        suite::{Suite, SuiteTest},
    },
    universe::Universe,
};

/// The maximum number of sweeps that a server keeps; the oldest is forgotten.
const SWEEPS_MAX: usize = 64;

/// The longest place of a failure. Unit: characters.
const PLACE_CHARS_MAX: usize = 400;

/// The longest name of a story's page. Unit: bytes.
const STORY_BYTES_MAX: usize = 4_096;

/// The maximum number of runs of a sweep that are done at a time.
const RUNNING_MAX: usize = 256;

/// The sweeps of a server.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    kept: Mutex<KeptSweeps>,
    /// Notified when a run has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct KeptSweeps {
    /// The suite whose tests are swept.
    suite: Option<Suite>,
    begun: u64,
    /// Oldest first.
    sweeps: Vec<RemoteSweep>,
}

/// A sweep whose caller does the runs.
#[derive(Debug)]
struct RemoteSweep {
    number: u64,
    plan: Plan,
    watch: Stopwatch,
    /// The programs of its clients, if it tries orders.
    clients: OrderedClients,
    /// The test, if it is one of the suite.
    test: Option<SuiteTest>,
    /// Whether its report was given to the suite.
    is_told: bool,
    /// The runs that are being done, by number.
    running: BTreeMap<u64, RemoteRun>,
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

fn no_suite() -> SweepError {
    SweepError("no suite is being swept; use minikeeper sweep --suite".to_owned())
}

impl KeptSweeps {
    /// Gives the report of a sweep that is over to the suite.
    fn end(&mut self, number: u64) {
        let mut sweeps = self.sweeps.iter_mut();
        let Some(sweep) = sweeps.find(|sweep| sweep.number == number && !sweep.is_told) else {
            return;
        };
        sweep.is_told = true;
        let mut report = sweep.plan.report();
        report.elapsed = sweep.watch.elapsed();
        if let (Some(suite), Some(test)) = (&mut self.suite, &sweep.test) {
            suite.add(test, report);
        }
    }

    /// Gives the report of a sweep that is forgotten to the suite.
    fn tell_suite(&mut self, sweep: RemoteSweep) {
        // A test that skips its first run is not swept.
        let is_open = !sweep.is_told && !sweep.running.is_empty();
        if let (Some(suite), Some(test), true) = (&mut self.suite, &sweep.test, is_open) {
            suite.add(test, sweep.plan.into_report());
        }
    }
}

impl RemoteSweep {
    fn next(&mut self, number: u64, universe: &Universe) -> Result<Next, SweepError> {
        // A run with an order holds the requests of every client of the process.
        let is_alone = self.clients.process.is_some();
        if is_alone && !self.running.is_empty() || self.running.len() >= RUNNING_MAX {
            return Err(SweepError(format!(
                "sweep {number}: {} runs are being done, which is the limit; call sweep_end",
                self.running.len()
            )));
        }
        let next = self.plan.next(self.watch.elapsed());
        if let Next::Run(run) = &next {
            let armed = Armed::new(universe, run, RunBy::Caller)?;
            let goal = run.goal.as_ref();
            let serving = goal.map(|goal| Serving::begin(universe, goal, self.clients));
            let running = RemoteRun {
                run: run.clone(),
                armed,
                serving,
            };
            self.running.insert(run.number, running);
        }
        Ok(next)
    }

    /// Returns the number of a run that is being done, `None` for the only one.
    fn number_of(&self, number: u64, run: Option<u64>) -> Result<u64, SweepError> {
        let mut running = self.running.keys().copied();
        match (run, running.len()) {
            (Some(run), _) if self.running.contains_key(&run) => Ok(run),
            (Some(run), _) => Err(SweepError(format!(
                "sweep {number}: run {run} is not being done"
            ))),
            (None, 1) => Ok(running.next().unwrap_or_default()),
            (None, 0) => Err(SweepError(format!(
                "sweep {number}: no run is being done; call sweep_next"
            ))),
            (None, count) => Err(SweepError(format!(
                "sweep {number}: {count} runs are being done; name one"
            ))),
        }
    }
}

impl Sweeps {
    /// Begins a sweep. Returns its number.
    pub(crate) fn begin(
        &self,
        options: SweepOptions,
        clients: OrderedClients,
        test: Option<SuiteTest>,
    ) -> Result<u64, SweepError> {
        let mut kept = self.kept.lock();
        let plan = match &test {
            None => Plan::new(options),
            Some(test) => {
                let suite = kept.suite.as_ref().ok_or_else(no_suite)?;
                let (options, known) = suite.options_for(test, options);
                Plan::new(options).in_suite(known)
            }
        };
        kept.begun += 1;
        let number = kept.begun;
        if kept.sweeps.len() >= SWEEPS_MAX {
            let oldest = kept.sweeps.remove(0);
            kept.tell_suite(oldest);
        }
        kept.sweeps.push(RemoteSweep {
            number,
            plan,
            watch: Stopwatch::start(),
            clients,
            test,
            is_told: false,
            running: BTreeMap::new(),
        });
        Ok(number)
    }

    /// Begins a suite: the sweeps of its tests share the options, the points and the report.
    pub(crate) fn begin_suite(&self, options: SweepOptions) {
        self.kept.lock().suite = Some(Suite::new(options));
    }

    /// Reads what was found in the tests of the suite.
    pub(crate) fn suite<T>(
        &self,
        read: impl FnOnce(&Suite, &SweepReport) -> T,
    ) -> Result<T, SweepError> {
        let kept = self.kept.lock();
        let suite = kept.suite.as_ref().ok_or_else(no_suite)?;
        // A test that skips its first run is not swept.
        let is_running = |sweep: &&RemoteSweep| !sweep.is_told && !sweep.running.is_empty();
        let running = kept.sweeps.iter().filter(is_running);
        let running = running.filter_map(|sweep| sweep.test.as_ref());
        let running: Vec<_> = running.map(|test| test.title.clone()).collect();
        Ok(read(suite, &suite.report(&running)))
    }

    /// Prepares a universe, which no client uses yet, for the next run. Waits while what is next depends on runs that
    /// have not ended. Returns `None` if the sweep is over.
    pub(crate) async fn next(
        &self,
        number: u64,
        universe: &Universe,
    ) -> Result<Option<Run>, SweepError> {
        loop {
            let mut ended = pin!(self.ended.notified());
            // Registered before the plan is asked, so that no end in between is missed.
            ended.as_mut().enable();
            match self.with(number, |sweep| sweep.next(number, universe))? {
                Next::Run(run) => return Ok(Some(run)),
                Next::Over => {
                    self.kept.lock().end(number);
                    return Ok(None);
                }
                Next::Wait => ended.await,
            }
        }
    }

    /// Ends a run that is being done, `None` for the only one. Returns whether it tells anything about its points.
    pub(crate) async fn end(
        &self,
        (number, run): (u64, Option<u64>),
        (verdict, place): (RunVerdict, Option<String>),
        story: Option<String>,
    ) -> Result<bool, SweepError> {
        if let Some(length) = story.as_ref().map(String::len)
            && length > STORY_BYTES_MAX
        {
            return Err(SweepError(format!(
                "story: {length} bytes, more than the limit of {STORY_BYTES_MAX} bytes; give the path of a page"
            )));
        }
        let RemoteRun {
            run,
            armed,
            serving,
        } = self.with(number, |sweep| {
            let run = sweep.number_of(number, run)?;
            Ok(sweep.running.remove(&run).expect("it is there"))
        })?;
        let mut seen = OrderSeen::default();
        if let Some(serving) = serving {
            let ended = tokio::task::spawn_blocking(|| serving.end()).await;
            seen = ended.unwrap_or_else(|_| OrderSeen::broken());
        }
        let mut result = armed.end(verdict).await;
        self.with(number, |sweep| {
            result.story = story;
            result.place = place.map(|place| cut(&place, PLACE_CHARS_MAX));
            result.order = seen;
            let is_reached = result.is_reached;
            sweep.plan.ended(run, result);
            self.ended.notify_waiters();
            Ok(is_reached)
        })
    }

    /// Waits until the clients of the run that is being done have died, at most this long. Returns whether they
    /// have.
    pub(crate) async fn crashed(
        &self,
        (number, run): (u64, Option<u64>),
        within: Duration,
    ) -> Result<bool, SweepError> {
        let crash = self.with(number, |sweep| {
            let run = sweep.number_of(number, run)?;
            Ok(sweep
                .running
                .get(&run)
                .and_then(|running| running.armed.crash()))
        })?;
        let Some(crash) = crash else {
            return Ok(false);
        };
        // A fault that is removed ends the wait.
        let seen = tokio::time::timeout(within, crash.until(1)).await;
        let has_crashed = seen.is_ok_and(|seen| seen.hits > 0);
        if has_crashed {
            self.with(number, |sweep| {
                let running = sweep.running.get(&sweep.number_of(number, run)?);
                running.inspect(|running| running.armed.all_died());
                Ok(())
            })?;
        }
        Ok(has_crashed)
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
