//! After the server has moved to an older state, every recipe equals a plain read of the server.
//!
//! A recipe that kept the newest version that it had seen stayed with it for good, and ignored what
//! was written afterwards.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use minikeeper::{Keep, Server, Snapshot};
use minikeeper_client::{Client, CreateMode};
use minikeeper_recipes::{
    CacheEvent, CacheOptions, CachedAtomicLong, CuratorCache, DistributedAtomicLong,
    DistributedBarrier, DistributedDoubleBarrier, GroupMember, Guard, InterProcessMultiLock,
    InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex,
    InterProcessSemaphoreV2, LeaderLatch, LeaderSelector, NodeCache, PersistentNode,
    PersistentTtlNode, SelectorOptions, SharedCount, SharedValue, Status,
};
use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    kit::{SESSION_TIMEOUT, client, create, soon, spawn},
    link::Link,
};

/// How the server comes to an older state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rollback {
    /// The state is restored while the clients are connected.
    Restore,
    /// The state is restored while the clients have no connection. Their sessions go on.
    RestoreWhileCut,
    /// The server restarts without its data. Its zxid continues.
    KeepNothing,
    /// Another server without data takes the address. Its zxids begin anew.
    Wiped,
    /// A server on older data takes the address. It refuses clients that have seen later zxids.
    Older,
    /// Like `Older`, but the server has made later changes by the time the clients find it: it
    /// accepts them, with their sessions.
    Overtaken,
}

const ROLLBACKS: [Rollback; 6] = [
    Rollback::Restore,
    Rollback::RestoreWhileCut,
    Rollback::KeepNothing,
    Rollback::Wiped,
    Rollback::Older,
    Rollback::Overtaken,
];

/// How long a recipe may take until it equals a plain read.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

const TTL: Duration = Duration::from_secs(3_600);

/// A server that can be rolled back, and its clients.
struct Scene {
    rollback: Rollback,
    server: Arc<Server>,
    folder: PathBuf,
    client: Client,
    other: Client,
    links: [Link; 2],
    snapshot: Option<Snapshot>,
    faults: Mutex<Vec<String>>,
}

impl Scene {
    async fn new(rollback: Rollback, name: &str) -> Self {
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rollback");
        let folder = root.join(format!("{name}_{rollback:?}"));
        // Delete the data of an earlier run.
        let _ = fs::remove_dir_all(&folder);
        let server = start_on(&folder.join("first")).await;
        let (client, link) = client(&server, 1).await;
        let (other, other_link) = self::client(&server, 2).await;
        Self {
            rollback,
            server,
            folder,
            client,
            other,
            links: [link, other_link],
            snapshot: None,
            faults: Mutex::default(),
        }
    }

    /// Remembers the state to which the server is rolled back.
    async fn mark(&mut self) {
        self.snapshot = Some(self.server.snapshot());
        self.server.save().await.unwrap();
        copy(&self.folder.join("first"), &self.folder.join("older")).unwrap();
    }

    async fn roll_back(&mut self) {
        let snapshot = self.snapshot.take().unwrap();
        match self.rollback {
            Rollback::Restore => self.server.restore(&snapshot).unwrap(),
            Rollback::RestoreWhileCut => {
                self.links.iter().for_each(Link::down);
                sleep(Duration::from_millis(10)).await;
                self.server.restore(&snapshot).unwrap();
                self.links.iter().for_each(|link| link.up(&self.server));
            }
            Rollback::KeepNothing => self.server.restart(Keep::Nothing).await.unwrap(),
            Rollback::Wiped | Rollback::Older | Rollback::Overtaken => {
                drop(snapshot);
                self.links.iter().for_each(Link::down);
                sleep(Duration::from_millis(10)).await;
                let folder = match self.rollback {
                    Rollback::Wiped => "wiped",
                    _ => "older",
                };
                self.server = start_on(&self.folder.join(folder)).await;
                if self.rollback == Rollback::Overtaken {
                    let (busy, _) = client(&self.server, 3).await;
                    for _ in 0..1_000 {
                        create(&busy, "/busy").await;
                        busy.delete("/busy", None).await.unwrap();
                    }
                }
                self.links.iter().for_each(|link| link.up(&self.server));
            }
        }
    }

