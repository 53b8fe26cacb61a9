//! Watched paths without a znode.

use hashbrown::HashTable;
use slab::Slab;

use crate::{hashing::TableHasher, state::keys::WatchId};

#[derive(Debug)]
pub(crate) struct AbsentPaths {
    paths: Slab<AbsentPath>,
    /// By path; never iterated.
    index: HashTable<u32>,
    hasher: TableHasher,
    /// The total length of the paths, plus [`ENTRY_BYTES`] for each. Unit: bytes.
    bytes: usize,
}

/// The counted size of an entry without its path: its slots and the allocator's rounding. Unit:
/// bytes.
const ENTRY_BYTES: usize = 64;

#[derive(Debug)]
struct AbsentPath {
    path: Box<[u8]>,
    /// The head of the ring of watches on the path.
    head: WatchId,
}

impl AbsentPaths {
    pub(crate) fn new(hash_seed: [u64; 2]) -> Self {
        let hasher = TableHasher::new(hash_seed, b"absent--");
        Self {
            paths: Slab::new(),
            index: HashTable::new(),
            hasher,
            bytes: 0,
        }
    }

    /// Returns the size of the entries as counted against `tree_bytes_max`.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn find(&self, path: &[u8]) -> Option<u32> {
        self.index
            .find(self.hasher.hash_bytes(path), |key| self.path(*key) == path)
            .copied()
    }

    /// Adds a new path, without watches yet.
    pub(crate) fn add(&mut self, path: &[u8]) -> u32 {
        self.bytes += ENTRY_BYTES + path.len();
        let entry = AbsentPath {
            path: path.into(),
            head: WatchId::NONE,
        };
        let key = u32::try_from(self.paths.insert(entry)).expect("watches_max is far below");
        let (paths, hasher) = (&self.paths, &self.hasher);
        self.index
            .insert_unique(hasher.hash_bytes(path), key, |key| {
                hasher.hash_bytes(&paths[*key as usize].path)
            });
        key
    }

    pub(crate) fn remove(&mut self, key: u32) {
        let entry = self.paths.remove(key as usize);
        self.bytes -= ENTRY_BYTES + entry.path.len();
        self.index
            .find_entry(self.hasher.hash_bytes(&entry.path), |other| *other == key)
            .expect("every absent path is in the index")
            .remove();
    }

    pub(crate) fn path(&self, key: u32) -> &[u8] {
        &self.paths[key as usize].path
    }

    pub(crate) fn head(&self, key: u32) -> WatchId {
        self.paths[key as usize].head
    }

    pub(crate) fn set_head(&mut self, key: u32, head: WatchId) {
        self.paths[key as usize].head = head;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.paths.iter().map(|(key, entry)| {
            (
                u32::try_from(key).expect("keys are made from u32"),
                &*entry.path,
            )
        })
    }
}
