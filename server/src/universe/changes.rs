//! Creates, sets and deletes single znodes, as an administrator outside of any session.

use std::{collections::BTreeSet, error::Error, fmt};

use minikeeper_core::{
    trees::{Lifetime, Tree, Znode, seed_error::SeedError},
    turn::effects::TurnEffects,
    work,
};
use minikeeper_engine::{Engine, Now};
use minikeeper_protocol::{Create, CreateMode, ErrorCode, Request, Stat};

use crate::universe::{Universe, seeding};

impl Universe {
    /// Creates a znode, whose parent must exist. Takes a zxid and fires watches as a client's create
    /// does. Access lists are not checked.
    ///
    /// # Errors
    /// [`ChangeError`] says why nothing has changed. An ephemeral is refused: no session would own
    /// it.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, Znode, assert_tree};
    /// let server = Server::builder().start().await?;
    /// server.create("/queue", Znode::from("x").container())?;
    /// server.create_sequential("/queue/n-", "first")?;
    /// server.set("/queue/n-0000000000", "changed", Some(0))?;
    /// assert_tree!(server, { "/queue" => "x", "/queue/n-0000000000" => "changed" });
    /// assert_eq!(server.delete_recursively("/queue", None)?, 2);
    /// # Ok(()) }
    /// ```
    pub fn create(&self, path: &str, znode: impl Into<Znode>) -> Result<(), ChangeError> {
        self.create_as(path, &znode.into(), false).map(drop)
    }

    /// Creates a znode with a number appended to its name. Returns its path. Otherwise like
    /// [`create`](Universe::create).
    ///
    /// # Errors
    /// Those of [`create`](Universe::create). A container cannot be sequential.
    pub fn create_sequential(
        &self,
        path: &str,
        znode: impl Into<Znode>,
    ) -> Result<String, ChangeError> {
        self.create_as(path, &znode.into(), true)
    }

    fn create_as(
        &self,
        path: &str,
        znode: &Znode,
        is_sequential: bool,
    ) -> Result<String, ChangeError> {
        self.check_change(path, znode)?;
        let mut request = seeding::create(path, znode)?;
        if let (true, Request::Create(Create { flags, .. })) = (is_sequential, &mut request) {
            let mode = match znode.lifetime() {
                Some(Lifetime::Container) => return Err(ChangeError::SequentialContainer),
                Some(Lifetime::TimeToLive(_)) => CreateMode::PersistentSequentialWithTtl,
                _ => CreateMode::PersistentSequential,
            };
            *flags = mode.flags();
        }
        self.change(|engine, now, effects| {
            let created = effects.administer(engine, now, &request);
            created.map_err(|error| match error {
                ErrorCode::NoNode => ChangeError::NoParent {
                    path: path.to_owned(),
                },
                error => refused(path, error),
            })
        })
    }

    /// Sets the data of a znode, if it has this version or none is given. Returns its new stat. Takes
    /// a zxid and fires watches as a client's setData does. Access lists are not checked.
    ///
    /// # Errors
    /// [`ChangeError`] says why nothing has changed.
    pub fn set(
        &self,
        path: &str,
        data: impl AsRef<[u8]>,
        version: Option<i32>,
    ) -> Result<Stat, ChangeError> {
        let data = data.as_ref();
        self.check_change(path, &Znode::from(data))?;
        let request = Request::SetData {
            path: Some(path.into()),
            data: Some(data.to_vec().into()),
            version: -1,
        };
        self.change(|engine, now, effects| {
            check_version(engine, path, version)?;
            let set = effects.administer(engine, now, &request);
            set.map_err(|error| refused(path, error))?;
            let stat = engine.get(path).map(|(_, stat)| stat);
            stat.ok_or_else(|| refused(path, ErrorCode::NoNode))
        })
    }

