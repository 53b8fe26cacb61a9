//! The state of a cache: what it knows, what it must read, and what has changed. No I/O, no clock.
//!
//! Input: events and gaps of the watch, and replies. Output: requests ([`CacheState::poll_request`])
//! and changes ([`CacheState::take_changes`]). It relies on three properties:
//!
//! 1. After a gap, every later change is an event ([`PersistentWatcher`]).
//! 2. Replies are handled in the order of their requests, so that a later one shows a later state of
//!    the server. What the server says now is right, even if its zxids are lower than before: it may
//!    have been restored to an older state.
//! 3. At most one request for a path is pending, so events during a read cost one more read at most.
//!
//! Events and replies reach the cache in no particular order. So an event is compared with the mzxid
//! that a read returned, and nothing is concluded from the zxid of a reply: servers may take it after
//! the read. Servers before 3.9 send events without a zxid; these cost a read each. So do events
//! during a walk after a gap: what is cached from before the gap may have later zxids than the server.
//!
//! Source: `docs/curator-recipes.md` section 18.
//!
//! [`PersistentWatcher`]: minikeeper_client::PersistentWatcher

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::Arc,
};

use minikeeper_client::{Error, EventKind, Stat, Zxid};

use super::{
    changes::{CacheError, CacheEvent},
    options::CacheOptions,
    snapshot::CacheSnapshot,
    znode::{CachedZnode, ZNODE_BYTES, depth, is_within, parent},
};

/// A request that the cache must make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CacheRequest {
    pub(crate) path: Arc<str>,
    pub(crate) read: ReadKind,
    /// The walk in which it was made. Replies of an earlier walk are not handled.
    walk: u64,
}

/// What a request reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadKind {
    Data,
    Stat,
    Children,
}

/// The reply to a request.
#[derive(Debug)]
pub(crate) enum CacheReply {
    /// The znode does not exist.
    Missing,
    Data(CachedZnode),
    Stat(Stat),
    /// The names of its children.
    Children(Vec<String>),
}

/// What the cache still has to read at one path.
#[derive(Debug, Default)]
struct Pending {
    /// Whether the data or the stat will be read by a request that is not sent yet, and so will show
    /// all events until now.
    is_queued: bool,
    /// Whether its end is awaited by the walk over the tree, which lists all children.
    is_walked: bool,
    /// Whether the children must be listed after this read.
    lists: bool,
    /// Whether an event came that the read may not show: read again.
    again: bool,
    /// The zxid of the latest deletion that the read may not show. A reply with an earlier mzxid is of
    /// the znode that was deleted.
    deleted: Option<Zxid>,
    /// The zxid of the latest event, if the server tells it.
    event: Zxid,
    /// Whether the znode was not cached when this began. Such ones count towards the limit.
    is_new: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct CacheState {
    root: Arc<str>,
    options: CacheOptions,
    znodes: CacheSnapshot,
    /// The sum of [`CachedZnode::bytes`].
    bytes: usize,
    pending: HashMap<Arc<str>, Pending>,
    pending_new: usize,
    /// The requests to make, oldest first.
    requests: VecDeque<(Arc<str>, ReadKind)>,
    /// Counts walks.
    walk: u64,
    /// How many paths the walk has yet to read.
    walking: usize,
    is_initialized: bool,
    /// Whether the walk reads no data of a znode whose stat has not changed.
    trusts_stats: bool,
    changes: Vec<CacheEvent>,
    end: Option<CacheError>,
}

impl CacheState {
    pub(crate) fn new(root: &str, options: CacheOptions) -> Self {
        Self {
            root: root.into(),
            options,
            znodes: CacheSnapshot::default(),
            bytes: 0,
            pending: HashMap::new(),
            pending_new: 0,
            requests: VecDeque::new(),
            walk: 0,
            walking: 0,
            is_initialized: false,
            trusts_stats: true,
            changes: Vec::new(),
            end: None,
        }
    }

    /// Returns the znodes after all changes that were taken.
    pub(crate) fn snapshot(&self) -> CacheSnapshot {
        self.znodes.clone()
    }

