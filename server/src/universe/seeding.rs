//! Seeds a universe with a tree, exports its tree, and compares the two.

use std::collections::BTreeSet;

use minikeeper_core::{
    order,
    trees::{self, Lifetime, Tree, TreeDiff, Znode, seed_error::SeedError},
    turn::effects::TurnEffects,
    work,
};
use minikeeper_engine::{
    Engine, Image, Life, Now, TTL_MS_MAX, ZNODE_BYTES, ZnodeImage, ZnodeState, Znodes,
};
use minikeeper_protocol::{AclList, Create, CreateMode, CreateOp, Request, ZnodePath};

use crate::universe::Universe;

/// The changes made by [`Universe::seed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Seeded {
    /// The number of znodes created.
    pub created: usize,
    /// The number of times that data or an access list was set.
    pub changed: usize,
}

impl Universe {
    /// Creates the znodes of a tree that are missing, with their parents, and sets those that
    /// differ. Other znodes stay.
    ///
    /// Up to 1 000 znodes with 1 MiB of paths and data are changed in one turn, so clients see all of
    /// the changes or none. A larger tree takes several turns, in the order of paths, so that clients
    /// are served in between: they may see its first part. Each change takes a zxid and fires
    /// watches, as if a client had made it. Access lists are not checked.
    ///
    /// # Errors
    /// The fault of the tree, or its conflict with the existing one, with the path. Nothing has
    /// changed, except after [`SeedError::Refused`], and after a conflict with a change that a client
    /// made while a large tree was seeded.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, assert_tree, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/services/web/1" => "127.0.0.1:80", "/locks" => null })?;
    /// assert_tree!(server, {
    ///     "/locks" => null,
    ///     "/services/web" => "",
    ///     "/services/web/1" => "127.0.0.1:80",
    /// });
    /// # Ok(()) }
    /// ```
    pub fn seed(&self, tree: &Tree) -> Result<Seeded, SeedError> {
        check(tree, self.shared.config.frame_bytes_max)?;
        let tree = with_parents(tree);
        let mut seeded = Seeded::default();
        let pieces = pieces(&tree);
        if pieces.len() > 1 {
            self.check_conflicts(&pieces)?;
        }
        for piece in pieces {
            let change = |engine: &mut Engine, now: Now, effects: &mut TurnEffects<'_>| {
                let (changes, grown) = plan(engine, piece)?;
                check_size(engine, grown)?;
                for (path, change) in changes {
                    work::count(1);
                    let is_create = matches!(change, Request::Create(_));
                    let outcome = effects.administer(engine, now, &change);
                    outcome.map_err(|error| SeedError::Refused { path, error })?;
                    if is_create {
                        seeded.created += 1;
                    } else {
                        seeded.changed += 1;
                    }
                }
                Ok(())
            };
            let changed = self.shared.turns.alter(change);
            changed.unwrap_or(Err(SeedError::Stopped))?;
        }
        Ok(seeded)
    }

    /// Checks a tree against the existing one before its first change.
    fn check_conflicts(&self, pieces: &[&[(&str, &Znode)]]) -> Result<(), SeedError> {
        let turns = &self.shared.turns;
        let mut grown = 0;
        for piece in pieces {
            grown += turns.inspect(|engine| plan(engine, piece))?.1;
        }
        turns.inspect(|engine| check_size(engine, grown))
    }

    /// Exports the tree with lifetimes and access lists, to [seed](Universe::seed) another server.
    /// Omits `/zookeeper` and ephemerals, which belong to sessions.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/a" => "x" })?;
    /// let other = Server::builder().seed(server.export_tree()).start().await?;
    /// assert_eq!(other.export_tree(), server.export_tree());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn export_tree(&self) -> Tree {
        let turns = &self.shared.turns;
        turns.view(|engine| export(engine, false))
    }

    /// Exports a znode and everything below it, as [`export_tree`](Universe::export_tree) does, with
    /// whole paths. Returns `None` if there is no such znode.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/a/b" => "x", "/c" => "y" })?;
    /// let subtree = server.export_subtree("/a").unwrap();
    /// assert!(subtree.get("/a/b").is_some() && subtree.get("/c").is_none());
    /// assert_eq!(server.export_subtree("/d"), None);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn export_subtree(&self, path: &str) -> Option<Tree> {
        let turns = &self.shared.turns;
        turns.view(|engine| subtree(engine, path))
    }

    /// Compares the universe's tree, ephemerals included, with the expected one. Returns `None` if
    /// they are equal.
    ///
    /// A znode that `expected` does not name is a difference, unless `expected` is
    /// [partial](Tree::partial) or names a descendant. Ignores `/zookeeper`, and the root unless it
    /// is named. [`assert_tree!`](crate::assert_tree!) does the same and panics.
    #[must_use]
    pub fn diff_tree(&self, expected: &Tree) -> Option<TreeDiff> {
        let found = self.shared.turns.view(|engine| export(engine, true));
        TreeDiff::of(expected, &found)
    }

    /// Does the same, and also returns the paths of the ephemerals, which the tree does not contain.
    #[cfg(feature = "control")]
    pub(crate) fn export_with_ephemerals(&self, path: &str) -> Option<(Tree, Vec<String>)> {
        let turns = &self.shared.turns;
        turns.view(|engine| Some((subtree(engine, path)?, ephemerals(engine, path))))
    }
}

