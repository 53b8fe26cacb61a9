//! Recognises the znodes of contenders by their names.
//!
//! Sources: `docs/curator-recipes.md` sections 1.2 to 1.5; kazoo's `recipe/lock.py`; `lock.go` of
//! go-zookeeper; `WriteLock` and `LeaderElectionSupport` of ZooKeeper's recipes; `LockPrefix` of the
//! crate zookeeper-client.

use crate::locks::LockFamily;

/// The parts of names by which recipes mark the znodes of contenders.
const MARKS: [(&str, Role); 9] = [
    ("lock-", Role::Exclusive),
    ("lease-", Role::Lease),
    ("latch-", Role::Latch),
    ("__READ__", Role::Reader),
    ("__WRIT__", Role::Writer),
    ("-READ-", Role::Reader),
    ("-WRIT-", Role::Writer),
    ("__lock__", Role::Exclusive),
    ("__rlock__", Role::Reader),
];

/// The last component of the paths that a semaphore of Curator has below its own.
pub(super) const INNER_LOCK: &str = "/locks";
pub(super) const LEASES: &str = "/leases";

/// What kazoo appends to the path of a semaphore for the path of its inner lock.
pub(super) const KAZOO_INNER_LOCK: &str = "-__lock__";

/// What a contender wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    /// A mutex, a leader selector, or the inner lock of a semaphore. Beside readers of kazoo, it is
    /// a writer.
    Exclusive,
    Reader,
    Writer,
    Latch,
    /// An offer to lead.
    Election,
    Lease,
    /// A lease of kazoo. Its name has no mark, so only a semaphore's inner lock shows that it is
    /// one.
    KazooLease,
}

/// A name that a recipe gives to a contender's znode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContenderName<'a> {
    pub(crate) role: Role,
    /// The library, if the name shows it.
    pub(crate) family: Option<LockFamily>,
    /// The part that orders it among its siblings. Empty for a lease of kazoo.
    pub(crate) key: &'a str,
}

/// Returns whether a name contains the mark of a recipe, whatever else it contains.
pub(crate) fn is_contender(name: &str) -> bool {
    MARKS.iter().any(|(mark, _)| name.contains(mark))
}

/// Parses the name of a contender's znode. Names that other programs may use too count only if the
/// znode is ephemeral.
pub(crate) fn parse(name: &str, is_ephemeral: bool) -> Option<ContenderName<'_>> {
    if is_ephemeral && is_hex(name) {
        return Some(ContenderName {
            role: Role::KazooLease,
            family: Some(LockFamily::Kazoo),
            key: "",
        });
    }
    let stem = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    // The server appends ten characters, and eleven once the counter is far below zero.
    if name.len() - stem.len() < 9 {
        return None;
    }
    let stems = [Some(stem), stem.strip_suffix('-')];
    stems.into_iter().flatten().find_map(|stem| {
        let key = &name[stem.len()..];
        let (role, family) = marked(stem).or_else(|| unmarked(stem).filter(|_| is_ephemeral))?;
        (key.len() >= 10).then_some(ContenderName { role, family, key })
    })
}

/// Recognises what precedes the sequence number by a mark at its end.
fn marked(stem: &str) -> Option<(Role, Option<LockFamily>)> {
    let (before, mark, role) = MARKS
        .iter()
        .find_map(|(mark, role)| Some((stem.strip_suffix(mark)?, *mark, *role)))?;
    let is_kazoo = mark.starts_with("__") && mark.ends_with("lock__");
    if is_kazoo {
        return Some((role, is_hex(before).then_some(LockFamily::Kazoo)));
    }
    // "release-0000000001" is no lease.
    if mark.starts_with(char::is_alphabetic) && before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let guid = before
        .strip_prefix("_c_")
        .and_then(|guid| guid.strip_suffix('-'));
    let family = match guid {
        Some(guid) if is_uuid(guid) => Some(LockFamily::Curator),
        Some(guid) if is_hex(guid) => Some(LockFamily::GoZookeeper),
        _ => None,
    };
    Some((role, family))
}

