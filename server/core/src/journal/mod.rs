//! The journal of a universe: what happened, in order, in a ring of limited size.
//!
//! The holder of the engine lock writes it: requests with their results, events and their
//! receivers, faults, sessions, connections, moves of the clock, verbs. It never contains data of
//! znodes, tokens or passwords. The ring holds records in a compact form ([`record`]); [`entry`]
//! makes entries of them for a reader, and [`filter`] selects among these.

pub mod entry;
pub mod filter;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod record;

use std::{collections::VecDeque, sync::Arc};

use minikeeper_engine::{Event, Input, Now, Removal};
use minikeeper_protocol::{
    MultiOp, MultiReadOp, OpCode, ReplyHeader, Request, SessionId, Ustring, Xid, Zxid,
};

use self::{
    entry::{DeletionReason, JournalEntry},
    record::{Context, Decoder, Operation, Record, RecordKind, address_of},
};
use crate::peer::Peer;

/// The room of a chunk. Unit: bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// The maximum length of the records that one turn adds beside its requests, such as events.
/// Further ones are counted. Unit: bytes.
const PENDING_BYTES_MAX: usize = 256 << 10;

/// The maximum number of operations that the record of a multi lists.
const OPERATIONS_MAX: usize = 32;

/// A client's end of a connection, as records name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    /// The connection's number, which is never reused.
    pub(crate) conn: u64,
    pub(crate) session: SessionId,
    pub(crate) peer: &'a Peer,
}

impl Who<'static> {
    /// What happens to a session while it has no connection, or to the server if the session is NONE.
    const fn without_connection(session: SessionId) -> Self {
        Self {
            conn: 0,
            session,
            peer: &Peer::Local,
        }
    }
}

/// Records of one universe, newest last.
#[derive(Debug)]
pub struct Journal {
    bytes_max: usize,
    /// Closed chunks, oldest first.
    chunks: VecDeque<Chunk>,
    /// The room of the closed chunks, filled or not. Unit: bytes.
    closed_bytes: usize,
    /// The records since the last closed chunk.
    open: Vec<u8>,
    /// The number of the first of them, and how many there are.
    open_first: u64,
    open_count: u64,
    /// The operations of a multi that is being recorded.
    operations: Vec<u8>,
    /// Records that follow that of the request being served.
    pending: Vec<u8>,
    pending_count: u64,
    /// The number of records that exceeded [`PENDING_BYTES_MAX`] in this turn.
    omitted: u64,
    /// The time of the turn.
    now: Now,
    /// Whether a request is being served, which causes what is recorded.
    is_in_request: bool,
    /// The connection and session of the last context in the open chunk, if it is of this turn and
    /// records that follow may use it.
    context: Option<(u64, SessionId)>,
    /// Where the contexts of this turn's requests are in the open chunk.
    contexts: Vec<usize>,
    /// The number of the first record since the journal was cleared.
    cleared: u64,
}

/// Consecutive records.
#[derive(Clone, Debug)]
struct Chunk {
    /// The number of the first record.
    first: u64,
    count: u64,
    bytes: Arc<Vec<u8>>,
}

impl Chunk {
    const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// The outcome of a request.
#[derive(Debug, Default)]
pub(crate) struct RequestOutcome {
    /// The header of the reply; `None` if there was none.
    pub(crate) reply: Option<ReplyHeader>,
    /// The path of the znode that the request created; empty if there is none.
    pub(crate) created: Vec<u8>,
    /// The session that a handshake opened or resumed; NONE if it was refused.
    pub(crate) session: SessionId,
}

impl RequestOutcome {
    /// Makes it ready for the next request.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.reply = None;
        self.created.clear();
        self.session = SessionId::NONE;
    }
}

