//! Reads the clock, for durations and time limits. No other file of the tests does.

#![allow(
    clippy::disallowed_methods,
    reason = "the only file of the tests that reads the clock"
)]

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Returns the time of tokio's clock, which a test may have paused.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the milliseconds since 1970, which processes of one machine can compare.
#[must_use]
pub fn since_1970_ms() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.as_millis())
}

/// Measures real time.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    #[must_use]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
