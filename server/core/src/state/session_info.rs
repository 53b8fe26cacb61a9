//! The server's report about a session.

use std::{net::SocketAddr, time::Duration};

use minikeeper_engine::{SessionReport, WatchKind};
use minikeeper_protocol::SessionId;

use crate::turn::members::Member;

/// A session of a running server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its negotiated timeout.
    pub timeout: Duration,
    /// The time until it expires, by the server's clock.
    pub timeout_left: Duration,
    /// Whether it has a connection now.
    pub is_connected: bool,
    /// Whether it belongs to no universe yet, because its client has not sent a path. Such a
    /// session is listed in the server's own universe, and in the other one if there is only one
    /// other. Always `false` on a server that has never had another universe.
    pub is_unbound: bool,
    /// Whether it is silenced: see [`Universe::silence`](../minikeeper/struct.Universe.html#method.silence).
    pub is_silenced: bool,
    /// The client's address; `None` without a connection, or with an in-process one.
    pub address: Option<SocketAddr>,
    /// The identities of the connection as `scheme:id`, address first, without passwords.
    pub identities: Vec<String>,
    /// The paths of its ephemerals, oldest first.
    pub ephemerals: Vec<String>,
    /// Its watches, by path.
    pub watches: Vec<WatchInfo>,
    /// The last request on the connection. `None` before the first, and after a write that failed.
    pub last_operation: Option<LastOperation>,
}

/// One watch of a session. A path with several kinds of watch is listed once for each.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WatchInfo {
    /// The watched path.
    pub path: String,
    /// The kind of watch.
    pub kind: WatchKind,
}

/// A session's last request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LastOperation {
    /// Its name in the protocol: `getData`, `create2`, `ping`.
    pub name: &'static str,
    /// The age of the server when it replied.
    pub at: Duration,
}

impl SessionInfo {
    /// Describes a session; `connection` is the session's, if it has one. Its identities, ephemerals
    /// and watches are added by [`SessionInfo::with`].
    pub fn new(report: &SessionReport, connection: Option<&Member>, elapsed_ms: u64) -> Self {
        let left_ms = report.deadline_ms.saturating_sub(elapsed_ms);
        let last = connection.and_then(|member| {
            let name = member.stats.last_op.name()?;
            let at = Duration::from_millis(member.stats.last_reply_ms);
            Some(LastOperation { name, at })
        });
        Self {
            id: report.id,
            timeout: Duration::from_millis(report.timeout_ms.into()),
            timeout_left: Duration::from_millis(left_ms),
            is_connected: connection.is_some(),
            is_unbound: false,
            is_silenced: false,
            address: connection.and_then(|member| member.stats.peer.address()),
            identities: Vec::new(),
            ephemerals: Vec::new(),
            watches: Vec::new(),
            last_operation: last,
        }
    }

    /// Adds identities, ephemerals and watches.
    pub fn with(self, report: SessionReport) -> Self {
        let identities = report.identities.into_iter();
        let watches = report.watches.into_iter();
        Self {
            identities: identities
                .map(|(scheme, id)| format!("{scheme}:{id}"))
                .collect(),
            ephemerals: report.ephemerals,
            watches: watches
                .map(|(path, kind)| WatchInfo { path, kind })
                .collect(),
            ..self
        }
    }
}
