//! The identifiers on the wire, each with its own type, so that they cannot be confused.

use std::fmt;

/// A client's number for one of its requests; the reply echoes it.
///
/// Negative numbers are reserved (`docs/zookeeper-protocol.md` section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Xid(pub i32);

impl Xid {
    /// The xid of every watch event.
    pub const EVENT: Self = Self(-1);
    /// The xid of a ping and of its reply.
    pub const PING: Self = Self(-2);
    /// The xid of auth packets.
    pub const AUTH: Self = Self(-4);
    /// The xid of setWatches and setWatches2.
    pub const SET_WATCHES: Self = Self(-8);
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a state change. Printed in hexadecimal, as in ZooKeeper.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Zxid(pub i64);

impl Zxid {
    /// The zxid in replies to unknown operations, and in missed events sent by setWatches.
    pub const NONE: Self = Self(-1);
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zxid({self})")
    }
}

/// The id of a session. Zero means "none yet". Printed in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionId(pub i64);

impl SessionId {
    /// Sent by a client to request a new session, and by a server to refuse a session.
    pub const NONE: Self = Self(0);
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}
