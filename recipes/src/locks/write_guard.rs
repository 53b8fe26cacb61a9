//! A write lock that is held, and how its holder goes on as a reader.
//!
//! Source: `docs/curator-recipes.md` section 5.3; Curator's `InterProcessReadWriteLock`.

use std::{fmt, ops::Deref};

use minikeeper_client::{CreateMode, Error};

use crate::{
    client::ZooKeeper,
    error::{LockError, Released},
    locks::{guard::Guard, held::Held},
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
    },
    status::Status,
};

/// A write lock that is held. Dropping it gives it back without waiting.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessReadWriteLock, Status};
///
/// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
/// let writer = catalogue.acquire_write().await?;
/// // What a guard can do it can do too.
/// assert_eq!(writer.status(), Status::Held);
/// # Ok(()) }
/// ```
#[must_use = "a guard that is dropped gives its lock back"]
pub struct WriteGuard<C: ZooKeeper> {
    pub(crate) guard: Guard<C>,
    pub(crate) queue: Queue<C>,
}

impl<C: ZooKeeper> WriteGuard<C> {
    /// Goes on as a reader: no writer comes in between, and other readers may come in. The
    /// fencing token stays the same.
    ///
    /// If the future is dropped, the lock is given back.
    ///
    /// # Errors
    /// [`LockError::HoldLost`] if the lock is lost, [`LockError::Client`] when a server refuses or
    /// the client is closed. The lock is given back then.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessReadWriteLock;
    /// # let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let writer = catalogue.acquire_write().await?;
    /// let token = writer.token();
    /// let reader = writer.downgrade().await?;
    /// assert_eq!(reader.token(), token);
    /// // Others may read now.
    /// let other = catalogue.acquire_read().await?;
    /// # Ok(()) }
    /// ```
    pub async fn downgrade(self) -> Result<Guard<C>, LockError> {
        let reader = behind(&self.queue, &self.guard.held, Wait::FOR_EVER).await?;
        drop(self.guard);
        Ok(reader)
    }

    /// See [`Guard::release`].
    ///
    /// # Errors
    /// Those of [`Guard::release`].
    pub async fn release(self) -> Result<Released, Error> {
        self.guard.release().await
    }
}

impl<C: ZooKeeper> Deref for WriteGuard<C> {
    type Target = Guard<C>;

    fn deref(&self) -> &Guard<C> {
        &self.guard
    }
}

impl<C: ZooKeeper> fmt::Debug for WriteGuard<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

pub(crate) fn check<C: ZooKeeper>(queue: &Queue<C>, held: &Held<C>) -> Result<(), LockError> {
    match held.status() {
        Status::Lost(_) => Err(LockError::HoldLost {
            path: queue.path.to_string(),
        }),
        Status::Held | Status::Suspended { .. } => Ok(()),
    }
}

/// Reads under a write lock: the znode gets the writer's digits and so stands directly beside it,
/// ahead of everybody who waits for the writer.
///
/// Only a living writer may do so: in a later session the digits would jump the queue (hazard
/// H34), and behind a writer whose znode was deleted another one may hold the lock already. So the
/// server is asked for the writer's znode once the reader's is there: if it is, the two have stood
/// side by side, and nobody has come in between.
pub(crate) async fn behind<C: ZooKeeper>(
    queue: &Queue<C>,
    writer: &Held<C>,
    wait: Wait,
) -> Result<Guard<C>, LockError> {
    check(queue, writer)?;
    let digits = &writer.path[writer.path.len() - 10..];
    let name = format!("{}{digits}", naming::lock_name::READ);
    let look = || Some(queue.client.exists(&writer.path));
    let entered = queue
        .enter_many(&name, CreateMode::Ephemeral, 1, wait, look)
        .await?;
    let lost = || LockError::HoldLost {
        path: queue.path.to_string(),
    };
    let (mut places, mut looking) = entered.ok_or_else(lost)?;
    let place = places.pop().ok_or_else(lost)?;
    if place.epoch != writer.epoch {
        return Err(lost());
    }
    let mut pace = Pace::of(&queue.client);
    let is_there = loop {
        let looking = looking
            .take()
            .unwrap_or_else(|| queue.client.exists(&writer.path));
        match queue.limited(wait, looking).await? {
            Ok(seen) => break seen.value.is_some() && seen.epoch == writer.epoch,
            Err(error) if error.is_retryable() => {
                queue.again(wait, &mut pace).await?;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if !is_there {
        writer.is_deleted();
    }
    if queue.options.look_ahead == 0 {
        // Curator lists, whatever it may see.
        let _ = queue.limited(wait, queue.list()).await?;
    }
    check(queue, writer)?;
    // The own czxid is larger than those of writers that wait already, and would lock them out.
    Ok(Guard::new(Held::new(
        queue.client.clone(),
        place,
        writer.token,
    )))
}
