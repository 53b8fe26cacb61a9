//! Watches: which connection watches which path, in which modes.
//!
//! A watch is one record for one connection and one path, with the modes it was registered in
//! for the data table and for the child table. The records of a path form a ring in the order of
//! registration. The znode holds the head of the ring; without a znode, the path's entry in
//! [`AbsentPaths`] does. So firing costs nothing on a path without watches, and a watch on an
//! existing znode does not store the path again.
//!
//! A connection that ends may leave millions of watches. Its [`Watcher`] then only forgets the
//! connection, so that none of them fires, and [`Watches::clean`] removes them, some at a time. If
//! the undo list needs them, it is given each before it is removed.
//!
//! Source: `docs/zookeeper-protocol.md` section 12; ZooKeeper's `DataTree`, `WatchManager`.

use std::collections::VecDeque;

use hashbrown::HashTable;
use minikeeper_protocol::WatcherType;
use slab::Slab;

use crate::{
    hashing::TableHasher,
    input::ConnId,
    state::{
        absent_paths::AbsentPaths,
        keys::{WatchId, WatcherId, ZnodeId},
        tree::Tree,
    },
    work,
};

/// The number of watches of ended connections that one input removes.
pub(crate) const CLEANED_AT_ONCE: usize = 1_000;

/// The holder of a path's ring: its znode, or its entry among absent paths.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Znode(ZnodeId),
    Absent(u32),
}

/// With its slot in the index a watch takes about 43 bytes; the goal is 80.
const _: () = assert!(size_of::<Watch>() == 32, "watches are counted in millions");

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) watcher: WatcherId,
    pub(crate) place: Place,
    /// Neighbours in the ring of the path.
    path_prev: WatchId,
    pub(crate) path_next: WatchId,
    /// Neighbours in the list of the watcher.
    own_prev: WatchId,
    own_next: WatchId,
    pub(crate) data: Modes,
    pub(crate) child: Modes,
}

impl Watch {
    pub(crate) const fn modes(&self, table: Table) -> Modes {
        match table {
            Table::Data => self.data,
            Table::Child => self.child,
        }
    }

    pub(crate) const fn is_in_both(&self) -> bool {
        !self.data.is_empty() && !self.child.is_empty()
    }
}

/// The watches of a connection, or of one that has ended.
#[derive(Clone, Copy, Debug)]
struct Watcher {
    /// `None` once it has ended.
    conn: Option<ConnId>,
    /// The number of its watches, of those in the data table, and of those in both.
    count: u32,
    in_data: u32,
    in_both: u32,
    /// The newest watch.
    head: WatchId,
    /// Whether it has, or had, a data watch, even one that has fired.
    had_data: bool,
    /// The last firing that reached it, so that one firing does not reach it twice.
    reached: u64,
    /// Whether the undo list refers to it.
    is_kept: bool,
    /// Whether it has ended, and all its watches are removed.
    is_cleaned: bool,
}

#[derive(Debug)]
pub(crate) struct Watches {
    arena: Slab<Watch>,
    /// By watcher and place; never iterated.
    index: HashTable<WatchId>,
    absent: AbsentPaths,
    hasher: TableHasher,
    watchers: Slab<Watcher>,
    /// By connection number.
    by_conn: Vec<WatcherId>,
    /// The watchers whose connections have ended and that still have watches, oldest first.
    ended: VecDeque<WatcherId>,
    /// The number of their watches, and of those in both tables.
    ended_count: usize,
    ended_in_both: usize,
    /// The number of recursive watches, those of ended connections included. While it is 0, firing skips the ancestors of a path.
    recursive: usize,
    /// The number of watches in both tables, those of ended connections included.
    in_both: usize,
    /// The number of firings: see [`Watcher::reached`].
    firing: u64,
}

impl Watches {
    pub(crate) fn new(hash_seed: [u64; 2]) -> Self {
        Self {
            arena: Slab::new(),
            index: HashTable::new(),
            absent: AbsentPaths::new(hash_seed),
            hasher: TableHasher::new(hash_seed, b"watches-"),
            watchers: Slab::new(),
            by_conn: Vec::new(),
            ended: VecDeque::new(),
            ended_count: 0,
            ended_in_both: 0,
            recursive: 0,
            in_both: 0,
            firing: 0,
        }
    }

    /// Returns the number of pairs of connection and path.
    pub(crate) fn len(&self) -> usize {
        self.arena.len() - self.ended_count
    }

