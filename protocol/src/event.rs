//! Watch events, which the server sends when a watch fires.
//!
//! Source: `docs/zookeeper-protocol.md` sections 3.4 and 12.5.

use crate::{
    error::DecodeError,
    frame,
    ids::{Xid, Zxid},
    jute::{self, Reader, Ustring},
    reply::ReplyHeader,
};

/// The connection state in every event of a server: SyncConnected.
pub const STATE_SYNC_CONNECTED: i32 = 3;

/// What happened to a znode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// Its data was set.
    DataChanged,
    /// A child was created or deleted.
    ChildrenChanged,
}

impl EventKind {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Created => 1,
            Self::Deleted => 2,
            Self::DataChanged => 3,
            Self::ChildrenChanged => 4,
        }
    }

    /// Returns the kind with this number; `None` for numbers that only client libraries use.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            1 => Some(Self::Created),
            2 => Some(Self::Deleted),
            3 => Some(Self::DataChanged),
            4 => Some(Self::ChildrenChanged),
            _ => None,
        }
    }

    /// Returns ZooKeeper's name, such as `NodeCreated`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "NodeCreated",
            Self::Deleted => "NodeDeleted",
            Self::DataChanged => "NodeDataChanged",
            Self::ChildrenChanged => "NodeChildrenChanged",
        }
    }
}

/// One watch event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WatcherEvent {
    /// The kind of event.
    pub kind: EventKind,
    /// The path of the changed znode, even if the watch is a recursive one on an ancestor.
    pub path: Ustring,
}

impl WatcherEvent {
    /// Reads the record that follows the header.
    ///
    /// # Errors
    /// When the message ends first, or servers do not send this kind.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = reader.int()?;
        let kind = EventKind::from_code(code).ok_or_else(|| DecodeError::Value {
            field: "event type",
            value: code.into(),
        })?;
        let _state = reader.int()?;
        let path = reader.ustring()?.ok_or(DecodeError::Null {
            field: "event path",
        })?;
        Ok(Self { kind, path })
    }
}

/// Appends an event as a frame, header included.
///
/// The zxid is that of the change (since 3.9); [`Zxid::NONE`] for missed events sent by setWatches.
pub fn encode(kind: EventKind, path: &[u8], zxid: Zxid, out: &mut Vec<u8>) {
    out.reserve(frame::PREFIX_BYTES + ReplyHeader::BYTES + 12 + path.len());
    frame::put(out, |out| {
        ReplyHeader {
            xid: Xid::EVENT,
            zxid,
            error: None,
        }
        .encode(out);
        jute::put_int(out, kind.code());
        jute::put_int(out, STATE_SYNC_CONNECTED);
        jute::put_buffer(out, Some(path));
    });
}
