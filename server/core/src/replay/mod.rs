//! Replays a recording: gives an engine of this process the same once more, and compares what follows.
//!
//! `against` sends a recording to another server, over [`link`], with [`canonical`] to compare what
//! differs by nature or by [`version`].

pub(crate) mod against;
pub mod canonical;
pub mod link;
pub mod version;

use std::{error::Error, fmt, sync::Arc};

use bytes::Bytes;
use minikeeper_engine::{ConnId, Engine, Input, Keep, Mark, Now};
use minikeeper_protocol::{
    ConnectResponse, OpCode, Reader, Reply, ReplyHeader, SessionId, WatcherEvent, Xid, Zxid, frame,
};

pub use self::against::{ReplayClock, replay_against};
use crate::{
    clock::Clock,
    config::Config,
    ensemble::Ensemble,
    outbox::{Close, Outbox},
    peer::Peer,
    recording::{
        RecordedStep, Recording, RecordingError, damaged,
        format::{self, RawRecord, kind},
        null,
        recorder::Recorder,
    },
    turn::{effects::TurnEffects, members::Member, stats::ConnStats, turns::Turns},
};

/// The journal of a replay has the requests that an error shows. Unit: bytes.
const JOURNAL_BYTES: usize = 64 << 10;

/// How many entries of the journal an error shows.
const ENTRIES_SHOWN: usize = 10;

/// The number of built-in znodes.
const BUILT_IN: usize = 4;

/// The highest number of a connection that a recording may have.
const CONNS_MAX: u32 = 1 << 18;

/// The latest time that a recording may have, about a thousand years. Unit: milliseconds.
const TIME_MAX_MS: u64 = 1 << 45;

/// The number of bytes that two messages with the same description show, from the first that differs on.
const BYTES_APART: usize = 24;

/// How many bytes of a reply an error shows if the reply cannot be decoded.
const BYTES_SHOWN: usize = 400;

/// The result of a replay without difference.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Replayed {
    /// The number of messages of clients that were replayed, handshakes included.
    pub requests: u64,
    /// The number of replies and events that were compared.
    pub compared: u64,
    /// The number of messages that another server was not sent, because faults answered them.
    pub skipped: u64,
}

/// Why a replay is not equal to its recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The recording cannot be replayed.
    Recording(RecordingError),
    /// The server does something else.
    Difference(Box<ReplayDifference>),
    /// The other server cannot be reached, or cannot do what the recording needs.
    Server(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording(error) => error.fmt(f),
            Self::Difference(difference) => difference.fmt(f),
            Self::Server(text) => f.write_str(text),
        }
    }
}

impl Error for ReplayError {}

impl From<RecordingError> for ReplayError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

/// The first difference between a recording and its replay.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayDifference {
    /// The number of the record that caused it, the first being 1.
    pub record: u64,
    /// What the server was given.
    pub given: String,
    /// The connection that received something else, by its number in the recording.
    pub conn: u32,
    /// What the recording has.
    pub expected: String,
    /// What was received.
    pub received: String,
    /// The last entries of the journal up to there.
    pub before: Vec<String>,
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            record,
            given,
            conn,
            expected,
            received,
            before,
        } = self;
        write!(
            f,
            "record {record} differs\n  given:    {given}\n  expected: {expected}\n  \
             received: {received}\n  by connection {conn}; before that:"
        )?;
        for entry in before {
            write!(f, "\n    {entry}")?;
        }
        Ok(())
    }
}

/// Replays a recording in this process, on a server of its own, and compares every reply and event.
///
/// A recording that is cut off is replayed up to its last whole record.
///
/// # Errors
/// The first difference, or that a record is damaged.
pub fn replay(recording: &Recording) -> Result<Replayed, ReplayError> {
    let mut steps = recording.steps();
    let mut player = Player::new(steps.next())?;
    let mut replayed = Replayed::default();
    for step in steps {
        player.play(&step)?;
        replayed.count(&step);
    }
    Ok(replayed)
}

impl Replayed {
    pub(crate) fn count(&mut self, step: &RecordedStep) {
        let is_message = (kind::CONNECT..=kind::REFUSED).contains(&step.cause.kind);
        self.requests += u64::from(is_message);
        self.compared += step.effects.len() as u64;
    }
}

/// A server without connections, to which a recording is given record by record.
pub(crate) struct Player {
    turns: Turns,
    now: Now,
    marks: Vec<Mark>,
    /// The number of the record that is being given.
    record: u64,
}

