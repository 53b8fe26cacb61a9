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
        }
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
        Ok(match name {
            "refuse" => Self::Refuse,
            "delay" => Self::Delay(delay.ok_or(FaultError::Incomplete {
                action: "delay",
                needs: "a duration",
            })?),
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
            name => {
                return Err(FaultError::UnknownAction {
                    name: name.to_owned(),
                    known: Self::NAMES,
                });
            }
        })
    }
}
