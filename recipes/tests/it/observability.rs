//! Metrics, spans and events: what `docs/observability.md` lists is what a busy program emits.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Debug, Write as _},
    pin::Pin,
    sync::{Arc, LazyLock},
    time::Duration,
};

use minikeeper::Fault;
use minikeeper_client::{Error, ErrorCode};
use minikeeper_recipes::{
    FencingToken, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2,
    LeaderLatch, LocalHandOver, LockOptions, Released, Status, TokenCheck,
};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tracing::{
    Dispatch, Event, Instrument as _, Metadata, Subscriber,
    field::{Field, Visit},
    info_span,
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::{
    kit::{client, contender_with, soon, spawn, start, until},
    link::Mode,
};

const SECOND: Duration = Duration::from_secs(1);

/// What the recipes report by `tracing`, as one line for each span and event.
#[derive(Clone, Default)]
struct Reports {
    lines: Arc<Mutex<Vec<String>>>,
    /// The open spans, each with those around it.
    spans: Arc<Mutex<BTreeMap<u64, String>>>,
}

impl Reports {
    fn note(&self, what: &str, metadata: &Metadata<'_>, visit: impl FnOnce(&mut Line)) {
        if !metadata.target().starts_with("minikeeper_recipes") {
            return;
        }
        let mut line = Line::default();
        visit(&mut line);
        let level = metadata.level().as_str().to_lowercase();
        let name = if what == "span" {
            metadata.name().to_owned()
        } else {
            line.message
        };
        let fields = line.fields;
        self.lines
            .lock()
            .push(format!("{what} {level} {name}: {fields}"));
    }

    /// The lines with names of fields alone, each once.
    fn kinds(&self) -> BTreeSet<String> {
        let lines = self.lines.lock();
        let names = |fields: &str| -> String {
            let fields = fields.split(", ").filter_map(|field| field.split_once('='));
            let names = fields.map(|(name, _)| format!("`{name}`"));
            names.collect::<Vec<_>>().join(", ")
        };
        lines
            .iter()
            .map(|line| {
                let (head, fields) = line.split_once(": ").unwrap();
                let mut head = head.splitn(3, ' ');
                let mut next = || head.next().unwrap();
                let (what, level, name) = (next(), next(), next());
                format!("| {what} | `{name}` | {level} | {} |", names(fields))
            })
            .collect()
    }

    fn has(&self, part: &str) -> bool {
        self.lines.lock().iter().any(|line| line.contains(part))
    }

    fn open_spans(&self) -> Vec<String> {
        self.spans.lock().values().cloned().collect()
    }
}

/// Reports what this thread does.
fn report() -> (Reports, tracing::subscriber::DefaultGuard) {
    // While there is one subscriber, tracing asks the subscriber of the thread that comes first to a
    // callsite whether that is of interest to any thread. Another test has none.
    static SECOND: LazyLock<Dispatch> =
        LazyLock::new(|| Dispatch::new(Registry::default().with(Reports::default())));
    LazyLock::force(&SECOND);
    let reports = Reports::default();
    let on = tracing::subscriber::set_default(Registry::default().with(reports.clone()));
    (reports, on)
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
            return;
        }
        let comma = if self.fields.is_empty() { "" } else { ", " };
        write!(self.fields, "{comma}{}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Reports {
    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, all: Context<'_, S>) {
        self.note("span", span.metadata(), |line| span.record(line));
        let names: Vec<_> = all
            .span_scope(id)
            .unwrap()
            .map(|span| span.name())
            .collect();
        self.spans.lock().insert(id.into_u64(), names.join(" in "));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.note("event", event.metadata(), |line| event.record(line));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.spans.lock().remove(&id.into_u64());
    }
}

