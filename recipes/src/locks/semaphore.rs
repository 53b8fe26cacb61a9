//! The semaphore: at most N holders, in order of arrival; its leases, and how many there are.
//!
//! An inner lock (`locks`) admits one contender at a time. That contender creates its leases in
//! `leases`, and waits until the directory has no more znodes than the semaphore has leases.
//!
//! Source: `docs/curator-recipes.md` sections 6 and 10.2; Curator's `InterProcessSemaphoreV2`.

use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use minikeeper_client::{Bytes, Error, ZnodePath, Zxid};

use crate::{
    client::ZooKeeper,
    error::{LockError, Released, ValueError},
    locks::{acquire::Acquire, guard::Guard, leasing::Leasing},
    options::LockOptions,
    queue::{
        contending::{Queue, Wait, in_session, no_session},
        naming::{self, lock_name},
        order::Claim,
    },
    status::{Loss, Status},
    values::shared_count::{CountChanges, SharedCount},
};

/// A semaphore that processes share, Java processes with Curator's class of the same name included.
///
/// Contenders are served in the order in which they came: whoever wants many leases holds up those
/// behind who want few. Leases are held as long as the session lives, and belong to nobody:
/// acquiring twice takes two.
///
/// Cheap to clone.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::InterProcessSemaphoreV2;
///
/// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
/// let two = licences.acquire_many(2).await?;
/// let third = licences.acquire().await?;
/// assert!(licences.try_acquire().await?.is_none());
/// third.release().await?;
/// assert!(licences.try_acquire().await?.is_some());
/// drop(two);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InterProcessSemaphoreV2<C: ZooKeeper> {
    leasing: Leasing<C>,
}