    /// Returns the number of watches that take memory, those of ended connections included.
    pub(crate) fn stored(&self) -> usize {
        self.arena.len()
    }

    /// Returns whether there are watches of ended connections, which [`Watches::clean`] removes.
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Returns the size of watched paths without a znode, as counted against `tree_bytes_max`.
    pub(crate) const fn absent_bytes(&self) -> usize {
        self.absent.bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arena.is_empty()
    }

    pub(crate) fn at(&self, id: WatchId) -> &Watch {
        &self.arena[id.0 as usize]
    }

    fn at_mut(&mut self, id: WatchId) -> &mut Watch {
        &mut self.arena[id.0 as usize]
    }

    // The rings of paths.

    pub(crate) fn place(&self, tree: &Tree, path: &[u8]) -> Option<Place> {
        match tree.find(path) {
            Some(id) => Some(Place::Znode(id)),
            None if self.absent.is_empty() => None,
            None => self.absent.find(path).map(Place::Absent),
        }
    }

    pub(crate) fn head(&self, tree: &Tree, place: Place) -> WatchId {
        match place {
            Place::Znode(id) => tree[id].watched,
            Place::Absent(key) => self.absent.head(key),
        }
    }

    fn set_head(&mut self, tree: &mut Tree, place: Place, head: WatchId) {
        match place {
            Place::Znode(id) => tree.set_watched(id, head),
            Place::Absent(key) if head == WatchId::NONE => self.absent.remove(key),
            Place::Absent(key) => self.absent.set_head(key, head),
        }
    }

    /// Moves the watches on a created znode's path from `absent` to the znode.
    pub(crate) fn adopt(&mut self, tree: &mut Tree, id: ZnodeId) {
        if self.absent.is_empty() {
            return;
        }
        let Some(key) = self.absent.find(tree[id].path()) else {
            return;
        };
        let head = self.absent.head(key);
        self.absent.remove(key);
        tree.set_watched(id, head);
        self.move_ring(head, Place::Znode(id));
    }

    /// Moves the watches on a znode that is about to be deleted to `absent`.
    pub(crate) fn orphan(&mut self, tree: &mut Tree, id: ZnodeId) {
        let head = tree[id].watched;
        if head == WatchId::NONE {
            return;
        }
        tree.set_watched(id, WatchId::NONE);
        let key = self.absent.add(tree[id].path());
        self.absent.set_head(key, head);
        self.move_ring(head, Place::Absent(key));
    }

    fn move_ring(&mut self, head: WatchId, place: Place) {
        let mut id = head;
        loop {
            self.unindex(id);
            self.at_mut(id).place = place;
            self.reindex(id);
            id = self.at(id).path_next;
            if id == head {
                return;
            }
        }
    }

    // One watch.

    fn hash(hasher: &TableHasher, watcher: WatcherId, place: Place) -> u64 {
        hasher.hash_one((watcher, place))
    }

    fn watcher_of(&self, conn: ConnId) -> WatcherId {
        let known = self.by_conn.get(conn.0 as usize);
        known.copied().unwrap_or(WatcherId::NONE)
    }

    /// Returns the connection of a watch; `None` if it has ended, and the watch must not fire.
    pub(crate) fn conn_of(&self, watch: &Watch) -> Option<ConnId> {
        self.watchers[watch.watcher.0 as usize].conn
    }

    fn find(&self, conn: ConnId, place: Place) -> Option<WatchId> {
        let watcher = self.watcher_of(conn);
        if watcher == WatcherId::NONE {
            return None;
        }
        self.index
            .find(Self::hash(&self.hasher, watcher, place), |id| {
                let watch = self.at(*id);
                watch.watcher == watcher && watch.place == place
            })
            .copied()
    }

    fn reindex(&mut self, id: WatchId) {
        let (arena, hasher) = (&self.arena, &self.hasher);
        let hash_of = |id: &WatchId| {
            let watch = &arena[id.0 as usize];
            Self::hash(hasher, watch.watcher, watch.place)
        };
        self.index.insert_unique(hash_of(&id), id, hash_of);
    }

    fn unindex(&mut self, id: WatchId) {
        let watch = self.at(id);
        self.index
            .find_entry(
                Self::hash(&self.hasher, watch.watcher, watch.place),
                |other| *other == id,
            )
            .expect("every watch is in the index")
            .remove();
    }

