//! The only file that reads the clock.
#![allow(
    clippy::disallowed_methods,
    reason = "only this file may read the clock"
)]

use tokio::time::Instant;

/// Returns the time of tokio's clock.
pub(crate) fn now() -> Instant {
    Instant::now()
}
