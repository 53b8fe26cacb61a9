//! Caches of one tree, which all contenders change. Each contender has a cache and follows it.

use std::collections::BTreeMap;

use minikeeper_client::{Bytes, Client, CreateMode, Error, ErrorCode, Multi, Zxid};
use minikeeper_recipes::{
    CacheChanges, CacheError, CacheEvent, CacheOptions, CacheSnapshot, CachedZnode, CuratorCache,
};
use tokio::time::{sleep, timeout};

use crate::sim::contender::Contender;

const ROOT: &str = "/tree";
/// The paths below the root: few, so that contenders change the same ones.
const PATHS: [&str; 8] = ["", "/a", "/b", "/a/c", "/a/d", "/a/c/e", "/b/f", "/b/f/g"];

/// The mzxid and the data by path.
type Tree = BTreeMap<String, (Zxid, Bytes)>;

pub(super) async fn contend(mut me: Contender) {
    let mut follower = Follower::start(&mut me);
    while me.next_round().await {
        for _ in 0..=me.chance.below(4) {
            change(&mut me).await;
        }
        if me.is_last {
            let catch_up = catch_up(&me, &mut follower);
            me.must("a cache that equals the tree", catch_up).await;
            return;
        }
        // Sometimes it does not read for a while, and lags.
        if me.chance.once_in(2) {
            follower.read(&me).await;
            me.judge.gained("cache");
        }
        if follower.end.is_some() || me.chance.once_in(20) {
            if me.chance.once_in(2) {
                let close = follower.cache.close();
                me.must("closing a cache", close).await;
            }
            follower = Follower::start(&mut me);
        }
        sleep(me.chance.millis(300)).await;
    }
}

/// Changes a znode. Most changes are refused: the znode is missing, exists, or has children.
async fn change(me: &mut Contender) {
    let at = usize::try_from(me.chance.below(PATHS.len() as u64)).unwrap_or_default();
    let path = format!("{ROOT}{}", PATHS[at]);
    let data = me.chance.below(1 << 32).to_be_bytes();
    let mode = CreateMode::Persistent;
    let multi = match me.chance.below(6) {
        0 => Multi::new().delete(&path, None),
        1 => Multi::new().delete(&path, None).create(&path, &data, mode),
        2 | 3 => Multi::new().create(&path, &data, mode),
        _ => Multi::new().set_data(&path, &data, None),
    };
    let wait = me.chance.millis(2_000);
    let change = me.client.multi(multi);
    let _ = timeout(wait, change).await;
}

/// Waits until the cache, and what its changes have led to, equal the server's tree.
async fn catch_up(me: &Contender, follower: &mut Follower) {
    loop {
        follower.read(me).await;
        if let Some(end) = &follower.end {
            me.failed(format!("{}: the cache has ended: {end}", me.who));
            *follower = Follower::of(start(me, CacheOptions::default()));
        }
        let Ok(tree) = tree(&me.client).await else {
            continue;
        };
        let snapshot = cached(&follower.cache.snapshot());
        if snapshot == tree && follower.tree == tree && follower.cache.is_initialized() {
            return me.judge.gained("cache");
        }
        sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn tree(client: &Client) -> Result<Tree, Error> {
    let mut tree = Tree::new();
    let mut paths = vec![ROOT.to_owned()];
    while let Some(path) = paths.pop() {
        let (read, list) = (client.get_data(&path), client.children(&path));
        let read = match read.await {
            Err(error) if error.is(ErrorCode::NoNode) => continue,
            read => read?,
        };
        for name in list.await?.names() {
            paths.push(format!("{path}/{name}"));
        }
        tree.insert(path, (read.stat.mzxid, read.data.unwrap_or_default()));
    }
    Ok(tree)
}

fn entry(znode: &CachedZnode) -> (String, (Zxid, Bytes)) {
    let data = Bytes::copy_from_slice(znode.data());
    (znode.path().to_owned(), (znode.stat().mzxid, data))
}

fn cached(snapshot: &CacheSnapshot) -> Tree {
    snapshot.iter().map(|znode| entry(znode)).collect()
}

fn start(me: &Contender, options: CacheOptions) -> CuratorCache {
    CuratorCache::with_options(me.client.clone(), ROOT, options).unwrap()
}

/// A cache, and a subscriber that applies its changes.
struct Follower {
    cache: CuratorCache,
    changes: CacheChanges,
    tree: Tree,
    /// The largest mzxid of each path.
    latest: BTreeMap<String, Zxid>,
    end: Option<CacheError>,
}

impl Follower {
    fn start(me: &mut Contender) -> Self {
        let changes_max = if me.chance.once_in(2) { 4 } else { 1024 };
        let options = CacheOptions::default().changes_max(changes_max);
        Self::of(start(me, options))
    }

    fn of(cache: CuratorCache) -> Self {
        let (snapshot, changes) = cache.subscribe();
        let tree = cached(&snapshot);
        Self {
            cache,
            changes,
            latest: tree.iter().map(|(path, it)| (path.clone(), it.0)).collect(),
            tree,
            end: None,
        }
    }

    /// Applies the changes that wait.
    async fn read(&mut self, me: &Contender) {
        while self.end.is_none() {
            let Ok(event) = timeout(std::time::Duration::ZERO, self.changes.next()).await else {
                return;
            };
            match event {
                Ok(event) => self.apply(me, event),
                Err(end) => self.end = Some(end),
            }
        }
    }

    fn apply(&mut self, me: &Contender, event: CacheEvent) {
        let (is_right, what) = match &event {
            CacheEvent::Created { znode } => (self.put(me, znode).is_none(), znode.path()),
            CacheEvent::Changed { old, new } => {
                (self.put(me, new) == Some(entry(old).1), new.path())
            }
            CacheEvent::Deleted { znode } => {
                let (path, old) = entry(znode);
                (self.tree.remove(&path) == Some(old), znode.path())
            }
            CacheEvent::Lagged { snapshot, .. } => {
                me.judge.event("cache lagged");
                let tree = cached(snapshot);
                for (path, (mzxid, _)) in &tree {
                    self.forward(me, path, *mzxid, true);
                }
                self.tree = tree;
                return;
            }
            CacheEvent::Unreadable { error, .. } => {
                // It stays out of this cache until it changes.
                self.end = Some(error.clone().into());
                return;
            }
            _ => return,
        };
        if !is_right {
            let what = format!("{}: {event:?} of {what} does not fit", me.who);
            me.judge.violation(what);
        }
    }

    fn put(&mut self, me: &Contender, znode: &CachedZnode) -> Option<(Zxid, Bytes)> {
        let (path, new) = entry(znode);
        self.forward(me, &path, new.0, false);
        self.tree.insert(path, new)
    }

    /// Checks that an entry does not go back. Only a snapshot may have what is known.
    fn forward(&mut self, me: &Contender, path: &str, mzxid: Zxid, is_snapshot: bool) {
        let before = self.latest.insert(path.to_owned(), mzxid);
        if before.is_some_and(|before| before > mzxid || before == mzxid && !is_snapshot) {
            let what = format!("{}: {path} goes back from {before:?} to {mzxid}", me.who);
            me.judge.violation(what);
        }
    }
}
