//! The errors of locks, shared values and counters, and the result of a release.

use std::time::Duration;

use minikeeper_client::Error;

use crate::status::Loss;

/// The reason why a lock was not acquired. Each variant says what to do.
///
/// A failed call leaves no znode behind, although the deletion may take longer than the call. A
/// lost connection is not an error: the lock waits for the next connection, and keeps its place in
/// the queue while the session lives. Use [`Acquire::within`](crate::Acquire::within) to limit the
/// wait.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_recipes::{InterProcessMutex, LockError};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let _guard = lock.acquire().await?;
/// match lock.acquire().within(Duration::from_millis(10)).await {
///     Ok(guard) => println!("acquired, with token {}", guard.token()),
///     Err(LockError::TimedOut { within, .. }) => println!("not free within {within:?}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The lock was not free within the time limit. The call has left the queue. Retry later or
    /// with a longer limit.
    #[error("lock {path:?}: not free within {} ms", within.as_millis())]
    TimedOut {
        /// The lock.
        path: String,
        /// The time limit.
        within: Duration,
    },
    /// The session ended, or the znode was deleted, during
    /// [`LockOptions::attempts_max`](crate::LockOptions::attempts_max) waits in a row. The network
    /// or the servers have a problem, or the session timeout is too short for the pauses of this
    /// process. A retry does no harm.
    #[error("lock {path:?}: session or znode lost {attempts} times while waiting")]
    Lost {
        /// The lock.
        path: String,
        /// The number of waits.
        attempts: u32,
    },
    /// The owner has guards of this lock, but the lock is lost. Drop all guards of the owner, then
    /// acquire again.
    #[error("lock {path:?}: the owner's hold is lost; drop its guards and acquire again")]
    HoldLost {
        /// The lock.
        path: String,
    },
    /// The lock was lost while [`with_lock`](crate::Acquire::with_lock) ran the work, which was dropped.
    /// Its last actions may have happened without the lock.
    #[error("lock {path:?}: lost while the work ran, which was dropped: {loss}")]
    WorkDropped {
        /// The path of the lock's znode.
        path: String,
        /// How it was lost.
        loss: Loss,
    },
    /// An owner that holds the lock to read wants to write, and would wait for itself forever.
    /// Release the read lock first, and read the data again under the write lock.
    #[error("lock {path:?}: a reader cannot become a writer; release the read lock first")]
    UpgradeWouldDeadlock {
        /// The lock.
        path: String,
    },
    /// The semaphore has fewer leases than wanted. Acquire fewer, or raise the maximum in all
    /// processes.
    #[error("semaphore {path:?}: {wanted} leases wanted, {max} exist")]
    TooMany {
        /// The semaphore.
        path: String,
        /// The number of leases wanted.
        wanted: u32,
        /// The number of leases of the semaphore.
        max: u32,
    },
    /// The caller wanted 0 leases. Acquire 1 or more.
    #[error("semaphore {path:?}: 0 leases wanted; acquire 1 or more")]
    NothingWanted {
        /// The semaphore.
        path: String,
    },
    /// The maximum of a semaphore cannot be read. The cause says what to do.
    #[error("semaphore {path:?}: cannot read its maximum")]
    NoMaximum {
        /// The semaphore.
        path: String,
        /// The cause.
        source: ValueError,
    },
    /// The sequence counter of the directory is close to its end, where contenders may get equal
    /// numbers. Delete the directory while no contender uses it, to restart the counter.
    #[error(
        "lock {path:?}: sequence number {sequence} is not from 0 to {}; delete the directory \
         while no contender uses it, to restart its counter",
        max - 1
    )]
    SequenceExhausted {
        /// The lock.
        path: String,
        /// The number that the server assigned.
        sequence: i64,
        /// The first number that is refused, [`naming::SEQUENCE_MAX`](crate::naming::SEQUENCE_MAX).
        max: u32,
    },
    /// A request failed: a server refused it for a reason that a retry does not change, or the
    /// client is closed and the caller needs another one.
    #[error(transparent)]
    Client(#[from] Error),
    /// The work of a leader selector panicked, which ended its turn.
    /// [`SelectorOptions::is_requeued`](crate::SelectorOptions::is_requeued) decides whether it
    /// queues again.
    #[error("leader selector {path:?}: its work has panicked: {message}")]
    WorkPanicked {
        /// The selector.
        path: String,
        /// The message of the panic.
        message: String,
    },
}

