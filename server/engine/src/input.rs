//! Everything that enters the engine: time, what happened, and the settings it starts with.

use minikeeper_protocol::{ConnectRequest, Request, SessionId, Xid, Zxid};

/// One connection, numbered by the shell. Small numbers, used again after a disconnect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ConnId(pub u32);

impl std::fmt::Display for ConnId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The time of an input. The engine never reads a clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Milliseconds since the server started; never decreases. Decides expiry.
    pub elapsed_ms: u64,
    /// Milliseconds since 1970; may step. Only printed in stats.
    pub wall_ms: i64,
}

/// Everything that can happen to the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A connection's first message.
    Connect {
        /// Where it came from.
        conn: ConnId,
        /// What it said.
        hello: ConnectRequest,
    },
    /// A request that could be decoded.
    Request {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
        /// What is asked.
        request: Request,
    },
    /// A whole frame of a known operation whose body makes no sense.
    Undecodable {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
        /// Whether it still uses up a zxid, as a malformed multi does (reference section 7.3).
        consumes_zxid: bool,
    },
    /// An operation that does not exist, or is not for clients.
    UnknownOp {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
    },
    /// The connection is gone.
    Disconnect {
        /// Which one.
        conn: ConnId,
    },
    /// Time has passed.
    Tick,
    /// Ends a session as if its time were up: for tests and administration.
    Expire {
        /// Which one.
        session: SessionId,
    },
}

/// What the engine is started with. Every limit is generous: it protects memory, not manners.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The unit of expiry: deadlines are rounded up to the next multiple.
    ///
    /// Unit: milliseconds. Default: 3,000. Source: `tickTime` of the original.
    pub tick_ms: u32,
    /// The shortest session timeout granted. Default: 2 ticks.
    pub session_timeout_min_ms: u32,
    /// The longest session timeout granted. Default: 20 ticks.
    pub session_timeout_max_ms: u32,
    /// The zxid before the first change. A server without memory of earlier runs starts above
    /// them, or clients that saw a newer zxid are never answered (reference section 14.7).
    pub zxid: Zxid,
    /// The first session id given out. Unique over restarts if taken from the wall clock.
    pub first_session_id: SessionId,
    /// The most sessions at a time. Default: 1,000,000. Beyond it a handshake is not answered.
    pub sessions_max: usize,
    /// The most watches at a time. Default: 20,000,000. Beyond it a request that would set one
    /// is answered with QUOTAEXCEEDED.
    pub watches_max: usize,
    /// The most memory the tree may take, counted as paths, data and a fixed part for each
    /// znode; paths that are watched without a znode count too. Unit: bytes. Default: 8 GiB. Beyond it writes are answered with QUOTAEXCEEDED.
    pub tree_bytes_max: usize,
    /// The bug that tests switched on.
    #[cfg(feature = "planted")]
    pub planted: Option<crate::planted::Planted>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick_ms: 3_000,
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 60_000,
            zxid: Zxid(0),
            first_session_id: SessionId(1 << 56),
            sessions_max: 1_000_000,
            watches_max: 20_000_000,
            tree_bytes_max: 8 << 30,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}
