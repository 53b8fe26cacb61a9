//! The multi-lock: several locks acquired as one, and their common guard.
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

use minikeeper_client::{Client, Error};

use crate::{
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
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{
///     InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock, MultiMember,
/// };
///
/// let report = InterProcessMutex::new(client.clone(), "/locks/report")?;
/// let prices = InterProcessReadWriteLock::new(client, "/locks/prices")?;
/// let both = InterProcessMultiLock::new([MultiMember::from(report), MultiMember::Read(prices)]);
/// let guard = both.acquire().await?;
/// assert_eq!(guard.guards().len(), 2);
/// # Ok(()) });
/// ```
#[derive(Clone)]
#[non_exhaustive]
#[allow(
    clippy::large_enum_variant,
    reason = "a multi-lock has few members; the sizes differ by features"
)]
pub enum MultiMember {
    /// A mutex.
    Mutex(InterProcessMutex),
    /// A semaphore mutex. It ignores owners.
    SemaphoreMutex(InterProcessSemaphoreMutex),
    /// A read/write lock, acquired to read.
    Read(InterProcessReadWriteLock),
    /// A read/write lock, acquired to write.
    Write(InterProcessReadWriteLock),
}

impl fmt::Debug for MultiMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mutex(lock) => lock.fmt(f),
            Self::SemaphoreMutex(lock) => lock.fmt(f),
            Self::Read(lock) => f.debug_tuple("Read").field(lock).finish(),
            Self::Write(lock) => f.debug_tuple("Write").field(lock).finish(),
        }
    }
}

impl From<InterProcessMutex> for MultiMember {
    fn from(lock: InterProcessMutex) -> Self {
        Self::Mutex(lock)
    }
}

impl From<InterProcessSemaphoreMutex> for MultiMember {
    fn from(lock: InterProcessSemaphoreMutex) -> Self {
        Self::SemaphoreMutex(lock)
    }
}

impl MultiMember {
    /// Acquires the member. A semaphore mutex ignores the owner.
    async fn acquire(
        &self,
        owner: Option<&Owner>,
        within: Option<Duration>,
    ) -> Result<Guard, LockError> {
        match self {
            Self::Mutex(lock) => lock.acquire().with(owner, within).await,
            Self::SemaphoreMutex(lock) => lock.acquire().with(None, within).await,
            Self::Read(lock) => lock.acquire_read().with(owner, within).await,
            Self::Write(lock) => lock.acquire_write().with(owner, within).await.map(plain),
        }
    }
}

fn plain(guard: WriteGuard) -> Guard {
    guard.guard
}

/// Several locks acquired as one: either all are held, or none.
///
/// It acquires them one after the other, in the given order. Contenders for overlapping sets must
/// use the same order, or they can deadlock. [`from_paths_sorted`](Self::from_paths_sorted) gives
/// all its callers the same order.
///
/// Unlike Curator's, it has one deadline for all members, and stops at the first that fails
/// (hazard H18).
///
/// Cheap to clone. Clones are the same lock object: an owner that holds one holds all.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::InterProcessMultiLock;
///
/// let accounts = ["/accounts/7", "/accounts/3"];
/// let transfer = InterProcessMultiLock::from_paths_sorted(client, accounts)?;
/// let guard = transfer.acquire().await?;
/// // Each account compares the token of its own lock.
/// assert_eq!(guard.tokens().len(), 2);
/// guard.release().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct InterProcessMultiLock {
    members: Arc<[MultiMember]>,
}

impl Reentrant for &InterProcessMultiLock {}

