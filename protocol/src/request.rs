//! Requests, and the table of all operations.
//!
//! The table has one row per operation: its code, its name, the abbreviation in ZooKeeper's
//! statistics, the record of the reply (see `ReplyKind`) and the fields of the request. [`OpCode`],
//! [`Request`] and their encodings are generated from it.
//!
//! Values are kept as received (paths may be null or malformed, flags unknown). The server checks
//! them, because clients can observe the order in which it finds faults.
//!
//! Source: `docs/zookeeper-protocol.md` section 4.

use bytes::Bytes;

use crate::{
    acl::AclList,
    create::{Create, CreateOp},
    error::DecodeError,
    frame,
    ids::{Xid, Zxid},
    jute::{self, Reader, Ustring},
    multi::{self, MultiOp, MultiReadOp},
    reply::ReplyKind,
};

/// The kind of a request's field: its form on the wire, and whether it contains paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// A path, which may be null.
    Path,
    /// A vector of paths, which must not be null.
    Paths,
    /// Text that is no path; may be null.
    Ustring,
    /// Bytes, which may be null.
    Buffer,
    /// An access list.
    Acl,
    /// One byte.
    Bool,
    /// Four bytes.
    Int,
    /// Eight bytes.
    Long,
    /// Eight bytes, a zxid.
    Zxid,
}

requests! {
    families {
        Create = 1, "create", "CREA" => Path;
        Create2 = 15, "create2", "CREA" => PathStat;
        CreateContainer = 19, "createContainer", "CREA" => PathStat;
        CreateTtl = 21, "createTTL", "CREA" => PathStat;
        Multi = 14, "multi", "MULT" => Multi;
        MultiRead = 22, "multiRead", "MLTR" => Multi;
    }
    records {
        /// delete: version -1 matches any.
        Delete = 2, "delete", "DELE" => Empty { path: path, version: int };
        /// exists.
        Exists = 3, "exists", "EXIS" => Stat { path: path, watch: bool };
        /// getData.
        GetData = 4, "getData", "GETD" => Data { path: path, watch: bool };
        /// setData: version -1 matches any.
        SetData = 5, "setData", "SETD" => Stat { path: path, data: buffer, version: int };
        /// getACL.
        GetAcl = 6, "getACL", "GETA" => Acl { path: path };
        /// setACL: the version is compared with the stat's aversion; -1 matches any.
        SetAcl = 7, "setACL", "SETA" => Stat { path: path, acl: acl, version: int };
        /// getChildren: names only.
        GetChildren = 8, "getChildren", "GETC" => Children { path: path, watch: bool };
        /// sync: the path is echoed.
        Sync = 9, "sync", "SYNC" => Path { path: path };
        /// ping: keeps the session alive.
        Ping = 11, "ping", "PING" => Empty;
        /// getChildren2: names and the parent's stat.
        GetChildren2 = 12, "getChildren2", "GETC" => Children2 { path: path, watch: bool };
        /// check: only valid inside a multi; servers refuse it elsewhere.
        Check = 13, "check", "CHEC" => None { path: path, version: int };
        /// reconfig: ensembles only.
        Reconfig = 16, "reconfig", "RECO" => Data {
            joining: ustring, leaving: ustring, members: ustring, config_id: long
        };
        /// checkWatches: checks whether the connection has a watch of this kind.
        CheckWatches = 17, "checkWatches", "CHKW" => Empty { path: path, kind: int };
        /// removeWatches.
        RemoveWatches = 18, "removeWatches", "REMW" => Empty { path: path, kind: int };
        /// deleteContainer: internal to servers.
        DeleteContainer = 20, "deleteContainer", "DELE" => Empty { path: path };
        /// auth: adds an identity to the connection. Servers ignore the kind.
        Auth = 100, "auth", "NA" => Empty { kind: int, scheme: ustring, data: buffer };
        /// setWatches: registers watches again after a reconnect. A null vector counts as a
        /// malformed message, because servers send the same reply to both.
        SetWatches = 101, "setWatches", "SETW" => Empty {
            relative_zxid: zxid, data: paths, exist: paths, child: paths
        };
        /// sasl: one step of an exchange.
        Sasl = 102, "sasl", "NA" => Token { token: buffer };
        /// getEphemerals: lists those of the requesting session whose path has this prefix, as
        /// text.
        GetEphemerals = 103, "getEphemerals", "GETE" => Ephemerals { prefix: path };
        /// getAllChildrenNumber: counts descendants.
        GetAllChildrenNumber = 104, "getAllChildrenNumber", "GETACN" => Count { path: path };
        /// setWatches2: setWatches with persistent watches.
        SetWatches2 = 105, "setWatches2", "STW2" => Empty {
            relative_zxid: zxid, data: paths, exist: paths, child: paths,
            persistent: paths, persistent_recursive: paths
        };
        /// addWatch: see [`AddWatchMode`].
        AddWatch = 106, "addWatch", "ADDW" => WatchAdded { path: path, mode: int };
        /// whoAmI: the identities of the connection.
        WhoAmI = 107, "whoAmI", "HOMI" => ClientInfos;
        /// createSession: internal to servers.
        CreateSession = -10, "createSession", "NA" => None;
        /// closeSession.
        CloseSession = -11, "closeSession", "CLOS" => Empty;
    }
}

