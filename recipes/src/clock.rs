//! The only file that reads the clock.
#![allow(
    clippy::disallowed_methods,
    reason = "only this file may read the clock"
)]

use tokio::time::Instant;

/// Returns tokio's time rather than the system's, so that a paused or simulated runtime controls
/// it.
pub(crate) fn now() -> Instant {
    Instant::now()
}
