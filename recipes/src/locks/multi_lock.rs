//! The multi-lock: several locks as one.
//!
//! Source: `docs/curator-recipes.md` section 8; Curator's `InterProcessMultiLock`.

use std::{fmt, sync::Arc, time::Duration};

use minikeeper_client::Error;

use crate::{
    client::ZooKeeper,
    clock,
    error::LockError,
    locks::{
        guard::Guard, multi_guard::MultiGuard, mutex::InterProcessMutex, owner::Owner,
        read_write::InterProcessReadWriteLock, semaphore_mutex::InterProcessSemaphoreMutex,
        write_guard::WriteGuard,
    },
    queue::contending::Wait,
    status::Status,
};

/// A lock that can be a member of an [`InterProcessMultiLock`].
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{
///     InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock, MultiMember,
/// };
///
/// let report = InterProcessMutex::new(client.clone(), "/locks/report")?;
/// let prices = InterProcessReadWriteLock::new(client, "/locks/prices")?;
/// let both = InterProcessMultiLock::new([MultiMember::from(report), MultiMember::Read(prices)]);
/// let guard = both.acquire().await?;
/// assert_eq!(guard.guards().len(), 2);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum MultiMember<C: ZooKeeper> {
    /// A mutex.
    Mutex(InterProcessMutex<C>),
    /// A semaphore mutex; it has no owners.
    SemaphoreMutex(InterProcessSemaphoreMutex<C>),
    /// A read/write lock, to read.
    Read(InterProcessReadWriteLock<C>),
    /// A read/write lock, to write.
    Write(InterProcessReadWriteLock<C>),
}

impl<C: ZooKeeper> fmt::Debug for MultiMember<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mutex(lock) => lock.fmt(f),
            Self::SemaphoreMutex(lock) => lock.fmt(f),
            Self::Read(lock) => f.debug_tuple("Read").field(lock).finish(),
            Self::Write(lock) => f.debug_tuple("Write").field(lock).finish(),
        }
    }
}

impl<C: ZooKeeper> From<InterProcessMutex<C>> for MultiMember<C> {
    fn from(lock: InterProcessMutex<C>) -> Self {
        Self::Mutex(lock)
    }
}

impl<C: ZooKeeper> From<InterProcessSemaphoreMutex<C>> for MultiMember<C> {
    fn from(lock: InterProcessSemaphoreMutex<C>) -> Self {
        Self::SemaphoreMutex(lock)
    }
}

impl<C: ZooKeeper> MultiMember<C> {
    async fn acquire(
        &self,
        owner: Option<&Owner>,
        within: Option<Duration>,
    ) -> Result<Guard<C>, LockError> {
        match (self, owner, within) {
            (Self::Mutex(lock), None, None) => lock.acquire().await,
            (Self::Mutex(lock), None, Some(within)) => lock.acquire_within(within).await,
            (Self::Mutex(lock), Some(owner), None) => lock.acquire_as(owner).await,
            (Self::Mutex(lock), Some(owner), Some(within)) => {
                lock.acquire_as_within(owner, within).await
            }
            (Self::SemaphoreMutex(lock), _, None) => lock.acquire().await,
            (Self::SemaphoreMutex(lock), _, Some(within)) => lock.acquire_within(within).await,
            (Self::Read(lock), None, None) => lock.acquire_read().await,
            (Self::Read(lock), None, Some(within)) => lock.acquire_read_within(within).await,
            (Self::Read(lock), Some(owner), None) => lock.acquire_read_as(owner).await,
            (Self::Read(lock), Some(owner), Some(within)) => {
                lock.acquire_read_as_within(owner, within).await
            }
            (Self::Write(lock), None, None) => lock.acquire_write().await.map(plain),
            (Self::Write(lock), None, Some(within)) => {
                lock.acquire_write_within(within).await.map(plain)
            }
            (Self::Write(lock), Some(owner), None) => lock.acquire_write_as(owner).await.map(plain),
            (Self::Write(lock), Some(owner), Some(within)) => {
                lock.acquire_write_as_within(owner, within).await.map(plain)
            }
        }
    }
}

fn plain<C: ZooKeeper>(guard: WriteGuard<C>) -> Guard<C> {
    guard.guard
}

