//! One change as a transaction log has it: decided, so that it can be made without a check.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3.

use minikeeper_protocol::{AclList, SessionId, Zxid};

/// Who made a change, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeHead {
    /// The session that asked for it, or that it is about.
    pub session: SessionId,
    /// The number of the change; the parts of a multi share one.
    pub zxid: Zxid,
    /// When it was made, in milliseconds since 1970.
    pub wall_ms: i64,
}

/// One change as logs tell it: decided already, so that nothing is checked but that it can be.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Change<'a> {
    /// Nothing but the zxid: a request that was refused.
    Nothing,
    /// A session was opened.
    OpenSession {
        /// Its timeout, in milliseconds.
        timeout_ms: i32,
    },
    /// A session ended, and its ephemerals with it.
    CloseSession {
        /// Their paths, as far as they are told: versions before 3.6 tell none.
        paths: &'a [&'a [u8]],
    },
    /// A znode was created.
    Create {
        /// Its path, the number of a sequential one included.
        path: &'a [u8],
        /// Its data, which may be null.
        data: Option<&'a [u8]>,
        /// Its access list; null is that of everybody.
        acl: &'a AclList,
        /// How long it lives.
        life: Life,
        /// How many children its parent has had by now; `None` is one more than before, as in
        /// logs of version 3.3.
        created_children: Option<i32>,
    },
    /// A znode was deleted.
    Delete {
        /// Its path.
        path: &'a [u8],
    },
    /// Data was set.
    SetData {
        /// The path.
        path: &'a [u8],
        /// The data, which may be null.
        data: Option<&'a [u8]>,
        /// The version it has now.
        version: i32,
    },
    /// An access list was set.
    SetAcl {
        /// The path.
        path: &'a [u8],
        /// The list; null is that of everybody.
        acl: &'a AclList,
        /// The aversion it has now.
        aversion: i32,
    },
}

/// How long a znode lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Until it is deleted.
    Persistent,
    /// As long as a session.
    Session(SessionId),
    /// Until some time after its last child has gone.
    Container,
    /// Until it has had no child and no new data for so long.
    Ttl {
        /// How long, in milliseconds.
        ms: i64,
    },
}