impl LockError {
    /// Returns whether a retry may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Client(error)
            | Self::NoMaximum {
                source: ValueError::Client(error),
                ..
            } => error.is_retryable(),
            _ => false,
        }
    }
}

/// The result of releasing a lock.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMutex, Released};
///
/// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
/// let guard = lock.acquire().await?;
/// // An operator deletes its znode.
/// client.delete(guard.path(), None).await?;
/// match guard.release().await? {
///     Released::AlreadyGone => println!("the last part of the work was not protected"),
///     other => panic!("the znode was deleted, but the release returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Released {
    /// The lock was released: the next contender can acquire it.
    Done,
    /// The lock was passed on to another task of this process, with the same znode; see
    /// [`LockOptions::local_hand_over`](crate::LockOptions::local_hand_over).
    PassedOn,
    /// The lock is still held: the owner has another guard.
    StillHeld,
    /// The lock had been lost before: its znode no longer existed. The last part of the work was
    /// not protected; check its result if that matters.
    AlreadyGone,
}

/// The reason why a shared value was not read or set.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{SharedCount, ValueError};
///
/// client.create("/tickets", b"250", CreateMode::Persistent).await?;
/// let tickets = SharedCount::start(client, "/tickets", 250).await?;
/// match tickets.get().await {
///     Err(ValueError::NotACount { bytes, .. }) => assert_eq!(bytes, 3),
///     other => panic!("the data is text, but the call returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The znode holds fewer than 4 bytes, too few for a count. Setting the count repairs it.
    #[error(
        "shared count {path:?}: {bytes} bytes found, but a count has 4; set the count to repair it"
    )]
    NotACount {
        /// The path of the count.
        path: String,
        /// The length found.
        bytes: usize,
    },
    /// The version of the znode has wrapped around to -1, which means "any version" to a server.
    /// Set the value unconditionally once.
    #[error("shared value {path:?}: version -1 cannot be compared; set the value unconditionally")]
    Unversioned {
        /// The value.
        path: String,
    },
    /// A request failed. [`Error::is_outcome_unknown`] says whether the value may have been set.
    #[error(transparent)]
    Client(#[from] Error),
}

/// The reason why an atomic value was not read or changed.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{AtomicError, DistributedAtomicLong};
///
/// client.create("/orders", b"250", CreateMode::Persistent).await?;
/// let orders = DistributedAtomicLong::new(client, "/orders")?;
/// match orders.add(1).await {
///     Err(AtomicError::Corrupted { bytes, .. }) => assert_eq!(bytes, 3),
///     other => panic!("the data is text, but the call returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomicError {
    /// Other clients changed the value during every attempt. This call did not change it.
    #[error(
        "atomic value {path:?}: changed by others during each of {attempts} attempts; try later"
    )]
    Contended {
        /// The path of the value.
        path: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The znode holds something else. Delete it, or use another path.
    #[error(
        "atomic value {path:?}: {bytes} bytes found, which are no {expected}; delete it or use \
         another path"
    )]
    Corrupted {
        /// The path of the value.
        path: String,
        /// The length found.
        bytes: usize,
        /// What the value should be, such as "64-bit number".
        expected: &'static str,
    },
    /// A request failed, or the mutex of a [`Promotion`](crate::Promotion) was not acquired. If the
    /// inner error is [`Error::OutcomeUnknown`], the value may have been changed.
    #[error(transparent)]
    Failed(#[from] LockError),
}

impl From<Error> for AtomicError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}