/// Does everything that is reported. Its locks have the data "secret".
async fn busy_program() {
    let server = start().await;
    let mut options = LockOptions::default().with_data("secret");
    options.hold_warn_after = Some(SECOND);
    let first = contender_with(&server, 1, options.clone()).await;
    let second = contender_with(&server, 2, options.clone()).await;
    // It reads the list after each event.
    options.look_ahead = 0;
    let third = contender_with(&server, 3, options).await;

    // A refusal, and others in the queue: one gets the lock, one gives up, one is too late.
    let refusal = Fault::error(ErrorCode::OperationTimeout).at("/locks/**");
    let _refusal = server.inject(refusal.once()).unwrap();
    let guard = first.lock.acquire().await.unwrap();
    assert!(second.lock.try_acquire().await.unwrap().is_none());
    let dropped = timeout(SECOND, second.lock.acquire()).await;
    assert!(dropped.is_err());
    let lock = second.lock.clone();
    let waiting = spawn(async move { lock.acquire().await });
    until("the second waits", || crate::kit::queue(&server).len() == 2).await;
    let lock = third.lock.clone();
    let last = spawn(async move { lock.acquire().await });
    until("the third waits", || crate::kit::queue(&server).len() == 3).await;
    // A waiting contender loses its session and queues again.
    server.expire(third.client.session_id().unwrap()).unwrap();
    sleep(2 * SECOND).await;
    until("it is back", || crate::kit::queue(&server).len() == 3).await;
    guard.release().await.unwrap();
    let guard = soon(waiting).await.unwrap().unwrap();
    // The holder loses its connection, and then its session.
    second.link.set(Mode::Cut);
    assert!(matches!(
        soon(guard.unsure()).await,
        Status::Suspended { .. }
    ));
    soon(guard.lost()).await;
    drop(guard);
    drop(soon(last).await.unwrap().unwrap());
    third.client.close().await;
    assert!(third.lock.acquire().await.is_err());

    let late = FencingToken { czxid: 1, pass: 0 };
    let check = TokenCheck::new("register");
    check.check(FencingToken { czxid: 2, pass: 0 }).unwrap();
    assert!(check.check(late).is_err());

    let latch = LeaderLatch::start(first.client.clone(), "/leaders/a", "1").unwrap();
    soon(latch.wait()).await.unwrap();
    soon(latch.close()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn documented_spans_and_events_are_those_of_a_busy_program() {
    let (reports, _on) = report();
    busy_program().await;
    assert!(!reports.has("secret"), "data of znodes is logged");
    assert_eq!(documented("spans and events"), reports.kinds());
}

/// The rows of a table in the document, without the last column, which explains the row.
fn documented(table: &str) -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/observability.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rows) = text.split_once(&format!("<!-- {table} -->\n")).unwrap();
    let rows = rows
        .lines()
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    let without_text = |row: &str| {
        let (kept, _) = row.trim_end_matches('|').rsplit_once('|').unwrap();
        format!("{kept}|")
    };
    rows.map(without_text).collect()
}

#[tokio::test(start_paused = true)]
async fn hold_that_exceeds_its_limit_is_warned_about_once_while_it_lasts() {
    let (reports, _on) = report();
    let server = start().await;
    let mut options = LockOptions::default();
    options.hold_warn_after = Some(10 * SECOND);
    let holder = contender_with(&server, 1, options).await;
    let is_warned = || reports.has("lock held longer than the limit");

    let short = holder.lock.acquire().await.unwrap();
    sleep(9 * SECOND).await;
    short.release().await.unwrap();
    sleep(5 * SECOND).await;
    assert!(!is_warned(), "a hold of 9 s");

    let guard = holder.lock.acquire().await.unwrap();
    sleep(9 * SECOND).await;
    assert!(!is_warned(), "after 9 s");
    sleep(2 * SECOND).await;
    assert!(reports.has("limit_ms=10000"), "after 11 s");
    assert_eq!(guard.status(), Status::Held);
    sleep(60 * SECOND).await;
    let warnings = reports.kinds();
    assert_eq!(
        warnings
            .iter()
            .filter(|kind| kind.contains(" warn "))
            .count(),
        1
    );
    guard.release().await.unwrap();
}

