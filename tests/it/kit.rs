//! Helpers for the tests over real sockets.

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

/// The session timeout that most tests request.
pub(crate) const TIMEOUT_MS: i32 = 10_000;

/// Returns the path of a directory for this test's files, and deletes what an earlier run left in
/// it.
pub(crate) fn scratch_dir(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// A server with a bystander: a client that nothing else in the test may affect.
pub(crate) struct Scene {
    pub(crate) server: Server,
    bystander: Wire,
    rounds: i32,
}

impl Scene {
    /// Starts a server with a frozen clock.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Starts a server with a frozen clock and changed settings.
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

    /// Connects, without a handshake.
    #[track_caller]
    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address())
    }

    /// Connects and opens a session.
    #[track_caller]
    pub(crate) fn open(&self) -> Wire {
        self.open_session().0
    }

    /// Connects and opens a session. Also returns the connect response.
    #[track_caller]
    pub(crate) fn open_session(&self) -> (Wire, ConnectResponse) {
        Wire::open(self.address(), TIMEOUT_MS)
    }

    /// Checks that the bystander can write and read back, and receives nothing else.
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

    /// Waits until only the bystander is connected.
    #[track_caller]
    pub(crate) fn wait_alone(&self) {
        wait_until("all other connections are closed", || {
            self.server.connections() == 1
        });
    }

    /// Checks the bystander and the server's state. The last line of a test.
    #[track_caller]
    pub(crate) fn end(mut self) {
        self.check_bystander();
        self.server
            .check()
            .unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// Starts a server with a frozen clock, for tests without a bystander.
pub(crate) fn start() -> Server {
    let server = Server::builder().manual_clock().start();
    server.expect("a free port")
}

/// Resumes a session over a new connection, with a last seen zxid of 0.
#[track_caller]
pub(crate) fn resume(server: &Server, session: &ConnectResponse) -> (Wire, ConnectResponse) {
    let mut wire = Wire::connect(server.addr());
    let password = session.password.as_deref().expect("a session has one");
    let response = wire.resume(session.session_id, password, Zxid(0), TIMEOUT_MS);
    (wire, response)
}

/// Polls until a condition holds that another thread brings about; panics after [`PATIENCE`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let pause = Duration::from_millis(1);
    for _ in 0..PATIENCE.as_millis() {
        if condition() {
            return;
        }
        thread::park_timeout(pause);
    }
    panic!("timed out waiting until {what}");
}

/// Locks out the other tests that use much memory or measure it, so that none measures another.
pub(crate) fn alone_with_memory() -> MutexGuard<'static, ()> {
    static MEMORY: Mutex<()> = Mutex::new(());
    // The lock guards no data, so that a failed test has not damaged anything.
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resident memory of this process in KiB.
pub(crate) fn memory_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has this file");
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

/// Connects a client that does not read a reply of 60 MB, so that its socket is full and the server
/// waits to write. Creates the znode `sign`, a path that no other client uses.
#[track_caller]
pub(crate) fn stuck_reader(server: &AsyncServer, sign: &str) -> (Wire, ConnectResponse) {
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let large = wire::create("/mb", &vec![1; 1_000_000], CreateMode::Persistent);
    // An earlier call may have created it.
    let _ = client.call(&large);
    let read = MultiReadOp::GetData {
        path: Some("/mb".into()),
        watch: false,
    };
    let mut bytes = Vec::new();
    wire::create(sign, b"", CreateMode::Persistent).encode(Xid(1), &mut bytes);
    Request::MultiRead(vec![read; 60]).encode(Xid(2), &mut bytes);
    client.send_raw(&bytes);
    // One turn serves both requests.
    wait_until("the reads are served", || server.get(sign).is_some());
    (client, session)
}

/// Raises the limit of open files to the hard limit; the soft limit is often 1,024.
pub(crate) fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("a soft limit may rise to the hard one");
}

/// Returns a runtime on which a request for the path `/panic` panics inside its turn, see [`Log`].
pub(crate) fn runtime_that_panics() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_start(|| {
            let subscriber = Log::default().subscriber(tracing::Level::DEBUG);
            // The subscriber stays set until the thread ends.
            std::mem::forget(tracing::subscriber::set_default(subscriber));
        })
        .build()
        .expect("a runtime")
}

/// A server on its own thread, with its log.
pub(crate) struct Logged {
    pub(crate) server: Arc<AsyncServer>,
    log: Log,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Collects log lines.
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

/// Sets a global subscriber that asks for every event and drops it.
///
/// `tracing` caches per callsite whether any subscriber wants its events. While only one subscriber
/// lives, it asks the thread that reaches the callsite first. A thread without a subscriber would
/// answer no for all threads, and the subscriber would miss the events of that callsite.
fn listen_on_every_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let unwanted = dynamic_filter_fn(|_, _| false);
        let subscriber = tracing_subscriber::registry().with(unwanted);
        tracing::subscriber::set_global_default(subscriber).expect("no other is set");
    });
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        // The line of that request is still in the buffer when the server logs that it has stopped.
        let panics = line.contains(" path=\"/panic\" ") && !thread::panicking();
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

    /// Starts a server and collects its log at this level and above.
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
                // Dropping the sender ends this with an error, and stops the server too.
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

    /// Waits for a log line that contains all these words.
    #[track_caller]
    pub(crate) fn wait_for_line(&self, words: &[&str]) {
        wait_until(&format!("a log line contains {words:?}"), || {
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
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}
