//! The state of the connection, and a stream of its changes.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
};

use minikeeper_protocol::SessionId;
use tokio::time::Instant;

use crate::{
    core::outcome::{Epoch, LostReason},
    shared::Shared,
};

/// The state of the connection. The names are Curator's. `Lost` is final for the epoch it names.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::ConnectionState;
///
/// match client.state() {
///     ConnectionState::Suspended { until, .. } => println!("no connection; lost at {until:?}"),
///     ConnectionState::Lost { reason, .. } => println!("the session is {reason}"),
///     state => println!("{state:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// There has been no connection yet.
    Connecting,
    /// The first connection, with a new session.
    Connected {
        /// The number of the session.
        epoch: Epoch,
        /// The id of the session.
        session: SessionId,
    },
    /// The connection is down. The session may live, so locks may still be held.
    Suspended {
        /// The number of the session.
        epoch: Epoch,
        /// When the session will be presumed lost.
        until: Instant,
    },
    /// There is a new connection. The session is the same if the epoch is the same, and a new one
    /// otherwise.
    Reconnected {
        /// The number of the session.
        epoch: Epoch,
        /// The id of the session.
        session: SessionId,
    },
    /// There is a connection to a server that accepts no changes and keeps no session alive. See
    /// [`ClientBuilder::allow_read_only`](crate::ClientBuilder::allow_read_only) for what that
    /// means for the session.
    ReadOnly {
        /// The number of the session.
        epoch: Epoch,
        /// The id of the session.
        session: SessionId,
    },
    /// The session is over, and its ephemeral znodes are gone. The client requests a new session.
    Lost {
        /// The number of the session.
        epoch: Epoch,
        /// The reason.
        reason: LostReason,
    },
    /// The client is closed or closing, and no longer holds anything.
    Closed,
}

impl ConnectionState {
    /// Returns whether requests can be sent.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        matches!(
            self,
            Self::Connected { .. } | Self::Reconnected { .. } | Self::ReadOnly { .. }
        )
    }

    /// Returns the number of the session that the state describes.
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

/// What a client knows about its session at one moment. Returned by [`crate::Client::status`].
///
/// A lock is held as long as `safe_until` is in the future and the state names the session in which
/// the lock was acquired. The state alone is not enough: it is [`ConnectionState::ReadOnly`] both
/// in a session that lives and in one that holds nothing.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// let status: minikeeper_client::ClientStatus = client.status();
/// println!("{:?}, certain until {:?}", status.state, status.safe_until);
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientStatus {
    /// Same as [`crate::Client::state`].
    pub state: ConnectionState,
    /// Same as [`crate::Client::safe_until`].
    pub safe_until: Option<Instant>,
}

/// The largest number of changes that wait for one subscriber; beyond it the oldest are dropped. A
/// connection that is lost and restored every second reaches it in a quarter of an hour.
const WAITING_MAX: usize = 1024;

/// The changes that one subscriber has not read.
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

    /// Sets the task to wake for the next change.
    pub(crate) fn wake(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
    }
}

/// A stream of all changes of the connection's state, in order and not merged. It keeps the latest
/// 1,024 changes that the caller has not read.
///
/// Returned by [`crate::Client::states`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::ConnectionState;
/// let mut states = client.states();
/// client.close().await;
/// let mut all = Vec::new();
/// while let Some(state) = states.next().await {
///     all.push(state);
/// }
/// assert_eq!(all.last(), Some(&ConnectionState::Closed));
/// # Ok(()) });
/// ```
pub struct States {
    shared: Arc<Shared>,
    key: usize,
}

impl States {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let key = shared.look(|inner| inner.notifications.states.insert(StateQueue::default()));
        Self {
            shared: Arc::clone(shared),
            key,
        }
    }

    /// Waits for the next change; `None` once the client is closed and all changes were returned.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Option<ConnectionState> {
        poll_fn(|cx| {
            self.shared.look(|inner| {
                let is_closed = inner.notifications.state == ConnectionState::Closed;
                let queue = &mut inner.notifications.states[self.key];
                match queue.pop() {
                    Some(state) => Poll::Ready(Some(state)),
                    None if is_closed => Poll::Ready(None),
                    None => {
                        queue.wake(cx.waker());
                        Poll::Pending
                    }
                }
            })
        })
        .await
    }
}

impl Drop for States {
    fn drop(&mut self) {
        self.shared
            .look(|inner| inner.notifications.states.remove(self.key));
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}
