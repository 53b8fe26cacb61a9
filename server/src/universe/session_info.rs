//! The server's report about a session.

use std::{net::SocketAddr, time::Duration};

use minikeeper_engine::{SessionReport, WatchKind};
use minikeeper_protocol::SessionId;

use crate::turn::effects::Member;

/// A session of a running server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its timeout as negotiated.
    pub timeout: Duration,
    /// The rest of the timeout before the session expires, by the server's clock.
    pub timeout_left: Duration,
    /// Whether it has a connection now.
    pub is_connected: bool,
    /// Whether it belongs to no universe yet: its client has not sent a path so far, which is what
    /// says to which one it belongs. Such a session is listed in the server's own universe, and in
    /// another one if there is no third. Always `false` on a server that never had another universe than its own.
    pub is_unbound: bool,
    /// Whether it is not heard: [`Universe::silence`](crate::Universe::silence).
    pub is_silenced: bool,
    /// The address of that connection; `None` without one, and inside the process.
    pub address: Option<SocketAddr>,
    /// The identities of that connection as `scheme:id`, address first, without passwords.
    pub identities: Vec<String>,
    /// The paths of its ephemerals, oldest first.
    pub ephemerals: Vec<String>,
    /// Its watches, by path.
    pub watches: Vec<WatchInfo>,
    /// What it asked last over that connection. Unknown before the first, and when that was a
    /// write that failed.
    pub last_operation: Option<LastOperation>,
}

/// One watch of a session. A path with several kinds of watch is listed once for each.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WatchInfo {
    /// The path watched.
    pub path: String,
    /// The kind of watch.
    pub kind: WatchKind,
}

/// A session's last request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LastOperation {
    /// As the protocol calls it: `getData`, `create2`, `ping`.
    pub name: &'static str,
    /// When it was answered: how old the server was.
    pub at: Duration,
}

impl SessionInfo {
    /// The connection is the session's, if it has one.
    pub(crate) fn new(report: SessionReport, connection: Option<&Member>, elapsed_ms: u64) -> Self {
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
            identities: report
                .identities
                .into_iter()
                .map(|(scheme, id)| format!("{scheme}:{id}"))
                .collect(),
            ephemerals: report.ephemerals,
            watches: report
                .watches
                .into_iter()
                .map(|(path, kind)| WatchInfo { path, kind })
                .collect(),
            last_operation: last,
        }
    }
}
