//! Access lists: stored once however many znodes share them, and checked for sense.
//!
//! What a list grants is decided in `permission.rs`.
//!
//! Source: reference sections 9.2 and 9.5.

use bytes::Bytes;
use hashbrown::HashTable;
use minikeeper_protocol::{Acl, AclList, ErrorCode, Ustring};
use slab::Slab;

use crate::{
    hashing::TableHasher,
    identities::{Identities, Scheme},
    identity,
    input::Settings,
    keys::AclId,
    sasl, x500,
};

#[derive(Clone, Debug)]
pub(crate) struct AclTable {
    lists: Slab<Shared>,
    /// By content; never iterated.
    index: HashTable<AclId>,
    hasher: TableHasher,
    schemes: Schemes,
}

/// Which schemes mean something in access lists, and whether these are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schemes {
    pub(crate) digest: bool,
    pub(crate) sasl: bool,
    pub(crate) x509: bool,
    pub(crate) key: bool,
    /// Off: everybody may do everything, lists are only stored.
    pub(crate) enforced: bool,
}

impl Schemes {
    pub(crate) const fn of(settings: &Settings) -> Self {
        Self {
            digest: settings.digest_enabled,
            sasl: settings.sasl.is_some(),
            x509: settings.x509,
            key: settings.key_scheme,
            enforced: !settings.skip_acl,
        }
    }
}

#[derive(Clone, Debug)]
struct Shared {
    list: AclList,
    /// How many znodes and undo entries refer to it; not counted for the two built-in lists.
    users: usize,
}

impl AclTable {
    pub(crate) fn new(schemes: Schemes, hash_seed: [u64; 2]) -> Self {
        let mut table = Self {
            lists: Slab::new(),
            index: HashTable::new(),
            hasher: TableHasher::new(hash_seed, b"acls----"),
            schemes,
        };
        for list in [AclList::world_all(), AclList::world_read()] {
            table.add(list);
        }
        table
    }

    pub(crate) const fn schemes(&self) -> Schemes {
        self.schemes
    }

    pub(crate) const fn is_enforced(&self) -> bool {
        self.schemes.enforced
    }

    fn add(&mut self, list: AclList) -> AclId {
        let hash = self.hash(&list);
        let key = self.lists.insert(Shared { list, users: 1 });
        let id = AclId(u32::try_from(key).expect("there are fewer lists than znodes"));
        let (lists, hasher) = (&self.lists, &self.hasher);
        self.index.insert_unique(hash, id, |id| {
            hasher.hash_bytes(wire_of(&lists[id.0 as usize].list))
        });
        id
    }

    fn hash(&self, list: &AclList) -> u64 {
        self.hasher.hash_bytes(wire_of(list))
    }

    fn find_list(&self, list: &AclList) -> Option<AclId> {
        let is_it = |id: &AclId| self.lists[id.0 as usize].list.as_wire() == list.as_wire();
        self.index.find(self.hash(list), is_it).copied()
    }

    /// The id of a list, which the caller now uses once more.
    pub(crate) fn acquire(&mut self, list: &AclList) -> AclId {
        if list.as_wire() == self.lists[0].list.as_wire() {
            return AclId::WORLD_ALL;
        }
        match self.find_list(list) {
            Some(id) => {
                self.lists[id.0 as usize].users += 1;
                id
            }
            None => self.add(list.detached()),
        }
    }

    /// Ends one use.
    pub(crate) fn release(&mut self, id: AclId) {
        if id == AclId::WORLD_ALL || id == AclId::WORLD_READ {
            return;
        }
        let shared = &mut self.lists[id.0 as usize];
        shared.users -= 1;
        if shared.users == 0 {
            let shared = self.lists.remove(id.0 as usize);
            self.index
                .find_entry(self.hash(&shared.list), |other| *other == id)
                .expect("every list is in the index")
                .remove();
        }
    }

