//! The barrier: nobody passes until it is removed.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `DistributedBarrier`, whose watches on
//! a barrier that is gone leak (CURATOR-654): here a missing znode leaves none.

use std::{fmt, sync::Arc};

use minikeeper_client::{CreateMode, Error, ErrorCode, Multi, ZnodePath};

use crate::{
    client::ZooKeeper,
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

/// A barrier that processes share, Java processes with Curator's class of the same name included:
/// while it is set, everybody waits who waits for it.
///
/// It belongs to nobody: it stays when whoever has set it goes.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
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
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DistributedBarrier<C: ZooKeeper> {
    queue: Queue<C>,
}

impl<C: ZooKeeper> fmt::Debug for DistributedBarrier<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedBarrier")
            .field("path", &self.queue.path)
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> DistributedBarrier<C> {
    /// The barrier at this path. Nothing is asked of a server yet.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::DistributedBarrier;
    ///
    /// let barrier = DistributedBarrier::new(client.clone(), "/barriers/migration")?;
    /// // Paths begin with a slash.
    /// assert!(DistributedBarrier::new(client, "migration").is_err());
    /// # Ok(()) }
    /// ```
    pub fn new(client: C, path: &str) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        Ok(Self {
            queue: Queue {
                client,
                path: path.into(),
                options: Arc::new(LockOptions::default()),
            },
        })
    }

    /// Sets the barrier; says whether it was not set before. Waits for a connection, and tries
    /// again when the answer gets lost: then it may say no although it was this call.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is no
    /// error: it waits for the next one.
    pub async fn set(&self) -> Result<bool, LockError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            match client
                .create(path, b"", CreateMode::Persistent, false)
                .await
            {
                Ok(_) => return Ok(true),
                Err(error) if error.is(ErrorCode::NodeExists) => return Ok(false),
                Err(error) if error.is(ErrorCode::NoNode) => {
                    match parents::make(client, naming::parent_of(path)).await {
                        // One of them was cleared away in between.
                        Err(error) if error.is(ErrorCode::NoNode) => pace.pause().await,
                        Err(error) if error.is_retryable() => pace.after(&error).await,
                        Err(error) => return Err(error.into()),
                        Ok(()) => {}
                    }
                }
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Removes the barrier: everybody passes. Says whether it was set before; otherwise as
    /// [`DistributedBarrier::set`].
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is no
    /// error: it waits for the next one.
    pub async fn remove(&self) -> Result<bool, LockError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            // Not one that goes on by itself: it could remove a barrier that was set since.
            match client.multi(Multi::new().delete(&**path, None)).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(false),
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until the barrier is not set, or is removed.
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is no
    /// error: it waits for the next one.
    pub fn wait(&self) -> Acquire<'_, Self, ()> {
        Acquire::new(self, |barrier, how| Box::pin(barrier.pass(how.wait())))
    }

    async fn pass(&self, wait: Wait) -> Result<(), LockError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(wait).await?;
            let read = client.watch_data(path);
            match self.queue.limited(wait, read).await? {
                Ok((_, watch)) => match wait.event(watch).await {
                    Some(fired) if fired.is_deleted() => return Ok(()),
                    // Its data have changed, or the session is over: look again.
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
