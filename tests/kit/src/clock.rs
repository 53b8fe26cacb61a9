//! The only file of the tests that reads time: to say how long something took, and to stop.

#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::time::Duration;

use tokio::time::Instant;

/// Returns the time of tokio's clock, which a test may have paused.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Measures how long something takes in real time.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since it was started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
