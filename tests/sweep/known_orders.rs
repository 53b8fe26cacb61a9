//! Errors that users have met in one order of requests and not in others. Each is a small program, with the
//! error and without it; a sweep of all orders tells one from the other.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use minikeeper::{ErrorCode, Server, Sweep, SweepOptions, SweepState};
use minikeeper_client::{Client, CreateMode, Multi, OneShot, WatchEvent, WatchEvents};
use minikeeper_test_kit::servers;
use parking_lot::Mutex;
use tokio::{join, select, sync::Notify, time::timeout};

/// How often the order of each failure is repeated.
const REPLAYS: u64 = 100;

/// The paused time after which a run hangs.
const HANG_AFTER: Duration = Duration::from_secs(30);

/// What the report says then.
const HANGS: &str = "it did not end within 30 s";

/// Checks that the orders show this failure of the program with its error, each time again, and none
/// without it. All orders are tried, or equivalent ones.
fn check<F: Future<Output = ()>>(
    expected: &str,
    program: impl Fn(Arc<Server>, bool) -> F + Copy + Send + Sync,
) {
    let mut options = SweepOptions::default();
    options.changes_max = None;
    let report = Sweep::new(|server| program(server, true))
        .options(options.clone())
        .orders()
        .hang_after(HANG_AFTER)
        .run();
    println!("{report}");
    assert_eq!(report.state(), SweepState::Failed);
    for failure in &report.failures {
        assert!(failure.message.contains(expected), "{failure:?}");
        let again = Sweep::new(|server| program(server, true)).hang_after(HANG_AFTER);
        let order = failure.text();
        let again = (0..REPLAYS).fold(again, |again, _| again.only(&order).expect("an order"));
        let again = again.run();
        assert_eq!(again.failed + again.hung, REPLAYS, "{again}");
    }
    let sweep = Sweep::new(|server| program(server, false))
        .options(options)
        .orders();
    let report = sweep.hang_after(HANG_AFTER).run();
    println!("without the error: {}", report.summary());
    report.assert_clean();
    assert!(
        report.orders.is_some_and(|orders| orders.is_all),
        "some orders were not tried"
    );
}

/// Connects clients. Keep them: that one disconnects is a request, too.
async fn connect<const N: usize>(server: &Arc<Server>) -> [Client; N] {
    let mut clients = Vec::new();
    for seed in 0..N as u64 {
        clients.push(servers::client(server, seed).await.0);
    }
    let clients: Result<[Client; N], _> = clients.try_into();
    clients.unwrap_or_else(|_| unreachable!("it has N clients"))
}

fn put(server: &Server, path: &str) {
    server.create(path, "").expect("its parent exists");
}

fn text(server: &Server, path: &str) -> String {
    let (data, _) = server.get(path).expect("it exists");
    String::from_utf8(data.unwrap_or_default()).expect("text")
}

