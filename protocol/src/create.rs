//! The record that creates a znode, shared by four operations and by multi.
//!
//! Source: `docs/zookeeper-protocol.md` sections 3.5 and 4.

use bytes::Bytes;

use crate::{
    acl::AclList,
    error::DecodeError,
    jute::{self, Reader, Ustring},
    request::OpCode,
};

/// The lifetime of a znode, and whether its name gets a number: the `flags` of a create.
///
/// Source: `docs/zookeeper-protocol.md` section 3.5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CreateMode {
    /// Lives until deleted.
    Persistent,
    /// Lives until its session ends.
    Ephemeral,
    /// Lives until deleted; the server appends a number to the name.
    PersistentSequential,
    /// Lives until its session ends; the server appends a number to the name.
    EphemeralSequential,
    /// A container: the server deletes it some time after its last child is deleted.
    Container,
    /// The server deletes it once it has no children and nothing has changed it for its time to
    /// live.
    PersistentWithTtl,
    /// As [`CreateMode::PersistentWithTtl`]; the server appends a number to the name.
    PersistentSequentialWithTtl,
}

impl CreateMode {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn flags(self) -> i32 {
        match self {
            Self::Persistent => 0,
            Self::Ephemeral => 1,
            Self::PersistentSequential => 2,
            Self::EphemeralSequential => 3,
            Self::Container => 4,
            Self::PersistentWithTtl => 5,
            Self::PersistentSequentialWithTtl => 6,
        }
    }

    /// Returns the mode with this number.
    #[must_use]
    pub const fn from_flags(flags: i32) -> Option<Self> {
        Some(match flags {
            0 => Self::Persistent,
            1 => Self::Ephemeral,
            2 => Self::PersistentSequential,
            3 => Self::EphemeralSequential,
            4 => Self::Container,
            5 => Self::PersistentWithTtl,
            6 => Self::PersistentSequentialWithTtl,
            _ => return None,
        })
    }

    /// Returns whether the server appends a number to the name.
    #[must_use]
    pub const fn is_sequential(self) -> bool {
        matches!(
            self,
            Self::PersistentSequential
                | Self::EphemeralSequential
                | Self::PersistentSequentialWithTtl
        )
    }

    /// Returns whether the znode is deleted when its session ends.
    #[must_use]
    pub const fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// Returns whether the znode has a time to live.
    #[must_use]
    pub const fn has_ttl(self) -> bool {
        matches!(
            self,
            Self::PersistentWithTtl | Self::PersistentSequentialWithTtl
        )
    }
}

/// One of the four operations that create a znode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CreateOp {
    /// Code 1; the reply has only the path.
    Create,
    /// Code 15; the reply has the path and the stat.
    Create2,
    /// Code 19: creates a container, ignoring the flags.
    Container,
    /// Code 21, the only one that carries a time to live.
    Ttl,
}

impl CreateOp {
    /// Returns the operation code.
    #[must_use]
    pub const fn op(self) -> OpCode {
        match self {
            Self::Create => OpCode::Create,
            Self::Create2 => OpCode::Create2,
            Self::Container => OpCode::CreateContainer,
            Self::Ttl => OpCode::CreateTtl,
        }
    }
}

/// The body of create, create2, createContainer and createTTL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Create {
    /// The operation.
    pub op: CreateOp,
    /// The requested path.
    pub path: Option<Ustring>,
    /// The data; null differs from empty.
    pub data: Option<Bytes>,
    /// The access list.
    pub acl: AclList,
    /// The raw create mode: see [`CreateMode::from_flags`].
    pub flags: i32,
    /// The time to live in milliseconds; only on the wire with [`CreateOp::Ttl`].
    pub ttl_ms: i64,
}

impl Create {
    /// Creates a create2, or the operation that the mode needs, with all permissions for
    /// `world:anyone`.
    #[must_use]
    pub fn new(path: &str, data: &[u8], mode: CreateMode) -> Self {
        let op = match mode {
            CreateMode::Container => CreateOp::Container,
            mode if mode.has_ttl() => CreateOp::Ttl,
            _ => CreateOp::Create2,
        };
        Self {
            op,
            path: Some(path.into()),
            data: Some(Bytes::copy_from_slice(data)),
            acl: AclList::world_all(),
            flags: mode.flags(),
            ttl_ms: 0,
        }
    }

    pub(crate) fn decode(op: CreateOp, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            op,
            path: reader.ustring()?,
            data: reader.buffer()?,
            acl: AclList::decode(reader)?,
            flags: reader.int()?,
            ttl_ms: if op == CreateOp::Ttl {
                reader.long()?
            } else {
                0
            },
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        jute::put_ustring(out, self.path.as_ref());
        jute::put_buffer(out, self.data.as_deref());
        self.acl.encode(out);
        jute::put_int(out, self.flags);
        if self.op == CreateOp::Ttl {
            jute::put_long(out, self.ttl_ms);
        }
    }
}
