//! Errors of calls.

use std::time::Duration;

use minikeeper_protocol::{ErrorCode, PathError};

use crate::{
    core::outcome::{Cause, LostReason, Verdict},
    operations::CreateOptions,
};

/// The reason why a call failed.
///
/// Three cases matter to the caller: the server refused ([`Error::Refused`]), the request was
/// certainly not carried out ([`Error::NotSent`], and all errors before sending), or it is unknown
/// whether it was ([`Error::OutcomeUnknown`]). [`Error::class`] says what to do next.
///
/// Some error codes in a reply are not refusals of the request. They become:
///
/// | code | error |
/// | --- | --- |
/// | SESSIONMOVED, THROTTLEDOP | [`Error::NotSent`] with [`Cause::Server`] |
/// | SESSIONEXPIRED | [`Error::NotSent`] with [`Cause::SessionLost`] |
/// | CONNECTIONLOSS, OPERATIONTIMEOUT, REQUESTTIMEOUT | [`Error::OutcomeUnknown`] with [`Cause::Server`] |
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::{Error, ErrorCode};
///
/// match client.get_data("/missing").await {
///     Ok(data) => println!("{:?}", data.as_bytes()),
///     Err(error) if error.is(ErrorCode::NoNode) => println!("missing"),
///     Err(error) if error.is_retryable() => println!("retry later: {error}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A server replied with an error. Nothing was changed.
    #[error("{op} {path:?}: {code}")]
    Refused {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The server's reason.
        code: ErrorCode,
    },
    /// The client's root (the chroot of the connect string, with the namespace) does not exist.
    /// Nothing was changed. Its [`Error::code`] is NONODE.
    #[error(
        "{op} {path:?}: the client's root {root:?} does not exist; create it with \
         Client::create_root, and set ClientBuilder::create_chroot if the chroot is missing"
    )]
    NoRoot {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The missing znode, as the servers know it.
        root: String,
    },
    /// A server refused a multi because of one of its operations. Nothing was changed.
    #[error("multi: operation {index} on {path:?}: {code}")]
    MultiRefused {
        /// The index of the operation, from 0.
        index: usize,
        /// Its path, as the caller knows it.
        path: String,
        /// The server's reason.
        code: ErrorCode,
    },
    /// The request was sent, and it is unknown whether it was carried out.
    #[error("{op} {path:?}: outcome unknown: {cause}")]
    OutcomeUnknown {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The reason.
        cause: Cause,
    },
    /// The request was certainly not carried out: it was not sent, or the server refused to process
    /// it.
    #[error("{op} {path:?}: not carried out: {cause}")]
    NotSent {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The reason.
        cause: Cause,
    },
    /// The path is invalid. Nothing was sent.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The request is larger than servers accept. Nothing was sent.
    #[error("{op} {path:?}: request of {bytes} bytes exceeds the limit of {bytes_max} bytes")]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The size of the request.
        bytes: usize,
        /// The limit, see [`crate::ClientBuilder::frame_bytes_max`].
        bytes_max: usize,
    },
    /// The time to live is out of the range that servers accept. Nothing was sent.
    #[error(
        "create {path:?}: a time to live of {ttl:?} is not between {:?} and {} ms (34 years)",
        CreateOptions::TTL_MIN,
        CreateOptions::TTL_MAX.as_millis()
    )]
    TimeToLive {
        /// The path, as the caller knows it.
        path: String,
        /// The time to live.
        ttl: Duration,
    },
    /// The call needs a tokio runtime, and there is none.
    #[error("{what}: no tokio runtime; call this within one")]
    NoRuntime {
        /// What the call starts.
        what: &'static str,
    },
    /// The background task that the call waits for has ended, because code that it ran has panicked or
    /// its runtime has shut down. Start another one.
    #[error("{what}: its task has ended: {why}; start another one")]
    TaskEnded {
        /// What the task was for.
        what: &'static str,
        /// Why it has ended.
        why: String,
    },
    /// A blocking call on a thread that runs async tasks, which would stop meanwhile. Nothing was
    /// sent.
    #[error(
        "{what}: this thread belongs to a tokio runtime, whose tasks a blocking call would stop; \
         await the async type instead, or call this on a thread of std::thread::spawn"
    )]
    InRuntime {
        /// The call.
        what: &'static str,
    },
    /// Another thread has interrupted a blocking call, which has the effect of dropping the future:
    /// a request may have been carried out.
    #[error("{what}: interrupted by another thread")]
    Interrupted {
        /// The call.
        what: &'static str,
    },
    /// The system did not start the thread of a blocking client.
    #[error("blocking client: cannot start its thread: {reason}")]
    NoThread {
        /// The system's reason.
        reason: String,
    },
    /// The client has ended because a server did not accept its identity. Correct the identity, and
    /// start another client.
    #[error("{host}: session {reason}")]
    AuthFailed {
        /// The server.
        host: String,
        /// [`LostReason::AuthFailed`] or [`LostReason::Sasl`].
        reason: LostReason,
    },
    /// A call of a recipe got no result within the limit for calls, see
    /// [`ClientBuilder::call_timeout`](crate::ClientBuilder::call_timeout).
    #[error("{call} {path:?}: no result within {} ms; {then}", within.as_millis())]
    CallTimedOut {
        /// The call.
        call: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The limit.
        within: Duration,
        /// What may still happen.
        then: AfterTimeout,
    },
    /// There was no connection within the time limit.
    #[error("no connection within {} ms; {}", within.as_millis(), hint(hosts, last.as_deref()))]
    NotConnected {
        /// The servers that were tried.
        hosts: String,
        /// The time limit.
        within: Duration,
        /// The last server tried and why there is no connection to it, see
        /// [`Client::last_failure`](crate::Client::last_failure).
        last: Option<String>,
    },
}