impl Journal {
    /// Creates a journal that keeps about this many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            chunks: VecDeque::new(),
            closed_bytes: 0,
            open: Vec::new(),
            open_first: 1,
            open_count: 0,
            operations: Vec::new(),
            pending: Vec::new(),
            pending_count: 0,
            omitted: 0,
            now: Now::default(),
            is_in_request: false,
            context: None,
            contexts: Vec::new(),
            cleared: 1,
        }
    }

    /// Begins a turn.
    pub(crate) fn begin_turn(&mut self, now: Now) {
        self.now = now;
        self.context = None;
        self.contexts.clear();
        self.omitted = 0;
    }

    /// Ends a turn, which took this long.
    pub(crate) fn end_turn(&mut self, micros: u32) {
        self.write_pending();
        if self.omitted > 0 {
            let omitted = Record {
                kind: RecordKind::Omitted,
                zxid: Zxid(self.omitted.cast_signed()),
                ..Record::default()
            };
            let nobody = Who::without_connection(SessionId::NONE);
            self.write(nobody, &omitted, b"", b"");
        }
        for at in &self.contexts {
            record::set_micros(&mut self.open[*at..], micros);
        }
        // Most turns fit into what is left then, so that the chunk need not grow.
        let room = self.chunk_bytes();
        if self.open.len() > room - room / 8 {
            self.close_chunk();
        }
    }

    /// Returns the room of a chunk. Unit: bytes.
    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES.min(self.bytes_max / 4)
    }

    fn close_chunk(&mut self) {
        let next = self.next_number();
        let mut bytes = std::mem::take(&mut self.open);
        if bytes.capacity() > self.chunk_bytes() {
            bytes.shrink_to_fit();
        }
        self.closed_bytes += bytes.capacity();
        self.chunks.push_back(Chunk {
            first: std::mem::replace(&mut self.open_first, next),
            count: std::mem::take(&mut self.open_count),
            bytes: Arc::new(bytes),
        });
        // The open chunk counts, too.
        while self.closed_bytes + self.chunk_bytes() > self.bytes_max {
            let Some(oldest) = self.chunks.pop_front() else {
                break;
            };
            self.closed_bytes -= oldest.bytes.capacity();
            // Its memory serves again, unless a reader has it or it has grown.
            if let Some(mut bytes) = Arc::into_inner(oldest.bytes)
                && bytes.capacity() == self.chunk_bytes()
            {
                bytes.clear();
                self.open = bytes;
            }
        }
        self.open.reserve_exact(self.chunk_bytes());
    }

    /// Forgets everything. Numbers continue.
    pub fn clear(&mut self) {
        self.close_chunk();
        self.cleared = self.next_number();
        self.chunks.clear();
        self.closed_bytes = 0;
        self.context = None;
        self.contexts.clear();
    }

    /// Returns the number of the next record.
    pub const fn next_number(&self) -> u64 {
        self.open_first + self.open_count
    }

    /// Adds a record to the open chunk.
    fn write(&mut self, who: Who<'_>, record: &Record, text: &[u8], more: &[u8]) {
        self.set_context(who);
        record.encode(text, more, &mut self.open);
        self.open_count += 1;
    }

    /// Makes this the context of what is written to the open chunk.
    #[inline]
    fn set_context(&mut self, who: Who<'_>) {
        if self.context != Some((who.conn, who.session)) {
            self.begin_context(who);
        }
    }

    #[inline(never)]
    fn begin_context(&mut self, who: Who<'_>) {
        self.context = Some((who.conn, who.session));
        self.contexts.push(self.open.len());
        self.context_of(who).encode(&mut self.open);
    }

    fn context_of(&self, who: Who<'_>) -> Context {
        Context {
            now: self.now,
            conn: who.conn,
            session: who.session,
            address: address_of(who.peer),
            micros: 0,
        }
    }

    /// Adds a record that follows the request's.
    fn push(&mut self, who: Who<'_>, record: &Record, text: &[u8], more: &[u8]) {
        if self.pending.len() > PENDING_BYTES_MAX {
            self.omitted += 1;
            return;
        }
        self.context_of(who).encode(&mut self.pending);
        record.encode(text, more, &mut self.pending);
        self.pending_count += 1;
    }

    #[inline]
    fn write_pending(&mut self) {
        if self.pending_count > 0 {
            self.append_pending();
        }
    }

    #[cold]
    fn append_pending(&mut self) {
        self.open.append(&mut self.pending);
        self.open_count += std::mem::take(&mut self.pending_count);
        self.context = None;
    }

    /// The number of the request that causes what is recorded now; 0 if none does.
    const fn cause(&self) -> u64 {
        if self.is_in_request {
            self.next_number()
        } else {
            0
        }
    }

    /// Notes that what is recorded until [`Journal::request`] follows from a request.
    #[inline]
    pub(crate) fn begin_request(&mut self) {
        self.write_pending();
        self.is_in_request = true;
    }

    /// Adds an input that was applied, and what followed from it.
    #[inline]
    pub(crate) fn request(&mut self, who: Who<'_>, input: &Input, outcome: &RequestOutcome) {
        if let Input::Request { xid, request, .. } = input {
            self.message(who, *xid, request, outcome);
        } else {
            self.other(who, input, outcome);
        }
        self.is_in_request = false;
        self.write_pending();
    }

    /// Adds a request.
    #[inline]
    fn message(&mut self, who: Who<'_>, xid: Xid, request: &Request, outcome: &RequestOutcome) {
        self.operations.clear();
        let arguments = describe(request, &mut self.operations);
        let path = record::bounded(arguments.path);
        let record = Record {
            xid: xid.0,
            op: arguments.op.code(),
            is_flagged: arguments.watch,
            flags: arguments.flags,
            number: arguments.number,
            ..Record::replied(outcome.reply)
        };
        self.set_context(who);
        let more = match outcome.created.as_slice() {
            created if created.is_empty() || created == path => &self.operations,
            created => record::bounded(created),
        };
        record.encode(path, more, &mut self.open);
        self.open_count += 1;
    }

    /// Adds an input that is no request, or a refused one.
    #[cold]
    fn other(&mut self, mut who: Who<'_>, input: &Input, outcome: &RequestOutcome) {
        let mut record = Record::replied(outcome.reply);
        match input {
            Input::Refused {
                xid,
                request: Some(request),
                ..
            } => return self.message(who, *xid, request, outcome),
            Input::Connect { hello, .. } => {
                record.op = OpCode::CreateSession.code();
                record.number = u32::try_from(hello.timeout_ms).unwrap_or(0);
                who.session = outcome.session;
                record.has_no_reply = outcome.session == SessionId::NONE;
            }
            Input::Undecodable { xid, .. }
            | Input::UnknownOp { xid, .. }
            | Input::Refused { xid, .. } => record.xid = xid.0,
            Input::Request { .. }
            | Input::Open { .. }
            | Input::Identify { .. }
            | Input::Disconnect { .. }
            | Input::Tick
            | Input::Expire { .. } => {}
        }
        self.write(who, &record, b"", b"");
    }

    /// Adds an event; `is_held` says whether a fault holds it back.
    pub(crate) fn event(&mut self, to: Who<'_>, event: &Event<'_>, is_held: bool) {
        let record = Record {
            op: event.kind.code(),
            zxid: event.zxid,
            cause: self.cause(),
            is_flagged: is_held,
            kind: RecordKind::Event,
            ..Record::default()
        };
        self.push(to, &record, record::bounded(event.path), b"");
    }

    /// Adds that the server deletes a znode that no request names.
    pub(crate) fn deleted(&mut self, path: &[u8], zxid: Zxid, why: Removal) {
        let session = match why {
            Removal::SessionEnded { session, .. } => session,
            Removal::EmptyContainer | Removal::TimeToLive => SessionId::NONE,
        };
        let record = Record {
            op: DeletionReason::from(why).code(),
            zxid,
            cause: self.cause(),
            kind: RecordKind::Deleted,
            ..Record::default()
        };
        let who = Who::without_connection(session);
        self.push(who, &record, record::bounded(path), b"");
    }

    /// Adds the act of a fault on a client's message. The action is a word such as `delay`.
    pub(crate) fn fault(&mut self, who: Who<'_>, input: &Input, fault: u64, action: &str) {
        let mut record = Record {
            kind: RecordKind::Fault,
            cause: fault,
            ..Record::default()
        };
        let mut path: &[u8] = b"";
        match input {
            Input::Request { xid, request, .. } => {
                record.xid = xid.0;
                record.op = request.op().code();
                path = request.path().map_or(b"", |path| path.as_bytes());
            }
            Input::Connect { .. } => record.op = OpCode::CreateSession.code(),
            _ => {}
        }
        self.push(who, &record, record::bounded(path), action.as_bytes());
    }

    /// Adds that a connection began its handshake.
    pub(crate) fn opened(&mut self, who: Who<'_>) {
        let record = Record {
            kind: RecordKind::ConnectionOpened,
            ..Record::default()
        };
        self.push(who, &record, b"", b"");
    }

    /// Adds that a session began on a connection, new or resumed there, with this timeout.
    pub(crate) fn session_began(&mut self, who: Who<'_>, timeout_ms: u32, is_new: bool) {
        let record = Record {
            number: timeout_ms,
            is_flagged: is_new,
            cause: self.cause(),
            kind: RecordKind::SessionBegan,
            ..Record::default()
        };
        self.push(who, &record, b"", b"");
    }

    /// Adds that a session ended.
    pub(crate) fn session_ended(&mut self, session: SessionId, expired: bool) {
        let record = Record {
            kind: RecordKind::SessionEnded,
            is_flagged: expired,
            cause: self.cause(),
            ..Record::default()
        };
        self.push(Who::without_connection(session), &record, b"", b"");
    }

    /// Adds something that happened outside of requests, with a text that says what.
    pub(crate) fn happened(&mut self, kind: RecordKind, who: Option<Who<'_>>, text: &str) {
        let record = Record {
            kind,
            ..Record::default()
        };
        let who = who.unwrap_or(Who::without_connection(SessionId::NONE));
        self.write(who, &record, record::bounded(text.as_bytes()), b"");
    }

    /// Copies the records from this number on, to decode them without the engine lock.
    pub fn copy(&self, since: u64) -> Copied {
        let wanted = self.chunks.iter().filter(|chunk| chunk.end() > since);
        let mut chunks: Vec<_> = wanted.cloned().collect();
        if self.open_count > 0 && self.next_number() > since {
            chunks.push(Chunk {
                first: self.open_first,
                count: self.open_count,
                bytes: Arc::new(self.open.clone()),
            });
        }
        let oldest = self
            .chunks
            .front()
            .map_or(self.open_first, |chunk| chunk.first);
        Copied {
            chunks,
            since: since.max(oldest),
            oldest,
            next: self.next_number(),
            cleared: self.cleared,
        }
    }
}