/// Panics unless a server's tree equals the expected one: every znode, ephemerals included, except
/// `/zookeeper`.
///
/// The tree is written as in [`tree!`](minikeeper_core::tree!) or given as a [`Tree`]. A final `..` permits
/// more znodes than are named. The panic lists the differences: `-` is expected, `+` is found.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper::{Server, Znode, assert_tree, tree};
/// let server = Server::builder().start().await?;
/// server.seed(&tree! { "/a" => "x", "/a/b" => null })?;
/// assert_tree!(server, { "/a" => "x", "/a/b" => null });
/// assert_tree!(server, { "/a/b" => Znode::any(), .. });
/// let before = server.export_tree();
/// assert_tree!(server, before);
/// # Ok(()) }
/// ```
#[macro_export]
macro_rules! assert_tree {
    ($server:expr, { $($znodes:tt)* } $(,)?) => {
        $crate::assert_tree!($server, $crate::tree! { $($znodes)* })
    };
    ($server:expr, $tree:expr $(,)?) => {
        if let ::core::option::Option::Some(differences) = $server.diff_tree(&$tree) {
            ::core::panic!("{differences}");
        }
    };
}

/// The path of the subtree that belongs to the server.
const SYSTEM: &str = "/zookeeper";

/// The path of a znode, and the request that creates or changes it.
pub(crate) type PlannedChange = (String, Request);

/// Checks everything about a tree that does not depend on the existing one.
///
/// # Errors
/// The first znode that no server could have.
pub(crate) fn check(tree: &Tree, frame_bytes_max: usize) -> Result<(), SeedError> {
    for (path, znode) in tree.iter() {
        ZnodePath::new(path)?;
        let path = || path.to_owned();
        if is_system(&path()) {
            return Err(SeedError::System { path: path() });
        }
        match znode.lifetime() {
            Some(Lifetime::Ephemeral) => return Err(SeedError::Ephemeral { path: path() }),
            Some(Lifetime::TimeToLive(ttl)) => {
                let ttl_ms = ttl.as_millis();
                if !(1..=u128::from(TTL_MS_MAX.unsigned_abs())).contains(&ttl_ms) {
                    return Err(SeedError::TimeToLive {
                        path: path(),
                        ttl_ms,
                    });
                }
            }
            _ => {}
        }
        if let Some(Some(data)) = znode.data()
            && data.len() > frame_bytes_max
        {
            return Err(SeedError::DataTooLong {
                path: path(),
                bytes: data.len(),
                max: frame_bytes_max,
            });
        }
        access_list(&path(), znode)?;
    }
    Ok(())
}