    /// Deletes a znode without children, if it has this version or none is given. Takes a zxid and
    /// fires watches as a client's delete does. Access lists are not checked.
    ///
    /// # Errors
    /// [`ChangeError`] says why nothing has changed.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Result<(), ChangeError> {
        self.delete_as(path, version, false).map(drop)
    }

    /// Deletes a znode, if it has this version or none is given, and everything below it. Each delete
    /// takes a zxid. Returns how many znodes there were.
    ///
    /// Up to 1,000 znodes are deleted in one turn. More are deleted in several, children first: clients
    /// are served in between, and what they create below the znode is deleted too.
    ///
    /// # Errors
    /// [`ChangeError`] says why the znode was not deleted. Of more than 1,000 znodes, some of those below
    /// it may be.
    pub fn delete_recursively(
        &self,
        path: &str,
        version: Option<i32>,
    ) -> Result<usize, ChangeError> {
        let mut count = 0;
        // Clients may create others meanwhile.
        for _ in 0..DELETE_PASSES_MAX {
            match self.delete_as(path, version, true) {
                Err(ChangeError::NotEmpty { .. }) => count += self.delete_below(path)?,
                deleted => return deleted.map(|last| count + last),
            }
        }
        self.delete_as(path, version, true).map(|last| count + last)
    }

    /// Deletes what is below a znode now, in several turns. Returns how many znodes there were.
    fn delete_below(&self, path: &str) -> Result<usize, ChangeError> {
        let below = format!("{path}/");
        let mut paths = BTreeSet::new();
        self.shared.turns.pieces(|engine, from| {
            engine.scan(from, DELETED_AT_ONCE, |znode| {
                if znode.path.starts_with(below.as_bytes()) {
                    paths.insert(String::from_utf8_lossy(znode.path).into_owned());
                }
            })
        });
        // A path comes behind its beginnings, so children come before their parents.
        let mut paths = paths.into_iter().rev().peekable();
        let mut count = 0;
        while paths.peek().is_some() {
            let piece: Vec<_> = paths.by_ref().take(DELETED_AT_ONCE).collect();
            count += self.change(|engine, now, effects| {
                work::count(piece.len());
                let mut count = 0;
                for path in &piece {
                    match effects.administer(engine, now, &delete_of(path)) {
                        Ok(_) => count += 1,
                        // Clients were faster.
                        Err(ErrorCode::NoNode | ErrorCode::NotEmpty) => {}
                        Err(error) => return Err(refused(path, error)),
                    }
                }
                Ok(count)
            })?;
        }
        Ok(count)
    }

    /// Deletes a znode, and if `is_recursive` what is below it, if that is at most
    /// [`DELETED_AT_ONCE`] znodes.
    fn delete_as(
        &self,
        path: &str,
        version: Option<i32>,
        is_recursive: bool,
    ) -> Result<usize, ChangeError> {
        self.check_change(path, &Znode::any())?;
        if path == "/" {
            return Err(ChangeError::Root);
        }
        self.change(|engine, now, effects| {
            check_version(engine, path, version)?;
            let subtree = engine.image().subtree(path);
            let subtree = subtree.ok_or_else(|| refused(path, ErrorCode::NoNode))?;
            let paths: Vec<_> = match is_recursive {
                true => subtree
                    .take(DELETED_AT_ONCE + 1)
                    .map(|znode| znode.path.to_vec())
                    .collect(),
                false => vec![path.as_bytes().to_vec()],
            };
            work::count(paths.len());
            if paths.len() > DELETED_AT_ONCE {
                return Err(not_empty(engine, path));
            }
            // Children before their parents.
            for path in paths.iter().rev() {
                let path = String::from_utf8_lossy(path);
                let deleted = effects.administer(engine, now, &delete_of(&path));
                deleted.map_err(|error| match error {
                    ErrorCode::NotEmpty => not_empty(engine, &path),
                    error => refused(&path, error),
                })?;
            }
            Ok(paths.len())
        })
    }

    /// Checks what does not depend on the existing tree.
    fn check_change(&self, path: &str, znode: &Znode) -> Result<(), ChangeError> {
        let tree = Tree::new().with(path, znode.clone());
        seeding::check(&tree, self.shared.config.frame_bytes_max)?;
        Ok(())
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Engine, Now, &mut TurnEffects<'_>) -> Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        let changed = self.shared.turns.alter(change);
        changed.unwrap_or(Err(ChangeError::Stopped))
    }
}

