//! Requests: what a client asks of its server.
//!
//! Source: `docs/zookeeper-protocol.md` section 4. Values are kept as they came (paths may be null
//! or malformed, flags unknown): in which order faults are noticed is observable, so it is the
//! server's to say.

use bytes::Bytes;

use crate::{
    acl::AclList,
    create::{Create, CreateOp},
    error::DecodeError,
    frame,
    ids::{Xid, Zxid},
    jute::{self, Reader, Ustring},
    multi::{self, MultiOp, MultiReadOp},
    op::OpCode,
};

/// What stands in front of every request.
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
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            xid: Xid(reader.int()?),
            op: reader.int()?,
        })
    }
}

/// Which watches checkWatches and removeWatches mean. Source: `docs/zookeeper-protocol.md` section
/// 12.7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatcherType {
    /// One-shot watches set by listing children.
    Children,
    /// One-shot watches set by reading data or asking for existence.
    Data,
    /// All of them.
    Any,
    /// Persistent watches.
    Persistent,
    /// Persistent recursive watches.
    PersistentRecursive,
}

impl WatcherType {
    /// The number on the wire.
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

    /// The type with this number.
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

/// How long an added watch lasts and how deep it looks. Source: `docs/zookeeper-protocol.md`
/// section 3.7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddWatchMode {
    /// Fires until removed, for the znode and its children.
    Persistent,
    /// Fires until removed, for the znode and everything below.
    PersistentRecursive,
}

impl AddWatchMode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Persistent => 0,
            Self::PersistentRecursive => 1,
        }
    }

    /// The mode with this number.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Persistent),
            1 => Some(Self::PersistentRecursive),
            _ => None,
        }
    }
}

/// What a client asks; one variant an operation, or a family with one body.
///
/// Paths are optional because the wire has null strings, and each operation answers them in its
/// own way (`docs/zookeeper-protocol.md` section 7.5).
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(
    missing_docs,
    reason = "the fields are the wire's own: path, data, version, watch"
)]
pub enum Request {
    /// create, create2, createContainer, createTTL.
    Create(Create),
    /// delete: version -1 is any.
    Delete { path: Option<Ustring>, version: i32 },
    /// deleteContainer: internal to servers.
    DeleteContainer { path: Option<Ustring> },
    /// exists.
    Exists { path: Option<Ustring>, watch: bool },
    /// getData.
    GetData { path: Option<Ustring>, watch: bool },
    /// setData: version -1 is any.
    SetData {
        path: Option<Ustring>,
        data: Option<Bytes>,
        version: i32,
    },
    /// getACL.
    GetAcl { path: Option<Ustring> },
    /// setACL: version -1 is any, compared with the stat's aversion.
    SetAcl {
        path: Option<Ustring>,
        acl: AclList,
        version: i32,
    },
    /// getChildren: names only.
    GetChildren { path: Option<Ustring>, watch: bool },
    /// getChildren2: names and the parent's stat.
    GetChildren2 { path: Option<Ustring>, watch: bool },
    /// sync: the path is echoed.
    Sync { path: Option<Ustring> },
    /// ping: keeps the session alive.
    Ping,
    /// multi: all or nothing.
    Multi(Vec<MultiOp>),
    /// multiRead: several reads, each with its own outcome.
    MultiRead(Vec<MultiReadOp>),
    /// multiRead of operations that change something: decoded by ZooKeeper, but not served.
    MultiReadOfChanges(Vec<MultiOp>),
    /// reconfig: ensembles only.
    Reconfig {
        joining: Option<Ustring>,
        leaving: Option<Ustring>,
        members: Option<Ustring>,
        config_id: i64,
    },
    /// checkWatches: is there such a watch of this connection?
    CheckWatches { path: Option<Ustring>, kind: i32 },
    /// removeWatches.
    RemoveWatches { path: Option<Ustring>, kind: i32 },
    /// auth: adds an identity to the connection. The type is ignored by servers.
    Auth {
        kind: i32,
        scheme: Option<Ustring>,
        data: Option<Bytes>,
    },
    /// setWatches: registers again after a reconnect. A null vector cannot be told from a
    /// malformed message, for servers answer both the same.
    SetWatches {
        relative_zxid: Zxid,
        data: Vec<Ustring>,
        exist: Vec<Ustring>,
        child: Vec<Ustring>,
    },
    /// setWatches2: the same with persistent watches.
    SetWatches2 {
        relative_zxid: Zxid,
        data: Vec<Ustring>,
        exist: Vec<Ustring>,
        child: Vec<Ustring>,
        persistent: Vec<Ustring>,
        persistent_recursive: Vec<Ustring>,
    },
    /// sasl: one step of an exchange.
    Sasl { token: Option<Bytes> },
    /// getEphemerals: of the asking session, below a textual prefix.
    GetEphemerals { prefix: Option<Ustring> },
    /// getAllChildrenNumber: counts descendants.
    GetAllChildrenNumber { path: Option<Ustring> },
    /// addWatch: see [`AddWatchMode`].
    AddWatch { path: Option<Ustring>, mode: i32 },
    /// whoAmI: the identities of the connection.
    WhoAmI,
    /// check: valid inside a multi only; alone it exists so that clients can be told.
    Check { path: Option<Ustring>, version: i32 },
    /// createSession: internal to servers.
    CreateSession,
    /// closeSession.
    CloseSession,
}

