//! The identities as which a connection is authenticated.
//!
//! Nearly all connections of a server have the same identities, just an address, so each distinct
//! set is stored once and a connection holds its index.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.1 and 9.1.

use core::net::IpAddr;

use hashbrown::HashTable;
use minikeeper_protocol::Ustring;
use slab::Slab;

use crate::{hashing::TableHasher, state::keys::IdentitiesId, work};

/// How an identity was authenticated. `world` and `auth` occur in access lists, but are no
/// identities.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Scheme {
    /// By the client's address.
    Ip,
    /// By a name and a password in an auth packet.
    Digest,
    /// By a SASL exchange.
    Sasl,
    /// By a client certificate in the TLS handshake.
    X509,
    /// By a multiple of the number in `/key`.
    Key,
    /// May do everything; added with a digest, SASL or X.509 identity that is configured for it.
    Super,
}

impl Scheme {
    pub(crate) const ALL: [Self; 6] = [
        Self::Ip,
        Self::Digest,
        Self::Sasl,
        Self::X509,
        Self::Key,
        Self::Super,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Digest => "digest",
            Self::Sasl => "sasl",
            Self::X509 => "x509",
            Self::Key => "key",
            Self::Super => "super",
        }
    }
}

/// The sort key of identities: most differ before their bytes are compared.
type SortKey<'a> = (Scheme, usize, &'a [u8]);

const fn key(scheme: Scheme, id: &[u8]) -> SortKey<'_> {
    (scheme, id.len(), id)
}

/// One identity other than the address, which every connection has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identity {
    pub(crate) scheme: Scheme,
    /// In the form in which ZooKeeper sends strings: see `Ustring::as_echoed`.
    pub(crate) id: Ustring,
}

impl Identity {
    fn key(&self) -> SortKey<'_> {
        key(self.scheme, self.id.as_bytes())
    }
}

/// The counted size of a set without its identities: slots and the allocator's rounding. Unit:
/// bytes.
const SET_BYTES: usize = 128;

/// The counted size of an identity without its id. Unit: bytes.
const IDENTITY_BYTES: usize = 96;

/// The maximum total length of the ids of one connection. Unit: bytes.
pub(crate) const IDS_BYTES_MAX: usize = 64 << 10;

/// All identities of one connection.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identities {
    pub(crate) address: IpAddr,
    /// In the order in which they were added, each once.
    added: Vec<Identity>,
    /// Indexes into `added`, in the order of [`Identity::key`].
    sorted: Vec<u32>,
}

impl Identities {
    /// Returns the identities of a new connection: just its address.
    pub(crate) const fn of(address: IpAddr) -> Self {
        Self {
            address,
            added: Vec::new(),
            sorted: Vec::new(),
        }
    }

    /// Returns all but the address, in the order in which they were added, each once.
    pub(crate) fn added(&self) -> &[Identity] {
        &self.added
    }

    /// Adds an identity, unless it is already included.
    pub(crate) fn add(&mut self, identity: Identity) {
        if let Err(at) = self.search(identity.key()) {
            let place = u32::try_from(self.added.len()).expect("identities_max is far below");
            self.sorted.insert(at, place);
            self.added.push(identity);
        }
    }

    /// Returns whether this identity is included.
    pub(crate) fn has(&self, scheme: Scheme, id: &[u8]) -> bool {
        self.search(key(scheme, id)).is_ok()
    }

    fn search(&self, key: SortKey<'_>) -> Result<usize, usize> {
        self.sorted.binary_search_by(|place| {
            work::visit();
            self.added[*place as usize].key().cmp(&key)
        })
    }

    /// Returns the total length of the ids. Unit: bytes.
    pub(crate) fn ids_bytes(&self) -> usize {
        self.added
            .iter()
            .map(|added| added.id.as_bytes().len())
            .sum()
    }

    /// Returns the size of the set as counted against `tree_bytes_max`. A set with only an address
    /// counts as part of its connection.
    pub(crate) fn counted_bytes(&self) -> usize {
        if self.added.is_empty() {
            return 0;
        }
        SET_BYTES + self.added.len() * IDENTITY_BYTES + self.ids_bytes()
    }

    pub(crate) fn is_super(&self) -> bool {
        self.has_scheme(Scheme::Super)
    }

    pub(crate) fn has_scheme(&self, scheme: Scheme) -> bool {
        // The empty id is the first of its scheme.
        let first = self.search(key(scheme, b"")).unwrap_or_else(|at| at);
        let found = self.sorted.get(first);
        scheme == Scheme::Ip
            || found.is_some_and(|place| self.added[*place as usize].scheme == scheme)
    }
}

/// All distinct sets of identities, each with the number of connections that have it.
#[derive(Debug)]
pub(crate) struct IdentityTable {
    sets: Slab<SharedSet>,
    /// By content; never iterated.
    index: HashTable<IdentitiesId>,
    hasher: TableHasher,
    /// The size of the sets as counted against `tree_bytes_max`.
    bytes: usize,
}

#[derive(Debug)]
struct SharedSet {
    set: Identities,
    users: usize,
}

impl IdentityTable {
    pub(crate) fn new(hash_seed: [u64; 2]) -> Self {
        Self {
            sets: Slab::new(),
            index: HashTable::new(),
            hasher: TableHasher::new(hash_seed, b"identity"),
            bytes: 0,
        }
    }

    /// Returns the size of the sets as counted against `tree_bytes_max`.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the index of a set, which it adds if necessary, and counts a use by the caller.
    pub(crate) fn acquire(&mut self, set: Identities) -> IdentitiesId {
        let hash = self.hasher.hash_one(&set);
        let is_it = |id: &IdentitiesId| *self.get(*id) == set;
        if let Some(&id) = self.index.find(hash, is_it) {
            self.sets[id.0 as usize].users += 1;
            return id;
        }
        self.bytes += set.counted_bytes();
        let key = self.sets.insert(SharedSet { set, users: 1 });
        let id = IdentitiesId(u32::try_from(key).expect("fewer sets than connections"));
        let (sets, hasher) = (&self.sets, &self.hasher);
        self.index
            .insert_unique(hash, id, |id| hasher.hash_one(&sets[id.0 as usize].set));
        id
    }

    /// Ends a use, and removes the set with its last one.
    pub(crate) fn release(&mut self, id: IdentitiesId) {
        let shared = &mut self.sets[id.0 as usize];
        shared.users -= 1;
        if shared.users == 0 {
            let shared = self.sets.remove(id.0 as usize);
            self.bytes -= shared.set.counted_bytes();
            self.index
                .find_entry(self.hasher.hash_one(&shared.set), |other| *other == id)
                .expect("every set is in the index")
                .remove();
        }
    }

    pub(crate) fn get(&self, id: IdentitiesId) -> &Identities {
        &self.sets[id.0 as usize].set
    }

    /// Returns the number of uses of each set, for the check of the whole state.
    pub(crate) fn users(&self) -> impl Iterator<Item = (IdentitiesId, usize)> {
        self.sets.iter().map(|(key, shared)| {
            (
                IdentitiesId(u32::try_from(key).expect("ids are made from u32")),
                shared.users,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn set_is_shared_and_removed_with_its_last_use() {
        let mut table = IdentityTable::new([0; 2]);
        let local = || Identities::of(Ipv4Addr::LOCALHOST.into());
        let (first, second) = (table.acquire(local()), table.acquire(local()));
        assert_eq!(first, second);
        table.release(first);
        assert_eq!(table.users().collect::<Vec<_>>(), [(first, 1)]);
        table.release(first);
        assert_eq!((table.users().count(), table.index.len()), (0, 0));
    }
}