    fn watcher_mut(&mut self, id: WatcherId) -> &mut Watcher {
        &mut self.watchers[id.0 as usize]
    }

    /// Returns the watcher of a connection, added with its first watch.
    fn watcher_for(&mut self, conn: ConnId) -> WatcherId {
        let index = conn.0 as usize;
        if index >= self.by_conn.len() {
            self.by_conn.resize(index + 1, WatcherId::NONE);
        }
        if self.by_conn[index] == WatcherId::NONE {
            let key = self.watchers.insert(Watcher {
                conn: Some(conn),
                count: 0,
                in_data: 0,
                in_both: 0,
                head: WatchId::NONE,
                had_data: false,
                reached: 0,
                is_kept: false,
                is_cleaned: false,
            });
            self.by_conn[index] = WatcherId(u32::try_from(key).expect("fewer than watches"));
        }
        self.by_conn[index]
    }

    /// Updates the counts of watches when the modes of one change.
    fn recount(&mut self, id: WatcherId, was: (Modes, Modes), is: (Modes, Modes)) {
        let in_data = |(data, _): (Modes, Modes)| u32::from(!data.is_empty());
        let in_both =
            |(data, child): (Modes, Modes)| u32::from(!data.is_empty() && !child.is_empty());
        let recursive = |(data, _): (Modes, Modes)| usize::from(data.has(Modes::RECURSIVE));
        self.recursive = self.recursive + recursive(is) - recursive(was);
        self.in_both = self.in_both + in_both(is) as usize - in_both(was) as usize;
        let watcher = self.watcher_mut(id);
        watcher.in_data = watcher.in_data + in_data(is) - in_data(was);
        watcher.in_both = watcher.in_both + in_both(is) - in_both(was);
        if watcher.conn.is_none() {
            // The watches of ended connections only become fewer.
            self.ended_in_both -= in_both(was) as usize - in_both(is) as usize;
        }
    }

    /// Registers a connection's watch on a path, whether a znode exists there or not.
    ///
    /// `found` is the znode at exactly this path, which the caller has already looked up.
    pub(crate) fn add(
        &mut self,
        tree: &mut Tree,
        conn: ConnId,
        path: &[u8],
        found: Option<ZnodeId>,
        what: Registration,
    ) {
        let place = match found {
            Some(id) => Place::Znode(id),
            None => match self.absent.find(path) {
                Some(key) => Place::Absent(key),
                None => Place::Absent(self.absent.add(path)),
            },
        };
        let watcher = self.watcher_for(conn);
        let id = match self.find(conn, place) {
            Some(id) => id,
            None => self.link(tree, watcher, place),
        };
        let watch = self.at_mut(id);
        let was = (watch.data, watch.child);
        watch.data = watch.data.with(what.data);
        watch.child = watch.child.with(what.child);
        let is = (watch.data, watch.child);
        self.recount(watcher, was, is);
        self.watcher_mut(watcher).had_data |= !what.data.is_empty();
    }

    fn link(&mut self, tree: &mut Tree, watcher: WatcherId, place: Place) -> WatchId {
        let head = self.head(tree, place);
        let key = self.arena.vacant_key();
        let id = WatchId(u32::try_from(key).expect("watches_max is far below"));
        let owner = self.watcher_mut(watcher);
        owner.count += 1;
        let own_next = std::mem::replace(&mut owner.head, id);
        let tail = if head == WatchId::NONE {
            id
        } else {
            self.at(head).path_prev
        };
        self.arena.insert(Watch {
            watcher,
            place,
            path_prev: tail,
            path_next: if head == WatchId::NONE { id } else { head },
            own_prev: WatchId::NONE,
            own_next,
            data: Modes::NONE,
            child: Modes::NONE,
        });
        if own_next != WatchId::NONE {
            self.at_mut(own_next).own_prev = id;
        }
        if head == WatchId::NONE {
            self.set_head(tree, place, id);
        } else {
            self.at_mut(tail).path_next = id;
            self.at_mut(head).path_prev = id;
        }
        self.reindex(id);
        id
    }