fn hint(hosts: &str, last: Option<&str>) -> String {
    match last {
        Some(last) => format!("last attempt: {last}"),
        None => format!("is a server running at {hosts}?"),
    }
}

/// What may still happen after [`Error::CallTimedOut`].
///
/// # Examples
/// ```
/// use minikeeper_client::AfterTimeout;
/// let then = AfterTimeout::Continues;
/// assert!(then.to_string().starts_with("it continues in the background"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AfterTimeout {
    /// Nothing: the call changes nothing. Retry.
    Nothing,
    /// The change may have been made, or may be made later. Read before a retry.
    MayChange,
    /// What the call began continues in the background until a server confirms it or the session is
    /// over. The caller need not do anything.
    Continues,
}

impl std::fmt::Display for AfterTimeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "it changes nothing; retry",
            Self::MayChange => "the change may have been made; read before a retry",
            Self::Continues => {
                "it continues in the background until it is confirmed or the session is over"
            }
        })
    }
}

/// The next step after an error, see [`Error::class`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::ErrorClass;
///
/// let refused = client.get_data("/missing").await.expect_err("it is missing");
/// assert_eq!(refused.class(), ErrorClass::Refused);
/// client.close().await;
/// let closed = client.get_data("/missing").await.expect_err("it is closed");
/// assert_eq!(closed.class(), ErrorClass::Closed);
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorClass {
    /// A retry gets the same result until something else changes. Nothing was changed, unless
    /// [`Error::is_outcome_unknown`].
    Refused,
    /// The connection was lost, or the server was busy. The session may still live. Retry after a
    /// pause (see [`Backoff`](crate::Backoff)); if [`Error::is_outcome_unknown`], first check
    /// whether the request was carried out.
    Again,
    /// The session is over, and its ephemeral znodes are gone. Start again in the next session.
    /// Persistent changes may have been made if [`Error::is_outcome_unknown`].
    SessionOver,
    /// The client is closed: no further request will be sent.
    Closed,
    /// The timeout that the caller has set has passed, see
    /// [`Client::with_timeout`](crate::Client::with_timeout) and
    /// [`ClientBuilder::call_timeout`](crate::ClientBuilder::call_timeout).
    DeadlinePassed,
}

impl Error {
    /// Returns the error of a call that gets a reply with this code, for tests of callers.
    #[must_use]
    pub fn answered(op: &'static str, path: String, code: ErrorCode) -> Self {
        match Verdict::of(code) {
            Verdict::Refused => Self::Refused { op, path, code },
            Verdict::NotCarriedOut => {
                let cause = Cause::Server(code);
                Self::NotSent { op, path, cause }
            }
            Verdict::SessionOver => {
                let cause = Cause::SessionLost;
                Self::NotSent { op, path, cause }
            }
            Verdict::Unknown => {
                let cause = Cause::Server(code);
                Self::OutcomeUnknown { op, path, cause }
            }
        }
    }

