//! The report of locks: recognition, queues, warnings and deadlocks; with raw clients that name
//! znodes as the recipes of each library do, and with our recipes.

use std::{sync::Arc, time::Duration};

use minikeeper::{
    LockFamily, LockInfo, LockKind, LockWarningCode, Server, SessionId, Tree, blocking, tree,
};
use minikeeper_client::Client;
use minikeeper_protocol::{CreateMode, MultiOp, Request};
use minikeeper_recipes::{
    Guard, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2, LeaderLatch,
    LeaderSelector, SelectorOptions, Work,
};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};
use serde_json::json;

use crate::{
    http::{done, get, scene},
    kit::{TIMEOUT_MS, start, wait_until},
};

const UUID: &str = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d1";
const HEX: &str = "0e6a1a3a6c1e4b0d9f0a2f6a3b1c9d1";

/// A raw client with its session.
struct Client1 {
    wire: Wire,
    id: SessionId,
}

fn clients<const N: usize>(server: &blocking::Server) -> [Client1; N] {
    std::array::from_fn(|_| {
        let (wire, response) = Wire::open(server.addr(), TIMEOUT_MS);
        Client1 {
            wire,
            id: response.session_id,
        }
    })
}

impl Client1 {
    /// Creates an ephemeral with exactly this path.
    fn queue(&mut self, path: &str) {
        self.wire
            .must(&wire::create(path, b"label", CreateMode::Ephemeral));
    }

    fn watch(&mut self, path: &str) {
        self.wire.must(&wire::exists(path, true));
    }
}

/// Finds the only lock at a path.
#[track_caller]
fn lock(server: &blocking::Server, path: &str) -> LockInfo {
    let report = server.locks();
    let mut locks = report.locks.into_iter().filter(|lock| lock.path == path);
    let lock = locks.next().unwrap_or_else(|| panic!("no lock {path}"));
    assert!(locks.next().is_none(), "two locks {path}");
    lock
}

fn holders(lock: &LockInfo) -> Vec<SessionId> {
    let owners = lock.holders.iter().filter_map(|holder| holder.session);
    owners.collect()
}

fn waiters(lock: &LockInfo) -> Vec<SessionId> {
    let owners = lock.waiters.iter().filter_map(|waiter| waiter.session);
    owners.collect()
}

fn codes(lock: &LockInfo) -> Vec<LockWarningCode> {
    lock.warnings.iter().map(|warning| warning.code).collect()
}

#[test]
fn empty_server_has_no_locks() {
    let server = start();
    assert_eq!(server.locks().locks, []);
    assert_eq!(server.locks().to_string(), "no locks\n");
    server
        .seed(&tree! { "/locks" => "", "/n_0000000001" => "", "/release-0000000001" => "" })
        .unwrap();
    assert_eq!(server.locks().locks, []);
}

