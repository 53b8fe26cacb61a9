//! Who moves time ahead: callers by hand, one at a time, and the server itself when all are idle.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Movers {
    moving: Mutex<()>,
    /// How long all clients must have been idle, in real time, before the server moves time by
    /// itself; `None` is never.
    quiet: Mutex<Option<Duration>>,
    changed: Notify,
}

impl Movers {
    /// Held by whoever moves time from deadline to deadline.
    pub(crate) fn enter(&self) -> MutexGuard<'_, ()> {
        self.moving.lock()
    }

    pub(crate) fn set_quiet(&self, quiet: Option<Duration>) {
        *self.quiet.lock() = quiet;
        self.changed.notify_one();
    }

    pub(crate) fn quiet(&self) -> Option<Duration> {
        *self.quiet.lock()
    }

    /// Waits until [`Movers::set_quiet`] is called. One task may do so.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}
