//! Why what was saved is no state.

use core::fmt;

use minikeeper_protocol::{PathError, SessionId, Zxid};

use crate::{input::ZXID_MAX, state::znode::TTL_MS_MAX};

/// Why what was saved is no state.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ImageError {
    /// There are more sessions than allowed.
    SessionsMax {
        /// The limit.
        max: usize,
    },
    /// An id that no session can have.
    NoSessionId {
        /// The id.
        id: SessionId,
    },
    /// Two sessions have the same id.
    SessionTwice {
        /// The id.
        id: SessionId,
    },
    /// A session with a negative timeout.
    NegativeTimeout {
        /// The session.
        id: SessionId,
        /// Its timeout, in milliseconds.
        timeout_ms: i32,
    },
    /// Two access lists have the same id.
    AccessListTwice {
        /// The id.
        id: i64,
    },
    /// An access list that is null, or an entry of it without scheme or id.
    IncompleteAccessList {
        /// The list.
        id: i64,
    },
    /// A znode whose access list is not there.
    UnknownAccessList {
        /// The znode.
        path: String,
        /// The list.
        id: i64,
    },
    /// A path that breaks a rule.
    Path(PathError),
    /// The first znode is not the root, or there is none.
    NoRoot,
    /// A znode without a parent before it.
    NoParent {
        /// The znode.
        path: String,
    },
    /// A znode below an ephemeral one.
    EphemeralParent {
        /// The znode.
        path: String,
    },
    /// The root would be deleted some time: with a session, or as a container.
    RootOwner {
        /// What is stored as its owner.
        owner: i64,
    },
    /// A time to live that there cannot be.
    TtlOutOfRange {
        /// The znode.
        path: String,
        /// Its time to live, in milliseconds.
        ttl_ms: i64,
    },
    /// Two znodes have the same path.
    ZnodeTwice {
        /// The path.
        path: String,
    },
    /// A zxid behind which too few are left.
    ZxidTooHigh {
        /// The zxid.
        zxid: Zxid,
    },
    /// The tree takes more memory than allowed.
    TreeBytesMax {
        /// The limit, in bytes.
        max: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionsMax { max } => write!(f, "more sessions than sessions_max of {max}"),
            Self::NoSessionId { id } => write!(f, "session {id}: no session can have this id"),
            Self::SessionTwice { id } => write!(f, "session {id} is there twice"),
            Self::NegativeTimeout { id, timeout_ms } => {
                write!(f, "session {id}: timeout of {timeout_ms} ms is negative")
            }
            Self::AccessListTwice { id } => write!(f, "access list {id} is there twice"),
            Self::IncompleteAccessList { id } => {
                write!(
                    f,
                    "access list {id}: null, or an entry without scheme or id"
                )
            }
            Self::UnknownAccessList { path, id } => {
                write!(f, "znode {path:?}: access list {id} is not in the table")
            }
            Self::Path(error) => error.fmt(f),
            Self::NoRoot => f.write_str("the first znode is not the root"),
            Self::NoParent { path } => write!(f, "znode {path:?}: no parent comes before it"),
            Self::EphemeralParent { path } => write!(f, "znode {path:?}: its parent is ephemeral"),
            Self::RootOwner { owner } => {
                write!(f, "znode \"/\": owner {owner:#x}, but the root has none")
            }
            Self::TtlOutOfRange { path, ttl_ms } => {
                let max = TTL_MS_MAX;
                write!(f, "znode {path:?}: ttl of {ttl_ms} ms is not in 1 to {max}")
            }
            Self::ZnodeTwice { path } => write!(f, "znode {path:?} is there twice"),
            Self::ZxidTooHigh { zxid } => {
                write!(f, "zxid {zxid} exceeds the limit of {}", Zxid(ZXID_MAX))
            }
            Self::TreeBytesMax { max } => {
                write!(f, "the tree exceeds tree_bytes_max of {max} bytes")
            }
        }
    }
}

impl std::error::Error for ImageError {}
