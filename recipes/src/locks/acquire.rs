//! The builder that every `acquire` returns, with its time limit and owner; it is also the future
//! that acquires the lock.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use crate::{
    error::LockError,
    locks::{guard::Guard, owner::Owner},
    queue::{
        contending::Wait,
        position::{QueuePosition, Queued},
    },
};

/// A future that acquires a lock, or waits at a barrier. It sends nothing before the first poll.
///
/// It waits without a time limit unless [`Acquire::within`] sets one.
///
/// # Cancel safety
/// Dropping the future before it is ready deletes its znode, so that it leaves the queue or the
/// barrier. The deletion runs in the background and is retried until a server confirms it or the
/// session is over.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_recipes::{InterProcessMutex, LockError, Owner};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let owner = Owner::new();
/// let outer = lock.acquire().as_owner(&owner).await?;
/// // Without the owner this would wait until `outer` is released.
/// let inner = lock.acquire().within(Duration::from_secs(5)).as_owner(&owner).await?;
/// assert_eq!(outer.token(), inner.token());
/// // A call without an owner is another contender, which waits in vain.
/// let late = lock.acquire().within(Duration::from_millis(10)).await;
/// assert!(matches!(late, Err(LockError::TimedOut { .. })));
/// # Ok(()) });
/// ```
#[must_use = "the lock is not acquired until this is awaited"]
pub struct Acquire<'a, L, G> {
    /// `None` after the first poll.
    lock: Option<(L, Begin<'a, L, G>)>,
    how: How<'a>,
    /// `None` before the first poll.
    acquiring: Option<AcquireFuture<'a, G>>,
}

/// An acquisition that has begun.
type AcquireFuture<'a, G> = Pin<Box<dyn Future<Output = Result<G, LockError>> + Send + 'a>>;

/// Begins the acquisition.
type Begin<'a, L, G> = fn(L, How<'a>) -> AcquireFuture<'a, G>;

/// The settings of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) owner: Option<&'a Owner>,
    pub(crate) position: Option<&'a QueuePosition>,
    /// The number of leases, for a semaphore.
    pub(crate) leases: u32,
    within: Option<Duration>,
}

impl How<'_> {
    /// Returns the time limit, which starts to run now.
    pub(crate) fn wait(self) -> Wait {
        self.within.map_or(Wait::FOR_EVER, Wait::within)
    }

    /// Returns this lock object, or a clone that reports the position in the queue.
    pub(crate) fn reporting<L: Queued>(self, lock: &L) -> Cow<'_, L> {
        let Some(position) = self.position else {
            return Cow::Borrowed(lock);
        };
        let mut lock = lock.clone();
        lock.set_position(position);
        Cow::Owned(lock)
    }
}

/// A lock that an [`Owner`] may acquire again.
pub trait Reentrant {}

impl<'a, L, G> Acquire<'a, L, G> {
    pub(crate) const fn new(lock: L, begin: Begin<'a, L, G>) -> Self {
        Self {
            lock: Some((lock, begin)),
            how: How {
                owner: None,
                position: None,
                leases: 1,
                within: None,
            },
            acquiring: None,
        }
    }

    /// Waits at most this long, then fails with [`LockError::TimedOut`]. With zero it succeeds only
    /// if the lock is free.
    ///
    /// The time limit starts at the first poll.
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

impl<L, G> Acquire<'_, L, G> {
    /// Acquires the lock if it is free, without waiting for other contenders; `None` if it is not.
    pub(crate) async fn at_once(self) -> Result<Option<G>, LockError> {
        match self.within(Duration::ZERO).await {
            Err(LockError::TimedOut { .. }) => Ok(None),
            other => other.map(Some),
        }
    }
}

impl<L> Acquire<'_, L, Guard> {
    /// Acquires the lock, runs the work while it is held, and releases it, however the work ends.
    ///
    /// If the release is not confirmed, the result is still that of the work; the client retries in
    /// the background.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue, or drops the work and releases the lock
    /// in the background.
    ///
    /// # Errors
    /// Those of the acquire. [`LockError::WorkDropped`] if the lock was lost: the work was dropped, and
    /// its last actions may have happened without the lock.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use std::time::Duration;
    ///
    /// use minikeeper_recipes::InterProcessMutex;
    ///
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let acquire = lock.acquire().within(Duration::from_secs(5));
    /// let token = acquire.with_lock(async |guard| guard.token()).await?;
    /// println!("done under token {token}");
    /// # Ok(()) });
    /// ```
    pub async fn with_lock<T>(self, work: impl AsyncFnOnce(&Guard) -> T) -> Result<T, LockError> {
        let guard = self.await?;
        let done = guard.run(work(&guard)).await;
        let result = done.map_err(|loss| LockError::WorkDropped {
            path: guard.path().to_owned(),
            loss,
        });
        let _ = guard.release().await;
        result
    }
}

impl<'a, L: Reentrant, G> Acquire<'a, L, G> {
    /// Acquires as this owner. An owner that holds the lock through this lock object acquires it
    /// again at once. The lock is free when the last of the owner's guards is dropped or released.
    ///
    /// Fails with [`LockError::HoldLost`] if the owner has guards of a lock that is lost.
    ///
    /// Tasks that acquire as the same owner share one place in the queue. Dropping the future of
    /// one task keeps that place as long as another task waits.
    pub const fn as_owner(mut self, owner: &'a Owner) -> Self {
        self.how.owner = Some(owner);
        self
    }
}

impl<'a, L: Queued, G> Acquire<'a, &'a L, G> {
    /// Lets this position tell how many contenders are ahead, while this waits in the queue.
    ///
    /// Tasks that acquire as the same owner share one place in the queue; it is reported to the
    /// position of the first of them.
    pub const fn report_to(mut self, position: &'a QueuePosition) -> Self {
        self.how.position = Some(position);
        self
    }
}

// Nothing in it is pinned: the acquisition is boxed.
impl<L, G> Unpin for Acquire<'_, L, G> {}

impl<L, G> Future for Acquire<'_, L, G> {
    type Output = Result<G, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some((lock, begin)) = this.lock.take() {
            this.acquiring = Some(begin(lock, this.how));
        }
        let acquiring = this.acquiring.as_mut().expect("the first poll begins it");
        acquiring.as_mut().poll(cx)
    }
}

impl<L, G> fmt::Debug for Acquire<'_, L, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("how", &self.how)
            .field("is_begun", &self.acquiring.is_some())
            .finish_non_exhaustive()
    }
}
