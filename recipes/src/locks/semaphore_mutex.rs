//! The semaphore mutex: a semaphore with one lease, used as a lock.
//!
//! Source: `docs/curator-recipes.md` section 6.7; Curator's `InterProcessSemaphoreMutex`.

use minikeeper_client::{Client, Error};

use crate::{
    error::LockError,
    locks::{acquire::Acquire, guard::Guard, semaphore::InterProcessSemaphoreV2},
    options::LockOptions,
    queue::{
        contending::Wait,
        position::{QueuePosition, Queued},
    },
};

/// A lock that is not reentrant, compatible with Curator's class of the same name in Java.
///
/// It costs three writes where [`InterProcessMutex`](crate::InterProcessMutex) costs one, and that
/// is not reentrant either unless the caller names an owner. So use this lock only for paths that
/// Java processes lock with this class.
///
/// Cheap to clone.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::InterProcessSemaphoreMutex;
///
/// let lock = InterProcessSemaphoreMutex::new(client, "/locks/legacy")?;
/// let guard = lock.acquire().await?;
/// assert!(lock.try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct InterProcessSemaphoreMutex {
    semaphore: InterProcessSemaphoreV2,
}

impl Queued for InterProcessSemaphoreMutex {
    fn set_position(&mut self, position: &QueuePosition) {
        self.semaphore.set_position(position);
    }
}

impl InterProcessSemaphoreMutex {
    /// Creates a lock at this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, LockOptions::default())
    }

    /// Like [`Self::new`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn with_options(client: Client, path: &str, options: LockOptions) -> Result<Self, Error> {
        let semaphore = InterProcessSemaphoreV2::with_options(client, path, 1, options)?
            .observed_as("InterProcessSemaphoreMutex");
        Ok(Self { semaphore })
    }

    /// Acquires the lock, waiting without a time limit unless [`Acquire::within`] sets one. Not
    /// reentrant.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue, see [`Acquire`].
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often during the wait,
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    pub fn acquire(&self) -> Acquire<'_, &Self, Guard> {
        Acquire::new(self, |lock, how| {
            Box::pin(async move { how.reporting(lock).take(how.wait()).await })
        })
    }

    /// Acquires the lock if it is free; `None` if it is not.
    ///
    /// # Cancel safety
    /// Same as [`InterProcessSemaphoreMutex::acquire`].
    ///
    /// # Errors
    /// Those of [`InterProcessSemaphoreMutex::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, LockError> {
        self.acquire().at_once().await
    }

    // With one lease at a time, leases are created in the order of grants: here a lease's czxid is
    // a fencing token.
    async fn take(&self, wait: Wait) -> Result<Guard, LockError> {
        let mut leases = self.semaphore.take(1, wait).await?;
        let lease = leases.pop().expect("one lease was requested");
        Ok(lease.guard)
    }
}
