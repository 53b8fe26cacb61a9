//! What a restart is to a state: connections, watches and logins are gone, and of the rest what
//! is kept.
//!
//! Source: `docs/zookeeper-protocol.md` section 14.7.

use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    Engine, Now,
    report::digest::Digests,
    state::{State, keys::SessionKey},
};

/// What outlives a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Znodes and sessions. Each session has its whole timeout before it to come back.
    Everything,
    /// Znodes, but no sessions, and so no ephemerals: what an original has that was down for
    /// longer than its sessions lived.
    Data,
    /// Nothing but the built-in znodes: what an original has whose disk was emptied.
    Nothing,
}

impl Engine {
    /// The id that the next session gets.
    #[must_use]
    pub const fn next_session_id(&self) -> SessionId {
        self.state.sessions.next_id
    }

    /// Becomes what a server has that was stopped and started again. Nobody is told: connections
    /// are the caller's to close.
    ///
    /// The zxid never goes back, whatever is kept, or clients that have seen it would be turned
    /// away; where something is not kept it moves on by one. Session ids are not given out again.
    /// No mark outlives it.
    pub fn restart(&mut self, keep: Keep, now: Now) {
        match keep {
            Keep::Everything => {}
            Keep::Data => self.state.end_all_sessions(),
            Keep::Nothing => {
                let settings = self.state.settings.clone();
                return self.replace(Self::new(settings), now);
            }
        }
        self.elapsed_ms = now.elapsed_ms;
        self.digests = self.state.settings.digests.then(Digests::new);
        self.state.start_anew(now);
    }

    /// Becomes another state, as if the server had been stopped and started with that one.
    ///
    /// As for [`restart`](Engine::restart): the zxid and session ids go on from both, and no mark
    /// outlives it.
    pub fn replace(&mut self, other: Self, now: Now) {
        let before = std::mem::replace(self, other);
        let State {
            zxid,
            sessions,
            undo,
            ..
        } = before.state;
        self.skip_to(Zxid(zxid.0 + 1));
        let next_id = &mut self.state.sessions.next_id;
        *next_id = sessions.next_id.max(*next_id);
        self.state.undo.go_on_from(&undo);
        self.restart(Keep::Everything, now);
    }
}

impl State {
    /// Forgets connections, and gives every session its first timeout, from now on.
    fn start_anew(&mut self, now: Now) {
        self.forget_marks();
        let conns: Vec<_> = self.conns.iter().map(|(conn, _)| conn).collect();
        for conn in conns {
            self.detach(conn);
        }
        self.exchanges.clear();
        let sessions: Vec<_> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in sessions {
            let timeout_ms = self.sessions[key].opened_timeout_ms;
            self.sessions.resume(key, now, timeout_ms);
            let session = &mut self.sessions[key];
            session.had_ephemerals = !session.ephemerals.is_empty();
        }
        self.cleanup_ms = None;
        self.schedule_cleanup(now);
        self.deadline_moved = true;
    }

    /// Ends every session, oldest first, all under one zxid.
    fn end_all_sessions(&mut self) {
        self.forget_marks();
        let zxid = self.next_zxid();
        let mut sessions: Vec<(SessionId, SessionKey)> = self
            .sessions
            .iter()
            .map(|(key, session)| (session.id, key))
            .collect();
        sessions.sort_unstable_by_key(|(id, _)| *id);
        for (_, key) in sessions {
            if let Some(conn) = self.sessions[key].conn {
                self.detach(conn);
            }
            for (_, id) in std::mem::take(&mut self.sessions[key].ephemerals) {
                let acl = self.delete(id, zxid);
                self.forget_acl(acl);
            }
            self.sessions.close(key);
        }
    }
}
