//! What goes wrong at a request.

use std::time::Duration;

use minikeeper_core::faults::fault::Fault;

/// How long an event or a request is held, and how long a client stands still: long enough for what others do
/// meanwhile.
pub(crate) const SHORT_DELAY: Duration = Duration::from_millis(100);

/// How long an outage lasts by default.
pub(crate) const OUTAGE: Duration = Duration::from_secs(1);

/// How far the faults of a sweep go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FaultExtent {
    /// Longer than the timeout of a session.
    pub(crate) late: Duration,
    /// How long an outage lasts; `Duration::MAX` if it does not end.
    pub(crate) outage: Duration,
    /// How many changes a rollback takes back.
    pub(crate) rollback: u32,
}

impl FaultExtent {
    /// Returns the usual extent, where a reply is late after this time.
    pub(crate) const fn new(late: Duration) -> Self {
        Self {
            late,
            outage: OUTAGE,
            rollback: 1,
        }
    }
}

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
    /// `request-late`: the request, and what the client sends after it, is read 100 ms late. The connection and the
    /// session stay.
    RequestLate,
    /// `client-paused`: the request is carried out, and the client stands still for longer than its session's
    /// timeout. After 100 ms it gets the reply, and 100 ms later learns that its session is gone.
    ClientPaused,
    /// `outage`: the request is not carried out, and from then on no client is served for a time, by default 1 s. By
    /// name only.
    Outage,
    /// `client-outage`: the same for this client. By name only.
    ClientOutage,
    /// `client-crash`: the request is carried out, the clients are gone without closing their sessions, and the test
    /// begins again with the state that they have left. By name only.
    ClientCrash,
    /// `rollback`: the request is carried out and answered, and the server comes back without its last change. By name
    /// only.
    Rollback,
}

impl SweepFault {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::ReplyLost,
        Self::RequestLost,
        Self::ConnectionCut,
        Self::SessionExpired,
        Self::ReplyLate,
        Self::ServerRestarted,
        Self::EventLate,
        Self::RequestLate,
        Self::ClientPaused,
        Self::Outage,
        Self::ClientOutage,
        Self::ClientCrash,
        Self::Rollback,
    ];

    /// Those that a sweep tries if it names none: a client that does as it should passes with them. The others ask more
    /// of it: to survive an outage that is longer than its retries, a start in the middle, or a change that is lost
    /// though it was acknowledged.
    pub const USUAL: [Self; 9] = [
        Self::ReplyLost,
        Self::RequestLost,
        Self::ConnectionCut,
        Self::SessionExpired,
        Self::ReplyLate,
        Self::ServerRestarted,
        Self::EventLate,
        Self::RequestLate,
        Self::ClientPaused,
    ];

    /// Those that can act in an order of requests.
    pub(crate) const OF_ORDERS: usize = 7;

    /// The names of all.
    pub const NAMES: [&'static str; 13] = [
        "reply-lost",
        "request-lost",
        "connection-cut",
        "session-expired",
        "reply-late",
        "server-restarted",
        "event-late",
        "request-late",
        "client-paused",
        "outage",
        "client-outage",
        "client-crash",
        "rollback",
    ];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns whether it can act in an order of requests.
    pub(crate) const fn is_of_orders(self) -> bool {
        (self as usize) < Self::OF_ORDERS
    }

    pub(crate) const fn is_late_event(self) -> bool {
        matches!(self, Self::EventLate)
    }

    /// Returns whether it makes sense at a request, and is not equivalent to another one there. `all` also takes
    /// those that are.
    pub(crate) fn is_possible_at(self, op: &str, clients: usize, all: bool) -> bool {
        match (op, self) {
            (_, Self::EventLate) => false,
            ("connect", Self::Outage) => true,
            ("connect" | "closeSession", _) => matches!(self, Self::ReplyLost | Self::RequestLost),
            // Whether a request that changes nothing is lost, or its reply, is the same to a client.
            (_, Self::RequestLost) => all || !is_read(op),
            // With one client a restart is a lost reply, and the outage one of all; nobody does anything while a
            // request or a client waits.
            (
                _,
                Self::ServerRestarted | Self::ClientOutage | Self::RequestLate | Self::ClientPaused,
            ) => all || clients > 1,
            // A program that begins again shows nothing new after a read. What a rollback takes back, a client may have
            // read.
            (_, Self::ClientCrash) => all || !is_read(op),
            _ => true,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Returns the fault to inject, without what happens once it has acted.
    pub(crate) const fn to_fault(self, extent: FaultExtent) -> Fault {
        match self {
            Self::ReplyLost | Self::ServerRestarted => Fault::lose_reply(),
            Self::RequestLost => Fault::cut(),
            Self::ConnectionCut => Fault::cut_after(),
            Self::SessionExpired => Fault::expire(),
            Self::ReplyLate => Fault::delay_reply(extent.late),
            Self::EventLate => Fault::delay_events(SHORT_DELAY),
            Self::RequestLate => Fault::delay(SHORT_DELAY),
            Self::ClientPaused => Fault::pause(SHORT_DELAY),
            Self::Outage => Fault::outage(extent.outage),
            Self::ClientOutage => Fault::client_outage(extent.outage),
            Self::ClientCrash => Fault::crash(),
            Self::Rollback => Fault::rollback(extent.rollback),
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
