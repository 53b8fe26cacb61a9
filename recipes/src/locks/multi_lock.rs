//! The multi-lock: several locks as one, and the guard of all of them.
//!
//! Source: `docs/curator-recipes.md` section 8; Curator's `InterProcessMultiLock`.

use std::{
    fmt,
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use minikeeper_client::Error;

use crate::{
    client::ZooKeeper,
    clock,
    error::{LockError, Released},
    locks::{
        acquire::{Acquire, Reentrant},
        guard::Guard,
        mutex::InterProcessMutex,
        owner::Owner,
        read_write::{InterProcessReadWriteLock, WriteGuard},
        semaphore_mutex::InterProcessSemaphoreMutex,
    },
    queue::contending::Wait,
    status::{FencingToken, Loss, Status},
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
    /// Acquires the member; a semaphore mutex has no owners.
    async fn acquire(
        &self,
        owner: Option<&Owner>,
        within: Option<Duration>,
    ) -> Result<Guard<C>, LockError> {
        match self {
            Self::Mutex(lock) => lock.acquire().with(owner, within).await,
            Self::SemaphoreMutex(lock) => lock.acquire().with(None, within).await,
            Self::Read(lock) => lock.acquire_read().with(owner, within).await,
            Self::Write(lock) => lock.acquire_write().with(owner, within).await.map(plain),
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

impl<C: ZooKeeper> Reentrant for InterProcessMultiLock<C> {}

impl<C: ZooKeeper> InterProcessMultiLock<C> {
    /// These locks, in this order. The same lock twice waits for itself, unless it is acquired
    /// [as an owner](Acquire::as_owner).
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

    /// Acquires all members, in order: waits without a time limit unless [`Acquire::within`] sets one
    /// for all of them together. An owner ([`Acquire::as_owner`]) may acquire them again.
    ///
    /// # Cancel safety
    /// Dropping the future gives back what was acquired, and the place in the queue.
    ///
    /// # Errors
    /// That of the first member that fails, see [`InterProcessMutex::acquire`]; those before it are
    /// given back. [`LockError::TimedOut`] names the member that was not free. [`LockError::Lost`] too, if one of those was lost meanwhile.
    pub fn acquire(&self) -> Acquire<'_, Self, MultiGuard<C>> {
        Acquire::new(self, |lock, how| Box::pin(lock.take(how.owner, how.wait())))
    }

    /// Takes all members if all are free. `None` if not.
    ///
    /// # Errors
    /// Those of [`InterProcessMultiLock::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<MultiGuard<C>>, LockError> {
        match self.acquire().within(Duration::ZERO).await {
            Err(LockError::TimedOut { .. }) => Ok(None),
            other => other.map(Some),
        }
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

/// Several locks that are held. Dropping it gives them back without waiting, the last one first.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMultiLock, Status};
///
/// let both = InterProcessMultiLock::from_paths(client, ["/locks/a", "/locks/b"])?;
/// let guard = both.acquire().await?;
/// assert_eq!(guard.status(), Status::Held);
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "a guard that is dropped gives its locks back"]
pub struct MultiGuard<C: ZooKeeper> {
    pub(crate) guards: Vec<Guard<C>>,
}

impl<C: ZooKeeper> MultiGuard<C> {
    /// What to send along with what is done under the locks: to each resource the token of its own
    /// lock, in the order in which the locks were given.
    #[must_use]
    pub fn tokens(&self) -> Vec<FencingToken> {
        self.guards.iter().map(Guard::token).collect()
    }

    /// The guards of the members, in the order in which the locks were given.
    pub fn guards(&self) -> &[Guard<C>] {
        &self.guards
    }

    /// Whether all are still held. Asks nobody.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut all = Status::Held;
        for guard in &self.guards {
            match (guard.status(), all) {
                (Status::Lost(loss), _) => return Status::Lost(loss),
                (Status::Suspended { until }, Status::Suspended { until: first }) => {
                    let until = until.min(first);
                    all = Status::Suspended { until };
                }
                (Status::Suspended { until }, _) => all = Status::Suspended { until },
                (Status::Held, _) => {}
            }
        }
        all
    }

    /// Resolves when the first of them is lost.
    pub async fn lost(&self) -> Loss {
        let mut all: Vec<_> = self
            .guards
            .iter()
            .map(|guard| Box::pin(guard.lost()))
            .collect();
        if all.is_empty() {
            return pending().await;
        }
        poll_fn(|cx| {
            let mut polled = all.iter_mut().map(|lost| lost.as_mut().poll(cx));
            polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
        .await
    }

    /// Runs a future as long as all are held; drops it when one of them is lost.
    ///
    /// # Errors
    /// Why it was lost: the work is dropped, and what it did last may have happened without the
    /// lock.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        tokio::select! {
            biased;
            loss = self.lost() => Err(loss),
            result = work => Ok(result),
        }
    }

    /// Gives all back, the last one first, and waits until that is certain.
    ///
    /// [`Released::AlreadyGone`] if one of them had been lost before, or else
    /// [`Released::StillHeld`] if its owner still holds one.
    ///
    /// # Errors
    /// The first there was, see [`Guard::release`]; the others are given back all the same.
    pub async fn release(mut self) -> Result<Released, Error> {
        let mut releases = Vec::new();
        while let Some(guard) = self.guards.pop() {
            releases.push(Release::Waiting(Box::pin(guard.release())));
        }
        poll_fn(|cx| {
            // Each is begun before the first is waited for.
            let polled = releases.iter_mut().map(|release| release.is_done(cx));
            if polled.fold(true, |all, is_done| all & is_done) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let mut all = Released::Done;
        for release in releases {
            if let Release::Done(result) = release {
                match (result?, all) {
                    (Released::AlreadyGone, _) => all = Released::AlreadyGone,
                    (Released::StillHeld, Released::Done) => all = Released::StillHeld,
                    _ => {}
                }
            }
        }
        Ok(all)
    }
}

/// One member's release.
enum Release<'a> {
    Waiting(Pin<Box<dyn Future<Output = Result<Released, Error>> + Send + 'a>>),
    Done(Result<Released, Error>),
}

impl Release<'_> {
    fn is_done(&mut self, cx: &mut std::task::Context<'_>) -> bool {
        if let Self::Waiting(release) = self
            && let Poll::Ready(result) = release.as_mut().poll(cx)
        {
            *self = Self::Done(result);
        }
        matches!(self, Self::Done(_))
    }
}

impl<C: ZooKeeper> Drop for MultiGuard<C> {
    fn drop(&mut self) {
        while self.guards.pop().is_some() {}
    }
}

impl<C: ZooKeeper> fmt::Debug for MultiGuard<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.guards).finish()
    }
}
