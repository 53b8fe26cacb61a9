//! Names of lock znodes, and the order that they define.
//!
//! Pure functions. They must agree with Curator's, which Java contenders on the same path use.
//!
//! Source: `docs/curator-recipes.md` sections 1.2 to 1.5; Curator's `ProtectedUtils`,
//! `LockInternalsSorter`, `StandardLockInternalsDriver`.

use uuid::Uuid;

/// The length of a protection prefix: `_c_`, a UUID, `-`.
pub const PROTECTION_BYTES: usize = 40;

/// The limit of sequence numbers: contenders refuse this number and larger ones. Close to the
/// counter's end two contenders may get the same digits (hazard H19).
pub const SEQUENCE_MAX: u32 = 2_147_000_000;

/// The names that follow the protection prefix, one for each kind of lock znode.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming::{self, lock_name};
///
/// assert_eq!(naming::key("_c_x-lease-0000000007", lock_name::LEASE), "0000000007");
/// ```
pub mod lock_name {
    /// A mutex, and the inner lock of a semaphore.
    pub const MUTEX: &str = "lock-";
    /// A lease of a semaphore.
    pub const LEASE: &str = "lease-";
    /// A reader.
    pub const READ: &str = "__READ__";
    /// A writer.
    pub const WRITE: &str = "__WRIT__";
    /// A contender for leadership by latch.
    pub const LATCH: &str = "latch-";
}

/// Returns the protection prefix for this UUID. By the prefix a client finds a znode whose creation
/// got no reply.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// let prefix = naming::protection(uuid::Uuid::nil());
/// assert_eq!(prefix, "_c_00000000-0000-0000-0000-000000000000-");
/// ```
#[must_use]
pub fn protection(uuid: Uuid) -> String {
    let mut prefix = String::with_capacity(PROTECTION_BYTES);
    push_protection(&mut prefix, uuid);
    prefix
}

fn push_protection(text: &mut String, uuid: Uuid) {
    text.push_str("_c_");
    text.push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    text.push('-');
}

/// Returns the path under which a protected znode is created. Allocates once, because every acquire
/// does it.
pub(crate) fn protected_path(parent: &str, uuid: Uuid, name: &str) -> String {
    let mut path = String::with_capacity(parent.len() + 1 + PROTECTION_BYTES + name.len());
    path.push_str(parent.strip_suffix('/').unwrap_or(parent));
    path.push('/');
    push_protection(&mut path, uuid);
    path.push_str(name);
    path
}

/// Returns whether a name begins with a protection prefix.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// assert!(naming::is_protected("_c_00000000-0000-0000-0000-000000000000-lock-0000000007"));
/// assert!(!naming::is_protected("lock-0000000007"));
/// ```
#[must_use]
pub fn is_protected(name: &str) -> bool {
    name.len() > PROTECTION_BYTES
        && name.starts_with("_c_")
        && name.as_bytes()[PROTECTION_BYTES - 1] == b'-'
        && name
            .get(3..PROTECTION_BYTES - 1)
            .is_some_and(|uuid| Uuid::try_parse(uuid).is_ok())
}

/// Returns the name without its protection prefix.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// let name = "_c_00000000-0000-0000-0000-000000000000-lock-0000000007";
/// assert_eq!(naming::without_protection(name), "lock-0000000007");
/// ```
#[must_use]
pub fn without_protection(name: &str) -> &str {
    if is_protected(name) {
        &name[PROTECTION_BYTES..]
    } else {
        name
    }
}

/// Returns the part of a name that orders it among its siblings: what follows the last occurrence
/// of the lock's name, or the whole name if there is none. The prefix has no influence.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming::{self, lock_name};
///
/// assert_eq!(naming::key("_c_x-lock-0000000007", lock_name::MUTEX), "0000000007");
/// assert_eq!(naming::key("stranger", lock_name::MUTEX), "stranger");
/// ```
#[must_use]
pub fn key<'a>(name: &'a str, lock_name: &str) -> &'a str {
    // Search from the end, where only ten digits follow it. A search with preprocessing takes
    // longer.
    let mut windows = name.as_bytes().windows(lock_name.len().max(1));
    windows
        .rposition(|window| window == lock_name.as_bytes())
        .map_or(name, |at| &name[at + lock_name.len()..])
}

