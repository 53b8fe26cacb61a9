//! Copies a state in pieces, while it changes. The copy shows the state as it was at its beginning.
//!
//! Znodes are copied slot by slot. Until the copy has passed a slot, the first change of its znode
//! copies it, too. So no hold of the state is longer than a piece, and no piece waits for changes.
//! Rejected: to copy what the undo list would restore, which would keep every change and not only
//! the first of each znode.

use std::collections::BTreeMap;

use hashbrown::HashTable;
use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    input::Settings,
    state::{
        State,
        acl::AclTable,
        keys::{WatchId, ZnodeId},
        quota::Quotas,
        sessions::Sessions,
        tree::Tree,
        znode::{Owner, Znode},
    },
    work,
};

/// The znodes of a copy, by slot of the tree.
#[derive(Debug)]
pub(crate) struct SlotCopy {
    /// The slots that the copy has passed.
    copied: Vec<Option<Znode>>,
    /// The number of slots at the beginning.
    end: usize,
    /// Slots that have changed since, before the copy has passed them.
    before: BTreeMap<usize, Option<Znode>>,
    /// The index by path, unless it is large: then it is built again.
    index: Option<HashTable<ZnodeId>>,
}

/// The largest index that is copied, all of it at once. Unit: bytes.
const INDEX_BYTES_MAX: usize = 1 << 20;

impl SlotCopy {
    pub(crate) fn new(end: usize, index: &HashTable<ZnodeId>) -> Self {
        Self {
            index: (index.allocation_size() <= INDEX_BYTES_MAX).then(|| index.clone()),
            copied: Vec::with_capacity(end),
            end,
            before: BTreeMap::new(),
        }
    }

    /// Returns whether the copy still needs this slot.
    pub(crate) fn needs(&self, slot: usize) -> bool {
        (self.copied.len()..self.end).contains(&slot) && !self.before.contains_key(&slot)
    }

    /// Keeps a slot that is about to change.
    pub(crate) fn keep(&mut self, slot: usize, znode: Option<Znode>) {
        work::visit();
        self.before.insert(slot, znode);
    }

    /// Copies up to `slots` slots, and not many more than `bytes` bytes. Returns whether this was
    /// the rest.
    pub(crate) fn copy<'a>(
        &mut self,
        slots: usize,
        bytes: usize,
        znode_at: impl Fn(usize) -> Option<&'a Znode>,
    ) -> bool {
        let (mut slots_left, mut bytes_left) = (slots, bytes);
        while self.copied.len() < self.end && slots_left > 0 && bytes_left > 0 {
            work::visit();
            let slot = self.copied.len();
            let znode = match self.before.remove(&slot) {
                Some(before) => before,
                None => znode_at(slot).cloned(),
            };
            let length = znode.as_ref().map_or(0, Znode::body_bytes);
            bytes_left = bytes_left.saturating_sub(length);
            slots_left -= 1;
            self.copied.push(znode);
        }
        self.copied.len() == self.end
    }

    /// Returns the znodes with their slots, and the index if it was copied. Only for a whole copy.
    fn into_parts(
        self,
    ) -> (
        impl Iterator<Item = (usize, Znode)>,
        Option<HashTable<ZnodeId>>,
    ) {
        let slots = self.copied.into_iter().enumerate();
        let znodes = slots.filter_map(|(slot, znode)| {
            let mut znode = znode?;
            znode.watched = WatchId::NONE;
            Some((slot, znode))
        });
        (znodes, self.index)
    }
}

/// A copy of a state, whose tables are still to be built.
#[derive(Debug)]
pub(crate) struct StateCopy {
    settings: Settings,
    zxid: Zxid,
    znodes: SlotCopy,
    java_listing_order: bool,
    /// Without the ephemerals, which the znodes show.
    sessions: Sessions,
    /// With the uses at the beginning.
    acls: AclTable,
    quotas: Quotas,
    cleanup_ms: Option<u64>,
    nonces: u64,
}

impl State {
    /// Begins a copy, and drops the one that had begun before, if any.
    pub(crate) fn begin_copy(&mut self) {
        self.tree.begin_copy();
        self.copying = Some(Box::new(StateCopy {
            settings: self.settings.clone(),
            zxid: self.zxid,
            znodes: SlotCopy::new(0, &HashTable::new()),
            java_listing_order: self.tree.java_listing_order,
            sessions: self.sessions.without_ephemerals(),
            acls: self.acls.clone(),
            quotas: self.quotas.clone(),
            cleanup_ms: self.cleanup_ms,
            nonces: self.nonces,
        }));
    }

    /// Continues the copy; see [`SlotCopy::copy`]. `None` if none has begun.
    pub(crate) fn copy_more(&mut self, slots: usize, bytes: usize) -> Option<Option<StateCopy>> {
        self.copying.as_ref()?;
        let Some(znodes) = self.tree.copy_more(slots, bytes) else {
            return Some(None);
        };
        let mut copy = *self.copying.take()?;
        copy.znodes = znodes;
        Some(Some(copy))
    }

    /// Copies znodes, quotas and sessions, without connections and watches.
    pub(crate) fn fork(&mut self, next_session_id: SessionId) -> Self {
        self.begin_copy();
        let copy = self.copy_more(usize::MAX, usize::MAX).flatten();
        copy.expect("copied at once").finish(next_session_id)
    }
}

impl StateCopy {
    /// Builds the tables.
    pub(crate) fn finish(self, next_session_id: SessionId) -> State {
        let hash_seed = self.settings.hash_seed;
        let (znodes, index) = self.znodes.into_parts();
        let mut state = State {
            zxid: self.zxid,
            tree: Tree::of(znodes, index, hash_seed),
            sessions: self.sessions,
            acls: self.acls,
            quotas: self.quotas,
            cleanup_ms: self.cleanup_ms,
            deadline_moved: true,
            nonces: self.nonces,
            ..State::new(self.settings)
        };
        state.tree.java_listing_order = self.java_listing_order;
        state.sessions.part_all();
        state.sessions.next_id = next_session_id;
        let mut uses = BTreeMap::new();
        let owners = state.tree.iter().filter_map(|(id, znode)| {
            *uses.entry(znode.acl.0).or_default() += 1;
            (znode.owner != Owner::PERSISTENT).then_some(id)
        });
        for id in owners.collect::<Vec<_>>() {
            state.remember_owner(id);
        }
        state.acls.set_uses(&uses);
        state
    }
}