    /// Returns the class of the error, which says what to do next.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::OutcomeUnknown { cause, .. } | Self::NotSent { cause, .. } => match cause {
                Cause::ConnectionLost | Cause::ReplyUnreadable | Cause::Server(_) => {
                    ErrorClass::Again
                }
                Cause::SessionLost => ErrorClass::SessionOver,
                Cause::Closed | Cause::DriverEnded => ErrorClass::Closed,
                Cause::DeadlinePassed => ErrorClass::DeadlinePassed,
                Cause::ReplyTooLarge { .. } | Cause::TooManyPending { .. } => ErrorClass::Refused,
            },
            // A multi passes the code on unchanged.
            Self::Refused { code, .. } | Self::MultiRefused { code, .. } => {
                match Verdict::of(*code) {
                    Verdict::Refused => ErrorClass::Refused,
                    Verdict::SessionOver => ErrorClass::SessionOver,
                    Verdict::NotCarriedOut | Verdict::Unknown => ErrorClass::Again,
                }
            }
            Self::CallTimedOut { .. } => ErrorClass::DeadlinePassed,
            _ => ErrorClass::Refused,
        }
    }

    /// Returns the server's error code, if a server replied with an error.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. }
            | Self::MultiRefused { code, .. }
            | Self::NotSent {
                cause: Cause::Server(code),
                ..
            }
            | Self::OutcomeUnknown {
                cause: Cause::Server(code),
                ..
            } => Some(*code),
            Self::NoRoot { .. } => Some(ErrorCode::NoNode),
            _ => None,
        }
    }

    /// Returns whether a server replied with this error code.
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code() == Some(code)
    }

    /// Returns whether it is unknown if the request was carried out.
    #[must_use]
    pub const fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::OutcomeUnknown { .. } | Self::Interrupted { .. } => true,
            Self::CallTimedOut { then, .. } => !matches!(then, AfterTimeout::Nothing),
            Self::Refused { code, .. } | Self::MultiRefused { code, .. } => {
                matches!(Verdict::of(*code), Verdict::Unknown)
            }
            _ => false,
        }
    }

    /// Returns whether a retry may help, after a pause (see [`Backoff`](crate::Backoff)): the class
    /// is [`ErrorClass::Again`] or [`ErrorClass::SessionOver`].
    ///
    /// If the outcome is unknown, a retry may carry out the request twice.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.class(), ErrorClass::Again | ErrorClass::SessionOver)
    }

    /// Returns the cause of [`Error::OutcomeUnknown`] or [`Error::NotSent`].
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self {
            Self::OutcomeUnknown { cause, .. } | Self::NotSent { cause, .. } => Some(*cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: ErrorCode) -> Error {
        Error::answered("create2", "/a".to_owned(), code)
    }

    #[test]
    fn every_error_code_of_a_reply_has_a_class() {
        for &code in ErrorCode::ALL {
            let error = answered(code);
            let expected = match code {
                ErrorCode::SessionExpired => (ErrorClass::SessionOver, false),
                ErrorCode::SessionMoved | ErrorCode::ThrottledOp => (ErrorClass::Again, false),
                ErrorCode::ConnectionLoss
                | ErrorCode::OperationTimeout
                | ErrorCode::RequestTimeout => (ErrorClass::Again, true),
                _ => (ErrorClass::Refused, false),
            };
            assert_eq!(
                (error.class(), error.is_outcome_unknown()),
                expected,
                "{code}"
            );
            assert_eq!(
                error.is_retryable(),
                expected.0 != ErrorClass::Refused,
                "{code}"
            );
            let op = "create2";
            let path = "/a".to_owned();
            let raw = Error::Refused { op, path, code };
            assert_eq!((raw.class(), raw.is_outcome_unknown()), expected, "{code}");
            if code != ErrorCode::SessionExpired {
                assert!(error.is(code), "{code}");
            }
        }
    }

    #[test]
    fn message_says_that_the_request_was_not_carried_out_and_why() {
        assert_eq!(
            answered(ErrorCode::ThrottledOp).to_string(),
            "create2 \"/a\": not carried out: the server answered: operation throttled \
             (THROTTLEDOP -127)"
        );
        assert_eq!(
            answered(ErrorCode::SessionExpired).to_string(),
            "create2 \"/a\": not carried out: its session is over"
        );
    }
}
