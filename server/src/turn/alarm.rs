//! When the expiry task wakes, and what may wake it earlier.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// What the expiry task sleeps until, in milliseconds since the start.
    armed_ms: AtomicU64,
    /// Wakes the expiry task when something is due earlier.
    rearm: Notify,
}

impl Alarm {
    /// Something is due then.
    pub(crate) fn rearm_for(&self, deadline_ms: Option<u64>) {
        if deadline_ms.is_some_and(|deadline| deadline < self.armed_ms.load(Ordering::Acquire)) {
            self.rearm.notify_one();
        }
    }

    /// Notes what the expiry task will sleep until, and gives what may wake it earlier.
    pub(crate) fn arm(&self, deadline_ms: u64) -> &Notify {
        self.armed_ms.store(deadline_ms, Ordering::Release);
        &self.rearm
    }
}
