//! The semaphore mutex: a semaphore with one lease, used as a lock.
//!
//! Source: `docs/curator-recipes.md` section 6.7; Curator's `InterProcessSemaphoreMutex`.

use std::fmt;

use minikeeper_client::Error;

use crate::{
    client::ZooKeeper,
    error::LockError,
    locks::acquire::Acquire,
    locks::{guard::Guard, semaphore::InterProcessSemaphoreV2},
    options::LockOptions,
    queue::contending::Wait,
};

/// A lock that nobody can enter again, shared with Java processes that use Curator's class of the
/// same name.
///
/// It costs three writes where [`InterProcessMutex`](crate::InterProcessMutex) costs one, and here
/// that one cannot be entered again either unless an owner is named: this is for paths that Java
/// processes lock in this way.
///
/// Cheap to clone.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::InterProcessSemaphoreMutex;
///
/// let lock = InterProcessSemaphoreMutex::new(client, "/locks/legacy")?;
/// let guard = lock.acquire().await?;
/// assert!(lock.try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok(()) }
/// ```
pub struct InterProcessSemaphoreMutex<C: ZooKeeper> {
    semaphore: InterProcessSemaphoreV2<C>,
}

impl<C: ZooKeeper> Clone for InterProcessSemaphoreMutex<C> {
    fn clone(&self) -> Self {
        Self {
            semaphore: self.semaphore.clone(),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for InterProcessSemaphoreMutex<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessSemaphoreMutex")
            .field("semaphore", &self.semaphore)
            .finish()
    }
}

impl<C: ZooKeeper> InterProcessSemaphoreMutex<C> {
    /// The lock at this path. Nothing is asked of a server before it is acquired.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::InterProcessSemaphoreMutex;
    ///
    /// let lock = InterProcessSemaphoreMutex::new(client, "/locks/legacy")?;
    /// lock.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn new(client: C, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, LockOptions::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    pub fn with_options(client: C, path: &str, options: LockOptions) -> Result<Self, Error> {
        let semaphore = InterProcessSemaphoreV2::with_options(client, path, 1, options)?;
        Ok(Self { semaphore })
    }

    /// Acquires the lock: waits without a time limit unless [`Acquire::within`] sets one. Not
    /// reentrant.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often while it waits, [`LockError::Client`]
    /// when a server refuses or the client is closed. A lost connection is no error: it waits for
    /// the next one.
    pub fn acquire(&self) -> Acquire<'_, Self, Guard<C>> {
        Acquire::new(self, |lock, how| Box::pin(lock.take(how.wait())))
    }

    /// Takes the lock if it is free. `None` if it is not.
    ///
    /// # Errors
    /// Those of [`InterProcessSemaphoreMutex::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Guard<C>>, LockError> {
        let lease = self.semaphore.try_acquire().await?;
        Ok(lease.map(|lease| lease.guard))
    }

    // Leases are made one at a time, in the order of grants: a lease's czxid is a fencing token
    // here.
    async fn take(&self, wait: Wait) -> Result<Guard<C>, LockError> {
        let mut leases = self.semaphore.take(1, wait).await?;
        let lease = leases.pop().expect("one was asked for and got");
        Ok(lease.guard)
    }
}
