//! How sure a client is of its session, and every change of that.
//!
//! Source: `docs/curator-recipes.md` sections 2.9 and 9.

use std::future::Future;

use minikeeper_client::Epoch;
use tokio::time::Instant;

/// Every change of a client's standing, in order.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::client::{StateStream, ZooKeeper};
///
/// let mut states = ZooKeeper::states(&client);
/// client.close().await;
/// while let Some(standing) = states.next().await {
///     println!("{standing:?}");
/// }
/// # Ok(()) }
/// ```
pub trait StateStream: Send + 'static {
    /// The next one; `None` once the client is closed. Cancel safe.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::{Standing, StateStream as _, ZooKeeper};
    /// let mut states = ZooKeeper::states(&client);
    /// client.close().await;
    /// let mut last = None;
    /// while let Some(standing) = states.next().await {
    ///     last = Some(standing);
    /// }
    /// assert_eq!(last, Some(Standing::Closed));
    /// # Ok(()) }
    /// ```
    fn next(&mut self) -> impl Future<Output = Option<Standing>> + Send;
}

/// How sure a client is of its session.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::client::{Standing, ZooKeeper};
///
/// match client.standing() {
///     Standing::Connected { epoch, .. } => println!("session {epoch} lives"),
///     Standing::Suspended { safe_until, .. } => println!("nobody can have ended it before {safe_until:?}"),
///     other => println!("no session: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// There was none yet.
    Connecting,
    /// There is a connection; without any further word the session is safe until then.
    Connected {
        /// The session's number.
        epoch: Epoch,
        /// Until when nobody can have ended the session.
        safe_until: Instant,
    },
    /// There is no connection, or one to a server that takes no changes and keeps no session alive.
    Suspended {
        /// The session's number.
        epoch: Epoch,
        /// Until when nobody can have ended the session.
        safe_until: Instant,
    },
    /// This session, and every one before it, is over.
    Lost {
        /// The session's number.
        epoch: Epoch,
    },
    /// The client is closed.
    Closed,
}

impl Standing {
    /// The session it is about.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Connected { epoch, .. }
            | Self::Suspended { epoch, .. }
            | Self::Lost { epoch } => Some(*epoch),
            Self::Connecting | Self::Closed => None,
        }
    }
}