impl Player {
    /// Starts as the recording did.
    pub(crate) fn new(start: Option<RecordedStep>) -> Result<Self, RecordingError> {
        let start = start.ok_or(RecordingError::Empty)?.cause;
        let reader = &mut Reader::new(&start.body);
        let damaged = |fault: &dyn fmt::Display| damaged(1, fault);
        let now = time(reader).map_err(|error| damaged(&error))?;
        let prefix = format::text(reader).map_err(|error| damaged(&error))?;
        let settings = format::settings(reader).map_err(|error| damaged(&error))?;
        if settings.first_session_id.0 > i64::MAX >> 1 {
            return Err(damaged(&"session ids are too high"));
        }
        let config = Config {
            reply_bytes_max: Some(settings.reply_bytes_max),
            outbox_bytes_max: usize::MAX,
            unsent_bytes_max: usize::MAX,
            ..Config::default()
        };
        let mut engine = format::state(reader, settings).map_err(|error| damaged(&error))?;
        engine.restart(Keep::Everything, now);
        let clock = Clock::frozen();
        clock.set(now);
        let turns = Turns::new(engine, clock, &config, Arc::new(Ensemble::new(Vec::new())))
            .with_prefix(prefix)
            .with_journal(JOURNAL_BYTES);
        let player = Self {
            turns,
            now,
            marks: Vec::new(),
            record: 1,
        };
        player.turns.turn(|core, now| {
            let recorder = Recorder::new(&core.engine, now, "", usize::MAX);
            if let Some(sink) = &mut core.sink {
                sink.recorder = Some(Box::new(recorder));
            }
            Vec::new()
        });
        Ok(player)
    }

    /// The time that the recording has reached, in milliseconds since the start of its server.
    pub(crate) const fn elapsed_ms(&self) -> u64 {
        self.now.elapsed_ms
    }

    pub(crate) fn zxid(&self) -> Zxid {
        self.turns.inspect(Engine::zxid)
    }

    /// Returns whether it began without sessions, and with no znodes but the built-in ones.
    pub(crate) fn is_empty(&self) -> bool {
        let counts = self.turns.inspect(Engine::counts);
        counts.sessions == 0 && counts.znodes <= BUILT_IN
    }

    /// Gives the server a cause, and compares what follows with these effects.
    pub(crate) fn play(&mut self, step: &RecordedStep) -> Result<(), ReplayError> {
        let RecordedStep {
            cause,
            effects,
            is_whole,
        } = step;
        self.record += 1;
        let record = self.record;
        drop(self.take_output());
        self.give(cause).map_err(|error| damaged(record, &error))?;
        self.record += effects.len() as u64;
        let output = self.take_output();
        let got: Vec<_> = output
            .iter()
            .filter(|record| (kind::EFFECTS..kind::NOTES).contains(&record.kind))
            .collect();
        let is_equal = |at: usize| {
            got.get(at)
                .map(|record| (sent_if_held(record), &record.body))
                == effects
                    .get(at)
                    .map(|record| (sent_if_held(record), &record.body))
        };
        let compared = match is_whole {
            true => got.len().max(effects.len()),
            false => effects.len(),
        };
        let Some(at) = (0..compared).find(|at| !is_equal(*at)) else {
            return Ok(());
        };
        let op = operation(cause);
        let text = |record: Option<&RawRecord>| match record {
            None => "nothing".to_owned(),
            Some(record) => describe(record, op),
        };
        let conn = effects
            .get(at)
            .or_else(|| got.get(at).copied())
            .map(conn_of);
        let (expected, received) = (effects.get(at), got.get(at).copied());
        let body =
            |record: Option<&RawRecord>| record.map(|it| it.body.clone()).unwrap_or_default();
        let texts = (text(expected), text(received));
        let (expected, received) = tell_apart(texts, &body(expected), &body(received));
        Err(self.difference(record, conn.unwrap_or_default(), expected, received))
    }

    /// Makes the error for this difference, with what the journal has.
    pub(crate) fn difference(
        &self,
        record: u64,
        conn: u32,
        expected: String,
        received: String,
    ) -> ReplayError {
        let copied = self.turns.journal(|journal| journal.copy(0));
        let entries = copied.iter().flat_map(|copied| copied.entries());
        let mut before: Vec<_> = entries.map(|entry| entry.to_string()).collect();
        let given = before.last().cloned().unwrap_or_default();
        before.drain(..before.len().saturating_sub(ENTRIES_SHOWN));
        ReplayError::Difference(Box::new(ReplayDifference {
            record,
            given,
            conn,
            expected,
            received,
            before,
        }))
    }

