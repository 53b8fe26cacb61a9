//! What users hold while they hold a lock: it says whether it is still held, and gives it back.
//!
//! Source: `docs/curator-recipes.md` sections 4.7, 9 and 10.

use std::{fmt, future::Future, sync::Arc};

use minikeeper_client::{Epoch, Error, Multi, MultiResult};
use tokio::time::Instant;

use crate::{
    client::ZooKeeper,
    error::Released,
    locks::held::Held,
    queue::contending::{in_session, no_session},
    status::{FencingToken, Loss, Status},
};

/// A lock that is held. Dropping it gives it back without waiting.
///
/// Made by the `acquire` methods of locks. Guards may move to other tasks, and be dropped
/// anywhere.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Released, Status};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let guard = lock.acquire().await?;
/// assert_eq!(guard.status(), Status::Held);
/// assert_eq!(guard.release().await?, Released::Done);
/// # Ok(()) }
/// ```
#[must_use = "a guard that is dropped gives its lock back"]
pub struct Guard<C: ZooKeeper> {
    pub(crate) held: Arc<Held<C>>,
    /// Whether it still counts among the guards of what is held.
    counts: bool,
}

impl<C: ZooKeeper> Guard<C> {
    pub(crate) fn new(held: Held<C>) -> Self {
        Self {
            held: Arc::new(held),
            counts: true,
        }
    }

    /// Another guard of the same hold; `None` if the last one has gone.
    pub(crate) fn another(held: Arc<Held<C>>) -> Option<Self> {
        held.enter().then_some(Self { held, counts: true })
    }

    /// What to send along with everything that is done under the lock.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// The path of the lock's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.held.path
    }

    /// The session the lock is held in.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.held.epoch
    }

    /// Whether the lock is still held. Asks nobody: it compares what is known with the time, so
    /// that a process that was paused sees the loss at its first look.
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Until when nobody else can hold the lock, whatever has happened to the connection; `None`
    /// if it is lost.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.status() {
            Status::Held => self.held.safe_until(),
            Status::Suspended { until } => Some(until),
            Status::Lost(_) => None,
        }
    }

    /// Resolves when the lock is lost.
    pub async fn lost(&self) -> Loss {
        self.held
            .until(|status| match status {
                Status::Lost(loss) => Some(loss),
                Status::Held | Status::Suspended { .. } => None,
            })
            .await
    }

    /// Resolves when the lock is not certainly held any more: there is no connection, or it is
    /// lost.
    pub async fn unsure(&self) -> Status {
        self.held
            .until(|status| (status != Status::Held).then_some(status))
            .await
    }

    /// Runs a future as long as the lock is held; drops it when the lock is lost.
    ///
    /// # Errors
    /// Why the lock was lost: the work is dropped, and what it did last may have happened without
    /// the lock.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        tokio::select! {
            biased;
            loss = self.lost() => Err(loss),
            result = work => Ok(result),
        }
    }

    /// Changes data in the same ZooKeeper, if and only if the lock is still held: one multi that
    /// begins with a check of the lock's znode. No token is needed for that.
    ///
    /// # Errors
    /// [`Error::MultiRefused`] with index 0 if the lock is lost; the other operations count from 1.
    /// [`Error::OutcomeUnknown`] when the connection is lost meanwhile, or there is no session: look
    /// whether it was made.
    pub async fn multi(
        &self,
        change: impl FnOnce(Multi) -> Multi,
    ) -> Result<Vec<MultiResult>, Error> {
        let multi = change(Multi::new().check(self.path(), None));
        let client = &self.held.client;
        let made = in_session(client, client.multi(multi)).await;
        made.unwrap_or_else(|| Err(no_session("multi", self.path())))
    }

    /// Gives the lock back and waits until that is certain, while there is a session: without a
    /// connection until the session is presumed lost. A lock that is known to be lost is given back
    /// at once, as [`Released::AlreadyGone`], whether there is a server or not.
    ///
    /// If the future is dropped, the lock is given back all the same, without waiting.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when that is not certain, [`Error::Refused`]
    /// when a server refuses: nothing is to be done, it is tried again in the background, and the
    /// session's end gives it back at the latest.
    pub async fn release(mut self) -> Result<Released, Error> {
        self.counts = false;
        if self.held.leave() {
            self.held.release().await
        } else {
            Ok(Released::StillHeld)
        }
    }
}

impl<C: ZooKeeper> Drop for Guard<C> {
    fn drop(&mut self) {
        if self.counts && self.held.leave() {
            self.held.give_up();
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for Guard<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("path", &self.held.path)
            .field("token", &self.held.token)
            .finish_non_exhaustive()
    }
}
