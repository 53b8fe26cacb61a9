//! The cache: follows the server through reconnects, sessions and overflows; options, limits, views;
//! and Curator's known bugs, each as a test with its number.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Acl, AclList, Bytes, Client, CreateMode, ErrorCode, Multi, Perms, Zxid};
use minikeeper_recipes::{
    CacheChanges, CacheError, CacheEvent, CacheOptions, CacheSnapshot, CachedZnode, ChildrenEvent,
    CuratorCache, Damage, NodeCache, PathChildrenCache, TreeCache, TreeEvent,
};
use minikeeper_test_kit::random::{Random, seed};
use tokio::time::{sleep, timeout};

use crate::{
    clock,
    kit::{builder, client, soon, start, until},
    link::{Link, Mode},
    wire::{Fault, Wire},
};

const ROOT: &str = "/app";

type Tree = BTreeMap<String, (Zxid, Bytes)>;

/// A server, a client for the cache over a link that can fail, and one that makes changes.
struct Scene {
    server: Arc<Server>,
    link: Link,
    client: Client,
    other: Client,
}

async fn scene() -> Scene {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    let other = builder(&Link::to(&server), 2).connect().await.unwrap();
    Scene {
        server,
        link,
        client,
        other,
    }
}

impl Scene {
    async fn create(&self, path: &str, data: &[u8]) {
        let created = self.other.create(path, data, CreateMode::Persistent);
        created.await.unwrap();
    }

    async fn set(&self, path: &str, data: &[u8]) {
        self.other.set_data(path, data, None).await.unwrap();
    }

    async fn delete(&self, path: &str) {
        self.other.delete(path, None).await.unwrap();
    }

    /// Starts a cache of [`ROOT`] and waits until it is loaded.
    async fn cache(&self, options: CacheOptions) -> CuratorCache {
        let cache = CuratorCache::with_options(self.client.clone(), ROOT, options).unwrap();
        soon(cache.initialized()).await.unwrap();
        cache
    }

    /// Creates a tree with three levels.
    async fn plant(&self) {
        for path in ["", "/a", "/a/b", "/a/b/c", "/d"] {
            self.create(&format!("{ROOT}{path}"), path.as_bytes()).await;
        }
    }

    async fn expire(&self) {
        let session = self.client.session_id().unwrap();
        self.server.expire(session).unwrap();
    }

    /// Reads the tree without the cache.
    async fn tree(&self) -> Tree {
        tree(&self.other).await
    }
}

async fn tree(client: &Client) -> Tree {
    let mut tree = Tree::new();
    let mut paths = vec![ROOT.to_owned()];
    while let Some(path) = paths.pop() {
        if let Ok(read) = client.get_data(&path).await {
            for name in client.children(&path).await.unwrap().names() {
                paths.push(format!("{path}/{name}"));
            }
            tree.insert(path, (read.stat.mzxid, read.data.unwrap_or_default()));
        }
    }
    tree
}

fn entry(znode: &CachedZnode) -> (String, (Zxid, Bytes)) {
    let data = Bytes::copy_from_slice(znode.data());
    (znode.path().to_owned(), (znode.stat().mzxid, data))
}

fn cached(snapshot: &CacheSnapshot) -> Tree {
    snapshot.iter().map(|znode| entry(znode)).collect()
}

/// A subscriber that applies the changes, and checks that no entry goes back.
struct Follower {
    changes: CacheChanges,
    tree: Tree,
    latest: BTreeMap<String, Zxid>,
    lagged: u64,
}

impl Follower {
    fn of(cache: &CuratorCache) -> Self {
        let (snapshot, changes) = cache.subscribe();
        let tree = cached(&snapshot);
        Self {
            changes,
            latest: tree.iter().map(|(path, it)| (path.clone(), it.0)).collect(),
            tree,
            lagged: 0,
        }
    }

    fn put(&mut self, znode: &CachedZnode) -> Option<(Zxid, Bytes)> {
        let (path, new) = entry(znode);
        let before = self.latest.insert(path.clone(), new.0);
        assert!(
            before.is_none_or(|before| before < new.0),
            "{path} goes back"
        );
        self.tree.insert(path, new)
    }