impl Request {
    /// The operation code.
    #[must_use]
    pub const fn op(&self) -> OpCode {
        match self {
            Self::Create(create) => create.op.op(),
            Self::Delete { .. } => OpCode::Delete,
            Self::DeleteContainer { .. } => OpCode::DeleteContainer,
            Self::Exists { .. } => OpCode::Exists,
            Self::GetData { .. } => OpCode::GetData,
            Self::SetData { .. } => OpCode::SetData,
            Self::GetAcl { .. } => OpCode::GetAcl,
            Self::SetAcl { .. } => OpCode::SetAcl,
            Self::GetChildren { .. } => OpCode::GetChildren,
            Self::GetChildren2 { .. } => OpCode::GetChildren2,
            Self::Sync { .. } => OpCode::Sync,
            Self::Ping => OpCode::Ping,
            Self::Multi(_) => OpCode::Multi,
            Self::MultiRead(_) | Self::MultiReadOfChanges(_) => OpCode::MultiRead,
            Self::Reconfig { .. } => OpCode::Reconfig,
            Self::CheckWatches { .. } => OpCode::CheckWatches,
            Self::RemoveWatches { .. } => OpCode::RemoveWatches,
            Self::Auth { .. } => OpCode::Auth,
            Self::SetWatches { .. } => OpCode::SetWatches,
            Self::SetWatches2 { .. } => OpCode::SetWatches2,
            Self::Sasl { .. } => OpCode::Sasl,
            Self::GetEphemerals { .. } => OpCode::GetEphemerals,
            Self::GetAllChildrenNumber { .. } => OpCode::GetAllChildrenNumber,
            Self::AddWatch { .. } => OpCode::AddWatch,
            Self::WhoAmI => OpCode::WhoAmI,
            Self::Check { .. } => OpCode::Check,
            Self::CreateSession => OpCode::CreateSession,
            Self::CloseSession => OpCode::CloseSession,
        }
    }

    /// The path the request is about, if it is about one.
    #[must_use]
    pub const fn path(&self) -> Option<&Ustring> {
        match self {
            Self::Create(Create { path, .. })
            | Self::Delete { path, .. }
            | Self::DeleteContainer { path }
            | Self::Exists { path, .. }
            | Self::GetData { path, .. }
            | Self::SetData { path, .. }
            | Self::GetAcl { path }
            | Self::SetAcl { path, .. }
            | Self::GetChildren { path, .. }
            | Self::GetChildren2 { path, .. }
            | Self::Sync { path }
            | Self::CheckWatches { path, .. }
            | Self::RemoveWatches { path, .. }
            | Self::GetEphemerals { prefix: path }
            | Self::GetAllChildrenNumber { path }
            | Self::AddWatch { path, .. }
            | Self::Check { path, .. } => path.as_ref(),
            Self::Ping
            | Self::Multi(_)
            | Self::MultiRead(_)
            | Self::MultiReadOfChanges(_)
            | Self::Reconfig { .. }
            | Self::Auth { .. }
            | Self::SetWatches { .. }
            | Self::SetWatches2 { .. }
            | Self::Sasl { .. }
            | Self::WhoAmI
            | Self::CreateSession
            | Self::CloseSession => None,
        }
    }