/// The prefix is random, so the order of names is not that of numbers.
#[test]
fn queue_is_in_the_order_of_numbers_whatever_the_library() {
    use LockFamily::{Curator, GoZookeeper, Kazoo, ZooKeeper};
    for (prefixes, kind, family) in [
        (
            [format!("_c_{UUID}9-lock-"), format!("_c_{UUID}1-lock-")],
            LockKind::Mutex,
            Some(Curator),
        ),
        (
            [format!("_c_{UUID}9-latch-"), format!("_c_{UUID}1-latch-")],
            LockKind::LeaderLatch,
            Some(Curator),
        ),
        (
            [format!("_c_{HEX}9-lock-"), format!("_c_{HEX}1-lock-")],
            LockKind::Mutex,
            Some(GoZookeeper),
        ),
        (
            [format!("{HEX}9__lock__"), format!("{HEX}1__lock__")],
            LockKind::Mutex,
            Some(Kazoo),
        ),
        (
            ["x-9-".to_owned(), "x-1-".to_owned()],
            LockKind::Mutex,
            Some(ZooKeeper),
        ),
        (
            ["n_".to_owned(), "n_".to_owned()],
            LockKind::LeaderElection,
            Some(ZooKeeper),
        ),
        (
            ["lock-".to_owned(), "lock-".to_owned()],
            LockKind::Mutex,
            None,
        ),
        // go-zookeeper takes part in queues of kazoo.
        (
            [format!("{HEX}9__lock__"), format!("_c_{HEX}1-lock-")],
            LockKind::Mutex,
            None,
        ),
    ] {
        let server = start();
        server.seed(&tree! { "/a/lock" => "" }).unwrap();
        let [mut first, mut second] = clients(&server);
        let [one, two] = prefixes;
        // The second creates its znode first, as after a restart of the counter.
        second.queue(&format!("/a/lock/{two}0000000010"));
        first.queue(&format!("/a/lock/{one}0000000009"));
        second.watch(&format!("/a/lock/{one}0000000009"));
        let lock = lock(&server, "/a/lock");
        assert_eq!((lock.kind, lock.family), (kind, family), "{one}");
        assert_eq!(holders(&lock), [first.id], "{one}");
        assert_eq!(waiters(&lock), [second.id], "{one}");
        let (holder, waiter) = (&lock.holders[0], &lock.waiters[0]);
        assert_eq!(waiter.waits_for[..], *std::slice::from_ref(&holder.path));
        assert_eq!(holder.address, Some(first.wire.local_address()));
        assert_eq!(holder.data.as_deref(), Some(&b"label"[..]));
        assert!(waiter.is_watching && waiter.is_connected && holder.waits_for.is_empty());
        assert_eq!((lock.contenders_total, codes(&lock)), (2, vec![]), "{one}");
    }
}

#[test]
fn readers_hold_together_and_wait_for_the_writers_ahead() {
    for (read, write, family) in [
        (
            format!("_c_{UUID}0-__READ__"),
            format!("_c_{UUID}0-__WRIT__"),
            LockFamily::Curator,
        ),
        (
            format!("{HEX}0__rlock__"),
            format!("{HEX}0__lock__"),
            LockFamily::Kazoo,
        ),
    ] {
        let server = start();
        server.seed(&tree! { "/rw" => "" }).unwrap();
        let names: Vec<_> = [&read, &read, &write, &write, &read]
            .iter()
            .enumerate()
            .map(|(at, name)| format!("/rw/{name}000000000{at}"))
            .collect();
        let mut all: [Client1; 5] = clients(&server);
        for (client, name) in all.iter_mut().zip(&names) {
            client.queue(name);
        }
        let found = lock(&server, "/rw");
        assert_eq!(
            (found.kind, found.family),
            (LockKind::ReadWrite, Some(family))
        );
        assert_eq!(holders(&found), [all[0].id, all[1].id]);
        assert!(found.holders[0].is_reader && !found.waiters[0].is_reader);
        assert_eq!(waiters(&found), [all[2].id, all[3].id, all[4].id]);
        // Curator's readers watch the first writer, kazoo's the nearest.
        let writer = if family == LockFamily::Curator { 2 } else { 3 };
        let expected = [&names[1], &names[2], &names[writer]];
        for (waiter, expected) in found.waiters.iter().zip(expected) {
            assert_eq!(waiter.waits_for[..], *std::slice::from_ref(expected));
            assert!(!waiter.is_watching);
        }
        assert_eq!(codes(&found), [LockWarningCode::WaiterWithoutWatch; 3]);
        // Any writer ahead wakes a reader.
        all[4].watch(&names[2]);
        assert!(lock(&server, "/rw").waiters[2].is_watching);
    }
}