    pub(crate) fn get(&self, id: AclId) -> &AclList {
        &self.lists[id.0 as usize].list
    }

    /// The list of this id, if there is one.
    pub(crate) fn find(&self, id: AclId) -> Option<&AclList> {
        self.lists.get(id.0 as usize).map(|shared| &shared.list)
    }

    /// How often each list is used, for the check of the whole state.
    pub(crate) fn users(&self) -> impl Iterator<Item = (AclId, usize)> {
        self.lists.iter().skip(2).map(|(key, shared)| {
            (
                AclId(u32::try_from(key).expect("ids are made from u32")),
                shared.users,
            )
        })
    }
}

/// What a list is hashed by; no stored list is null.
fn wire_of(list: &AclList) -> &[u8] {
    list.as_wire().unwrap_or_default()
}

/// Checks a list a client wants to store, and brings it into the form that is stored.
///
/// Source: reference section 9.5, the original's `fixupACL`.
///
/// # Errors
/// INVALIDACL when the list is empty or an entry makes no sense here; MARSHALLINGERROR for a null
/// id where one is needed, as the original's internal error answers.
pub(crate) fn fix_up(
    list: &AclList,
    schemes: Schemes,
    who: &Identities,
) -> Result<AclList, ErrorCode> {
    if list.as_wire() == AclList::world_all().as_wire() {
        return Ok(AclList::world_all());
    }
    let mut entries: Vec<Acl> = Vec::new();
    for mut entry in list.entries() {
        for text in [&mut entry.scheme, &mut entry.id] {
            *text = text.take().map(as_stored);
        }
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Err(ErrorCode::InvalidAcl);
    }
    let mut fixed = Vec::with_capacity(entries.len());
    for entry in entries {
        let scheme = entry.scheme.as_ref().ok_or(ErrorCode::InvalidAcl)?;
        if scheme == "auth" {
            let before = fixed.len();
            fixed.extend(authenticated(who).map(|(scheme, id)| Acl {
                perms: entry.perms,
                scheme: Some(scheme.name().into()),
                id: Some(id.clone()),
            }));
            if fixed.len() == before {
                return Err(ErrorCode::InvalidAcl);
            }
            continue;
        }
        if !is_valid(scheme, entry.id.as_ref(), schemes)? {
            return Err(ErrorCode::InvalidAcl);
        }
        fixed.push(entry);
    }
    Ok(AclList::new(&fixed))
}

/// As the original keeps strings: decoded, and encoded again when sent.
fn as_stored(text: Ustring) -> Ustring {
    match text.as_echoed() {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(echoed) => Bytes::from(echoed).into(),
    }
}

/// What the word `auth` stands for: the identities that were proven, not the address.
fn authenticated(who: &Identities) -> impl Iterator<Item = (Scheme, &Ustring)> {
    who.added
        .iter()
        .filter(|identity| {
            matches!(
                identity.scheme,
                Scheme::Digest | Scheme::Sasl | Scheme::X509 | Scheme::Key
            )
        })
        .map(|identity| (identity.scheme, &identity.id))
}

fn is_valid(scheme: &Ustring, id: Option<&Ustring>, schemes: Schemes) -> Result<bool, ErrorCode> {
    let id = || {
        id.map(Ustring::to_str_lossy)
            .ok_or(ErrorCode::MarshallingError)
    };
    Ok(match scheme.as_bytes() {
        b"world" => id()? == "anyone",
        b"digest" if schemes.digest => is_digest_id(&id()?),
        b"sasl" if schemes.sasl => !sasl::is_malformed_principal(&id()?),
        b"x509" if schemes.x509 => x500::is_name(&id()?),
        b"ip" => identity::is_ip_id(&id()?),
        b"key" => schemes.key,
        _ => false,
    })
}

