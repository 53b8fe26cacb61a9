//! Replays a recording against another server, over sockets.
//!
//! Each message waits for the replies and events that the recording has before it. A [`Player`] gets
//! the recording too: it knows the zxids before and after each record, and what to say of it.

use std::net::SocketAddr;

use bytes::Bytes;
use minikeeper_engine::{ConnId, Input, Keep};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, OpCode, Reader, ReplyHeader, Request, SessionId, Xid, Zxid,
    frame, jute,
};

use crate::recording::{
    RecordedStep, Recording, damaged,
    format::{self, RawRecord, kind},
};
use crate::replay::{
    Player, ReplayError, Replayed,
    canonical::{self, KnownDifferences, Names},
    describe_message,
    link::{Got, Link},
    operation, tell_apart,
};

/// How much time may pass between two pings of sessions that must not expire. Unit: milliseconds.
const PING_EVERY_MS: u64 = 1_000;

/// What a replay needs of another server, besides the protocol.
pub trait ReplayClock {
    /// Lets time pass. `is_strict` says whether connected sessions expire, too, if their clients
    /// send nothing.
    ///
    /// # Errors
    /// When it cannot, with what to do.
    fn advance(&mut self, by_ms: u64, is_strict: bool) -> Result<(), String>;

    /// Returns whether [`ReplayClock::advance`] renews connected sessions unless it is strict.
    fn renews(&self) -> bool {
        false
    }

    /// Expires a session before its timeout. Returns false if the server cannot: then the session is
    /// closed instead.
    ///
    /// # Errors
    /// When the server cannot be reached.
    fn expire(&mut self, session: SessionId) -> Result<bool, String> {
        let _ = session;
        Ok(false)
    }
}

/// Replays a recording against the server at this address, which has an empty tree and no other
/// clients, and compares every reply and event.
///
/// Compares after normalising what differs by nature: session ids, passwords, times, the first zxid.
///
/// # Errors
/// The first difference, or that the server cannot do what the recording needs.
#[doc(hidden)]
pub fn replay_against(
    recording: &Recording,
    address: SocketAddr,
    clock: &mut dyn ReplayClock,
    mut known: KnownDifferences,
) -> Result<Replayed, ReplayError> {
    (known.without_times, known.sorts_names) = (true, true);
    let mut steps = recording.steps();
    let mut player = Player::new(steps.next())?;
    if !player.is_empty() {
        return Err(ReplayError::Server(
            "the recording begins with znodes or sessions, which the other server does not have; \
             record from the start of an empty server, or replay without --against"
                .to_owned(),
        ));
    }
    let mut other = Other {
        address,
        clock,
        known,
        conns: Vec::new(),
        sessions: Vec::new(),
        names: Default::default(),
        is_ahead_known: false,
        admin: None,
        skipped: 0,
        elapsed_ms: player.elapsed_ms(),
    };
    // Its session takes a zxid before all others do.
    if recording
        .records()
        .any(|record| record.kind == kind::ADMINISTER)
    {
        let hello = ConnectRequest::new(i32::MAX);
        let mut link =
            Link::open(address, &hello).map_err(|error| cannot_connect(address, &error))?;
        link.await_handshake();
        link.take();
        other.admin = Some(link);
    }
    let mut replayed = Replayed::default();
    let mut is_whole = true;
    for step in steps {
        let before = player.zxid();
        player.play(&step)?;
        let RecordedStep { cause, effects, .. } = &step;
        is_whole = step.is_whole;
        let zxids = (before.0, player.zxid().0);
        let is_sent = other.give(cause, effects).map_err(|error| match error {
            GiveError::Server(text) => ReplayError::Server(text),
            GiveError::Damaged(error) => damaged(player.record(), &error).into(),
        })?;
        if is_sent {
            replayed.count(&step);
            let differs = other.compare(cause, effects, zxids);
            if let Some((conn, expected, received)) = differs {
                let record = player.record() - effects.len() as u64;
                return Err(player.difference(record, conn, expected, received));
            }
        }
    }
    if is_whole && let Some((conn, received)) = other.rest() {
        let (record, nothing) = (player.record(), "nothing more".to_owned());
        return Err(player.difference(record, conn, nothing, received));
    }
    replayed.skipped = other.skipped;
    Ok(replayed)
}

fn cannot_connect(address: SocketAddr, error: &std::io::Error) -> ReplayError {
    ReplayError::Server(format!(
        "cannot connect to {address}: {error}; is a server running there?"
    ))
}

/// Why a record cannot be given to another server.
enum GiveError {
    Server(String),
    Damaged(minikeeper_protocol::DecodeError),
}

impl From<minikeeper_protocol::DecodeError> for GiveError {
    fn from(error: minikeeper_protocol::DecodeError) -> Self {
        Self::Damaged(error)
    }
}

