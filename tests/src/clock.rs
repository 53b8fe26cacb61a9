//! The only file of these tests that reads time: to say how long something took, and to stop.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::time::{Duration, Instant};

/// Tells how long it has been running.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has been running.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
