//! The semaphore: at most N holders, in order of arrival; its leases and its maximum.
//!
//! An inner lock (`locks`) admits one contender at a time. That contender creates its leases in
//! `leases`, and waits until the directory has no more znodes than the semaphore has leases.
//!
//! Source: `docs/curator-recipes.md` sections 6 and 10.2; Curator's `InterProcessSemaphoreV2`.

use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
};

use minikeeper_client::{Bytes, Client, Error, ZnodePath, Zxid};

use crate::{
    call_limit::CallLimit,
    error::{LockError, Released, ValueError},
    locks::{
        acquire::Acquire,
        guard::Guard,
        leasing::{Leasing, Places},
    },
    observe::Observed,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait, in_session, no_session},
        naming::{self, lock_name},
        order::Claim,
        position::{QueuePosition, Queued},
    },
    status::{Loss, Status},
    values::shared_count::{CountChanges, SharedCount},
};

/// A semaphore between processes, compatible with Curator's class of the same name in Java.
///
/// It serves contenders in order of arrival: a contender that wants many leases delays those behind
/// it that want few. A holder keeps its leases while its session lives. Leases have no owner:
/// acquiring twice takes two.
///
/// Cheap to clone.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::InterProcessSemaphoreV2;
///
/// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
/// let two = licences.acquire_many(2).await?;
/// let third = licences.acquire().await?;
/// assert!(licences.try_acquire().await?.is_none());
/// third.release().await?;
/// assert!(licences.try_acquire().await?.is_some());
/// drop(two);
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct InterProcessSemaphoreV2 {
    leasing: Leasing,
}

impl fmt::Debug for InterProcessSemaphoreV2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessSemaphoreV2")
            .field("path", &self.leasing.path)
            .field("max", &self.leasing.max)
            .finish_non_exhaustive()
    }
}

impl Queued for InterProcessSemaphoreV2 {
    fn set_position(&mut self, position: &QueuePosition) {
        self.leasing.locks.position = Some(position.clone());
    }
}

