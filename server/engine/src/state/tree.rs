//! The tree: an arena of znodes, an index by full path, and the links between relatives.
//!
//! Children are linked in the order of creation, which costs eight bytes per znode, no comparison
//! and no allocation. Listings are in order of creation, unless ZooKeeper's order is configured:
//! see `java_listing.rs`.

use hashbrown::HashTable;
use minikeeper_protocol::{Zxid, path};
use slab::Slab;

use crate::{
    hashing::TableHasher,
    state::{
        copying::SlotCopy,
        java_listing,
        keys::{AclId, WatchId, ZnodeId},
        znode::{Owner, Znode},
    },
    work,
};

/// The counted size of a znode without its path and data: its slot in the arena, and its share of
/// the index and of the allocator's rounding. Unit: bytes.
pub const ZNODE_BYTES: usize = 128;

/// The parent path of all quotas.
pub(crate) const QUOTA: &[u8] = b"/zookeeper/quota";

/// The paths that clients cannot delete. Source: `docs/zookeeper-protocol.md` section 5.4.
pub(crate) const SPECIAL: [&[u8]; 4] = [b"/", b"/zookeeper", QUOTA, b"/zookeeper/config"];

#[derive(Debug)]
pub(crate) struct Tree {
    arena: Slab<Znode>,
    /// Whether children are listed in ZooKeeper's order.
    pub(crate) java_listing_order: bool,
    /// By path; never iterated, so its order reaches no output.
    index: HashTable<ZnodeId>,
    hasher: TableHasher,
    /// The total size of paths and data, plus [`ZNODE_BYTES`] for each znode. Unit: bytes.
    bytes: usize,
    ephemerals: usize,
    /// A copy that has begun: every change of a slot comes after [`Tree::keep`].
    copying: Option<Box<SlotCopy>>,
}

impl std::ops::Index<ZnodeId> for Tree {
    type Output = Znode;

    #[inline]
    fn index(&self, id: ZnodeId) -> &Znode {
        &self.arena[id.0 as usize]
    }
}

impl std::ops::IndexMut<ZnodeId> for Tree {
    #[inline]
    fn index_mut(&mut self, id: ZnodeId) -> &mut Znode {
        if self.copying.is_some() {
            self.keep(id.0 as usize);
        }
        &mut self.arena[id.0 as usize]
    }
}

impl Tree {
    /// Returns a tree without any znode, even the root.
    pub(crate) fn empty(hash_seed: [u64; 2]) -> Self {
        Self {
            arena: Slab::new(),
            java_listing_order: false,
            index: HashTable::new(),
            hasher: TableHasher::new(hash_seed, b"paths---"),
            bytes: 0,
            ephemerals: 0,
            copying: None,
        }
    }

    /// Returns the tree of a new server.
    pub(crate) fn new(hash_seed: [u64; 2]) -> Self {
        let mut tree = Self::empty(hash_seed);
        for path in SPECIAL {
            let acl = if path == b"/zookeeper/config" {
                AclId::WORLD_READ
            } else {
                AclId::WORLD_ALL
            };
            let znode = Znode::new(path, Some(b""), Owner::PERSISTENT, acl, Zxid(0), 0);
            let parent = if path == b"/" {
                ZnodeId::NONE
            } else {
                let parent = path::parent_of(path).expect("a special path has a slash");
                tree.find(parent)
                    .expect("special paths are listed top down")
            };
            let id = tree.insert(znode, parent);
            if path == b"/zookeeper/config" {
                tree[id].aversion = -1;
            }
        }
        tree
    }

    /// Returns the tree with these znodes in these slots, which are linked already. Builds the index
    /// if there is none.
    pub(crate) fn of(
        znodes: impl Iterator<Item = (usize, Znode)>,
        index: Option<HashTable<ZnodeId>>,
        hash_seed: [u64; 2],
    ) -> Self {
        let mut tree = Self::empty(hash_seed);
        tree.arena = znodes.collect();
        let is_indexed = index.is_some();
        tree.index = index.unwrap_or_else(|| HashTable::with_capacity(tree.arena.len()));
        for (slot, znode) in &tree.arena {
            tree.bytes += ZNODE_BYTES + znode.body_bytes();
            tree.ephemerals += usize::from(znode.owner.is_ephemeral());
            if is_indexed {
                continue;
            }
            let id = ZnodeId(u32::try_from(slot).expect("ids are made from u32"));
            let (arena, hasher) = (&tree.arena, &tree.hasher);
            let hash = hasher.hash_bytes(znode.path());
            tree.index.insert_unique(hash, id, |id| {
                hasher.hash_bytes(arena[id.0 as usize].path())
            });
        }
        tree
    }

