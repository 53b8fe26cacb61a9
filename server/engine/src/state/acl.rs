//! Stores each access list once, however many znodes share it; validates and evaluates them.
//!
//! Source: `docs/zookeeper-protocol.md` sections 9.2 to 9.5 and 9.9; ZooKeeper's `fixupACL` and
//! `checkACL`.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use hashbrown::HashTable;
use minikeeper_protocol::{Acl, AclList, AclRef, ErrorCode, Perms, Ustring};
use slab::Slab;

use crate::{
    auth::{self, ip, x509},
    hashing::TableHasher,
    input::Settings,
    state::{
        identities::{Identities, IdentityTable, Scheme},
        keys::{AclId, IdentitiesId},
    },
    work,
};

#[derive(Clone, Debug)]
pub(crate) struct AclTable {
    lists: Slab<SharedList>,
    /// By content; never iterated.
    index: HashTable<AclId>,
    hasher: TableHasher,
    /// The size of the lists as counted against `tree_bytes_max`, without the two built-in ones.
    bytes: usize,
    schemes: Schemes,
}

/// The schemes that are valid in access lists, and whether lists are enforced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schemes {
    pub(crate) digest: bool,
    pub(crate) sasl: bool,
    pub(crate) x509: bool,
    pub(crate) key: bool,
    /// If false, lists are only stored, and every client may do everything.
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
struct SharedList {
    list: AclList,
    /// The number of znodes and undo entries that refer to it; not counted for the two built-in
    /// lists.
    users: usize,
}

impl AclTable {
    pub(crate) fn new(schemes: Schemes, hash_seed: [u64; 2]) -> Self {
        let mut table = Self {
            lists: Slab::new(),
            index: HashTable::new(),
            hasher: TableHasher::new(hash_seed, b"acls----"),
            bytes: 0,
            schemes,
        };
        for list in [AclList::world_all(), AclList::world_read()] {
            table.add(list);
        }
        table.bytes = 0;
        table
    }

    pub(crate) const fn is_enforced(&self) -> bool {
        self.schemes.enforced
    }

