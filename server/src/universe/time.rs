//! Time, moved by hand.

use std::time::Duration;

use crate::{expiry, universe::Universe};

impl Universe {
    /// Moves a manual clock forward, stopping wherever something is due on the way.
    ///
    /// Sessions expire and unfinished handshakes end in the order of their deadlines; when this
    /// returns, everybody concerned has been told: replies and events are on their way.
    ///
    /// # Panics
    /// If the server was not started with [`crate::Builder::manual_clock`].
    pub fn advance(&self, by: Duration) {
        let clock = self.shared.turns.clock();
        assert!(
            clock.is_manual(),
            "time is moved by hand only with Builder::manual_clock"
        );
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let target_ms = clock.now().elapsed_ms.saturating_add(by_ms);
        while let Some(deadline_ms) = expiry::next_deadline_ms(&self.shared)
            && deadline_ms <= target_ms
        {
            clock.set(deadline_ms);
            expiry::tick(&self.shared);
        }
        clock.set(target_ms);
    }
}
