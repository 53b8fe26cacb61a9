//! Who is at the other end of a connection: the identities it has proven.
//!
//! Nearly all connections of a server have the same identities, an address and nothing more, so
//! each distinct set is stored once and a connection holds its number.
//!
//! Source: reference sections 6.1 and 9.1.

use core::net::IpAddr;

use hashbrown::HashMap;
use minikeeper_protocol::Ustring;
use slab::Slab;

use crate::keys::IdentitiesId;

/// How an identity was proven. `world` and `auth` are words of access lists, not identities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Scheme {
    /// The address the connection comes from.
    Ip,
    /// A name and a password, sent in an auth packet.
    Digest,
    /// A SASL exchange.
    Sasl,
    /// A certificate, shown when the connection was made.
    X509,
    /// May do everything; comes with a digest, SASL or X.509 identity that is configured for it.
    Super,
}

impl Scheme {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Digest => "digest",
            Self::Sasl => "sasl",
            Self::X509 => "x509",
            Self::Super => "super",
        }
    }
}

/// One identity, save the address, which every connection has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identity {
    pub(crate) scheme: Scheme,
    /// In the form in which the original sends strings, see `Ustring::as_echoed`.
    pub(crate) id: Ustring,
}

/// Everything one connection has proven.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identities {
    pub(crate) address: IpAddr,
    /// In the order they were added, each once.
    pub(crate) added: Vec<Identity>,
}

impl Identities {
    /// What a fresh connection has.
    pub(crate) const fn of(address: IpAddr) -> Self {
        Self {
            address,
            added: Vec::new(),
        }
    }

    pub(crate) fn is_super(&self) -> bool {
        self.has_scheme(Scheme::Super)
    }

    pub(crate) fn has_scheme(&self, scheme: Scheme) -> bool {
        scheme == Scheme::Ip || self.of_scheme(scheme).next().is_some()
    }

    pub(crate) fn of_scheme(&self, scheme: Scheme) -> impl Iterator<Item = &Identity> {
        self.added
            .iter()
            .filter(move |identity| identity.scheme == scheme)
    }
}

/// Every distinct set of identities, with the number of connections that have it.
#[derive(Debug)]
pub(crate) struct IdentityTable {
    sets: Slab<Shared>,
    /// By content; never iterated.
    index: HashMap<Identities, IdentitiesId, foldhash::fast::FixedState>,
}

#[derive(Debug)]
struct Shared {
    set: Identities,
    users: usize,
}

impl IdentityTable {
    pub(crate) fn new() -> Self {
        Self {
            sets: Slab::new(),
            index: HashMap::default(),
        }
    }

    /// The number of a set, which the caller now uses once more.
    pub(crate) fn acquire(&mut self, set: Identities) -> IdentitiesId {
        if let Some(&id) = self.index.get(&set) {
            self.sets[id.0 as usize].users += 1;
            return id;
        }
        let shared = Shared {
            set: set.clone(),
            users: 1,
        };
        let key = u32::try_from(self.sets.insert(shared)).expect("fewer sets than connections");
        self.index.insert(set, IdentitiesId(key));
        IdentitiesId(key)
    }

    /// Ends one use.
    pub(crate) fn release(&mut self, id: IdentitiesId) {
        let shared = &mut self.sets[id.0 as usize];
        shared.users -= 1;
        if shared.users == 0 {
            let shared = self.sets.remove(id.0 as usize);
            self.index.remove(&shared.set);
        }
    }

    pub(crate) fn get(&self, id: IdentitiesId) -> &Identities {
        &self.sets[id.0 as usize].set
    }

    /// How often each set is used, for the check of the whole state.
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
    fn set_is_shared_and_goes_with_its_last_user() {
        let mut table = IdentityTable::new();
        let local = || Identities::of(Ipv4Addr::LOCALHOST.into());
        let (first, second) = (table.acquire(local()), table.acquire(local()));
        assert_eq!(first, second);
        table.release(first);
        assert_eq!(table.users().collect::<Vec<_>>(), [(first, 1)]);
        table.release(first);
        assert_eq!((table.users().count(), table.index.len()), (0, 0));
    }
}