/// What a journal says of a request, apart from the operations of a multi.
struct RequestArguments<'a> {
    op: OpCode,
    path: &'a [u8],
    watch: bool,
    /// The version, create mode or watch mode.
    flags: i32,
    /// The length of the data, or the number of operations.
    number: u32,
}

/// Returns what a journal says of a request, and appends the operations of a multi.
#[inline]
fn describe<'a>(request: &'a Request, operations: &mut Vec<u8>) -> RequestArguments<'a> {
    let described = |op, path: &'a Option<Ustring>| RequestArguments {
        op,
        path: path.as_ref().map_or(&b""[..], |path| path.as_bytes()),
        watch: false,
        flags: 0,
        number: 0,
    };
    let read = |op, path, watch: &bool| RequestArguments {
        watch: *watch,
        ..described(op, path)
    };
    let versioned = |op, path, version: &i32| RequestArguments {
        flags: *version,
        ..described(op, path)
    };
    match request {
        Request::GetData { path, watch } => read(OpCode::GetData, path, watch),
        Request::Exists { path, watch } => read(OpCode::Exists, path, watch),
        Request::GetChildren { path, watch } => read(OpCode::GetChildren, path, watch),
        Request::GetChildren2 { path, watch } => read(OpCode::GetChildren2, path, watch),
        Request::SetData {
            path,
            data,
            version,
        } => RequestArguments {
            number: length(data.as_ref()),
            ..versioned(OpCode::SetData, path, version)
        },
        Request::Create(create) => RequestArguments {
            number: length(create.data.as_ref()),
            ..versioned(create.op.op(), &create.path, &create.flags)
        },
        Request::Delete { path, version } => versioned(OpCode::Delete, path, version),
        Request::Check { path, version } => versioned(OpCode::Check, path, version),
        Request::SetAcl { path, version, .. } => versioned(OpCode::SetAcl, path, version),
        Request::AddWatch { path, mode } => versioned(OpCode::AddWatch, path, mode),
        other => describe_rare(other, operations),
    }
}

