//! Trees as values, to seed, export and compare.
//!
//! [`Tree`] maps paths to [`Znode`]s. `files` reads and writes YAML and JSON, `differences`
//! compares two trees, `access` parses access lists, `dump` prints a tree with its sessions and watches,
//! and `seed_error` says why a server refuses a tree.

mod access;
mod differences;
pub mod dump;
#[cfg(feature = "seed-files")]
pub mod files;
pub mod seed_error;

use std::{collections::BTreeMap, fmt, time::Duration};

pub use self::access::{acl, text_of};
pub use self::differences::{Difference, TreeDiff};
#[cfg(feature = "seed-files")]
pub use self::files::TreeFileError;

/// Znodes by path. [`Universe::seed`](../minikeeper/struct.Universe.html#method.seed) creates them,
/// [`Universe::export_tree`](../minikeeper/struct.Universe.html#method.export_tree) returns them and
/// [`assert_tree!`](../minikeeper/macro.assert_tree.html) compares with them. The macro [`tree!`](crate::tree!)
/// builds a tree.
///
/// Parents need not be named. `/zookeeper` and everything below it belongs to the server.
///
/// # Examples
/// ```
/// use minikeeper::{Tree, Znode, tree};
/// let tree: Tree = tree! {
///     "/services/web" => "127.0.0.1:80",
///     "/services/db" => null,
///     "/locks" => Znode::from("").container(),
/// };
/// assert_eq!(tree, Tree::new()
///     .with("/services/web", "127.0.0.1:80")
///     .with("/services/db", Znode::null())
///     .with("/locks", Znode::from("").container()));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    znodes: BTreeMap<String, Znode>,
    /// Whether a compared tree may have more znodes than these.
    is_partial: bool,
}

/// One znode of a [`Tree`]. Each property may be unspecified: then it matches any value, seeding
/// leaves it alone in an existing znode, and creates a new znode as a plain create would.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Znode {
    data: Option<Option<Vec<u8>>>,
    lifetime: Option<Lifetime>,
    access: Option<Vec<String>>,
}

/// The lifetime of a znode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lifetime {
    /// Until it is deleted.
    Persistent,
    /// Until the session that created it ends. Only clients can create such a znode.
    Ephemeral,
    /// Until some time after its last child is deleted.
    Container,
    /// Until it has had no child and no new data for this time, in whole milliseconds.
    TimeToLive(Duration),
}

impl Tree {
    /// Returns a tree without znodes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            znodes: BTreeMap::new(),
            is_partial: false,
        }
    }

    /// Adds a znode, or replaces the one at this path. Returns the tree.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, znode: impl Into<Znode>) -> Self {
        self.insert(path, znode);
        self
    }

    /// Adds a znode, or replaces the one at this path.
    pub fn insert(&mut self, path: impl Into<String>, znode: impl Into<Znode>) {
        self.znodes.insert(path.into(), znode.into());
    }

    /// Makes the tree partial: comparing with it ignores znodes that it does not name.
    #[must_use]
    pub const fn partial(mut self) -> Self {
        self.is_partial = true;
        self
    }

    /// Returns whether the tree is [partial](Tree::partial).
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the znode at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Znode> {
        self.znodes.get(path)
    }

    /// Returns paths and znodes, ordered by path: parents before their children.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Znode)> {
        self.znodes
            .iter()
            .map(|(path, znode)| (path.as_str(), znode))
    }

    /// Returns the number of named znodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.znodes.len()
    }

    /// Returns whether the tree names no znodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.znodes.is_empty()
    }
}

impl<P: Into<String>, Z: Into<Znode>> FromIterator<(P, Z)> for Tree {
    fn from_iter<I: IntoIterator<Item = (P, Z)>>(znodes: I) -> Self {
        let mut tree = Self::new();
        for (path, znode) in znodes {
            tree.insert(path, znode);
        }
        tree
    }
}