    /// Begins a copy.
    pub(crate) fn begin_copy(&mut self) {
        self.copying = Some(Box::new(SlotCopy::new(self.slots_end(), &self.index)));
    }

    /// Continues the copy; see [`SlotCopy::copy`]. Returns it once it is whole.
    pub(crate) fn copy_more(&mut self, slots: usize, bytes: usize) -> Option<SlotCopy> {
        let (copying, arena) = (self.copying.as_mut()?, &self.arena);
        let is_whole = copying.copy(slots, bytes, |slot| arena.get(slot));
        is_whole
            .then(|| self.copying.take())
            .flatten()
            .map(|copy| *copy)
    }

    /// Copies a slot that is about to change, if there is a copy that needs it.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, slot: usize) {
        if let Some(copying) = &mut self.copying
            && copying.needs(slot)
        {
            copying.keep(slot, self.arena.get(slot).cloned());
        }
    }

    /// Sets the head of the ring of watches of a znode, which a copy does not have.
    pub(crate) fn set_watched(&mut self, id: ZnodeId, head: WatchId) {
        self.arena[id.0 as usize].watched = head;
    }

    /// Returns the number of znodes, the built-in ones included.
    pub(crate) fn len(&self) -> usize {
        self.arena.len()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn ephemerals(&self) -> usize {
        self.ephemerals
    }

    /// Returns the znode at exactly this path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<ZnodeId> {
        self.index
            .find(self.hasher.hash_bytes(path), |id| self[*id].path() == path)
            .copied()
    }

    /// Does the same as [`Tree::find`] for reads, where the empty path is the root
    /// (`docs/zookeeper-protocol.md` section 5.5).
    #[inline]
    pub(crate) fn find_for_read(&self, path: &[u8]) -> Option<ZnodeId> {
        if path.is_empty() {
            Some(ZnodeId::ROOT)
        } else {
            self.find(path)
        }
    }

    /// Adds a znode to its parent, after its siblings. Does not change the parent's counters.
    pub(crate) fn insert(&mut self, mut znode: Znode, parent: ZnodeId) -> ZnodeId {
        let id = ZnodeId(
            u32::try_from(self.arena.vacant_key()).expect("tree_bytes_max is reached before"),
        );
        znode.parent = parent;
        if parent != ZnodeId::NONE {
            if self.java_listing_order {
                let table_bits = java_listing::table_bits_with(self, parent, znode.name());
                self[parent].family_mut().table_bits = table_bits;
            }
            let family = self[parent].family_mut();
            family.count += 1;
            family.path_bytes += znode.path().len();
            znode.prev = std::mem::replace(&mut family.last, id);
            if znode.prev == ZnodeId::NONE {
                family.first = id;
            } else {
                let prev = znode.prev;
                self[prev].next = id;
            }
        }
        self.store(znode);
        id
    }

    /// Puts back a znode that [`Tree::remove`] returned, between its former siblings.
    pub(crate) fn restore(&mut self, znode: Znode) -> ZnodeId {
        let (parent, prev, next) = (znode.parent, znode.prev, znode.next);
        let path_bytes = znode.path().len();
        let id = self.store(znode);
        if prev != ZnodeId::NONE {
            self[prev].next = id;
        }
        if next != ZnodeId::NONE {
            self[next].prev = id;
        }
        let family = self[parent].family_mut();
        family.count += 1;
        family.path_bytes += path_bytes;
        if prev == ZnodeId::NONE {
            family.first = id;
        }
        if next == ZnodeId::NONE {
            family.last = id;
        }
        id
    }

    fn store(&mut self, znode: Znode) -> ZnodeId {
        self.bytes += ZNODE_BYTES + znode.body_bytes();
        self.ephemerals += usize::from(znode.owner.is_ephemeral());
        let hash = self.hasher.hash_bytes(znode.path());
        if self.copying.is_some() {
            self.keep(self.arena.vacant_key());
        }
        let id = ZnodeId(
            u32::try_from(self.arena.insert(znode)).expect("tree_bytes_max is reached before"),
        );
        let (arena, hasher) = (&self.arena, &self.hasher);
        self.index.insert_unique(hash, id, |id| {
            hasher.hash_bytes(arena[id.0 as usize].path())
        });
        id
    }

    /// Removes a childless znode. Does not change the parent's counters. The znode keeps its links,
    /// so that [`Tree::restore`] can put it back as long as nothing else has changed.
    pub(crate) fn remove(&mut self, id: ZnodeId) -> Znode {
        let hash = self.hasher.hash_bytes(self[id].path());
        self.index
            .find_entry(hash, |other| *other == id)
            .expect("every znode is in the index")
            .remove();
        if self.copying.is_some() {
            self.keep(id.0 as usize);
        }
        let znode = self.arena.remove(id.0 as usize);
        debug_assert_eq!(znode.num_children(), 0, "only a childless znode is removed");
        if znode.prev != ZnodeId::NONE {
            self[znode.prev].next = znode.next;
        }
        if znode.next != ZnodeId::NONE {
            self[znode.next].prev = znode.prev;
        }
        let family = self[znode.parent].family_mut();
        family.count -= 1;
        family.path_bytes -= znode.path().len();
        if family.first == id {
            family.first = znode.next;
        }
        if family.last == id {
            family.last = znode.prev;
        }
        self.bytes -= ZNODE_BYTES + znode.body_bytes();
        self.ephemerals -= usize::from(znode.owner.is_ephemeral());
        znode
    }

    /// Replaces only the data.
    #[inline]
    pub(crate) fn set_data(&mut self, id: ZnodeId, data: Option<&[u8]>) -> &mut Znode {
        if self.copying.is_some() {
            self.keep(id.0 as usize);
        }
        let znode = &mut self.arena[id.0 as usize];
        let before = znode.body_bytes();
        znode.set_data(data);
        self.bytes = self.bytes - before + znode.body_bytes();
        znode
    }

    /// Returns the children, oldest first.
    pub(crate) fn children(&self, parent: ZnodeId) -> Children<'_> {
        let family = self[parent].family.as_deref();
        Children {
            tree: self,
            next: family.map_or(ZnodeId::NONE, |family| family.first),
            left: family.map_or(0, |family| family.count as usize),
        }
    }

    /// Returns the children in the order of a listing.
    pub(crate) fn listing(&self, parent: ZnodeId) -> ChildListing<'_> {
        if self.java_listing_order {
            ChildListing::Java(java_listing::listed(self, parent).into_iter())
        } else {
            ChildListing::Created(self.children(parent))
        }
    }

    /// Returns the number of descendants of a znode.
    pub(crate) fn count_descendants(&self, id: ZnodeId) -> usize {
        let mut waiting = vec![id];
        let mut count = 0;
        while let Some(id) = waiting.pop() {
            count += self[id].num_children() as usize;
            waiting.extend(self.children(id));
        }
        count
    }

    /// Returns the end of the arena: every znode is in a slot below it.
    pub(crate) fn slots_end(&self) -> usize {
        self.arena.capacity()
    }

    /// Returns the znode in this slot of the arena, if there is one.
    pub(crate) fn slot(&self, slot: usize) -> Option<&Znode> {
        self.arena.get(slot)
    }

    /// Returns every znode, in the order of the arena.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ZnodeId, &Znode)> {
        self.arena.iter().map(|(id, znode)| {
            (
                ZnodeId(u32::try_from(id).expect("ids are made from u32")),
                znode,
            )
        })
    }
}

/// Walks the children of a znode, oldest first.
pub(crate) struct Children<'a> {
    tree: &'a Tree,
    next: ZnodeId,
    left: usize,
}

impl Iterator for Children<'_> {
    type Item = ZnodeId;

    fn next(&mut self) -> Option<ZnodeId> {
        if self.next == ZnodeId::NONE {
            return None;
        }
        work::visit();
        let id = self.next;
        self.next = self.tree[id].next;
        self.left -= 1;
        Some(id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Children<'_> {}

/// Walks the children of a znode in the order of a listing.
pub(crate) enum ChildListing<'a> {
    /// In order of creation.
    Created(Children<'a>),
    /// In ZooKeeper's order.
    Java(std::vec::IntoIter<ZnodeId>),
}

impl Iterator for ChildListing<'_> {
    type Item = ZnodeId;

    fn next(&mut self) -> Option<ZnodeId> {
        match self {
            Self::Created(children) => children.next(),
            Self::Java(children) => children.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Created(children) => children.size_hint(),
            Self::Java(children) => children.size_hint(),
        }
    }
}

impl ExactSizeIterator for ChildListing<'_> {}
