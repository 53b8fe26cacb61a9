//! The state of the connection, and its changes that wait for one subscriber.

use std::{collections::VecDeque, task::Waker};

use minikeeper_protocol::SessionId;
use tokio::time::Instant;

use crate::core::outcome::{Epoch, LostReason};

/// How client and servers are with each other.
///
/// The names are Curator's; Lost is final for the epoch it names.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::ConnectionState;
///
/// match client.state() {
///     ConnectionState::Suspended { until, .. } => println!("no connection; lost at {until:?}"),
///     ConnectionState::Lost { reason, .. } => println!("the session is {reason}"),
///     state => println!("{state:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// There was no connection yet.
    Connecting,
    /// The first connection, with a new session.
    Connected {
        /// The number of the session.
        epoch: Epoch,
        /// Its name on the servers.
        session: SessionId,
    },
    /// The connection is gone. The session may live: locks are held, but nobody can be asked.
    Suspended {
        /// The number of the session.
        epoch: Epoch,
        /// When it will be presumed lost.
        until: Instant,
    },
    /// There is a connection again: with the same epoch the session has lived on, with a new one
    /// it has not.
    Reconnected {
        /// The number of the session.
        epoch: Epoch,
        /// Its name on the servers.
        session: SessionId,
    },
    /// There is a connection, to a server that takes no changes and keeps no session alive. See
    /// [`ClientBuilder::allow_read_only`](crate::ClientBuilder::allow_read_only) for what that
    /// means for the session.
    ReadOnly {
        /// The number of the session.
        epoch: Epoch,
        /// Its name on the servers.
        session: SessionId,
    },
    /// The session is over, and its ephemeral znodes with it. A new one is asked for at once.
    Lost {
        /// The number of the session.
        epoch: Epoch,
        /// Why.
        reason: LostReason,
    },
    /// The client is closed, or is about to be: nothing is held any more.
    Closed,
}

impl ConnectionState {
    /// Whether requests can be sent.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        matches!(
            self,
            Self::Connected { .. } | Self::Reconnected { .. } | Self::ReadOnly { .. }
        )
    }

    /// The session it is about.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Connected { epoch, .. }
            | Self::Suspended { epoch, .. }
            | Self::Reconnected { epoch, .. }
            | Self::ReadOnly { epoch, .. }
            | Self::Lost { epoch, .. } => Some(*epoch),
            Self::Connecting | Self::Closed => None,
        }
    }
}

/// What a client knows of its session at one moment. Made by [`crate::Client::status`].
///
/// A lock is held as long as `safe_until` is in the future and the state names the session that it
/// was acquired in. The state alone does not tell: it is [`ConnectionState::ReadOnly`] both in a
/// session that lives and in one that holds nothing.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// let status: minikeeper_client::ClientStatus = client.status();
/// println!("{:?}, certain until {:?}", status.state, status.safe_until);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientStatus {
    /// As [`crate::Client::state`].
    pub state: ConnectionState,
    /// As [`crate::Client::safe_until`].
    pub safe_until: Option<Instant>,
}

/// The most changes that wait for one subscriber. A connection that comes and goes every second
/// fills it in a quarter of an hour; then the oldest are dropped.
const WAITING_MAX: usize = 1024;

/// The changes that wait for one subscriber.
#[derive(Debug, Default)]
pub(crate) struct StateQueue {
    waiting: VecDeque<ConnectionState>,
    waker: Option<Waker>,
}

impl StateQueue {
    pub(crate) fn push(&mut self, state: ConnectionState) -> Option<Waker> {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(state);
        self.waker.take()
    }

    pub(crate) fn pop(&mut self) -> Option<ConnectionState> {
        self.waiting.pop_front()
    }

    /// Whom to wake about the next one.
    pub(crate) fn wake(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
    }
}
