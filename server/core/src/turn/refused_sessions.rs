//! Remembers which sessions clients have asked for in vain, for tests that wait until a client has noticed that
//! its session has ended.

use std::collections::VecDeque;

use minikeeper_protocol::SessionId;
use parking_lot::Mutex;

/// The maximum number of sessions remembered. The oldest is forgotten first.
const SESSIONS_MAX: usize = 1_024;

/// The sessions that clients have asked for in vain, newest last, each once.
#[derive(Debug, Default)]
pub struct RefusedSessions(Mutex<VecDeque<SessionId>>);

impl RefusedSessions {
    /// Notes that a client asked for this session, which does not exist.
    pub(crate) fn note(&self, session: SessionId) {
        let mut sessions = self.0.lock();
        if sessions.contains(&session) {
            return;
        }
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.push_back(session);
    }

    /// Forgets what was asked before a session ended: one of a snapshot can end again.
    pub(crate) fn ended(&self, session: SessionId) {
        self.0.lock().retain(|refused| *refused != session);
    }

    /// Returns whether a client has asked for this session since it ended.
    pub fn has(&self, session: SessionId) -> bool {
        self.0.lock().contains(&session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_that_ends_again_is_not_noticed() {
        let refused = RefusedSessions::default();
        refused.note(SessionId(1));
        refused.note(SessionId(2));
        refused.ended(SessionId(1));
        assert!(!refused.has(SessionId(1)) && refused.has(SessionId(2)));
    }

    #[test]
    fn sessions_are_forgotten_beyond_the_limit_oldest_first() {
        let refused = RefusedSessions::default();
        for id in 0..=SESSIONS_MAX {
            refused.note(SessionId(i64::try_from(id).unwrap()));
            refused.note(SessionId(1));
        }
        assert!(!refused.has(SessionId(0)) && refused.has(SessionId(1)));
        assert_eq!(refused.0.lock().len(), SESSIONS_MAX);
    }
}