impl InterProcessSemaphoreV2 {
    /// Creates a semaphore at this path with this number of leases. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str, max: impl Into<MaxLeases>) -> Result<Self, Error> {
        Self::with_options(client, path, max, LockOptions::default())
    }

    /// Like [`Self::new`], with these options. [`LockOptions::data`] is the data of the leases.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn with_options(
        client: Client,
        path: &str,
        max: impl Into<MaxLeases>,
        options: LockOptions,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let inner = LockOptions {
            data: Vec::new(),
            watch_own: false,
            ..options.clone()
        };
        let observed = Observed::new("InterProcessSemaphoreV2", path, &options);
        let queue = |client, name, options| Queue {
            client,
            path: naming::join(path, name).into(),
            options: Arc::new(options),
            observed: observed.clone(),
            position: None,
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

    /// Names the recipe that this semaphore is part of.
    pub(crate) const fn observed_as(mut self, recipe: &'static str) -> Self {
        self.leasing.locks.observed.recipe = recipe;
        self.leasing.leases.observed.recipe = recipe;
        self
    }

    /// Acquires a lease, waiting without a time limit unless [`Acquire::within`] sets one.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue, see [`Acquire`].
    ///
    /// # Errors
    /// [`LockError::TooMany`] if the maximum is fixed at 0, [`LockError::Lost`] when the session is
    /// lost too often during the wait, [`LockError::NoMaximum`] when a shared maximum cannot be
    /// read, [`LockError::Client`] when a server refuses or the client is closed. A lost connection
    /// is not an error: it waits for the next connection.
    pub fn acquire(&self) -> Acquire<'_, &Self, Lease> {
        Acquire::new(self, |semaphore, how| {
            Box::pin(async move {
                let semaphore = how.reporting(semaphore);
                one(semaphore.take(1, how.wait()).await)
            })
        })
    }

    /// Acquires a lease if one is free and no other contender is acquiring one at the same time;
    /// `None` otherwise.
    ///
    /// # Cancel safety
    /// Same as [`InterProcessSemaphoreV2::acquire`].
    ///
    /// # Errors
    /// Those of [`InterProcessSemaphoreV2::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Lease>, LockError> {
        self.acquire().at_once().await
    }

    /// Acquires this number of leases, all of them or none.
    ///
    /// It never holds some of them while it waits for the rest. Java processes do (hazard H16), and
    /// so does this method if [`leases_together`](LockOptions::leases_together) is off.
    ///
    /// If a shared maximum is below `wanted`, it waits until the maximum is raised before it
    /// queues.
    ///
    /// # Cancel safety
    /// Dropping the future releases all leases and gives up the place in the queue, see
    /// [`Acquire`].
    ///
    /// # Errors
    /// [`LockError::TooMany`] if a fixed maximum is below `wanted`, [`LockError::NothingWanted`] if
    /// `wanted` is 0, and those of [`InterProcessSemaphoreV2::acquire`].
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::InterProcessSemaphoreV2;
    /// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
    /// let leases = licences.acquire_many(2).await?;
    /// assert_eq!(leases.len(), 2);
    /// assert_eq!(licences.available().await?, 1);
    /// # Ok(()) });
    /// ```
    pub fn acquire_many(&self, wanted: u32) -> Acquire<'_, &Self, Vec<Lease>> {
        Acquire::new(self, |semaphore, how| {
            Box::pin(async move {
                let semaphore = how.reporting(semaphore);
                semaphore.take(how.leases, how.wait()).await
            })
        })
        .leases(wanted)
    }

    /// Reads how many leases are free. A lease that a contender is acquiring counts as taken.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn available(&self) -> Result<u32, LockError> {
        let path = &self.leasing.path;
        let client = &self.leasing.leases.client;
        let limit = CallLimit::read(client, "available", path);
        limit
            .run(async {
                let max = in_session(client, self.leasing.max.get()).await;
                let max = max.unwrap_or_else(|| Err(no_session("getData", path).into()));
                let max = max.map_err(|error| self.leasing.no_max(error))?;
                let taken = u32::try_from(self.participants().await?.len()).unwrap_or(u32::MAX);
                Ok(max.saturating_sub(taken))
            })
            .await
    }

    /// Reads the paths of all leases' znodes, the oldest first. They include leases that a
    /// contender is still acquiring.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn participants(&self) -> Result<Vec<String>, Error> {
        let mut paths = self.leasing.leases.participants(Claim::Mutex).await?;
        paths.sort_by(|a, b| key(a).cmp(key(b)));
        Ok(paths)
    }

    pub(crate) async fn take(&self, wanted: u32, wait: Wait) -> Result<Vec<Lease>, LockError> {
        let observed = &self.leasing.leases.observed;
        let places = observed.wait(|| self.contend(wanted, wait)).await?;
        let lease = |place| self.leasing.lease(place);
        Ok(places.into_inner().into_iter().map(lease).collect())
    }

    async fn contend(&self, wanted: u32, wait: Wait) -> Result<Places, LockError> {
        if let Some(available) = self.leasing.leases.peek(wait, self.available()).await?
            && available < wanted
        {
            return Err(LockError::TimedOut {
                path: self.leasing.path.to_string(),
                within: wait.within,
            });
        }
        self.leasing.contend(wanted, wait).await
    }
}

fn key(path: &str) -> &str {
    naming::key(naming::name_of(path), lock_name::LEASE)
}

fn one(leases: Result<Vec<Lease>, LockError>) -> Result<Lease, LockError> {
    leases.map(|mut leases| leases.pop().expect("one lease was requested"))
}

/// A lease of a semaphore. Dropping it releases it, in the background.
///
/// Returned by the `acquire` methods of [`InterProcessSemaphoreV2`]. It may move to other tasks.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessSemaphoreV2, Status};
///
/// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
/// let lease = licences.acquire().await?;
/// assert_eq!(lease.status(), Status::Held);
/// lease.release().await?;
/// # Ok(()) });
/// ```
#[must_use = "a lease that is dropped is released"]
pub struct Lease {
    pub(crate) guard: Guard,
}

