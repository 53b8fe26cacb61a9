//! Why a lock was not got, or not given back.

use std::time::Duration;

use minikeeper_client::Error;

/// Why a lock was not got. Each says what to do.
///
/// Nothing is left behind: a znode that was created goes again, also if that takes longer than the
/// call. A lost connection is no error: locks wait for the next one, in the same session at the same
/// place in the queue. Whoever must not wait uses the `_within` methods.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// use minikeeper_recipes::{InterProcessMutex, LockError};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let _guard = lock.acquire().await?;
/// match lock.acquire().within(Duration::from_millis(10)).await {
///     Ok(guard) => println!("got it, with token {}", guard.token()),
///     Err(LockError::TimedOut { within, .. }) => println!("not within {within:?}: later, then"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Others held it for the whole time. The place in the queue is given up: try again later, with
    /// more time, or do without.
    #[error("lock {path:?}: not free within {} ms", within.as_millis())]
    TimedOut {
        /// The lock.
        path: String,
        /// The time it was waited for.
        within: Duration,
    },
    /// The session ended while the lock was waited for, as often as is put up with
    /// ([`LockOptions::attempts_max`](crate::LockOptions::attempts_max)). Something is wrong with
    /// the network or the servers, or the session timeout is too short for the pauses of this
    /// process. Trying again does no harm.
    #[error("lock {path:?}: session or znode lost {attempts} times while waiting")]
    Lost {
        /// The lock.
        path: String,
        /// How often.
        attempts: u32,
    },
    /// The lock is held by the same owner, whose session is over: there is nothing to enter again.
    /// Drop all guards of this owner first.
    #[error("lock {path:?}: held by this owner, but lost")]
    HoldLost {
        /// The lock.
        path: String,
    },
    /// A reader wants to write. He would wait for himself for ever: give the read lock back first,
    /// and look again at what was read once the write lock is there.
    #[error("lock {path:?}: a reader cannot become a writer; release the read lock first")]
    UpgradeWouldDeadlock {
        /// The lock.
        path: String,
    },
    /// More was asked for than there is: ask for less, or raise the maximum everywhere.
    #[error("semaphore {path:?}: {wanted} leases wanted, {max} exist")]
    TooMany {
        /// The semaphore.
        path: String,
        /// What was asked for.
        wanted: u32,
        /// What there is.
        max: u32,
    },
    /// Nothing was asked for: ask for one or more.
    #[error("semaphore {path:?}: no leases wanted; ask for 1 or more")]
    NothingWanted {
        /// The semaphore.
        path: String,
    },
    /// The maximum of a semaphore cannot be read. What is said of the cause holds.
    #[error("semaphore {path:?}: its maximum is not known")]
    NoMaximum {
        /// The semaphore.
        path: String,
        /// Why.
        source: ValueError,
    },
    /// The counter of the directory is close to its end, where contenders may get equal numbers.
    #[error(
        "lock {path:?}: sequence {sequence} is beyond {max}; let the directory be deleted when \
         nobody waits, its counter starts anew then"
    )]
    SequenceExhausted {
        /// The lock.
        path: String,
        /// The number that was given.
        sequence: i64,
        /// The last one that is used.
        max: u32,
    },
    /// The client could not do what it was asked for: a server refused, which trying again does not
    /// change, or the client is closed, and another one is needed.
    #[error(transparent)]
    Client(#[from] Error),
    /// The work of a leader selector has panicked. It leads no more; whether it queues again is
    /// [`SelectorOptions::is_requeued`](crate::SelectorOptions::is_requeued).
    #[error("leader selector {path:?}: its work has panicked: {message}")]
    WorkPanicked {
        /// The selector.
        path: String,
        /// What the panic said.
        message: String,
    },
}

impl LockError {
    /// Whether the same request may be answered otherwise in a while.
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

/// What became of a lock that was given back.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Released};
///
/// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
/// let guard = lock.acquire().await?;
/// // Somebody deletes its znode by hand.
/// client.delete(guard.path(), None).await?;
/// match guard.release().await? {
///     Released::AlreadyGone => println!("the end of the work was not protected"),
///     other => panic!("it was gone, so not {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Released {
    /// The next one has it.
    Done,
    /// Another task of this process has it, by the same znode; see
    /// [`LockOptions::local_hand_over`](crate::LockOptions::local_hand_over).
    PassedOn,
    /// It is still held: another guard of the same owner is there.
    StillHeld,
    /// It had been lost before: its znode was gone. The end of the work was not protected; if that
    /// matters, look at what was done.
    AlreadyGone,
}

/// Why a shared value was not got or not set.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{SharedCount, ValueError};
///
/// client.create("/tickets", b"250", CreateMode::Persistent).await?;
/// let tickets = SharedCount::start(client, "/tickets", 250).await?;
/// match tickets.get().await {
///     Err(ValueError::NotACount { bytes, .. }) => assert_eq!(bytes, 3),
///     other => panic!("it is a text, so not {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// What is there is no count: it is shorter than four bytes. Setting it makes it one.
    #[error("shared count {path:?}: {bytes} bytes are no count; 4 are")]
    NotACount {
        /// The count.
        path: String,
        /// How long it is.
        bytes: usize,
    },
    /// The znode has been set 2^32 times less one, and its version means "any" to a server.
    #[error("shared value {path:?}: version -1 cannot be asked for; set it whatever its version")]
    Unversioned {
        /// The value.
        path: String,
    },
    /// The client could not do what it was asked for. [`Error::is_outcome_unknown`] tells whether
    /// the value may have been set.
    #[error(transparent)]
    Client(#[from] Error),
}

/// Why a counter was not read or changed.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{AtomicError, DistributedAtomicLong};
///
/// client.create("/orders", b"250", CreateMode::Persistent).await?;
/// let orders = DistributedAtomicLong::new(client, "/orders")?;
/// match orders.increment().await {
///     Err(AtomicError::Corrupted { bytes, .. }) => assert_eq!(bytes, 3),
///     other => panic!("it is a text, so not {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomicError {
    /// Others were faster every time. It was not changed.
    #[error("counter {path:?}: changed by others during each of {attempts} attempts; try later")]
    Contended {
        /// The counter.
        path: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The znode holds something else. Delete it, or use another path.
    #[error("counter {path:?}: holds {bytes} bytes, but a counter has 8")]
    Corrupted {
        /// The counter.
        path: String,
        /// What it holds.
        bytes: usize,
    },
    /// The client could not do what it was asked for, or the mutex was not got. If the error below
    /// is [`Error::OutcomeUnknown`], the counter may or may not have been changed.
    #[error(transparent)]
    Failed(#[from] LockError),
}

impl From<Error> for AtomicError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}
