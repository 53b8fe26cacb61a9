//! The deadline that the expiry task sleeps until.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Wakes the expiry task when a deadline is set before the one that it sleeps until.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// The deadline that the expiry task sleeps until, in milliseconds since the start.
    armed_ms: AtomicU64,
    /// Wakes the expiry task when something is due earlier.
    rearm: Notify,
}

impl Alarm {
    /// Wakes the expiry task if this deadline is earlier than the one that it sleeps until.
    pub(crate) fn rearm_for(&self, deadline_ms: Option<u64>) {
        if deadline_ms.is_some_and(|deadline| deadline < self.armed_ms.load(Ordering::Acquire)) {
            self.rearm.notify_one();
        }
    }

    /// Records the deadline that the expiry task will sleep until. Returns what may wake it
    /// earlier.
    pub(crate) fn arm(&self, deadline_ms: u64) -> &Notify {
        self.armed_ms.store(deadline_ms, Ordering::Release);
        &self.rearm
    }
}
