//! Watches: who wants to hear about which path, and who hears what when it changes.
//!
//! A watch is one record for one connection and one path, with the modes it was registered in
//! for the data table and for the child table. The records of a path form a ring in the order of
//! registration; the ring hangs on the znode if there is one, and on an entry of `absent`
//! otherwise. So firing costs nothing on a path nobody watches, and a watch on an existing znode
//! does not store the path again.
//!
//! Source: reference section 12; the original's `DataTree`, `WatchManager`.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use minikeeper_protocol::{EventKind, WatcherType, path};
use slab::Slab;

use crate::{
    effects::{Effects, Event},
    input::ConnId,
    tree::Tree,
    znode::{WatchId, ZnodeId},
};

/// How a watch was registered: a set of bits, for one path may be watched in several ways.
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

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The modes a request registers, in each of the two tables. Source: reference section 12.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    data: Modes,
    child: Modes,
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

    /// What removeWatches takes away. Source: reference section 12.7.
    const fn of_type(kind: WatcherType) -> Self {
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

/// Where the ring of a path hangs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Znode(ZnodeId),
    Absent(u32),
}

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) conn: ConnId,
    pub(crate) place: Place,
    /// Neighbours in the ring of the path.
    path_prev: WatchId,
    path_next: WatchId,
    /// Neighbours in the list of the connection.
    conn_prev: WatchId,
    conn_next: WatchId,
    pub(crate) data: Modes,
    pub(crate) child: Modes,
}

/// A watched path without a znode.
#[derive(Debug)]
struct Absent {
    path: Box<[u8]>,
    head: WatchId,
}

/// What `watches.rs` knows of a connection.
#[derive(Clone, Copy, Debug)]
struct Watcher {
    /// The watch registered last.
    head: WatchId,
    /// The last firing that reached it, so that none reaches it twice.
    reached: u64,
}

#[derive(Debug)]
pub(crate) struct Watches {
    arena: Slab<Watch>,
    /// By connection and place; never iterated.
    index: HashTable<WatchId>,
    absent: Slab<Absent>,
    /// `absent` by path; never iterated.
    absent_index: HashTable<u32>,
    hasher: FixedState,
    /// By connection number.
    watchers: Vec<Watcher>,
    /// How many watches are recursive; while there are none, no ancestor is looked at.
    recursive: usize,
    /// Counts firings, see [`Watcher::reached`].
    firing: u64,
    #[cfg(feature = "planted")]
    pub(crate) planted_fires_twice: bool,
}

impl Watches {
    pub(crate) fn new() -> Self {
        Self {
            arena: Slab::new(),
            index: HashTable::new(),
            absent: Slab::new(),
            absent_index: HashTable::new(),
            hasher: FixedState::with_seed(0x7761_7463_6865_7321),
            watchers: Vec::new(),
            recursive: 0,
            firing: 0,
            #[cfg(feature = "planted")]
            planted_fires_twice: false,
        }
    }

    #[cfg(feature = "planted")]
    const fn keeps_fired(&self) -> bool {
        self.planted_fires_twice
    }

    #[cfg(not(feature = "planted"))]
    #[expect(clippy::unused_self, reason = "the planted twin looks at it")]
    const fn keeps_fired(&self) -> bool {
        false
    }

    /// The number of (connection, path) pairs.
    pub(crate) fn len(&self) -> usize {
        self.arena.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arena.is_empty()
    }

    fn at(&self, id: WatchId) -> &Watch {
        &self.arena[id.0 as usize]
    }

    fn at_mut(&mut self, id: WatchId) -> &mut Watch {
        &mut self.arena[id.0 as usize]
    }

    // Where a path's ring hangs.

    fn find_absent(&self, path: &[u8]) -> Option<u32> {
        self.absent_index
            .find(self.hasher.hash_one(path), |key| {
                *self.absent[*key as usize].path == *path
            })
            .copied()
    }

    fn place(&self, tree: &Tree, path: &[u8]) -> Option<Place> {
        match tree.find(path) {
            Some(id) => Some(Place::Znode(id)),
            None if self.absent.is_empty() => None,
            None => self.find_absent(path).map(Place::Absent),
        }
    }

