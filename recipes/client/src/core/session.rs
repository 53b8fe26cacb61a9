//! The session as the client knows it: its id, and until when it is certainly alive.
//!
//! Source: `docs/curator-recipes.md` section 10.4; `docs/zookeeper-protocol.md` sections 6.3 and
//! 14.1.

use std::time::Duration;

use bytes::Bytes;
use minikeeper_protocol::{ConnectRequest, ConnectResponse, SessionId, Zxid};

use super::outcome::Time;

/// The smallest allowance for clocks that do not run alike.
const MARGIN_MIN: Duration = Duration::from_millis(20);

/// A session that a server has granted.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    password: Option<Bytes>,
    pub(crate) timeout: Duration,
    /// When the newest request was sent that a server which keeps sessions alive has answered. It
    /// has counted from its receipt, which was not earlier.
    pub(crate) contact: Time,
    pub(crate) granted_at: Time,
    /// Whether it is known to more than one server that takes no changes: such a session ends
    /// with its connection, and holds nothing.
    pub(crate) is_lasting: bool,
}

impl Session {
    pub(crate) fn granted(response: ConnectResponse, asked_at: Time, now: Time) -> Self {
        Self {
            id: response.session_id,
            password: response.password,
            timeout: Duration::from_millis(u64::try_from(response.timeout_ms).unwrap_or(0)),
            contact: asked_at,
            granted_at: now,
            is_lasting: response.read_only != Some(true),
        }
    }

    /// The session is resumed, perhaps with another timeout.
    ///
    /// A server that takes no changes cannot keep it alive: those that do may not know of it.
    pub(crate) fn resumed(&mut self, response: &ConnectResponse, asked_at: Time) {
        if response.read_only == Some(true) {
            return;
        }
        self.timeout = Duration::from_millis(u64::try_from(response.timeout_ms).unwrap_or(0));
        self.heard(asked_at);
    }

    /// A request that was sent then has been answered.
    pub(crate) fn heard(&mut self, sent_at: Time) {
        self.contact = self.contact.max(sent_at);
    }

    /// The time until which no server can have ended the session, unless this clock stood still: no
    /// other contender holds what depends on it. After that it has to be presumed lost.
    pub(crate) fn safe_until(&self) -> Time {
        let margin = (self.timeout / 50).max(MARGIN_MIN).min(self.timeout / 2);
        self.contact + self.timeout - margin
    }
}

/// The first message to a server.
pub(crate) fn hello(
    session: Option<&Session>,
    timeout: Duration,
    last_zxid: Zxid,
    read_only: bool,
) -> ConnectRequest {
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    let mut hello = ConnectRequest::new(timeout_ms);
    hello.last_zxid_seen = last_zxid;
    hello.read_only = Some(read_only);
    if let Some(session) = session {
        hello.session_id = session.id;
        hello.password.clone_from(&session.password);
    }
    hello
}
