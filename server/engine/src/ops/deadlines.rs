//! When something is due, for whoever has the clock.
//!
//! Source: `docs/zookeeper-protocol.md` section 14.1.

use minikeeper_protocol::SessionId;

use crate::{
    Engine,
    input::{ConnId, Now},
    ops::cleanup,
};

impl Engine {
    /// When something happens next if nobody asks for anything, in milliseconds since the start: a
    /// session expires, or a container or a znode with a time to live is deleted. For whoever moves
    /// time by hand: there is nothing to stop at before.
    #[must_use]
    pub fn next_deadline_ms(&mut self, now: Now) -> Option<u64> {
        let expiry = self.state.sessions.next_deadline_ms();
        let cleanup = cleanup::next_due_ms(&self.state, now);
        expiry.into_iter().chain(cleanup).min()
    }

    /// Time is moved by hand to `until_ms`. The looks for containers and times to live on the way
    /// are left out as long as they find nothing to delete; the next tick makes the one that does.
    pub fn skip_idle_looks(&mut self, now: Now, until_ms: u64) {
        cleanup::skip_idle(&mut self.state, now, until_ms);
    }

    /// As [`Engine::next_deadline_ms`], if sessions go on being heard of whose client answers: those
    /// with a connection of which `answers` says so, given their timeout in milliseconds.
    #[must_use]
    pub fn next_deadline_of_silent_ms(
        &self,
        now: Now,
        answers: impl Fn(SessionId, u32, ConnId) -> bool,
    ) -> Option<u64> {
        let sessions = &self.state.sessions;
        let silent = sessions.iter().filter(|(_, session)| {
            let answers = |conn| answers(session.id, session.timeout_ms, conn);
            !session.conn.is_some_and(answers)
        });
        let expiry = silent.map(|(key, _)| sessions.deadline_ms(key)).min();
        let cleanup = cleanup::next_due_ms(&self.state, now);
        expiry.into_iter().chain(cleanup).min()
    }

    /// Hears of the sessions whose client answers, as by a ping at this time: see
    /// [`Engine::next_deadline_of_silent_ms`].
    pub fn hear(&mut self, now: Now, answers: impl Fn(SessionId, u32, ConnId) -> bool) {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        let sessions = &mut self.state.sessions;
        let heard: Vec<_> = sessions
            .iter()
            .filter(|(_, session)| {
                let answers = |conn| answers(session.id, session.timeout_ms, conn);
                session.conn.is_some_and(answers)
            })
            .map(|(key, _)| key)
            .collect();
        for key in heard {
            sessions.touch(key, now);
        }
    }

    /// The time of the next [`Input::Tick`](crate::Input::Tick): never later than [`Engine::next_deadline_ms`], and
    /// found without a search. Earlier if a session was heard of since, unless deadlines are
    /// rounded; and while there are containers or znodes with a time to live, since the time of day
    /// may be set.
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