    /// Returns the changes since the last call, in order, each with its number.
    pub(crate) fn take_changes(&mut self) -> Vec<(u64, CacheEvent)> {
        let changes = mem::take(&mut self.changes);
        let number = |(change, sequence)| (sequence, change);
        let first = self.znodes.sequence + 1;
        self.znodes.sequence += changes.len() as u64;
        changes.into_iter().zip(first..).map(number).collect()
    }

    /// Returns why the cache must end, if it must.
    pub(crate) const fn end(&self) -> Option<&CacheError> {
        self.end.as_ref()
    }

    /// Returns the next request to make.
    pub(crate) fn poll_request(&mut self) -> Option<CacheRequest> {
        let (path, read) = self.requests.pop_front()?;
        if let Some(pending) = self.pending.get_mut(&path) {
            pending.is_queued = false;
        }
        let walk = self.walk;
        Some(CacheRequest { path, read, walk })
    }

    // Events.

    /// Handles a gap in the events, and the registration of the watch: reads the whole tree again,
    /// and forgets what was pending. `trusts_stats` says that a znode with the same stat has the same
    /// data; in another session the server may have begun its zxids anew.
    pub(crate) fn handle_gap(&mut self, trusts_stats: bool) {
        self.trusts_stats = trusts_stats;
        self.requests.clear();
        self.pending.clear();
        self.pending_new = 0;
        self.walking = 0;
        self.walk += 1;
        let root = Arc::clone(&self.root);
        self.walk_to(&root);
    }

    /// Handles an event of the watch.
    pub(crate) fn handle_event(&mut self, kind: EventKind, path: &str, zxid: Zxid) {
        if !self.is_wanted(path) {
            return;
        }
        // The first walk finds nothing that is cached from before.
        let is_unsure = self.walking > 0 && self.walk > 1;
        let zxid = if is_unsure { Zxid::NONE } else { zxid };
        match kind {
            EventKind::Created | EventKind::DataChanged => self.handle_changed(path, zxid),
            EventKind::Deleted => self.handle_deleted(path, zxid),
            // The events of the children themselves say more.
            _ => {}
        }
    }

    fn handle_changed(&mut self, path: &str, zxid: Zxid) {
        if let Some(known) = self.znodes.get(path)
            && zxid > Zxid(0)
            && known.stat().mzxid >= zxid
        {
            return;
        }
        if let Some(pending) = self.pending.get_mut(path) {
            if !pending.is_queued {
                pending.again = true;
                pending.event = zxid;
            }
            return;
        }
        if let Some(parent) = parent(path)
            && *path != *self.root
            && !self.znodes.contains(parent)
        {
            // Reading the parent comes first: it lists its children then. Without this mark, a
            // reply that was sent before the event would say that it has none.
            if let Some(pending) = self.pending.get_mut(parent) {
                pending.lists = true;
            }
            return;
        }
        self.read(path, false);
    }

    fn handle_deleted(&mut self, path: &str, zxid: Zxid) {
        let is_known = self.znodes.get(path).map(|known| known.stat().mzxid);
        if zxid <= Zxid(0) {
            // The znode may exist again: only a read can say so.
            if is_known.is_some() || self.pending.contains_key(path) {
                self.handle_changed(path, zxid);
            }
            return;
        }
        if is_known.is_some_and(|mzxid| mzxid < zxid) {
            // If znodes below it are newer, it exists again, and an event will say so.
            self.remove_older(path, zxid);
        }
        if let Some(pending) = self.pending.get_mut(path)
            && !pending.is_queued
        {
            pending.again = false;
            pending.deleted = Some(zxid);
            pending.event = zxid;
        }
    }

    /// Returns whether the cache has this path, if it exists.
    fn is_wanted(&self, path: &str) -> bool {
        let CacheOptions {
            depth_max, filter, ..
        } = &self.options;
        is_within(path, &self.root)
            && depth_max.is_none_or(|max| depth(path, &self.root) <= max)
            && (*path == *self.root || filter.as_ref().is_none_or(|filter| filter(path)))
    }

    /// Returns whether the cache has the children of this path.
    fn is_listed(&self, path: &str) -> bool {
        let depth_max = self.options.depth_max;
        depth_max.is_none_or(|max| depth(path, &self.root) < max)
    }

