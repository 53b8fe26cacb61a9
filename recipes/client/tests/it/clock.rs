//! The only file of these tests that reads time.

use tokio::time::Instant;

pub(crate) fn now() -> Instant {
    Instant::now()
}
