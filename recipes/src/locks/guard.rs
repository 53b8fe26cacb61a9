//! The guard of a lock: reports whether the lock is still held, and releases it.
//!
//! Source: `docs/curator-recipes.md` sections 4.7, 9 and 10.

use std::{fmt, future::Future, sync::Arc};

use minikeeper_client::{Epoch, Error, Multi, MultiResult};
use tokio::time::Instant;

use crate::{
    call_limit::CallLimit,
    error::Released,
    locks::held::Held,
    queue::contending::{in_session, no_session},
    status::{FencingToken, Loss, Status},
};

/// A lock that is held. Dropping the guard releases the lock, in the background.
///
/// Returned by the `acquire` methods of locks. It may move to other tasks.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMutex, Released, Status};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let guard = lock.acquire().await?;
/// assert_eq!(guard.status(), Status::Held);
/// assert_eq!(guard.release().await?, Released::Done);
/// # Ok(()) });
/// ```
#[must_use = "a guard that is dropped releases its lock"]
pub struct Guard {
    pub(crate) held: Arc<Held>,
    /// Whether the hold still counts it.
    counts: bool,
}

impl Guard {
    pub(crate) fn new(held: Held) -> Self {
        Self {
            held: Arc::new(held),
            counts: true,
        }
    }

    /// Returns another guard of the same hold; `None` if the last one has been dropped.
    pub(crate) fn another(held: Arc<Held>) -> Option<Self> {
        held.enter().then_some(Self { held, counts: true })
    }

    /// Returns the fencing token. Send it with every action under the lock.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// Returns the path of the lock's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.held.path
    }

    /// Returns the number of the session that holds the lock.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.held.epoch
    }

    /// Returns whether the lock is still held, without a request. It compares what the client knows
    /// with the current time, so a process that was paused sees the loss in its first call.
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Returns the time until which no other contender can hold the lock, even if the connection is
    /// down. `None` once the lock is lost.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.status() {
            Status::Held => self.held.safe_until(),
            Status::Suspended { until } => Some(until),
            Status::Lost(_) => None,
        }
    }

    /// Acquires the lock again, as its holder: returns another guard of the same hold, without a
    /// request. The lock is released with the last of them.
    ///
    /// # Errors
    /// The [`Loss`] if the lock is lost.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_recipes::{InterProcessMutex, Released};
    ///
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let outer = lock.acquire().await?;
    /// let inner = outer.reenter()?;
    /// assert_eq!(outer.release().await?, Released::StillHeld);
    /// assert_eq!(inner.release().await?, Released::Done);
    /// # Ok(()) });
    /// ```
    #[expect(
        clippy::missing_panics_doc,
        reason = "this guard keeps the hold, so there can be another"
    )]
    pub fn reenter(&self) -> Result<Self, Loss> {
        if let Status::Lost(loss) = self.status() {
            return Err(loss);
        }
        let another = Self::another(Arc::clone(&self.held));
        Ok(another.expect("this guard keeps the hold"))
    }

    /// Waits until the lock is lost.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn lost(&self) -> Loss {
        self.held
            .until(|status| match status {
                Status::Lost(loss) => Some(loss),
                Status::Held | Status::Suspended { .. } => None,
            })
            .await
    }

    /// Waits until it is no longer certain that the lock is held: the connection is down, or the
    /// lock is lost.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn unsure(&self) -> Status {
        self.held
            .until(|status| (status != Status::Held).then_some(status))
            .await
    }

    /// Runs a future while the lock is held, and drops it when the lock is lost.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work. The lock stays held.
    ///
    /// # Errors
    /// The [`Loss`] if the lock was lost. The work is dropped; its last actions may have happened
    /// without the lock.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        tokio::select! {
            biased;
            loss = self.lost() => Err(loss),
            result = work => Ok(result),
        }
    }

    /// Changes znodes of the same ZooKeeper if and only if the lock is still held: sends a multi
    /// that begins with a check of the lock's znode. No fencing token is needed.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall the multi: read the znodes to find out whether it was
    /// carried out.
    ///
    /// # Errors
    /// [`Error::MultiRefused`] with index 0 if the lock is lost; the caller's operations have the
    /// indices from 1 on. [`Error::OutcomeUnknown`] when the connection is lost or there is no
    /// session: read the znodes to find out whether the multi was carried out.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](minikeeper_client::Client::call_timeout).
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_client::{CreateMode, Error};
    /// # use minikeeper_recipes::InterProcessMutex;
    /// client.create("/balance", b"250", CreateMode::Persistent).await?;
    /// let lock = InterProcessMutex::new(client.clone(), "/locks/balance")?;
    /// let guard = lock.acquire().await?;
    /// guard.multi(|multi| multi.set_data("/balance", b"249", None)).await?;
    /// // An operator deletes the lock's znode: no further change is made.
    /// client.delete(guard.path(), None).await?;
    /// let late = guard.multi(|multi| multi.set_data("/balance", b"248", None)).await;
    /// assert!(matches!(late, Err(Error::MultiRefused { index: 0, .. })));
    /// # Ok(()) });
    /// ```
    pub async fn multi(
        &self,
        change: impl FnOnce(Multi) -> Multi,
    ) -> Result<Vec<MultiResult>, Error> {
        let multi = change(Multi::new().check(self.path(), None));
        let client = &self.held.client;
        let made = in_session(client, client.multi(multi));
        let limit = CallLimit::change(client, "multi", self.path());
        limit
            .run(async {
                made.await
                    .unwrap_or_else(|| Err(no_session("multi", self.path())))
            })
            .await
    }

    /// Releases the lock and waits until a server confirms it.
    ///
    /// - With a connection, it sends the request and waits for the reply. If the connection is lost
    ///   meanwhile, it returns [`Error::OutcomeUnknown`] at once.
    /// - Without a connection, it waits for one, and then sends the request. If the session ends or is
    ///   presumed lost first, it returns [`Error::OutcomeUnknown`]. If the client is closed first, it
    ///   returns that or [`Error::NotSent`].
    /// - If the lock is already known to be lost, with its znode, its session or its client, it returns
    ///   [`Released::AlreadyGone`] at once, even without a server.
    /// - It returns [`Released::StillHeld`] while there is another guard of the same hold, and
    ///   [`Released::PassedOn`] if another task of this process gets the lock, both without a request.
    ///
    /// # Cancel safety
    /// Dropping the future still releases the lock, in the background.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] and [`Error::NotSent`] as said above. If a server refuses the request for now, it is sent five
    /// times, and the last error is returned; any other [`Error::Refused`] is returned at once. The
    /// caller need not do anything: the client retries in the background, and the lock is released at
    /// the end of the session at the latest. [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](minikeeper_client::Client::call_timeout); the release continues in the background.
    pub async fn release(mut self) -> Result<Released, Error> {
        self.counts = false;
        if self.held.leave() {
            let limit = CallLimit::background(&self.held.client, "release", &self.held.path);
            limit.run(self.held.release()).await
        } else {
            Ok(Released::StillHeld)
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.counts && self.held.leave() {
            self.held.give_up();
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("path", &self.held.path)
            .field("token", &self.held.token)
            .finish_non_exhaustive()
    }
}
