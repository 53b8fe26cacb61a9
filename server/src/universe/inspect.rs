//! Reads znodes, children, subtrees, the dump and the state without a client.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use minikeeper_core::{
    trees::{self, Lifetime, dump},
    work,
};
use minikeeper_engine::{Broken, Engine, Life, ZnodeImage};
use minikeeper_protocol::{SessionId, Stat};

use crate::universe::{Universe, seeding};

/// The limit of the text of the paths in a [`TreeListing`]. Unit: bytes.
const LISTED_PATHS_BYTES_MAX: usize = 4 << 20;

/// The maximum number of children that are read in one hold of the engine lock.
const CHILDREN_AT_ONCE: i32 = 2_000;

/// The znodes of a subtree, in the order of names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TreeListing {
    /// The znodes, children by name below their parent.
    pub znodes: Vec<ListedZnode>,
    /// Whether there are more.
    pub is_truncated: bool,
}

/// A znode of a [`TreeListing`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ListedZnode {
    /// Its path.
    pub path: String,
    /// The length of its data; `None` if the data is null. Unit: bytes.
    pub data_length: Option<usize>,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// The session that owns it, if it is an ephemeral.
    pub owner: Option<SessionId>,
}

/// In which order children are listed; those that are equal, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(feature = "control"),
    allow(dead_code, reason = "a verb chooses another order than that of names")
)]
pub(crate) enum ChildOrder {
    Name,
    /// The one created last comes first.
    Newest,
    /// The one with the most children comes first.
    Children,
}

#[cfg(feature = "control")]
impl ChildOrder {
    /// The names of all.
    pub(crate) const NAMES: &[&str] = &["name", "newest", "children"];

    /// Returns the order with this name; by name if there is none.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "newest" => Self::Newest,
            "children" => Self::Children,
            _ => Self::Name,
        }
    }
}

/// Some children of a znode, in the order of names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ChildListing {
    /// The children.
    pub children: Vec<ListedChild>,
    /// The number of children that match, listed or not.
    pub total: usize,
    /// Whether there are more after the last one.
    pub is_truncated: bool,
}

/// A child of a [`ChildListing`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ListedChild {
    /// Its name.
    pub name: String,
    /// The number of its own children.
    pub num_children: i32,
    /// The length of its data; `None` if the data is null. Unit: bytes.
    pub data_length: Option<usize>,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// The session that owns it, if it is an ephemeral.
    pub owner: Option<SessionId>,
}

