//! Access lists: stored once however many znodes share them, and checked for sense.
//!
//! Who may do what is not enforced yet; lists are validated, stored and returned.

use hashbrown::HashMap;
use minikeeper_protocol::{Acl, AclList, ErrorCode};
use slab::Slab;

use crate::keys::AclId;

#[derive(Debug)]
pub(crate) struct AclTable {
    lists: Slab<Shared>,
    /// By content; never iterated.
    index: HashMap<AclList, AclId, foldhash::fast::FixedState>,
}

#[derive(Debug)]
struct Shared {
    list: AclList,
    /// How many znodes and undo entries refer to it; not counted for the two built-in lists.
    users: usize,
}

impl AclTable {
    pub(crate) fn new() -> Self {
        let mut table = Self {
            lists: Slab::new(),
            index: HashMap::default(),
        };
        for list in [AclList::world_all(), AclList::world_read()] {
            table.add(list);
        }
        table
    }

    fn add(&mut self, list: AclList) -> AclId {
        let key = self.lists.insert(Shared {
            list: list.clone(),
            users: 1,
        });
        let id = AclId(u32::try_from(key).expect("there are fewer lists than znodes"));
        self.index.insert(list, id);
        id
    }

    /// The id of a list, which the caller now uses once more.
    pub(crate) fn acquire(&mut self, list: &AclList) -> AclId {
        if list.as_wire() == self.lists[0].list.as_wire() {
            return AclId::WORLD_ALL;
        }
        match self.index.get(list) {
            Some(&id) => {
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
            self.index.remove(&shared.list);
        }
    }

    pub(crate) fn get(&self, id: AclId) -> &AclList {
        &self.lists[id.0 as usize].list
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

/// Checks a list a client wants to store, and brings it into the form that is stored.
///
/// Source: reference section 9.5, the original's `fixupACL`.
///
/// # Errors
/// INVALIDACL when the list is empty or an entry makes no sense here; MARSHALLINGERROR for a null
/// id where one is needed, as the original's internal error answers.
pub(crate) fn fix_up(list: &AclList) -> Result<AclList, ErrorCode> {
    if list.as_wire() == AclList::world_all().as_wire() {
        return Ok(AclList::world_all());
    }
    let mut entries: Vec<Acl> = Vec::new();
    for entry in list.entries() {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Err(ErrorCode::InvalidAcl);
    }
    for entry in &entries {
        let scheme = entry.scheme.as_ref().ok_or(ErrorCode::InvalidAcl)?;
        let id = entry.id.as_ref().map(|id| id.to_str_lossy());
        let valid = match scheme.as_bytes() {
            b"world" => id.ok_or(ErrorCode::MarshallingError)? == "anyone",
            b"digest" => is_digest_id(&id.ok_or(ErrorCode::MarshallingError)?),
            b"ip" => !id.ok_or(ErrorCode::MarshallingError)?.is_empty(),
            // `auth` stands for the authenticated identities of the connection: there are none.
            _ => false,
        };
        if !valid {
            return Err(ErrorCode::InvalidAcl);
        }
    }
    Ok(AclList::new(&entries))
}

/// Split at colons, trailing empty parts dropped, exactly two parts are left.
fn is_digest_id(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(fix_up(&list(scheme, id)).is_ok(), valid, "{scheme}:{id}");
        }
        assert_eq!(fix_up(&AclList::null()), Err(ErrorCode::InvalidAcl));
        assert_eq!(fix_up(&AclList::new(&[])), Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn fix_up_drops_duplicates() {
        let entry = list("digest", "a:b").entries().next().unwrap();
        let fixed = fix_up(&AclList::new(&[entry.clone(), entry.clone()])).unwrap();
        assert_eq!(fixed.entries().collect::<Vec<_>>(), [entry]);
    }

    #[test]
    fn list_goes_with_its_last_user() {
        let mut table = AclTable::new();
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