impl<C: ZooKeeper> fmt::Debug for InterProcessSemaphoreV2<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessSemaphoreV2")
            .field("path", &self.leasing.path)
            .field("max", &self.leasing.max)
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> InterProcessSemaphoreV2<C> {
    /// The semaphore at this path, with so many leases. Nothing is asked of a server before it is
    /// acquired.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::{InterProcessSemaphoreV2, SharedCount};
    ///
    /// let fixed = InterProcessSemaphoreV2::new(client.clone(), "/licences", 3)?;
    /// // Or as many as a number says that may change.
    /// let max = SharedCount::start(client.clone(), "/limits/workers", 8).await?;
    /// let workers = InterProcessSemaphoreV2::new(client, "/workers", max)?;
    /// assert_eq!(workers.available().await?, 8);
    /// # Ok(()) }
    /// ```
    pub fn new(client: C, path: &str, max: impl Into<MaxLeases<C>>) -> Result<Self, Error> {
        Self::with_options(client, path, max, LockOptions::default())
    }

    /// The same, with options. Their data is that of the leases.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    pub fn with_options(
        client: C,
        path: &str,
        max: impl Into<MaxLeases<C>>,
        options: LockOptions,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let inner = LockOptions {
            data: Vec::new(),
            watch_own: false,
            ..options.clone()
        };
        let queue = |client, name, options| Queue {
            client,
            path: naming::join(path, name).into(),
            options: Arc::new(options),
        };
        Ok(Self {
            leasing: Leasing {
                path: path.into(),
                locks: queue(client.clone(), "locks", inner),
                leases: queue(client, "leases", options),
                max: max.into(),
            },
        })
    }

    /// Acquires a lease: waits without a time limit unless [`Acquire::within`] sets one.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    ///
    /// # Errors
    /// [`LockError::TooMany`] if there never is a lease, [`LockError::Lost`] when the session is
    /// lost too often while it waits, [`LockError::NoMaximum`] when a shared maximum cannot be
    /// read, [`LockError::Client`] when a server refuses or the client is closed. A lost connection
    /// is no error: it waits for the next one.
    pub fn acquire(&self) -> Acquire<'_, Self, Lease<C>> {
        Acquire::new(self, |semaphore, how| {
            Box::pin(async move { one(semaphore.take(1, how.wait()).await) })
        })
    }

    /// Takes a lease if one is free and nobody else is just taking one. `None` if not.
    ///
    /// # Errors
    /// Those of [`InterProcessSemaphoreV2::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Lease<C>>, LockError> {
        let leases = self.try_acquire_many(1).await?;
        Ok(leases.and_then(|mut leases| leases.pop()))
    }

    /// Acquires several leases, all of them or none.
    ///
    /// Among those who do so here nobody holds a part and waits for the rest. Java processes that
    /// want several do (hazard H16), and so does this with
    /// [`leases_together`](LockOptions::leases_together) off.
    ///
    /// With a shared maximum below `wanted` this waits for it to be raised, before it queues.
    ///
    /// # Errors
    /// [`LockError::TooMany`] if there are not so many, [`LockError::NothingWanted`], and those of
    /// [`InterProcessSemaphoreV2::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessSemaphoreV2;
    /// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
    /// let leases = licences.acquire_many(2).await?;
    /// assert_eq!(leases.len(), 2);
    /// assert_eq!(licences.available().await?, 1);
    /// # Ok(()) }
    /// ```
    pub fn acquire_many(&self, wanted: u32) -> Acquire<'_, Self, Vec<Lease<C>>> {
        Acquire::new(self, |semaphore, how| {
            Box::pin(semaphore.take(how.leases, how.wait()))
        })
        .leases(wanted)
    }

    /// Takes several leases if so many are free and nobody else is just taking one. `None` if not.
    ///
    /// # Errors
    /// Those of [`InterProcessSemaphoreV2::acquire_many`].
    pub async fn try_acquire_many(&self, wanted: u32) -> Result<Option<Vec<Lease<C>>>, LockError> {
        let wait = Wait::within(Duration::ZERO);
        let leases = &self.leasing.leases;
        let tried = async {
            if leases.options.peek
                && let Some(available) = leases.peek(wait, self.available()).await?
                && available < wanted
            {
                return Err(leases.timed_out(wait));
            }
            self.take(wanted, wait).await
        };
        match tried.await {
            Err(LockError::TimedOut { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// How many leases nobody has or is about to get.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    pub async fn available(&self) -> Result<u32, LockError> {
        let path = &self.leasing.path;
        let max = in_session(&self.leasing.leases.client, self.leasing.max.get()).await;
        let max = max.unwrap_or_else(|| Err(no_session("getData", path).into()));
        let max = max.map_err(|error| self.leasing.no_max(error))?;
        let taken = u32::try_from(self.participants().await?.len()).unwrap_or(u32::MAX);
        Ok(max.saturating_sub(taken))
    }

    /// The paths of all leases' znodes, the oldest first; among them are those of a contender who
    /// is about to get them.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    pub async fn participants(&self) -> Result<Vec<String>, Error> {
        let mut paths = self.leasing.leases.participants(Claim::Mutex).await?;
        paths.sort_by(|a, b| key(a).cmp(key(b)));
        Ok(paths)
    }

    /// As the acquire methods do it.
    pub(crate) async fn take(&self, wanted: u32, wait: Wait) -> Result<Vec<Lease<C>>, LockError> {
        self.leasing.take(wanted, wait).await
    }
}

fn key(path: &str) -> &str {
    naming::key(naming::name_of(path), lock_name::LEASE)
}

fn one<C: ZooKeeper>(leases: Result<Vec<Lease<C>>, LockError>) -> Result<Lease<C>, LockError> {
    leases.map(|mut leases| leases.pop().expect("one was asked for and got"))
}

/// A lease of a semaphore. Dropping it gives it back without waiting.
///
/// Made by the `acquire` methods of [`InterProcessSemaphoreV2`].
/// It belongs to nobody: it may move to other tasks, and be given back anywhere.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessSemaphoreV2, Status};
///
/// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
/// let lease = licences.acquire().await?;
/// assert_eq!(lease.status(), Status::Held);
/// lease.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "a lease that is dropped is given back"]
pub struct Lease<C: ZooKeeper> {
    pub(crate) guard: Guard<C>,
}

impl<C: ZooKeeper> Lease<C> {
    /// The number of this lease, unlike that of any other. Several are valid at once, so it is no
    /// fencing token: a resource must not refuse a smaller one.
    #[must_use]
    pub fn czxid(&self) -> Zxid {
        Zxid(self.guard.token().czxid)
    }

    /// The path of the lease's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        self.guard.path()
    }

    /// The name of the lease's znode.
    #[must_use]
    pub fn name(&self) -> &str {
        naming::name_of(self.path())
    }

    /// The data of the lease's znode, as a server has it.
    ///
    /// # Errors
    /// [`Error::Refused`] when a server refuses, as it does with
    /// [`NoNode`](minikeeper_client::ErrorCode::NoNode) when the lease is lost;
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed: ask again.
    pub async fn data(&self) -> Result<Bytes, Error> {
        let client = &self.guard.held.client;
        let data = in_session(client, client.data(self.path())).await;
        let data = data.unwrap_or_else(|| Err(no_session("getData", self.path())))?;
        Ok(data.data.unwrap_or_default())
    }

    /// Whether the lease is still held; see [`Guard::status`].
    #[must_use]
    pub fn status(&self) -> Status {
        self.guard.status()
    }

    /// Resolves when the lease is lost.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// Runs a future as long as the lease is held; drops it when the lease is lost.
    ///
    /// # Errors
    /// Why the lease was lost: the work is dropped, and what it did last may have happened without
    /// the lease.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        self.guard.run(work).await
    }

    /// Whatever else can be asked of what is held.
    pub const fn guard(&self) -> &Guard<C> {
        &self.guard
    }

    /// Gives the lease back and waits until that is certain; see [`Guard::release`].
    ///
    /// # Errors
    /// Those of [`Guard::release`].
    pub async fn release(self) -> Result<Released, Error> {
        self.guard.release().await
    }
}

