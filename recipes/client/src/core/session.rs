//! The session as the client knows it: its id, and the time until which it is certainly alive.
//!
//! Source: `docs/curator-recipes.md` section 10.4; `docs/zookeeper-protocol.md` sections 6.3 and
//! 14.1.

use std::time::Duration;

use bytes::Bytes;
use minikeeper_protocol::{ConnectRequest, ConnectResponse, SessionId, Zxid};

use super::outcome::Time;

/// The smallest allowance for clock drift.
const MARGIN_MIN: Duration = Duration::from_millis(20);

/// The longest timeout that counts unless the client has requested it. A damaged one would keep a dead
/// connection, and the locks, for up to 24 days.
const UNREQUESTED_MAX: Duration = Duration::from_secs(60);

/// A session that a server has granted.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    password: Option<Bytes>,
    /// The timeout that counts from the latest contact: the shortest that a server may have set.
    pub(crate) timeout: Duration,
    /// That timeout without the allowance for clock drift. Each reply needs it.
    certain: Duration,
    /// When the latest request was sent to which a server that keeps sessions alive has replied.
    /// The server counts the timeout from the receipt, which was not earlier.
    pub(crate) contact: Time,
    /// When the latest such reply came.
    replied_at: Time,
    pub(crate) granted_at: Time,
    /// The shortest timeout that a server may have granted without the client knowing: the shortest
    /// that one has granted in this session, or the requested one if that is shorter.
    shortest: Duration,
    /// When the latest connection ended, until the session is resumed. An attempt to resume it may
    /// have set the shortest timeout although its reply was lost.
    suspended_at: Option<Time>,
    /// Whether an attempt to resume the session got no reply.
    has_lost_attempt: bool,
    /// False if a read-only server created the session: it ends with its connection, and holds
    /// nothing.
    pub(crate) is_lasting: bool,
}

impl Session {
    pub(crate) fn granted(
        response: ConnectResponse,
        asked_at: Time,
        now: Time,
        asked: Duration,
    ) -> Self {
        let timeout = granted_timeout(&response, asked);
        Self {
            id: response.session_id,
            password: response.password,
            timeout,
            certain: without_margin(timeout),
            contact: asked_at,
            replied_at: now,
            granted_at: now,
            shortest: shortest(timeout, asked),
            suspended_at: None,
            has_lost_attempt: false,
            is_lasting: response.read_only != Some(true),
        }
    }

    /// Handles the resumption of the session, perhaps with another timeout.
    ///
    /// Each attempt and each request sets the timeout of its connection anew, and a server that was
    /// paused carries them out although another one has resumed the session since. So a timeout that
    /// was shorter counts until the session ends.
    ///
    /// A read-only server cannot keep the session alive, because the other servers do not hear from
    /// it.
    pub(crate) fn resumed(&mut self, response: &ConnectResponse, asked_at: Time, asked: Duration) {
        if response.read_only == Some(true) {
            return;
        }
        let granted = granted_timeout(response, asked);
        self.shortest = self.shortest.min(shortest(granted, asked));
        self.timeout = match self.has_lost_attempt {
            true => self.shortest,
            false => self.timeout.min(granted),
        };
        self.certain = without_margin(self.timeout);
        self.suspended_at = None;
        self.heard(asked_at, asked_at);
    }

    /// Handles the end of the connection. From now on an attempt to resume the session may shorten
    /// its timeout.
    pub(crate) fn suspended(&mut self, now: Time) {
        self.suspended_at.get_or_insert(now);
    }

    /// Handles the end of an attempt to resume the session that got no reply.
    pub(crate) fn lost_attempt(&mut self) {
        self.has_lost_attempt = true;
    }

    /// Handles a reply to a request that was sent at this time.
    pub(crate) fn heard(&mut self, sent_at: Time, now: Time) {
        self.contact = self.contact.max(sent_at);
        self.replied_at = self.replied_at.max(now);
    }

    /// Returns the time until which no server can have ended the session, provided that this clock
    /// did not stop: until then no other contender holds its locks. After that the session must be
    /// presumed lost.
    pub(crate) fn safe_until(&self) -> Time {
        let until = self.contact + self.certain;
        match self.suspended_at {
            Some(at) => until.min(at + without_margin(self.shortest)),
            None => until,
        }
    }

    /// Returns when a connected session is presumed lost. Replies to requests that were sent long ago show
    /// that the server works through a backlog, and has heard from this client; they are no promise.
    pub(crate) fn presumed_lost_at(&self) -> Time {
        self.safe_until().max(self.replied_at + self.certain)
    }
}

/// Returns the timeout that counts: a server grants more than is requested only if its minimum is
/// larger. It is safe to count on less than it grants.
fn granted_timeout(response: &ConnectResponse, asked: Duration) -> Duration {
    let granted = Duration::from_millis(u64::try_from(response.timeout_ms).unwrap_or(0));
    granted.min(asked.max(UNREQUESTED_MAX))
}

/// Returns the shorter timeout. A client that requests none leaves it to the server.
fn shortest(granted: Duration, asked: Duration) -> Duration {
    match asked.as_millis() {
        0 => granted,
        _ => granted.min(asked),
    }
}

/// Subtracts the allowance for clock drift.
fn without_margin(timeout: Duration) -> Duration {
    timeout - (timeout / 50).max(MARGIN_MIN).min(timeout / 2)
}

/// Returns the first message to a server.
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
