//! Whether a server still serves, and if not, why.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Set once, by a panic inside a turn.
    broken: AtomicBool,
    /// Set while the server is down, for now or for ever.
    stopped: AtomicBool,
    /// Wakes who waits in [`Standing::broke`].
    broke: Notify,
}

impl Standing {
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    pub(crate) fn set_broken(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// Says so to those who wait for it.
    pub(crate) fn tell_broken(&self) {
        self.broke.notify_waiters();
    }

    /// Waits until a panic inside a turn has stopped the server.
    pub(crate) async fn broke(&self) {
        let broke = self.broke.notified();
        if !self.is_broken() {
            broke.await;
        }
    }

    /// Whether nothing more is served.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn set_stopped(&self, is_stopped: bool) {
        self.stopped.store(is_stopped, Ordering::Release);
    }
}
