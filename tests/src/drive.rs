//! An engine with recorded effects and a manual clock.
//!
//! Every input and every effect passes through the codec, as on a real connection: requests are
//! encoded and decoded before they are applied, replies and events are encoded into frames and
//! decoded. Every input ends with a check of all invariants.

use bytes::Bytes;
use minikeeper_engine::{ConnId, Engine, Input, Limit, Mark, Now, Settings};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, DecodeError, ErrorCode, OpCode, Reader, Reply, Request,
    RequestHeader, SessionId, Xid, Zxid,
};

pub use crate::sent::{Effect, Sent, parse};
use crate::{kept::Kept, recorder::Recorder, sent::message};

/// The time at which the wall clock of a [`Drive`] starts, in milliseconds since 1970. Arbitrary.
pub const WALL_START_MS: i64 = 1_704_067_200_000;

/// An engine, its clock, and the record of its effects.
#[derive(Debug)]
pub struct Drive {
    engine: Engine,
    now: Now,
    /// The sessions that ended with the newest input, in order.
    ended: Vec<SessionId>,
    /// The limits that the newest input reached.
    limits: Vec<Limit>,
    /// Every change since the start.
    kept: Vec<Kept>,
}

impl Drive {
    /// Starts an engine.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings),
            now: Now {
                elapsed_ms: 0,
                wall_ms: WALL_START_MS,
            },
            ended: Vec::new(),
            limits: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// The engine, for inspection.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The current time.
    #[must_use]
    pub const fn now(&self) -> Now {
        self.now
    }

    /// The sessions that ended with the newest input, in order.
    #[must_use]
    pub fn ended(&self) -> &[SessionId] {
        &self.ended
    }

    /// The limits that the newest input reached.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Every change since the start, as a log would record it.
    #[must_use]
    pub fn kept(&self) -> &[Kept] {
        &self.kept
    }

    /// Applies one input and checks all invariants.
    ///
    /// # Errors
    /// When an invariant is broken, or an effect does not survive the codec.
    pub fn apply(&mut self, input: &Input) -> Result<Vec<Effect>, String> {
        let op = match input {
            Input::Request { request, .. } => Some(request.op()),
            _ => None,
        };
        let mut recorder = Recorder::new(op);
        let before = self.engine.zxid();
        self.engine.apply(self.now, input, &mut recorder);
        (self.ended, self.limits) = (recorder.ended, recorder.limits);
        self.kept.append(&mut recorder.kept);
        if let Some(fault) = recorder.fault {
            return Err(fault);
        }
        if self.engine.zxid() < before {
            return Err(format!("zxid went back from {before}"));
        }
        self.engine.check().map_err(|broken| broken.to_string())?;
        Ok(recorder.effects)
    }

    /// Sets a mark to rewind to.
    pub fn mark(&mut self) -> Mark {
        self.engine.mark()
    }

    /// Rewinds to a mark and checks all invariants. Returns the connections to close.
    ///
    /// # Errors
    /// When the mark does not exist, or an invariant is broken.
    pub fn rewind(&mut self, mark: Mark) -> Result<Vec<ConnId>, String> {
        let mut recorder = Recorder::new(None);
        if !self.engine.rewind(mark, self.now, &mut recorder) {
            return Err(format!("{mark:?} does not exist"));
        }
        self.engine.check().map_err(|broken| broken.to_string())?;
        Ok(recorder
            .effects
            .iter()
            .filter(|effect| matches!(effect.sent, Sent::Close(_)))
            .map(|effect| ConnId(effect.conn))
            .collect())
    }

    /// Applies the first message of a connection.
    ///
    /// # Errors
    /// As [`Drive::apply`].
    pub fn connect(&mut self, conn: u32, hello: &ConnectRequest) -> Result<Vec<Effect>, String> {
        let mut out = Vec::new();
        hello.encode(&mut out);
        let hello = ConnectRequest::decode(&mut Reader::new(&message(&out)))
            .map_err(|error| format!("handshake: {error}"))?;
        self.apply(&Input::Connect {
            conn: ConnId(conn),
            hello,
            is_read_only: false,
        })
    }

    /// Opens a new session with a timeout of ten seconds.
    ///
    /// # Errors
    /// As [`Drive::apply`], and when the engine does not reply to the handshake.
    pub fn open(&mut self, conn: u32) -> Result<ConnectResponse, String> {
        match self.connect(conn, &ConnectRequest::new(10_000))?.first() {
            Some(Effect {
                sent: Sent::Connected(response),
                ..
            }) => Ok(response.clone()),
            other => Err(format!("unexpected response to the handshake: {other:?}")),
        }
    }

