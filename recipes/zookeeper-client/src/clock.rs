//! The only file that reads time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use tokio::time::Instant;

/// Returns the time of tokio's clock.
pub(crate) fn now() -> Instant {
    Instant::now()
}