/// Creates an ephemeral of the session with a number. Returns its name.
async fn join_queue(client: &Client, path: &str) -> String {
    let created = client
        .create(path, b"", CreateMode::EphemeralSequential)
        .await
        .unwrap();
    created
        .path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the names of the children by number, the oldest first.
async fn queue(client: &Client, path: &str) -> Vec<String> {
    let names = client.child_names(path).await.unwrap();
    let mut names: Vec<String> = names.iter().map(|name| name.into_owned()).collect();
    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    names
}

/// Both look before one of them has created it.
///
/// <https://github.com/puniverse/galaxy/issues/30>,
/// <https://github.com/apache/drill/pull/564>
async fn check_then_create(server: Arc<Server>, is_planted: bool) {
    let create = async |client: &Client| {
        if client.exists("/a").await.unwrap().is_some() {
            return;
        }
        match client.create("/a", b"", CreateMode::Persistent).await {
            Err(error) if error.is(ErrorCode::NodeExists) && !is_planted => {}
            created => assert!(created.is_ok(), "it is created twice"),
        }
    };
    let [one, other] = connect(&server).await;
    join!(create(&one), create(&other));
}

#[test]
fn check_then_create_is_found() {
    check("it is created twice", check_then_create);
}

/// Both read before one of them writes, and no version is given.
///
/// <https://github.com/apache/lucene-solr/pull/2651>
async fn lost_update(server: Arc<Server>, is_planted: bool) {
    put(&server, "/a");
    let add = async |client: &Client| {
        loop {
            let read = client.get_data("/a").await.unwrap();
            let longer = [read.as_bytes(), b"+"].concat();
            let version = (!is_planted).then_some(read.stat.version);
            if client.set_data("/a", &longer, version).await.is_ok() {
                return;
            }
        }
    };
    let [one, other] = connect(&server).await;
    join!(add(&one), add(&other));
    assert_eq!(text(&server, "/a"), "++", "an update is lost");
}

#[test]
fn lost_update_is_found() {
    check("an update is lost", lost_update);
}

/// The change comes after the read and before the request that sets the watch, whose reply is not looked at.
///
/// <https://github.com/docker-archive/classicswarm/pull/896>
async fn read_then_watch(server: Arc<Server>, is_planted: bool) {
    put(&server, "/a");
    let wait = async |client: &Client| {
        let (read, changed) = if is_planted {
            let read = client.get_data("/a").await.unwrap();
            (read, client.exists_and_watch("/a").await.unwrap().1)
        } else {
            client.get_data_and_watch("/a").await.unwrap()
        };
        if read.as_bytes().is_empty() {
            changed.await;
        }
    };
    let [reader, writer] = connect(&server).await;
    let (_, set) = join!(wait(&reader), writer.set_data("/a", b"new", None));
    set.unwrap();
}

#[test]
fn read_then_watch_is_found() {
    check(HANGS, read_then_watch);
}

/// A worker leaves after it was listed and before its znode is watched, which then does not exist.
///
/// <https://github.com/python-zk/kazoo/pull/490>
async fn list_then_wait(server: Arc<Server>, is_planted: bool) {
    for path in ["/workers", "/workers/w-1", "/workers/w-2"] {
        put(&server, path);
    }
    let wait = async |client: &Client| {
        for name in queue(client, "/workers").await {
            let watched = client.exists_and_watch(&format!("/workers/{name}")).await;
            let (stat, gone) = watched.unwrap();
            if stat.is_some() || is_planted {
                gone.await;
            }
        }
    };
    let [waiter, one, other] = connect(&server).await;
    let leave = (
        one.delete("/workers/w-1", None),
        other.delete("/workers/w-2", None),
    );
    let (_, one, other) = join!(wait(&waiter), leave.0, leave.1);
    one.and(other).unwrap();
}

#[test]
fn list_then_wait_is_found() {
    check(HANGS, list_then_wait);
}

/// Both read an item before one of them deletes it, and that it was deleted already is ignored.
async fn queue_taken_twice(server: Arc<Server>, is_planted: bool) {
    for path in ["/queue", "/queue/item", "/done"] {
        put(&server, path);
    }
    let take = async |client: &Client| {
        if client.get_data("/queue/item").await.is_err() {
            return;
        }
        let deleted = client.delete("/queue/item", None).await;
        if deleted.is_ok() || is_planted {
            let done = CreateMode::PersistentSequential;
            client.create("/done/n-", b"", done).await.unwrap();
        }
    };
    let [one, other] = connect(&server).await;
    join!(take(&one), take(&other));
    let done = server.children("/done").unwrap().len();
    assert_eq!(done, 1, "an item is processed twice");
}

#[test]
fn queue_taken_twice_is_found() {
    check("an item is processed twice", queue_taken_twice);
}

/// A leader writes once more after it has resigned, when its successor has written.
///
/// <https://github.com/apache/kafka/pull/5101>,
/// <https://github.com/vespa-engine/vespa/issues/4532>
async fn unfenced_write(server: Arc<Server>, is_planted: bool) {
    for path in ["/leader", "/epoch", "/state"] {
        put(&server, path);
    }
    let resign = async |client: &Client| {
        client.delete("/leader", None).await.unwrap();
        let write = Multi::new().set_data("/state", b"former", None);
        let write = if is_planted {
            write
        } else {
            write.check("/epoch", Some(0))
        };
        // It may come too late.
        let _ = client.multi(write).await;
    };
    let succeed = async |client: &Client| {
        let (stat, gone) = client.exists_and_watch("/leader").await.unwrap();
        if stat.is_some() {
            gone.await;
        }
        client
            .create("/leader", b"", CreateMode::Ephemeral)
            .await
            .unwrap();
        client.set_data("/epoch", b"", None).await.unwrap();
        client.set_data("/state", b"leader", None).await.unwrap();
    };
    let [former, leader] = connect(&server).await;
    join!(resign(&former), succeed(&leader));
    assert_eq!(
        text(&server, "/state"),
        "leader",
        "a former leader wrote last"
    );
}

#[test]
fn unfenced_write_is_found() {
    check("a former leader wrote last", unfenced_write);
}

/// Another client deletes a child that was listed, and the deletion of the rest stops there.
///
/// <https://github.com/apache/curator/issues/950>
async fn tree_half_deleted(server: Arc<Server>, is_planted: bool) {
    for path in ["/a", "/a/n-1", "/a/n-2", "/a/n-3"] {
        put(&server, path);
    }
    let delete_all = async |client: &Client| {
        for name in queue(client, "/a").await {
            let deleted = client.delete(&format!("/a/{name}"), None).await;
            if deleted.is_err_and(|error| error.is(ErrorCode::NoNode)) && is_planted {
                return;
            }
        }
        client.delete("/a", None).await.unwrap();
    };
    let [one, other] = connect(&server).await;
    // It may be deleted already.
    let _ = join!(delete_all(&one), other.delete("/a/n-2", None));
    assert!(server.get("/a").is_none(), "a part of the tree is left");
}

#[test]
fn tree_half_deleted_is_found() {
    check("a part of the tree is left", tree_half_deleted);
}

/// A client handles one event after the other, and the handler of a change takes a lock. If another client
/// has that, the event that it is free waits behind the handler.
///
/// <https://github.com/apache/curator/issues/1046>
async fn lock_in_a_watcher(server: Arc<Server>, is_planted: bool) {
    for path in ["/a", "/lock"] {
        put(&server, path);
    }
    let handle = async |client: &Client, events: &mut WatchEvents| {
        let is_free = Notify::new();
        let mut handler = pin!(async {
            let own = join_queue(client, "/lock/n-").await;
            loop {
                let first = queue(client, "/lock").await.swap_remove(0);
                if first == own {
                    break;
                }
                let before = format!("/lock/{first}");
                if let Ok((_, _gone)) = client.get_data_and_watch(&before).await {
                    is_free.notified().await;
                }
            }
            client.delete(&format!("/lock/{own}"), None).await.unwrap();
        });
        let mut is_handling = false;
        loop {
            select! {
                biased;
                event = events.next() => match event {
                    Some(WatchEvent::Event { path, .. }) if path == "/a" && is_planted => {
                        return handler.await;
                    }
                    Some(WatchEvent::Event { path, .. }) if path == "/a" => is_handling = true,
                    _ => is_free.notify_one(),
                },
                () = &mut handler, if is_handling => return,
            }
        }
    };
    let [one, other] = connect(&server).await;
    let (mut of_one, mut of_other) = (one.watch_events(), other.watch_events());
    let _watches = (
        one.get_data_and_watch("/a").await,
        other.get_data_and_watch("/a").await,
    );
    server.set("/a", "new", None).unwrap();
    join!(handle(&one, &mut of_one), handle(&other, &mut of_other));
}

#[test]
fn lock_in_a_watcher_is_found() {
    check(HANGS, lock_in_a_watcher);
}

/// A contender for leadership.
struct Latch {
    client: Client,
    own: Mutex<String>,
    is_leader: AtomicBool,
    is_planted: bool,
}

impl Latch {
    async fn join(client: Client, is_planted: bool) -> Self {
        let own = Mutex::new(join_queue(&client, "/latch/n-").await);
        let is_leader = AtomicBool::new(false);
        Self {
            client,
            own,
            is_leader,
            is_planted,
        }
    }

    /// Finds out whether it is the leader. Returns what to wait for if it is not.
    async fn look(&self) -> Option<OneShot> {
        loop {
            let names = queue(&self.client, "/latch").await;
            let own = self.own.lock().clone();
            let place = names.iter().position(|name| *name == own)?;
            if place == 0 {
                self.is_leader.store(true, Ordering::Relaxed);
                return None;
            }
            if !self.is_planted {
                self.is_leader.store(false, Ordering::Relaxed);
            }
            let before = format!("/latch/{}", names[place - 1]);
            if let Ok((_, gone)) = self.client.get_data_and_watch(&before).await {
                return Some(gone);
            }
        }
    }

    async fn follow(&self, mut waits: Option<OneShot>) {
        while let Some(gone) = waits {
            gone.await;
            waits = self.look().await;
        }
    }

    /// Joins again, as after a reconnect.
    async fn reset(&self) {
        self.is_leader.store(false, Ordering::Relaxed);
        // Events are handled before the znode is deleted.
        self.client.exists("/latch").await.unwrap();
        let own = format!("/latch/{}", self.own.lock());
        self.client.delete(&own, None).await.unwrap();
        let own = join_queue(&self.client, "/latch/n-").await;
        *self.own.lock() = own;
        let waits = self.look().await;
        self.follow(waits).await;
    }
}

/// Both join again. The event that the leader has left reaches the other one before it deletes its own znode,
/// by which it believes to lead; that it is behind the first one later does not change its mind.
///
/// <https://github.com/apache/curator/issues/1168>
async fn two_leaders(server: Arc<Server>, is_planted: bool) {
    put(&server, "/latch");
    let [one, other] = connect(&server).await;
    let one = Latch::join(one, is_planted).await;
    let other = Latch::join(other, is_planted).await;
    assert!(one.look().await.is_none());
    let waits = other.look().await;
    let all = async { join!(one.reset(), other.reset(), other.follow(waits)) };
    // The one that does not lead waits.
    let _ = timeout(Duration::from_secs(1), all).await;
    let leads = |latch: &Latch| latch.is_leader.load(Ordering::Relaxed);
    assert!(!leads(&one) || !leads(&other), "two leaders");
}

#[test]
fn two_leaders_are_found() {
    check("two leaders", two_leaders);
}

/// A participant is woken by an event that tells of something else, and does not count the others again.
///
/// <https://github.com/apache/curator/issues/1290>
async fn barrier_passed_early(server: Arc<Server>, is_planted: bool) {
    put(&server, "/barrier");
    let enter = async |client: &Client| {
        join_queue(client, "/barrier/n-").await;
        loop {
            let (_, woken) = client.get_data_and_watch("/barrier").await.unwrap();
            if queue(client, "/barrier").await.len() == 2 {
                client.set_data("/barrier", b"ready", None).await.unwrap();
                break;
            }
            woken.await;
            if is_planted {
                break;
            }
        }
        let present = queue(client, "/barrier").await.len();
        assert_eq!(present, 2, "the barrier is passed early");
    };
    let [one, other] = connect(&server).await;
    join!(enter(&one), async {
        other.set_data("/barrier", b"note", None).await.unwrap();
        enter(&other).await;
    });
}

#[test]
fn barrier_passed_early_is_found() {
    check("the barrier is passed early", barrier_passed_early);
}

/// The holder leaves after a contender has listed it and before that watches it, which then does not exist.
///
/// <https://github.com/apache/helix/pull/44>,
/// <https://github.com/shayhatsor/zookeeper/issues/26>
async fn lock_never_granted(server: Arc<Server>, is_planted: bool) {
    put(&server, "/lock");
    let lock = async |client: &Client| {
        let own = join_queue(client, "/lock/n-").await;
        loop {
            let names = queue(client, "/lock").await;
            let place = names.iter().position(|name| *name == own).unwrap();
            if place == 0 {
                break;
            }
            let before = format!("/lock/{}", names[place - 1]);
            let (stat, gone) = client.exists_and_watch(&before).await.unwrap();
            if stat.is_some() || is_planted {
                gone.await;
            }
        }
        client.delete(&format!("/lock/{own}"), None).await.unwrap();
    };
    let [one, other] = connect(&server).await;
    join!(lock(&one), lock(&other));
}

#[test]
fn lock_never_granted_is_found() {
    check(HANGS, lock_never_granted);
}

/// A reader waits for every writer, also for one that has come later and waits for the reader.
///
/// <https://github.com/python-zk/kazoo/issues/649>
async fn reader_and_writer_deadlock(server: Arc<Server>, is_planted: bool) {
    put(&server, "/lock");
    let lock = async |client: &Client, kind: &str| {
        let own = join_queue(client, &format!("/lock/{kind}-")).await;
        loop {
            let names = queue(client, "/lock").await;
            let place = names.iter().position(|name| *name == own).unwrap();
            let blocks = |(other, name): &(usize, &String)| match kind {
                "write" => *other < place,
                _ => name.starts_with("write") && (*other < place || is_planted),
            };
            let Some((_, before)) = names.iter().enumerate().rfind(blocks) else {
                break;
            };
            let watched = client.exists_and_watch(&format!("/lock/{before}")).await;
            let (stat, gone) = watched.unwrap();
            if stat.is_some() {
                gone.await;
            }
        }
        client.delete(&format!("/lock/{own}"), None).await.unwrap();
    };
    let [one, other, third] = connect(&server).await;
    join!(
        lock(&one, "write"),
        lock(&other, "read"),
        lock(&third, "write")
    );
}

#[test]
fn reader_and_writer_deadlock_is_found() {
    check(HANGS, reader_and_writer_deadlock);
}

/// Both find that the parent is missing and create it, and then one has created the child first.
///
/// <https://github.com/apache/curator/issues/1234>
async fn create_or_set(server: Arc<Server>, is_planted: bool) {
    let create_or_set = async |client: &Client| {
        let mode = CreateMode::Persistent;
        loop {
            match client.create("/a/b", b"", mode).await {
                Err(error) if error.is(ErrorCode::NodeExists) => {
                    client.set_data("/a/b", b"", None).await.unwrap();
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    // The other client may create it.
                    let _ = client.create("/a", b"", mode).await;
                    if !is_planted {
                        continue;
                    }
                    let created = client.create("/a/b", b"", mode).await;
                    assert!(created.is_ok(), "it is created twice");
                }
                created => drop(created.unwrap()),
            }
            return;
        }
    };
    let [one, other] = connect(&server).await;
    join!(create_or_set(&one), create_or_set(&other));
}

#[test]
fn create_or_set_is_found() {
    check("it is created twice", create_or_set);
}

/// Both find no list. The one that cannot create it sets it, with the version that stands for any.
///
/// <https://github.com/apache/kafka/pull/5478>
async fn list_created_twice(server: Arc<Server>, is_planted: bool) {
    let add = async |client: &Client, entry: &[u8]| {
        loop {
            let changed = match client.get_data("/list").await {
                Ok(read) => {
                    let longer = [read.as_bytes(), entry].concat();
                    let set = client.set_data("/list", &longer, Some(read.stat.version));
                    set.await.map(drop)
                }
                Err(_) => match client.create("/list", entry, CreateMode::Persistent).await {
                    Err(_) if is_planted => client.set_data("/list", entry, None).await.map(drop),
                    created => created.map(drop),
                },
            };
            if changed.is_ok() {
                return;
            }
        }
    };
    let [one, other] = connect(&server).await;
    join!(add(&one, b"1"), add(&other, b"2"));
    assert_eq!(text(&server, "/list").len(), 2, "an update is lost");
}

#[test]
fn list_created_twice_is_found() {
    check("an update is lost", list_created_twice);
}

/// A member looks at the others while one of them has created only a part of its znodes.
///
/// <https://github.com/apache/helix/issues/2965>
async fn half_registered(server: Arc<Server>, is_planted: bool) {
    put(&server, "/members");
    let register = async |client: &Client, name: &str| {
        for other in queue(client, "/members").await {
            let messages = client.exists(&format!("/members/{other}/messages")).await;
            assert!(messages.unwrap().is_some(), "a member is half registered");
        }
        let (mode, member) = (CreateMode::Persistent, format!("/members/{name}"));
        let messages = format!("{member}/messages");
        if is_planted {
            client.create(&member, b"", mode).await.unwrap();
            client.create(&messages, b"", mode).await.unwrap();
        } else {
            let both = Multi::new()
                .create(member, b"", mode)
                .create(messages, b"", mode);
            client.multi(both).await.unwrap();
        }
    };
    let [one, other] = connect(&server).await;
    join!(register(&one, "one"), register(&other, "other"));
}

#[test]
fn half_registered_is_found() {
    check("a member is half registered", half_registered);
}

/// A consumer locks an item that another one has consumed since it was listed, and keeps the lock.
///
/// <https://github.com/python-zk/kazoo/issues/366>
async fn lock_of_a_gone_item(server: Arc<Server>, is_planted: bool) {
    for path in ["/items", "/items/i-1", "/locks"] {
        put(&server, path);
    }
    let consume = async |client: &Client| {
        let Some(name) = queue(client, "/items").await.pop() else {
            return;
        };
        let (item, lock) = (format!("/items/{name}"), format!("/locks/{name}"));
        if client
            .create(&lock, b"", CreateMode::Ephemeral)
            .await
            .is_err()
        {
            return;
        }
        if client.get_data(&item).await.is_ok() {
            let consumed = Multi::new().delete(item, None).delete(lock, None);
            client.multi(consumed).await.unwrap();
        } else if !is_planted {
            client.delete(&lock, None).await.unwrap();
        }
    };
    let [one, other] = connect(&server).await;
    join!(consume(&one), consume(&other));
    let locks = server.children("/locks").unwrap();
    assert!(locks.is_empty(), "a lock is left behind");
}

#[test]
fn lock_of_a_gone_item_is_found() {
    check("a lock is left behind", lock_of_a_gone_item);
}
