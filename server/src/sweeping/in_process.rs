//! Sweeps of tests in Rust, inside the process and on paused time.

use std::{
    any::Any,
    cell::RefCell,
    collections::BTreeMap,
    fmt::Debug,
    future::poll_fn,
    panic::{self, AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    pin::pin,
    sync::{Arc, Once},
    task::Poll,
    thread,
    time::Duration,
};

use minikeeper_core::{clock::Stopwatch, config::stories::Stories};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use crate::{
    orders::{
        choice::RequestOrder,
        chooser::Goal,
        fault::SweepFault,
        run::{OrderSeen, OrderedRun, Quiet, Stopped},
    },
    server::{Builder, Server},
    sweep::{
        SweepError,
        armed::{Armed, RunBy},
        plan::{Next, Plan, Run, RunResult, RunVerdict, SweepOptions},
        point::FaultPoint,
        report::SweepReport,
    },
    universe::Universe,
};

/// How often the real time of runs is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Runs a test once without faults, and then once for every place where something can go wrong.
///
/// Each run has a server and a runtime of its own, whose time is paused: sleeps and timeouts take no
/// real time, so that thousands of runs take seconds. Connect inside the process, by
/// [`Universe::local`](crate::Universe::local): over TCP, paused time runs ahead of the sockets.
///
/// A sweep that does not try every point is incomplete, and
/// [`assert_clean`](SweepReport::assert_clean) panics: its budget ended, places were not reached, or
/// the test has sent no request to which the faults apply.
///
/// A run fails if the test panics or returns an error, and hangs if it takes more than
/// [`hang_after`](Sweep::hang_after) of paused time.
///
/// # Examples
/// ```no_run
/// use std::sync::Arc;
/// use minikeeper::{Server, Sweep};
///
/// let report = Sweep::new(|server: Arc<Server>| async move {
///     let mut connection = server.local();
///     // ... use it as a client does, and check what must hold
///     # drop(connection);
/// })
/// .run();
/// report.assert_clean();
/// ```
#[must_use = "call run"]
pub struct Sweep<T> {
    test: T,
    options: SweepOptions,
    builder: Box<dyn Fn() -> Builder + Send + Sync>,
    hang_after: Duration,
    stuck_after: Duration,
    jobs: usize,
    stories: Option<PathBuf>,
}

/// What the test of a [`Sweep`] may return: nothing, or a result.
pub trait SweepOutcome {
    /// Returns why the test failed, if it did.
    fn failure(self) -> Option<String>;
}

impl SweepOutcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Debug> SweepOutcome for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

impl<T, F> Sweep<T>
where
    T: Fn(Arc<Server>) -> F + Send + Sync,
    F: Future<Output: SweepOutcome>,
{
    /// Creates a sweep of this test.
    pub fn new(test: T) -> Self {
        Self {
            test,
            options: SweepOptions::default(),
            builder: Box::new(Server::builder),
            hang_after: Duration::from_secs(600),
            stuck_after: Duration::from_secs(60),
            jobs: 1,
            stories: None,
        }
    }

    /// Sets what to try.
    pub fn options(mut self, options: SweepOptions) -> Self {
        self.options = options;
        self
    }

    /// Also tries two faults a run, until the budget ends, or one fault in each order: see
    /// [`SweepOptions::depth`].
    pub fn pairs(mut self) -> Self {
        self.options.depth = 2;
        self
    }

    /// Sets the order in which points are tried, and which pairs.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Tries equivalent points, too: see [`SweepOptions::all`].
    pub fn all(mut self) -> Self {
        self.options.all = true;
        self
    }

    /// Begins no run after this time.
    pub fn time(mut self, max: Duration) -> Self {
        self.options.time_max = Some(max);
        self
    }

    /// Does at most so many runs.
    pub fn runs(mut self, max: u64) -> Self {
        self.options.runs_max = Some(max);
        self
    }

    /// Tries only these faults. Without [`EventLate`](SweepFault::EventLate) no event of an order is late.
    pub fn faults(mut self, faults: impl Into<Vec<SweepFault>>) -> Self {
        self.options.faults = faults.into();
        self
    }

    /// Tries the orders in which requests can be served, instead of faults: first all that change as
    /// rarely as possible from one client to another, then random ones. Each run serves the request of one
    /// client at a time, when every task of the runtime waits. Events may be late, unless
    /// [`faults`](Sweep::faults) says otherwise; with [`pairs`](Sweep::pairs) a fault may act. See
    /// [`SweepOptions::changes_max`] and [`SweepOptions::more_max`].
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use minikeeper::{Server, Sweep};
    /// use minikeeper_client::{Client, Connecting, CreateMode};
    ///
    /// async fn create_once(server: Arc<Server>) {
    ///     let transport = move |_host: &str| -> Connecting {
    ///         let (reader, writer) = tokio::io::split(server.local());
    ///         Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
    ///     };
    ///     let builder = Client::builder("in-process").unwrap();
    ///     let client = builder.transport(transport).connect().await.unwrap();
    ///     if client.exists("/a").await.unwrap().is_none() {
    ///         let created = client.create("/a", b"", CreateMode::Persistent).await;
    ///         created.expect("nobody else creates it");
    ///     }
    /// }
    /// let report = Sweep::new(|server: Arc<Server>| async move {
    ///     let other = tokio::spawn(create_once(Arc::clone(&server)));
    ///     create_once(server).await;
    ///     other.await.unwrap();
    /// })
    /// .orders()
    /// .run();
    /// // Both looked before one of them created it.
    /// assert!(!report.is_clean());
    /// ```
    pub fn orders(mut self) -> Self {
        self.options.orders = true;
        self
    }

    /// Does one run, with this point; `+` stands between two. Or does it in this order of requests. A
    /// report names the points and orders.
    ///
    /// # Errors
    /// If the text names no point and no order.
    pub fn only(mut self, points: &str) -> Result<Self, SweepError> {
        if RequestOrder::is_meant(points) {
            self.options.orders = true;
            self.options
                .only_orders
                .push(points.parse().map_err(SweepError)?);
            return Ok(self);
        }
        let points = points.split('+').map(str::parse::<FaultPoint>);
        self.options.only.push(points.collect::<Result<_, _>>()?);
        Ok(self)
    }

    /// Lets the sweep be clean though so many points are not reached: see
    /// [`SweepOptions::allow_unreached`].
    pub fn allow_unreached(mut self, points: u64) -> Self {
        self.options.allow_unreached = points;
        self
    }

    /// Lets the sweep be clean though a budget leaves so many points untried: see
    /// [`SweepOptions::allow_untried`].
    pub fn allow_untried(mut self, points: u64) -> Self {
        self.options.allow_untried = points;
        self
    }

    /// Expects failures: [`SweepRule`](crate::SweepRule) says how such a rule reads.
    ///
    /// # Errors
    /// If the text is no rule.
    pub fn allow(mut self, rule: &str) -> Result<Self, SweepError> {
        self.options.allow.push(rule.parse()?);
        Ok(self)
    }

    /// Does not try some points: [`SweepRule`](crate::SweepRule) says how such a rule reads.
    ///
    /// # Errors
    /// If the text is no rule.
    pub fn leave_out(mut self, rule: &str) -> Result<Self, SweepError> {
        self.options.leave_out.push(rule.parse()?);
        Ok(self)
    }

    /// Ends with the first failure, once it is confirmed.
    pub fn first(mut self) -> Self {
        self.options.first = true;
        self
    }

    /// Lets a run also fail if it leaves other znodes, clients or watches than the runs without faults.
    pub fn compare(mut self) -> Self {
        self.options.compare = true;
        self
    }

    /// Sets how long an outage lasts, by the server's clock; `Duration::MAX` if it does not end. Default: 1 s.
    pub fn outage(mut self, lasting: Duration) -> Self {
        self.options.outage = lasting;
        self
    }

    /// Sets how many changes a rollback takes back. Default: 1.
    pub fn rollback(mut self, changes: u32) -> Self {
        self.options.rollback = changes;
        self
    }

    /// Sets the paused time after which a run hangs. Default: 10 minutes.
    pub fn hang_after(mut self, time: Duration) -> Self {
        self.hang_after = time;
        self
    }

    /// Sets the real time after which a run hangs in which paused time stands still: it does not move while a task
    /// can go on, as in a loop without a pause. Default: 1 minute.
    pub fn stuck_after(mut self, time: Duration) -> Self {
        self.stuck_after = time;
        self
    }

    /// Runs on so many threads. Default: 1.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// Configures the servers.
    pub fn server(mut self, builder: impl Fn() -> Builder + Send + Sync + 'static) -> Self {
        self.builder = Box::new(builder);
        self
    }

    /// Saves the pages with the stories of failures in this folder.
    pub fn stories(mut self, folder: impl Into<PathBuf>) -> Self {
        self.stories = Some(folder.into());
        self
    }

    /// Does the sweep. A run whose server cannot start has failed.
    ///
    /// # Panics
    /// When a fault would not be tried: see [`SweepOptions::check`].
    #[must_use]
    pub fn run(self) -> SweepReport {
        if let Err(error) = self.options.check() {
            panic!("{error}");
        }
        let watch = Stopwatch::start();
        let plan = Mutex::new(Plan::new(self.options.clone()));
        let changed = Condvar::new();
        let watchdog = Watchdog::default();
        let work = || {
            loop {
                let mut locked = plan.lock();
                let run = loop {
                    match locked.next(watch.elapsed()) {
                        Next::Run(run) => break run,
                        Next::Wait => changed.wait(&mut locked),
                        Next::Over => {
                            changed.notify_all();
                            return;
                        }
                    }
                };
                drop(locked);
                // Other threads wait for its end, so that it must have one.
                let result = catch(|| self.do_run(&run, &watchdog))
                    .unwrap_or_else(|message| RunResult::new(RunVerdict::Failed(message), false));
                plan.lock().ended(run, result);
                changed.notify_all();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| watchdog.watch(self.stuck_after));
            // Also if a thread panics, or the scope would not end.
            let _ends = WatchEnd(&watchdog);
            thread::scope(|scope| {
                for _ in 1..self.jobs {
                    scope.spawn(work);
                }
                work();
            });
        });
        let mut report = plan.into_inner().into_report();
        report.elapsed = watch.elapsed();
        report
    }

    fn do_run(&self, run: &Run, watchdog: &Watchdog) -> RunResult {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true);
        let ordering = Arc::new(Ordering::default());
        if run.goal.is_some() {
            let ordering = Arc::clone(&ordering);
            // Called when no task can go on, before paused time advances.
            builder.on_thread_park(move || ordering.quiet());
        }
        let runtime = builder.build().expect("a runtime starts");
        let quiet = QuietPanics::begin();
        let result = runtime.block_on(async {
            let builder = (self.builder)().stories(Stories::Off);
            let server = builder.start().await.expect("a server starts");
            let server = Arc::new(server);
            let armed = Armed::new(server.universe(), run, RunBy::Caller);
            let armed = armed.expect("the points come from a run");
            if let Some(goal) = &run.goal {
                ordering.begin(server.universe(), goal.clone());
            }
            let watched = watchdog.begin();
            let start = || self.start(&server, &ordering, &watched.stuck);
            let verdict = match armed.crash() {
                None => start().await,
                // The clients are gone, and so is the test, which is dropped where it waits.
                Some(crash) => match first_of_both(start(), crash.until(1)).await {
                    Ok(verdict) => verdict,
                    Err(_) => {
                        armed.all_died();
                        start().await
                    }
                },
            };
            let seen = ordering.end(verdict != RunVerdict::Passed);
            let failure = match &verdict {
                RunVerdict::Passed => None,
                RunVerdict::Failed(message) | RunVerdict::Hung(message) => Some(message.clone()),
            };
            let story =
                failure.and_then(|failure| self.save_story((&server, &armed), run, &failure));
            let mut result = armed.end(verdict).await;
            result.story = story;
            result.order = seen;
            result
        });
        // Tasks of the test that panic while they are dropped.
        drop(runtime);
        drop(quiet);
        result
    }

    /// Does the test, which may have been begun before.
    async fn start(&self, server: &Arc<Server>, ordering: &Ordering, stuck: &Notify) -> RunVerdict {
        let test = match catch(|| (self.test)(Arc::clone(server))) {
            Ok(test) => CatchPanics(Box::pin(test)),
            Err(message) => return RunVerdict::Failed(message),
        };
        let ended = first_of_both(test, ordering.stopped());
        let in_time = tokio::time::timeout(self.hang_after, ended);
        let Ok(in_time) = first_of_both(in_time, stuck.notified()).await else {
            return RunVerdict::Hung(format!(
                "it did not end within {} s of real time, and paused time stands still: a task goes on without a pause",
                self.stuck_after.as_secs_f64()
            ));
        };
        match in_time {
            Err(_) => RunVerdict::Hung(format!(
                "it did not end within {} s of paused time",
                self.hang_after.as_secs_f64()
            )),
            Ok(Err(stopped)) => RunVerdict::Hung(stopped.to_string()),
            Ok(Ok(Err(message))) => RunVerdict::Failed(message),
            Ok(Ok(Ok(outcome))) => outcome
                .failure()
                .map_or(RunVerdict::Passed, RunVerdict::Failed),
        }
    }

    fn save_story(
        &self,
        (server, armed): (&Server, &Armed),
        run: &Run,
        failure: &str,
    ) -> Option<String> {
        let folder = self.stories.as_ref()?;
        let story = server.story().with_title(&run.text()).with_failure(failure);
        let saved = story.save(folder).ok()?;
        if let Some(recording) = armed.recording() {
            // A report is complete without it.
            let _ = recording.save(&saved.with_extension("rec"));
        }
        Some(saved.display().to_string())
    }
}