/// A reader that was the writer has the writer's number: `docs/curator-recipes.md` section 5.3.
#[test]
fn writer_that_turns_into_a_reader_holds_as_both() {
    let server = start();
    server.seed(&tree! { "/rw" => "" }).unwrap();
    let [mut owner, mut other] = clients(&server);
    owner.queue(&format!("/rw/_c_{UUID}0-__WRIT__0000000000"));
    owner.queue(&format!("/rw/_c_{UUID}1-__READ__0000000000"));
    other.queue(&format!("/rw/_c_{UUID}2-__WRIT__0000000001"));
    let found = lock(&server, "/rw");
    assert_eq!(holders(&found), [owner.id, owner.id]);
    assert_eq!(waiters(&found), [other.id]);
}

#[test]
fn semaphore_of_kazoo_is_its_leases_and_its_inner_lock() {
    let server = start();
    server
        .seed(&tree! { "/s" => "1", "/s-__lock__" => "", "/other" => "2" })
        .unwrap();
    let [mut holder, mut head, mut next, mut stranger] = clients(&server);
    holder.queue(&format!("/s/{HEX}0"));
    head.queue(&format!("/s-__lock__/{HEX}1__lock__0000000001"));
    next.queue(&format!("/s-__lock__/{HEX}2__lock__0000000002"));
    next.watch(&format!("/s-__lock__/{HEX}1__lock__0000000001"));
    head.wire.must(&wire::children("/s", true));
    // No semaphore's inner lock says that this is a lease.
    stranger.queue(&format!("/other/{HEX}3"));
    let report = server.locks();
    assert_eq!(report.locks.len(), 1, "{report}");
    let found = lock(&server, "/s");
    assert_eq!(found.kind, LockKind::Semaphore);
    assert_eq!(found.family, Some(LockFamily::Kazoo));
    assert_eq!(found.max_leases, Some(1));
    assert_eq!(holders(&found), [holder.id]);
    assert_eq!(waiters(&found), [head.id, next.id]);
    assert_eq!(found.waiters[0].waits_for, [format!("/s/{HEX}0")]);
    assert_eq!(codes(&found), []);
    // With a free lease, the head waits for nothing.
    holder.wire.must(&wire::delete(&format!("/s/{HEX}0")));
    let found = lock(&server, "/s");
    assert!(found.holders.is_empty() && found.waiters[0].waits_for.is_empty());
}

#[test]
fn contender_without_connection_without_heartbeat_or_without_session_is_warned_of() {
    let server = start();
    server
        .seed(&tree! { "/l/lock-0000000000" => "orphan" })
        .unwrap();
    let [mut late, mut gone, mut silenced] = clients(&server);
    late.queue("/l/lock-0000000001");
    gone.queue("/l/lock-0000000002");
    silenced.queue("/l/lock-0000000003");
    late.watch("/l/lock-0000000000");
    silenced.watch("/l/lock-0000000002");
    server.disconnect(gone.id).unwrap();
    gone.wire.expect_closed();
    wait_until("the connection is closed", || server.connections() == 2);
    server.silence(silenced.id).unwrap();
    let found = lock(&server, "/l");
    assert_eq!(
        codes(&found),
        [
            LockWarningCode::Orphan,
            LockWarningCode::NoConnection,
            LockWarningCode::SilentSession
        ]
    );
    assert_eq!(
        found.warnings[0].to_string(),
        "orphan: no session owns \"/l/lock-0000000000\": it stays until a client deletes it"
    );
    assert!(found.waiters[2].is_silenced && !found.waiters[1].is_connected);

    // The clock moves as if no client had sent a ping.
    server.advance_strictly(Duration::from_millis(6_000));
    assert_eq!(codes(&lock(&server, "/l")).len(), 3);
    server.advance_strictly(Duration::from_millis(1_000));
    let found = lock(&server, "/l");
    assert_eq!(codes(&found)[1], LockWarningCode::SilentSession);
    assert_eq!(found.warnings[1].path, "/l/lock-0000000001");
    assert_eq!(found.holders[0].age, Duration::from_secs(7));
    late.wire.ping();
    assert_eq!(codes(&lock(&server, "/l")).len(), 3);
}

