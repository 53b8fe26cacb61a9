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
/// // From plain text, as a configuration or a command line has it:
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
    /// `refuse`: the connection is reset as soon as it is accepted, before a byte is read. A fault
    /// of this kind meets connections, not requests.
    Refuse,
    /// `delay`: the request is served later by this time of the server's clock; with a manual
    /// clock, when it is advanced that far. Until then nothing behind it on this connection is read
    /// or served, and the session counts as silent; events still come. Unit: whole milliseconds.
    ///
    /// It is served even if its client has disconnected, as a request in flight would be; but not
    /// once the server has closed the connection, for example because the session expired.
    Delay(Duration),
    /// `drop-request`: the request is lost on its way to the server. Nothing changes, no answer
    /// comes, and it is no sign of life of the session. The connection stays.
    DropRequest,
    /// `lose-reply`: the request is carried out, and the connection is cut without its reply. The
    /// client cannot know whether it was.
    LoseReply,
    /// `never-answer`: the request is carried out and never answered. The connection stays; events
    /// and later replies come, which clients that count on the order of replies may take as the
    /// sign of a broken connection.
    NeverAnswer,
    /// `error`: the request is not carried out and is answered with this error. It counts as a sign
    /// of life. Handshakes, which have no place for an error, are left alone.
    Error(ErrorCode),
    /// `cut`: the connection is cut instead of serving the request.
    Cut,
    /// `cut-reply`: the request is carried out, and the connection is cut in the middle of its
    /// reply: half of the frame's bytes are sent.
    CutReply,
    /// `hold-events`: watch events are held back until the fault is removed, then sent in their
    /// order. A fault of this kind matches events: its path is that of the event, its connection
    /// the watcher's. Replies and other events overtake those that it holds, so a reply may show a
    /// change before its event arrives.
    HoldEvents,
}

impl FaultAction {
    /// The names of all actions.
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

    /// Its name, which [`FaultAction::from_name`] takes back.
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

    /// The action of this name; what it has no use for is ignored.
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
