//! The read/write lock: many readers or one writer, first come, first served.
//!
//! Source: `docs/curator-recipes.md` section 5; Curator's `InterProcessReadWriteLock`.

use std::{fmt, sync::Arc, time::Duration};

use minikeeper_client::{Error, ZnodePath};

use crate::{
    client::ZooKeeper,
    error::LockError,
    locks::{
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
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::{InterProcessReadWriteLock, LockOptions};
    ///
    /// let options = LockOptions::default().with_data("host 7");
    /// let catalogue = InterProcessReadWriteLock::with_options(client, "/locks/catalogue", options)?;
    /// catalogue.acquire_write().await?.release().await?;
    /// # Ok(()) }
    /// ```
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

    /// Waits until there is no writer ahead.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often while it waits, [`LockError::Client`]
    /// when a server refuses or the client is closed. A lost connection is no error: it waits for
    /// the next one.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessReadWriteLock;
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let one = catalogue.acquire_read().await?;
    /// let another = catalogue.acquire_read().await?;
    /// # Ok(()) }
    /// ```
    pub async fn acquire_read(&self) -> Result<Guard<C>, LockError> {
        self.take(Claim::Read, Wait::FOR_EVER).await
    }

    /// The same, for so long at most. Zero is a try.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessReadWriteLock::acquire_read`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessReadWriteLock, LockError};
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let writer = catalogue.acquire_write().await?;
    /// let reader = catalogue.acquire_read_within(Duration::from_millis(10)).await;
    /// assert!(matches!(reader, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn acquire_read_within(&self, within: Duration) -> Result<Guard<C>, LockError> {
        self.take(Claim::Read, Wait::within(within)).await
    }

    /// Waits until there is nobody ahead.
    ///
    /// # Errors
    /// Those of [`InterProcessReadWriteLock::acquire_read`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessReadWriteLock;
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let writer = catalogue.acquire_write().await?;
    /// println!("writing with token {}", writer.token());
    /// writer.release().await?;
    /// # Ok(()) }
    /// ```
    pub async fn acquire_write(&self) -> Result<WriteGuard<C>, LockError> {
        let guard = self.take(Claim::Write, Wait::FOR_EVER).await?;
        Ok(self.write_guard(guard))
    }

    /// The same, for so long at most. Zero is a try.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessReadWriteLock::acquire_read`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessReadWriteLock, LockError};
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let reader = catalogue.acquire_read().await?;
    /// let writer = catalogue.acquire_write_within(Duration::from_millis(10)).await;
    /// assert!(matches!(writer, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn acquire_write_within(&self, within: Duration) -> Result<WriteGuard<C>, LockError> {
        let guard = self.take(Claim::Write, Wait::within(within)).await?;
        Ok(self.write_guard(guard))
    }

    /// Reads as this owner: again, if it reads already; at once, if it writes.
    ///
    /// # Errors
    /// [`LockError::HoldLost`] if what the owner holds is lost, and those of
    /// [`InterProcessReadWriteLock::acquire_read`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessReadWriteLock, Owner};
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let owner = Owner::new();
    /// let writer = catalogue.acquire_write_as(&owner).await?;
    /// // Whoever writes may read.
    /// let reader = catalogue.acquire_read_as(&owner).await?;
    /// # Ok(()) }
    /// ```
    pub async fn acquire_read_as(&self, owner: &Owner) -> Result<Guard<C>, LockError> {
        self.read_as(owner, Wait::FOR_EVER).await
    }

    /// The same, for so long at most.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessReadWriteLock::acquire_read_as`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessReadWriteLock, LockError, Owner};
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let writer = catalogue.acquire_write_as(&Owner::new()).await?;
    /// let within = Duration::from_millis(10);
    /// let reader = catalogue.acquire_read_as_within(&Owner::new(), within).await;
    /// assert!(matches!(reader, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn acquire_read_as_within(
        &self,
        owner: &Owner,
        within: Duration,
    ) -> Result<Guard<C>, LockError> {
        self.read_as(owner, Wait::within(within)).await
    }

    /// Writes as this owner: again, if it writes already.
    ///
    /// # Errors
    /// [`LockError::UpgradeWouldDeadlock`] if the owner reads, [`LockError::HoldLost`] if what it
    /// holds is lost, and those of [`InterProcessReadWriteLock::acquire_read`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessReadWriteLock, LockError, Owner};
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let owner = Owner::new();
    /// let reader = catalogue.acquire_read_as(&owner).await?;
    /// let writer = catalogue.acquire_write_as(&owner).await;
    /// assert!(matches!(writer, Err(LockError::UpgradeWouldDeadlock { .. })));
    /// reader.release().await?;
    /// let writer = catalogue.acquire_write_as(&owner).await?;
    /// # Ok(()) }
    /// ```
    pub async fn acquire_write_as(&self, owner: &Owner) -> Result<WriteGuard<C>, LockError> {
        self.write_as(owner, Wait::FOR_EVER).await
    }

    /// The same, for so long at most.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessReadWriteLock::acquire_write_as`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessReadWriteLock, LockError, Owner};
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let owner = Owner::new();
    /// let outer = catalogue.acquire_write_as(&owner).await?;
    /// let inner = catalogue.acquire_write_as_within(&owner, Duration::from_secs(5)).await?;
    /// assert_eq!(outer.token(), inner.token());
    /// # Ok(()) }
    /// ```
    pub async fn acquire_write_as_within(
        &self,
        owner: &Owner,
        within: Duration,
    ) -> Result<WriteGuard<C>, LockError> {
        self.write_as(owner, Wait::within(within)).await
    }

    /// The paths of all readers' znodes, the first one's first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessReadWriteLock;
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// let reader = catalogue.acquire_read().await?;
    /// assert_eq!(catalogue.readers().await?, [reader.path()]);
    /// # Ok(()) }
    /// ```
    pub async fn readers(&self) -> Result<Vec<String>, Error> {
        self.participants(naming::lock_name::READ).await
    }

    /// The paths of all writers' znodes, the first one's first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessReadWriteLock;
    /// let catalogue = InterProcessReadWriteLock::new(client, "/locks/catalogue")?;
    /// assert!(catalogue.writers().await?.is_empty());
    /// let writer = catalogue.acquire_write().await?;
    /// assert_eq!(catalogue.writers().await?, [writer.path()]);
    /// # Ok(()) }
    /// ```
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

    async fn write_as(&self, owner: &Owner, wait: Wait) -> Result<WriteGuard<C>, LockError> {
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
        let guard = self
            .holds
            .take(&self.queue, owner, Claim::Write, wait, begin)
            .await?;
        Ok(self.write_guard(guard))
    }
}
