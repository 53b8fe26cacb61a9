//! One request's answer: where it goes and under which number.

use minikeeper_protocol::{ErrorCode, ReplyHeader, ReplyRef, Xid, Zxid};

use crate::{effects::Effects, input::ConnId};

/// The answer one request is owed.
pub(crate) struct Answer<'a, E> {
    pub(crate) conn: ConnId,
    pub(crate) xid: Xid,
    pub(crate) effects: &'a mut E,
}

impl<E: Effects> Answer<'_, E> {
    /// Answers with success.
    pub(crate) fn send(&mut self, zxid: Zxid, body: ReplyRef<'_>) {
        let header = ReplyHeader {
            xid: self.xid,
            zxid,
            error: None,
        };
        self.effects.reply(self.conn, header, body);
    }

    /// Answers with an error.
    pub(crate) fn refuse(&mut self, zxid: Zxid, error: ErrorCode) {
        self.refuse_with(zxid, error, ReplyRef::Empty);
    }

    /// Answers with an error and, against the custom, a body.
    pub(crate) fn refuse_with(&mut self, zxid: Zxid, error: ErrorCode, body: ReplyRef<'_>) {
        let header = ReplyHeader {
            xid: self.xid,
            zxid,
            error: Some(error),
        };
        self.effects.reply(self.conn, header, body);
    }

    /// Answers with nothing but the outcome.
    pub(crate) fn done(&mut self, zxid: Zxid, outcome: Result<(), ErrorCode>) {
        match outcome {
            Ok(()) => self.send(zxid, ReplyRef::Empty),
            Err(error) => self.refuse(zxid, error),
        }
    }
}
