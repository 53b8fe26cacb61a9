//! What goes wrong at a request.

use std::time::Duration;

use minikeeper_core::faults::fault::Fault;

/// How long an event is held at most: long enough for a request that is on its way.
pub(crate) const EVENT_DELAY: Duration = Duration::from_millis(100);

/// What goes wrong at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum SweepFault {
    /// `reply-lost`: the request is carried out, and its connection is closed instead of a reply.
    ReplyLost,
    /// `request-lost`: the connection is closed instead of carrying the request out.
    RequestLost,
    /// `connection-cut`: the connection is closed after the reply, before what the client does next.
    ConnectionCut,
    /// `session-expired`: the session expires after the reply.
    SessionExpired,
    /// `reply-late`: the request is carried out, and time moves past the session's timeout before
    /// the reply is sent.
    ReplyLate,
    /// `server-restarted`: the request is carried out, and all connections close instead of a reply,
    /// as when the server restarts. Znodes and sessions stay, watches do not.
    ServerRestarted,
    /// `event-late`: an event comes after the reply to the watcher's next request, or 100 ms late. In an order of
    /// requests it comes before that reply, or 10 s late.
    EventLate,
}

impl SweepFault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ReplyLost,
        Self::RequestLost,
        Self::ConnectionCut,
        Self::SessionExpired,
        Self::ReplyLate,
        Self::ServerRestarted,
        Self::EventLate,
    ];

    /// The names of all.
    pub const NAMES: [&'static str; 7] = [
        "reply-lost",
        "request-lost",
        "connection-cut",
        "session-expired",
        "reply-late",
        "server-restarted",
        "event-late",
    ];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub(crate) const fn is_late_event(self) -> bool {
        matches!(self, Self::EventLate)
    }

    /// Returns whether it makes sense at a request, and is not equivalent to another one there. `all` also takes
    /// those that are.
    pub(crate) fn is_possible_at(self, op: &str, clients: usize, all: bool) -> bool {
        match (op, self) {
            (_, Self::EventLate) => false,
            ("connect" | "closeSession", _) => matches!(self, Self::ReplyLost | Self::RequestLost),
            // Whether a request that changes nothing is lost, or its reply, is the same to a client.
            (_, Self::RequestLost) => all || !is_read(op),
            // With one client a restart is a lost reply.
            (_, Self::ServerRestarted) => all || clients > 1,
            _ => true,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Returns the fault to inject, without what happens once it has acted. `late` is longer than the timeout of
    /// a session.
    pub(crate) const fn to_fault(self, late: Duration) -> Fault {
        match self {
            Self::ReplyLost | Self::ServerRestarted => Fault::lose_reply(),
            Self::RequestLost => Fault::cut(),
            Self::ConnectionCut => Fault::cut_after(),
            Self::SessionExpired => Fault::expire(),
            Self::ReplyLate => Fault::delay_reply(late),
            Self::EventLate => Fault::delay_events(EVENT_DELAY),
        }
    }
}

/// Returns whether an operation changes nothing.
fn is_read(op: &str) -> bool {
    matches!(
        op,
        "getData"
            | "exists"
            | "getChildren"
            | "getChildren2"
            | "getACL"
            | "getEphemerals"
            | "getAllChildrenNumber"
            | "multiRead"
            | "sync"
            | "whoAmI"
    )
}