    fn apply(&mut self, event: CacheEvent) {
        match event {
            CacheEvent::Created { znode } => assert_eq!(self.put(&znode), None),
            CacheEvent::Changed { old, new } => {
                assert_eq!(self.put(&new), Some(entry(&old).1));
            }
            CacheEvent::Deleted { znode } => {
                let (path, old) = entry(&znode);
                assert_eq!(self.tree.remove(&path), Some(old));
            }
            CacheEvent::Lagged { missed, snapshot } => {
                self.lagged += missed;
                self.tree = cached(&snapshot);
                let latest = self.tree.iter().map(|(path, it)| (path.clone(), it.0));
                self.latest.extend(latest);
            }
            _ => {}
        }
    }

    /// Applies changes until the tree is this one.
    async fn reaches(&mut self, tree: &Tree) {
        let reached = async {
            while self.tree != *tree {
                let event = self.changes.next().await.unwrap();
                self.apply(event);
            }
        };
        soon(reached).await;
    }

    /// Applies the changes that have happened, and returns them in short form.
    async fn news(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        while let Ok(event) = timeout(Duration::from_secs(1), self.changes.next()).await {
            let event = event.unwrap();
            news.push(match &event {
                CacheEvent::Created { znode } => format!("+{}", znode.path()),
                CacheEvent::Changed { new, .. } => format!("*{}", new.path()),
                CacheEvent::Deleted { znode } => format!("-{}", znode.path()),
                other => format!("{other:?}"),
            });
            self.apply(event);
        }
        news
    }
}