    /// Reads the body of an operation; bytes left over are ignored, as ZooKeeper does.
    ///
    /// # Errors
    /// When the body is malformed. The frame was whole, so the stream can go on.
    pub fn decode(op: OpCode, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match op {
            OpCode::Create => Self::Create(Create::decode(CreateOp::Create, reader)?),
            OpCode::Create2 => Self::Create(Create::decode(CreateOp::Create2, reader)?),
            OpCode::CreateContainer => Self::Create(Create::decode(CreateOp::Container, reader)?),
            OpCode::CreateTtl => Self::Create(Create::decode(CreateOp::Ttl, reader)?),
            OpCode::Delete => Self::Delete {
                path: reader.ustring()?,
                version: reader.int()?,
            },
            OpCode::DeleteContainer => Self::DeleteContainer {
                path: reader.ustring()?,
            },
            OpCode::Exists => Self::Exists {
                path: reader.ustring()?,
                watch: reader.bool()?,
            },
            OpCode::GetData => Self::GetData {
                path: reader.ustring()?,
                watch: reader.bool()?,
            },
            OpCode::SetData => Self::SetData {
                path: reader.ustring()?,
                data: reader.buffer()?,
                version: reader.int()?,
            },
            OpCode::GetAcl => Self::GetAcl {
                path: reader.ustring()?,
            },
            OpCode::SetAcl => Self::SetAcl {
                path: reader.ustring()?,
                acl: AclList::decode(reader)?,
                version: reader.int()?,
            },
            OpCode::GetChildren => Self::GetChildren {
                path: reader.ustring()?,
                watch: reader.bool()?,
            },
            OpCode::GetChildren2 => Self::GetChildren2 {
                path: reader.ustring()?,
                watch: reader.bool()?,
            },
            OpCode::Sync => Self::Sync {
                path: reader.ustring()?,
            },
            OpCode::Ping => Self::Ping,
            OpCode::Check => Self::Check {
                path: reader.ustring()?,
                version: reader.int()?,
            },
            OpCode::Multi => Self::Multi(multi::decode_ops(reader)?),
            OpCode::MultiRead => match multi::decode_read_or_changes(reader)? {
                Ok(ops) => Self::MultiRead(ops),
                Err(changes) => Self::MultiReadOfChanges(changes),
            },
            OpCode::Reconfig => Self::Reconfig {
                joining: reader.ustring()?,
                leaving: reader.ustring()?,
                members: reader.ustring()?,
                config_id: reader.long()?,
            },
            OpCode::CheckWatches => Self::CheckWatches {
                path: reader.ustring()?,
                kind: reader.int()?,
            },
            OpCode::RemoveWatches => Self::RemoveWatches {
                path: reader.ustring()?,
                kind: reader.int()?,
            },
            OpCode::Auth => Self::Auth {
                kind: reader.int()?,
                scheme: reader.ustring()?,
                data: reader.buffer()?,
            },
            OpCode::SetWatches => Self::SetWatches {
                relative_zxid: Zxid(reader.long()?),
                data: paths(reader, "data watches")?,
                exist: paths(reader, "exist watches")?,
                child: paths(reader, "child watches")?,
            },
            OpCode::SetWatches2 => Self::SetWatches2 {
                relative_zxid: Zxid(reader.long()?),
                data: paths(reader, "data watches")?,
                exist: paths(reader, "exist watches")?,
                child: paths(reader, "child watches")?,
                persistent: paths(reader, "persistent watches")?,
                persistent_recursive: paths(reader, "persistent recursive watches")?,
            },
            OpCode::Sasl => Self::Sasl {
                token: reader.buffer()?,
            },
            OpCode::GetEphemerals => Self::GetEphemerals {
                prefix: reader.ustring()?,
            },
            OpCode::GetAllChildrenNumber => Self::GetAllChildrenNumber {
                path: reader.ustring()?,
            },
            OpCode::AddWatch => Self::AddWatch {
                path: reader.ustring()?,
                mode: reader.int()?,
            },
            OpCode::WhoAmI => Self::WhoAmI,
            OpCode::CreateSession => Self::CreateSession,
            OpCode::CloseSession => Self::CloseSession,
        })
    }

    /// Appends the request as a frame, header included.
    pub fn encode(&self, xid: Xid, out: &mut Vec<u8>) {
        frame::put(out, |out| {
            jute::put_int(out, xid.0);
            jute::put_int(out, self.op().code());
            self.encode_body(out);
        });
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Create(create) => create.encode(out),
            Self::Delete { path, version } | Self::Check { path, version } => {
                jute::put_ustring(out, path.as_ref());
                jute::put_int(out, *version);
            }
            Self::Exists { path, watch }
            | Self::GetData { path, watch }
            | Self::GetChildren { path, watch }
            | Self::GetChildren2 { path, watch } => {
                jute::put_ustring(out, path.as_ref());
                jute::put_bool(out, *watch);
            }
            Self::SetData {
                path,
                data,
                version,
            } => {
                jute::put_ustring(out, path.as_ref());
                jute::put_buffer(out, data.as_deref());
                jute::put_int(out, *version);
            }
            Self::SetAcl { path, acl, version } => {
                jute::put_ustring(out, path.as_ref());
                acl.encode(out);
                jute::put_int(out, *version);
            }
            Self::DeleteContainer { path }
            | Self::GetAcl { path }
            | Self::Sync { path }
            | Self::GetEphemerals { prefix: path }
            | Self::GetAllChildrenNumber { path } => jute::put_ustring(out, path.as_ref()),
            Self::Multi(ops) | Self::MultiReadOfChanges(ops) => multi::encode_ops(ops, out),
            Self::MultiRead(ops) => multi::encode_read_ops(ops, out),
            Self::Reconfig {
                joining,
                leaving,
                members,
                config_id,
            } => {
                jute::put_ustring(out, joining.as_ref());
                jute::put_ustring(out, leaving.as_ref());
                jute::put_ustring(out, members.as_ref());
                jute::put_long(out, *config_id);
            }
            Self::CheckWatches { path, kind: code }
            | Self::RemoveWatches { path, kind: code }
            | Self::AddWatch { path, mode: code } => {
                jute::put_ustring(out, path.as_ref());
                jute::put_int(out, *code);
            }
            Self::Auth { kind, scheme, data } => {
                jute::put_int(out, *kind);
                jute::put_ustring(out, scheme.as_ref());
                jute::put_buffer(out, data.as_deref());
            }
            Self::SetWatches {
                relative_zxid,
                data,
                exist,
                child,
            } => {
                jute::put_long(out, relative_zxid.0);
                for paths in [data, exist, child] {
                    jute::put_ustrings(out, Some(paths));
                }
            }
            Self::SetWatches2 {
                relative_zxid,
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
            } => {
                jute::put_long(out, relative_zxid.0);
                for paths in [data, exist, child, persistent, persistent_recursive] {
                    jute::put_ustrings(out, Some(paths));
                }
            }
            Self::Sasl { token } => jute::put_buffer(out, token.as_deref()),
            Self::Ping | Self::WhoAmI | Self::CreateSession | Self::CloseSession => {}
        }
    }
}

fn paths(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<Ustring>, DecodeError> {
    reader.ustrings()?.ok_or(DecodeError::Null { field })
}
