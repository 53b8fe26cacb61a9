//! Moves a connection from the server's own universe to the one it belongs to.

use std::sync::Arc;

use minikeeper_engine::{Handover, Input};
use minikeeper_protocol::{ErrorCode, Request, SessionId, Zxid};

use crate::{
    journal::record::RecordKind, net::connection::Connection, outbox::Close, state::UniverseState,
};

/// The znode that clients read outside of their chroot: Curator does so first of all, with a watch.
/// Source: ZooKeeper 3.9, ZooKeeper.getConfig; Curator, EnsembleTracker.
const CONFIG: &[u8] = b"/zookeeper/config";

fn is_for_config(request: &Request) -> bool {
    matches!(request, Request::GetData { path: Some(path), .. } if path.as_bytes() == CONFIG)
}

impl Connection {
    /// Returns whether the connection may still move to another universe.
    #[inline]
    pub(crate) fn is_unbound(&self) -> bool {
        !self.is_bound && self.shared.server.universes.is_used()
    }

    /// Checks whether the next input shows which universe the connection belongs to. If that is
    /// another one, moves the connection there and returns true: the caller then decodes the input
    /// again.
    pub(crate) fn bind(&mut self, inputs: &mut [Input]) -> bool {
        match inputs {
            [Input::Connect { hello, .. }] if hello.session_id != SessionId::NONE => {
                let universes = &self.shared.server.universes;
                let Some(to) = universes.of_session(hello.session_id) else {
                    return false;
                };
                // The handshake is served there.
                self.is_open = false;
                self.move_to(to, None)
            }
            [Input::Request { request, .. }] if is_for_config(request) => {
                // This request shows nothing about the universe. The znode never changes here, and
                // a watch would keep the session from moving.
                if let Request::GetData { watch, .. } = request {
                    *watch = false;
                }
                self.has_seen_root = true;
                false
            }
            [Input::Request { request, .. }] => {
                // The reply contains a zxid of this universe.
                self.has_seen_root |= matches!(request, Request::Ping);
                let Some(path) = request.first_path() else {
                    return false;
                };
                self.set_bound();
                let Some(to) = self.shared.server.universes.of_path(path.as_bytes()) else {
                    return false;
                };
                let turns = &self.shared.turns;
                let left = turns.alter(|engine, now, effects| {
                    let handover = engine.hand_over(self.id);
                    if let (Some(recorder), true) =
                        (effects.observer.recorder(), handover.is_some())
                    {
                        recorder.hand_over(now, self.id);
                    }
                    (handover, engine.zxid())
                });
                // Without a session there is no client to reply to.
                let Some((Some(handover), zxid)) = left else {
                    return false;
                };
                let seen = if self.has_seen_root { zxid } else { Zxid(0) };
                let knows = |shared: &UniverseState, session| {
                    shared.turns.inspect(|engine| engine.has_session(session))
                };
                let universes = &self.shared.server.universes;
                universes.note_moved(handover.session(), &to, knows);
                self.move_to(to, Some((handover, seen)))
            }
            _ => false,
        }
    }

    fn move_to(&mut self, to: Arc<UniverseState>, session: Option<(Handover, Zxid)>) -> bool {
        let Some(member) = self.shared.turns.detach(self.id) else {
            return false;
        };
        self.id = to.turns.attach(member);
        if let Some((handover, seen)) = session {
            let conn = self.id;
            let taken = to.turns.alter(|engine, now, effects| {
                if let Some(recorder) = effects.observer.recorder() {
                    recorder.take_over(now, conn, &handover, seen);
                }
                engine.take_over(conn, handover, seen, now)
            });
            to.turns
                .note(RecordKind::ConnectionOpened, Some(conn), String::new);
            if taken != Some(true) {
                // Without its session the connection would get no reply.
                self.outbox.close(Close::UniverseRefused);
            }
        }
        self.shared = to;
        self.set_bound();
        true
    }

    fn set_bound(&mut self) {
        self.is_bound = true;
        // For the list of unbound sessions.
        self.outbox.set_bound();
    }

    /// Removes the universe's prefix from the paths of requests; refuses requests without it.
    pub(crate) fn rebase(&self, inputs: &mut [Input]) {
        let prefix = self.shared.turns.prefix();
        if prefix.is_empty() {
            return;
        }
        for input in inputs {
            if let Input::Request { conn, request, .. } = input {
                *conn = self.id;
                if !is_for_config(request) && !request.strip_prefix(prefix) {
                    input.refuse(ErrorCode::NoNode);
                }
            }
        }
    }
}