impl Request {
    /// Appends the request as a frame, header included.
    pub fn encode(&self, xid: Xid, out: &mut Vec<u8>) {
        frame::put(out, |out| {
            jute::put_int(out, xid.0);
            jute::put_int(out, self.op().code());
            self.encode_body(out);
        });
    }
}

/// The header of every request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHeader {
    /// The client's number for the request.
    pub xid: Xid,
    /// The operation code, known or not.
    pub op: i32,
}

impl RequestHeader {
    /// Reads the header.
    ///
    /// # Errors
    /// When the message has fewer than eight bytes.
    #[inline]
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            xid: Xid(reader.int()?),
            op: reader.int()?,
        })
    }
}

/// The watches that checkWatches and removeWatches select.
///
/// Source: `docs/zookeeper-protocol.md` section 12.7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatcherType {
    /// One-shot watches set by getChildren.
    Children,
    /// One-shot watches set by getData and exists.
    Data,
    /// Watches of any kind.
    Any,
    /// Persistent watches.
    Persistent,
    /// Persistent recursive watches.
    PersistentRecursive,
}

impl WatcherType {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Children => 1,
            Self::Data => 2,
            Self::Any => 3,
            Self::Persistent => 4,
            Self::PersistentRecursive => 5,
        }
    }

    /// Returns the type with this number.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            1 => Self::Children,
            2 => Self::Data,
            3 => Self::Any,
            4 => Self::Persistent,
            5 => Self::PersistentRecursive,
            _ => return None,
        })
    }
}

/// How long an added watch lasts, and which znodes it covers. Source: `docs/zookeeper-protocol.md`
/// section 3.7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddWatchMode {
    /// Fires until removed, for the znode and its children.
    Persistent,
    /// Fires until removed, for the znode and everything below it.
    PersistentRecursive,
}

impl AddWatchMode {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Persistent => 0,
            Self::PersistentRecursive => 1,
        }
    }

    /// Returns the mode with this number.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Persistent),
            1 => Some(Self::PersistentRecursive),
            _ => None,
        }
    }
}

/// An operation code that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownOp(pub i32);

impl std::fmt::Display for UnknownOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown operation code {}", self.0)
    }
}

impl std::error::Error for UnknownOp {}

impl TryFrom<i32> for OpCode {
    type Error = UnknownOp;

    fn try_from(code: i32) -> Result<Self, UnknownOp> {
        Self::from_code(code).ok_or(UnknownOp(code))
    }
}
