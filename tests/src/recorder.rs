//! Records the effects of an engine.

use bytes::Bytes;
use minikeeper_engine::{Change, ChangeHead, CloseReason, ConnId, Effects, Event, Limit};
use minikeeper_protocol::{
    ConnectResponse, OpCode, Reader, ReplyHeader, ReplyRef, SessionId, Zxid, event,
};

use crate::{
    kept::Kept,
    sent::{Effect, Sent, message, parse},
};

/// Records effects as the owned values that a client would decode.
pub(crate) struct Recorder {
    /// The operation of the request being served.
    op: Option<OpCode>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) ended: Vec<SessionId>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) fault: Option<String>,
    /// The changes that a log would hold.
    pub(crate) kept: Vec<Kept>,
}

impl Recorder {
    pub(crate) const fn new(op: Option<OpCode>) -> Self {
        Self {
            op,
            effects: Vec::new(),
            ended: Vec::new(),
            limits: Vec::new(),
            fault: None,
            kept: Vec::new(),
        }
    }

    fn frame(&mut self, to: ConnId, out: &[u8]) {
        let message = message(out);
        match parse(&message, self.op) {
            Ok(sent) => self.effects.push(Effect {
                conn: to.0,
                sent,
                message,
            }),
            Err(fault) => self.fault = Some(fault),
        }
    }
}

impl Effects for Recorder {
    fn connected(&mut self, to: ConnId, response: &ConnectResponse) {
        let mut out = Vec::new();
        response.encode(&mut out);
        let message = message(&out);
        match ConnectResponse::decode(&mut Reader::new(&message)) {
            Ok(response) => self.effects.push(Effect {
                conn: to.0,
                sent: Sent::Connected(response),
                message,
            }),
            Err(error) => self.fault = Some(format!("handshake response: {error}")),
        }
    }

    fn reply(&mut self, to: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        let mut out = Vec::new();
        body.encode(header, &mut out, ReplyRef::BYTES_MAX)
            .expect("a reply of the engine fits a frame");
        self.frame(to, &out);
    }

    fn event(&mut self, to: ConnId, event: &Event<'_>) {
        let mut out = Vec::new();
        event::encode(event.kind, event.path, event.zxid, &mut out);
        self.frame(to, &out);
    }

    fn close(&mut self, conn: ConnId, why: CloseReason) {
        self.effects.push(Effect {
            conn: conn.0,
            sent: Sent::Close(why),
            message: Bytes::new(),
        });
    }

    fn limit_hit(&mut self, limit: Limit, _: usize) {
        self.limits.push(limit);
    }

    fn session_ended(&mut self, session: SessionId, _: bool) {
        self.ended.push(session);
    }

    fn keeps_changes(&self) -> bool {
        true
    }

    fn changed(&mut self, head: ChangeHead, change: &Change<'_>) {
        self.kept.push(Kept::new(head, change));
    }

    fn taken_back(&mut self, zxid: Zxid) {
        self.kept.retain(|kept| kept.zxid() != zxid);
    }
}
