//! The read/write lock: many readers or one writer, in order of arrival; and the guard of a writer,
//! which can be downgraded to a reader's.
//!
//! Source: `docs/curator-recipes.md` section 5; Curator's `InterProcessReadWriteLock`.

use std::{fmt, ops::Deref, sync::Arc};

use minikeeper_client::{Client, CreateMode, Error, ZnodePath};

use crate::{
    call_limit::CallLimit,
    error::{LockError, Released},
    locks::{
        acquire::{Acquire, Reentrant},
        guard::Guard,
        held::Held,
        owner::{Acquiring, Holds, Owner},
    },
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        order::Claim,
        pace::Pace,
        position::{QueuePosition, Queued},
    },
    status::{FencingToken, Status},
};

/// A lock for many readers or one writer, compatible with Curator's class of the same name in Java.
///
/// It serves readers and writers in the order of their arrival: a reader that comes after a waiting
/// writer waits for it. A writer may also read, and may turn into a reader
/// ([`WriteGuard::downgrade`]). A reader cannot become a writer.
///
/// In Curator 5.4 and older, a waiting writer can overtake a writer that turns into a reader
/// (hazard H9). Two such Java processes do not exclude each other; this lock is not affected.
///
/// Cheap to clone. Clones are the same lock object: an owner that holds one holds all.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::InterProcessReadWriteLock;
///
/// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
/// let reader = catalogue.acquire_read().await?;
/// let another = catalogue.acquire_read().await?;
/// drop((reader, another));
/// let writer = catalogue.acquire_write().await?;
/// // No other writer gets the lock in between.
/// let reader = writer.downgrade().await?;
/// # drop(reader);
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct InterProcessReadWriteLock {
    queue: Queue,
    holds: Arc<Holds>,
}

impl fmt::Debug for InterProcessReadWriteLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessReadWriteLock")
            .field("path", &self.queue.path)
            .finish_non_exhaustive()
    }
}

impl Reentrant for &InterProcessReadWriteLock {}

impl Queued for InterProcessReadWriteLock {
    fn set_position(&mut self, position: &QueuePosition) {
        self.queue.position = Some(position.clone());
    }
}

impl InterProcessReadWriteLock {
    /// Creates a read/write lock at this path. Sends nothing.
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
        ZnodePath::new(path)?;
        Ok(Self {
            queue: Queue::new("InterProcessReadWriteLock", client, path, options),
            holds: Arc::default(),
        })
    }

    /// Acquires the lock to read, waiting until no writer is ahead in the queue. An owner
    /// ([`Acquire::as_owner`]) that already reads or writes gets it at once.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue, see [`Acquire`].
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often during the wait,
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    pub fn acquire_read(&self) -> Acquire<'_, &Self, Guard> {
        Acquire::new(self, |lock, how| {
            Box::pin(async move {
                let lock = how.reporting(lock);
                match how.owner {
                    Some(owner) => lock.read_as(owner, how.wait()).await,
                    None => lock.take(Claim::Read, how.wait()).await,
                }
            })
        })
    }

    /// Acquires the lock to write, waiting until no contender is ahead in the queue. An owner
    /// ([`Acquire::as_owner`]) that already writes gets it at once.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue, see [`Acquire`].
    ///
    /// # Errors
    /// [`LockError::UpgradeWouldDeadlock`] if the owner reads, and those of
    /// [`InterProcessReadWriteLock::acquire_read`].
    pub fn acquire_write(&self) -> Acquire<'_, &Self, WriteGuard> {
        Acquire::new(self, |lock, how| {
            Box::pin(async move {
                let reporting = how.reporting(lock);
                let guard = match how.owner {
                    Some(owner) => reporting.write_as(owner, how.wait()).await?,
                    None => reporting.take(Claim::Write, how.wait()).await?,
                };
                Ok(lock.write_guard(guard))
            })
        })
    }

    /// Reads the paths of all readers' znodes, in order of arrival.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn readers(&self) -> Result<Vec<String>, Error> {
        self.participants(naming::lock_name::READ).await
    }

    /// Reads the paths of all writers' znodes, in order of arrival.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn writers(&self) -> Result<Vec<String>, Error> {
        self.participants(naming::lock_name::WRITE).await
    }

    async fn participants(&self, lock_name: &str) -> Result<Vec<String>, Error> {
        let mut paths = self.queue.participants(Claim::Write).await?;
        paths.retain(|path| naming::name_of(path).contains(lock_name));
        Ok(paths)
    }

    async fn take(&self, claim: Claim, wait: Wait) -> Result<Guard, LockError> {
        let acquire = || self.queue.acquire(claim, wait);
        let place = self.queue.observed.wait(acquire).await?;
        let token = FencingToken::new(place.czxid);
        Ok(Guard::new(Held::new(&self.queue, place, None, token)))
    }

    fn write_guard(&self, guard: Guard) -> WriteGuard {
        WriteGuard {
            guard,
            queue: self.queue.clone(),
        }
    }

    async fn read_as(&self, owner: &Owner, wait: Wait) -> Result<Guard, LockError> {
        let begin = || {
            let (this, owner) = (self.clone(), owner.clone());
            let acquiring: Acquiring = Box::pin(async move {
                match this.holds.held_by(&owner, Claim::Write) {
                    Some(writer) => behind(&this.queue, &writer.held, wait).await,
                    None => this.take(Claim::Read, wait).await,
                }
            });
            Ok(acquiring)
        };
        self.holds
            .take(&self.queue, owner, Claim::Read, wait, begin)
            .await
    }

    async fn write_as(&self, owner: &Owner, wait: Wait) -> Result<Guard, LockError> {
        let begin = || {
            if self.queue.options.refuse_upgrade && self.holds.is_held_by(owner, Claim::Read) {
                return Err(LockError::UpgradeWouldDeadlock {
                    path: self.queue.path.to_string(),
                });
            }
            let this = self.clone();
            let acquiring: Acquiring = Box::pin(async move { this.take(Claim::Write, wait).await });
            Ok(acquiring)
        };
        self.holds
            .take(&self.queue, owner, Claim::Write, wait, begin)
            .await
    }
}

