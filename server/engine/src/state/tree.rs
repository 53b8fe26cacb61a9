//! The tree: an arena of znodes, an index by full path, and the links between relatives.
//!
//! Children hang in their parent in the order of their creation, each linked to the next, which
//! costs eight bytes a znode, no comparison and no allocation. A listing comes in creation order,
//! unless that of ZooKeeper is wanted, see `java_listing.rs`.

use hashbrown::HashTable;
use minikeeper_protocol::{Zxid, path};
use slab::Slab;

use crate::{
    hashing::TableHasher,
    state::{
        java_listing,
        keys::{AclId, ZnodeId},
        znode::{Owner, Znode},
    },
    work,
};

/// What a znode is counted with beyond its path and data, in bytes: the arena's slot and its
/// share of the index and of the allocator's rounding.
pub(crate) const ZNODE_BYTES: usize = 128;

/// The parent path of all quotas.
pub(crate) const QUOTA: &[u8] = b"/zookeeper/quota";

/// The paths no client can delete. Source: `docs/zookeeper-protocol.md` section 5.4.
pub(crate) const SPECIAL: [&[u8]; 4] = [b"/", b"/zookeeper", QUOTA, b"/zookeeper/config"];

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    arena: Slab<Znode>,
    /// Whether children are listed in the order of ZooKeeper.
    pub(crate) java_listing_order: bool,
    /// By path; never iterated, so its order reaches no output.
    index: HashTable<ZnodeId>,
    hasher: TableHasher,
    /// Paths, data and [`ZNODE_BYTES`] for each znode.
    bytes: usize,
    ephemerals: usize,
}

impl std::ops::Index<ZnodeId> for Tree {
    type Output = Znode;

    fn index(&self, id: ZnodeId) -> &Znode {
        &self.arena[id.0 as usize]
    }
}

impl std::ops::IndexMut<ZnodeId> for Tree {
    fn index_mut(&mut self, id: ZnodeId) -> &mut Znode {
        &mut self.arena[id.0 as usize]
    }
}

impl Tree {
    /// No znode, not even the root.
    pub(crate) fn empty(hash_seed: [u64; 2]) -> Self {
        Self {
            arena: Slab::new(),
            java_listing_order: false,
            index: HashTable::new(),
            hasher: TableHasher::new(hash_seed, b"paths---"),
            bytes: 0,
            ephemerals: 0,
        }
    }

    /// The tree of a fresh server.
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

    /// The number of znodes, the built-in ones included.
    pub(crate) fn len(&self) -> usize {
        self.arena.len()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn ephemerals(&self) -> usize {
        self.ephemerals
    }

    /// The znode at exactly this path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<ZnodeId> {
        self.index
            .find(self.hasher.hash_bytes(path), |id| self[*id].path() == path)
            .copied()
    }

    /// As [`Tree::find`]; for reads the empty path is the root (`docs/zookeeper-protocol.md`
    /// section 5.5).
    pub(crate) fn find_for_read(&self, path: &[u8]) -> Option<ZnodeId> {
        if path.is_empty() {
            Some(ZnodeId::ROOT)
        } else {
            self.find(path)
        }
    }

    /// Puts a znode below its parent, behind its siblings. The parent's counters stay.
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

    /// Puts back a znode that [`Tree::remove`] took, between the siblings it had.
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
        let id = ZnodeId(
            u32::try_from(self.arena.insert(znode)).expect("tree_bytes_max is reached before"),
        );
        let (arena, hasher) = (&self.arena, &self.hasher);
        self.index.insert_unique(hash, id, |id| {
            hasher.hash_bytes(arena[id.0 as usize].path())
        });
        id
    }

    /// Takes a childless znode out. The parent's counters stay, the znode keeps its links, so
    /// that [`Tree::restore`] can put it back while nothing else has changed.
    pub(crate) fn remove(&mut self, id: ZnodeId) -> Znode {
        let hash = self.hasher.hash_bytes(self[id].path());
        self.index
            .find_entry(hash, |other| *other == id)
            .expect("every znode is in the index")
            .remove();
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

    /// Replaces the data and nothing else.
    #[inline]
    pub(crate) fn set_data(&mut self, id: ZnodeId, data: Option<&[u8]>) -> &mut Znode {
        let znode = &mut self.arena[id.0 as usize];
        let before = znode.body_bytes();
        znode.set_data(data);
        self.bytes = self.bytes - before + znode.body_bytes();
        znode
    }

    /// The children, oldest first.
    pub(crate) fn children(&self, parent: ZnodeId) -> Children<'_> {
        let family = self[parent].family.as_deref();
        Children {
            tree: self,
            next: family.map_or(ZnodeId::NONE, |family| family.first),
            left: family.map_or(0, |family| family.count as usize),
        }
    }

    /// The children, in the order of a listing.
    pub(crate) fn listing(&self, parent: ZnodeId) -> ChildListing<'_> {
        if self.java_listing_order {
            ChildListing::Java(java_listing::listed(self, parent).into_iter())
        } else {
            ChildListing::Created(self.children(parent))
        }
    }

    /// The number of descendants of this znode.
    pub(crate) fn count_descendants(&self, id: ZnodeId) -> usize {
        let mut waiting = vec![id];
        let mut count = 0;
        while let Some(id) = waiting.pop() {
            count += self[id].num_children() as usize;
            waiting.extend(self.children(id));
        }
        count
    }

    /// Every znode, in the order of the arena.
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
    /// That of their creation.
    Created(Children<'a>),
    /// That of ZooKeeper.
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
