//! Contenders for locks that are plain mutexes without tokens, as most here are.

use std::time::Duration;

use super::{Access, Belief, Contender, Doing, Grant, LockFailure};

/// What such a contender has to say; [`Contender`] is made of it, boxes and all.
pub(super) trait Plain: Send {
    /// As [`Contender::session`].
    fn session(&self) -> String;

    /// Waits for the lock, so long at most: whether it is held. Without a limit it is, or that failed.
    fn lock(
        &mut self,
        limit: Option<Duration>,
    ) -> impl Future<Output = Result<bool, LockFailure>> + Send;

    /// As [`Contender::belief`].
    fn belief(&self) -> Belief;

    /// As [`Contender::release`].
    fn unlock(&mut self) -> impl Future<Output = Result<(), LockFailure>> + Send;
}

impl<P: Plain> Contender for P {
    fn session(&self) -> String {
        Plain::session(self)
    }

    fn acquire(&mut self, _: Access) -> Doing<'_, Result<Grant, LockFailure>> {
        Box::pin(async move {
            self.lock(None).await?;
            Ok(Grant { token: None })
        })
    }

    fn acquire_within(
        &mut self,
        _: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>> {
        Box::pin(async move {
            let is_held = self.lock(Some(limit)).await?;
            Ok(is_held.then_some(Grant { token: None }))
        })
    }

    fn belief(&self) -> Belief {
        Plain::belief(self)
    }

    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
        Box::pin(self.unlock())
    }
}