    fn unlink(&mut self, tree: &mut Tree, id: WatchId) {
        work::visit();
        self.unindex(id);
        let watch = self.arena.remove(id.0 as usize);
        let none = (Modes::NONE, Modes::NONE);
        self.recount(watch.watcher, (watch.data, watch.child), none);
        let owner = self.watcher_mut(watch.watcher);
        owner.count -= 1;
        let is_ended = owner.conn.is_none();
        if watch.own_prev == WatchId::NONE {
            owner.head = watch.own_next;
        } else {
            self.at_mut(watch.own_prev).own_next = watch.own_next;
        }
        self.ended_count -= usize::from(is_ended);
        if watch.own_next != WatchId::NONE {
            self.at_mut(watch.own_next).own_prev = watch.own_prev;
        }
        if watch.path_next == id {
            self.set_head(tree, watch.place, WatchId::NONE);
            return;
        }
        self.at_mut(watch.path_prev).path_next = watch.path_next;
        self.at_mut(watch.path_next).path_prev = watch.path_prev;
        if self.head(tree, watch.place) == id {
            self.set_head(tree, watch.place, watch.path_next);
        }
    }

    /// Reduces the modes of a watch, and removes it if none is left.
    fn narrow(&mut self, tree: &mut Tree, id: WatchId, data: Modes, child: Modes) {
        if data.is_empty() && child.is_empty() {
            self.unlink(tree, id);
            return;
        }
        let watch = self.at_mut(id);
        let (watcher, was) = (watch.watcher, (watch.data, watch.child));
        (watch.data, watch.child) = (data, child);
        self.recount(watcher, was, (data, child));
    }

    /// Returns whether the connection has a watch of this kind on exactly this path.
    pub(crate) fn has(&self, tree: &Tree, conn: ConnId, path: &[u8], kind: WatcherType) -> bool {
        let Some(id) = self
            .place(tree, path)
            .and_then(|place| self.find(conn, place))
        else {
            return false;
        };
        let (watch, what) = (self.at(id), Registration::of_type(kind));
        // ZooKeeper looks for a persistent watch only in the data table
        // (`docs/zookeeper-protocol.md` section 12.7).
        let in_child = kind != WatcherType::Persistent && watch.child.has(what.child);
        watch.data.has(what.data) || in_child
    }

    /// Returns the modes in which a connection watches exactly this path.
    pub(crate) fn modes(&self, tree: &Tree, conn: ConnId, path: &[u8]) -> (Modes, Modes) {
        let place = self.place(tree, path);
        match place.and_then(|place| self.find(conn, place)) {
            Some(id) => (self.at(id).data, self.at(id).child),
            None => (Modes::NONE, Modes::NONE),
        }
    }

    /// Makes a connection watch a path in exactly these modes.
    pub(crate) fn set(
        &mut self,
        tree: &mut Tree,
        conn: ConnId,
        path: &[u8],
        data: Modes,
        child: Modes,
    ) {
        let found = tree.find(path);
        if !(data.is_empty() && child.is_empty()) {
            self.add(tree, conn, path, found, Registration { data, child });
        }
        let place = self.place(tree, path);
        if let Some(id) = place.and_then(|place| self.find(conn, place)) {
            self.narrow(tree, id, data, child);
        }
    }

    /// Removes the connection's watches of this kind on exactly this path. Returns whether there
    /// were any.
    pub(crate) fn remove(
        &mut self,
        tree: &mut Tree,
        conn: ConnId,
        path: &[u8],
        kind: WatcherType,
    ) -> bool {
        let Some(id) = self
            .place(tree, path)
            .and_then(|place| self.find(conn, place))
        else {
            return false;
        };
        let (watch, what) = (self.at(id), Registration::of_type(kind));
        let (data, child) = (
            watch.data.without(what.data),
            watch.child.without(what.child),
        );
        let removed = data != watch.data || child != watch.child;
        self.narrow(tree, id, data, child);
        // As in ZooKeeper: once its last watch is removed, a connection no longer counts as a
        // watcher.
        let watcher = self.watcher_of(conn);
        let watcher = self.watcher_mut(watcher);
        watcher.had_data &= watcher.head != WatchId::NONE;
        removed
    }

    /// Makes the watches of a connection, which has ended, fire no more. [`Watches::clean`] removes
    /// them. Returns their watcher; with `is_kept` it stays until [`Watches::release`].
    pub(crate) fn end_conn(&mut self, conn: ConnId, is_kept: bool) -> Option<WatcherId> {
        let id = self.watcher_of(conn);
        if id == WatcherId::NONE {
            return None;
        }
        self.by_conn[conn.0 as usize] = WatcherId::NONE;
        let watcher = self.watcher_mut(id);
        watcher.conn = None;
        watcher.is_kept = is_kept;
        let (count, in_both) = (watcher.count as usize, watcher.in_both as usize);
        self.ended_count += count;
        self.ended_in_both += in_both;
        self.ended.push_back(id);
        Some(id)
    }

