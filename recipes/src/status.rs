//! What can be said of a lock that is or was held.
//!
//! Source: `docs/curator-recipes.md` sections 9 and 10.

use std::fmt;

use minikeeper_client::Zxid;
use tokio::time::Instant;

/// A number that grows with every grant of a lock.
///
/// Send it along with everything that is done under the lock: a resource that refuses a token
/// smaller than the largest it has seen is safe from a holder that was paused, lost the lock, and
/// woke up too late. Equal tokens are the same grant and must be accepted.
///
/// It is the czxid of the lock's znode: it grows over all changes of the ensemble, and a Java
/// contender finds the same number in the stat of its lock path.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{FencingToken, InterProcessMutex};
///
/// /// Something that is not in ZooKeeper.
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
/// // The first, who was paused meanwhile:
/// assert!(!register.write(token));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FencingToken {
    /// The czxid.
    pub czxid: i64,
    /// How often the lock was passed on since, from task to task of one process; 0 unless
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

/// Why a lock was lost.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Loss};
///
/// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
/// let guard = lock.acquire().await?;
/// let session = client.session_id().ok_or("it is connected")?;
/// server.expire(session);
/// // Whichever is heard of first.
/// let loss = guard.lost().await;
/// assert!(matches!(loss, Loss::SessionOver | Loss::NodeDeleted));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// The session is over.
    SessionOver,
    /// No server was heard for so long that one may have ended the session.
    Presumed,
    /// The lock's znode was deleted: by somebody else, or with the session, of whose end the client
    /// has not heard yet.
    NodeDeleted,
    /// The client is closed.
    Closed,
}

/// Whether a lock is still held.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Status};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let guard = lock.acquire().await?;
/// match guard.status() {
///     Status::Held => println!("go on"),
///     Status::Suspended { until } => println!("finish what was begun, before {until:?}"),
///     Status::Lost(loss) => println!("stop: {loss:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It is, as far as this client can know.
    Held,
    /// It is, but there is no connection: it will be presumed lost then. Nothing new should be
    /// begun under it.
    Suspended {
        /// When.
        until: Instant,
    },
    /// It is not, and will not be again.
    Lost(Loss),
}