#[test]
fn three_contenders_that_watch_one_znode_are_a_herd() {
    let server = start();
    server.seed(&tree! { "/l" => "" }).unwrap();
    let mut all: [Client1; 4] = clients(&server);
    for (at, client) in all.iter_mut().enumerate() {
        client.queue(&format!("/l/lock-000000000{at}"));
        // Guards watch their own znodes too.
        client.watch(&format!("/l/lock-000000000{at}"));
    }
    all[1].watch("/l/lock-0000000000");
    all[2].watch("/l/lock-0000000000");
    all[3].watch("/l/lock-0000000002");
    assert_eq!(codes(&lock(&server, "/l")), []);
    all[3].watch("/l/lock-0000000000");
    let found = lock(&server, "/l");
    assert_eq!(codes(&found), [LockWarningCode::Herd]);
    assert_eq!(
        found.warnings[0].text,
        "3 contenders watch the znode \"/l/lock-0000000000\"; one change wakes all of them"
    );
    for client in &mut all[1..] {
        client.wire.must(&wire::children("/l", true));
    }
    assert_eq!(codes(&lock(&server, "/l")), [LockWarningCode::Herd; 2]);
}

#[test]
fn recursive_watch_above_wakes_a_waiter() {
    let server = start();
    server.seed(&tree! { "/a/l" => "" }).unwrap();
    let [mut first, mut second] = clients(&server);
    first.queue("/a/l/lock-0000000000");
    second.queue("/a/l/lock-0000000001");
    assert_eq!(
        codes(&lock(&server, "/a/l")),
        [LockWarningCode::WaiterWithoutWatch]
    );
    second.wire.must(&Request::AddWatch {
        path: Some("/a".into()),
        mode: 1,
    });
    assert!(lock(&server, "/a/l").waiters[0].is_watching);
}

/// With several places in one queue, a watch may be for another of them.
#[test]
fn watch_of_another_place_in_the_queue_does_not_count() {
    let server = start();
    server.seed(&tree! { "/l" => "" }).unwrap();
    let [mut first, mut second] = clients(&server);
    first.queue("/l/lock-0000000000");
    second.queue("/l/lock-0000000001");
    second.watch("/l/lock-0000000000");
    second.queue("/l/lock-0000000002");
    let found = lock(&server, "/l");
    let watching: Vec<_> = found.waiters.iter().map(|one| one.is_watching).collect();
    assert_eq!(watching, [true, false]);
}

#[test]
fn deadlock_over_two_locks_is_named_and_ends_with_a_session() {
    let server = start();
    server.seed(&tree! { "/a" => "", "/b" => "" }).unwrap();
    let [mut one, mut two, mut bystander] = clients(&server);
    one.queue("/a/lock-0000000000");
    two.queue("/b/lock-0000000000");
    bystander.queue("/a/lock-0000000001");
    two.queue("/a/lock-0000000002");
    assert_eq!(server.locks().deadlocks, []);
    one.queue("/b/lock-0000000001");
    let report = server.locks();
    let [deadlock] = &report.deadlocks[..] else {
        panic!("{report}");
    };
    assert_eq!(deadlock.sessions, [one.id, two.id, bystander.id]);
    let (first, second) = (one.wire.local_address(), two.wire.local_address());
    assert_eq!(
        deadlock.to_string(),
        format!(
            "deadlock: session {0} ({first}) waits for /b, which session {1} ({second}) holds; \
             session {1} ({second}) waits for /a, which session {0} ({first}) holds",
            one.id, two.id
        )
    );
    assert!(report.to_string().starts_with(&deadlock.to_string()));
    server.expire(two.id).unwrap();
    assert_eq!(server.locks().deadlocks, []);
}