    /// The number of the last cause.
    pub(crate) const fn record(&self) -> u64 {
        self.record
    }

    fn take_output(&self) -> Vec<RawRecord> {
        let taken = self
            .turns
            .recorder(|recorder| Some(recorder.as_mut()?.take_bytes()));
        let mut bytes = Bytes::from(taken.flatten().unwrap_or_default());
        if bytes.starts_with(&format::MAGIC) {
            bytes = bytes.slice(format::MAGIC.len()..);
        }
        std::iter::from_fn(|| format::next(&mut bytes)).collect()
    }

    fn alter<T>(&self, change: impl FnOnce(&mut Engine, Now, &mut TurnEffects<'_>) -> T) {
        self.turns.alter(|engine, now, effects| {
            change(engine, now, effects);
        });
    }

    fn give(&mut self, cause: &RawRecord) -> Result<(), minikeeper_protocol::DecodeError> {
        let reader = &mut Reader::new(&cause.body);
        match cause.kind {
            kind::TIME => {
                let now = time(reader)?;
                if now.elapsed_ms < self.now.elapsed_ms {
                    return Err(null("time"));
                }
                self.now = now;
                self.turns.change_clock(|clock| clock.set(now));
            }
            kind::OPEN..=kind::EXPIRE => self.input(&format::input(cause)?)?,
            kind::ADMINISTER => {
                let (_, request) = format::request(reader)?;
                self.alter(|engine, now, effects| effects.administer(engine, now, &request));
            }
            kind::JUMP => self.jump(reader)?,
            kind::MARK => {
                let mark = self.turns.alter(|engine, now, effects| {
                    let mark = engine.mark();
                    if let Some(recorder) = effects.observer.recorder() {
                        recorder.mark(now, mark);
                    }
                    mark
                });
                self.marks.extend(mark);
            }
            kind::REWIND | kind::FORGET => {
                let place = usize::try_from(reader.int()?).unwrap_or(usize::MAX);
                let mark = *self.marks.get(place).ok_or(null("mark"))?;
                self.alter(|engine, now, effects| match cause.kind {
                    kind::REWIND => effects.rewind(engine, now, mark),
                    _ => engine.forget_mark(mark),
                });
            }
            kind::RESTART => {
                let keep = match cause.body.first() {
                    Some(0) => Keep::Everything,
                    Some(1) => Keep::Data,
                    _ => Keep::Nothing,
                };
                self.alter(|engine, now, _| engine.restart(keep, now));
            }
            kind::STATE => {
                let settings = self.turns.inspect(|engine| {
                    let mut settings = engine.settings().clone();
                    settings.first_session_id = engine.next_session_id();
                    settings
                });
                let mut state = format::state(reader, settings).map_err(|_| null("state"))?;
                self.alter(|engine, now, _| {
                    state.restart(Keep::Everything, now);
                    *engine = state;
                });
            }
            kind::TAKE_OVER => {
                let conn = self.conn(reader)?;
                let seen = Zxid(reader.long()?.min(i64::MAX >> 1));
                let handover = format::handover(reader)?;
                if handover.session().0 <= 0 || handover.session().0 > i64::MAX >> 1 {
                    return Err(null("session"));
                }
                self.alter(|engine, now, _| engine.take_over(conn, handover, seen, now));
            }
            kind::HAND_OVER => {
                let conn = self.conn(reader)?;
                self.alter(|engine, _, _| engine.hand_over(conn));
            }
            _ => return Err(null("kind")),
        }
        Ok(())
    }

    fn conn(&self, reader: &mut Reader<'_>) -> Result<ConnId, minikeeper_protocol::DecodeError> {
        let conn = ConnId(reader.int()?.cast_unsigned());
        self.ensure(conn)?;
        Ok(conn)
    }

    /// Makes sure that the turns know this connection.
    fn ensure(&self, conn: ConnId) -> Result<(), minikeeper_protocol::DecodeError> {
        if conn.0 > CONNS_MAX {
            return Err(null("connection"));
        }
        self.turns.turn(|core, now| {
            let key = conn.0 as usize;
            // The slab chooses its keys. Those on the way stay: to remove them, and to make them again for the
            // next connection, would take time for each record by the highest number of a connection.
            while !core.members.contains(key) {
                core.registered += 1;
                let outbox = Arc::new(Outbox::default());
                outbox.set_open(true);
                // No task takes what is sent.
                outbox.close(Close::Asked);
                let stats = ConnStats::new(core.registered, Peer::Local, 0, now.wall_ms);
                core.members.insert(Member {
                    outbox,
                    session: SessionId::NONE,
                    stats: Box::new(stats),
                });
            }
            Vec::new()
        });
        Ok(())
    }

    fn input(&self, input: &Input) -> Result<(), minikeeper_protocol::DecodeError> {
        let conn = match input {
            Input::Tick | Input::Expire { .. } => {
                self.turns.apply_unasked(input);
                return Ok(());
            }
            Input::Open { conn, .. }
            | Input::Identify { conn, .. }
            | Input::Connect { conn, .. }
            | Input::Request { conn, .. }
            | Input::Undecodable { conn, .. }
            | Input::UnknownOp { conn, .. }
            | Input::Refused { conn, .. }
            | Input::Disconnect { conn } => *conn,
        };
        self.ensure(conn)?;
        self.turns.turn(|core, now| {
            if let Input::Disconnect { .. } | Input::Open { .. } | Input::Identify { .. } = input {
                if let Input::Disconnect { .. } = input {
                    core.members.try_remove(conn.0 as usize);
                }
                let apply = |engine: &mut Engine, now, effects: &mut TurnEffects<'_>| {
                    effects.apply(engine, now, input);
                };
                return self.turns.alter_core(core, now, apply).1;
            }
            let session = |engine: &mut Engine, now, effects: &mut TurnEffects<'_>| {
                effects.replay(engine, now, conn, input);
                effects.session
            };
            let (session, wakes) = self.turns.alter_core(core, now, session);
            if let Input::Connect { .. } = input {
                core.members[conn.0 as usize].session = session;
            }
            wakes
        });
        Ok(())
    }

    fn jump(&mut self, reader: &mut Reader<'_>) -> Result<(), minikeeper_protocol::DecodeError> {
        let by_ms = reader.long()?.cast_unsigned();
        let is_up = reader.bool()?;
        reader.bool()?;
        let mut renewed = Vec::new();
        while reader.remaining() > 0 {
            renewed.push(SessionId(reader.long()?));
        }
        let until_ms = self.now.elapsed_ms.checked_add(by_ms);
        let until_ms = until_ms.filter(|until_ms| *until_ms <= TIME_MAX_MS);
        let until_ms = until_ms.ok_or(null("time"))?;
        self.alter(|engine, now, _| {
            if is_up {
                engine.skip_idle_cleanups(now, until_ms);
            }
        });
        self.now.elapsed_ms = until_ms;
        self.now.wall_ms += by_ms.cast_signed();
        let now = self.now;
        self.turns.change_clock(|clock| clock.set(now));
        self.alter(|engine, now, _| engine.renew_sessions(now, &renewed));
        Ok(())
    }
}