impl<C: ZooKeeper> fmt::Debug for Lease<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("path", &self.path())
            .field("czxid", &self.czxid())
            .finish_non_exhaustive()
    }
}

/// How many leases a semaphore has. All who use it must agree on that, which nobody checks.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessSemaphoreV2, MaxLeases, SharedCount};
///
/// let max = SharedCount::start(client.clone(), "/limits/workers", 1).await?;
/// let workers = InterProcessSemaphoreV2::new(client, "/workers", MaxLeases::Shared(max.clone()))?;
/// let one = workers.acquire().await?;
/// max.set(2).await?;
/// let another = workers.acquire().await?;
/// # Ok(()) }
/// ```
#[non_exhaustive]
pub enum MaxLeases<C: ZooKeeper> {
    /// So many, for ever.
    Fixed(u32),
    /// What this count says; below zero is none. It may change while leases are held and waited
    /// for: nobody loses a lease by that.
    Shared(SharedCount<C>),
}

impl<C: ZooKeeper> Clone for MaxLeases<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Fixed(max) => Self::Fixed(*max),
            Self::Shared(count) => Self::Shared(count.clone()),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for MaxLeases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(max) => max.fmt(f),
            Self::Shared(count) => count.fmt(f),
        }
    }
}

impl<C: ZooKeeper> From<u32> for MaxLeases<C> {
    fn from(max: u32) -> Self {
        Self::Fixed(max)
    }
}

impl<C: ZooKeeper> From<SharedCount<C>> for MaxLeases<C> {
    fn from(count: SharedCount<C>) -> Self {
        Self::Shared(count)
    }
}

impl<C: ZooKeeper> MaxLeases<C> {
    /// The maximum just now.
    pub(crate) async fn get(&self) -> Result<u32, ValueError> {
        match self {
            Self::Fixed(max) => Ok(*max),
            Self::Shared(count) => Ok(leases(count.get().await?.value)),
        }
    }

    /// The maximum as far as it is known: the last one, while there is no connection.
    pub(crate) fn current(&self) -> Result<u32, ValueError> {
        match self {
            Self::Fixed(max) => Ok(*max),
            Self::Shared(count) => Ok(leases(count.current()?.value)),
        }
    }

    pub(crate) fn changes(&self) -> MaxChanges<C> {
        match self {
            Self::Fixed(_) => MaxChanges(None),
            Self::Shared(count) => MaxChanges(Some(count.changes())),
        }
    }
}

fn leases(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

/// The changes of a maximum, for one who waits. It watches no longer than that (hazard H17).
pub(crate) struct MaxChanges<C: ZooKeeper>(Option<CountChanges<C>>);

impl<C: ZooKeeper> MaxChanges<C> {
    /// Resolves when it has changed. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<(), ValueError> {
        match &mut self.0 {
            None => pending().await,
            Some(changes) => changes.next().await.map(drop),
        }
    }
}