/// Tells runs that take too much real time.
#[derive(Default)]
struct Watchdog {
    watched: Mutex<Watched>,
    ended: Condvar,
}

#[derive(Default)]
struct Watched {
    is_over: bool,
    /// The runs that are being done, and when each began.
    runs: Vec<(Stopwatch, Arc<Notify>)>,
}

/// A run that is watched until this is dropped.
struct WatchedRun<'a> {
    watchdog: &'a Watchdog,
    stuck: Arc<Notify>,
}

impl Watchdog {
    fn begin(&self) -> WatchedRun<'_> {
        let stuck = Arc::new(Notify::new());
        let run = (Stopwatch::start(), Arc::clone(&stuck));
        self.watched.lock().runs.push(run);
        WatchedRun {
            watchdog: self,
            stuck,
        }
    }

    /// Tells each run that takes longer than this, until the sweep ends.
    fn watch(&self, max: Duration) {
        let mut watched = self.watched.lock();
        while !watched.is_over {
            for (began, stuck) in &watched.runs {
                if began.elapsed() > max {
                    stuck.notify_one();
                }
            }
            self.ended.wait_for(&mut watched, LOOK.min(max));
        }
    }
}

/// Ends a watch when it is dropped.
struct WatchEnd<'a>(&'a Watchdog);

