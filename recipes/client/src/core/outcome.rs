//! The output of the machine: results of requests, ends of watches, changes of the session.

use std::{fmt, time::Duration};

use minikeeper_protocol::{
    DecodeError, ErrorCode, EventKind, FrameError, OpCode, Reply, SessionId, Ustring, Xid, Zxid,
};

use super::{sasl::SaslError, watches::WatchToken};

/// A point in time, as the time since the client started.
pub(crate) type Time = Duration;

/// The number of a session within one client: 1 for the first, 2 for the one after it.
///
/// Every reply, event and change of state carries it. What a client learned in one epoch says
/// nothing about locks in the next one: their znodes ended with the session.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::Epoch;
///
/// assert_eq!(client.epoch(), Epoch(1));
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reason why a session is over.
///
/// # Examples
/// ```
/// use minikeeper_client::LostReason;
///
/// assert_eq!(LostReason::Expired.to_string(), "expired");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LostReason {
    /// A server reported the expiry.
    Expired,
    /// A server granted another session when asked to resume this one.
    Replaced,
    /// No server has replied for so long that the session may have ended.
    Presumed,
    /// A server did not accept an identity.
    AuthFailed,
    /// The client could not authenticate itself with SASL.
    Sasl(SaslError),
    /// The client gave the session up, because more clean-ups were pending than
    /// [`ClientBuilder::clean_ups_max`](crate::ClientBuilder::clean_ups_max) allows. The end of the
    /// session deletes the same znodes.
    TooManyCleanUps,
    /// A read-only server created the session for one connection, which has ended.
    ReadOnly,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sasl(error) => return write!(f, "ended: {error}"),
            Self::Expired => "expired",
            Self::Replaced => "replaced by the server with a new one",
            Self::Presumed => "presumed expired: no server replied within its timeout",
            Self::AuthFailed => "ended: authentication failed",
            Self::TooManyCleanUps => {
                "given up: more clean-ups are pending than clean_ups_max allows"
            }
            Self::ReadOnly => "over: a read-only server created it for one connection only",
        })
    }
}

/// The reason why a request has no result.
///
/// # Examples
/// ```
/// use minikeeper_client::Cause;
///
/// assert_eq!(Cause::ConnectionLost.to_string(), "the connection was lost");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The connection ended.
    ConnectionLost,
    /// The deadline of the call passed.
    DeadlinePassed,
    /// The session of the request is over.
    SessionLost,
    /// The client is closed.
    Closed,
    /// The server replied with an error that is not a refusal of the request, see [`ErrorClass`].
    ///
    /// [`ErrorClass`]: crate::ErrorClass
    Server(ErrorCode),
    /// Too many requests wait for a connection or a reply. Wait for a connection, make fewer
    /// requests at a time, or raise
    /// [`ClientBuilder::pending_bytes_max`](crate::ClientBuilder::pending_bytes_max).
    TooManyPending {
        /// The size of the pending requests, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The reply is longer than the client accepts, which ended the connection. Read less, or raise
    /// [`ClientBuilder::frame_bytes_max`](crate::ClientBuilder::frame_bytes_max).
    ReplyTooLarge {
        /// The size of the reply, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The reply cannot be read, or does not fit its request, which ended the connection: it was
    /// damaged on the way, or the server is not a ZooKeeper server.
    ReplyUnreadable,
    /// The client has ended without [`Client::close`](crate::Client::close): the task that runs its
    /// [`Driver`](crate::Driver) has panicked or was aborted, as when its runtime shuts down.
    DriverEnded,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConnectionLost => "the connection was lost",
            Self::DeadlinePassed => "its deadline has passed",
            Self::SessionLost => "its session is over",
            Self::Closed => "the client is closed",
            Self::ReplyUnreadable => "its reply cannot be read, which ended the connection",
            Self::DriverEnded => {
                "the client's task has ended: it panicked, or its runtime has shut down; start \
                 another client"
            }
            Self::Server(code) => return write!(f, "the server answered: {code}"),
            Self::TooManyPending { bytes, bytes_max } => {
                return write!(
                    f,
                    "requests of {bytes} bytes are pending, the limit is {bytes_max} bytes; wait \
                     for a connection, or raise pending_bytes_max"
                );
            }
            Self::ReplyTooLarge { bytes, bytes_max } => {
                return write!(
                    f,
                    "its reply of {bytes} bytes exceeds the client's limit of {bytes_max} bytes; \
                     read less, or raise frame_bytes_max"
                );
            }
        })
    }
}