    fn add_absent(&mut self, path: &[u8]) -> u32 {
        let entry = Absent {
            path: path.into(),
            head: WatchId::NONE,
        };
        let key = u32::try_from(self.absent.insert(entry)).expect("watches_max is far below");
        let (absent, hasher) = (&self.absent, &self.hasher);
        self.absent_index
            .insert_unique(hasher.hash_one(path), key, |key| {
                hasher.hash_one(&*absent[*key as usize].path)
            });
        key
    }

    fn remove_absent(&mut self, key: u32) {
        let entry = self.absent.remove(key as usize);
        self.absent_index
            .find_entry(self.hasher.hash_one(&*entry.path), |other| *other == key)
            .expect("every absent path is in the index")
            .remove();
    }

    fn head(&self, tree: &Tree, place: Place) -> WatchId {
        match place {
            Place::Znode(id) => tree[id].watched,
            Place::Absent(key) => self.absent[key as usize].head,
        }
    }

    fn set_head(&mut self, tree: &mut Tree, place: Place, head: WatchId) {
        match place {
            Place::Znode(id) => tree[id].watched = head,
            Place::Absent(key) if head == WatchId::NONE => self.remove_absent(key),
            Place::Absent(key) => self.absent[key as usize].head = head,
        }
    }

    /// The znode was created: watches on its path move from `absent` to it.
    pub(crate) fn adopt(&mut self, tree: &mut Tree, id: ZnodeId) {
        if self.absent.is_empty() {
            return;
        }
        let Some(key) = self.find_absent(tree[id].path()) else {
            return;
        };
        let head = self.absent[key as usize].head;
        self.remove_absent(key);
        tree[id].watched = head;
        self.move_ring(head, Place::Znode(id));
    }

