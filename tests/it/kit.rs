//! What the tests over real sockets share.

use std::{
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError, mpsc},
    thread,
    time::Duration,
};

use minikeeper::{Config, Server as AsyncServer, blocking::Server};
use minikeeper_protocol::{ConnectResponse, CreateMode, MultiReadOp, Reply, Request, Xid, Zxid};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};
use tokio::{runtime::Runtime, sync::oneshot};
use tracing_subscriber::{filter::dynamic_filter_fn, layer::SubscriberExt};

/// The session timeout most tests ask for.
pub(crate) const TIMEOUT_MS: i32 = 10_000;

/// An empty place for files, named by the test.
pub(crate) fn scratch_dir(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// A server, and a client who minds their own business: whatever else happens in a test, that
/// client must notice nothing.
pub(crate) struct Scene {
    pub(crate) server: Server,
    bystander: Wire,
    rounds: i32,
}

impl Scene {
    /// A server whose time stands still.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let server = Server::builder()
            .manual_clock()
            .configure(change)
            .start()
            .expect("a free port");
        let (mut bystander, _) = Wire::open(server.addr(), 60_000);
        bystander.must(&wire::create("/bystander", b"0", CreateMode::Ephemeral));
        let mut scene = Self {
            server,
            bystander,
            rounds: 0,
        };
        scene.check_bystander();
        scene
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addr()
    }

    pub(crate) const fn bystander(&self) -> &Wire {
        &self.bystander
    }

    /// A connection that has said nothing yet.
    #[track_caller]
    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address())
    }

    /// A connection with a session.
    #[track_caller]
    pub(crate) fn open(&self) -> Wire {
        self.open_session().0
    }

    /// The same, and the handshake's answer.
    #[track_caller]
    pub(crate) fn open_session(&self) -> (Wire, ConnectResponse) {
        Wire::open(self.address(), TIMEOUT_MS)
    }

    /// The bystander writes, reads it back, and gets nothing that was not asked for.
    #[track_caller]
    pub(crate) fn check_bystander(&mut self) {
        self.rounds += 1;
        let data = self.rounds.to_string();
        self.bystander
            .must(&wire::set("/bystander", data.as_bytes()));
        let read = self.bystander.must(&wire::get("/bystander", false));
        assert!(
            matches!(&read, Reply::Data(Some(got), stat)
                if *got == data.as_bytes() && stat.version == self.rounds),
            "{read:?}"
        );
    }

    /// Waits until no connection but the bystander's is left.
    #[track_caller]
    pub(crate) fn wait_alone(&self) {
        wait_until("all other connections are gone", || {
            self.server.connections() == 1
        });
    }

    /// The last line of a test: bystander well, state in order.
    #[track_caller]
    pub(crate) fn end(mut self) {
        self.check_bystander();
        self.server
            .check()
            .unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// A server whose time stands still, for tests without a bystander.
pub(crate) fn start() -> Server {
    let server = Server::builder().manual_clock().start();
    server.expect("a free port")
}

/// Goes on with a session over a new connection, as a client that has seen nothing yet.
#[track_caller]
pub(crate) fn resume(server: &Server, session: &ConnectResponse) -> (Wire, ConnectResponse) {
    let mut wire = Wire::connect(server.addr());
    let password = session.password.as_deref().expect("a session has one");
    let response = wire.resume(session.session_id, password, Zxid(0), TIMEOUT_MS);
    (wire, response)
}

/// Waits for a condition that another thread brings about, with a bound.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let pause = Duration::from_millis(1);
    for _ in 0..PATIENCE.as_millis() {
        if condition() {
            return;
        }
        thread::park_timeout(pause);
    }
    panic!("waited in vain until {what}");
}

/// Held by tests that need much memory or measure it, so that they do not measure each other.
pub(crate) fn alone_with_memory() -> MutexGuard<'static, ()> {
    static MEMORY: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind that matters here.
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much memory this process holds. Unit: KiB.
pub(crate) fn memory_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells about us");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a line with the resident size");
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .expect("a number")
}