/// Several locks as one: all of them are held, or none.
///
/// They are acquired one after the other, in the order in which they were given. Whoever takes
/// overlapping sets must agree on one order, or two can wait for one another for ever:
/// [`from_paths_sorted`](Self::from_paths_sorted) sees to that among those who use it.
///
/// Unlike Curator's, it has one deadline for all members, and stops at the first that fails
/// (hazard H18).
///
/// Cheap to clone; clones are the same lock object, to which owners belong.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::InterProcessMultiLock;
///
/// let accounts = ["/accounts/7", "/accounts/3"];
/// let transfer = InterProcessMultiLock::from_paths_sorted(client, accounts)?;
/// let guard = transfer.acquire().await?;
/// // Each account compares the token of its own lock.
/// assert_eq!(guard.tokens().len(), 2);
/// guard.release().await?;
/// # Ok(()) }
/// ```
pub struct InterProcessMultiLock<C: ZooKeeper> {
    members: Arc<[MultiMember<C>]>,
}

impl<C: ZooKeeper> Clone for InterProcessMultiLock<C> {
    fn clone(&self) -> Self {
        Self {
            members: Arc::clone(&self.members),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for InterProcessMultiLock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessMultiLock")
            .field("members", &self.members)
            .finish()
    }
}

impl<C: ZooKeeper> InterProcessMultiLock<C> {
    /// These locks, in this order. The same lock twice waits for itself, unless it is acquired
    /// [as an owner](Self::acquire_as).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::{InterProcessMultiLock, InterProcessMutex};
    ///
    /// let first = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let second = InterProcessMutex::new(client, "/locks/b")?;
    /// let both = InterProcessMultiLock::new([first, second]);
    /// both.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = impl Into<MultiMember<C>>>) -> Self {
        Self {
            members: members.into_iter().map(Into::into).collect(),
        }
    }

