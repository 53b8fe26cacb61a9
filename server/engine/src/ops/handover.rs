//! A session that moves from one engine to another, before anything was done with it.

use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    Engine,
    auth::identities::Identity,
    input::{ConnId, Now},
    state::undo::Undo,
};

/// A session on its way from one engine to another.
#[derive(Debug)]
pub struct Handover {
    session: SessionId,
    timeout_ms: u32,
    identities: Vec<Identity>,
}

impl Handover {
    /// Whose it is.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }
}

impl Engine {
    /// Whether there is such a session.
    #[must_use]
    pub fn has_session(&self, id: SessionId) -> bool {
        self.state.sessions.find(id).is_some()
    }

    /// Lets a session go, with the connection it goes over: nothing of it is left here. `None` if
    /// the connection has no session, or one that owns or watches something here.
    pub fn hand_over(&mut self, conn: ConnId) -> Option<Handover> {
        let state = &mut self.state;
        let entry = state.conns.get(conn)?;
        let session = &state.sessions[entry.session];
        let has_watches = state.watches.conn_watches(conn).next().is_some();
        if has_watches || !session.ephemerals.is_empty() {
            return None;
        }
        let handover = Handover {
            session: session.id,
            timeout_ms: session.timeout_ms,
            identities: state.identities.get(entry.identities).added().to_vec(),
        };
        state.detach(conn);
        state.close_session(entry.session);
        Some(handover)
    }

    /// Takes a session up as if it had been opened here, over a connection that was announced.
    ///
    /// Uses up a zxid, as opening one does; `seen` is the newest one its client can have seen, and
    /// is never gone below. False if there is such a session already, and it is connected.
    pub fn take_over(&mut self, conn: ConnId, handover: Handover, seen: Zxid, now: Now) -> bool {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        let state = &mut self.state;
        let (id, timeout_ms) = (handover.session, handover.timeout_ms);
        state.zxid = state.zxid.max(seen);
        let key = match state.sessions.find(id) {
            None => {
                state.next_zxid();
                let key = state.sessions.take_over(id, timeout_ms, conn, now);
                state.undo.note(|| Undo::SessionOpened(key));
                key
            }
            // It was there when this engine was forked, and waits for its client.
            Some(key) if state.sessions[key].conn.is_none() => {
                state.sessions.resume(key, now, timeout_ms);
                key
            }
            Some(_) => return false,
        };
        state.attach(conn, key);
        for identity in handover.identities {
            state.add_identity(conn, identity);
        }
        state.deadline_moved = true;
        true
    }
}