    fn add(&mut self, list: AclList) -> AclId {
        let hash = self.hash(&list);
        self.bytes += counted_bytes(&list);
        let key = self.lists.insert(SharedList { list, users: 1 });
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

    /// Returns the id of a list, which it adds if necessary, and counts a use by the caller.
    pub(crate) fn acquire(&mut self, list: &AclList) -> AclId {
        if list.is_world_all() {
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

    /// Returns the size of the lists as counted against `tree_bytes_max`, each of them once.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how much one more use of a list adds to [`AclTable::bytes`].
    pub(crate) fn cost(&self, list: &AclList) -> usize {
        if list.is_world_all() || self.find_list(list).is_some() {
            return 0;
        }
        counted_bytes(list)
    }

    /// Ends a use, and removes the list with its last one.
    pub(crate) fn release(&mut self, id: AclId) {
        if id == AclId::WORLD_ALL || id == AclId::WORLD_READ {
            return;
        }
        let shared = &mut self.lists[id.0 as usize];
        shared.users -= 1;
        if shared.users == 0 {
            let shared = self.lists.remove(id.0 as usize);
            self.bytes -= counted_bytes(&shared.list);
            self.index
                .find_entry(self.hash(&shared.list), |other| *other == id)
                .expect("every list is in the index")
                .remove();
        }
    }

    /// Replaces the number of uses of each list, and removes those without any.
    pub(crate) fn set_uses(&mut self, uses: &BTreeMap<u32, usize>) {
        let keys: Vec<_> = self.lists.iter().skip(2).map(|(key, _)| key).collect();
        for key in keys {
            let id = AclId(u32::try_from(key).expect("ids are made from u32"));
            // One more, which is released.
            self.lists[key].users = uses.get(&id.0).map_or(0, |uses| *uses) + 1;
            self.release(id);
        }
    }

    pub(crate) fn get(&self, id: AclId) -> &AclList {
        &self.lists[id.0 as usize].list
    }

    /// Returns the list with this id, if there is one.
    pub(crate) fn find(&self, id: AclId) -> Option<&AclList> {
        self.lists.get(id.0 as usize).map(|shared| &shared.list)
    }

    /// Returns the number of uses of each list, for the check of the whole state.
    pub(crate) fn users(&self) -> impl Iterator<Item = (AclId, usize)> {
        self.lists.iter().skip(2).map(|(key, shared)| {
            (
                AclId(u32::try_from(key).expect("ids are made from u32")),
                shared.users,
            )
        })
    }
}

/// The counted size of a list without its wire form: slots and the allocator's rounding. Unit:
/// bytes.
const LIST_BYTES: usize = 128;

fn counted_bytes(list: &AclList) -> usize {
    LIST_BYTES + wire_of(list).len()
}

/// Returns the bytes by which a list is hashed; no stored list is null.
fn wire_of(list: &AclList) -> &[u8] {
    list.as_wire().unwrap_or_default()
}

/// The maximum size of a list after its `auth` entries are replaced. Unit: bytes.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Why a list is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It is invalid.
    Invalid(ErrorCode),
    /// It is too long.
    TooLong,
}

/// Validates a list from a client, and converts it to the form to store.
///
/// Takes time and memory in proportion to the list that was sent, and to `entries_max`.
///
/// Source: `docs/zookeeper-protocol.md` section 9.5, ZooKeeper's `fixupACL`.
///
/// # Errors
/// INVALIDACL if the list is empty or an entry is invalid. MARSHALLINGERROR for a null id where one
/// is needed, because ZooKeeper then replies with an internal error. Too long if the list has more
/// than `entries_max` different entries, before or after its `auth` entries are replaced.
pub(crate) fn fix_up(
    list: &AclList,
    table: &AclTable,
    who: &Identities,
    entries_max: usize,
) -> Result<AclList, Refusal> {
    if list.is_world_all() {
        return Ok(AclList::world_all());
    }
    let list = as_stored(list);
    let distinct = without_duplicates(&list, &table.hasher, entries_max)?;
    if distinct.is_empty() {
        return Err(Refusal::Invalid(ErrorCode::InvalidAcl));
    }
    let mut fixed = Fixed::new(entries_max);
    for entry in distinct {
        let scheme = entry
            .scheme
            .ok_or(Refusal::Invalid(ErrorCode::InvalidAcl))?;
        if scheme == b"auth" {
            let before = fixed.entries.len();
            for (scheme, id) in authenticated(who) {
                fixed.push(AclRef {
                    perms: entry.perms,
                    scheme: Some(scheme.name().as_bytes()),
                    id: Some(id.as_bytes()),
                })?;
            }
            if fixed.entries.len() == before {
                return Err(Refusal::Invalid(ErrorCode::InvalidAcl));
            }
            continue;
        }
        if !is_valid(scheme, entry.id, table.schemes).map_err(Refusal::Invalid)? {
            return Err(Refusal::Invalid(ErrorCode::InvalidAcl));
        }
        fixed.push(entry)?;
    }
    Ok(fixed.entries.into_iter().collect())
}

/// The entries of a list to store, within their limits.
struct Fixed<'a> {
    entries: Vec<AclRef<'a>>,
    entries_max: usize,
    bytes: usize,
}

impl<'a> Fixed<'a> {
    const fn new(entries_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            entries_max,
            bytes: 0,
        }
    }

