//! Contenders for locks that are plain mutexes without tokens, like most here.

use std::time::Duration;

use super::{Access, Belief, Contender, Doing, Grant, LockFailure};

/// The operations of such a contender; it implements [`Contender`], with the boxes.
pub(super) trait Plain: Send {
    /// See [`Contender::session`].
    fn session(&self) -> String;

    /// Waits for the lock, for at most `limit`; returns whether it is held. Without a limit it
    /// never returns false.
    fn lock(
        &mut self,
        limit: Option<Duration>,
    ) -> impl Future<Output = Result<bool, LockFailure>> + Send;

    /// See [`Contender::belief`].
    fn belief(&self) -> Belief;

    /// See [`Contender::release`].
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
