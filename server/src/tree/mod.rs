//! Trees as values: what to seed, to export and to compare.
//!
//! [`Tree`] maps paths to [`Znode`]s; `files` reads and writes YAML and JSON, `differences` compares
//! two, `access` parses access lists, `dump` prints a tree with its sessions and watches.

mod access;
mod differences;
pub(crate) mod dump;
#[cfg(feature = "seed-files")]
mod files;

use std::{collections::BTreeMap, fmt, time::Duration};

pub(crate) use self::access::{acl, text_of};
pub use self::differences::{Difference, TreeDiff};
#[cfg(feature = "seed-files")]
pub use self::files::TreeFileError;

/// Znodes by path: what [`Universe::seed`](crate::Universe::seed) puts there,
/// [`Universe::export_tree`](crate::Universe::export_tree) takes out and
/// [`assert_tree!`](crate::assert_tree!) compares with. [`tree!`](crate::tree!) writes one down.
///
/// Parents need not be named. `/zookeeper` and what is below it belongs to the server.
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
    /// Whether there may be more than what is named.
    is_partial: bool,
}

/// What is said of one znode of a [`Tree`]. What is not said may be anything where the znode is
/// there already, and is what a plain create of a client makes where it is not.
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
    /// As long as the session that created it. Only a client makes such a znode.
    Ephemeral,
    /// Until some time after its last child has gone.
    Container,
    /// Until it has had no child and no new data for so long, in whole milliseconds.
    TimeToLive(Duration),
}

impl Tree {
    /// A tree without znodes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            znodes: BTreeMap::new(),
            is_partial: false,
        }
    }

    /// With one znode more, or another one at this path.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, znode: impl Into<Znode>) -> Self {
        self.insert(path, znode);
        self
    }

    /// Adds a znode, or puts another one in its place.
    pub fn insert(&mut self, path: impl Into<String>, znode: impl Into<Znode>) {
        self.znodes.insert(path.into(), znode.into());
    }

    /// The same, and there may be more: what comparing with it then leaves out.
    #[must_use]
    pub const fn partial(mut self) -> Self {
        self.is_partial = true;
        self
    }

    /// Whether there may be more than what is named.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// The znode at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Znode> {
        self.znodes.get(path)
    }

    /// Paths and znodes, in the order of paths: parents before their children.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Znode)> {
        self.znodes
            .iter()
            .map(|(path, znode)| (path.as_str(), znode))
    }

    /// The number of znodes named.
    #[must_use]
    pub fn len(&self) -> usize {
        self.znodes.len()
    }

    /// Whether none is.
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
    /// A znode of which nothing is said but that it is there.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            data: None,
            lifetime: None,
            access: None,
        }
    }

    /// A znode with null data, which is not the same as none.
    #[must_use]
    pub const fn null() -> Self {
        Self {
            data: Some(None),
            lifetime: None,
            access: None,
        }
    }

    /// The same as a container.
    #[must_use]
    pub const fn container(self) -> Self {
        self.lives(Lifetime::Container)
    }

    /// The same with a time to live, in whole milliseconds.
    #[must_use]
    pub const fn time_to_live(self, ttl: Duration) -> Self {
        self.lives(Lifetime::TimeToLive(ttl))
    }

    /// The same as an ephemeral: to compare with, not to seed.
    #[must_use]
    pub const fn ephemeral(self) -> Self {
        self.lives(Lifetime::Ephemeral)
    }

    /// The same with this lifetime.
    #[must_use]
    pub const fn lives(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// The same with an access list. An entry reads `SCHEME:ID:PERMISSIONS`, as in
    /// `world:anyone:r` or `digest:alice:HASH:cdrwa`.
    #[must_use]
    pub fn acl<E: Into<String>>(mut self, entries: impl IntoIterator<Item = E>) -> Self {
        self.access = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Its data, which may be null; `None` if nothing is said of it.
    #[must_use]
    pub fn data(&self) -> Option<Option<&[u8]>> {
        self.data.as_ref().map(Option::as_deref)
    }

    /// Its lifetime, if given.
    #[must_use]
    pub const fn lifetime(&self) -> Option<Lifetime> {
        self.lifetime
    }

    /// The entries of its access list, if they are said.
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

/// A [`Tree`], written down: `path => znode`, where a znode is text, bytes, `null`
/// or a [`Znode`]. A last `..` says that [there may be more](crate::Tree::partial).
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

/// One znode after the other.
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