/// Split at colons, trailing empty parts dropped, exactly two parts are left.
fn is_digest_id(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_SCHEMES: Schemes = Schemes {
        digest: true,
        sasl: true,
        x509: true,
        key: true,
        enforced: true,
    };

    fn list(scheme: &str, id: &str) -> AclList {
        let perms = minikeeper_protocol::Perms::ALL;
        AclList::new(&[Acl {
            perms,
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        }])
    }

    #[test]
    fn fix_up_follows_the_reference() {
        let who = Identities::of(core::net::Ipv4Addr::LOCALHOST.into());
        for (scheme, id, valid) in [
            ("world", "anyone", true),
            ("world", "foo", false),
            ("auth", "", false),
            ("super", "", false),
            ("digest", "a:b", true),
            ("digest", ":b", true),
            ("digest", "bob", false),
            ("digest", "a:", false),
            ("digest", ":", false),
            ("digest", "bob:x:y", false),
            ("ip", "127.0.0.1/8", true),
            ("ip", "", false),
            ("sasl", "bob", true),
            ("sasl", "bob/host@REALM", true),
            ("sasl", "bob@a@b", false),
            ("x509", "CN=bob", true),
            ("x509", "bob", false),
        ] {
            let fixed = fix_up(&list(scheme, id), ALL_SCHEMES, &who);
            assert_eq!(fixed.is_ok(), valid, "{scheme}:{id}");
        }
        for empty in [AclList::null(), AclList::new(&[])] {
            let fixed = fix_up(&empty, ALL_SCHEMES, &who);
            assert_eq!(fixed, Err(ErrorCode::InvalidAcl));
        }
    }

    #[test]
    fn schemes_that_are_off_are_unknown() {
        let who = Identities::of(core::net::Ipv4Addr::LOCALHOST.into());
        let off = Schemes {
            digest: false,
            sasl: false,
            x509: false,
            key: false,
            enforced: true,
        };
        for (scheme, id) in [("digest", "a:b"), ("sasl", "bob"), ("x509", "CN=bob")] {
            let fixed = fix_up(&list(scheme, id), off, &who);
            assert_eq!(fixed, Err(ErrorCode::InvalidAcl), "{scheme}");
        }
    }

    #[test]
    fn auth_stands_for_every_proven_identity() {
        let mut who = Identities::of(core::net::Ipv4Addr::LOCALHOST.into());
        for (scheme, id) in [
            (Scheme::Super, ""),
            (Scheme::Digest, "a:1"),
            (Scheme::Sasl, "bob"),
            (Scheme::X509, "CN=bob"),
        ] {
            let id = id.into();
            who.added.push(crate::identities::Identity { scheme, id });
        }
        let fixed = fix_up(&list("auth", "ignored"), ALL_SCHEMES, &who).unwrap();
        let expected: Vec<_> = [("digest", "a:1"), ("sasl", "bob"), ("x509", "CN=bob")]
            .iter()
            .flat_map(|(scheme, id)| list(scheme, id).entries().collect::<Vec<_>>())
            .collect();
        assert_eq!(fixed.entries().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn fix_up_drops_duplicates() {
        let entry = list("digest", "a:b").entries().next().unwrap();
        let who = Identities::of(core::net::Ipv4Addr::LOCALHOST.into());
        let twice = AclList::new(&[entry.clone(), entry.clone()]);
        let fixed = fix_up(&twice, ALL_SCHEMES, &who).unwrap();
        assert_eq!(fixed.entries().collect::<Vec<_>>(), [entry]);
    }

    #[test]
    fn list_goes_with_its_last_user() {
        let mut table = AclTable::new(ALL_SCHEMES, [0; 2]);
        let (first, second) = (
            table.acquire(&list("digest", "a:b")),
            table.acquire(&list("digest", "a:b")),
        );
        assert_eq!(first, second);
        table.release(first);
        assert_eq!(table.users().collect::<Vec<_>>(), [(first, 1)]);
        table.release(first);
        assert_eq!(table.users().count(), 0);
        assert!(table.index.len() == 2);
    }
}