/// A client that does not read a reply of sixty megabytes, so that its socket is full and the
/// server waits to write. `sign` is a path that no other client uses.
#[track_caller]
pub(crate) fn stuck_reader(server: &AsyncServer, sign: &str) -> (Wire, ConnectResponse) {
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let large = wire::create("/mb", &vec![1; 1_000_000], CreateMode::Persistent);
    // There from the last time, perhaps.
    let _ = client.call(&large);
    let read = MultiReadOp::GetData {
        path: Some("/mb".into()),
        watch: false,
    };
    let mut bytes = Vec::new();
    wire::create(sign, b"", CreateMode::Persistent).encode(Xid(1), &mut bytes);
    Request::MultiRead(vec![read; 60]).encode(Xid(2), &mut bytes);
    client.send_raw(&bytes);
    // Both are served in one turn.
    wait_until("the reads are served", || server.get(sign).is_some());
    (client, session)
}

/// Allows as many open files as the system lets us; the soft limit is often 1,024.
pub(crate) fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("a soft limit may rise to the hard one");
}

/// A runtime on which a request for the path `/panic` panics inside its turn, see [`Log`].
pub(crate) fn runtime_that_panics() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_start(|| {
            let subscriber = Log::default().subscriber(tracing::Level::DEBUG);
            // For as long as the thread lives.
            std::mem::forget(tracing::subscriber::set_default(subscriber));
        })
        .build()
        .expect("a runtime")
}

/// A server on a thread of its own, with everything it logs.
pub(crate) struct Logged {
    pub(crate) server: Arc<AsyncServer>,
    log: Log,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What was logged so far.
///
/// Panics when a request for the path `/panic` is logged. A turn logs its requests while it holds
/// the engine's lock, so this is a panic inside a turn.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn subscriber(&self, level: tracing::Level) -> impl tracing::Subscriber + use<> {
        listen_on_every_thread();
        let writer = self.clone();
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish()
    }
}

/// Makes the threads without a subscriber of their own ask for events, and drop them.
///
/// `tracing` remembers for each place in the code whether any subscriber wants its events. While one
/// subscriber is alive it asks that of the thread which gets there first, and a thread without a
/// subscriber would answer for all: the subscriber would miss the events of that place.
fn listen_on_every_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let unwanted = dynamic_filter_fn(|_, _| false);
        let subscriber = tracing_subscriber::registry().with(unwanted);
        tracing::subscriber::set_global_default(subscriber).expect("it is the first");
    });
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        // The text of that request is still in the buffer when the server logs that it has stopped.
        let panics = line.contains(" path=/panic ") && !thread::panicking();
        assert!(!panics, "requested by the test");
        self.0
            .lock()
            .expect("no holder of the lock panics")
            .extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logged {
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_at(tracing::Level::DEBUG, change)
    }

    /// The same, with all that is logged at this level.
    pub(crate) fn start_at(level: tracing::Level, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            manual_clock: true,
            ..Config::default()
        };
        change(&mut config);
        let log = Log::default();
        let subscriber = log.subscriber(level);
        let (started, start) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            let _logging = tracing::subscriber::set_default(subscriber);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let server = Arc::new(AsyncServer::start(config).await.expect("a free port"));
                started.send(Arc::clone(&server)).expect("the test waits");
                // Ends with an error when the handle is dropped: the same wish.
                let _ = stopped.await;
            });
        };
        let thread = thread::spawn(serve);
        Self {
            server: start.recv().expect("the server starts"),
            log,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Waits for a line with all these words.
    #[track_caller]
    pub(crate) fn wait_for_line(&self, words: &[&str]) {
        wait_until(&format!("a line of the log has {words:?}"), || {
            self.text()
                .lines()
                .any(|line| words.iter().all(|word| line.contains(word)))
        });
    }

    pub(crate) fn text(&self) -> String {
        let bytes = self.log.0.lock().expect("no holder of the lock panics");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed there.
            let _ = thread.join();
        }
    }
}