    // Replies.

    /// Handles the reply to a request.
    pub(crate) fn handle_reply(&mut self, request: &CacheRequest, reply: CacheReply) {
        if request.walk != self.walk {
            return;
        }
        let path = &request.path;
        if !self.pending.contains_key(path) {
            return;
        }
        match reply {
            CacheReply::Missing => {
                self.remove(path);
                self.finish(path);
            }
            CacheReply::Data(znode) => self.handle_read(path, znode, false),
            CacheReply::Stat(stat) => {
                let known = self.znodes.get(path).map(|known| *known.stat());
                let is_same = known.is_some_and(|known| is_same_stat(&known, &stat));
                if is_same && self.trusts_stats || !self.options.with_data {
                    self.handle_read(path, CachedZnode::new(path, b"", stat), is_same);
                } else {
                    self.queue(path, ReadKind::Data);
                }
            }
            CacheReply::Children(names) => self.handle_children(path, names),
        }
    }

    /// Handles a request that was not carried out: it must be made again.
    pub(crate) fn handle_lost(&mut self, request: CacheRequest) {
        if request.walk == self.walk {
            self.queue(&request.path, request.read);
        }
    }

    /// Handles a request that the client may not make, for lack of permission: the cache leaves out
    /// this znode and those below it.
    pub(crate) fn handle_unreadable(&mut self, request: &CacheRequest, error: Error) {
        if request.walk != self.walk {
            return;
        }
        let path = &request.path;
        if *path == self.root {
            self.end = Some(error.into());
            return;
        }
        self.remove(path);
        self.changes.push(CacheEvent::Unreadable {
            path: path.to_string(),
            error,
        });
        self.finish(path);
    }

    /// Handles a znode that was read. `is_same` says that it is the cached one.
    fn handle_read(&mut self, path: &Arc<str>, znode: CachedZnode, is_same: bool) {
        let Some(pending) = self.pending.get(path) else {
            return;
        };
        let Stat {
            mzxid,
            num_children,
            ..
        } = *znode.stat();
        if pending.deleted.is_some_and(|deleted| mzxid < deleted) {
            // The reply is older than the deletion, and what is cached is not newer than the reply.
            self.remove(path);
            return self.finish(path);
        }
        let known = self.znodes.get(path);
        let is_same = is_same
            || known.is_some_and(|known| {
                is_same_stat(known.stat(), znode.stat()) && known.data() == znode.data()
            });
        let is_created = known.is_none_or(|known| known.stat().czxid != znode.stat().czxid);
        let is_orphan =
            *path != self.root && parent(path).is_some_and(|parent| !self.znodes.contains(parent));
        if is_orphan {
            // The parent was deleted meanwhile. If it exists again, reading it lists this one.
            return self.finish(path);
        }
        if !is_same {
            self.put(Arc::new(znode), is_created);
        }
        let lists = self.is_listed(path);
        let is_empty = num_children <= 0;
        let Some(pending) = self.pending.get_mut(path) else {
            return;
        };
        pending.lists |= lists && !is_empty && (is_created || pending.is_walked);
        pending.lists &= lists;
        if pending.again && pending.event > Zxid(0) && mzxid >= pending.event {
            pending.again = false;
        }
        if pending.is_walked && is_empty && lists && !pending.lists {
            self.remove_below(path, |_| false);
        }
        self.finish(path);
    }

    fn handle_children(&mut self, path: &Arc<str>, mut names: Vec<String>) {
        let Some(pending) = self.pending.get_mut(path) else {
            return;
        };
        pending.lists = false;
        let is_walked = pending.is_walked;
        if !self.znodes.contains(path) {
            // It was deleted meanwhile.
            return self.finish(path);
        }
        names.sort_unstable();
        self.remove_below(path, |name| {
            names
                .binary_search_by(|other| other.as_str().cmp(name))
                .is_ok()
        });
        let directory = path.trim_end_matches('/');
        for name in names {
            let child = format!("{directory}/{name}");
            if !self.is_wanted(&child) {
                continue;
            }
            if is_walked {
                self.walk_to(&child);
            } else if !self.znodes.contains(&child) && !self.pending.contains_key(&*child) {
                self.read(&child, false);
            }
        }
        self.finish(path);
    }

