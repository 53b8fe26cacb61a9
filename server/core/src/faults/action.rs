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
            Self::Trigger => "trigger",
        }
    }

    /// Returns how long it delays what it acts on.
    pub const fn delay(self) -> Option<Duration> {
        match self {
            Self::Delay(by) | Self::DelayEvents(by) | Self::DelayReply(by) => Some(by),
            _ => None,
        }
    }

    /// Returns whether it acts on events, and not on what clients send.
    pub(crate) const fn is_on_events(self) -> bool {
        matches!(self, Self::HoldEvents | Self::DelayEvents(_))
    }

    /// Returns the action of this name. `delay` and `error` are ignored by actions that do not need
    /// them.
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
