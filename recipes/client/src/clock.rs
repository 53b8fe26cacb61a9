//! The only file that reads time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use tokio::time::Instant;

use crate::core::outcome::Time;

/// What a client counts time from. Tokio's instant rather than the system's, so that a paused or
/// simulated runtime governs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> Time {
        self.start.elapsed()
    }

    pub(crate) fn at(self, time: Time) -> Instant {
        self.start + time
    }
}
