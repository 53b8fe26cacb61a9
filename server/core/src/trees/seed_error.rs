//! Why a tree cannot be seeded.

use std::{error::Error, fmt};

use minikeeper_engine::TTL_MS_MAX;
use minikeeper_protocol::{ErrorCode, PathError};

use crate::trees::Lifetime;

/// Why a tree cannot be seeded: see [`Universe::seed`](../minikeeper/struct.Universe.html#method.seed).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SeedError {
    /// A path breaks a rule.
    Path(PathError),
    /// A path belongs to the server.
    System {
        /// The path of the znode.
        path: String,
    },
    /// Only a client's session can create an ephemeral.
    Ephemeral {
        /// The path of the znode.
        path: String,
    },
    /// An entry of an access list cannot be parsed, or the list is empty.
    Access {
        /// The path of the znode.
        path: String,
        /// The entry; empty if the list is.
        entry: String,
    },
    /// A time to live is out of range.
    TimeToLive {
        /// The path of the znode.
        path: String,
        /// The time to live.
        ttl_ms: u128,
    },
    /// The data is longer than a client could send.
    DataTooLong {
        /// The path of the znode.
        path: String,
        /// The length.
        bytes: usize,
        /// The maximum length.
        max: usize,
    },
    /// The znode exists with another lifetime, which cannot be changed.
    Lifetime {
        /// The path of the znode.
        path: String,
        /// The expected value.
        wanted: Lifetime,
        /// The actual value.
        found: Lifetime,
    },
    /// Ephemerals have no children.
    ParentIsEphemeral {
        /// The path of the znode.
        path: String,
    },
    /// The tree would take too much memory.
    TreeTooLarge {
        /// Its size, existing znodes included.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The server refused a change. Those before it have been made.
    Refused {
        /// The path of the znode.
        path: String,
        /// The error that a client would get.
        error: ErrorCode,
    },
    /// The server has failed: [`Server::closed`](../minikeeper/struct.Server.html#method.closed) says why.
    Stopped,
}

impl fmt::Display for SeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::System { path } => write!(
                f,
                "path {path:?}: /zookeeper and everything below it belongs to the \
                 server"
            ),
            Self::Ephemeral { path } => write!(
                f,
                "path {path:?}: an ephemeral belongs to a session; let a client \
                 create it"
            ),
            Self::Access { path, entry } => write!(
                f,
                "path {path:?}: access list entry {entry:?} is not \
                 SCHEME:ID:PERMISSIONS, as in world:anyone:cdrwa"
            ),
            Self::TimeToLive { path, ttl_ms } => write!(
                f,
                "path {path:?}: time to live of {ttl_ms} ms is outside the range of 1 ms to {TTL_MS_MAX} ms"
            ),
            Self::DataTooLong { path, bytes, max } => write!(
                f,
                "path {path:?}: data of {bytes} bytes exceeds the limit of {max} \
                 bytes (frame_bytes_max)"
            ),
            Self::Lifetime {
                path,
                wanted,
                found,
            } => write!(
                f,
                "path {path:?}: exists as {found}; delete it first to create it as \
                 {wanted}"
            ),
            Self::ParentIsEphemeral { path } => write!(
                f,
                "path {path:?}: its parent is an ephemeral, which cannot have \
                 children"
            ),
            Self::TreeTooLarge { bytes, max } => write!(
                f,
                "the tree would take {bytes} bytes and exceed the limit of {max} \
                 bytes (tree_bytes_max)"
            ),
            Self::Refused { path, error } => write!(f, "path {path:?}: {error}"),
            Self::Stopped => f.write_str(
                "the server has stopped: by an internal error, or because a change \
                 could not be logged",
            ),
        }
    }
}

impl Error for SeedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Path(error) => error.source(),
            _ => None,
        }
    }
}

impl From<PathError> for SeedError {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}