/// Returns the znodes of a tree and those parents that it does not name, parents first.
fn with_parents(tree: &Tree) -> Vec<(&str, &Znode)> {
    static ANY: Znode = Znode::any();
    let mut complete = Vec::new();
    let mut parents = BTreeSet::new();
    for (path, znode) in tree.iter() {
        let above = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
        for parent in above.take_while(|parent| !parent.is_empty()) {
            // Those above it were added with it, or with the znode.
            if tree.get(parent).is_some() || !parents.insert(parent) {
                break;
            }
            complete.push((parent, &ANY));
        }
        complete.push((path, znode));
    }
    order::sort_by_key(&mut complete, |(path, _)| *path);
    complete
}

/// The maximum number of znodes that one turn seeds, and of the bytes of their paths and data.
const SEEDED_AT_ONCE: usize = 1_000;
const SEEDED_BYTES_AT_ONCE: usize = 1 << 20;

/// Divides the znodes of a tree into those of each turn.
fn pieces<'a, 'b>(mut tree: &'a [(&'b str, &'b Znode)]) -> Vec<&'a [(&'b str, &'b Znode)]> {
    let mut pieces = Vec::new();
    while !tree.is_empty() {
        let mut bytes = 0;
        let fits = |(path, znode): &&(&str, &Znode)| {
            bytes += path.len() + znode.data().flatten().map_or(0, <[u8]>::len);
            bytes <= SEEDED_BYTES_AT_ONCE
        };
        let count = tree.iter().take(SEEDED_AT_ONCE).take_while(fits).count();
        let (piece, rest) = tree.split_at(count.max(1));
        pieces.push(piece);
        tree = rest;
    }
    pieces
}

fn check_size(engine: &Engine, grown: usize) -> Result<(), SeedError> {
    let bytes = engine.counts().tree_bytes + grown;
    let max = engine.settings().tree_bytes_max;
    if bytes > max && grown > 0 {
        return Err(SeedError::TreeTooLarge { bytes, max });
    }
    Ok(())
}

/// Lists the changes that seed these znodes of a checked tree, in the order in which to make them.
/// Also returns how many bytes they add to the tree.
///
/// # Errors
/// The first conflict with the existing tree.
fn plan(
    engine: &Engine,
    znodes: &[(&str, &Znode)],
) -> Result<(Vec<PlannedChange>, usize), SeedError> {
    let image = engine.image();
    let mut changes = Vec::new();
    let mut grown = 0;
    for &(path, znode) in znodes {
        work::count(1);
        match image.znode(path) {
            Some(there) => grown += change(&image, &there, path, znode, &mut changes)?,
            None => {
                let parent = path.rsplit_once('/').map(|(parent, _)| parent);
                let parent = parent.and_then(|parent| image.znode(parent));
                if parent.is_some_and(|parent| matches!(parent.life(), Life::Session(_))) {
                    let path = path.to_owned();
                    return Err(SeedError::ParentIsEphemeral { path });
                }
                let length = znode.data().flatten().map_or(0, <[u8]>::len);
                grown += path.len() + length + ZNODE_BYTES;
                changes.push((path.to_owned(), create(path, znode)?));
            }
        }
    }
    Ok((changes, grown))
}

/// Adds the changes to an existing znode. Returns how many bytes they add to the tree.
fn change(
    image: &Image<'_>,
    there: &ZnodeImage<'_>,
    path: &str,
    znode: &Znode,
    changes: &mut Vec<PlannedChange>,
) -> Result<usize, SeedError> {
    let found = lifetime(there);
    if let Some(wanted) = znode.lifetime()
        && wanted != found
    {
        let path = path.to_owned();
        return Err(SeedError::Lifetime {
            path,
            wanted,
            found,
        });
    }
    let mut grown = 0;
    if let Some(data) = znode.data()
        && data != there.data
    {
        let length = |data: Option<&[u8]>| data.map_or(0, <[u8]>::len);
        grown = length(data).saturating_sub(length(there.data));
        let set = Request::SetData {
            path: Some(path.into()),
            data: data.map(|data| data.to_vec().into()),
            version: -1,
        };
        changes.push((path.to_owned(), set));
    }
    if let Some(acl) = access_list(path, znode)?
        && image.access_list(there.acl) != Some(&acl)
    {
        let set = Request::SetAcl {
            path: Some(path.into()),
            acl,
            version: -1,
        };
        changes.push((path.to_owned(), set));
    }
    Ok(grown)
}

/// Returns the request that creates a znode.
///
/// # Errors
/// When an entry of the access list cannot be parsed.
pub(crate) fn create(path: &str, znode: &Znode) -> Result<Request, SeedError> {
    let acl = access_list(path, znode)?.unwrap_or_default();
    let data = znode.data().unwrap_or(Some(b""));
    let (op, mode, ttl_ms) = match znode.lifetime() {
        Some(Lifetime::Container) => (CreateOp::Container, CreateMode::Container, 0),
        Some(Lifetime::TimeToLive(ttl)) => {
            let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
            (CreateOp::Ttl, CreateMode::PersistentWithTtl, ttl_ms)
        }
        _ => (CreateOp::Create, CreateMode::Persistent, 0),
    };
    Ok(Request::Create(Create {
        op,
        path: Some(path.into()),
        data: data.map(|data| data.to_vec().into()),
        acl,
        flags: mode.flags(),
        ttl_ms,
    }))
}

fn access_list(path: &str, znode: &Znode) -> Result<Option<AclList>, SeedError> {
    let Some(entries) = znode.access() else {
        return Ok(None);
    };
    let wrong = |entry: &str| SeedError::Access {
        path: path.to_owned(),
        entry: entry.to_owned(),
    };
    if entries.is_empty() {
        return Err(wrong(""));
    }
    let parsed = entries
        .iter()
        .map(|entry| trees::acl(entry).ok_or_else(|| wrong(entry)));
    Ok(Some(AclList::new(&parsed.collect::<Result<Vec<_>, _>>()?)))
}

/// Exports the tree with the data, lifetime and access list of each znode. Omits `/zookeeper`, and
/// ephemerals unless they are wanted.
pub(crate) fn export(engine: &Engine, with_ephemerals: bool) -> Tree {
    exported(engine, engine.image().znodes(), with_ephemerals)
}

fn subtree(engine: &Engine, path: &str) -> Option<Tree> {
    Some(exported(engine, engine.image().subtree(path)?, false))
}

fn exported(engine: &Engine, znodes: Znodes<'_>, with_ephemerals: bool) -> Tree {
    let image = engine.image();
    let mut tree = Tree::new();
    for znode in znodes {
        let path = String::from_utf8_lossy(znode.path);
        let lifetime = lifetime(&znode);
        if is_system(&path) || lifetime == Lifetime::Ephemeral && !with_ephemerals {
            continue;
        }
        let is_open = image.access_list(znode.acl) == Some(&AclList::world_all());
        // Every server has such a root.
        if path == "/" && is_open && znode.data == Some(b"") {
            continue;
        }
        let state = ZnodeState {
            data: znode.data,
            acl: znode.acl,
            life: znode.life(),
        };
        tree.insert(path, znode_of_state(engine, state));
    }
    tree
}

pub(crate) fn znode_of_state(engine: &Engine, state: ZnodeState<'_>) -> Znode {
    let access = engine.image().access_list(state.acl).map(trees::text_of);
    Znode::from(state.data.map(<[u8]>::to_vec))
        .lives(lifetime_of(state.life))
        .acl(access.unwrap_or_default())
}

#[cfg(feature = "control")]
fn ephemerals(engine: &Engine, path: &str) -> Vec<String> {
    let znodes = engine.image().subtree(path).into_iter().flatten();
    let ephemerals = znodes.filter(|znode| lifetime(znode) == Lifetime::Ephemeral);
    ephemerals
        .map(|znode| String::from_utf8_lossy(znode.path).into_owned())
        .collect()
}

pub(crate) fn lifetime(znode: &ZnodeImage<'_>) -> Lifetime {
    lifetime_of(znode.life())
}

fn lifetime_of(life: Life) -> Lifetime {
    match life {
        Life::Persistent => Lifetime::Persistent,
        Life::Session(_) => Lifetime::Ephemeral,
        Life::Container => Lifetime::Container,
        Life::Ttl { ms } => {
            let ms = u64::try_from(ms).unwrap_or_default();
            Lifetime::TimeToLive(std::time::Duration::from_millis(ms))
        }
    }
}

fn is_system(path: &str) -> bool {
    path.strip_prefix(SYSTEM)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
