//! The pauses before retries.

use std::time::Duration;

use minikeeper_client::{Backoff, Client, Error};
use tokio::time::sleep;

/// The longest first pause before a retry; half of it is random.
///
/// It limits how many requests one call makes to a server that refuses everything, and is short
/// compared with the time for which a lock is held.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(20);

/// The longest pause, which is how late a call may notice that the server serves it again.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The pauses of one call. They grow from [`PAUSE_MIN`] to [`PAUSE_MAX`] while it makes no
/// progress.
pub(crate) struct Pace(Backoff);

impl Pace {
    /// Creates the pauses of a call, with their own random jitter.
    pub(crate) fn of(client: &Client) -> Self {
        Self(Backoff::new(PAUSE_MIN, PAUSE_MAX, client.random()))
    }

    /// Returns how long to wait before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        self.0.next_pause()
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&mut self) {
        sleep(self.next()).await;
    }

    /// Returns to the shortest pause, after progress.
    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    /// Waits before a retry after this error. Only a refusal costs a pause: after a lost connection
    /// the reconnect has paused already.
    pub(crate) async fn after(&mut self, error: &Error) {
        if error.code().is_some() {
            self.pause().await;
        }
    }
}
