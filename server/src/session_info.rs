//! What a server tells about a session.

use std::time::Duration;

use minikeeper_protocol::SessionId;

/// A session of a running server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its timeout as negotiated.
    pub timeout: Duration,
    /// Whether it has a connection now.
    pub is_connected: bool,
}