impl Universe {
    /// Reads the data and stat of a znode; null data reads as `None`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Option<Vec<u8>>, Stat)> {
        self.shared.turns.inspect(|engine| {
            engine
                .get(path)
                .map(|(data, stat)| (data.map(<[u8]>::to_vec), stat))
        })
    }

    /// Lists the names of a znode's children, oldest first.
    #[must_use]
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        self.view_children(path, |engine| engine.children(path))
    }

    /// Reads a znode's children: under the lock if there are not many, otherwise in a copy.
    fn view_children<T>(&self, path: &str, read: impl Fn(&Engine) -> T) -> T {
        let turns = &self.shared.turns;
        let at_once = turns.inspect(|engine| {
            let count = engine.get(path).map_or(0, |(_, stat)| stat.num_children);
            (count <= CHILDREN_AT_ONCE).then(|| {
                work::count(usize::try_from(count).unwrap_or_default());
                read(engine)
            })
        });
        at_once.unwrap_or_else(|| turns.view(read))
    }

    /// Lists children of a znode, sorted by name: the first `max` after the name `after` that contain
    /// a text, and at most 4 MiB of names. Returns `None` if there is no such znode.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/a/z" => null, "/a/b1" => null, "/a/b2/c" => null })?;
    /// let listing = server.list_children("/a", "b1", "", 1).unwrap();
    /// assert_eq!((&listing.children[0].name[..], listing.total), ("b2", 3));
    /// assert!(listing.is_truncated);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn list_children(
        &self,
        path: &str,
        after: &str,
        containing: &str,
        max: usize,
    ) -> Option<ChildListing> {
        self.list_children_by(ChildOrder::Name, path, (after, containing), max)
    }

    /// Lists children of a znode as [`list_children`](Self::list_children) does, the first in this order.
    pub(crate) fn list_children_by(
        &self,
        order: ChildOrder,
        path: &str,
        (after, containing): (&str, &str),
        max: usize,
    ) -> Option<ChildListing> {
        self.view_children(path, |engine| {
            child_listing(engine, order, path, (after, containing), max)
        })
    }

    /// Returns the paths below a znode that contain a text, children by name below their parent: the
    /// first `max`, and at most 4 MiB of paths; with `in_data` also those whose data contains it. The
    /// flag says whether there are more. Returns `None` if there is no such znode.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/web/port" => "80", "/db" => "port 5432" })?;
    /// assert_eq!(server.find_znodes("/", "port", false, 10).unwrap().0, ["/web/port"]);
    /// assert_eq!(server.find_znodes("/", "port", true, 1).unwrap(), (vec!["/db".to_owned()], true));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn find_znodes(
        &self,
        path: &str,
        text: &str,
        in_data: bool,
        max: usize,
    ) -> Option<(Vec<String>, bool)> {
        let wanted = Wanted::new(text.as_bytes());
        self.shared.turns.view(|engine| {
            let (first, is_truncated) = first_znodes(engine, path, max, |znode| {
                wanted.is_in(znode.path)
                    || in_data && znode.data.is_some_and(|data| wanted.is_in(data))
            })?;
            let paths = first
                .iter()
                .map(|znode| String::from_utf8_lossy(znode.path).into_owned());
            Some((paths.collect(), is_truncated))
        })
    }

    /// Returns a znode's access list, each entry in ZooKeeper's notation, such as
    /// `world:anyone:cdrwa`. Returns `None` if there is no such znode.
    #[must_use]
    pub fn acl(&self, path: &str) -> Option<Vec<String>> {
        self.shared.turns.inspect(|engine| {
            let image = engine.image();
            let znode = image.znode(path)?;
            image.access_list(znode.acl).map(trees::text_of)
        })
    }

    /// Lists a znode and those below it, children by name below their parent, `/zookeeper` included:
    /// the first `max`, and at most 4 MiB of paths. Returns `None` if there is no such znode.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/a-b" => "xyz", "/a/c" => null })?;
    /// let listing = server.tree("/", 3).unwrap();
    /// let paths: Vec<_> = listing.znodes.iter().map(|znode| &znode.path[..]).collect();
    /// assert_eq!(paths, ["/", "/a", "/a/c"]);
    /// assert!(listing.is_truncated);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn tree(&self, path: &str, max: usize) -> Option<TreeListing> {
        self.shared.turns.view(|engine| listing(engine, path, max))
    }

    /// Prints znodes, sessions and watches as text; equal trees give equal text.
    ///
    /// There is one line for each: znodes, children by name below their parent, then sessions, then
    /// watches. Text is quoted, other bytes are printed as `bytes "\x00\xff"`. The dump omits
    /// everything that depends on the time and order of changes: zxids, times, versions and session
    /// ids; sessions are numbered in the order of the ephemerals and watches that they have. It also
    /// omits `/zookeeper` except quotas, and access lists that are open to all clients.
    /// [`dump_with_ids`](Universe::dump_with_ids) prints ids, versions and times too.
    ///
    /// All of it is the state of one instant. Only if there are more than 2,000 watches or ephemerals, the
    /// watches are read after that, while clients may change them.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, Znode, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! {
    ///     "/b" => Znode::from("x").acl(["world:anyone:r"]),
    ///     "/b/raw" => b"\x00\xff",
    ///     "/a" => null,
    /// })?;
    /// let dump = r#"znode / ""
    /// znode /a null
    /// znode /b "x" acl world:anyone:r
    /// znode /b/raw bytes "\x00\xff"
    /// "#;
    /// assert_eq!(server.dump(), dump);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn dump(&self) -> String {
        self.dumped(false)
    }

    /// Prints what [`dump`](Universe::dump) prints, with session ids, zxids, times and versions.
    #[must_use]
    pub fn dump_with_ids(&self) -> String {
        self.dumped(true)
    }

    fn dumped(&self, with_ids: bool) -> String {
        let turns = &self.shared.turns;
        turns.view_with_sessions(|engine, sessions| dump::dump(engine, sessions, with_ids))
    }

    /// Prints the whole state as text, with zxids, times and versions; equal states give equal
    /// text. For tests of determinism; the format may change.
    #[must_use]
    pub fn dump_exact(&self) -> String {
        self.shared.turns.inspect(Engine::dump)
    }

    /// Verifies every invariant of the state.
    ///
    /// # Errors
    /// The first invariant that does not hold, which is a bug in the server.
    pub fn check(&self) -> Result<(), Broken> {
        self.shared.turns.inspect(Engine::check)
    }
}

fn listing(engine: &Engine, path: &str, max: usize) -> Option<TreeListing> {
    let (first, is_truncated) = first_znodes(engine, path, max, |_| true)?;
    let znodes = first.into_iter().map(|znode| ListedZnode {
        path: String::from_utf8_lossy(znode.path).into_owned(),
        data_length: znode.data.map(<[u8]>::len),
        lifetime: seeding::lifetime(&znode),
        owner: owner(&znode),
    });
    Some(TreeListing {
        znodes: znodes.collect(),
        is_truncated,
    })
}

