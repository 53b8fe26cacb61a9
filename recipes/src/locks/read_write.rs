//! The read/write lock: many readers or one writer, first come, first served.
//!
//! Source: `docs/curator-recipes.md` section 5; Curator's `InterProcessReadWriteLock`.

use std::{fmt, sync::Arc};

use minikeeper_client::{Error, ZnodePath};

use crate::{
    client::ZooKeeper,
    error::LockError,
    locks::{
        acquire::{Acquire, Reentrant},
        guard::Guard,
        held::Held,
        owner::{Acquiring, Holds, Owner},
        write_guard::{WriteGuard, behind},
    },
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        order::Claim,
    },
    status::FencingToken,
};

/// A lock for many readers or one writer, shared with Java processes that use Curator's class of
/// the same name.
///
/// Readers and writers are served in the order in which they came: a reader who comes after a
/// waiting writer waits for it. A writer may read too and go on as a reader
/// ([`WriteGuard::downgrade`]); a reader cannot become a writer.
///
/// A Java contender with Curator 5.4 or older that goes on as a reader can be overtaken by a waiting
/// writer (hazard H9): two such processes are not safe from each other, this one is.
///
/// Cheap to clone; clones are the same lock object, to which owners belong.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::InterProcessReadWriteLock;
///
/// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
/// let reader = catalogue.acquire_read().await?;
/// let another = catalogue.acquire_read().await?;
/// drop((reader, another));
/// let writer = catalogue.acquire_write().await?;
/// // Nobody writes in between.
/// let reader = writer.downgrade().await?;
/// # drop(reader);
/// # Ok(()) }
/// ```
pub struct InterProcessReadWriteLock<C: ZooKeeper> {
    queue: Queue<C>,
    holds: Arc<Holds<C>>,
}

impl<C: ZooKeeper> Clone for InterProcessReadWriteLock<C> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            holds: Arc::clone(&self.holds),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for InterProcessReadWriteLock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessReadWriteLock")
            .field("path", &self.queue.path)
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> Reentrant for InterProcessReadWriteLock<C> {}

impl<C: ZooKeeper> InterProcessReadWriteLock<C> {
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
    /// use minikeeper_recipes::InterProcessReadWriteLock;
    ///
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// catalogue.acquire_read().await?.release().await?;
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
        ZnodePath::new(path)?;
        Ok(Self {
            queue: Queue {
                client,
                path: path.into(),
                options: Arc::new(options),
            },
            holds: Arc::default(),
        })
    }

    /// Acquires the lock to read: waits until no writer is ahead. An owner
    /// ([`Acquire::as_owner`]) who reads already reads again, and one who writes reads at once.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often while it waits, [`LockError::Client`]
    /// when a server refuses or the client is closed. A lost connection is no error: it waits for
    /// the next one.
    pub fn acquire_read(&self) -> Acquire<'_, Self, Guard<C>> {
        Acquire::new(self, |lock, how| {
            Box::pin(async move {
                match how.owner {
                    Some(owner) => lock.read_as(owner, how.wait()).await,
                    None => lock.take(Claim::Read, how.wait()).await,
                }
            })
        })
    }

    /// Acquires the lock to write: waits until no contender is ahead. An owner
    /// ([`Acquire::as_owner`]) who writes already writes again.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    ///
    /// # Errors
    /// [`LockError::UpgradeWouldDeadlock`] if the owner reads, and those of
    /// [`InterProcessReadWriteLock::acquire_read`].
    pub fn acquire_write(&self) -> Acquire<'_, Self, WriteGuard<C>> {
        Acquire::new(self, |lock, how| {
            Box::pin(async move {
                let guard = match how.owner {
                    Some(owner) => lock.write_as(owner, how.wait()).await?,
                    None => lock.take(Claim::Write, how.wait()).await?,
                };
                Ok(lock.write_guard(guard))
            })
        })
    }

    /// The paths of all readers' znodes, the first one's first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    pub async fn readers(&self) -> Result<Vec<String>, Error> {
        self.participants(naming::lock_name::READ).await
    }

    /// The paths of all writers' znodes, the first one's first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    pub async fn writers(&self) -> Result<Vec<String>, Error> {
        self.participants(naming::lock_name::WRITE).await
    }

    async fn participants(&self, lock_name: &str) -> Result<Vec<String>, Error> {
        let mut paths = self.queue.participants(Claim::Write).await?;
        paths.retain(|path| naming::name_of(path).contains(lock_name));
        Ok(paths)
    }

    async fn take(&self, claim: Claim, wait: Wait) -> Result<Guard<C>, LockError> {
        let place = self.queue.acquire(claim, wait).await?;
        let token = FencingToken::new(place.czxid);
        Ok(Guard::new(Held::new(
            self.queue.client.clone(),
            place,
            token,
        )))
    }

    fn write_guard(&self, guard: Guard<C>) -> WriteGuard<C> {
        WriteGuard {
            guard,
            queue: self.queue.clone(),
        }
    }

    async fn read_as(&self, owner: &Owner, wait: Wait) -> Result<Guard<C>, LockError> {
        let begin = || {
            let (this, owner) = (self.clone(), owner.clone());
            let acquiring: Acquiring<C> = Box::pin(async move {
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

    async fn write_as(&self, owner: &Owner, wait: Wait) -> Result<Guard<C>, LockError> {
        let begin = || {
            if self.queue.options.refuse_upgrade && self.holds.is_held_by(owner, Claim::Read) {
                return Err(LockError::UpgradeWouldDeadlock {
                    path: self.queue.path.to_string(),
                });
            }
            let this = self.clone();
            let acquiring: Acquiring<C> =
                Box::pin(async move { this.take(Claim::Write, wait).await });
            Ok(acquiring)
        };
        self.holds
            .take(&self.queue, owner, Claim::Write, wait, begin)
            .await
    }
}
