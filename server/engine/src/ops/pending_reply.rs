//! The reply that a request awaits: its connection and its xid.
//!
//! Source: `docs/zookeeper-protocol.md` section 7.2.

use minikeeper_protocol::{ErrorCode, ReplyHeader, ReplyRef, Xid, Zxid};

use crate::{
    effects::{CloseReason, Effects},
    input::ConnId,
    state::State,
};

/// The reply that one request awaits.
pub(crate) struct PendingReply<'a, E> {
    pub(crate) conn: ConnId,
    pub(crate) xid: Xid,
    pub(crate) effects: &'a mut E,
}

impl<'a, E: Effects> PendingReply<'a, E> {
    /// Returns the pending reply to this request of this connection.
    pub(crate) const fn to(conn: ConnId, xid: Xid, effects: &'a mut E) -> Self {
        Self { conn, xid, effects }
    }

    /// Replies with success.
    pub(crate) fn send(&mut self, zxid: Zxid, body: ReplyRef<'_>) {
        let header = ReplyHeader {
            xid: self.xid,
            zxid,
            error: None,
        };
        self.effects.reply(self.conn, header, body);
    }

    /// Replies with an error.
    pub(crate) fn refuse(&mut self, zxid: Zxid, error: ErrorCode) {
        self.refuse_with(zxid, error, ReplyRef::Empty);
    }

    /// Replies with an error and, unlike most, a body.
    pub(crate) fn refuse_with(&mut self, zxid: Zxid, error: ErrorCode, body: ReplyRef<'_>) {
        let header = ReplyHeader {
            xid: self.xid,
            zxid,
            error: Some(error),
        };
        self.effects.reply(self.conn, header, body);
    }

    /// Replies with the outcome and no body.
    pub(crate) fn done(&mut self, zxid: Zxid, outcome: Result<(), ErrorCode>) {
        match outcome {
            Ok(()) => self.send(zxid, ReplyRef::Empty),
            Err(error) => self.refuse(zxid, error),
        }
    }

    /// Replies with an error and detaches the connection from its session, which lives on: later
    /// requests of the connection are not served.
    pub(crate) fn refuse_and_close(
        mut self,
        state: &mut State,
        zxid: Zxid,
        error: ErrorCode,
        why: CloseReason,
    ) {
        self.refuse(zxid, error);
        self.close(state, why);
    }

    /// Detaches the connection from its session, which lives on.
    pub(crate) fn close(self, state: &mut State, why: CloseReason) {
        state.detach(self.conn);
        self.effects.close(self.conn, why);
    }
}