    fn push(&mut self, entry: AclRef<'a>) -> Result<(), Refusal> {
        self.bytes += entry.wire_bytes();
        if self.entries.len() == self.entries_max || self.bytes > LIST_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Converts the strings of a list as ZooKeeper does, which decodes them and encodes them again.
fn as_stored(list: &AclList) -> Cow<'_, AclList> {
    let is_ascii = |text: Option<&[u8]>| text.is_none_or(<[u8]>::is_ascii);
    let mut entries = list.entries_in_place();
    if entries.all(|entry| is_ascii(entry.scheme) && is_ascii(entry.id)) {
        return Cow::Borrowed(list);
    }
    let stored = |text: Option<Ustring>| {
        text.map(|text| match text.as_echoed() {
            Cow::Borrowed(_) => text,
            Cow::Owned(echoed) => Bytes::from(echoed).into(),
        })
    };
    let entries = list.entries().map(|Acl { perms, scheme, id }| Acl {
        perms,
        scheme: stored(scheme),
        id: stored(id),
    });
    Cow::Owned(entries.collect())
}

/// Returns the different entries of a list, each at its first position.
fn without_duplicates<'a>(
    list: &'a AclList,
    hasher: &TableHasher,
    entries_max: usize,
) -> Result<Vec<AclRef<'a>>, Refusal> {
    let mut distinct: Vec<AclRef<'a>> = Vec::new();
    let mut seen: HashTable<usize> = HashTable::new();
    for entry in list.entries_in_place() {
        work::visit();
        let hash = |entry: &AclRef<'_>| hasher.hash_one((entry.perms, entry.scheme, entry.id));
        let is_it = |at: &usize| {
            work::visit();
            distinct[*at] == entry
        };
        if seen.find(hash(&entry), is_it).is_some() {
            continue;
        }
        if distinct.len() == entries_max {
            return Err(Refusal::TooLong);
        }
        seen.insert_unique(hash(&entry), distinct.len(), |at| hash(&distinct[*at]));
        distinct.push(entry);
    }
    Ok(distinct)
}

/// Returns the identities that replace an `auth` entry: those that were authenticated, not the
/// address.
fn authenticated(who: &Identities) -> impl Iterator<Item = (Scheme, &Ustring)> {
    who.added()
        .iter()
        .filter(|identity| {
            matches!(
                identity.scheme,
                Scheme::Digest | Scheme::Sasl | Scheme::X509 | Scheme::Key
            )
        })
        .map(|identity| (identity.scheme, &identity.id))
}

fn is_valid(scheme: &[u8], id: Option<&[u8]>, schemes: Schemes) -> Result<bool, ErrorCode> {
    let id = || {
        id.map(String::from_utf8_lossy)
            .ok_or(ErrorCode::MarshallingError)
    };
    Ok(match scheme {
        b"world" => id()? == "anyone",
        b"digest" if schemes.digest => is_digest_id(&id()?),
        b"sasl" if schemes.sasl => !auth::is_malformed_principal(&id()?),
        b"x509" if schemes.x509 => x509::is_name(&id()?),
        b"ip" => ip::is_ip_id(&id()?),
        b"key" => schemes.key,
        _ => false,
    })
}