/// Returns what a journal says of a request that is rare, or takes long anyway.
#[inline(never)]
fn describe_rare<'a>(request: &'a Request, operations: &mut Vec<u8>) -> RequestArguments<'a> {
    let number = match request {
        Request::Multi(ops) | Request::MultiReadOfChanges(ops) => {
            for op in ops.iter().take(OPERATIONS_MAX) {
                let (code, flags, data) = match op {
                    MultiOp::Create(create) => (
                        create.op.op().code(),
                        create.flags,
                        length(create.data.as_ref()),
                    ),
                    MultiOp::Delete { version, .. } => (OpCode::Delete.code(), *version, 0),
                    MultiOp::SetData { data, version, .. } => {
                        (OpCode::SetData.code(), *version, length(data.as_ref()))
                    }
                    MultiOp::Check { version, .. } => (OpCode::Check.code(), *version, 0),
                };
                let path = op.path().map_or(&b""[..], |path| path.as_bytes());
                Operation { code, flags, data }.encode(path, operations);
            }
            ops.len()
        }
        Request::MultiRead(ops) => {
            for op in ops.iter().take(OPERATIONS_MAX) {
                let code = match op {
                    MultiReadOp::GetData { .. } => OpCode::GetData.code(),
                    MultiReadOp::GetChildren { .. } => OpCode::GetChildren.code(),
                };
                let path = op.path().map_or(&b""[..], |path| path.as_bytes());
                let operation = Operation {
                    code,
                    flags: 0,
                    data: 0,
                };
                operation.encode(path, operations);
            }
            ops.len()
        }
        _ => 0,
    };
    let path = match request {
        // Their operations have the paths.
        Request::Multi(_) | Request::MultiReadOfChanges(_) | Request::MultiRead(_) => None,
        _ => request.path(),
    };
    RequestArguments {
        op: request.op(),
        path: path.map_or(b"", |path| path.as_bytes()),
        watch: false,
        flags: 0,
        number: u32::try_from(number).unwrap_or(u32::MAX),
    }
}

