//! The token and the status of a lock.
//!
//! Source: `docs/curator-recipes.md` sections 9 and 10.

use std::fmt;

use minikeeper_client::Zxid;
use tokio::time::Instant;

/// A number that grows with every grant of a lock.
///
/// Send it with every action under the lock. A resource that refuses tokens smaller than the
/// largest it has seen is safe from a holder that was paused, lost the lock, and woke up too late.
/// Equal tokens belong to the same grant and must be accepted.
///
/// It is the czxid of the lock's znode. The ensemble assigns czxids in increasing order, and a Java
/// contender finds its own in the stat of its lock path.
///
/// It grows as long as the servers keep their state. Those of another ensemble may be smaller: one that
/// was built anew, one that was restored from an older backup, and any ensemble after a minikeeper
/// server, whose czxids begin with the time unless it was started with `--initial-zxid 0`. Then reset
/// what resources have stored.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{FencingToken, InterProcessMutex};
///
/// /// A resource outside ZooKeeper.
/// struct Register {
///     largest: FencingToken,
/// }
///
/// impl Register {
///     fn write(&mut self, token: FencingToken) -> bool {
///         let is_valid = token >= self.largest;
///         if is_valid {
///             self.largest = token;
///         }
///         is_valid
///     }
/// }
///
/// let lock = InterProcessMutex::new(client, "/locks/register")?;
/// let mut register = Register {
///     largest: FencingToken { czxid: 0, pass: 0 },
/// };
/// let first = lock.acquire().await?;
/// let token = first.token();
/// assert!(register.write(token));
/// first.release().await?;
/// let second = lock.acquire().await?;
/// assert!(register.write(second.token()));
/// // The first holder, after a pause:
/// assert!(!register.write(token));
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FencingToken {
    /// The czxid.
    pub czxid: i64,
    /// How often the lock was passed on between tasks of one process since the grant; 0 unless
    /// [`LockOptions::local_hand_over`](crate::LockOptions::local_hand_over) is set.
    pub pass: u32,
}

impl FencingToken {
    pub(crate) const fn new(czxid: Zxid) -> Self {
        Self {
            czxid: czxid.0,
            pass: 0,
        }
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pass {
            0 => self.czxid.fmt(f),
            pass => write!(f, "{}.{pass}", self.czxid),
        }
    }
}

/// The reason why a lock was lost.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMutex, Loss};
///
/// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
/// let guard = lock.acquire().await?;
/// let session = client.session_id().ok_or("it is connected")?;
/// server.expire(session);
/// // The client may learn of the session's end or the deletion first.
/// let loss = guard.lost().await;
/// assert!(matches!(loss, Loss::SessionOver | Loss::NodeDeleted));
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// The session is over.
    SessionOver,
    /// No server has replied for so long that the session may have ended.
    Presumed,
    /// The lock's znode was deleted: by another client, or because the session ended, which the
    /// client does not know yet.
    NodeDeleted,
    /// The client is closed.
    Closed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionOver => "the session is over",
            Self::Presumed => "no server has replied for the session timeout",
            Self::NodeDeleted => "its znode was deleted",
            Self::Closed => "the client is closed",
        })
    }
}

impl std::error::Error for Loss {}

/// The state of a lock: held, suspended or lost.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMutex, Status};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let guard = lock.acquire().await?;
/// match guard.status() {
///     Status::Held => println!("go on"),
///     Status::Suspended { until } => println!("start nothing new; lost at {until:?}"),
///     Status::Lost(loss) => println!("stop: {loss:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The lock is held, as far as the client can know.
    Held,
    /// The lock is held, but the connection is down. Start nothing new under the lock.
    Suspended {
        /// When the lock will be presumed lost.
        until: Instant,
    },
    /// The lock is lost and does not come back.
    Lost(Loss),
}