impl Drop for WatchEnd<'_> {
    fn drop(&mut self) {
        self.0.watched.lock().is_over = true;
        self.0.ended.notify_all();
    }
}

impl Drop for WatchedRun<'_> {
    fn drop(&mut self) {
        let mut watched = self.watchdog.watched.lock();
        watched
            .runs
            .retain(|(_, stuck)| !Arc::ptr_eq(stuck, &self.stuck));
    }
}

/// Lets a run choose the order of the requests on a runtime whose time is paused.
#[derive(Default)]
struct Ordering {
    run: Mutex<Option<OrderedRun>>,
    /// Keeps the runtime from parking after a request was served, which may wake nobody.
    served: Arc<Notify>,
    stopped: Notify,
}

impl Ordering {
    /// Begins to hold requests. The task that it spawns ends with the runtime.
    fn begin(&self, universe: &Universe, goal: Goal) {
        *self.run.lock() = Some(OrderedRun::begin(universe, goal));
        let served = Arc::clone(&self.served);
        tokio::spawn(async move {
            loop {
                served.notified().await;
            }
        });
    }

    /// Serves the next request.
    fn quiet(&self) {
        let mut run = self.run.lock();
        match run.as_mut().map(|run| run.quiet(&|_| BTreeMap::new())) {
            Some(Quiet::Served) => self.served.notify_one(),
            Some(Quiet::Stopped) => self.stopped.notify_one(),
            Some(Quiet::Nothing) | None => {}
        }
    }

