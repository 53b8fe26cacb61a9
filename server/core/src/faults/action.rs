//! The actions of faults on requests, connections and events.

use std::time::Duration;

use minikeeper_protocol::ErrorCode;

use crate::faults::error::FaultError;

/// The action of a fault on a request, connection or event.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use minikeeper::{ErrorCode, FaultAction};
/// assert_eq!(FaultAction::LoseReply.name(), "lose-reply");
/// // From text, as in a configuration or on a command line:
/// let delay = FaultAction::from_name("delay", Some(Duration::from_secs(1)), None);
/// assert_eq!(delay, Ok(FaultAction::Delay(Duration::from_secs(1))));
/// let error = FaultAction::from_name("error", None, ErrorCode::from_name("NODEEXISTS"));
/// assert_eq!(error, Ok(FaultAction::Error(ErrorCode::NodeExists)));
/// let delay = FaultAction::from_name("delay", None, None).unwrap_err();
/// assert_eq!(delay.to_string(), "action \"delay\": needs a duration");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FaultAction {
    /// `refuse`: resets the connection as soon as it is accepted, before a byte is read. Such a
    /// fault matches connections, not requests.
    Refuse,
    /// `delay`: serves the request later, by this time of the server's clock; with a manual clock,
    /// once it is advanced that far. Until then the server neither reads nor serves anything more
    /// on this connection, and the session counts as silent; events are still sent. Unit: whole
    /// milliseconds.
    ///
    /// The request is served even if its client has disconnected, like any request in flight, but
    /// not if the server has closed the connection, for example because the session expired.
    Delay(Duration),
    /// `drop-request`: loses the request on its way to the server. Nothing changes, no reply is
    /// sent, and the session is not renewed. The connection stays open.
    ///
    /// After a lost `closeSession` nothing more is read from the connection, so that the session
    /// expires and the connection closes. After a lost handshake the connection closes once
    /// [`handshake_timeout`](crate::config::Config::handshake_timeout) is over. Both are by the server's
    /// clock.
    DropRequest,
    /// `lose-reply`: carries the request out, and closes the connection without a reply. The client
    /// cannot know whether the request was carried out.
    LoseReply,
    /// `never-answer`: carries the request out, and never replies. The connection stays open.
    /// Events and later replies are sent; clients that rely on the order of replies may then
    /// consider the connection broken.
    NeverAnswer,
    /// `error`: replies with this error instead of carrying the request out. The session is
    /// renewed. Does not apply to handshakes, whose reply has no field for an error.
    Error(ErrorCode),
    /// `cut`: closes the connection instead of serving the request.
    Cut,
    /// `cut-reply`: carries the request out, and closes the connection in the middle of the reply:
    /// half of the frame's bytes are sent.
    CutReply,
    /// `hold-events`: holds watch events back until the fault is removed, then sends them in order.
    /// Such a fault matches events: its path is the event's, its connection the watcher's. Replies
    /// and other events overtake held ones, so a reply may show a change before its event arrives.
    HoldEvents,
    /// `delay-events`: holds each watch event back until the watcher's next request has been
    /// answered and another one arrives, pings aside, but no longer than this time of the server's
    /// clock. Otherwise like `hold-events`. Unit: whole milliseconds.
    DelayEvents(Duration),
    /// `delay-reply`: carries the request out now, and sends its reply later, by this time of the
    /// server's clock. Until then nothing is sent to the client or read from it, and its session
    /// counts as silent: if it expires, the reply is lost. Unit: whole milliseconds.
    DelayReply(Duration),
    /// `cut-after`: carries the request out, replies, and then closes the connection.
    CutAfter,
    /// `expire`: carries the request out, replies, and then expires the client's session.
    Expire,
    /// `pause`: carries the request out and expires the client's session, whose connection stays open: its
    /// reply is sent later, by this time of the server's clock, and the connection is closed after the same time
    /// again. To the client this looks as if its process had stood still for longer than the session's timeout: it
    /// still gets the reply, and learns a little later that its session is gone. Nothing is read from it
    /// meanwhile. Unit: whole milliseconds.
    Pause(Duration),
    /// `outage`: from this request on, serves nothing for this time of the server's clock, or until the fault is
    /// removed: closes all connections, and new ones at their handshake. Sessions live on, and expire as usual.
    /// Requests for control are served. The fault acts on every request and handshake that it closes a connection
    /// for. Unit: whole milliseconds; `Duration::MAX` for no limit.
    Outage(Duration),
    /// `client-outage`: like `outage`, but for the session of this request alone.
    ClientOutage(Duration),
    /// `crash`: carries the request out, closes all connections without a reply, and from then on serves nothing for the
    /// sessions that exist now: to the server it looks as if the processes of all clients had been killed. The
    /// sessions live on until they expire. New sessions are served.
    Crash,
    /// `rollback`: carries the request out and replies, takes the last changes back, so many of them, and closes all
    /// connections, as a server that comes back with an older disk does. A change is what a request, or
    /// anything between two requests, has altered since the fault was injected; sessions that these changes have
    /// opened are gone, those that they have closed exist again. The zxid does not go back.
    Rollback(u32),
    /// `trigger`: does nothing but count and tell which request it matched, so that a test knows
    /// when to act. The faults injected after it are checked, too.
    Trigger,
}