/// Reads a time that an engine accepts.
fn time(reader: &mut Reader<'_>) -> Result<Now, minikeeper_protocol::DecodeError> {
    let now = Now {
        elapsed_ms: reader.long()?.cast_unsigned(),
        wall_ms: reader.long()?,
    };
    if now.elapsed_ms > TIME_MAX_MS || now.wall_ms.unsigned_abs() > TIME_MAX_MS {
        return Err(null("time"));
    }
    Ok(now)
}

/// Returns the kind with which a frame is compared: an event that a fault held back was sent later.
const fn sent_if_held(record: &RawRecord) -> u8 {
    match record.kind {
        kind::HELD => kind::SENT,
        kind => kind,
    }
}

fn conn_of(record: &RawRecord) -> u32 {
    let conn = Reader::new(&record.body).int();
    conn.map_or(0, i32::cast_unsigned)
}

/// Returns the operation of the request in a record; `None` if it is no request.
pub(crate) fn operation(cause: &RawRecord) -> Option<OpCode> {
    match format::input(cause) {
        _ if cause.kind != kind::REQUEST => None,
        Ok(Input::Request { request, .. }) => Some(request.op()),
        _ => None,
    }
}

/// Describes an effect for people.
fn describe(record: &RawRecord, op: Option<OpCode>) -> String {
    match record.kind {
        kind::SENT | kind::HELD => match record.body.get(4..) {
            Some(framed) => describe_frame(&record.body.slice_ref(framed), op),
            None => "a damaged record".to_owned(),
        },
        kind::CLOSED => "the connection is closed".to_owned(),
        _ => "a session ends".to_owned(),
    }
}

