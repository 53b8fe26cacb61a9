//! The locks with ZooKeeper's protocol on a real ZooKeeper: tests that the measured locks work.
//!
//! They need the packages that `benches/compare/install-peers` installs; without them they fail
//! with a message that says so.

#![allow(
    clippy::unwrap_used,
    reason = "a test may fail wherever it has to; the helpers are tests too"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use minikeeper_bench::{
    clock::{Deadline, now_ns},
    peers::{
        Access, Belief, Contender, Kind, LockUnderTest,
        recipes::{Algorithm, Reach, Recipe},
        zookeeper_client::ZookeeperClient,
    },
    process::Pin,
    servers::zookeeper::{Setup, ZooKeeper},
};
use minikeeper_client::Client;

mod curator;

/// The limit for everything that takes milliseconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(20);

/// One server for all tests that run at the same time; the last of them stops it.
fn server() -> Arc<ZooKeeper> {
    static SERVER: Mutex<Weak<ZooKeeper>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let server = ZooKeeper::start(Setup::Kindest, Pin::None)
            .unwrap_or_else(|error| panic!("{}", error.chain()));
        let server = Arc::new(server);
        *shared = Arc::downgrade(&server);
        server
    })
}

fn recipe(server: &ZooKeeper, algorithm: Algorithm) -> Recipe {
    Recipe {
        server: server.name(),
        durability: server.setup().durability(),
        algorithm,
        reach: Reach::Tcp(server.addr()),
        session_timeout: Duration::from_secs(10),
    }
}

fn zookeeper_client(server: &ZooKeeper) -> ZookeeperClient {
    ZookeeperClient {
        server: server.name(),
        durability: server.setup().durability(),
        addr: server.addr(),
        session_timeout: Duration::from_secs(10),
    }
}

fn run<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let task = async { tokio::time::timeout(3 * LIMIT, task).await };
    runtime.block_on(task).expect("the test hangs")
}

/// Returns the contenders in the queue, with the holder: the ephemeral znodes at a lock's path and
/// below, with their sessions. Omits znodes that are deleted in between.
async fn ephemerals(eyes: &Client, path: &str) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(Some(stat)) = eyes.exists(&path).await else {
            continue;
        };
        if stat.ephemeral_owner.0 != 0 {
            found.insert(path.clone(), stat.ephemeral_owner.0);
        }
        let Ok(children) = eyes.children(&path).await else {
            continue;
        };
        open.extend(children.names().map(|name| format!("{path}/{name}")));
    }
    found
}