    /// Removes up to [`CLEANED_AT_ONCE`] watches of ended connections, and their watchers. Passes those
    /// of kept watchers to `keep`, with their paths.
    pub(crate) fn clean(
        &mut self,
        tree: &mut Tree,
        mut keep: impl FnMut(WatcherId, &[u8], (Modes, Modes)),
    ) {
        for _ in 0..CLEANED_AT_ONCE {
            let Some(&id) = self.ended.front() else {
                return;
            };
            let Watcher { head, is_kept, .. } = *self.watcher_mut(id);
            if head == WatchId::NONE {
                self.ended.pop_front();
                self.watcher_mut(id).is_cleaned = true;
                if !is_kept {
                    self.watchers.remove(id.0 as usize);
                }
            } else {
                if is_kept {
                    let watch = self.at(head);
                    keep(id, self.path(tree, watch.place), (watch.data, watch.child));
                }
                self.unlink(tree, head);
            }
        }
    }

    /// Ends the use of a watcher by the undo list.
    pub(crate) fn release(&mut self, id: WatcherId) {
        let watcher = self.watcher_mut(id);
        watcher.is_kept = false;
        if watcher.is_cleaned {
            self.watchers.remove(id.0 as usize);
        }
    }

    // Firing: see `ops/events.rs`.

    /// Begins a firing: each connection is reached at most once until the next one begins.
    pub(crate) const fn begin_firing(&mut self) {
        self.firing += 1;
    }

    /// Returns whether this firing reaches the connection for the first time.
    pub(crate) fn reach(&mut self, watcher: WatcherId) -> bool {
        let firing = self.firing;
        std::mem::replace(&mut self.watcher_mut(watcher).reached, firing) != firing
    }

    /// Returns the first and the last watch on a path.
    pub(crate) fn ends(&self, tree: &Tree, path: &[u8]) -> Option<(WatchId, WatchId)> {
        let head = self.head(tree, self.place(tree, path)?);
        (head != WatchId::NONE).then(|| (head, self.at(head).path_prev))
    }

    /// Removes the one-shot modes of a watch that has fired in one of the tables.
    pub(crate) fn use_up(&mut self, tree: &mut Tree, id: WatchId, table: Table) {
        let Watch { data, child, .. } = *self.at(id);
        match table {
            Table::Data => self.narrow(tree, id, data.without(Modes::STANDARD), child),
            Table::Child => self.narrow(tree, id, data, child.without(Modes::STANDARD)),
        }
    }
}