    /// Returns the data of a znode, read from the server.
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let (data, _) = self.server.get(path)?;
        Some(data.unwrap_or_default())
    }

    /// Notes a fault unless `holds` becomes true in time.
    async fn settles(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let holds = async {
            while !holds().await {
                sleep(Duration::from_millis(100)).await;
            }
        };
        if timeout(SETTLED_WITHIN, holds).await.is_ok() {
            return;
        }
        self.faults
            .lock()
            .push(format!("{:?}: {what}", self.rollback));
    }

    /// Notes a fault for each guard that does not come to tell whether its znode is there.
    async fn guards_settle<const N: usize>(&self, guards: [(&str, &Guard); N]) {
        for (what, guard) in guards {
            self.settles(what, async || {
                // Without a call that waits for the loss, a guard has no watch.
                let _ = timeout(Duration::from_millis(1), guard.lost()).await;
                (guard.status() == Status::Held) == self.read(guard.path()).is_some()
            })
            .await;
        }
    }

    async fn put(&self, path: &str, data: &[u8]) {
        let create = self.other.create(path, data, CreateMode::Persistent);
        if create.await.is_err() {
            self.other.set_data(path, data, None).await.unwrap();
        }
    }
}

async fn start_on(folder: &Path) -> Arc<Server> {
    let builder = minikeeper_test_kit::servers::server()
        .configure(|config| {
            config.save_interval = Duration::ZERO;
            config.container_check_interval_ms = 3_600_000;
        })
        .data_dir(folder);
    Arc::new(builder.start().await.unwrap())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if entry.file_name().to_string_lossy().contains('.') {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Ends a task, and passes its panic on.
async fn end<T>(task: JoinHandle<T>) {
    task.abort();
    if let Err(error) = task.await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a test once for each rollback, and reports all faults together.
async fn each(name: &str, test: impl AsyncFn(&mut Scene)) {
    let mut faults = Vec::new();
    for rollback in ROLLBACKS {
        let mut scene = Scene::new(rollback, name).await;
        test(&mut scene).await;
        faults.append(&mut scene.faults.lock());
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test(start_paused = true)]
async fn shared_values_and_counts_equal_a_plain_read() {
    each("values", async |scene| {
        let client = scene.client.clone();
        let value = SharedValue::start(client.clone(), "/value", b"old")
            .await
            .unwrap();
        let other = SharedValue::start(client.clone(), "/value", b"old")
            .await
            .unwrap();
        let count = SharedCount::start(client.clone(), "/count", 1)
            .await
            .unwrap();
        let latest = Arc::new(Mutex::new(value.current().value));
        let (mut changes, seen) = (other.changes(), Arc::clone(&latest));
        let following = spawn(async move {
            loop {
                match changes.next().await {
                    Ok(change) => *seen.lock() = change.value,
                    Err(_) => sleep(Duration::from_millis(100)).await,
                }
            }
        });
        scene.mark().await;
        for number in 0..20 {
            value.set(format!("new {number}").as_bytes()).await.unwrap();
            count.set(number + 10).await.unwrap();
        }
        scene
            .settles("the change is seen", async || {
                &latest.lock()[..] == b"new 19"
            })
            .await;
        scene.roll_back().await;
        let check = async |scene: &Scene, when: &str| {
            let plain = || scene.read("/value").unwrap_or_default();
            scene
                .settles(&format!("SharedValue::get {when}"), async || {
                    let got = soon(value.get()).await;
                    got.map_or_else(
                        |_| scene.read("/value").is_none(),
                        |got| got.value == plain(),
                    )
                })
                .await;
            if scene.read("/value").is_some() {
                scene
                    .settles(&format!("ValueChanges {when}"), async || {
                        latest.lock()[..] == plain()[..]
                    })
                    .await;
            }
            scene
                .settles(&format!("SharedCount::get {when}"), async || {
                    let got = soon(count.get()).await;
                    let plain = scene.read("/count");
                    match got {
                        Ok(got) => Some(got.value.to_be_bytes().to_vec()) == plain,
                        Err(_) => plain.is_none(),
                    }
                })
                .await;
        };
        check(scene, "after the rollback").await;
        if scene.read("/value").is_none() {
            scene.put("/value", b"old").await;
            scene.put("/count", &1_i32.to_be_bytes()).await;
        }
        check(scene, "after it was created again").await;
        let wrote = value.set(b"later").await.unwrap();
        assert_eq!(
            value.current(),
            wrote,
            "{:?}: the write is kept",
            scene.rollback
        );
        let before = count.get().await.unwrap();
        let tried = count.try_set(&before, 77).await.unwrap();
        assert!(tried.is_some(), "{:?}: {before:?}", scene.rollback);
        check(scene, "after later writes").await;
        scene.put("/value", b"foreign").await;
        check(scene, "after a foreign write").await;
        following.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn caches_equal_a_plain_read() {
    each("caches", async |scene| {
        for path in ["/tree", "/tree/a", "/tree/b", "/tree/b/x", "/tree/same"] {
            scene.put(path, b"old").await;
        }
        let client = scene.client.clone();
        let cache = CuratorCache::start(client.clone(), "/tree").unwrap();
        let options = CacheOptions::default().with_data(false);
        let bare = CuratorCache::with_options(client.clone(), "/tree", options).unwrap();
        let node = NodeCache::start(client.clone(), "/tree/a").unwrap();
        for cache in [&cache, &bare, node.cache()] {
            soon(cache.initialized()).await.unwrap();
        }
        let (first, mut changes) = cache.subscribe();
        let first = first
            .iter()
            .map(|it| (it.path().to_owned(), it.data().to_vec()));
        let tree = Arc::new(Mutex::new(first.collect::<BTreeMap<_, _>>()));
        let folded = Arc::clone(&tree);
        let following = spawn(async move {
            while let Ok(change) = changes.next().await {
                let mut tree = folded.lock();
                match change {
                    CacheEvent::Created { znode } => {
                        let before = tree.insert(znode.path().into(), znode.data().into());
                        assert_eq!(before, None, "{} was there", znode.path());
                    }
                    CacheEvent::Changed { new, .. } => {
                        tree.insert(new.path().into(), new.data().into());
                    }
                    CacheEvent::Deleted { znode } => {
                        assert!(tree.remove(znode.path()).is_some());
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        scene.mark().await;
        let other = scene.other.clone();
        for number in 0..10 {
            scene
                .put("/tree/a", format!("new {number}").as_bytes())
                .await;
        }
        other.delete("/tree/b/x", None).await.unwrap();
        other.delete("/tree/b", None).await.unwrap();
        // Another incarnation, with another child.
        for path in ["/tree/b", "/tree/b/y", "/tree/c", "/tree/c/z"] {
            scene.put(path, b"new").await;
        }
        let check = async |scene: &Scene, when: &str| {
            let plain = || {
                let mut tree = BTreeMap::new();
                let mut waiting = vec!["/tree".to_owned()];
                while let Some(path) = waiting.pop() {
                    if let Some(data) = scene.read(&path) {
                        let children = scene.server.children(&path).unwrap_or_default();
                        waiting.extend(children.iter().map(|name| format!("{path}/{name}")));
                        tree.insert(path, data);
                    }
                }
                tree
            };
            let stat = |path: &str| {
                scene
                    .server
                    .get(path)
                    .map(|(_, stat)| (stat.czxid, stat.mzxid))
            };
            scene
                .settles(&format!("the cache {when}"), async || {
                    let cached = cache.snapshot();
                    let pairs = cached
                        .iter()
                        .map(|it| (it.path().to_owned(), it.data().to_vec()));
                    cached
                        .iter()
                        .all(|it| Some((it.stat().czxid, it.stat().mzxid)) == stat(it.path()))
                        && pairs.collect::<BTreeMap<_, _>>() == plain()
                })
                .await;
            scene
                .settles(&format!("its changes {when}"), async || {
                    *tree.lock() == plain()
                })
                .await;
            scene
                .settles(&format!("the cache without data {when}"), async || {
                    let cached = bare.snapshot();
                    cached.len() == plain().len()
                        && cached
                            .iter()
                            .all(|it| Some((it.stat().czxid, it.stat().mzxid)) == stat(it.path()))
                })
                .await;
            scene
                .settles(&format!("NodeCache {when}"), async || {
                    node.current_data().map(|it| it.data().to_vec()) == scene.read("/tree/a")
                })
                .await;
        };
        check(scene, "before").await;
        scene.roll_back().await;
        check(scene, "after the rollback").await;
        for path in ["/tree", "/tree/a", "/tree/b", "/tree/b/y"] {
            scene.put(path, b"later").await;
        }
        check(scene, "after later writes").await;
        scene.other.delete("/tree/b/y", None).await.unwrap();
        check(scene, "after a deletion").await;
        following.abort();
    })
    .await;
}

#[cfg(feature = "discovery")]
#[tokio::test(start_paused = true)]
async fn service_caches_equal_a_query() {
    use minikeeper_recipes::{ServiceDiscovery, ServiceInstance, ServiceType};
    each("services", async |scene| {
        let ours: ServiceDiscovery<String> =
            ServiceDiscovery::new(scene.client.clone(), "/services").unwrap();
        let theirs: ServiceDiscovery<String> =
            ServiceDiscovery::new(scene.other.clone(), "/services").unwrap();
        let cache = ours.cache("print").unwrap();
        soon(cache.initialized()).await.unwrap();
        let fixed = ServiceInstance::new("print").id("fixed").payload("old");
        let fixed = fixed.service_type(ServiceType::Static);
        theirs.register(fixed.clone()).await.unwrap();
        let here = ServiceInstance::new("print").id("here").payload("old");
        ours.register(here.clone()).await.unwrap();
        scene.mark().await;
        theirs.update(fixed.payload("new")).await.unwrap();
        ours.update(here.payload("new")).await.unwrap();
        let gone = ServiceInstance::new("print").id("gone").payload("new");
        theirs.register(gone).await.unwrap();
        let check = async |scene: &Scene, when: &str| {
            scene
                .settles(&format!("ServiceCache {when}"), async || {
                    let found = soon(ours.query_for_instances("print")).await;
                    found.is_ok_and(|found| found == *cache.instances())
                })
                .await;
            scene
                .settles(&format!("what is registered here {when}"), async || {
                    let found = soon(ours.query_for_instance("print", "here")).await;
                    let payload = found.ok().flatten().and_then(|found| found.payload);
                    payload.as_deref() == Some("new")
                })
                .await;
        };
        check(scene, "before").await;
        scene.roll_back().await;
        check(scene, "after the rollback").await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_kept_have_their_data_and_groups_their_members() {
    each("nodes", async |scene| {
        let client = scene.client.clone();
        let start = |path: &str, mode| PersistentNode::start(client.clone(), path, b"old", mode);
        let ephemeral = start("/nodes/e", CreateMode::Ephemeral).unwrap();
        let lasting = start("/nodes/p", CreateMode::Persistent).unwrap();
        let ttl = PersistentTtlNode::start(client.clone(), "/nodes/t", b"old", TTL).unwrap();
        for node in [&ephemeral, &lasting] {
            soon(node.created()).await.unwrap();
        }
        soon(ttl.created()).await.unwrap();
        let member = GroupMember::start(client.clone(), "/group", "1", b"old").unwrap();
        let second = GroupMember::start(scene.other.clone(), "/group", "2", b"old").unwrap();
        soon(member.joined()).await.unwrap();
        soon(second.joined()).await.unwrap();
        scene.mark().await;
        ephemeral.set_data(b"new");
        lasting.set_data(b"new");
        ttl.set_data(b"new");
        member.set_payload(b"new");
        second.set_payload(b"new");
        let late = start("/nodes/late", CreateMode::Ephemeral).unwrap();
        let check = async |scene: &Scene, when: &str| {
            for (path, data) in [
                ("/nodes/e", "new"),
                ("/nodes/p", "new"),
                ("/nodes/t", "new"),
                ("/nodes/t/touch", ""),
                ("/nodes/late", "old"),
                ("/group/1", "new"),
                ("/group/2", "new"),
            ] {
                scene
                    .settles(&format!("{path} {when}"), async || {
                        scene.read(path).as_deref() == Some(data.as_bytes())
                    })
                    .await;
            }
            for member in [&member, &second] {
                scene
                    .settles(&format!("members {when}"), async || {
                        let members = member.members();
                        let names = scene.server.children("/group").unwrap_or_default();
                        members.len() == names.len()
                            && members.iter().all(|(name, payload)| {
                                scene.read(&format!("/group/{name}")).as_deref() == Some(payload)
                            })
                    })
                    .await;
            }
        };
        check(scene, "before").await;
        scene.roll_back().await;
        check(scene, "after the rollback").await;
        drop(late);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn locks_leaders_and_barriers_go_on() {
    each("locks", async |scene| {
        let (client, other) = (scene.client.clone(), scene.other.clone());
        let lock = |client: &Client, path| InterProcessMutex::new(client.clone(), path).unwrap();
        let before = soon(lock(&client, "/locks/before").acquire().into_future())
            .await
            .unwrap();
        let latches: Vec<_> = [(&client, "1"), (&other, "2")]
            .into_iter()
            .map(|(client, id)| LeaderLatch::start(client.clone(), "/leaders", id).unwrap())
            .collect();
        soon(latches[0].wait()).await.unwrap();
        let counter = DistributedAtomicLong::new(client.clone(), "/counter").unwrap();
        counter.add(1).await.unwrap();
        scene.mark().await;
        counter.add(1).await.unwrap();
        let after = soon(lock(&client, "/locks/after").acquire().into_future())
            .await
            .unwrap();
        let contend = |path: &'static str| -> JoinHandle<Guard> {
            let lock = lock(&other, path);
            spawn(async move { lock.acquire().await.unwrap() })
        };
        let waiting = [contend("/locks/before"), contend("/locks/after")];
        let semaphore = |client: &Client| {
            InterProcessSemaphoreV2::new(client.clone(), "/semaphore", 1).unwrap()
        };
        let lease = soon(semaphore(&client).acquire().into_future())
            .await
            .unwrap();
        let next = semaphore(&other);
        let next = spawn(async move { next.acquire().await.unwrap() });
        let barrier = DistributedBarrier::new(client.clone(), "/barrier").unwrap();
        barrier.set().await.unwrap();
        let passing = DistributedBarrier::new(other.clone(), "/barrier").unwrap();
        let passing = spawn(async move { passing.wait().await.unwrap() });
        let double =
            |client: &Client| DistributedDoubleBarrier::new(client.clone(), "/double", 2).unwrap();
        let first = double(&client);
        let first = spawn(async move { first.enter().await.unwrap() });
        sleep(Duration::from_millis(100)).await;
        scene.roll_back().await;
        // A server that refuses the clients is presumed to have lost their sessions.
        sleep(3 * SESSION_TIMEOUT).await;
        let guards = [
            ("a lock of before", &before),
            ("a lock of after", &after),
            ("a lease", lease.guard()),
        ];
        scene.guards_settle(guards).await;
        scene
            .settles("one leads", async || {
                let leads: Vec<_> = latches.iter().filter(|it| it.has_leadership()).collect();
                match leads[..] {
                    [one] => {
                        let leader = soon(one.leader()).await.ok().flatten();
                        leader.map(|leader| leader.path) == one.own_path()
                    }
                    _ => false,
                }
            })
            .await;
        scene
            .settles("the counter", async || {
                let plain = scene
                    .read("/counter")
                    .map_or(0, |data| i64::from_be_bytes(data.try_into().unwrap()));
                counter.get().await.is_ok_and(|value| value == plain)
            })
            .await;
        drop((before, after, lease));
        let second = double(&other);
        let second = spawn(async move { second.enter().await.unwrap() });
        scene
            .settles("the waiting contenders", async || {
                waiting.iter().all(|it| it.is_finished())
            })
            .await;
        scene
            .settles("the waiting semaphore", async || next.is_finished())
            .await;
        scene
            .settles("the barrier", async || passing.is_finished())
            .await;
        scene
            .settles("the double barrier", async || {
                first.is_finished() && second.is_finished()
            })
            .await;
        for waiting in waiting {
            end(waiting).await;
        }
        end(next).await;
        end(passing).await;
        end(first).await;
        end(second).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn locks_of_several_parts_selectors_and_blocks_of_numbers_go_on() {
    each("parts", async |scene| {
        let (client, other) = (scene.client.clone(), scene.other.clone());
        let read_write =
            |client: &Client, path| InterProcessReadWriteLock::new(client.clone(), path).unwrap();
        let several = |client: &Client| {
            InterProcessMultiLock::from_paths(client.clone(), ["/several/1", "/several/2"]).unwrap()
        };
        let exclusive = |client: &Client| {
            InterProcessSemaphoreMutex::new(client.clone(), "/exclusive").unwrap()
        };
        let selector = |client: &Client, id: &str| {
            let options = SelectorOptions::default();
            LeaderSelector::start(client.clone(), "/selected", id, options, |_| {
                Box::pin(std::future::pending())
            })
            .unwrap()
        };
        let shared = read_write(&client, "/shared");
        let reading = soon(shared.acquire_read().into_future()).await.unwrap();
        let selectors = [selector(&client, "1"), selector(&other, "2")];
        let counter = DistributedAtomicLong::new(client.clone(), "/numbers").unwrap();
        let numbers = CachedAtomicLong::new(counter, 10);
        numbers.next().await.unwrap();
        scene.mark().await;
        for _ in 0..10 {
            numbers.next().await.unwrap();
        }
        let owned = read_write(&client, "/owned");
        let writing = soon(owned.acquire_write().into_future()).await.unwrap();
        let all = soon(several(&client).acquire().into_future())
            .await
            .unwrap();
        let alone = soon(exclusive(&client).acquire().into_future())
            .await
            .unwrap();
        let mut waiting: Vec<JoinHandle<()>> = Vec::new();
        for path in ["/shared", "/owned"] {
            let lock = read_write(&other, path);
            waiting.push(spawn(async move {
                drop(lock.acquire_write().await.unwrap());
                drop(lock.acquire_read().await.unwrap());
            }));
        }
        let (lock, mutex) = (several(&other), exclusive(&other));
        waiting.push(spawn(async move { drop(lock.acquire().await.unwrap()) }));
        waiting.push(spawn(async move { drop(mutex.acquire().await.unwrap()) }));
        sleep(Duration::from_millis(100)).await;
        scene.roll_back().await;
        sleep(3 * SESSION_TIMEOUT).await;
        let guards = [
            ("a read lock", &reading),
            ("a write lock", &*writing),
            ("the first of several locks", &all.guards()[0]),
            ("the second of several locks", &all.guards()[1]),
            ("a semaphore mutex", &alone),
        ];
        scene.guards_settle(guards).await;
        scene
            .settles("one is selected", async || {
                let leads: Vec<_> = (selectors.iter().zip(["1", "2"]))
                    .filter(|(it, _)| it.has_leadership())
                    .collect();
                match leads[..] {
                    [(one, id)] => {
                        let leader = soon(one.leader()).await.ok().flatten();
                        leader.is_some_and(|leader| leader.id == id)
                    }
                    _ => false,
                }
            })
            .await;
        // The rest of a block is in memory. The next block begins where the server's number ends.
        scene
            .settles("the next block", async || {
                let before = scene
                    .read("/numbers")
                    .map_or(0, |data| i64::from_be_bytes(data.try_into().unwrap()));
                let next = soon(numbers.next()).await;
                next.is_ok_and(|next| next.current == before + 1)
            })
            .await;
        drop((reading, writing, all, alone));
        scene
            .settles("the waiting contenders", async || {
                waiting.iter().all(JoinHandle::is_finished)
            })
            .await;
        for waiting in waiting {
            end(waiting).await;
        }
    })
    .await;
}
