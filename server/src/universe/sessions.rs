//! Sessions and connections, ended by hand.

use std::time::Duration;

use minikeeper_protocol::SessionId;

use crate::{outbox::Close, session_info::SessionInfo, universe::Universe};

impl Universe {
    /// Ends a session as if its time were up: ephemerals gone, watchers told, connection closed.
    /// Returns whether there was such a session.
    pub fn expire(&self, session: SessionId) -> bool {
        self.shared.turns.expire(session)
    }

    /// Cuts the connection of a session, which lives on. Returns whether it had one.
    pub fn disconnect(&self, session: SessionId) -> bool {
        self.shared.turns.disconnect(session)
    }

    /// Cuts every connection; all sessions live on.
    pub fn disconnect_all(&self) {
        self.shared.turns.close_all(Close::Asked);
    }

    /// Every session, connected or not.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.shared.turns.inspect(|engine| {
            engine
                .sessions()
                .map(|(id, timeout_ms, conn)| SessionInfo {
                    id,
                    timeout: Duration::from_millis(timeout_ms.into()),
                    is_connected: conn.is_some(),
                })
                .collect()
        })
    }
}