impl From<String> for GiveError {
    fn from(text: String) -> Self {
        Self::Server(text)
    }
}

/// A connection, by its number in the recording.
struct Conn {
    number: u32,
    link: Link,
    /// The session in the recording.
    session: SessionId,
}

/// A session in the recording and on the server.
struct Pair {
    recorded: (SessionId, Bytes),
    other: (SessionId, Bytes),
}

/// The other server.
struct Other<'a> {
    address: SocketAddr,
    clock: &'a mut dyn ReplayClock,
    known: KnownDifferences,
    conns: Vec<Conn>,
    sessions: Vec<Pair>,
    /// Of the recording and of the server.
    names: [Names; 2],
    /// Whether it is known how far the server's zxids are ahead.
    is_ahead_known: bool,
    /// Makes the changes that the administrator made.
    admin: Option<Link>,
    skipped: u64,
    /// The time of the recording. Unit: milliseconds.
    elapsed_ms: u64,
}

impl Other<'_> {
    fn link(&mut self, number: u32) -> Option<&mut Link> {
        let conn = self.conns.iter_mut().find(|conn| conn.number == number);
        conn.map(|conn| &mut conn.link)
    }

    /// Gives the server a cause. Returns whether what follows is to be compared.
    fn give(&mut self, cause: &RawRecord, effects: &[RawRecord]) -> Result<bool, GiveError> {
        let reader = &mut Reader::new(&cause.body);
        let needs_minikeeper = |what: &str| {
            Err(GiveError::Server(format!(
                "the recording has {what}, which only a minikeeper in this process replays; leave out --against"
            )))
        };
        match cause.kind {
            kind::TIME => {
                let elapsed_ms = reader.long()?.cast_unsigned();
                let by_ms = elapsed_ms.saturating_sub(self.elapsed_ms);
                self.elapsed_ms = elapsed_ms;
                self.advance(by_ms, true, &[])?;
            }
            kind::JUMP => {
                let by_ms = reader.long()?.cast_unsigned();
                reader.bool()?;
                let is_strict = !reader.bool()?;
                let mut renewed = Vec::new();
                while reader.remaining() > 0 {
                    renewed.push(SessionId(reader.long()?));
                }
                self.elapsed_ms += by_ms;
                self.advance(by_ms, is_strict, &renewed)?;
            }
            kind::OPEN..=kind::EXPIRE => return self.input(format::input(cause)?, effects),
            kind::ADMINISTER => {
                let (_, request) = format::request(reader)?;
                if let Some(link) = &mut self.admin {
                    link.send(&[message(&request, Xid(1))]);
                    link.await_replies(1);
                    link.take();
                }
            }
            kind::MARK | kind::FORGET => {}
            kind::RESTART if cause.body.first() == Some(&(Keep::Everything as u8)) => {
                self.conns.clear();
            }
            kind::RESTART => return needs_minikeeper("a restart that does not keep everything"),
            kind::REWIND | kind::STATE => return needs_minikeeper("a restored or imported state"),
            _ => return needs_minikeeper("a client of a universe"),
        }
        Ok(true)
    }

    fn advance(
        &mut self,
        by_ms: u64,
        is_strict: bool,
        renewed: &[SessionId],
    ) -> Result<(), GiveError> {
        let renews = self.clock.renews();
        if is_strict || renews || renewed.is_empty() {
            return Ok(self.clock.advance(by_ms, is_strict)?);
        }
        let mut left_ms = by_ms;
        while left_ms > 0 {
            let step_ms = left_ms.min(PING_EVERY_MS);
            left_ms -= step_ms;
            self.clock.advance(step_ms, true)?;
            for conn in &mut self.conns {
                if renewed.contains(&conn.session) {
                    conn.link.barrier_with(&message(&Request::Ping, Xid::PING));
                }
            }
        }
        Ok(())
    }

    fn input(&mut self, input: Input, effects: &[RawRecord]) -> Result<bool, GiveError> {
        match input {
            Input::Open { .. } | Input::Tick => {}
            Input::Identify { .. } => {
                return Err(GiveError::Server(
                    "the recording has a client with a certificate; replay it without --against"
                        .to_owned(),
                ));
            }
            Input::Connect {
                conn: ConnId(number),
                mut hello,
                ..
            } => {
                let session = hello.session_id;
                if let Some(pair) = self.pair(session) {
                    hello.session_id = pair.other.0;
                    if hello.password.as_ref() == Some(&pair.recorded.1) {
                        hello.password = Some(pair.other.1.clone());
                    }
                }
                hello.last_zxid_seen = self.ahead(hello.last_zxid_seen);
                let address = self.address;
                let mut link = Link::open(address, &hello)
                    .map_err(|error| cannot_connect(address, &error).to_string())?;
                link.await_handshake();
                self.conns.retain(|conn| conn.number != number);
                self.conns.push(Conn {
                    number,
                    link,
                    session,
                });
            }
            Input::Request {
                conn,
                xid,
                mut request,
            } => {
                if let Request::SetWatches { relative_zxid, .. }
                | Request::SetWatches2 { relative_zxid, .. } = &mut request
                {
                    *relative_zxid = self.ahead(*relative_zxid);
                }
                self.send(conn, message(&request, xid));
            }
            Input::Undecodable {
                conn,
                xid,
                consumes_zxid,
            } => {
                let op = if consumes_zxid {
                    OpCode::Multi
                } else {
                    OpCode::GetData
                };
                self.send(conn, header(xid, op.code()));
            }
            Input::UnknownOp { conn, xid } => self.send(conn, header(xid, i32::from(u16::MAX))),
            Input::Refused { .. } => {
                self.skipped += 1;
                return Ok(false);
            }
            Input::Disconnect { conn } => self.conns.retain(|known| known.number != conn.0),
            Input::Expire { session } => {
                if let Some(pair) = self.pair(session) {
                    let (id, password) = pair.other.clone();
                    let is_there = effects.iter().any(|it| it.kind == kind::SESSION_ENDED);
                    if is_there && !self.clock.expire(id)? {
                        self.close_session(id, password)?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Ends a session for a server that cannot expire it.
    fn close_session(&self, session: SessionId, password: Bytes) -> Result<(), GiveError> {
        let hello = ConnectRequest {
            session_id: session,
            password: Some(password),
            ..ConnectRequest::new(i32::MAX)
        };
        let address = self.address;
        let mut link = Link::open(address, &hello)
            .map_err(|error| cannot_connect(address, &error).to_string())?;
        link.await_handshake();
        link.send(&[message(&Request::CloseSession, Xid(1))]);
        link.await_end();
        Ok(())
    }

    fn send(&mut self, conn: ConnId, message: Bytes) {
        if let Some(link) = self.link(conn.0) {
            link.send(&[message]);
        }
    }

    fn pair(&self, recorded: SessionId) -> Option<&Pair> {
        self.sessions
            .iter()
            .find(|pair| pair.recorded.0 == recorded)
    }

    /// Returns the server's zxid for one of the recording.
    fn ahead(&self, zxid: Zxid) -> Zxid {
        if zxid.0 > 0 {
            Zxid(zxid.0 + self.names[1].ahead)
        } else {
            zxid
        }
    }

    /// Compares what the server sends with what followed in the recording. Returns the connection of
    /// the first difference, and the two.
    fn compare(
        &mut self,
        cause: &RawRecord,
        effects: &[RawRecord],
        (before, after): (i64, i64),
    ) -> Option<(u32, String, String)> {
        let op = operation(cause);
        let ends_by_itself = matches!(cause.kind, kind::TICK | kind::EXPIRE);
        let is_open = ends_by_itself || op == Some(OpCode::CloseSession);
        if cause.kind == kind::TICK {
            for names in &mut self.names {
                names.join_zxids(before, after);
            }
        }
        let mut conns: Vec<u32> = Vec::new();
        for effect in effects {
            let number = Reader::new(&effect.body)
                .int()
                .map_or(0, i32::cast_unsigned);
            if effect.kind <= kind::CLOSED && !conns.contains(&number) {
                conns.push(number);
            }
        }
        for number in conns {
            let of_conn = |effect: &&RawRecord| effect.body.starts_with(&number.to_be_bytes());
            let frames = effects.iter().filter(of_conn);
            let frames = frames.filter(|effect| effect.kind <= kind::HELD);
            let expected: Vec<Bytes> = frames.map(|effect| unframed(&effect.body)).collect();
            let closed = |effect: &&RawRecord| effect.kind == kind::CLOSED;
            let closes = effects.iter().filter(of_conn).any(|effect| closed(&effect));
            let Some(link) = self.link(number) else {
                continue;
            };
            if closes && ends_by_itself {
                // It may lose the events of that time.
                link.await_end();
                while link.take().is_some() {}
                continue;
            }
            let mut got = Vec::new();
            for _ in &expected {
                if link.newest().is_none() {
                    link.fetch();
                }
                got.extend(link.take());
            }
            if closes && got.len() == expected.len() {
                link.await_end();
                match link.take() {
                    Some(Got::Closed) | None => {}
                    Some(other) => {
                        let text = text(Some(&other), op);
                        return Some((number, "the connection is closed".to_owned(), text));
                    }
                }
            }
            if let Some((expected, got)) = self.differ(number, (cause, op), expected, got, is_open)
            {
                return Some((number, expected, got));
            }
        }
        None
    }

    fn differ(
        &mut self,
        number: u32,
        (cause, op): (&RawRecord, Option<OpCode>),
        expected: Vec<Bytes>,
        got: Vec<Got>,
        is_open: bool,
    ) -> Option<(String, String)> {
        if cause.kind == kind::CONNECT
            && self.conns.last().is_some_and(|conn| conn.number == number)
        {
            self.note_session(&expected, &got);
        }
        let mut sides: [Vec<(Vec<u8>, Option<String>)>; 2] = Default::default();
        for message in expected {
            self.learn(&message, got.get(sides[0].len()));
            let normal = self.normal(0, cause, op, &message);
            sides[0].push((normal, None));
        }
        for got in &got {
            sides[1].push(match got {
                Got::Message(message) => (self.normal(1, cause, op, message), None),
                _ => (Vec::new(), Some(text(Some(got), op))),
            });
        }
        if is_open {
            // Events come in any order; each side has few.
            for side in &mut sides {
                for at in 1..side.len() {
                    let mut to = at;
                    while to > 0 && side[to].0 < side[to - 1].0 {
                        side.swap(to, to - 1);
                        to -= 1;
                    }
                }
            }
        }
        let [expected, got] = sides;
        let at = (0..expected.len())
            .find(|&at| got.get(at).map(|it| &it.0) != expected.get(at).map(|it| &it.0))?;
        // In their normal forms, because what differs by nature is not the difference.
        let shown = |normal: &[u8]| describe_message(&Bytes::copy_from_slice(normal), op);
        let expected = &expected[at].0;
        Some(match got.into_iter().nth(at) {
            None => (shown(expected), text(None, op)),
            Some((_, Some(no_message))) => (shown(expected), no_message),
            Some((received, None)) => {
                tell_apart((shown(expected), shown(&received)), expected, &received)
            }
        })
    }

    /// Learns from the first reply how far the server's zxids are ahead.
    fn learn(&mut self, expected: &Bytes, got: Option<&Got>) {
        if self.is_ahead_known {
            return;
        }
        if let (Ok(expected), Some(Got::Message(got))) =
            (ReplyHeader::decode(&mut Reader::new(expected)), got)
            && let Ok(got) = ReplyHeader::decode(&mut Reader::new(got))
            && expected.xid.0 > 0
            && expected.xid == got.xid
            && expected.zxid.0 > 0
        {
            self.is_ahead_known = true;
            self.names[1].ahead = got.zxid.0 - expected.zxid.0;
        }
    }

    fn note_session(&mut self, expected: &[Bytes], got: &[Got]) {
        let decode = |message: &Bytes| {
            let response = ConnectResponse::decode(&mut Reader::new(message)).ok()?;
            let id = response.session_id;
            (id != SessionId::NONE).then(|| (id, response.password.unwrap_or_default()))
        };
        let (Some(message), Some(Got::Message(other))) = (expected.first(), got.first()) else {
            return;
        };
        if let (Some(recorded), Some(other)) = (decode(message), decode(other)) {
            if let Some(conn) = self.conns.last_mut() {
                conn.session = recorded.0;
            }
            self.sessions.retain(|pair| pair.recorded.0 != recorded.0);
            self.sessions.push(Pair { recorded, other });
        }
    }

    fn normal(
        &mut self,
        side: usize,
        cause: &RawRecord,
        op: Option<OpCode>,
        message: &Bytes,
    ) -> Vec<u8> {
        let is_event = message.starts_with(&Xid::EVENT.0.to_be_bytes());
        if cause.kind == kind::CONNECT && !is_event {
            return canonical::handshake(message, &mut self.names[side]);
        }
        canonical::frame(message, op, &self.names[side], &self.known)
    }

    /// Returns the first message that the recording does not have.
    fn rest(&mut self) -> Option<(u32, String)> {
        self.conns.iter_mut().find_map(|conn| {
            if conn.link.is_over() {
                return None;
            }
            conn.link.barrier();
            let got = conn.link.take()?;
            Some((conn.number, text(Some(&got), None)))
        })
    }
}

fn message(request: &Request, xid: Xid) -> Bytes {
    let mut out = Vec::new();
    request.encode(xid, &mut out);
    Bytes::from(out).slice(4..)
}

fn header(xid: Xid, op: i32) -> Bytes {
    let mut out = Vec::new();
    jute::put_int(&mut out, xid.0);
    jute::put_int(&mut out, op);
    out.into()
}

/// Returns the message of a record that has a connection and a frame.
fn unframed(body: &Bytes) -> Bytes {
    let framed = body.slice(4..);
    match frame::next(&framed, usize::MAX) {
        Ok(Some(message)) => framed.slice(message),
        _ => framed,
    }
}

fn text(got: Option<&Got>, op: Option<OpCode>) -> String {
    match got {
        Some(Got::Message(message)) => describe_message(message, op),
        Some(Got::Closed) => "the connection is closed".to_owned(),
        Some(Got::Silence) | None => "nothing for 8 s".to_owned(),
    }
}