    /// The znode is about to go: watches on its path move from it to `absent`.
    pub(crate) fn orphan(&mut self, tree: &mut Tree, id: ZnodeId) {
        let head = std::mem::replace(&mut tree[id].watched, WatchId::NONE);
        if head == WatchId::NONE {
            return;
        }
        let key = self.add_absent(tree[id].path());
        self.absent[key as usize].head = head;
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

    fn hash(hasher: &FixedState, conn: ConnId, place: Place) -> u64 {
        hasher.hash_one((conn, place))
    }

    fn find(&self, conn: ConnId, place: Place) -> Option<WatchId> {
        self.index
            .find(Self::hash(&self.hasher, conn, place), |id| {
                let watch = self.at(*id);
                watch.conn == conn && watch.place == place
            })
            .copied()
    }

    fn reindex(&mut self, id: WatchId) {
        let (arena, hasher) = (&self.arena, &self.hasher);
        let hash_of = |id: &WatchId| {
            let watch = &arena[id.0 as usize];
            Self::hash(hasher, watch.conn, watch.place)
        };
        self.index.insert_unique(hash_of(&id), id, hash_of);
    }

    fn unindex(&mut self, id: WatchId) {
        let watch = self.at(id);
        self.index
            .find_entry(Self::hash(&self.hasher, watch.conn, watch.place), |other| {
                *other == id
            })
            .expect("every watch is in the index")
            .remove();
    }

    fn watcher_mut(&mut self, conn: ConnId) -> &mut Watcher {
        let index = conn.0 as usize;
        if index >= self.watchers.len() {
            self.watchers.resize(
                index + 1,
                Watcher {
                    head: WatchId::NONE,
                    reached: 0,
                },
            );
        }
        &mut self.watchers[index]
    }

    /// Registers interest of a connection in a path, whether a znode is there or not.
    ///
    /// `found` is what the tree has at exactly this path; the caller has looked already.
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
            None => match self.find_absent(path) {
                Some(key) => Place::Absent(key),
                None => Place::Absent(self.add_absent(path)),
            },
        };
        let id = match self.find(conn, place) {
            Some(id) => id,
            None => self.link(tree, conn, place),
        };
        let watch = self.at_mut(id);
        let was_recursive = watch.data.has(Modes::RECURSIVE);
        watch.data = watch.data.with(what.data);
        watch.child = watch.child.with(what.child);
        let is_recursive = watch.data.has(Modes::RECURSIVE);
        self.recursive += usize::from(is_recursive && !was_recursive);
    }

    fn link(&mut self, tree: &mut Tree, conn: ConnId, place: Place) -> WatchId {
        let head = self.head(tree, place);
        let key = self.arena.vacant_key();
        let id = WatchId(u32::try_from(key).expect("watches_max is far below"));
        let conn_next = std::mem::replace(&mut self.watcher_mut(conn).head, id);
        let tail = if head == WatchId::NONE {
            id
        } else {
            self.at(head).path_prev
        };
        self.arena.insert(Watch {
            conn,
            place,
            path_prev: tail,
            path_next: if head == WatchId::NONE { id } else { head },
            conn_prev: WatchId::NONE,
            conn_next,
            data: Modes::NONE,
            child: Modes::NONE,
        });
        if conn_next != WatchId::NONE {
            self.at_mut(conn_next).conn_prev = id;
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
        self.unindex(id);
        let watch = self.arena.remove(id.0 as usize);
        self.recursive -= usize::from(watch.data.has(Modes::RECURSIVE));
        match watch.conn_prev {
            WatchId::NONE => self.watcher_mut(watch.conn).head = watch.conn_next,
            prev => self.at_mut(prev).conn_next = watch.conn_next,
        }
        if watch.conn_next != WatchId::NONE {
            self.at_mut(watch.conn_next).conn_prev = watch.conn_prev;
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

    /// Sets the modes of a watch, and forgets it when none is left.
    fn narrow(&mut self, tree: &mut Tree, id: WatchId, data: Modes, child: Modes) {
        if data.is_empty() && child.is_empty() {
            self.unlink(tree, id);
            return;
        }
        let watch = self.at_mut(id);
        let was_recursive = watch.data.has(Modes::RECURSIVE);
        (watch.data, watch.child) = (data, child);
        self.recursive -= usize::from(was_recursive && !data.has(Modes::RECURSIVE));
    }

    /// Whether the connection has such a watch on exactly this path.
    pub(crate) fn has(&self, tree: &Tree, conn: ConnId, path: &[u8], kind: WatcherType) -> bool {
        let Some(id) = self
            .place(tree, path)
            .and_then(|place| self.find(conn, place))
        else {
            return false;
        };
        let (watch, what) = (self.at(id), Registration::of_type(kind));
        // A persistent watch is looked for in the data table alone (reference section 12.7).
        let in_child = kind != WatcherType::Persistent && watch.child.has(what.child);
        watch.data.has(what.data) || in_child
    }

    /// Removes such watches of the connection on exactly this path; whether there were any.
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
        removed
    }

    /// Forgets every watch of a connection.
    pub(crate) fn drop_conn(&mut self, tree: &mut Tree, conn: ConnId) {
        let Some(watcher) = self.watchers.get(conn.0 as usize) else {
            return;
        };
        let mut next = watcher.head;
        while next != WatchId::NONE {
            let id = next;
            next = self.at(id).conn_next;
            self.unlink(tree, id);
        }
    }

    // Firing. Source: reference sections 12.2 and 12.3.

    /// Fires the data table: watchers of the path, then recursive watchers of its ancestors.
    ///
    /// Every connection reached is marked with the number of this firing.
    pub(crate) fn fire_data(
        &mut self,
        tree: &mut Tree,
        event: &Event<'_>,
        effects: &mut impl Effects,
    ) {
        self.firing += 1;
        if let Some(place) = self.place(tree, event.path) {
            self.fire_ring(tree, place, event, effects, |watch| {
                (watch.data, Table::Data)
            });
        }
        if self.recursive == 0 {
            return;
        }
        let mut path = event.path;
        while path != b"/"
            && let Some(parent) = path::parent_of(path)
        {
            path = parent;
            if let Some(place) = self.place(tree, path) {
                self.fire_recursive(tree, place, event, effects);
            }
        }
    }

    /// Fires the child table of the path whose children changed.
    pub(crate) fn fire_child(
        &mut self,
        tree: &mut Tree,
        event: &Event<'_>,
        effects: &mut impl Effects,
    ) {
        self.firing += 1;
        if let Some(place) = self.place(tree, event.path) {
            self.fire_ring(tree, place, event, effects, |watch| {
                (watch.child, Table::Child)
            });
        }
    }

    /// A znode went: its data watchers hear it, then those child watchers that did not just hear.
    pub(crate) fn fire_deleted(
        &mut self,
        tree: &mut Tree,
        event: &Event<'_>,
        effects: &mut impl Effects,
    ) {
        debug_assert_eq!(event.kind, EventKind::Deleted);
        self.fire_data(tree, event, effects);
        // The same firing: who was reached by the first table is not told again by the second.
        if let Some(place) = self.place(tree, event.path) {
            self.fire_ring(tree, place, event, effects, |watch| {
                (watch.child, Table::Child)
            });
        }
    }

    fn fire_ring(
        &mut self,
        tree: &mut Tree,
        place: Place,
        event: &Event<'_>,
        effects: &mut impl Effects,
        table: impl Fn(&Watch) -> (Modes, Table),
    ) {
        let head = self.head(tree, place);
        if head == WatchId::NONE {
            return;
        }
        let tail = self.at(head).path_prev;
        let mut next = head;
        loop {
            let id = next;
            let watch = self.at(id);
            next = watch.path_next;
            let (modes, table) = table(watch);
            if !modes.is_empty() {
                let (conn, data, child) = (watch.conn, watch.data, watch.child);
                self.reach(conn, event, effects);
                if modes.has(Modes::STANDARD) && !self.keeps_fired() {
                    match table {
                        Table::Data => self.narrow(tree, id, data.without(Modes::STANDARD), child),
                        Table::Child => self.narrow(tree, id, data, child.without(Modes::STANDARD)),
                    }
                }
            }
            if id == tail {
                return;
            }
        }
    }

    fn fire_recursive(
        &mut self,
        tree: &Tree,
        place: Place,
        event: &Event<'_>,
        effects: &mut impl Effects,
    ) {
        let head = self.head(tree, place);
        let mut id = head;
        while id != WatchId::NONE {
            let watch = self.at(id);
            let (conn, next) = (watch.conn, watch.path_next);
            if watch.data.has(Modes::RECURSIVE) {
                self.reach(conn, event, effects);
            }
            id = if next == head { WatchId::NONE } else { next };
        }
    }

    /// Sends the event unless this firing has reached the connection already.
    fn reach(&mut self, conn: ConnId, event: &Event<'_>, effects: &mut impl Effects) {
        let firing = self.firing;
        let reached = std::mem::replace(&mut self.watcher_mut(conn).reached, firing);
        if reached != firing {
            effects.event(conn, event);
        }
    }

    // For check and dump.

    /// Every watch with its number and path.
    pub(crate) fn iter<'a>(
        &'a self,
        tree: &'a Tree,
    ) -> impl Iterator<Item = (WatchId, &'a Watch, &'a [u8])> {
        self.arena.iter().map(|(key, watch)| {
            let id = WatchId(u32::try_from(key).expect("ids are made from u32"));
            (id, watch, self.path(tree, watch.place))
        })
    }

    fn path<'a>(&'a self, tree: &'a Tree, place: Place) -> &'a [u8] {
        match place {
            Place::Znode(id) => tree[id].path(),
            Place::Absent(key) => &self.absent[key as usize].path,
        }
    }

    /// Walks the ring at a place; `None` if it does not come back to its head.
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

    /// The watches a connection is listed with.
    pub(crate) fn of_conn(&self, conn: ConnId) -> Vec<WatchId> {
        let mut list = Vec::new();
        let mut id = self
            .watchers
            .get(conn.0 as usize)
            .map_or(WatchId::NONE, |watcher| watcher.head);
        while id != WatchId::NONE && list.len() <= self.arena.len() {
            list.push(id);
            id = self.at(id).conn_next;
        }
        list
    }

    /// The paths without a znode that are watched, with the places of their rings.
    pub(crate) fn absent_paths(&self) -> impl Iterator<Item = (Place, &[u8])> {
        self.absent.iter().map(|(key, entry)| {
            (
                Place::Absent(u32::try_from(key).expect("keys are made from u32")),
                &*entry.path,
            )
        })
    }

    pub(crate) fn index_len(&self) -> usize {
        self.index.len()
    }

    pub(crate) const fn recursive(&self) -> usize {
        self.recursive
    }
}

#[derive(Clone, Copy)]
enum Table {
    Data,
    Child,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_is_32_bytes() {
        // With its slot in the index it is about 43 bytes; the goal is 80.
        assert_eq!(size_of::<Watch>(), 32);
    }
}
