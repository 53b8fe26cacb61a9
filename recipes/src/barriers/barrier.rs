//! The barrier: processes wait until it is removed.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `DistributedBarrier`, which leaves a
//! watch behind when the barrier does not exist (CURATOR-654). This one does not.

use std::fmt;

use minikeeper_client::{Client, CreateMode, Error, ErrorCode, Multi, ZnodePath};

use crate::{
    call_limit::CallLimit,
    error::LockError,
    locks::acquire::Acquire,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
        parents,
    },
};

/// A barrier between processes, compatible with Curator's class of the same name in Java.
/// [`wait`](Self::wait) waits while the barrier is set.
///
/// The barrier is a persistent znode: it outlives the process that set it.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::DistributedBarrier;
///
/// let client = Client::connect(&address).await?;
/// let barrier = DistributedBarrier::new(client, "/barriers/migration")?;
/// barrier.set().await?;
/// let (waited, removed) = tokio::join!(barrier.wait(), barrier.remove());
/// waited?;
/// assert!(removed?);
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct DistributedBarrier {
    queue: Queue,
}

impl fmt::Debug for DistributedBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedBarrier")
            .field("path", &self.queue.path)
            .finish_non_exhaustive()
    }
}

impl DistributedBarrier {
    /// Creates a barrier object for this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        Ok(Self {
            queue: Queue::new("DistributedBarrier", client, path, LockOptions::default()),
        })
    }

    /// Sets the barrier and returns true if it was not set before. It waits for a connection, and
    /// retries when the reply is lost. After a retry it may return false although this call set it.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall the request: the barrier may be set.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn set(&self) -> Result<bool, LockError> {
        let limit = CallLimit::change(&self.queue.client, "set", &self.queue.path);
        limit.run(self.create()).await
    }

    async fn create(&self) -> Result<bool, LockError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            match client.create(path, b"", CreateMode::Persistent).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is(ErrorCode::NodeExists) => return Ok(false),
                Err(error) if error.is(ErrorCode::NoNode) => {
                    match parents::make(client, naming::parent_of(path)).await {
                        Ok(parents::Made::Directories) => {}
                        Ok(parents::Made::Interrupted) => pace.pause().await,
                        Err(error) if error.is_retryable() => pace.after(&error).await,
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Removes the barrier, so that all waiting processes continue, and returns whether it was set.
    /// It retries as [`DistributedBarrier::set`] does, with the same effect on the result.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall the request: the barrier may be removed.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn remove(&self) -> Result<bool, LockError> {
        let limit = CallLimit::change(&self.queue.client, "remove", &self.queue.path);
        limit.run(self.delete()).await
    }

    async fn delete(&self) -> Result<bool, LockError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            // Not `delete`: it retries in the background and could remove a barrier that was set
            // since.
            match client.multi(Multi::new().delete(&**path, None)).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(false),
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits while the barrier is set, without a time limit unless [`Acquire::within`] sets one.
    ///
    /// # Cancel safety
    /// Dropping the future removes its watch and has no other effect.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] when the barrier is still set at the time limit.
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    pub fn wait(&self) -> Acquire<'_, &Self, ()> {
        Acquire::new(self, |barrier, how| Box::pin(barrier.pass(how.wait())))
    }

    async fn pass(&self, wait: Wait) -> Result<(), LockError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(wait).await?;
            let read = client.get_data_and_watch(path);
            match self.queue.limited(wait, read).await? {
                Ok((_, watch)) => match wait.event(watch).await {
                    Some(fired) if fired.is_deleted() => return Ok(()),
                    // Its data has changed, or the session is over: read it again.
                    Some(_) => {}
                    None => return Err(self.queue.timed_out(wait)),
                },
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) if error.is_retryable() => {
                    self.queue.in_time(wait, pace.after(&error)).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