/// The meaning of an error code in a reply for its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The server refused this request. Nothing was changed.
    Refused,
    /// The server has not processed the request. The session lives.
    NotCarriedOut,
    /// The server no longer knows the session, and has not processed the request.
    SessionOver,
    /// The sender of the reply cannot know the outcome of the request.
    Unknown,
}

impl Verdict {
    /// Servers send SESSIONEXPIRED, SESSIONMOVED and THROTTLEDOP before they process a request. The
    /// other three are normally raised by clients that got no reply. In a reply they come from an
    /// intermediary, such as a proxy.
    pub(crate) const fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::SessionMoved | ErrorCode::ThrottledOp => Self::NotCarriedOut,
            ErrorCode::SessionExpired => Self::SessionOver,
            ErrorCode::ConnectionLoss | ErrorCode::OperationTimeout | ErrorCode::RequestTimeout => {
                Self::Unknown
            }
            _ => Self::Refused,
        }
    }

    /// Returns whether a server that replies with this code has just heard from the session.
    pub(crate) const fn proves_contact(code: ErrorCode) -> bool {
        matches!(Self::of(code), Self::Refused) || matches!(code, ErrorCode::ThrottledOp)
    }
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A server has answered.
    Answered {
        result: Result<Reply, ErrorCode>,
        zxid: Zxid,
        epoch: Epoch,
    },
    /// The request was sent, and it is unknown whether the server carried it out.
    Unknown(Cause),
    /// The request was certainly not carried out.
    NotSent(Cause),
}

/// How a watch ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WatchEnd {
    Fired {
        kind: EventKind,
        zxid: Zxid,
    },
    /// The session is over, or the client is closed.
    EpochOver,
}

/// A change of the connection's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Connected {
        epoch: Epoch,
        session: SessionId,
        /// Whether it is the previous session.
        resumed: bool,
        read_only: bool,
    },
    Suspended {
        epoch: Epoch,
        /// When the session will be presumed lost.
        until: Time,
    },
    Lost {
        epoch: Epoch,
        reason: LostReason,
    },
    Closed,
}

/// Receives what the machine yields.
pub(crate) trait Effects {
    /// A request has completed.
    fn completed(&mut self, caller: u32, outcome: Outcome);

    /// A one-shot watch fired, or a watch ended.
    fn watch_ended(&mut self, watch: WatchToken, end: WatchEnd);

    /// A persistent watch fired and stays registered.
    fn watch_fired(&mut self, watch: WatchToken, kind: EventKind, path: &Ustring, zxid: Zxid);

    /// The watches are registered on a new connection. A persistent watch has not fired for changes
    /// made while there was none.
    fn watch_interrupted(&mut self, watch: WatchToken);

    /// An event that fires watches. Comes once, before them.
    fn event(&mut self, kind: EventKind, path: &Ustring, zxid: Zxid);

    /// The connection's state has changed. [`Change::Closed`] comes when closing begins and is the
    /// last change.
    fn changed(&mut self, change: Change);

    /// The client has ended.
    fn stopped(&mut self);
}

/// Invalid input from a server, which ends the connection.
#[derive(Debug)]
pub(crate) enum CloseCause {
    Frame(FrameError),
    Message(DecodeError),
    /// A reply to no pending request.
    OutOfOrder(Xid),
    /// A reply with a path that the request cannot have created.
    UnfitReply(OpCode),
    /// An event of a znode for which the server has no watch of this client.
    UnexpectedEvent(Ustring),
    /// The server expects TLS.
    SpeaksTls,
}

impl fmt::Display for CloseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Message(error) => error.fmt(f),
            Self::SpeaksTls => f.write_str(
                "this is a secure port; connect with TLS, or to the server's plain port",
            ),
            Self::UnfitReply(op) => write!(f, "reply to {} does not fit the request", op.name()),
            Self::UnexpectedEvent(path) => {
                let path = path.to_str_lossy();
                write!(f, "event of {path:?}, which this client does not watch")
            }
            Self::OutOfOrder(xid) => {
                write!(f, "reply with xid {xid} does not match the oldest request")
            }
        }
    }
}
