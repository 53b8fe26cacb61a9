//! Why a fault cannot be injected, or has not acted.

use std::{error::Error, fmt, time::Duration};

use minikeeper_protocol::{ErrorCode, OpCode};

use crate::universe::session_selector::NoSession;

/// Why a fault cannot be injected. Nothing has changed.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::{Fault, FaultError};
/// let server = minikeeper::Server::builder().start().await?;
/// let wrong = server.inject(Fault::cut().with_probability(1.5, 0)).unwrap_err();
/// assert_eq!(wrong, FaultError::Probability(1.5));
/// assert_eq!(wrong.to_string(), "probability 1.5: outside of 0 to 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FaultError {
    /// There is no operation of this name.
    UnknownOp(String),
    /// There is no such action.
    UnknownAction {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: &'static [&'static str],
    },
    /// There is no error of this name.
    UnknownError(String),
    /// An action needs to be told more.
    Incomplete {
        /// The action's name.
        action: &'static str,
        /// The requirement.
        needs: &'static str,
    },
    /// This is neither a session nor an address.
    UnknownWho(String),
    /// The pattern for paths can match no path.
    Path {
        /// The pattern.
        pattern: String,
        /// The reason.
        why: &'static str,
    },
    /// The probability is none.
    Probability(f64),
    /// The fault may act not even once.
    NeverActs,
    /// Where this action is taken there is nothing of what the fault asks for.
    Pointless {
        /// The action's name.
        action: &'static str,
        /// The unsupported condition.
        by: &'static str,
    },
    /// More operations are named than there are.
    TooManyOps {
        /// The number named.
        count: usize,
        /// The number that exist.
        max: usize,
    },
    /// There is no session to be silenced.
    NoSession(NoSession),
    /// There are too many faults already.
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
                "operation \"{it}\": unknown; one of any, connect, close, {names}",
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
            Self::Probability(it) => write!(f, "probability {it}: outside of 0 to 1"),
            Self::NeverActs => f.write_str(
                "count 0: the fault would never act; leave count out for any number of times",
            ),
            Self::Pointless { action, by } => {
                write!(f, "action \"{action}\": cannot be told apart by {by}")
            }
            Self::TooManyOps { count, max } => {
                write!(f, "{count} operations: there are only {max}")
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

/// A fault did not act: it was waited for in vain, or was removed before it acted. The text says
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
/// assert_eq!(in_vain.to_string(), "fault 1: acted 0 of 1 times within 1ms; 0 messages matched it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotHit {
    /// There is no fault of this number, or no longer.
    Unknown {
        /// The number.
        id: u64,
    },
    /// It was removed before it had acted as often as that.
    Removed {
        /// The fault's number.
        id: u64,
        /// The number of times it has acted.
        hits: u64,
        /// The number of times waited for.
        wanted: u64,
    },
    /// It has ended without having acted once. It is removed.
    Never {
        /// The fault's number.
        id: u64,
        /// A short description of the fault.
        fault: String,
        /// How many messages it was about, those left alone by `skip`, `count` and `probability`
        /// included.
        matches: u64,
    },
    /// It has not acted as often in time.
    TimedOut {
        /// The fault's number.
        id: u64,
        /// The number of times it has acted.
        hits: u64,
        /// The number of times waited for.
        wanted: u64,
        /// How many messages it was about, those left alone by `skip`, `count` and `probability`
        /// included.
        matches: u64,
        /// The bound.
        within: Duration,
    },
}

impl fmt::Display for NotHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { id } => write!(
                f,
                "fault {id}: unknown, or removed; \"faults\" lists those there are"
            ),
            Self::Removed { id, hits, wanted } => write!(
                f,
                "fault {id}: removed after it had acted {hits} of {wanted} times"
            ),
            Self::Never { id, fault, matches } => write!(
                f,
                "fault {id} ({fault}): has ended and never acted; {matches} messages matched it; what it \
         meets may be written otherwise (op, path, session), or inject it as optional"
            ),
            Self::TimedOut {
                id,
                hits,
                wanted,
                matches,
                within,
            } => write!(
                f,
                "fault {id}: acted {hits} of {wanted} times within {within:?}; {matches} messages matched it"
            ),
        }
    }
}

impl Error for NotHit {}