impl Lease {
    /// Returns the czxid of the lease's znode, which differs from that of every other lease.
    ///
    /// It is not a fencing token: several leases are valid at once, so a resource must not refuse a
    /// smaller one.
    #[must_use]
    pub fn czxid(&self) -> Zxid {
        Zxid(self.guard.token().czxid)
    }

    /// Returns the path of the lease's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        self.guard.path()
    }

    /// Returns the name of the lease's znode.
    #[must_use]
    pub fn name(&self) -> &str {
        naming::name_of(self.path())
    }

    /// Reads the data of the lease's znode.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`Error::Refused`] when a server refuses, as it does with
    /// [`NoNode`](minikeeper_client::ErrorCode::NoNode) when the lease is lost;
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn data(&self) -> Result<Bytes, Error> {
        let client = &self.guard.held.client;
        let data = in_session(client, client.get_data(self.path()));
        let limit = CallLimit::read(client, "data", self.path());
        let data = limit
            .run(async {
                data.await
                    .unwrap_or_else(|| Err(no_session("getData", self.path())))
            })
            .await?;
        Ok(data.data.unwrap_or_default())
    }

    /// Returns whether the lease is still held, see [`Guard::status`].
    #[must_use]
    pub fn status(&self) -> Status {
        self.guard.status()
    }

    /// Waits until the lease is lost.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// Runs a future while the lease is held, and drops it when the lease is lost.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work. The lease stays held.
    ///
    /// # Errors
    /// The [`Loss`] if the lease was lost. The work is dropped; its last actions may have happened
    /// without the lease.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        self.guard.run(work).await
    }

    /// Returns the guard of the lease, for the methods that only [`Guard`] has.
    pub const fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Releases the lease and waits until a server confirms it, see [`Guard::release`].
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

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("path", &self.path())
            .field("czxid", &self.czxid())
            .finish_non_exhaustive()
    }
}

/// The number of leases of a semaphore. All its contenders must use the same number; nothing checks
/// this.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessSemaphoreV2, MaxLeases, SharedCount};
///
/// let max = SharedCount::start(client.clone(), "/limits/workers", 1).await?;
/// let workers = InterProcessSemaphoreV2::new(client, "/workers", MaxLeases::Shared(max.clone()))?;
/// let one = workers.acquire().await?;
/// max.set(2).await?;
/// let another = workers.acquire().await?;
/// # Ok(()) });
/// ```
#[non_exhaustive]
#[derive(Clone)]
pub enum MaxLeases {
    /// A number that never changes.
    Fixed(u32),
    /// The value of this count; a negative value counts as 0. It may change at any time: contenders
    /// that wait see the new value, and no holder loses a lease.
    Shared(SharedCount),
}

impl fmt::Debug for MaxLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(max) => max.fmt(f),
            Self::Shared(count) => count.fmt(f),
        }
    }
}

impl From<u32> for MaxLeases {
    fn from(max: u32) -> Self {
        Self::Fixed(max)
    }
}

impl From<SharedCount> for MaxLeases {
    fn from(count: SharedCount) -> Self {
        Self::Shared(count)
    }
}

impl MaxLeases {
    /// Reads the maximum.
    pub(crate) async fn get(&self) -> Result<u32, ValueError> {
        match self {
            Self::Fixed(max) => Ok(*max),
            Self::Shared(count) => Ok(leases(count.fresh().await?.value)),
        }
    }

    /// Returns the last known maximum.
    pub(crate) fn current(&self) -> Result<u32, ValueError> {
        match self {
            Self::Fixed(max) => Ok(*max),
            Self::Shared(count) => Ok(leases(count.current()?.value)),
        }
    }

    pub(crate) fn changes(&self) -> MaxChanges {
        match self {
            Self::Fixed(_) => MaxChanges(None),
            Self::Shared(count) => MaxChanges(Some(count.changes())),
        }
    }
}

fn leases(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

/// The changes of a maximum, for a waiting contender. Dropping this removes its watch (hazard H17).
pub(crate) struct MaxChanges(Option<CountChanges>);

impl MaxChanges {
    /// Waits for the next change. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Result<(), ValueError> {
        match &mut self.0 {
            None => pending().await,
            Some(changes) => changes.next().await.map(drop),
        }
    }
}