impl Watches {
    /// Returns every watch with its id and path, those of ended connections included.
    pub(crate) fn iter<'a>(
        &'a self,
        tree: &'a Tree,
    ) -> impl Iterator<Item = (WatchId, &'a Watch, &'a [u8])> {
        self.arena.iter().map(|(key, watch)| {
            let id = WatchId(u32::try_from(key).expect("ids are made from u32"));
            (id, watch, self.path(tree, watch.place))
        })
    }

    /// Returns the end of the arena: every watch is in a slot below it.
    pub(crate) fn slots_end(&self) -> usize {
        self.arena.capacity()
    }

    /// Returns the watch in this slot of the arena, if there is one.
    pub(crate) fn slot(&self, slot: usize) -> Option<&Watch> {
        self.arena.get(slot)
    }

    pub(crate) fn path<'a>(&'a self, tree: &'a Tree, place: Place) -> &'a [u8] {
        match place {
            Place::Znode(id) => tree[id].path(),
            Place::Absent(key) => self.absent.path(key),
        }
    }

    /// Walks the ring at a place. Returns `None` if it does not lead back to its head.
    pub(crate) fn ring(&self, tree: &Tree, place: Place) -> Option<Vec<WatchId>> {
        let head = self.head(tree, place);
        let mut ring = Vec::new();
        let mut id = head;
        while id != WatchId::NONE {
            if ring.len() > self.arena.len() || self.at(id).place != place {
                return None;
            }
            ring.push(id);
            let next = self.at(id).path_next;
            if self.at(next).path_prev != id {
                return None;
            }
            id = if next == head { WatchId::NONE } else { next };
        }
        Some(ring)
    }

    /// Returns the watches of a connection, newest first.
    pub(crate) fn conn_watches(&self, conn: ConnId) -> impl Iterator<Item = WatchId> {
        self.watches_of(self.watcher_of(conn))
    }

    /// Returns the watches of a watcher, newest first.
    pub(crate) fn watches_of(&self, watcher: WatcherId) -> impl Iterator<Item = WatchId> {
        let mut id = match self.watchers.get(watcher.0 as usize) {
            Some(watcher) => watcher.head,
            None => WatchId::NONE,
        };
        std::iter::from_fn(move || {
            let this = (id != WatchId::NONE).then_some(id)?;
            id = self.at(this).own_next;
            Some(this)
        })
        // One more than possible, so that the check of the whole state notices a broken list.
        .take(self.arena.len() + 1)
    }

    /// Returns the watched paths without a znode, with the places of their rings.
    pub(crate) fn absent_paths(&self) -> impl Iterator<Item = (Place, &[u8])> {
        self.absent
            .iter()
            .map(|(key, path)| (Place::Absent(key), path))
    }

    /// Returns the connections that have or had a data watch, by number, with the number of those
    /// that they have.
    pub(crate) fn data_watchers(&self) -> impl Iterator<Item = (ConnId, usize)> {
        let known = self.by_conn.iter().filter(|id| **id != WatcherId::NONE);
        known.filter_map(|id| {
            let watcher = &self.watchers[id.0 as usize];
            let conn = watcher.conn.filter(|_| watcher.had_data)?;
            Some((conn, watcher.in_data as usize))
        })
    }

    pub(crate) const fn in_both(&self) -> usize {
        self.in_both - self.ended_in_both
    }

    /// Returns the numbers of watchers whose connections have ended, of their watches, and of those
    /// in both tables.
    pub(crate) fn ended(&self) -> (usize, usize, usize) {
        (self.ended.len(), self.ended_count, self.ended_in_both)
    }

    pub(crate) fn index_len(&self) -> usize {
        self.index.len()
    }

    pub(crate) const fn recursive(&self) -> usize {
        self.recursive
    }
}

/// How a watch was registered: a set of bits, because one path may be watched in several modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Modes(u8);

impl Modes {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const STANDARD: Self = Self(1);
    pub(crate) const PERSISTENT: Self = Self(2);
    pub(crate) const RECURSIVE: Self = Self(4);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The two tables that a watch can be in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// Set by reading data and asking for existence.
    Data,
    /// Set by listing children.
    Child,
}

/// The modes that a request registers, in each of the two tables. Source:
/// `docs/zookeeper-protocol.md` section 12.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) data: Modes,
    pub(crate) child: Modes,
}

impl Registration {
    /// getData and exists.
    pub(crate) const DATA: Self = Self {
        data: Modes::STANDARD,
        child: Modes::NONE,
    };
    /// getChildren.
    pub(crate) const CHILD: Self = Self {
        data: Modes::NONE,
        child: Modes::STANDARD,
    };
    /// addWatch, persistent.
    pub(crate) const PERSISTENT: Self = Self {
        data: Modes::PERSISTENT,
        child: Modes::PERSISTENT,
    };
    /// addWatch, persistent recursive.
    pub(crate) const RECURSIVE: Self = Self {
        data: Modes::RECURSIVE,
        child: Modes::NONE,
    };

    /// Returns the modes that removeWatches removes. Source: `docs/zookeeper-protocol.md` section
    /// 12.7.
    pub(crate) const fn of_type(kind: WatcherType) -> Self {
        match kind {
            WatcherType::Children => Self::CHILD,
            WatcherType::Data => Self::DATA,
            WatcherType::Persistent => Self::PERSISTENT,
            WatcherType::PersistentRecursive => Self::RECURSIVE,
            WatcherType::Any => Self {
                data: Modes(7),
                child: Modes(7),
            },
        }
    }
}

impl std::fmt::Display for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        let names = [
            (Self::STANDARD, "one-shot"),
            (Self::PERSISTENT, "persistent"),
            (Self::RECURSIVE, "recursive"),
        ];
        let mut separator = "";
        for (mode, name) in names {
            if self.has(mode) {
                write!(f, "{separator}{name}")?;
                separator = "+";
            }
        }
        Ok(())
    }
}
