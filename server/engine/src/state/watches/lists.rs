//! The watches as lists: for the check of the whole state, its dump and the reports.

use super::{Place, Watch, Watcher, Watches};
use crate::{
    input::ConnId,
    state::{keys::WatchId, tree::Tree},
};

impl Watches {
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

    pub(crate) fn path<'a>(&'a self, tree: &'a Tree, place: Place) -> &'a [u8] {
        match place {
            Place::Znode(id) => tree[id].path(),
            Place::Absent(key) => self.absent.path(key),
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

    /// The watches of a connection, newest first.
    pub(crate) fn conn_watches(&self, conn: ConnId) -> impl Iterator<Item = WatchId> {
        let mut id = match self.watchers.get(conn.0 as usize) {
            Some(watcher) => watcher.head,
            None => WatchId::NONE,
        };
        std::iter::from_fn(move || {
            let this = (id != WatchId::NONE).then_some(id)?;
            id = self.at(this).conn_next;
            Some(this)
        })
        // More only if the links are broken, which the check of the whole state then sees.
        .take(self.arena.len() + 1)
    }

    /// The paths without a znode that are watched, with the places of their rings.
    pub(crate) fn absent_paths(&self) -> impl Iterator<Item = (Place, &[u8])> {
        self.absent
            .iter()
            .map(|(key, path)| (Place::Absent(key), path))
    }

    /// Connections that hold a data watch or held one, in their order.
    pub(crate) fn data_watchers(&self) -> impl Iterator<Item = ConnId> {
        let had = |(conn, watcher): (usize, &Watcher)| watcher.had_data.then_some(conn);
        let conns = self.watchers.iter().enumerate().filter_map(had);
        conns.map(|conn| ConnId(u32::try_from(conn).expect("made from u32")))
    }

    pub(crate) const fn in_both(&self) -> usize {
        self.in_both
    }

    pub(crate) fn index_len(&self) -> usize {
        self.index.len()
    }

    pub(crate) const fn recursive(&self) -> usize {
        self.recursive
    }
}