/// A write lock that is held. Dropping the guard releases the lock, in the background.
///
/// It has all methods of [`Guard`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessReadWriteLock, Status};
///
/// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
/// let writer = catalogue.acquire_write().await?;
/// assert_eq!(writer.status(), Status::Held);
/// # Ok(()) });
/// ```
#[must_use = "a guard that is dropped releases its lock"]
pub struct WriteGuard {
    pub(crate) guard: Guard,
    pub(crate) queue: Queue,
}

impl WriteGuard {
    /// Turns the writer into a reader. No other writer gets the lock in between, and other readers
    /// may now read. The fencing token stays the same.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock.
    ///
    /// # Errors
    /// [`LockError::HoldLost`] if the lock is lost, [`LockError::Client`] when a server refuses or
    /// the client is closed, or with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout). In all cases the lock is released.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::InterProcessReadWriteLock;
    /// # let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let writer = catalogue.acquire_write().await?;
    /// let token = writer.token();
    /// let reader = writer.downgrade().await?;
    /// assert_eq!(reader.token(), token);
    /// // Other contenders may read now.
    /// let other = catalogue.acquire_read().await?;
    /// # Ok(()) });
    /// ```
    pub async fn downgrade(self) -> Result<Guard, LockError> {
        let limit = CallLimit::background(&self.queue.client, "downgrade", &self.queue.path);
        let reader = limit
            .run(behind(&self.queue, &self.guard.held, Wait::FOR_EVER))
            .await?;
        drop(self.guard);
        Ok(reader)
    }

    /// Releases the lock, see [`Guard::release`].
    ///
    /// # Cancel safety
    /// Same as [`Guard::release`].
    ///
    /// # Errors
    /// Those of [`Guard::release`].
    pub async fn release(self) -> Result<Released, Error> {
        self.guard.release().await
    }
}

impl Deref for WriteGuard {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl fmt::Debug for WriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

pub(crate) fn check(queue: &Queue, held: &Held) -> Result<(), LockError> {
    match held.status() {
        Status::Lost(_) => Err(LockError::HoldLost {
            path: queue.path.to_string(),
        }),
        Status::Held | Status::Suspended { .. } => Ok(()),
    }
}

/// Acquires the lock to read under a write lock. The reader's znode gets the writer's digits, so it
/// sorts next to the writer's, ahead of every contender that waits for the writer.
///
/// Only a writer that still holds the lock may do so: in a later session the digits would jump the
/// queue (hazard H34), and if the writer's znode was deleted, another contender may hold the lock
/// already. So this checks that the writer's znode still exists after the reader's was created:
/// then both existed at the same time, and no contender got the lock in between.
pub(crate) async fn behind(queue: &Queue, writer: &Held, wait: Wait) -> Result<Guard, LockError> {
    check(queue, writer)?;
    let digits = &writer.path[writer.path.len() - 10..];
    let name = format!("{}{digits}", naming::lock_name::READ);
    let look = || Some(queue.client.exists(&writer.path).stamped());
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
            .unwrap_or_else(|| queue.client.exists(&writer.path).stamped());
        match queue.limited(wait, looking).await? {
            Ok(seen) => break seen.value.is_some() && seen.epoch == writer.epoch,
            Err(error) if error.is_retryable() => {
                queue.again(wait, &mut pace).await?;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if !is_there {
        writer.set_deleted();
    }
    if queue.options.look_ahead == 0 {
        // Curator requests the list and ignores it.
        let _ = queue.limited(wait, queue.list()).await?;
    }
    check(queue, writer)?;
    // The reader's own czxid is larger than those of waiting writers: as a token it would lock them
    // out.
    Ok(Guard::new(Held::new(queue, place, None, writer.token)))
}