    /// Applies a request.
    ///
    /// # Errors
    /// As [`Drive::apply`].
    pub fn request(
        &mut self,
        conn: u32,
        xid: i32,
        request: &Request,
    ) -> Result<Vec<Effect>, String> {
        let mut out = Vec::new();
        request.encode(Xid(xid), &mut out);
        self.message(conn, &message(&out))
    }

    /// Applies a request and returns only its reply.
    ///
    /// # Errors
    /// As [`Drive::apply`], and when there is no reply.
    pub fn ask(&mut self, conn: u32, request: &Request) -> Result<Answer, String> {
        let effects = self.request(conn, 1, request)?;
        effects
            .into_iter()
            .find_map(|effect| match effect.sent {
                Sent::Reply { zxid, outcome, .. } if effect.conn == conn => {
                    Some(Answer { zxid, outcome })
                }
                _ => None,
            })
            .ok_or_else(|| format!("no reply to {request:?}"))
    }

    /// Decodes a message as a server does, and applies it.
    ///
    /// # Errors
    /// As [`Drive::apply`], and when the message closes the connection without a reply.
    pub fn message(&mut self, conn: u32, message: &Bytes) -> Result<Vec<Effect>, String> {
        let conn = ConnId(conn);
        let input = decode(conn, message).map_err(|error| format!("request header: {error}"))?;
        self.apply(&input)
    }

    /// Disconnects a connection.
    ///
    /// # Errors
    /// As [`Drive::apply`].
    pub fn disconnect(&mut self, conn: u32) -> Result<Vec<Effect>, String> {
        self.apply(&Input::Disconnect { conn: ConnId(conn) })
    }

    /// Expires a session before its timeout.
    ///
    /// # Errors
    /// As [`Drive::apply`].
    pub fn expire(&mut self, session: SessionId) -> Result<Vec<Effect>, String> {
        self.apply(&Input::Expire { session })
    }

    /// Moves the clock to the next deadline and ticks, but never past `target_ms`.
    ///
    /// Returns `true` if further deadlines may follow, `false` once the clock shows `target_ms`.
    ///
    /// # Errors
    /// As [`Drive::apply`].
    pub fn step_to(&mut self, target_ms: u64) -> Result<(bool, Vec<Effect>), String> {
        match self.engine.next_deadline_ms(self.now) {
            Some(deadline_ms) if deadline_ms <= target_ms => {
                self.jump(deadline_ms.max(self.now.elapsed_ms));
                Ok((true, self.apply(&Input::Tick)?))
            }
            _ => {
                self.jump(target_ms);
                Ok((false, Vec::new()))
            }
        }
    }

    /// Advances the clock, with a tick at every deadline on the way.
    ///
    /// # Errors
    /// As [`Drive::apply`].
    pub fn advance(&mut self, by_ms: u64) -> Result<Vec<Effect>, String> {
        let target_ms = self.now.elapsed_ms + by_ms;
        let mut all = Vec::new();
        loop {
            let (again, effects) = self.step_to(target_ms)?;
            all.extend(effects);
            if !again {
                return Ok(all);
            }
        }
    }

    /// Advances the clock over a span without deadlines.
    fn jump(&mut self, elapsed_ms: u64) {
        self.engine.skip_idle_cleanups(self.now, elapsed_ms);
        self.set_elapsed(elapsed_ms);
    }

    /// Moves the clock without ticking.
    pub const fn set_elapsed(&mut self, elapsed_ms: u64) {
        self.now.elapsed_ms = elapsed_ms;
        self.now.wall_ms = WALL_START_MS + elapsed_ms.cast_signed();
    }
}

/// The reply to one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The zxid in the reply header.
    pub zxid: Zxid,
    /// The body, or the error code.
    pub outcome: Result<Reply, ErrorCode>,
}

/// Decodes a message as a server does: a malformed body is an input too.
///
/// # Errors
/// When the message closes its connection: a short header, a malformed auth or sasl packet.
pub fn decode(conn: ConnId, message: &Bytes) -> Result<Input, DecodeError> {
    let mut reader = Reader::new(message);
    let RequestHeader { xid, op } = RequestHeader::decode(&mut reader)?;
    let Some(op) = OpCode::from_code(op) else {
        return Ok(Input::UnknownOp { conn, xid });
    };
    match Request::decode(op, &mut reader) {
        Ok(Request::Sasl { token: None }) => Err(DecodeError::Null { field: "token" }),
        Ok(request) => Ok(Input::Request { conn, xid, request }),
        Err(error) if matches!(op, OpCode::Auth | OpCode::Sasl) => Err(error),
        Err(_) => Ok(Input::Undecodable {
            conn,
            xid,
            consumes_zxid: op == OpCode::Multi,
        }),
    }
}
