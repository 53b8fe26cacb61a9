//! The pauses before a request is made again.

use std::time::Duration;

use minikeeper_client::{Backoff, Error};
use tokio::time::sleep;

use crate::client::ZooKeeper;

/// The longest first pause before a request is made again; half of it is random.
///
/// A constant: it bounds what one call asks of a server that refuses everything, and is short
/// beside the time a lock is held.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(20);

/// The longest pause: how late a call notices that the server serves it again.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The pauses of one call: they grow from [`PAUSE_MIN`] to [`PAUSE_MAX`] as long as it makes no
/// progress.
pub(crate) struct Pace(Backoff);

impl Pace {
    /// Every caller gets jitter of its own.
    pub(crate) fn of<C: ZooKeeper>(client: &C) -> Self {
        Self(Backoff::new(
            PAUSE_MIN,
            PAUSE_MAX,
            client.new_id().as_u128(),
        ))
    }

    /// How long to wait before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        self.0.next_pause()
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&mut self) {
        sleep(self.next()).await;
    }

    /// The call has made progress: its next pause is a short one.
    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    /// Waits before a request is made again that failed so. Only a refusal costs a pause: a
    /// connection that was lost has cost one already.
    pub(crate) async fn after(&mut self, error: &Error) {
        if error.code().is_some() {
            self.pause().await;
        }
    }
}