/// The maximum number of znodes that are deleted in one turn.
const DELETED_AT_ONCE: usize = 1_000;

/// How often what clients have created meanwhile is deleted, too.
const DELETE_PASSES_MAX: usize = 10;

fn delete_of(path: &str) -> Request {
    Request::Delete {
        path: Some(path.into()),
        version: -1,
    }
}

fn check_version(engine: &Engine, path: &str, version: Option<i32>) -> Result<(), ChangeError> {
    let found = engine.get(path).map(|(_, stat)| stat.version);
    match (version, found) {
        (Some(version), Some(found)) if version != found => Err(ChangeError::BadVersion {
            path: path.to_owned(),
            version,
            found,
        }),
        _ => Ok(()),
    }
}

fn not_empty(engine: &Engine, path: &str) -> ChangeError {
    let stat = engine.get(path).map(|(_, stat)| stat);
    let children = stat.map_or(0, |stat| stat.num_children);
    ChangeError::NotEmpty {
        path: path.to_owned(),
        children: usize::try_from(children).unwrap_or_default(),
    }
}

fn refused(path: &str, error: ErrorCode) -> ChangeError {
    let path = path.to_owned();
    ChangeError::Refused { path, error }
}

/// Why a znode was not created, set or deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChangeError {
    /// No server could have such a znode.
    Invalid(SeedError),
    /// The root cannot be deleted.
    Root,
    /// A container cannot be sequential.
    SequentialContainer,
    /// The parent of the new znode does not exist.
    NoParent {
        /// The path of the znode.
        path: String,
    },
    /// The znode has another version.
    BadVersion {
        /// The path of the znode.
        path: String,
        /// The expected version.
        version: i32,
        /// The actual version.
        found: i32,
    },
    /// The znode to delete has children.
    NotEmpty {
        /// The path of the znode.
        path: String,
        /// How many children it has.
        children: usize,
    },
    /// The server refused the change.
    Refused {
        /// The path of the znode.
        path: String,
        /// The error that a client would get.
        error: ErrorCode,
    },
    /// The server has failed: [`Server::closed`](crate::Server::closed) says why.
    Stopped,
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Root => f.write_str("path \"/\": the root cannot be deleted"),
            Self::SequentialContainer => {
                f.write_str("a container cannot be sequential; choose one of the two")
            }
            Self::NoParent { path } => {
                let parent = match path.rsplit_once('/') {
                    Some(("", _)) | None => "/",
                    Some((parent, _)) => parent,
                };
                let error = ErrorCode::NoNode;
                write!(
                    f,
                    "path {path:?}: parent {parent:?}: {error}; create it first"
                )
            }
            Self::BadVersion {
                path,
                version,
                found,
            } => {
                let error = ErrorCode::BadVersion;
                write!(
                    f,
                    "path {path:?}: version {version} expected, {found} found: {error}"
                )
            }
            Self::NotEmpty { path, children } => {
                let error = ErrorCode::NotEmpty;
                write!(
                    f,
                    "path {path:?}: {error}: {children}; delete them first, or delete it recursively"
                )
            }
            Self::Refused { path, error } => write!(f, "path {path:?}: {error}"),
            Self::Stopped => SeedError::Stopped.fmt(f),
        }
    }
}

impl Error for ChangeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid(error) => error.source(),
            _ => None,
        }
    }
}

impl From<SeedError> for ChangeError {
    fn from(error: SeedError) -> Self {
        Self::Invalid(error)
    }
}