/// Returns the part of a name that orders it in a directory of readers and writers.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// assert_eq!(naming::read_write_key("_c_x-__READ__0000000007"), "0000000007");
/// assert_eq!(naming::read_write_key("_c_x-__WRIT__0000000008"), "0000000008");
/// ```
#[must_use]
pub fn read_write_key(name: &str) -> &str {
    key(key(name, lock_name::READ), lock_name::WRITE)
}

/// Returns whether a child of a read/write lock is a writer.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// assert!(naming::is_writer("_c_x-__WRIT__0000000008"));
/// assert!(!naming::is_writer("_c_x-__READ__0000000007"));
/// ```
#[must_use]
pub fn is_writer(name: &str) -> bool {
    name.contains(lock_name::WRITE)
}

/// Returns the sequence number that the server has appended; `None` if the name does not end with
/// ten digits.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// assert_eq!(naming::sequence("lock-0000000007"), Some(7));
/// assert_eq!(naming::sequence("ready"), None);
/// ```
#[must_use]
pub fn sequence(name: &str) -> Option<i64> {
    let digits = name.get(name.len().checked_sub(10)?..)?;
    digits.parse().ok()
}

/// Joins the parent's path and a child's name.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// assert_eq!(naming::join("/locks", "a"), "/locks/a");
/// assert_eq!(naming::join("/", "a"), "/a");
/// ```
#[must_use]
pub fn join(parent: &str, name: &str) -> String {
    if parent == "/" {
        format!("/{name}")
    } else {
        format!("{parent}/{name}")
    }
}

/// Returns the last component of a path.
///
/// # Examples
/// ```
/// use minikeeper_recipes::naming;
///
/// assert_eq!(naming::name_of("/locks/a"), "a");
/// ```
#[must_use]
pub fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the path of a znode's parent. The root is its own parent.
#[must_use]
pub fn parent_of(path: &str) -> &str {
    path.rfind('/').map_or("/", |slash| &path[..slash.max(1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10";

    #[test]
    fn protection_is_forty_characters_and_recognised() {
        let prefix = protection(Uuid::try_parse(UUID).unwrap());
        assert_eq!(prefix, format!("_c_{UUID}-"));
        assert_eq!(prefix.len(), PROTECTION_BYTES);
        let name = format!("{prefix}lock-0000000007");
        assert!(is_protected(&name));
        assert_eq!(without_protection(&name), "lock-0000000007");
        let upper = name.to_uppercase().replacen("_C_", "_c_", 1);
        for other in [
            &prefix,
            "lock-0000000007",
            "_c_0e6a1a3a-lock-0000000007",
            &name.replacen("_c_", "_d_", 1),
            &name.replacen("-lock", "_lock", 1),
            &name.replacen("0e6a", "0g6a", 1),
            "_c_ééééééééééééééééééééé",
        ] {
            assert!(!is_protected(other), "{other}");
        }
        // Java parses both cases.
        assert!(is_protected(&upper));
    }

    #[test]
    fn key_is_the_part_after_the_last_lock_name() {
        for (name, key) in [
            ("_c_x-lock-0000000001", "0000000001"),
            ("lock-lock-0000000002", "0000000002"),
            ("foreign", "foreign"),
            ("lock-", ""),
        ] {
            assert_eq!(super::key(name, lock_name::MUTEX), key);
        }
        for (name, key) in [
            ("_c_x-__READ__0000000001", "0000000001"),
            ("_c_x-__WRIT__0000000002", "0000000002"),
            ("__READ____WRIT__3", "3"),
            ("__WRIT____READ__4", "4"),
            ("other", "other"),
        ] {
            assert_eq!(read_write_key(name), key);
        }
    }

    #[test]
    fn sequence_parses_the_last_ten_characters() {
        assert_eq!(sequence("lock-0000000012"), Some(12));
        assert_eq!(sequence("lock--000000005"), Some(-5));
        assert_eq!(sequence("lock-2147483647"), Some(i64::from(i32::MAX)));
        assert_eq!(sequence("short"), None);
        assert_eq!(sequence("lock-00000000x2"), None);
    }

    #[test]
    fn join_adds_no_second_slash_below_the_root() {
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/l", "a"), "/l/a");
        assert_eq!(name_of("/l/a"), "a");
        for parent in ["/", "/l"] {
            let uuid = Uuid::try_parse(UUID).unwrap();
            let joined = join(parent, &format!("{}lock-", protection(uuid)));
            assert_eq!(protected_path(parent, uuid, "lock-"), joined);
        }
    }
}