    /// Continues with what is left to read at a path whose reply was handled, or ends it.
    fn finish(&mut self, path: &Arc<str>) {
        let Some(pending) = self.pending.get_mut(path) else {
            return;
        };
        pending.deleted = None;
        if mem::take(&mut pending.again) {
            let read = if self.options.with_data {
                ReadKind::Data
            } else {
                ReadKind::Stat
            };
            return self.queue(path, read);
        }
        if pending.lists && self.znodes.contains(path) {
            return self.queue(path, ReadKind::Children);
        }
        let Some(pending) = self.pending.remove(path) else {
            return;
        };
        self.pending_new -= usize::from(pending.is_new);
        if pending.is_walked {
            self.walking -= 1;
            if self.walking == 0 && !mem::replace(&mut self.is_initialized, true) {
                self.changes.push(CacheEvent::Initialized);
            }
        }
    }

    // What is pending.

    fn walk_to(&mut self, path: &str) {
        if let Some(pending) = self.pending.get_mut(path) {
            if !mem::replace(&mut pending.is_walked, true) {
                self.walking += 1;
            }
        } else {
            self.walking += 1;
            self.read(path, true);
        }
    }

    /// Begins to read a path for which nothing is pending.
    fn read(&mut self, path: &str, is_walked: bool) {
        let is_new = !self.znodes.contains(path);
        let path: Arc<str> = path.into();
        // The data of a known znode is read only if the walk finds that it has changed.
        let read = if self.options.with_data && (is_new || !is_walked) {
            ReadKind::Data
        } else {
            ReadKind::Stat
        };
        let pending = Pending {
            is_walked,
            is_new,
            ..Pending::default()
        };
        self.pending.insert(Arc::clone(&path), pending);
        self.pending_new += usize::from(is_new);
        self.queue(&path, read);
        self.check_limits();
    }

    /// Queues a request for a path for which something is pending.
    fn queue(&mut self, path: &Arc<str>, read: ReadKind) {
        if let Some(pending) = self.pending.get_mut(path) {
            pending.is_queued = read != ReadKind::Children;
            self.requests.push_back((Arc::clone(path), read));
        }
    }

    // The znodes.

    /// Caches a znode in place of what is cached at its path. `is_created` says that it is another
    /// znode.
    fn put(&mut self, znode: Arc<CachedZnode>, is_created: bool) {
        if is_created {
            self.remove_older(znode.path(), znode.stat().czxid);
        }
        self.bytes += znode.bytes();
        let old = self.znodes.get(znode.path()).cloned();
        self.znodes.insert(Arc::clone(&znode));
        match old {
            None => self.changes.push(CacheEvent::Created { znode }),
            Some(old) => {
                self.bytes -= old.bytes();
                self.changes.push(CacheEvent::Changed { old, new: znode });
            }
        }
        self.check_limits();
    }

    /// Ends the cache if it is too large. What is pending counts on its own, since a znode that is
    /// pending may be cached by now.
    fn check_limits(&mut self) {
        let CacheOptions {
            bytes_max,
            znodes_max,
            ..
        } = self.options;
        let path = || self.root.to_string();
        if self.znodes.len().max(self.pending_new) > znodes_max {
            let path = path();
            self.end = Some(CacheError::TooManyZnodes { path, znodes_max });
        }
        let pending_bytes = self.pending_new.saturating_mul(ZNODE_BYTES);
        if self.bytes.max(pending_bytes) > bytes_max {
            let path = path();
            self.end = Some(CacheError::TooManyBytes { path, bytes_max });
        }
    }

    /// Removes a znode and all below it, children first.
    fn remove(&mut self, path: &str) {
        let mut found: Vec<_> = self.znodes.subtree(path).cloned().collect();
        while let Some(znode) = found.pop() {
            self.znodes.remove(znode.path());
            self.bytes -= znode.bytes();
            self.changes.push(CacheEvent::Deleted { znode });
        }
    }

