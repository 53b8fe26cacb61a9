//! The only file that reads time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use tokio::time::Instant;

/// Tokio's instant rather than the system's, so that a paused or simulated runtime governs it.
pub(crate) fn now() -> Instant {
    Instant::now()
}