/// Recognises what precedes the sequence number in names without a mark.
fn unmarked(stem: &str) -> Option<(Role, Option<LockFamily>)> {
    match stem {
        "n_" => return Some((Role::Election, Some(LockFamily::ZooKeeper))),
        "n-" => return Some((Role::Election, None)),
        _ => {}
    }
    let session = stem.strip_prefix("x-")?.strip_suffix('-')?;
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = session.strip_prefix('-').unwrap_or(session);
    is_id(id.strip_prefix("0x").unwrap_or(id))
        .then_some((Role::Exclusive, Some(LockFamily::ZooKeeper)))
}

/// Returns whether a text is a UUID without hyphens, as kazoo and go-zookeeper write it.
fn is_hex(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a text is a UUID with hyphens, as Curator writes it.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10";
    const HEX: &str = "0e6a1a3a6c1e4b0d9f0a2f6a3b1c9d10";

    #[test]
    fn names_of_every_library_are_recognised() {
        use LockFamily::{Curator, GoZookeeper, Kazoo, ZooKeeper};
        for (name, role, family) in [
            (format!("_c_{UUID}-lock-"), Role::Exclusive, Some(Curator)),
            (format!("_c_{UUID}-lease-"), Role::Lease, Some(Curator)),
            (format!("_c_{UUID}-latch-"), Role::Latch, Some(Curator)),
            (format!("_c_{UUID}-__READ__"), Role::Reader, Some(Curator)),
            (format!("_c_{UUID}-__WRIT__"), Role::Writer, Some(Curator)),
            (
                format!("_c_{HEX}-lock-"),
                Role::Exclusive,
                Some(GoZookeeper),
            ),
            (format!("{HEX}__lock__"), Role::Exclusive, Some(Kazoo)),
            (format!("{HEX}__rlock__"), Role::Reader, Some(Kazoo)),
            (
                "x-72057594037927937-".to_owned(),
                Role::Exclusive,
                Some(ZooKeeper),
            ),
            (
                "x--72057594037927937-".to_owned(),
                Role::Exclusive,
                Some(ZooKeeper),
            ),
            (
                "x-0x1000a2b3c0001-".to_owned(),
                Role::Exclusive,
                Some(ZooKeeper),
            ),
            ("n_".to_owned(), Role::Election, Some(ZooKeeper)),
            ("n-".to_owned(), Role::Election, None),
            ("lock-".to_owned(), Role::Exclusive, None),
            ("my-lock-".to_owned(), Role::Exclusive, None),
            ("x-READ-".to_owned(), Role::Reader, None),
        ] {
            for key in ["0000000007", "2147483647", "-000000005", "-2147483648"] {
                let name = format!("{name}{key}");
                let found = ContenderName { role, family, key };
                assert_eq!(parse(&name, true), Some(found), "{name}");
            }
        }
        let lease = parse(HEX, true).unwrap();
        assert_eq!((lease.role, lease.family), (Role::KazooLease, Some(Kazoo)));
    }

    #[test]
    fn other_names_are_not_contenders() {
        for name in [
            "",
            "lock-",
            "lock-7",
            "lock-000000007",
            "release-0000000007",
            "block-0000000007",
            "locks",
            "0000000007",
            "é0000000007",
            "x-0000000007",
            "x-g-0000000007",
            "nn_0000000007",
            "lock-0000000007-a",
            &HEX[1..],
            &HEX.to_uppercase(),
            &format!("{HEX}__party__"),
        ] {
            assert_eq!(parse(name, true), None, "{name}");
        }
        // Names that anybody may use count only if the znode ends with a session.
        for name in ["n_0000000007", "x-5-0000000007", HEX] {
            assert_eq!(parse(name, false), None, "{name}");
        }
        assert!(parse("lock-0000000007", false).is_some());
    }
}