    /// A mutex for each path, in this order.
    ///
    /// # Errors
    /// [`Error::Path`] when a path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMultiLock;
    /// let both = InterProcessMultiLock::from_paths(client, ["/locks/a", "/locks/b"])?;
    /// let guard = both.acquire().await?;
    /// assert!(guard.guards()[0].path().starts_with("/locks/a/"));
    /// # Ok(()) }
    /// ```
    pub fn from_paths<P: AsRef<str>>(
        client: C,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, Error> {
        let mutex = |path: P| InterProcessMutex::new(client.clone(), path.as_ref());
        let members: Result<Vec<_>, _> = paths.into_iter().map(mutex).collect();
        Ok(Self::new(members?))
    }

    /// A mutex for each path, in the order of their bytes and each but once: what all callers do
    /// alike, whatever order they think in.
    ///
    /// # Errors
    /// [`Error::Path`] when a path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMultiLock;
    /// // The third is the first one again.
    /// let paths = ["/accounts/7", "/accounts/3", "/accounts/7"];
    /// let transfer = InterProcessMultiLock::from_paths_sorted(client, paths)?;
    /// let guard = transfer.acquire().await?;
    /// assert_eq!(guard.guards().len(), 2);
    /// assert!(guard.guards()[0].path().starts_with("/accounts/3/"));
    /// # Ok(()) }
    /// ```
    pub fn from_paths_sorted<P: AsRef<str>>(
        client: C,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, Error> {
        let mut paths: Vec<P> = paths.into_iter().collect();
        paths.sort_by(|a, b| a.as_ref().cmp(b.as_ref()));
        paths.dedup_by(|a, b| a.as_ref() == b.as_ref());
        Self::from_paths(client, paths)
    }

    /// Waits for all members.
    ///
    /// # Errors
    /// That of the first member that fails, see [`InterProcessMutex::acquire`]; those before it are
    /// given back. [`LockError::Lost`] too, if one of those was lost meanwhile.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMultiLock;
    /// let transfer = InterProcessMultiLock::from_paths_sorted(client, ["/accounts/7", "/accounts/3"])?;
    /// let guard = transfer.acquire().await?;
    /// println!("both accounts are held, with tokens {:?}", guard.tokens());
    /// # Ok(()) }
    /// ```
    pub async fn acquire(&self) -> Result<MultiGuard<C>, LockError> {
        self.take(None, Wait::FOR_EVER).await
    }

    /// Waits for all members for so long at most, taken together. Zero is a try: the locks are
    /// taken if all are free.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] with the path of the member that was not free, and those of
    /// [`InterProcessMultiLock::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessMultiLock, InterProcessMutex, LockError};
    /// let account = InterProcessMutex::new(client.clone(), "/accounts/7")?;
    /// let taken = account.acquire().await?;
    ///
    /// let transfer = InterProcessMultiLock::from_paths_sorted(client, ["/accounts/7", "/accounts/3"])?;
    /// match transfer.acquire_within(Duration::from_millis(10)).await {
    ///     Err(LockError::TimedOut { path, .. }) => assert_eq!(path, "/accounts/7"),
    ///     other => panic!("one of them is taken, so not {other:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn acquire_within(&self, within: Duration) -> Result<MultiGuard<C>, LockError> {
        self.take(None, Wait::within(within)).await
    }

    /// Takes all members if all are free. `None` if not.
    ///
    /// # Errors
    /// Those of [`InterProcessMultiLock::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMultiLock;
    /// let transfer = InterProcessMultiLock::from_paths_sorted(client, ["/accounts/7", "/accounts/3"])?;
    /// let guard = transfer.try_acquire().await?;
    /// assert!(guard.is_some());
    /// assert!(transfer.try_acquire().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub async fn try_acquire(&self) -> Result<Option<MultiGuard<C>>, LockError> {
        match self.acquire_within(Duration::ZERO).await {
            Err(LockError::TimedOut { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Waits for all members as this owner, who may have them already.
    ///
    /// # Errors
    /// [`LockError::HoldLost`] if the owner's hold of a member is lost, and those of
    /// [`InterProcessMultiLock::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMultiLock, Owner};
    /// let both = InterProcessMultiLock::from_paths(client, ["/locks/a", "/locks/b"])?;
    /// let owner = Owner::new();
    /// let outer = both.acquire_as(&owner).await?;
    /// // Without an owner this would wait for ever.
    /// let inner = both.acquire_as(&owner).await?;
    /// assert_eq!(outer.tokens(), inner.tokens());
    /// # Ok(()) }
    /// ```
    pub async fn acquire_as(&self, owner: &Owner) -> Result<MultiGuard<C>, LockError> {
        self.take(Some(owner), Wait::FOR_EVER).await
    }

    /// As [`InterProcessMultiLock::acquire_as`], for so long at most.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessMultiLock::acquire_as`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessMultiLock, LockError, Owner};
    /// let both = InterProcessMultiLock::from_paths(client, ["/locks/a", "/locks/b"])?;
    /// let (one, other) = (Owner::new(), Owner::new());
    /// let guard = both.acquire_as_within(&one, Duration::from_secs(5)).await?;
    /// let late = both.acquire_as_within(&other, Duration::from_millis(10)).await;
    /// assert!(matches!(late, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn acquire_as_within(
        &self,
        owner: &Owner,
        within: Duration,
    ) -> Result<MultiGuard<C>, LockError> {
        self.take(Some(owner), Wait::within(within)).await
    }

    async fn take(&self, owner: Option<&Owner>, wait: Wait) -> Result<MultiGuard<C>, LockError> {
        // What has been got goes in reverse order, whatever happens.
        let mut got = MultiGuard { guards: Vec::new() };
        for member in &*self.members {
            let left = wait
                .until
                .map(|until| until.saturating_duration_since(clock::now()));
            let guard = member.acquire(owner, left).await;
            got.guards.push(guard.map_err(|error| match error {
                LockError::TimedOut { path, .. } => LockError::TimedOut {
                    path,
                    within: wait.within,
                },
                other => other,
            })?);
        }
        // Those got first may be gone by the time the last one is there.
        let is_lost = |guard: &&Guard<C>| matches!(guard.status(), Status::Lost(_));
        match got.guards.iter().find(is_lost) {
            Some(lost) => Err(LockError::Lost {
                path: lost.path().to_owned(),
                attempts: 1,
            }),
            None => Ok(got),
        }
    }
}