/// A loss that the holder knows of is reported as such.
#[tokio::test(start_paused = true)]
async fn lost_lock_is_not_warned_about_as_held_too_long() {
    let (reports, _on) = report();
    let server = start().await;
    let mut options = LockOptions::default();
    options.hold_warn_after = Some(10 * SECOND);
    let holder = contender_with(&server, 1, options).await;
    let guard = holder.lock.acquire().await.unwrap();
    server.expire(holder.client.session_id().unwrap()).unwrap();
    soon(guard.lost()).await;
    sleep(60 * SECOND).await;
    assert!(reports.has("lock lost"));
    assert!(!reports.has("lock held longer than the limit"));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_the_grant_and_a_hold_when_its_release_begins() {
    let (reports, _on) = report();
    let server = start().await;
    let (client, _link) = client(&server, 1).await;
    let mutex = InterProcessMutex::new(client.clone(), "/mutex").unwrap();
    let mut local = LockOptions::default();
    local.local_hand_over = Some(LocalHandOver::default());
    let passed = InterProcessMutex::with_options(client.clone(), "/passed", local).unwrap();
    let read_write = InterProcessReadWriteLock::new(client.clone(), "/rw").unwrap();
    let semaphore = InterProcessSemaphoreV2::new(client.clone(), "/leases", 1).unwrap();
    let released =
        async |mut release: Pin<Box<dyn Future<Output = Result<Released, Error>> + '_>>| {
            assert_eq!(reports.open_spans(), ["program", "hold in program"]);
            tokio::select! {
                biased;
                _ = &mut release => panic!("the server has replied already"),
                () = async { assert_eq!(reports.open_spans(), ["program"]) } => {}
            }
            release.await.unwrap();
        };
    let program = async {
        for lock in [&mutex, &passed] {
            let guard = lock.acquire().await.unwrap();
            released(Box::pin(guard.release())).await;
        }
        let guard = read_write.acquire_read().await.unwrap();
        released(Box::pin(guard.release())).await;
        let lease = semaphore.acquire().await.unwrap();
        released(Box::pin(lease.release())).await;
    };
    let span = info_span!(target: "minikeeper_recipes", "program");
    program.instrument(span).await;
    assert!(reports.open_spans().is_empty());
}

#[cfg(feature = "metrics")]
mod metered {
    use std::{
        future::pending,
        sync::atomic::{AtomicU64, Ordering},
    };

    use metrics::{
        Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
        Unit,
    };
    use minikeeper_recipes::{
        InterProcessSemaphoreMutex, LeaderSelector, SelectorOptions, describe_metrics,
    };

    use tokio::task::spawn_blocking;

    use super::*;
    use crate::kit::contender;

    /// Keeps all that is recorded: sums of counters, values of histograms.
    #[derive(Default)]
    struct Kept {
        described: Mutex<BTreeMap<String, (&'static str, Option<Unit>)>>,
        counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
        histograms: Mutex<BTreeMap<String, Arc<Values>>>,
    }

    #[derive(Default)]
    struct Values(Mutex<Vec<f64>>);

    impl HistogramFn for Values {
        fn record(&self, value: f64) {
            self.0.lock().push(value);
        }
    }

    impl Kept {
        fn describe(&self, name: &KeyName, kind: &'static str, unit: Option<Unit>) {
            self.described
                .lock()
                .insert(name.as_str().to_owned(), (kind, unit));
        }

        fn count(&self, series: &str) -> u64 {
            let counters = self.counters.lock();
            counters
                .get(series)
                .map_or(0, |count| count.load(Ordering::Relaxed))
        }

        fn values(&self, series: &str) -> Vec<f64> {
            let histograms = self.histograms.lock();
            histograms
                .get(series)
                .map(|values| values.0.lock().clone())
                .unwrap_or_default()
        }

        /// The rows that the document must have.
        fn rows(&self) -> BTreeSet<String> {
            let described = self.described.lock();
            let counters = self.counters.lock();
            let histograms = self.histograms.lock();
            let series = counters.keys().chain(histograms.keys());
            let mut labels = BTreeMap::<&str, BTreeSet<&str>>::new();
            for series in series {
                let (name, rest) = series.split_once('{').unwrap();
                let names = rest
                    .trim_end_matches('}')
                    .split(',')
                    .filter_map(|label| label.split('=').next());
                labels.entry(name).or_default().extend(names);
            }
            let row = |(name, labels): (&str, BTreeSet<&str>)| {
                let (kind, _) = described[name];
                let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
                format!("| `{name}` | {kind} | {} |", labels.join(", "))
            };
            labels.into_iter().map(row).collect()
        }
    }

    fn series(key: &Key) -> String {
        let labels: BTreeSet<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        format!("{}{{{}}}", key.name(), Vec::from_iter(labels).join(","))
    }

    impl Recorder for Kept {
        fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, "counter", unit);
        }

        fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, "gauge", unit);
        }

        fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, "histogram", unit);
        }

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Arc::clone(
                self.counters.lock().entry(series(key)).or_default(),
            ))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(Arc::clone(
                self.histograms.lock().entry(series(key)).or_default(),
            ))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn documented_metrics_are_those_of_a_busy_program() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        describe_metrics();
        busy_program().await;
        assert_eq!(documented("metrics"), kept.rows());
        let described: BTreeSet<_> = kept.described.lock().keys().cloned().collect();
        let documented = documented("metrics");
        assert_eq!(described.len(), documented.len(), "{described:?}");
        for (name, (kind, unit)) in &*kept.described.lock() {
            let suffix = match (*kind, unit) {
                ("counter", _) => "_total",
                (_, Some(Unit::Seconds)) => "_seconds",
                _ => "_length",
            };
            assert!(name.ends_with(suffix), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_have_the_right_values() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let [first, second] = [contender(&server, 1).await, contender(&server, 2).await];
        let guard = first.lock.acquire().await.unwrap();
        let lock = second.lock.clone();
        let waiting = spawn(async move { lock.acquire().await });
        until("the second waits", || crate::kit::queue(&server).len() == 2).await;
        sleep(5 * SECOND).await;
        guard.release().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        sleep(3 * SECOND).await;
        drop(guard);
        let of = "path=/locks/a,recipe=InterProcessMutex";
        let waits = kept.values(&format!(
            "minikeeper_lock_wait_seconds{{outcome=granted,{of}}}"
        ));
        let holds = kept.values(&format!("minikeeper_lock_hold_seconds{{{of}}}"));
        let lengths = kept.values(&format!("minikeeper_lock_queue_length{{{of}}}"));
        assert_eq!(lengths, [0.0, 1.0]);
        let [brief, long] = waits[..] else {
            panic!("{waits:?}")
        };
        assert!(brief < 1.0 && (5.0..6.0).contains(&long), "{waits:?}");
        let [of_first, of_second] = holds[..] else {
            panic!("{holds:?}")
        };
        assert!(
            (5.0..6.0).contains(&of_first) && (3.0..4.0).contains(&of_second),
            "{holds:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn loss_of_the_own_znode_is_counted_once_with_its_reason() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let mut options = LockOptions::default();
        options.watch_own = true;
        let holder = contender_with(&server, 1, options).await;
        let other = contender(&server, 2).await;
        let guard = holder.lock.acquire().await.unwrap();
        other.client.delete(guard.path(), None).await.unwrap();
        soon(guard.lost()).await;
        assert!(matches!(guard.status(), Status::Lost(_)));
        drop(guard);
        let series = "minikeeper_lock_losses_total{path=/locks/a,reason=node_deleted,recipe=InterProcessMutex}";
        assert_eq!(kept.count(series), 1);
    }

    /// A holder that never asks still has its loss counted, when it drops the guard.
    #[tokio::test(start_paused = true)]
    async fn loss_that_no_call_noticed_is_counted_at_the_drop() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let holder = contender(&server, 1).await;
        let guard = holder.lock.acquire().await.unwrap();
        server.expire(holder.client.session_id().unwrap()).unwrap();
        until("there is a new session", || holder.client.epoch().0 == 2).await;
        drop(guard);
        let series = "minikeeper_lock_losses_total{path=/locks/a,reason=session_over,recipe=InterProcessMutex}";
        assert_eq!(kept.count(series), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn recipes_are_named_and_paths_can_be_left_out() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let (client, _link) = client(&server, 1).await;
        let mut options = LockOptions::default();
        options.path_label = false;
        let lock = InterProcessReadWriteLock::with_options(client.clone(), "/rw", options.clone())
            .unwrap();
        lock.acquire_read().await.unwrap().release().await.unwrap();
        let semaphore =
            InterProcessSemaphoreV2::with_options(client.clone(), "/s", 2, options.clone())
                .unwrap();
        semaphore.acquire().await.unwrap().release().await.unwrap();
        let mutex = InterProcessSemaphoreMutex::new(client.clone(), "/m").unwrap();
        mutex.acquire().await.unwrap().release().await.unwrap();
        let mut selector_options = SelectorOptions::default();
        selector_options.lock = options;
        let selector = LeaderSelector::start(client, "/leaders", "1", selector_options, |_| {
            Box::pin(async {})
        })
        .unwrap();
        soon(selector.done()).await.unwrap();
        for labels in [
            "recipe=InterProcessReadWriteLock",
            "recipe=InterProcessSemaphoreV2",
            "path=/m,recipe=InterProcessSemaphoreMutex",
            "recipe=LeaderSelector",
        ] {
            let held = kept.values(&format!("minikeeper_lock_hold_seconds{{{labels}}}"));
            assert_eq!(held.len(), 1, "{labels}");
        }
        for to in ["leader", "follower"] {
            let series =
                format!("minikeeper_leader_changes_total{{recipe=LeaderSelector,to={to}}}");
            assert_eq!(kept.count(&series), 1, "{series}");
        }
    }

    /// Also one that only asks whether the lock is free.
    #[tokio::test(start_paused = true)]
    async fn every_attempt_is_a_wait() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let (client, _link) = client(&server, 1).await;
        for (path, peek) in [("/peeks", true), ("/queues", false)] {
            let mut options = LockOptions::default();
            options.peek = peek;
            let (of, with) = (client.clone(), options.clone());
            let mutex = InterProcessMutex::with_options(of, path, with).unwrap();
            let (of, with) = (client.clone(), options.clone());
            let read_write = InterProcessReadWriteLock::with_options(of, path, with).unwrap();
            let of = client.clone();
            let semaphore = InterProcessSemaphoreV2::with_options(of, path, 1, options).unwrap();
            let waits = |recipe: &str| {
                let labels = format!("outcome=timed_out,path={path},recipe={recipe}");
                kept.values(&format!("minikeeper_lock_wait_seconds{{{labels}}}"))
                    .len()
            };
            let held = mutex.acquire().await.unwrap();
            assert!(mutex.try_acquire().await.unwrap().is_none());
            held.release().await.unwrap();
            let held = read_write.acquire_write().await.unwrap();
            let late = read_write.acquire_read().within(Duration::ZERO).await;
            late.unwrap_err();
            let late = read_write.acquire_write().within(Duration::ZERO).await;
            late.unwrap_err();
            held.release().await.unwrap();
            let held = semaphore.acquire().await.unwrap();
            assert!(semaphore.try_acquire().await.unwrap().is_none());
            held.release().await.unwrap();
            assert_eq!(waits("InterProcessMutex"), 1);
            assert_eq!(waits("InterProcessReadWriteLock"), 2);
            assert_eq!(waits("InterProcessSemaphoreV2"), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn latch_counts_its_queue_length_once_for_each_znode_and_when_it_queues_again() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let (client, link) = client(&server, 1).await;
        let latch = LeaderLatch::start(client.clone(), "/leaders/a", "1").unwrap();
        let of = "{path=/leaders/a,recipe=LeaderLatch}";
        let lengths = || kept.values(&format!("minikeeper_lock_queue_length{of}"));
        let requeues = || kept.count(&format!("minikeeper_lock_requeues_total{of}"));
        soon(latch.wait()).await.unwrap();
        link.cut();
        until("it follows", || !latch.has_leadership()).await;
        soon(latch.wait()).await.unwrap();
        assert_eq!((lengths(), requeues()), (vec![0.0], 0));
        server.expire(client.session_id().unwrap()).unwrap();
        until("it follows", || !latch.has_leadership()).await;
        soon(latch.wait()).await.unwrap();
        assert_eq!((lengths(), requeues()), (vec![0.0, 0.0], 1));
        soon(latch.close()).await.unwrap();
    }

    /// Another thread interrupts a turn, often before its work begins. In real time, because the
    /// moment is short.
    #[tokio::test]
    async fn turn_without_work_is_no_term() {
        let kept = Kept::default();
        let _on = metrics::set_default_local_recorder(&kept);
        let server = start().await;
        let (client, _link) = client(&server, 1).await;
        let works = Arc::new(AtomicU64::new(0));
        let begun = Arc::clone(&works);
        let options = SelectorOptions::default();
        let selector = LeaderSelector::start(client, "/leaders/a", "1", options, move |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            Box::pin(pending())
        });
        let selector = Arc::new(selector.unwrap());
        for _ in 0..500 {
            let other = Arc::clone(&selector);
            let interrupting = spawn_blocking(move || {
                while !other.interrupt() {
                    std::hint::spin_loop();
                }
            });
            interrupting.await.unwrap();
            soon(selector.done()).await.unwrap();
            selector.requeue();
        }
        let terms = |to: &str| {
            let labels = format!("path=/leaders/a,recipe=LeaderSelector,to={to}");
            kept.count(&format!("minikeeper_leader_changes_total{{{labels}}}"))
        };
        assert_eq!(terms("follower"), works.load(Ordering::Relaxed));
        assert!(terms("leader") - terms("follower") <= 1);
    }
}