impl InterProcessMultiLock {
    /// Combines these locks, in this order. A lock that occurs twice waits for itself, unless it is
    /// acquired [as an owner](Acquire::as_owner).
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = impl Into<MultiMember>>) -> Self {
        Self {
            members: members.into_iter().map(Into::into).collect(),
        }
    }

    /// Combines a mutex for each path, in this order.
    ///
    /// # Errors
    /// [`Error::Path`] if a path is invalid.
    pub fn from_paths<P: AsRef<str>>(
        client: Client,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, Error> {
        let mutex = |path: P| InterProcessMutex::new(client.clone(), path.as_ref());
        let members: Result<Vec<_>, _> = paths.into_iter().map(mutex).collect();
        Ok(Self::new(members?))
    }

    /// Combines a mutex for each path, sorted by bytes and without duplicates, so that all callers
    /// use the same order.
    ///
    /// # Errors
    /// [`Error::Path`] if a path is invalid.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::InterProcessMultiLock;
    /// // The third path equals the first.
    /// let paths = ["/accounts/7", "/accounts/3", "/accounts/7"];
    /// let transfer = InterProcessMultiLock::from_paths_sorted(client, paths)?;
    /// let guard = transfer.acquire().await?;
    /// assert_eq!(guard.guards().len(), 2);
    /// assert!(guard.guards()[0].path().starts_with("/accounts/3/"));
    /// # Ok(()) });
    /// ```
    pub fn from_paths_sorted<P: AsRef<str>>(
        client: Client,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, Error> {
        let mut paths: Vec<P> = paths.into_iter().collect();
        paths.sort_by(|a, b| a.as_ref().cmp(b.as_ref()));
        paths.dedup_by(|a, b| a.as_ref() == b.as_ref());
        Self::from_paths(client, paths)
    }

    /// Acquires all members in order, waiting without a time limit unless [`Acquire::within`] sets
    /// one for all of them together. An owner ([`Acquire::as_owner`]) may acquire them again.
    ///
    /// # Cancel safety
    /// Dropping the future releases the members that were acquired and gives up the place in the
    /// queue of the next one, see [`Acquire`].
    ///
    /// # Errors
    /// The error of the first member that fails, see [`InterProcessMutex::acquire`]. The members
    /// before it are released. [`LockError::TimedOut`] names the member that was not free.
    /// [`LockError::Lost`] is also returned if a member was lost while a later one was acquired.
    pub fn acquire(&self) -> Acquire<'_, &Self, MultiGuard> {
        Acquire::new(self, |lock, how| Box::pin(lock.take(how.owner, how.wait())))
    }

    /// Acquires all members if all are free; `None` if one is not.
    ///
    /// # Cancel safety
    /// Same as [`InterProcessMultiLock::acquire`].
    ///
    /// # Errors
    /// Those of [`InterProcessMultiLock::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<MultiGuard>, LockError> {
        self.acquire().at_once().await
    }

    async fn take(&self, owner: Option<&Owner>, wait: Wait) -> Result<MultiGuard, LockError> {
        // Dropping this releases the acquired members in reverse order.
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
        // The first members may have been lost by the time the last one is acquired.
        let is_lost = |guard: &&Guard| matches!(guard.status(), Status::Lost(_));
        match got.guards.iter().find(is_lost) {
            Some(lost) => Err(LockError::Lost {
                path: lost.path().to_owned(),
                attempts: 1,
            }),
            None => Ok(got),
        }
    }
}

/// A multi-lock that is held. Dropping the guard releases them in the background, the last one
/// first.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMultiLock, Status};
///
/// let both = InterProcessMultiLock::from_paths(client, ["/locks/a", "/locks/b"])?;
/// let guard = both.acquire().await?;
/// assert_eq!(guard.status(), Status::Held);
/// guard.release().await?;
/// # Ok(()) });
/// ```
#[must_use = "a guard that is dropped releases its locks"]
pub struct MultiGuard {
    pub(crate) guards: Vec<Guard>,
}

impl MultiGuard {
    /// Returns the fencing tokens, in the order of the members. Send to each resource the token of
    /// its own lock.
    #[must_use]
    pub fn tokens(&self) -> Vec<FencingToken> {
        self.guards.iter().map(Guard::token).collect()
    }

    /// Returns the guards of the members, in their order.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Returns whether all members are still held, without a request. A lost member takes
    /// precedence over suspended ones; of several suspended ones the earliest time counts.
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

    /// Waits until the first member is lost.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
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

    /// Runs a future while all members are held, and drops it when one is lost.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work. The locks stay held.
    ///
    /// # Errors
    /// The [`Loss`] if a member was lost. The work is dropped; its last actions may have happened
    /// without the lock.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        tokio::select! {
            biased;
            loss = self.lost() => Err(loss),
            result = work => Ok(result),
        }
    }

    /// Releases all members, the last one first, and waits for the confirmations.
    ///
    /// Returns [`Released::AlreadyGone`] if a member had been lost before, otherwise
    /// [`Released::StillHeld`] if the owner still has another guard of a member.
    ///
    /// # Cancel safety
    /// Dropping the future still releases all members, in the background.
    ///
    /// # Errors
    /// The first error, see [`Guard::release`]. The other members are still released.
    pub async fn release(mut self) -> Result<Released, Error> {
        let mut releases = Vec::new();
        while let Some(guard) = self.guards.pop() {
            releases.push(Release::Waiting(Box::pin(guard.release())));
        }
        poll_fn(|cx| {
            // Begin each before waiting for the first.
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

/// The release of one member.
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

impl Drop for MultiGuard {
    fn drop(&mut self) {
        while self.guards.pop().is_some() {}
    }
}

impl fmt::Debug for MultiGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.guards).finish()
    }
}