/// Describes a frame for people. `op` is the operation of the request to which it replies.
pub(crate) fn describe_frame(framed: &Bytes, op: Option<OpCode>) -> String {
    let message = match frame::next(framed, usize::MAX) {
        Ok(Some(body)) => framed.slice(body),
        _ => framed.clone(),
    };
    describe_message(&message, op)
}

/// Adds to two texts, if they are the same, the bytes that differ.
pub(crate) fn tell_apart(
    (mut expected, mut received): (String, String),
    expected_bytes: &[u8],
    received_bytes: &[u8],
) -> (String, String) {
    if expected == received {
        let pairs = expected_bytes.iter().zip(received_bytes);
        let at = pairs.take_while(|(one, other)| one == other).count();
        for (text, bytes) in [
            (&mut expected, expected_bytes),
            (&mut received, received_bytes),
        ] {
            let end = bytes.len().min(at + BYTES_APART);
            let shown = bytes.get(at..end).unwrap_or_default().escape_ascii();
            *text += &format!("; from byte {at} of {}: {shown}", bytes.len());
        }
    }
    (expected, received)
}

/// Describes a message without its length.
pub(crate) fn describe_message(message: &Bytes, op: Option<OpCode>) -> String {
    let bytes = || {
        let shown = &message[..message.len().min(BYTES_SHOWN)];
        format!("{} bytes: {}", message.len(), shown.escape_ascii())
    };
    let reader = &mut Reader::new(message);
    let Some(op) = op else {
        if message.starts_with(&[0; 4])
            && let Ok(response) = ConnectResponse::decode(&mut Reader::new(message))
        {
            let ConnectResponse {
                session_id,
                timeout_ms,
                ..
            } = response;
            return format!("session {session_id}, timeout {timeout_ms} ms");
        }
        return match ReplyHeader::decode(reader) {
            Ok(header) if header.xid == Xid::EVENT => {
                event(header.zxid, reader).unwrap_or_else(bytes)
            }
            Ok(header) => header_text(header),
            Err(_) => bytes(),
        };
    };
    let Ok(header) = ReplyHeader::decode(reader) else {
        return bytes();
    };
    if header.xid == Xid::EVENT {
        return event(header.zxid, reader).unwrap_or_else(bytes);
    }
    let head = header_text(header);
    match header.error {
        Some(_) => head,
        None => match Reply::decode(op, reader) {
            Ok(reply) => format!("{head}: {reply:?}"),
            Err(_) => format!("{head}: {}", bytes()),
        },
    }
}

fn header_text(header: ReplyHeader) -> String {
    let result = header.error.map_or("OK", |error| error.name());
    format!("xid {}, zxid {}, {result}", header.xid.0, header.zxid)
}

fn event(zxid: Zxid, reader: &mut Reader<'_>) -> Option<String> {
    let event = WatcherEvent::decode(reader).ok()?;
    let kind = event.kind.name();
    let path = event.path.to_str_lossy();
    let zxid = match zxid {
        Zxid::NONE => "none".to_owned(),
        zxid => zxid.to_string(),
    };
    Some(format!("event {kind} {path}, zxid {zxid}"))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use minikeeper_engine::Settings;

    use super::*;

    /// A recording of 62 KB in which connections with high numbers come and go kept the replay busy for 30
    /// seconds: each made 262,144 members, and removed them again.
    #[test]
    fn connections_with_high_numbers_are_made_once() {
        const ROUNDS: u32 = 500;
        let engine = Engine::new(Settings::default());
        let recorder = Recorder::new(&engine, Now::default(), "", usize::MAX);
        let recording = Recording::from_bytes(recorder.copy_ended()).unwrap();
        let mut player = Player::new(recording.steps().next()).unwrap();
        for round in 0..ROUNDS {
            let conn = ConnId(CONNS_MAX - round % 2);
            let peer = Ipv4Addr::LOCALHOST.into();
            for input in [Input::Open { conn, peer }, Input::Disconnect { conn }] {
                let mut bytes = Vec::new();
                format::put_input(&mut bytes, &input);
                let cause = format::next(&mut bytes.into()).unwrap();
                player.give(&cause).unwrap();
            }
        }
        let mut made = 0;
        player.turns.turn(|core, _| {
            made = core.registered;
            Vec::new()
        });
        let most = u64::from(CONNS_MAX + 1 + 2 * ROUNDS);
        assert!(made <= most, "{made} members for {most}");
    }
}