    /// Resolves when the run has stopped serving requests in its order.
    async fn stopped(&self) -> Stopped {
        loop {
            self.stopped.notified().await;
            let run = self.run.lock();
            if let Some(stopped) = run.as_ref().and_then(OrderedRun::stopped) {
                return stopped.clone();
            }
        }
    }

    /// Lets requests pass again. Returns what was seen.
    fn end(&self, has_failed: bool) -> OrderSeen {
        let run = self.run.lock().take();
        run.map_or_else(OrderSeen::default, |run| OrderSeen::of(run, has_failed))
    }
}

/// Resolves with the first of two that is ready.
async fn first_of_both<A: Future, B: Future>(one: A, other: B) -> Result<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(one) => Poll::Ready(Ok(one)),
        Poll::Pending => other.as_mut().poll(cx).map(Err),
    })
    .await
}

/// A future whose panics are its results.
struct CatchPanics<F>(std::pin::Pin<Box<F>>);

impl<F: Future> Future for CatchPanics<F> {
    type Output = Result<F::Output, String>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Self::Output> {
        match catch(|| self.0.as_mut().poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(message) => Poll::Ready(Err(message)),
        }
    }
}

/// Calls this. Returns the message of its panic, with the place.
fn catch<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let noted = PANIC.with_borrow_mut(|noted| noted.as_mut().and_then(Option::take));
        noted.unwrap_or_else(|| text_of(&*payload))
    })
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let owned = || payload.downcast_ref::<String>().cloned();
    text.or_else(owned).unwrap_or_else(|| "a panic".to_owned())
}

thread_local! {
    /// The message of the last panic of this thread; `None` if panics are printed as usual.
    static PANIC: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Keeps panics of this thread from being printed, with backtraces, thousands of times.
struct QuietPanics;

impl QuietPanics {
    fn begin() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                let is_noted = PANIC.with_borrow_mut(|noted| {
                    let Some(noted) = noted else {
                        return false;
                    };
                    let place = info.location();
                    let place = place.map_or_else(String::new, |place| format!(", {place}"));
                    // The first one causes those that follow.
                    noted.get_or_insert_with(|| text_of(info.payload()) + &place);
                    true
                });
                if !is_noted {
                    before(info);
                }
            }));
        });
        PANIC.set(Some(None));
        Self
    }
}

impl Drop for QuietPanics {
    fn drop(&mut self) {
        PANIC.set(None);
    }
}
