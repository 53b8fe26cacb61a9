//! What a multi-lock gives.
//!
//! Source: `docs/curator-recipes.md` section 8.

use std::{
    fmt,
    future::{Future, pending, poll_fn},
    pin::Pin,
    task::Poll,
};

use minikeeper_client::Error;

use crate::{
    client::ZooKeeper,
    error::Released,
    locks::guard::Guard,
    status::{FencingToken, Loss, Status},
};

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