/// Returns the first matching znodes of a subtree in the order of names, and whether there are more.
fn first_znodes<'a>(
    engine: &'a Engine,
    path: &str,
    max: usize,
    matches: impl Fn(&ZnodeImage<'a>) -> bool,
) -> Option<(Vec<ZnodeImage<'a>>, bool)> {
    // Keeps the first ones in the order of names, so that no more than those are copied.
    let mut first = BTreeMap::new();
    let (mut bytes, mut is_truncated) = (0, false);
    for znode in engine.image().subtree(path)?.filter(matches) {
        let order: Vec<_> = dump::names(znode.path).collect();
        bytes += znode.path.len();
        first.insert(order, znode);
        while first.len() > max || bytes > LISTED_PATHS_BYTES_MAX {
            is_truncated = true;
            let Some((_, last)) = first.pop_last() else {
                break;
            };
            bytes -= last.path.len();
        }
    }
    Some((first.into_values().collect(), is_truncated))
}

fn child_listing(
    engine: &Engine,
    order: ChildOrder,
    path: &str,
    (after, containing): (&str, &str),
    max: usize,
) -> Option<ChildListing> {
    let image = engine.image();
    image.znode(path)?;
    let of_child = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        format!("{}/{name}", path.trim_end_matches('/'))
    };
    let mut first = BTreeSet::new();
    let (mut total, mut bytes, mut is_truncated) = (0, 0, false);
    let names = engine.child_names(path);
    let containing = Wanted::new(containing.as_bytes());
    for name in names.filter(|name| containing.is_in(name)) {
        total += 1;
        if name <= after.as_bytes() {
            continue;
        }
        bytes += name.len();
        let before_its_name = match order {
            ChildOrder::Name => 0,
            ChildOrder::Newest => total,
            ChildOrder::Children => {
                let found = engine.get(&of_child(name));
                let count = found.map_or(0, |(_, stat)| stat.num_children);
                usize::try_from(count).unwrap_or_default()
            }
        };
        first.insert((Reverse(before_its_name), name));
        while first.len() > max || bytes > LISTED_PATHS_BYTES_MAX {
            is_truncated = true;
            let Some((_, last)) = first.pop_last() else {
                break;
            };
            bytes -= last.len();
        }
    }
    let children = first.into_iter().filter_map(|(_, name)| {
        let path = of_child(name);
        let name = String::from_utf8_lossy(name).into_owned();
        let znode = image.znode(&path)?;
        let (_, stat) = engine.get(&path)?;
        Some(ListedChild {
            name,
            num_children: stat.num_children,
            data_length: znode.data.map(<[u8]>::len),
            lifetime: seeding::lifetime(&znode),
            owner: owner(&znode),
        })
    });
    Some(ChildListing {
        children: children.collect(),
        total,
        is_truncated,
    })
}

fn owner(znode: &ZnodeImage<'_>) -> Option<SessionId> {
    match znode.life() {
        Life::Session(id) => Some(id),
        _ => None,
    }
}

/// A text to find in others. An empty one is everywhere.
struct Wanted<'a> {
    text: &'a [u8],
    /// For each length of the text's start: how much of its end the text starts with, too. A
    /// mismatch goes on from there, so that a search takes at most two steps a byte.
    shorter: Vec<usize>,
}

impl<'a> Wanted<'a> {
    fn new(text: &'a [u8]) -> Self {
        let mut shorter = vec![0; text.len() + 1];
        let mut matched = 0;
        for (at, byte) in text.iter().enumerate().skip(1) {
            while matched > 0 && text[matched] != *byte {
                matched = shorter[matched];
            }
            matched += usize::from(text[matched] == *byte);
            shorter[at + 1] = matched;
        }
        Self { text, shorter }
    }

    /// Returns whether bytes contain the text.
    fn is_in(&self, bytes: &[u8]) -> bool {
        let mut matched = 0;
        for byte in bytes {
            if matched == self.text.len() {
                break;
            }
            work::count(1);
            while matched > 0 && self.text[matched] != *byte {
                work::count(1);
                matched = self.shorter[matched];
            }
            matched += usize::from(self.text[matched] == *byte);
        }
        matched == self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_wherever_they_are() {
        for (text, bytes, is_in) in [
            ("", "", true),
            ("", "a", true),
            ("a", "", false),
            ("ab", "aab", true),
            ("aab", "aaab", true),
            ("abab", "abacabab", true),
            ("abab", "abacababa", true),
            ("abcabd", "abcabcabd", true),
            ("abcabd", "abcabcab", false),
            ("aaaa", "aaa", false),
        ] {
            let wanted = Wanted::new(text.as_bytes());
            assert_eq!(wanted.is_in(bytes.as_bytes()), is_in, "{text} in {bytes}");
        }
    }

    /// Beginning again behind each first byte took as many steps as the product of the lengths: a
    /// search for 30 KB in 1 MB held the server for seconds.
    #[test]
    fn search_takes_two_steps_a_byte_whatever_the_text() {
        let (text, bytes) = (format!("{}b", "a".repeat(1_000)), "a".repeat(10_000));
        let steps = work::counted(|| {
            assert!(!Wanted::new(text.as_bytes()).is_in(bytes.as_bytes()));
        });
        assert!(steps <= 2 * bytes.len(), "{steps} steps");
    }
}
