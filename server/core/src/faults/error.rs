//! The reasons why a fault cannot be injected, or has not acted.

use std::{error::Error, fmt, time::Duration};

use minikeeper_protocol::{ErrorCode, OpCode};

use crate::session_selector::NoSession;

/// Why a fault cannot be injected. Nothing has changed.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::{Fault, FaultError};
/// let server = minikeeper::Server::builder().start().await?;
/// let wrong = server.inject(Fault::cut().with_probability(1.5, 0)).unwrap_err();
/// assert_eq!(wrong, FaultError::Probability(1.5));
/// assert_eq!(wrong.to_string(), "probability 1.5: outside the range of 0 to 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FaultError {
    /// No operation has this name.
    UnknownOp(String),
    /// No action has this name.
    UnknownAction {
        /// The given name.
        name: String,
        /// The existing names.
        known: &'static [&'static str],
    },
    /// No error has this name.
    UnknownError(String),
    /// An action lacks a parameter.
    Incomplete {
        /// The action's name.
        action: &'static str,
        /// The requirement.
        needs: &'static str,
    },
    /// This text is neither a session nor an address.
    UnknownWho(String),
    /// The pattern cannot match any path.
    Path {
        /// The pattern.
        pattern: String,
        /// The reason.
        why: &'static str,
    },
    /// The probability is not between 0 and 1.
    Probability(f64),
    /// The fault's count is 0, so that it would never act.
    NeverActs,
    /// The action does not support one of the fault's conditions.
    Pointless {
        /// The action's name.
        action: &'static str,
        /// The unsupported condition.
        by: &'static str,
    },
    /// The fault names more operations than exist.
    TooManyOps {
        /// The number of named operations.
        count: usize,
        /// The number of existing ones.
        max: usize,
    },
    /// No session to silence matched.
    NoSession(NoSession),
    /// There are already too many faults.
    TooMany {
        /// The limit.
        max: usize,
    },
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOp(it) => write!(
                f,
                "operation \"{it}\": unknown; one of any, request, connect, close, {names}",
                names = op_names()
            ),
            Self::UnknownAction { name, known } => write!(
                f,
                "action \"{name}\": unknown; one of {names}",
                names = known.join(", ")
            ),
            Self::UnknownError(it) => write!(
                f,
                "error \"{it}\": unknown; one of {names}",
                names = error_names()
            ),
            Self::Incomplete { action, needs } => write!(f, "action \"{action}\": needs {needs}"),
            Self::UnknownWho(it) => write!(
                f,
                "\"{it}\": neither \"anyone\" nor a session id (0x... or decimal) nor an address"
            ),
            Self::Path { pattern, why } => write!(f, "path pattern {pattern:?}: {why}"),
            Self::Probability(it) => write!(f, "probability {it}: outside the range of 0 to 1"),
            Self::NeverActs => f.write_str(
                "count 0: the fault would never act; omit count for any number of times",
            ),
            Self::Pointless { action, by } => {
                write!(f, "action \"{action}\": cannot be restricted to {by}")
            }
            Self::TooManyOps { count, max } => {
                write!(f, "{count} operations named; only {max} exist")
            }
            Self::NoSession(error) => error.fmt(f),
            Self::TooMany { max } => write!(
                f,
                "faults: limit of {max} reached; remove some, or reset them"
            ),
        }
    }
}

impl Error for FaultError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoSession(error) => error.source(),
            _ => None,
        }
    }
}

impl From<NoSession> for FaultError {
    fn from(error: NoSession) -> Self {
        Self::NoSession(error)
    }
}

fn op_names() -> String {
    let names: Vec<_> = OpCode::ALL.iter().map(|op| op.name()).collect();
    names.join(", ")
}

fn error_names() -> String {
    let names: Vec<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    names.join(", ")
}

/// A fault did not act as expected: a wait for it timed out, or it was removed first. The text says
/// what happened instead.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use minikeeper::Fault;
/// let server = minikeeper::Server::builder().start().await?;
/// let guard = server.inject(Fault::cut().optional())?;
/// let in_vain = guard.hit_within(Duration::from_millis(1)).await.unwrap_err();
/// assert_eq!(in_vain.to_string(), "fault 1: acted 0 of 1 times within 1ms; messages that matched it: 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotHit {
    /// There is no fault with this number, or it was removed.
    Unknown {
        /// The number.
        id: u64,
    },
    /// It was removed before it had acted as often as wanted.
    Removed {
        /// The fault's number.
        id: u64,
        /// The number of times it has acted.
        hits: u64,
        /// The number of times waited for.
        wanted: u64,
    },
    /// It was removed without having acted.
    Never {
        /// The fault's number.
        id: u64,
        /// A short description of the fault.
        fault: String,
        /// The number of messages that it matched, including those spared by `skip`, `count` and
        /// `probability`.
        matches: u64,
    },
    /// It did not act as often as wanted in time.
    TimedOut {
        /// The fault's number.
        id: u64,
        /// The number of times it has acted.
        hits: u64,
        /// The number of times waited for.
        wanted: u64,
        /// The number of messages that it matched, including those spared by `skip`, `count` and
        /// `probability`.
        matches: u64,
        /// The time limit.
        within: Duration,
    },
}

impl fmt::Display for NotHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { id } => write!(
                f,
                "fault {id}: unknown or already removed; \"faults\" lists the current ones"
            ),
            Self::Removed { id, hits, wanted } => write!(
                f,
                "fault {id}: removed after it had acted {hits} of {wanted} times"
            ),
            Self::Never { id, fault, matches } => write!(
                f,
                "fault {id} ({fault}): ended and never acted; messages that matched it: {matches}; check its op, \
                 path and session, or inject it as optional"
            ),
            Self::TimedOut {
                id,
                hits,
                wanted,
                matches,
                within,
            } => write!(
                f,
                "fault {id}: acted {hits} of {wanted} times within {within:?}; messages that matched it: {matches}"
            ),
        }
    }
}

impl Error for NotHit {}