impl Znode {
    /// Returns a znode with everything unspecified.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            data: None,
            lifetime: None,
            access: None,
        }
    }

    /// Returns a znode with null data, which differs from empty data.
    #[must_use]
    pub const fn null() -> Self {
        Self {
            data: Some(None),
            lifetime: None,
            access: None,
        }
    }

    /// Makes it a container.
    #[must_use]
    pub const fn container(self) -> Self {
        self.lives(Lifetime::Container)
    }

    /// Gives it a time to live, in whole milliseconds.
    #[must_use]
    pub const fn time_to_live(self, ttl: Duration) -> Self {
        self.lives(Lifetime::TimeToLive(ttl))
    }

    /// Makes it an ephemeral, which can be compared with but not seeded.
    #[must_use]
    pub const fn ephemeral(self) -> Self {
        self.lives(Lifetime::Ephemeral)
    }

    /// Sets the lifetime.
    #[must_use]
    pub const fn lives(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Sets the access list. The form of an entry is `SCHEME:ID:PERMISSIONS`, such as
    /// `world:anyone:r` or `digest:alice:HASH:cdrwa`.
    #[must_use]
    pub fn acl<E: Into<String>>(mut self, entries: impl IntoIterator<Item = E>) -> Self {
        self.access = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Returns its data, which may be null; `None` if unspecified.
    #[must_use]
    pub fn data(&self) -> Option<Option<&[u8]>> {
        self.data.as_ref().map(Option::as_deref)
    }

    /// Returns its lifetime; `None` if unspecified.
    #[must_use]
    pub const fn lifetime(&self) -> Option<Lifetime> {
        self.lifetime
    }

    /// Returns the entries of its access list; `None` if unspecified.
    #[must_use]
    pub fn access(&self) -> Option<&[String]> {
        self.access.as_deref()
    }
}

impl From<Option<Vec<u8>>> for Znode {
    fn from(data: Option<Vec<u8>>) -> Self {
        Self {
            data: Some(data),
            ..Self::any()
        }
    }
}

impl From<Vec<u8>> for Znode {
    fn from(data: Vec<u8>) -> Self {
        Some(data).into()
    }
}

impl From<&[u8]> for Znode {
    fn from(data: &[u8]) -> Self {
        data.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Znode {
    fn from(data: &[u8; N]) -> Self {
        data.to_vec().into()
    }
}

impl From<String> for Znode {
    fn from(data: String) -> Self {
        data.into_bytes().into()
    }
}

impl From<&str> for Znode {
    fn from(data: &str) -> Self {
        data.as_bytes().into()
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Persistent => f.write_str("persistent"),
            Self::Ephemeral => f.write_str("ephemeral"),
            Self::Container => f.write_str("container"),
            Self::TimeToLive(ttl) => write!(f, "time to live {} ms", ttl.as_millis()),
        }
    }
}

/// Builds a [`Tree`] from `path => znode` pairs, where a znode is text, bytes, `null` or a
/// [`Znode`]. A final `..` makes the tree [partial](crate::Tree::partial).
///
/// # Examples
/// ```
/// use minikeeper::{Znode, tree};
/// let tree = tree! {
///     "/a" => "text",
///     "/a/b" => null,
///     "/a/c" => b"\x00\xff",
///     "/secret" => Znode::from("x").acl(["digest:alice:HASH:cdrwa"]),
/// };
/// assert_eq!(tree.len(), 4);
/// assert!(tree! { "/a" => "text", .. }.is_partial());
/// ```
#[macro_export]
macro_rules! tree {
    ($($znodes:tt)*) => {{
        #[allow(unused_mut, reason = "a tree may be empty")]
        let mut tree = $crate::Tree::new();
        $crate::__tree_znodes!(tree; $($znodes)*);
        tree
    }};
}

/// Inserts one znode after the other.
#[doc(hidden)]
#[macro_export]
macro_rules! __tree_znodes {
    ($tree:ident;) => {};
    ($tree:ident; ..) => {
        let $tree = $tree.partial();
    };
    ($tree:ident; $path:expr => null $(, $($rest:tt)*)?) => {
        $tree.insert($path, $crate::Znode::null());
        $crate::__tree_znodes!($tree; $($($rest)*)?);
    };
    ($tree:ident; $path:expr => $znode:expr $(, $($rest:tt)*)?) => {
        $tree.insert($path, $znode);
        $crate::__tree_znodes!($tree; $($($rest)*)?);
    };
}