/// Returns whether exactly two parts are left after splitting at colons and dropping trailing empty
/// parts.
fn is_digest_id(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

/// Returns whether the list grants one of the wanted permissions to one of the identities.
#[inline]
pub(crate) fn allows(
    acls: &AclTable,
    identities: &IdentityTable,
    who: IdentitiesId,
    acl: AclId,
    wanted: Perms,
) -> bool {
    // Nearly every znode is open to every client; only this check is on the hot path.
    acl == AclId::WORLD_ALL || looked_up(acls, identities.get(who), acl, wanted)
}

#[inline(never)]
fn looked_up(acls: &AclTable, who: &Identities, acl: AclId, wanted: Perms) -> bool {
    let list = acls.get(acl);
    !acls.is_enforced()
        || who.is_super()
        || list
            .entries_in_place()
            .any(|entry| entry.perms.0 & wanted.0 != 0 && is_meant(&entry, who))
        || list.is_empty()
}

/// Returns whether an entry matches one of the identities.
///
/// The number of steps is logarithmic in the number of identities.
fn is_meant(entry: &AclRef<'_>, who: &Identities) -> bool {
    work::visit();
    let (Some(scheme), Some(id)) = (entry.scheme, entry.id) else {
        return false;
    };
    match scheme {
        b"world" => id == b"anyone",
        b"digest" => who.has(Scheme::Digest, id),
        b"sasl" => who.has(Scheme::Sasl, id) || who.has(Scheme::Sasl, b"super"),
        b"x509" => who.has(Scheme::X509, id),
        b"key" => who.has(Scheme::Key, id),
        b"ip" => ip::ip_matches(&String::from_utf8_lossy(id), who.address),
        _ => false,
    }
}

/// Returns the list that clients without ADMIN see: digest identities show only the name.
pub(crate) fn masked(list: &AclList) -> AclList {
    let mask = |mut entry: Acl| {
        if entry
            .scheme
            .as_ref()
            .is_some_and(|scheme| scheme == "digest")
            && let Some(id) = &entry.id
        {
            entry.id = Some(without_secrets(&id.to_str_lossy()).into());
        }
        entry
    };
    AclList::new(&list.entries().map(mask).collect::<Vec<_>>())
}

/// Replaces the text between a colon and the end of the line by an x: ZooKeeper's pattern `:.*`
/// does not match across lines.
fn without_secrets(id: &str) -> String {
    let mut out = String::new();
    let mut is_secret = false;
    for c in id.chars() {
        let ends_line = matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
        if ends_line {
            is_secret = false;
        }
        if !is_secret {
            out.push(c);
        }
        if c == ':' && !is_secret {
            is_secret = true;
            out.push('x');
        }
    }
    out
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

    fn table(schemes: Schemes) -> AclTable {
        AclTable::new(schemes, [0; 2])
    }

    fn list(scheme: &str, id: &str) -> AclList {
        let perms = Perms::ALL;
        AclList::new(&[Acl {
            perms,
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        }])
    }

    #[test]
    fn fix_up_accepts_the_ids_that_zookeeper_accepts() {
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
            let fixed = fix_up(&list(scheme, id), &table(ALL_SCHEMES), &who, 9);
            assert_eq!(fixed.is_ok(), valid, "{scheme}:{id}");
        }
        for empty in [AclList::null(), AclList::new(&[])] {
            let fixed = fix_up(&empty, &table(ALL_SCHEMES), &who, 9);
            assert_eq!(fixed, Err(Refusal::Invalid(ErrorCode::InvalidAcl)));
        }
    }

    #[test]
    fn id_of_a_disabled_scheme_is_invalid() {
        let who = Identities::of(core::net::Ipv4Addr::LOCALHOST.into());
        let off = Schemes {
            digest: false,
            sasl: false,
            x509: false,
            key: false,
            enforced: true,
        };
        for (scheme, id) in [("digest", "a:b"), ("sasl", "bob"), ("x509", "CN=bob")] {
            let fixed = fix_up(&list(scheme, id), &table(off), &who, 9);
            assert_eq!(
                fixed,
                Err(Refusal::Invalid(ErrorCode::InvalidAcl)),
                "{scheme}"
            );
        }
    }

    #[test]
    fn auth_is_replaced_by_every_authenticated_identity() {
        let mut who = Identities::of(core::net::Ipv4Addr::LOCALHOST.into());
        for (scheme, id) in [
            (Scheme::Super, ""),
            (Scheme::Digest, "a:1"),
            (Scheme::Sasl, "bob"),
            (Scheme::X509, "CN=bob"),
        ] {
            let id = id.into();
            who.add(crate::state::identities::Identity { scheme, id });
        }
        let fixed = fix_up(&list("auth", "ignored"), &table(ALL_SCHEMES), &who, 9).unwrap();
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
        let fixed = fix_up(&twice, &table(ALL_SCHEMES), &who, 9).unwrap();
        assert_eq!(fixed.entries().collect::<Vec<_>>(), [entry]);
    }

    #[test]
    fn list_is_removed_with_its_last_use() {
        let mut table = table(ALL_SCHEMES);
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

    #[test]
    fn mask_keeps_only_the_name() {
        // `docs/zookeeper-protocol.md` section 9.9; the second case is what Java's pattern leaves.
        for (id, masked) in [("bob:hash", "bob:x"), ("bob:ab\ncd", "bob:x\ncd")] {
            assert_eq!(without_secrets(id), masked);
        }
    }
}