/// Returns the length of data, as a record has it.
fn length(data: Option<&bytes::Bytes>) -> u32 {
    let length = data.map_or(0, bytes::Bytes::len);
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Records copied out of a journal.
#[derive(Debug)]
pub struct Copied {
    chunks: Vec<Chunk>,
    /// The number from which on records are wanted.
    since: u64,
    /// The number of the oldest record that the journal still has.
    pub oldest: u64,
    /// The number that the next record gets.
    pub next: u64,
    cleared: u64,
}

impl Copied {
    /// Returns whether the ring has dropped records from this number on.
    pub fn lacks(&self, since: u64) -> bool {
        self.oldest > since.max(self.cleared)
    }

    /// Returns whether every record since the journal began is there.
    pub const fn is_since_start(&self) -> bool {
        self.oldest <= 1 && self.since <= 1
    }

    /// Returns the entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = JournalEntry> {
        let of_chunk = |chunk: &'_ Chunk| (chunk.first, Arc::clone(&chunk.bytes));
        let chunks: Vec<_> = self.chunks.iter().map(of_chunk).collect();
        let since = self.since;
        chunks.into_iter().flat_map(move |(first, bytes)| {
            let skipped = usize::try_from(since.saturating_sub(first)).unwrap_or(usize::MAX);
            // An iterator that has the bytes cannot borrow from them.
            let entries: Vec<_> = (first..)
                .zip(Decoder::new(&bytes))
                .skip(skipped)
                .map(|(number, decoded)| JournalEntry::of(number, &decoded))
                .collect();
            entries
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use minikeeper_engine::ConnId;
    use minikeeper_protocol::{ErrorCode, EventKind, Xid};

    use super::{entry::Occurrence, *};

    const PEER: Peer = Peer::V4(Ipv4Addr::LOCALHOST, 4711);

    const fn who() -> Who<'static> {
        Who {
            conn: 7,
            session: SessionId(0x1001),
            peer: &PEER,
        }
    }

    fn get(path: &str) -> Input {
        Input::Request {
            conn: ConnId(0),
            xid: Xid(5),
            request: Request::GetData {
                path: Some(path.into()),
                watch: true,
            },
        }
    }

    fn outcome(error: Option<ErrorCode>) -> RequestOutcome {
        RequestOutcome {
            reply: Some(ReplyHeader {
                xid: Xid(5),
                zxid: Zxid(9),
                error,
            }),
            ..RequestOutcome::default()
        }
    }

    fn serve(journal: &mut Journal, path: &str) {
        let now = Now {
            elapsed_ms: 12,
            wall_ms: 1_000,
        };
        journal.begin_turn(now);
        journal.begin_request();
        let event = Event {
            kind: EventKind::DataChanged,
            path: b"/watched",
            zxid: Zxid(9),
        };
        journal.event(who(), &event, false);
        journal.request(who(), &get(path), &outcome(Some(ErrorCode::NoNode)));
        journal.end_turn(42);
    }

    #[test]
    fn request_comes_back_with_its_event_behind_it() {
        let mut journal = Journal::new(1 << 20);
        serve(&mut journal, "/a");
        let entries: Vec<_> = journal.copy(0).entries().collect();
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].number, entries[1].number), (1, 2));
        assert_eq!(entries[0].connection, Some(7));
        assert_eq!(entries[0].session, Some(SessionId(0x1001)));
        let Occurrence::Request(request) = &entries[0].what else {
            panic!("{:?}", entries[0]);
        };
        assert_eq!(request.op, "getData");
        assert_eq!(request.path.as_deref(), Some("/a"));
        assert_eq!(request.error, Some(ErrorCode::NoNode));
        assert_eq!(request.duration.as_micros(), 42);
        assert!(request.watch);
        let Occurrence::Event { cause, path, .. } = &entries[1].what else {
            panic!("{:?}", entries[1]);
        };
        assert_eq!((*cause, path.as_str()), (Some(1), "/watched"));
    }

    #[test]
    fn ring_keeps_the_newest_records_within_its_limit() {
        for bytes_max in [1_000, 100_000, 1 << 20] {
            let mut journal = Journal::new(bytes_max);
            for _ in 0..20_000 {
                serve(&mut journal, "/some/path/of/usual/length");
                let chunks = journal.chunks.iter().map(|chunk| &*chunk.bytes);
                let bytes: usize = chunks.chain([&journal.open]).map(Vec::capacity).sum();
                assert!(bytes <= bytes_max + 1_000, "{bytes} of {bytes_max}");
            }
            let copied = journal.copy(0);
            let numbers: Vec<_> = copied.entries().map(|entry| entry.number).collect();
            assert!(numbers.len() > 2, "{bytes_max}");
            assert_eq!(numbers.first(), Some(&copied.oldest));
            assert_eq!(numbers.last(), Some(&40_000));
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
            assert_eq!(journal.copy(39_999).entries().count(), 2);
        }
    }

    #[test]
    fn long_paths_and_many_events_are_bounded() {
        let mut journal = Journal::new(1 << 20);
        let path = format!("/{}", "x".repeat(1_000_000));
        journal.begin_turn(Now::default());
        journal.begin_request();
        for _ in 0..100_000 {
            let event = Event {
                kind: EventKind::Deleted,
                path: path.as_bytes(),
                zxid: Zxid(1),
            };
            journal.event(who(), &event, false);
        }
        journal.request(who(), &get(&path), &outcome(None));
        journal.end_turn(1);
        let entries: Vec<_> = journal.copy(0).entries().collect();
        let Occurrence::Omitted { count } = entries.last().unwrap().what else {
            panic!("{:?}", entries.last());
        };
        assert_eq!(count + entries.len() as u64 - 2, 100_000);
        let bytes = journal.closed_bytes + journal.open.len();
        assert!(bytes < 2 * PENDING_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn cleared_journal_continues_its_numbers() {
        let mut journal = Journal::new(1 << 20);
        serve(&mut journal, "/a");
        journal.clear();
        assert_eq!(journal.copy(0).entries().count(), 0);
        serve(&mut journal, "/b");
        let numbers: Vec<_> = journal
            .copy(0)
            .entries()
            .map(|entry| entry.number)
            .collect();
        assert_eq!(numbers, [3, 4]);
    }
}
