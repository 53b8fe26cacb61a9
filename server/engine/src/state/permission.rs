//! May a connection do this to a znode?
//!
//! Source: `docs/zookeeper-protocol.md` sections 9.3, 9.4 and 9.9; the original's `checkACL`.

use minikeeper_protocol::{Acl, AclList, AclRef, Perms};

use crate::{
    auth::{
        digest_and_ip as identity,
        identities::{Identities, IdentityTable, Scheme},
    },
    state::{
        acl::AclTable,
        keys::{AclId, IdentitiesId},
    },
    work,
};

/// Whether the list grants one of the wanted permissions to one of the identities.
#[inline]
pub(crate) fn allows(
    acls: &AclTable,
    identities: &IdentityTable,
    who: IdentitiesId,
    acl: AclId,
    wanted: Perms,
) -> bool {
    // Nearly every znode is open to everybody, and that is all that stands in the hot path.
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

/// Whether an entry is about one of the identities.
///
/// Takes a number of steps that grows with the logarithm of how many identities there are.
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
        b"ip" => identity::ip_matches(&String::from_utf8_lossy(id), who.address),
        _ => false,
    }
}

/// The list as someone without ADMIN sees it: of digest identities the name only.
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

/// Replaces what follows a colon by an x, up to the end of the line: the original's pattern `:.*`
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
    #[test]
    fn mask_keeps_the_name_alone() {
        // `docs/zookeeper-protocol.md` section 9.9; the second case is what Java's pattern leaves.
        for (id, masked) in [("bob:hash", "bob:x"), ("bob:ab\ncd", "bob:x\ncd")] {
            assert_eq!(super::without_secrets(id), masked);
        }
    }
}
