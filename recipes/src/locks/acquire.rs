//! How a lock is to be acquired: the builder that every `acquire` returns.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use crate::{error::LockError, locks::owner::Owner, queue::contending::Wait};

/// A future that acquires a lock, or waits at a barrier. Nothing happens before it is polled, and its
/// settings have no effect after that.
///
/// Without a [limit](Acquire::within) it waits as long as it takes.
///
/// # Cancel safety
/// Dropping the future before it is ready gives the place in the queue back: in the background,
/// and again until the server has confirmed it or the session is over.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// use minikeeper_recipes::{InterProcessMutex, LockError, Owner};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let owner = Owner::new();
/// let outer = lock.acquire().as_owner(&owner).await?;
/// // Without the owner this would wait for `outer`.
/// let inner = lock.acquire().within(Duration::from_secs(5)).as_owner(&owner).await?;
/// assert_eq!(outer.token(), inner.token());
/// // Another contender waits, and not for long.
/// let late = lock.acquire().within(Duration::from_millis(10)).await;
/// assert!(matches!(late, Err(LockError::TimedOut { .. })));
/// # Ok(()) }
/// ```
#[must_use = "nothing is acquired before this is awaited"]
pub struct Acquire<'a, L, G> {
    lock: &'a L,
    how: How<'a>,
    begin: Begin<'a, L, G>,
    /// From the first poll on.
    under_way: Option<Acquiring<'a, G>>,
}

/// An acquisition on its way.
type Acquiring<'a, G> = Pin<Box<dyn Future<Output = Result<G, LockError>> + Send + 'a>>;

/// Begins the acquisition.
type Begin<'a, L, G> = fn(&'a L, How<'a>) -> Acquiring<'a, G>;

/// What the caller has set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) owner: Option<&'a Owner>,
    /// How many leases; for a semaphore.
    pub(crate) leases: u32,
    within: Option<Duration>,
}

impl How<'_> {
    /// Returns the limit, which begins now.
    pub(crate) fn wait(self) -> Wait {
        self.within.map_or(Wait::FOR_EVER, Wait::within)
    }
}

/// A lock that an [`Owner`] may acquire again.
pub trait Reentrant {}

impl<'a, L, G> Acquire<'a, L, G> {
    pub(crate) const fn new(lock: &'a L, begin: Begin<'a, L, G>) -> Self {
        let how = How {
            owner: None,
            leases: 1,
            within: None,
        };
        let under_way = None;
        Self {
            lock,
            how,
            begin,
            under_way,
        }
    }

    /// Waits for this long at most, then fails with [`LockError::TimedOut`]. Zero takes what is free.
    pub const fn within(mut self, within: Duration) -> Self {
        self.how.within = Some(within);
        self
    }

    pub(crate) const fn leases(mut self, leases: u32) -> Self {
        self.how.leases = leases;
        self
    }

    pub(crate) const fn with(mut self, owner: Option<&'a Owner>, within: Option<Duration>) -> Self {
        self.how.owner = owner;
        self.how.within = within;
        self
    }
}

impl<'a, L: Reentrant, G> Acquire<'a, L, G> {
    /// Acquires as this owner. An owner who holds the lock by this lock object acquires it again at
    /// once; the lock is free when the last of the owner's guards is gone. If that hold is lost, this
    /// fails with [`LockError::HoldLost`].
    pub const fn as_owner(mut self, owner: &'a Owner) -> Self {
        self.how.owner = Some(owner);
        self
    }
}

impl<L, G> Future for Acquire<'_, L, G> {
    type Output = Result<G, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let begin = || (this.begin)(this.lock, this.how);
        this.under_way.get_or_insert_with(begin).as_mut().poll(cx)
    }
}

impl<L: fmt::Debug, G> fmt::Debug for Acquire<'_, L, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("lock", self.lock)
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}