/// Waits, with a bound, until this number of sessions has a znode in the queue.
async fn await_queued(eyes: &Client, path: &str, wanted: usize) {
    let deadline = Deadline::new(LIMIT, format!("{wanted} contenders in {path}"));
    while ephemerals(eyes, path).await.len() < wanted {
        deadline.check().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Checks the behaviour that every measured lock must have.
async fn behaves(lock: &dyn LockUnderTest, resource: &str, eyes: &Client) {
    let name = lock.name();
    let path = format!("/bench/{resource}");
    let mut first = lock.contender(resource).await.unwrap();
    let mut second = lock.contender(resource).await.unwrap();
    assert_ne!(first.session(), second.session(), "{name}");

    // A try gets a free lock.
    let granted = first
        .acquire_within(Access::Exclusive, Duration::ZERO)
        .await
        .unwrap()
        .unwrap_or_else(|| panic!("{name}: a try at a free lock failed"));
    assert_eq!(first.belief(), Belief::Held, "{name}");
    let holder = ephemerals(eyes, &path).await;
    assert!(!holder.is_empty(), "{name}: nothing in {path}");

    // A try does not get a held lock, and leaves nothing behind.
    let refused = second.acquire_within(Access::Exclusive, Duration::ZERO);
    assert_eq!(refused.await.unwrap(), None, "{name}");
    assert_eq!(second.belief(), Belief::Lost, "{name}");
    assert_eq!(ephemerals(eyes, &path).await, holder, "{name}: after a try");

    // Nor does a timed acquire.
    let patience = Duration::from_millis(150);
    let before = now_ns();
    let refused = second.acquire_within(Access::Exclusive, patience);
    assert_eq!(refused.await.unwrap(), None, "{name}");
    let waited = Duration::from_nanos(now_ns() - before);
    assert!(waited >= patience, "{name}: gave up after {waited:?}");
    assert!(waited < LIMIT, "{name}: gave up after {waited:?}");
    let left = ephemerals(eyes, &path).await;
    assert_eq!(left, holder, "{name}: after a timed acquire");

    // A contender that waits longer gets it when it is released, and not before.
    let wait = tokio::spawn(async move {
        let grant = second.acquire(Access::Exclusive).await;
        (grant.unwrap(), now_ns(), second)
    });
    await_waiting(lock.kind(), &name, eyes, &path).await;
    assert!(!wait.is_finished(), "{name}: two holders");
    let releasing = now_ns();
    first.release().await.unwrap();
    assert_eq!(first.belief(), Belief::Lost, "{name}");
    let (handed_over, at_ns, mut second) = wait.await.unwrap();
    assert!(at_ns >= releasing, "{name}: two holders");
    assert_eq!(second.belief(), Belief::Held, "{name}");
    if lock.promises().has_token {
        assert!(handed_over.token > granted.token, "{name}: {handed_over:?}");
    } else {
        assert_eq!((handed_over.token, granted.token), (None, None), "{name}");
    }

    second.release().await.unwrap();
    let left = ephemerals(eyes, &path).await;
    assert!(left.is_empty(), "{name}: {left:?} after both released");
    assert!(second.release().await.is_err(), "{name}: released twice");
    taken_again(&mut *first, &name, handed_over.token).await;
}

/// Waits until a contender waits. In a queue it can be seen; one that polls or watches leaves no
/// trace, so it gets the time of a few tries.
async fn await_waiting(kind: Kind, name: &str, eyes: &Client, path: &str) {
    if name.starts_with("simple, polling") || name.starts_with("simple, herd") {
        tokio::time::sleep(Duration::from_millis(100)).await;
        return;
    }
    // A lease of a semaphore is a znode, and the contender that waits for one holds the lock of the
    // queue.
    let wanted = if matches!(kind, Kind::Semaphore(_)) {
        3
    } else {
        2
    };
    await_queued(eyes, path, wanted).await;
}

async fn taken_again(contender: &mut dyn Contender, name: &str, last: Option<u64>) {
    let grant = contender.acquire_within(Access::Exclusive, LIMIT).await;
    let grant = grant.unwrap().unwrap_or_else(|| panic!("{name}: not free"));
    assert!(grant.token.is_none() || grant.token > last, "{name}");
    contender.release().await.unwrap();
}

#[test]
fn recipes_exclude_on_a_real_zookeeper() {
    let server = server();
    run(async {
        let mutex = recipe(&server, Algorithm::Mutex);
        let eyes = mutex.client().await.unwrap();
        for (number, algorithm) in [
            Algorithm::Mutex,
            Algorithm::CuratorExact,
            Algorithm::ReadWrite,
            Algorithm::Semaphore(1),
            Algorithm::Polling,
            Algorithm::Herd,
            Algorithm::Sequential,
        ]
        .into_iter()
        .enumerate()
        {
            let lock = recipe(&server, algorithm);
            behaves(&lock, &format!("recipe-{number}"), &eyes).await;
        }
    });
}

#[test]
fn zookeeper_client_excludes_on_a_real_zookeeper() {
    let server = server();
    run(async {
        let eyes = recipe(&server, Algorithm::Mutex).client().await.unwrap();
        behaves(&zookeeper_client(&server), "zookeeper-client", &eyes).await;
    });
}

/// The crate leaves a znode in the queue when its call is dropped while the znode is being created
/// (`docs/client.md` section 2, E1). A limit shorter than the round trip drops it there nearly
/// every time.
#[test]
fn zookeeper_client_that_gives_up_at_once_leaves_no_znode() {
    let server = server();
    run(async {
        let eyes = recipe(&server, Algorithm::Mutex).client().await.unwrap();
        let lock = zookeeper_client(&server);
        let mut holder = lock.contender("given-up").await.unwrap();
        let mut hasty = lock.contender("given-up").await.unwrap();
        holder.acquire(Access::Exclusive).await.unwrap();
        let alone = ephemerals(&eyes, "/bench/given-up").await;
        assert_eq!(alone.len(), 1);
        for micros in [1, 50, 200, 1_000, 3_000] {
            let limit = Duration::from_micros(micros);
            let refused = hasty.acquire_within(Access::Exclusive, limit).await;
            assert_eq!(refused.unwrap(), None, "after {limit:?}");
            let left = ephemerals(&eyes, "/bench/given-up").await;
            assert_eq!(left, alone, "after {limit:?}");
        }
    });
}

#[test]
fn server_reports_its_version_and_ends_when_dropped() {
    // A separate server, as the test stops it.
    let server = ZooKeeper::start(Setup::AsShipped, Pin::None)
        .unwrap_or_else(|error| panic!("{}", error.chain()));
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    let version = server.version().to_owned();
    assert_eq!(
        version.split('.').filter(|part| is_number(part)).count(),
        3,
        "{version}"
    );
    assert_eq!(server.name(), format!("ZooKeeper {version} as shipped"));
    let process = format!("/proc/{}", server.pid());
    assert!(std::fs::exists(&process).unwrap());
    drop(server);
    assert!(!std::fs::exists(&process).unwrap());
}