impl FaultAction {
    /// Lists the names of all actions.
    ///
    /// # Examples
    /// ```
    /// assert!(minikeeper::FaultAction::NAMES.contains(&"hold-events"));
    /// ```
    pub const NAMES: &'static [&'static str] = &[
        "refuse",
        "delay",
        "drop-request",
        "lose-reply",
        "never-answer",
        "error",
        "cut",
        "cut-reply",
        "hold-events",
        "delay-events",
        "delay-reply",
        "cut-after",
        "expire",
        "pause",
        "outage",
        "client-outage",
        "crash",
        "rollback",
        "trigger",
    ];

    /// Returns its name, which [`FaultAction::from_name`] accepts.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(minikeeper::FaultAction::Cut.name(), "cut");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Delay(_) => "delay",
            Self::DropRequest => "drop-request",
            Self::LoseReply => "lose-reply",
            Self::NeverAnswer => "never-answer",
            Self::Error(_) => "error",
            Self::Cut => "cut",
            Self::CutReply => "cut-reply",
            Self::HoldEvents => "hold-events",
            Self::DelayEvents(_) => "delay-events",
            Self::DelayReply(_) => "delay-reply",
            Self::CutAfter => "cut-after",
            Self::Expire => "expire",
            Self::Pause(_) => "pause",
            Self::Outage(_) => "outage",
            Self::ClientOutage(_) => "client-outage",
            Self::Crash => "crash",
            Self::Rollback(_) => "rollback",
            Self::Trigger => "trigger",
        }
    }

    /// Returns how long it delays what it acts on, or how long it lasts; `None` if it has no such time.
    pub const fn delay(self) -> Option<Duration> {
        match self {
            Self::Delay(by) | Self::DelayEvents(by) | Self::DelayReply(by) | Self::Pause(by) => {
                Some(by)
            }
            Self::Outage(by) | Self::ClientOutage(by) if by.as_secs() < u64::MAX => Some(by),
            _ => None,
        }
    }

    /// Returns how long the connection stays open after the reply of a paused client.
    pub(crate) const fn pause(self) -> Option<Duration> {
        match self {
            Self::Pause(by) => Some(by),
            _ => None,
        }
    }

    /// Returns whether it delays the reply to a request that is carried out at once.
    pub(crate) const fn delays_reply(self) -> bool {
        matches!(self, Self::DelayReply(_) | Self::Pause(_))
    }

    /// Returns whether it acts on events, and not on what clients send.
    pub(crate) const fn is_on_events(self) -> bool {
        matches!(self, Self::HoldEvents | Self::DelayEvents(_))
    }

    /// Returns the action of this name. `delay` and `error` are ignored by actions that do not need
    /// them. An outage without a `delay` lasts until it is removed; a rollback takes one change back.
    ///
    /// # Errors
    /// [`FaultError::UnknownAction`], and [`FaultError::Incomplete`] for a delay without a duration
    /// or an error without its code.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::FaultAction;
    /// assert_eq!(FaultAction::from_name("drop-request", None, None), Ok(FaultAction::DropRequest));
    /// ```
    pub fn from_name(
        name: &str,
        delay: Option<Duration>,
        error: Option<ErrorCode>,
    ) -> Result<Self, FaultError> {
        let lasting = delay.unwrap_or(Duration::MAX);
        let delay = |action| {
            delay.ok_or(FaultError::Incomplete {
                action,
                needs: "a duration",
            })
        };
        Ok(match name {
            "refuse" => Self::Refuse,
            "delay" => Self::Delay(delay("delay")?),
            "delay-events" => Self::DelayEvents(delay("delay-events")?),
            "delay-reply" => Self::DelayReply(delay("delay-reply")?),
            "drop-request" => Self::DropRequest,
            "lose-reply" => Self::LoseReply,
            "never-answer" => Self::NeverAnswer,
            "error" => Self::Error(error.ok_or(FaultError::Incomplete {
                action: "error",
                needs: "an error code",
            })?),
            "cut" => Self::Cut,
            "cut-reply" => Self::CutReply,
            "hold-events" => Self::HoldEvents,
            "cut-after" => Self::CutAfter,
            "expire" => Self::Expire,
            "pause" => Self::Pause(delay("pause")?),
            "outage" => Self::Outage(lasting),
            "client-outage" => Self::ClientOutage(lasting),
            "crash" => Self::Crash,
            "rollback" => Self::Rollback(1),
            "trigger" => Self::Trigger,
            name => {
                return Err(FaultError::UnknownAction {
                    name: name.to_owned(),
                    known: Self::NAMES,
                });
            }
        })
    }
}