#[test]
fn report_prints_a_block_for_each_lock() {
    let server = start();
    server.seed(&tree! { "/a/b" => "", "/c" => "" }).unwrap();
    let [mut one, mut two] = clients(&server);
    one.queue("/a/b/lock-0000000000");
    two.queue("/a/b/lock-0000000001");
    one.queue(&format!("/c/_c_{UUID}0-latch-0000000000"));
    let (first, second) = (one.wire.local_address(), two.wire.local_address());
    let expected = format!(
        "mutex /a/b
  held by   session {0} {first}, 0 ms, \"label\", lock-0000000000
  waits 1   session {1} {second}, 0 ms, \"label\", lock-0000000001
  warning   waiter-without-watch: session {1} of \"lock-0000000001\" waits for \
         \"/a/b/lock-0000000000\", but its session has no watch that will wake it

leader latch /c (curator)
  held by   session {0} {first}, 0 ms, \"label\", _c_{UUID}0-latch-0000000000
",
        one.id, two.id
    );
    assert_eq!(server.locks().to_string(), expected);
}

/// Seeds contenders without sessions.
fn seed(server: &blocking::Server, paths: impl Iterator<Item = String>) {
    let mut tree = Tree::default();
    for path in paths {
        tree.insert(path, "");
    }
    server.seed(&tree).unwrap();
}

#[test]
fn report_beyond_its_bounds_is_truncated() {
    let server = start();
    seed(&server, (0..1_000).map(|at| format!("/one/lock-{at:010}")));
    let report = server.locks();
    assert!(!report.is_truncated);
    assert_eq!(report.locks[0].waiters.len(), 999);
    seed(&server, std::iter::once("/one/lock-0000001000".to_owned()));
    let report = server.locks();
    assert!(report.is_truncated);
    assert_eq!(report.locks[0].waiters.len(), 999);
    assert_eq!(report.locks[0].contenders_total, 1_001);
    let text = report.to_string();
    assert!(text.lines().count() < 60, "{text}");
    assert!(text.ends_with("\nthere are more locks or contenders than listed\n"));

    // A lock with several contenders comes before those with one.
    let server = start();
    seed(
        &server,
        (0..1_001).map(|at| format!("/a/{at:04}/lock-0000000000")),
    );
    seed(&server, (0..2).map(|at| format!("/z/lock-{at:010}")));
    let report = server.locks();
    assert!(report.is_truncated);
    assert_eq!(report.locks.len(), 1_000);
    assert_eq!(report.locks[999].path, "/z");

    let server = start();
    seed(
        &server,
        (0..11_000).map(|at| format!("/{:02}/lock-{:010}", at / 1_000, at % 1_000)),
    );
    let report = server.locks();
    let contenders = report
        .locks
        .iter()
        .map(|lock| lock.holders.len() + lock.waiters.len());
    assert!(report.is_truncated);
    assert_eq!(contenders.sum::<usize>(), 10_000);
}