    /// Removes a znode that was deleted by this change, and all below it that are older. If some are
    /// newer, the znode was created again, and stays until it is read.
    fn remove_older(&mut self, path: &str, zxid: Zxid) {
        let is_newer = |znode: &Arc<CachedZnode>| znode.stat().czxid >= zxid;
        if !self.znodes.subtree(path).any(is_newer) {
            return self.remove(path);
        }
        let below = self
            .znodes
            .subtree(path)
            .skip(1)
            .cloned()
            .collect::<Vec<_>>();
        for znode in below {
            if !self.znodes.subtree(znode.path()).any(is_newer) {
                self.remove(znode.path());
            }
        }
    }

    /// Removes the children of a znode that are not to be kept, and all below them.
    fn remove_below(&mut self, path: &str, keeps: impl Fn(&str) -> bool) {
        let children = self.znodes.children(path);
        let gone = children.filter(|child| !keeps(child.name()));
        for child in gone.cloned().collect::<Vec<_>>() {
            self.remove(child.path());
        }
    }
}

/// Returns whether both are the same znode with the same data. The times tell apart what a server
/// that was restored to an older state has numbered twice.
fn is_same_stat(known: &Stat, read: &Stat) -> bool {
    let identity = |stat: &Stat| {
        (
            (stat.czxid, stat.mzxid, stat.version, stat.ephemeral_owner),
            (stat.ctime_ms, stat.mtime_ms, stat.data_length),
        )
    };
    identity(known) == identity(read)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use minikeeper_test_kit::random::{Random, seed};

    use super::*;

    /// What a client receives from the watch.
    enum Notice {
        Gap { is_same_session: bool },
        Event(EventKind, String, Zxid),
    }

    /// A server and the connection to it: events and replies wait in order, each for itself.
    struct Play {
        random: Random,
        has_zxids: bool,
        znodes: BTreeMap<String, (Stat, Vec<u8>)>,
        zxid: i64,
        /// A state of before, and its zxid.
        older: (BTreeMap<String, (Stat, Vec<u8>)>, i64),
        has_gone_back: bool,
        /// Counts changes, as a clock does: two are never at the same time.
        time: i64,
        is_connected: bool,
        notices: VecDeque<Notice>,
        sent: VecDeque<CacheRequest>,
        replies: VecDeque<(CacheRequest, Option<CacheReply>)>,
        state: CacheState,
        /// The changes, applied to a map.
        folded: BTreeMap<String, Arc<CachedZnode>>,
        /// The latest mzxid that was cached for each path.
        latest: BTreeMap<String, Zxid>,
        reads: usize,
        events: usize,
    }

    fn options() -> CacheOptions {
        CacheOptions::default()
    }

    impl Play {
        fn new(seed: u64, has_zxids: bool, options: CacheOptions) -> Self {
            let mut play = Self {
                random: Random::new(seed),
                has_zxids,
                znodes: BTreeMap::new(),
                zxid: 1,
                older: Default::default(),
                has_gone_back: false,
                time: 0,
                is_connected: true,
                notices: VecDeque::from([Notice::Gap {
                    is_same_session: true,
                }]),
                sent: VecDeque::new(),
                replies: VecDeque::new(),
                state: CacheState::new("/r", options),
                folded: BTreeMap::new(),
                latest: BTreeMap::new(),
                reads: 0,
                events: 0,
            };
            play.znodes.insert("/".to_owned(), Default::default());
            play.older = (play.znodes.clone(), 1);
            play
        }

        fn notify(&mut self, kind: EventKind, path: &str) {
            if self.is_connected && is_within(path, "/r") {
                let zxid = Zxid(if self.has_zxids { self.zxid } else { -1 });
                self.events += 1;
                let event = Notice::Event(kind, path.to_owned(), zxid);
                self.notices.push_back(event);
            }
        }

        fn create(&mut self, path: &str) {
            if self.znodes.contains_key(path) || !self.znodes.contains_key(parent(path).unwrap()) {
                return;
            }
            let zxid = Zxid(self.zxid);
            let stat = Stat {
                czxid: zxid,
                mzxid: zxid,
                pzxid: zxid,
                ctime_ms: self.time,
                ..Stat::default()
            };
            let data = self.time.to_be_bytes().to_vec();
            self.znodes.insert(path.to_owned(), (stat, data));
            let parent = self.znodes.get_mut(parent(path).unwrap()).unwrap();
            parent.0.num_children += 1;
            self.notify(EventKind::Created, path);
        }

        fn set(&mut self, path: &str) {
            let (zxid, time) = (self.zxid, self.time);
            if let Some((stat, data)) = self.znodes.get_mut(path) {
                stat.mzxid = Zxid(zxid);
                stat.mtime_ms = time;
                stat.version += 1;
                *data = time.to_be_bytes().to_vec();
                self.notify(EventKind::DataChanged, path);
            }
        }

        fn delete(&mut self, path: &str) {
            let is_leaf = self
                .znodes
                .get(path)
                .is_some_and(|it| it.0.num_children == 0);
            if is_leaf && path != "/" {
                self.znodes.remove(path);
                let parent = self.znodes.get_mut(parent(path).unwrap()).unwrap();
                parent.0.num_children -= 1;
                self.notify(EventKind::Deleted, path);
            }
        }

        /// Makes a transaction of one to three changes.
        fn change(&mut self) {
            self.zxid += 1;
            self.time += 1;
            for _ in 0..=self.random.below(3) {
                let names = ["/r", "/r/a", "/r/b", "/r/a/c", "/r/a/d", "/r/a/c/e"];
                let path = self.random.pick(&names);
                match self.random.below(3) {
                    0 => self.delete(path),
                    1 => self.set(path),
                    _ => self.create(path),
                }
            }
        }

        /// The server replies to the oldest request.
        fn serve(&mut self) {
            let Some(request) = self.sent.pop_front() else {
                return;
            };
            let found = self.znodes.get(&*request.path);
            let reply = match (found, request.read) {
                (None, _) => CacheReply::Missing,
                (Some((stat, data)), ReadKind::Data) => {
                    CacheReply::Data(CachedZnode::new(&request.path, data, *stat))
                }
                (Some((stat, _)), ReadKind::Stat) => CacheReply::Stat(*stat),
                (Some(_), ReadKind::Children) => {
                    let paths = self.znodes.keys();
                    let below = paths.filter(|path| parent(path) == Some(&*request.path));
                    let name = |path: &String| path.rsplit('/').next().unwrap().to_owned();
                    CacheReply::Children(below.map(name).collect())
                }
            };
            self.replies.push_back((request, Some(reply)));
        }

        fn disconnect(&mut self) {
            if mem::replace(&mut self.is_connected, false) {
                let lost = self.sent.drain(..).map(|request| (request, None));
                self.replies.extend(lost);
            }
        }

        fn reconnect(&mut self) {
            if !mem::replace(&mut self.is_connected, true) {
                self.notices.push_back(Notice::Gap {
                    is_same_session: true,
                });
            }
        }

        /// Events are dropped, as by a queue that overflows.
        fn overflow(&mut self) {
            if self.notices.pop_back().is_some() {
                self.notices.push_back(Notice::Gap {
                    is_same_session: true,
                });
            }
        }

        /// The server moves to an older state: a client in the same session has no connection
        /// meanwhile, or gets the events of the difference; in another session zxids may begin anew.
        fn roll_back(&mut self) {
            self.has_gone_back = true;
            let (older, zxid) = self.older.clone();
            let newer = mem::replace(&mut self.znodes, older);
            match self.random.below(3) {
                0 => {
                    self.disconnect();
                    self.zxid = zxid;
                    self.is_connected = true;
                    self.notices.push_back(Notice::Gap {
                        is_same_session: false,
                    });
                }
                1 => self.disconnect(),
                _ => {
                    self.zxid += 1;
                    let is_same = |path: &String, stat: &Stat| {
                        let now = self.znodes.get(path);
                        now.is_some_and(|(now, _)| now.czxid == stat.czxid)
                    };
                    let gone = newer.iter().rev();
                    let gone = gone.filter(|(path, (stat, _))| !is_same(path, stat));
                    let gone: Vec<_> = gone.map(|(path, _)| path.clone()).collect();
                    for path in &gone {
                        self.notify(EventKind::Deleted, path);
                    }
                    for (path, (stat, _)) in self.znodes.clone() {
                        match newer.get(&path) {
                            Some((before, _)) if before.czxid == stat.czxid => {
                                if before.mzxid != stat.mzxid {
                                    self.notify(EventKind::DataChanged, &path);
                                }
                            }
                            _ => self.notify(EventKind::Created, &path),
                        }
                    }
                }
            }
        }

        fn take_notice(&mut self) {
            match self.notices.pop_front() {
                Some(Notice::Gap { is_same_session }) => self.state.handle_gap(is_same_session),
                Some(Notice::Event(kind, path, zxid)) => self.state.handle_event(kind, &path, zxid),
                None => {}
            }
            self.check();
        }

        fn take_reply(&mut self) {
            match self.replies.pop_front() {
                Some((request, Some(reply))) => self.state.handle_reply(&request, reply),
                Some((request, None)) => self.state.handle_lost(request),
                None => {}
            }
            self.check();
        }

        fn send(&mut self) {
            if self.is_connected
                && let Some(request) = self.state.poll_request()
            {
                self.reads += usize::from(request.read == ReadKind::Data);
                self.sent.push_back(request);
            }
        }

        /// Checks that the changes lead to the snapshot, and that no entry goes back.
        fn check(&mut self) {
            for (_, change) in self.state.take_changes() {
                match change {
                    CacheEvent::Created { znode } => {
                        let before = self.latest.insert(znode.path().into(), znode.stat().mzxid);
                        let is_later = before.is_none_or(|before| before < znode.stat().mzxid);
                        assert!(is_later || self.has_gone_back);
                        assert!(
                            znode.path() == "/r" || {
                                self.folded.contains_key(parent(znode.path()).unwrap())
                            }
                        );
                        assert_eq!(self.folded.insert(znode.path().into(), znode), None);
                    }
                    CacheEvent::Changed { old, new } => {
                        let before = self.latest.insert(new.path().into(), new.stat().mzxid);
                        assert!(before.unwrap() < new.stat().mzxid || self.has_gone_back);
                        let before = self.folded.insert(new.path().into(), new);
                        assert_eq!(before, Some(old));
                    }
                    CacheEvent::Deleted { znode } => {
                        let children = self.folded.keys();
                        let mut children =
                            children.filter(|path| parent(path) == Some(znode.path()));
                        assert_eq!(children.next(), None);
                        assert_eq!(self.folded.remove(znode.path()), Some(znode));
                    }
                    _ => {}
                }
            }
            let snapshot = self.state.snapshot();
            assert_eq!(snapshot.len(), self.folded.len());
            assert!(
                self.folded
                    .values()
                    .all(|it| snapshot.get(it.path()) == Some(it))
            );
        }

        fn step(&mut self) {
            match self.random.below(100) {
                0..25 => self.change(),
                25..45 => self.send(),
                45..65 => self.serve(),
                65..80 => self.take_notice(),
                80..95 => self.take_reply(),
                95..97 => self.disconnect(),
                97..99 => self.reconnect(),
                _ => self.overflow(),
            }
        }

        /// Lets everything arrive, and checks that the cache equals the server's tree.
        fn settle(&mut self, is_wanted: impl Fn(&str) -> bool) {
            self.reconnect();
            while !(self.notices.is_empty()
                && self.state.requests.is_empty()
                && self.sent.is_empty()
                && self.replies.is_empty())
            {
                self.take_notice();
                self.send();
                self.serve();
                self.take_reply();
            }
            let znodes = self.znodes.iter();
            let expected = znodes.filter(|(path, _)| is_within(path, "/r") && is_wanted(path));
            let expected: Vec<_> = expected
                .map(|(path, it)| (path, it.0.mzxid, &it.1[..]))
                .collect();
            let cached = self.folded.iter();
            let cached: Vec<_> = cached
                .map(|(path, it)| (path, it.stat().mzxid, it.data()))
                .collect();
            assert_eq!(cached, expected);
            assert!(self.state.pending.is_empty() && self.state.requests.is_empty());
            assert!(self.state.is_initialized);
            assert_eq!((self.state.pending_new, self.state.walking), (0, 0));
            let bytes = self.folded.values().map(|it| it.bytes()).sum::<usize>();
            assert_eq!(self.state.bytes, bytes);
        }
    }

    #[test]
    fn agrees_with_the_server_after_any_order_of_events_replies_and_gaps() {
        for run in 0..2_000 {
            let seed = seed() ^ run;
            let case = || {
                let mut play = Play::new(seed, run % 3 != 0, options());
                for _ in 0..200 {
                    play.step();
                }
                play.settle(|_| true);
            };
            let panic = std::panic::catch_unwind(case);
            assert!(panic.is_ok(), "repeat with MINIKEEPER_SEED={seed}");
        }
    }

    /// What was cached stayed for good: its zxids were later than those of the older state.
    #[test]
    fn agrees_with_a_server_that_moves_to_an_older_state() {
        for run in 0..4_000 {
            let seed = seed() ^ run;
            let case = || {
                let mut play = Play::new(seed, run % 3 != 0, options());
                for step in 0..200 {
                    match play.random.below(40) {
                        0 => play.older = (play.znodes.clone(), play.zxid),
                        1 if step > 40 => play.roll_back(),
                        _ => play.step(),
                    }
                }
                play.settle(|_| true);
            };
            let panic = std::panic::catch_unwind(case);
            assert!(panic.is_ok(), "repeat with MINIKEEPER_SEED={seed}");
        }
    }

    /// The reply to a read that was on its way while the znode was deleted and created again: the
    /// deleted znode was reported as created once more.
    #[test]
    fn deleted_znode_is_not_created_again_by_a_late_reply() {
        let stat = |zxid| Stat {
            czxid: Zxid(zxid),
            mzxid: Zxid(zxid),
            ..Stat::default()
        };
        let znode = |path: &str, zxid| CacheReply::Data(CachedZnode::new(path, b"", stat(zxid)));
        let mut state = CacheState::new("/r", options());
        state.handle_gap(true);
        let request = state.poll_request().unwrap();
        state.handle_reply(&request, znode("/r", 1));
        state.handle_event(EventKind::Created, "/r/a", Zxid(2));
        let request = state.poll_request().unwrap();
        state.handle_reply(&request, znode("/r/a", 2));
        state.handle_event(EventKind::DataChanged, "/r/a", Zxid(3));
        let late = state.poll_request().unwrap();
        state.handle_event(EventKind::Deleted, "/r/a", Zxid(4));
        state.handle_event(EventKind::Created, "/r/a", Zxid(5));
        state.take_changes();
        let reply = Stat {
            mzxid: Zxid(3),
            ..stat(2)
        };
        let reply = CacheReply::Data(CachedZnode::new("/r/a", b"", reply));
        state.handle_reply(&late, reply);
        assert_eq!(state.take_changes().len(), 0, "it was deleted");
        let request = state.poll_request().unwrap();
        state.handle_reply(&request, znode("/r/a", 5));
        let changes = state.take_changes();
        assert!(
            matches!(&changes[..], [(_, CacheEvent::Created { znode })] if znode.stat().czxid == Zxid(5)),
            "{changes:?}"
        );
    }

    #[test]
    fn depth_and_filter_hold_in_any_order() {
        for run in 0..1_000 {
            let filtered = |path: &str| path != "/r/a/c";
            let options = match run % 2 {
                0 => options().depth_max(Some(1)),
                _ => options().filter(filtered),
            };
            let mut play = Play::new(seed() ^ run, run % 3 != 0, options);
            for _ in 0..200 {
                play.step();
            }
            play.settle(|path| match run % 2 {
                0 => depth(path, "/r") <= 1,
                _ => !path.starts_with("/r/a/c"),
            });
        }
    }

    #[test]
    fn an_event_costs_one_read_at_most() {
        for run in 0..500 {
            let mut play = Play::new(seed() ^ run, run % 2 == 0, options());
            play.settle(|_| true);
            let before = play.reads;
            for _ in 0..300 {
                let step = play.random.below(95);
                match step {
                    0..25 => play.change(),
                    25..45 => play.send(),
                    45..65 => play.serve(),
                    65..80 => play.take_notice(),
                    _ => play.take_reply(),
                }
            }
            play.settle(|_| true);
            let reads = play.reads - before;
            assert!(
                reads <= play.events,
                "{reads} reads, {} events",
                play.events
            );
        }
    }
}