async fn equals(cache: &CuratorCache, tree: &Tree) {
    until("the cache equals the tree", || {
        cached(&cache.snapshot()) == *tree
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn follows_every_change_and_names_it() {
    let scene = scene().await;
    scene.plant().await;
    let cache = scene.cache(CacheOptions::default()).await;
    equals(&cache, &scene.tree().await).await;
    let mut follower = Follower::of(&cache);
    scene.set("/app/a", b"new").await;
    scene.create("/app/e", b"").await;
    scene.delete("/app/a/b/c").await;
    scene.create("/elsewhere", b"").await;
    assert_eq!(follower.news().await, ["*/app/a", "+/app/e", "-/app/a/b/c"]);
    assert_eq!(follower.tree, scene.tree().await);
    let names: Vec<_> = cache
        .children(ROOT)
        .iter()
        .map(|it| it.name().to_owned())
        .collect();
    assert_eq!(names, ["a", "d", "e"]);
    assert_eq!((cache.len(), cache.get("/app/none")), (5, None));
    let below: Vec<_> = cache
        .snapshot()
        .subtree("/app/a")
        .map(|it| it.path().to_owned())
        .collect();
    assert_eq!(below, ["/app/a", "/app/a/b"]);
}

#[tokio::test(start_paused = true)]
async fn h59_curator_182_root_may_be_missing_deleted_and_created_again() {
    let scene = scene().await;
    let cache = scene.cache(CacheOptions::default()).await;
    assert!(cache.is_empty() && cache.is_initialized());
    let mut follower = Follower::of(&cache);
    for _ in 0..2 {
        scene.create("/app", b"").await;
        scene.create("/app/a", b"").await;
        assert_eq!(follower.news().await, ["+/app", "+/app/a"]);
        scene.delete("/app/a").await;
        scene.delete("/app").await;
        assert_eq!(follower.news().await, ["-/app/a", "-/app"]);
    }
    assert!(cache.is_empty());
}

#[tokio::test(start_paused = true)]
async fn h53_changes_during_a_reconnect_are_the_differences_and_nothing_else() {
    let scene = scene().await;
    scene.plant().await;
    let cache = scene.cache(CacheOptions::default()).await;
    let mut follower = Follower::of(&cache);
    for expires in [false, true] {
        scene.link.set(Mode::Cut);
        sleep(Duration::from_millis(50)).await;
        scene.set("/app/d", b"missed").await;
        scene.delete("/app/a/b/c").await;
        scene.create("/app/e", b"").await;
        scene.create("/app/e/f", b"").await;
        if expires {
            scene.expire().await;
        }
        scene.link.set(Mode::Pass);
        let mut news = follower.news().await;
        news.sort();
        assert_eq!(news, ["*/app/d", "+/app/e", "+/app/e/f", "-/app/a/b/c"]);
        assert_eq!(follower.tree, scene.tree().await);
        scene.delete("/app/e/f").await;
        scene.delete("/app/e").await;
        scene.create("/app/a/b/c", b"").await;
        assert_eq!(
            follower.news().await,
            ["-/app/e/f", "-/app/e", "+/app/a/b/c"]
        );
    }
    // A reconnect without changes is no change.
    scene.link.cut();
    assert_eq!(follower.news().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn h54_curator_391_znode_that_was_created_again_during_a_reconnect_is_a_change() {
    // The version is 0 again, and Curator compares versions.
    let scene = scene().await;
    scene.plant().await;
    let cache = scene.cache(CacheOptions::default()).await;
    let mut follower = Follower::of(&cache);
    scene.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    scene.delete("/app/d").await;
    scene.create("/app/d", b"again").await;
    scene.link.set(Mode::Pass);
    assert_eq!(follower.news().await, ["-/app/d", "+/app/d"]);
    assert_eq!(cache.get("/app/d").unwrap().data(), b"again");
}

#[tokio::test(start_paused = true)]
async fn h55_curator_4_znode_that_vanishes_during_the_load_does_not_hold_up_initialized() {
    let scene = scene().await;
    scene.plant().await;
    scene.link.delay_replies(Duration::from_millis(20));
    let cache = CuratorCache::start(scene.client.clone(), ROOT).unwrap();
    // Its parent was listed with it.
    sleep(Duration::from_millis(70)).await;
    scene.delete("/app/d").await;
    scene.delete("/app/a/b/c").await;
    soon(cache.initialized()).await.unwrap();
    equals(&cache, &scene.tree().await).await;
}

#[tokio::test(start_paused = true)]
async fn h56_initialized_comes_although_changes_never_pause() {
    // Curator waits for a moment without a pending request.
    let scene = scene().await;
    scene.plant().await;
    scene.link.delay_replies(Duration::from_millis(20));
    let other = scene.other.clone();
    let writer = crate::kit::spawn(async move {
        loop {
            other.set_data("/app/d", b"", None).await.unwrap();
            sleep(Duration::from_millis(1)).await;
        }
    });
    let cache = CuratorCache::start(scene.client.clone(), ROOT).unwrap();
    timeout(Duration::from_secs(5), cache.initialized())
        .await
        .unwrap()
        .unwrap();
    writer.abort();
}

#[tokio::test(start_paused = true)]
async fn h57_curator_319_cache_of_one_node_creates_nothing() {
    let scene = scene().await;
    scene.plant().await;
    let node = NodeCache::start(scene.client.clone(), "/app/a/b/c").unwrap();
    soon(node.cache().initialized()).await.unwrap();
    let mut changes = node.changes();
    scene.delete("/app/a/b/c").await;
    scene.delete("/app/a/b").await;
    assert_eq!(soon(changes.next()).await.unwrap(), None);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.other.exists("/app/a/b").await.unwrap(), None);
    scene.create("/app/a/b", b"").await;
    scene.create("/app/a/b/c", b"again").await;
    let again = soon(changes.next()).await.unwrap().unwrap();
    assert_eq!(
        (again.data(), node.current_data()),
        (&b"again"[..], Some(Arc::clone(&again)))
    );
    // And it survives its session.
    scene.expire().await;
    scene.set("/app/a/b/c", b"later").await;
    assert_eq!(
        soon(changes.next()).await.unwrap().unwrap().data(),
        b"later"
    );
}

#[tokio::test(start_paused = true)]
async fn h58_slow_subscriber_gets_a_snapshot_and_blocks_no_one() {
    let scene = scene().await;
    scene.plant().await;
    let cache = scene.cache(CacheOptions::default().changes_max(16)).await;
    let (mut slow, mut fast) = (Follower::of(&cache), Follower::of(&cache));
    for number in 0..200 {
        scene.create(&format!("/app/a/{number}"), b"").await;
        fast.reaches(&scene.tree().await).await;
    }
    let tree = scene.tree().await;
    slow.reaches(&tree).await;
    assert!(slow.lagged >= 150, "{}", slow.lagged);
    assert_eq!(fast.lagged, 0);
    scene.delete("/app/a/0").await;
    slow.reaches(&scene.tree().await).await;
}

/// Only the number of unread changes was bounded: 1,024 changes of the largest znodes take two gigabytes.
#[tokio::test(start_paused = true)]
async fn unread_changes_are_bounded_in_bytes() {
    let scene = scene().await;
    scene.plant().await;
    let options = CacheOptions::default().changes_bytes_max(20_000);
    let cache = scene.cache(options).await;
    let (mut slow, mut fast) = (Follower::of(&cache), Follower::of(&cache));
    let mut seen = Vec::new();
    for number in 0..50 {
        scene.set("/app/a", &[number; 4_000]).await;
        fast.reaches(&scene.tree().await).await;
        seen.push(Arc::downgrade(&cache.get("/app/a").unwrap()));
    }
    // Two changes of two states each, and the one that is cached.
    let kept = seen.iter().filter(|znode| znode.strong_count() > 0);
    assert_eq!(kept.count(), 3);
    let tree = scene.tree().await;
    slow.reaches(&tree).await;
    assert_eq!((slow.lagged, fast.lagged), (50, 0));
    scene.set("/app/a", b"small").await;
    for follower in [&mut slow, &mut fast] {
        follower.reaches(&scene.tree().await).await;
    }
    assert_eq!((slow.lagged, fast.lagged), (50, 0));
    // A change that is larger than the limit is missed by all.
    scene.set("/app/a", &[0; 30_000]).await;
    fast.reaches(&scene.tree().await).await;
    assert_eq!(fast.lagged, 1);
}

#[tokio::test(start_paused = true)]
async fn znodes_that_may_not_be_read_are_reported_and_left_out() {
    let scene = scene().await;
    scene.plant().await;
    let nobody = AclList::new(&[Acl {
        perms: Perms::ADMIN,
        scheme: Some("world".into()),
        id: Some("anyone".into()),
    }]);
    scene.other.set_acl("/app/a", &nobody, None).await.unwrap();
    let cache = CuratorCache::start(scene.client.clone(), ROOT).unwrap();
    let (_, mut changes) = cache.subscribe();
    soon(cache.initialized()).await.unwrap();
    let refused = loop {
        if let CacheEvent::Unreadable { path, error } = soon(changes.next()).await.unwrap() {
            break (path, error.code());
        }
    };
    assert_eq!(refused, ("/app/a".to_owned(), Some(ErrorCode::NoAuth)));
    assert_eq!(cache.len(), 2);
    // The root is another matter.
    scene.other.set_acl(ROOT, &nobody, None).await.unwrap();
    let cache = CuratorCache::start(scene.client.clone(), ROOT).unwrap();
    let error = soon(cache.initialized()).await.unwrap_err();
    assert!(matches!(error, CacheError::Client(error) if error.is(ErrorCode::NoAuth)));
}

#[tokio::test(start_paused = true)]
async fn limits_end_the_cache_with_an_error_that_names_them() {
    let scene = scene().await;
    scene.plant().await;
    let cache = scene.cache(CacheOptions::default().znodes_max(5)).await;
    let (_, mut changes) = cache.subscribe();
    scene.create("/app/e", b"").await;
    let error = loop {
        match soon(changes.next()).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let expected = CacheError::TooManyZnodes {
        path: ROOT.to_owned(),
        znodes_max: 5,
    };
    assert_eq!((error, cache.end()), (expected.clone(), Some(expected)));
    assert!(cache.is_empty());
    until("no watch is left", || {
        !scene.server.dump().contains("watch")
    })
    .await;

    let options = CacheOptions::default().bytes_max(5 * 192 + 100);
    let cache = scene
        .cache(options.clone().filter(|path| path != "/app/e"))
        .await;
    scene.set("/app/d", &[0; 100]).await;
    until("the cache ends", || cache.end().is_some()).await;
    let bytes_max = 5 * 192 + 100;
    let path = ROOT.to_owned();
    assert_eq!(
        cache.end(),
        Some(CacheError::TooManyBytes { path, bytes_max })
    );
    // Names that wait to be read count, too.
    let cache = CuratorCache::with_options(
        scene.client.clone(),
        "/",
        CacheOptions::default().znodes_max(1).in_flight_max(1),
    );
    let error = soon(cache.unwrap().initialized()).await.unwrap_err();
    assert!(matches!(error, CacheError::TooManyZnodes { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn damaged_data_is_reported_and_does_not_end_the_cache() {
    // `hello`, compressed by java.util.zip.GZIPOutputStream.
    let hello = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\
                  \x36\x05\x00\x00\x00";
    let scene = scene().await;
    scene.create(ROOT, b"").await;
    scene.create("/app/good", hello).await;
    scene.create("/app/bad", b"hello").await;
    scene.create("/app/cut", &hello[..12]).await;
    let options = CacheOptions::default().compressed(true);
    let cache = scene.cache(options.clone()).await;
    assert_eq!(cache.get("/app/good").unwrap().data(), b"hello");
    assert_eq!(cache.get(ROOT).unwrap().damage(), None);
    for path in ["/app/bad", "/app/cut"] {
        let znode = cache.get(path).unwrap();
        assert!(
            matches!(znode.damage(), Some(Damage::NotGzip { .. })),
            "{path}"
        );
    }
    scene.set("/app/bad", hello).await;
    until("repaired", || {
        cache.get("/app/bad").unwrap().damage().is_none()
    })
    .await;
    let cache = scene.cache(options.inflated_bytes_max(4)).await;
    let damage = cache.get("/app/good").unwrap().damage().cloned();
    let (bytes, bytes_max) = (hello.len(), 4);
    assert_eq!(damage, Some(Damage::TooLong { bytes, bytes_max }));
}

#[tokio::test(start_paused = true)]
async fn depth_filter_and_data_are_options() {
    let scene = scene().await;
    scene.plant().await;
    let paths = |cache: &CuratorCache| -> Vec<_> {
        cache
            .snapshot()
            .iter()
            .map(|it| it.path().to_owned())
            .collect()
    };
    let single = scene.cache(CacheOptions::single_node()).await;
    let flat = scene
        .cache(CacheOptions::default().depth_max(Some(1)))
        .await;
    let filtered = scene
        .cache(CacheOptions::default().filter(|path| path != "/app/a/b"))
        .await;
    let bare = scene.cache(CacheOptions::default().with_data(false)).await;
    assert_eq!(paths(&single), ["/app"]);
    assert_eq!(paths(&flat), ["/app", "/app/a", "/app/d"]);
    assert_eq!(paths(&filtered), ["/app", "/app/a", "/app/d"]);
    assert_eq!(paths(&bare).len(), 5);
    assert!(bare.snapshot().iter().all(|znode| znode.data().is_empty()));
    let mut follower = Follower::of(&bare);
    scene.set("/app/a/b/c", b"x").await;
    scene.create("/app/a/b/d", b"x").await;
    assert_eq!(follower.news().await, ["*/app/a/b/c", "+/app/a/b/d"]);
    assert_eq!(
        (single.len(), flat.len(), filtered.len(), bare.len()),
        (1, 3, 3, 6)
    );
}

#[tokio::test(start_paused = true)]
async fn h60_curator_167_closing_removes_the_watch_and_clears_unless_told_otherwise() {
    let scene = scene().await;
    scene.plant().await;
    let cache = scene.cache(CacheOptions::default()).await;
    let kept = scene
        .cache(CacheOptions::default().clears_on_close(false))
        .await;
    let (_, mut changes) = cache.subscribe();
    cache.close().await;
    kept.close().await;
    until("no watch is left", || {
        !scene.server.dump().contains("watch")
    })
    .await;
    assert_eq!((cache.len(), kept.len()), (0, 5));
    for _ in 0..2 {
        let ended = soon(changes.next()).await.unwrap_err();
        assert_eq!(ended.to_string(), "cache \"/app\": closed");
    }
    assert!(cache.subscribe().1.next().await.is_err());
    // So does dropping the last handle, and a closed client ends it with an error.
    let cache = scene.cache(CacheOptions::default()).await;
    drop(cache.clone());
    scene.set("/app/d", b"x").await;
    until("it follows", || cache.get("/app/d").unwrap().data() == b"x").await;
    let (_, mut changes) = cache.subscribe();
    drop(cache);
    assert!(matches!(
        soon(changes.next()).await,
        Err(CacheError::Closed { .. })
    ));
    until("no watch is left", || {
        !scene.server.dump().contains("watch")
    })
    .await;
    let cache = scene.cache(CacheOptions::default()).await;
    scene.client.close().await;
    until("the cache ends", || cache.end().is_some()).await;
    // It said "addWatch: not carried out".
    let end = cache.end().unwrap();
    assert!(matches!(end, CacheError::ClientClosed { .. }), "{end}");
}

#[tokio::test(start_paused = true)]
async fn views_have_curators_vocabulary() {
    let scene = scene().await;
    scene.plant().await;
    let children = PathChildrenCache::start(scene.client.clone(), ROOT).unwrap();
    let tree = TreeCache::start(scene.client.clone(), ROOT).unwrap();
    let (mut child_events, mut tree_events) = (children.changes(), tree.changes());
    soon(children.cache().initialized()).await.unwrap();
    soon(tree.cache().initialized()).await.unwrap();
    scene.set("/app/d", b"x").await;
    scene.set("/app", b"x").await;
    scene.delete("/app/d").await;
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(match soon(child_events.next()).await.unwrap() {
            ChildrenEvent::ChildAdded { child } => format!("+{}", child.name()),
            ChildrenEvent::ChildUpdated { child, .. } => format!("*{}", child.name()),
            ChildrenEvent::ChildRemoved { child } => format!("-{}", child.name()),
            ChildrenEvent::Initialized => "initialized".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["+a", "+d", "initialized", "*d", "-d"]);
    let mut added = 0;
    loop {
        match soon(tree_events.next()).await.unwrap() {
            TreeEvent::NodeAdded { .. } => added += 1,
            TreeEvent::NodeRemoved { znode } => break assert_eq!(znode.path(), "/app/d"),
            _ => {}
        }
    }
    assert_eq!(added, 5);
    let names = children
        .current_data()
        .iter()
        .map(|it| it.name().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(
        (names, children.current_child("d")),
        (vec!["a".to_owned()], None)
    );
    assert_eq!(tree.current_children("/app/a").map(|it| it.len()), Some(1));
    assert_eq!(tree.current_children("/app/d"), None);
}

#[tokio::test(start_paused = true)]
async fn chroot_is_the_root_and_may_be_missing() {
    let scene = scene().await;
    let inside = Client::builder("server/app")
        .unwrap()
        .transport(Link::to(&scene.server));
    let inside = inside.connect().await.unwrap();
    let cache = CuratorCache::start(inside, "/").unwrap();
    soon(cache.initialized()).await.unwrap();
    scene.plant().await;
    until("all are cached", || cache.len() == 5).await;
    let names: Vec<_> = cache
        .children("/")
        .iter()
        .map(|it| it.path().to_owned())
        .collect();
    assert_eq!(names, ["/a", "/d"]);
}

#[tokio::test(start_paused = true)]
async fn two_caches_of_one_client_end_on_their_own() {
    // The server has one watch for both (hazard H40).
    let scene = scene().await;
    scene.plant().await;
    let (first, second) = (
        scene.cache(CacheOptions::default()).await,
        scene.cache(CacheOptions::default()).await,
    );
    drop(first);
    scene.set("/app/d", b"x").await;
    equals(&second, &scene.tree().await).await;
}

/// Makes changes at random, until the end.
async fn scribble(client: &Client, random: &mut Random, changes: usize) {
    let names = ["/a", "/b", "/a/c", "/a/d", "/a/c/e", ""];
    for _ in 0..changes {
        let path = format!("{ROOT}{}", random.pick(&names));
        let change = match random.below(5) {
            0 => Multi::new().delete(&path, None),
            1 => Multi::new()
                .delete(&path, None)
                .create(&path, b"n", CreateMode::Persistent),
            2 => Multi::new().create(&path, b"n", CreateMode::Persistent),
            _ => Multi::new().set_data(&path, &[random.byte()], None),
        };
        // Most are refused: the znode is missing, exists, or has children.
        let _ = client.multi(change).await;
    }
}

/// Follows random changes with one fault; false if there were fewer messages.
async fn survives(fault: Fault) -> bool {
    let server = start().await;
    let wire = Wire::to(&server);
    let watching = wire.client(2).await;
    let (other, _) = client(&server, 1).await;
    let mut random = Random::new(seed());
    scribble(&other, &mut random, 40).await;
    wire.arm([match fault {
        Fault::ExpireAfter(_, step) => Fault::ExpireAfter(watching.session_id().unwrap(), step),
        other => other,
    }]);
    let cache = CuratorCache::start(watching, ROOT).unwrap();
    let mut follower = Follower::of(&cache);
    scribble(&other, &mut random, 40).await;
    soon(cache.initialized()).await.unwrap();
    scribble(&other, &mut random, 40).await;
    let tree = tree(&other).await;
    equals(&cache, &tree).await;
    follower.reaches(&tree).await;
    let is_reached = !wire.is_armed();
    drop((cache, follower));
    until("no watch is left", || !server.dump().contains("watch")).await;
    is_reached
}

async fn survives_everywhere(fault: impl Fn(usize) -> Fault, stride: usize) {
    let mut step = 0;
    while survives(fault(step)).await {
        step += stride;
        assert!(step < 100_000, "the loop does not end");
    }
    assert!(step > 0, "no fault was met");
}

#[tokio::test(start_paused = true)]
async fn every_request_may_be_lost() {
    survives_everywhere(Fault::LoseRequest, 1).await;
}

#[tokio::test(start_paused = true)]
async fn every_reply_and_event_may_be_lost() {
    survives_everywhere(Fault::LoseReply, 1).await;
}

#[tokio::test(start_paused = true)]
async fn session_may_expire_at_every_message() {
    survives_everywhere(
        |step| Fault::ExpireAfter(minikeeper_client::SessionId(0), step),
        1,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn connection_may_be_cut_at_every_byte() {
    survives_everywhere(Fault::CutReplies, 97).await;
    survives_everywhere(Fault::CutRequests, 31).await;
}

#[tokio::test(start_paused = true)]
async fn every_passing_refusal_is_retried() {
    for code in [
        ErrorCode::ThrottledOp,
        ErrorCode::SessionMoved,
        ErrorCode::OperationTimeout,
    ] {
        survives_everywhere(|step| Fault::Refuse(step, code), 3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn reads_leave_together_up_to_the_limit() {
    let scene = scene().await;
    scene.plant().await;
    for number in 0..300 {
        scene.create(&format!("/app/d/{number}"), b"").await;
    }
    scene.link.delay_replies(Duration::from_millis(10));
    let begin = clock::now();
    let cache = scene
        .cache(CacheOptions::default().in_flight_max(100))
        .await;
    assert_eq!(cache.len(), 305);
    // The watch, 3 levels of a read and a list each, and 300 reads, 100 at a time.
    let elapsed = begin.elapsed();
    assert!(elapsed < Duration::from_millis(150), "{elapsed:?}");
}