/// A thousand paths of a megabyte each would be a gigabyte.
#[test]
fn paths_in_a_report_are_bounded() {
    let server = start();
    let long = "x".repeat(900_000);
    seed(
        &server,
        (0..20).map(|at| format!("/{at}{long}/lock-0000000000")),
    );
    let report = server.locks();
    assert!(report.is_truncated);
    let paths = report.locks.iter().flat_map(|lock| &lock.holders);
    let bytes: usize = paths.map(|holder| holder.path.len()).sum();
    assert!((5 << 20..=16 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn data_of_contenders_is_bounded() {
    let server = start();
    server
        .seed(&tree! { "/l/lock-0000000000" => "x".repeat(300) })
        .unwrap();
    let found = lock(&server, "/l");
    assert_eq!(found.holders[0].data, Some(vec![b'x'; 256]));
    assert_eq!(found.holders[0].data_length, 300);
    assert!(found.to_string().contains("xxx...\""), "{found}");
}

#[test]
fn locks_of_a_universe_are_its_own() {
    let server = start();
    let universe = server.create_universe("test").unwrap();
    universe
        .seed(&tree! { "/l/lock-0000000000" => "" })
        .unwrap();
    assert_eq!(universe.locks().locks[0].path, "/l");
    assert_eq!(server.locks().locks, []);
}

#[test]
fn locks_are_listed_over_http() {
    let scene = scene(|_| {});
    let (mut client, session) = scene.open_session();
    client.must(&wire::create("/l", b"", CreateMode::Persistent));
    client.must(&wire::create(
        "/l/lock-0000000000",
        b"\xff",
        CreateMode::Ephemeral,
    ));
    let answer = done(get(scene.address(), "locks"));
    assert_eq!(answer["is_truncated"], false);
    assert_eq!(answer["deadlocks"], json!([]));
    let lock = &answer["locks"][0];
    assert_eq!(
        (&lock["path"], &lock["kind"], &lock["family"]),
        (&json!("/l"), &json!("mutex"), &json!(null))
    );
    let holder = &lock["holders"][0];
    assert_eq!(holder["session"], session.session_id.to_string());
    assert_eq!(holder["data_base64"], "/w==");
    assert_eq!(holder["address"], client.local_address().to_string());
    let text = answer["text"].as_str().unwrap();
    assert!(
        text.starts_with("mutex /l\n  held by   session 0x"),
        "{text}"
    );
    scene.end();
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.connect_string()).await.unwrap()
}

#[tokio::test]
async fn recipes_that_hold_and_wait_are_reported_without_warnings() {
    let server = Server::builder().start().await.unwrap();
    let server = Arc::new(server);
    let (one, two) = (connect(&server).await, connect(&server).await);

    let mutex = InterProcessMutex::new(one.clone(), "/mutex").unwrap();
    let _held = mutex.acquire().await.unwrap();
    let lock = InterProcessReadWriteLock::new(one.clone(), "/rw").unwrap();
    let _read = lock.acquire_read().await.unwrap();
    let semaphore = InterProcessSemaphoreV2::new(one.clone(), "/semaphore", 1).unwrap();
    let _lease = semaphore.acquire().await.unwrap();
    let latch = LeaderLatch::start(one.clone(), "/latch", "one").unwrap();
    server
        .until_contenders("/latch", 1, PATIENCE)
        .await
        .unwrap();

    let waiting = two.clone();
    let waiter = tokio::spawn(async move {
        let mutex = InterProcessMutex::new(waiting.clone(), "/mutex").unwrap();
        let lock = InterProcessReadWriteLock::new(waiting.clone(), "/rw").unwrap();
        let semaphore = InterProcessSemaphoreV2::new(waiting.clone(), "/semaphore", 1).unwrap();
        let _second = LeaderLatch::start(waiting, "/latch", "two").unwrap();
        let _all = tokio::join!(mutex.acquire(), lock.acquire_write(), semaphore.acquire());
    });
    for path in ["/mutex", "/rw", "/latch", "/semaphore/leases"] {
        server.until_contenders(path, 2, PATIENCE).await.unwrap();
    }
    server
        .until_idle(Duration::from_millis(50), PATIENCE)
        .await
        .unwrap();

    let report = server.locks();
    let found: Vec<_> = report
        .locks
        .iter()
        .map(|lock| (&*lock.path, lock.kind, lock.family))
        .collect();
    let curator = Some(LockFamily::Curator);
    assert_eq!(
        found,
        [
            ("/latch", LockKind::LeaderLatch, curator),
            ("/mutex", LockKind::Mutex, curator),
            ("/rw", LockKind::ReadWrite, curator),
            ("/semaphore", LockKind::Semaphore, curator),
        ]
    );
    for lock in &report.locks {
        assert_eq!((lock.holders.len(), lock.waiters.len()), (1, 1), "{lock}");
        assert_eq!(lock.holders[0].session, one.session_id(), "{lock}");
        assert!(lock.waiters[0].is_watching, "{lock}");
        assert_eq!(lock.waiters[0].waits_for, [lock.holders[0].path.clone()]);
        assert_eq!(lock.warnings, [], "{lock}");
    }
    assert_eq!(report.deadlocks, []);
    waiter.abort();
    drop(latch);
}

#[tokio::test]
async fn deadlock_of_two_recipes_is_named() {
    let server = Server::builder().start().await.unwrap();
    let (one, two) = (connect(&server).await, connect(&server).await);
    let mutex = |client: &Client, path| InterProcessMutex::new(client.clone(), path).unwrap();
    let _a = mutex(&one, "/a").acquire().await.unwrap();
    let _b = mutex(&two, "/b").acquire().await.unwrap();
    let (wants_b, wants_a) = (mutex(&one, "/b"), mutex(&two, "/a"));
    let first = tokio::spawn(async move { wants_b.acquire().await.map(drop) });
    let second = tokio::spawn(async move { wants_a.acquire().await.map(drop) });
    for path in ["/a", "/b"] {
        server.until_contenders(path, 2, PATIENCE).await.unwrap();
    }
    let report = server.locks();
    assert_eq!(report.deadlocks.len(), 1, "{report}");
    let locks: Vec<_> = report.deadlocks[0]
        .cycle
        .iter()
        .map(|step| (&*step.lock, step.is_held))
        .collect();
    assert_eq!(locks, [("/b", true), ("/a", true)]);
    first.abort();
    second.abort();
}

/// Leads for ever.
fn lead(_: &Guard) -> Work<'_> {
    Box::pin(std::future::pending())
}

/// Was reported as a deadlock: a candidate waits to lead beside what else its client does.
#[tokio::test]
async fn latch_or_selector_and_a_mutex_on_one_client_are_no_deadlock() {
    for (selects, is_latch_first) in [(false, true), (false, false), (true, true)] {
        let server = Server::builder().start().await.unwrap();
        let (one, two) = (connect(&server).await, connect(&server).await);
        let mut candidates: Vec<Box<dyn std::any::Any>> = Vec::new();
        let mutex = |client: &Client| InterProcessMutex::new(client.clone(), "/mutex").unwrap();
        let mut candidate = async |client: &Client, count| {
            if selects {
                let options = SelectorOptions::default();
                let selector = LeaderSelector::start(client.clone(), "/lead", "x", options, lead);
                candidates.push(Box::new(selector.unwrap()));
            } else {
                let latch = LeaderLatch::start(client.clone(), "/lead", "x").unwrap();
                candidates.push(Box::new(latch));
            }
            server
                .until_contenders("/lead", count, PATIENCE)
                .await
                .unwrap();
        };
        candidate(&one, 1).await;
        let held = if is_latch_first {
            candidate(&two, 2).await;
            mutex(&two).acquire().await.unwrap()
        } else {
            let held = mutex(&two).acquire().await.unwrap();
            candidate(&two, 2).await;
            held
        };
        let wanted = mutex(&one);
        let waiting = tokio::spawn(async move { wanted.acquire().await.map(drop) });
        server
            .until_contenders("/mutex", 2, PATIENCE)
            .await
            .unwrap();
        let report = server.locks();
        assert_eq!(report.deadlocks, [], "{report}");
        held.release().await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}

/// A lock `/l` in the journal, and clients whose contenders are in its queue, in this order.
fn queued<const N: usize>(server: &blocking::Server) -> [Client1; N] {
    let mut clients = clients::<N>(server);
    clients[0]
        .wire
        .must(&wire::create("/l", b"", CreateMode::Persistent));
    for client in &mut clients {
        client.enqueue();
    }
    clients
}

impl Client1 {
    fn enqueue(&mut self) {
        self.wire.must(&wire::create(
            "/l/lock-",
            b"",
            CreateMode::EphemeralSequential,
        ));
    }

    fn leave(&mut self, number: usize) {
        self.wire
            .must(&wire::delete(&format!("/l/lock-{number:010}")));
    }

    /// Does what clients do that an event has woken.
    fn look(&mut self) {
        self.wire.must(&wire::children("/l", false));
    }
}

fn advance(server: &blocking::Server, ms: u64) {
    server.advance(Duration::from_millis(ms));
}

const fn spread_ms(min: u64, median: u64, max: u64) -> [Duration; 3] {
    [
        Duration::from_millis(min),
        Duration::from_millis(median),
        Duration::from_millis(max),
    ]
}

#[test]
fn history_has_hand_overs_waits_and_shares() {
    let server = start();
    let [mut a, mut b, mut c, mut d] = queued(&server);
    assert_eq!(lock(&server, "/l").history.unwrap().hand_overs, 0);
    advance(&server, 100);
    c.leave(2);
    a.leave(0);
    advance(&server, 5);
    // Its heartbeat does not show that the client goes on.
    b.wire.ping();
    advance(&server, 2);
    b.look();
    b.look();
    advance(&server, 10);
    a.enqueue();
    b.leave(1);
    advance(&server, 1);
    d.look();
    // The end of the holder's session is a release too.
    server.expire(d.id).unwrap();
    advance(&server, 3);
    a.look();

    let report = server.locks();
    let history = report.locks[0].history.as_ref().unwrap();
    let shares: Vec<_> = history
        .sessions
        .iter()
        .map(|share| (share.session, share.acquisitions))
        .collect();
    assert_eq!(shares, [(a.id, 2), (b.id, 1), (d.id, 1), (c.id, 0)]);
    assert_eq!(
        (history.acquisitions(), history.hand_overs, history.gave_up),
        (4, 3, 1)
    );
    let times = history.hand_over_times.unwrap();
    assert_eq!([times.min, times.median, times.max], spread_ms(1, 3, 7));
    let waits = history.waits.unwrap();
    assert_eq!([waits.min, waits.median, waits.max], spread_ms(0, 1, 117));
    // 4 squared, by 4 sessions and 2 squared and twice 1 squared.
    assert!((history.fairness().unwrap() - 16.0 / 24.0).abs() < 1e-9);
    let line = "  so far    acquired 4 times by 4 sessions (fairness 0.67), waited 1 ms (0 ms to 117 ms), \
                handed over 3 times in 3 ms (1 ms to 7 ms), 1 gave up\n";
    assert!(report.to_string().ends_with(line), "{report}");
}

#[test]
fn history_is_absent_unless_the_journal_proves_it() {
    let has_history = |server: &blocking::Server| lock(server, "/l").history.is_some();
    let server = start();
    let [mut a, mut b] = queued(&server);
    assert!(has_history(&server));

    // Contenders from before may have left unseen.
    server.clear_journal().unwrap();
    assert!(!has_history(&server));
    a.leave(0);
    b.leave(1);
    a.wire.must(&wire::delete("/l"));
    a.wire
        .must(&wire::create("/l", b"", CreateMode::Persistent));
    a.enqueue();
    assert!(has_history(&server), "the queue of a new lock is empty");

    // The journal does not have the names that a multi created.
    let mode = CreateMode::EphemeralSequential;
    let Request::Create(create) = wire::create("/l/lock-", b"", mode) else {
        unreachable!();
    };
    b.wire.must(&Request::Multi(vec![MultiOp::Create(create)]));
    assert!(!has_history(&server));

    let server = start();
    let [mut a] = queued(&server);
    a.wire.must(&wire::create(
        "/l/__READ__",
        b"",
        CreateMode::EphemeralSequential,
    ));
    assert!(!has_history(&server), "readers share a lock");

    let server = blocking::Server::builder().configure(|config| config.journal_bytes = Some(0));
    let server = server.start().unwrap();
    let [_a] = queued(&server);
    assert!(!has_history(&server));
}
