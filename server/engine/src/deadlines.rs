//! When something is due, for whoever has the clock.
//!
//! Source: reference section 14.1.

use crate::Engine;

impl Engine {
    /// When something is due next, in milliseconds since the start: a session that expires, or
    /// the clean-up of containers and znodes with a time to live.
    #[must_use]
    pub fn next_deadline_ms(&mut self) -> Option<u64> {
        let expiry = self.state.sessions.next_deadline_ms();
        expiry.into_iter().chain(self.state.cleanup_ms).min()
    }

    /// The time of the next [`Input::Tick`](crate::Input::Tick): never later than [`Engine::next_deadline_ms`], and
    /// found without a search. Earlier if a session was heard of since, unless deadlines are
    /// rounded.
    #[must_use]
    pub fn next_tick_ms(&self) -> Option<u64> {
        let expiry = self.state.sessions.look_ms();
        expiry.into_iter().chain(self.state.cleanup_ms).min()
    }

    /// Whether [`Engine::next_tick_ms`] has become earlier since this was asked last, by
    /// something else than a handshake.
    pub const fn deadline_moved(&mut self) -> bool {
        std::mem::replace(&mut self.state.deadline_moved, false)
    }
}
