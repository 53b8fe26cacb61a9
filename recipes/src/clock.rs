//! The only file that reads the clock.
#![allow(
    clippy::disallowed_methods,
    reason = "only this file may read the clock"
)]

#[cfg(feature = "discovery")]
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Returns tokio's time rather than the system's, so that a paused or simulated runtime controls
/// it.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the system's time in milliseconds since 1970, to be shown to people.
#[cfg(feature = "discovery")]
pub(crate) fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
