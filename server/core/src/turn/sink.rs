//! What turns write of what happens: the journal, a recording if one is wanted, and the server's log.

use std::borrow::Cow;

use minikeeper_engine::{CloseReason, ConnId, Engine, Event, Input, Mark, Now, Removal};
use minikeeper_protocol::{MultiResult, ReplyHeader, ReplyRef, Request, SessionId, Zxid, frame};

use crate::{
    faults::aftermath,
    journal::{Journal, RequestOutcome, Who, record::RecordKind},
    recording::recorder::Recorder,
    turn::{core::Core, members::Member, prefix_replies, turns::Turns},
};

/// The journal, and the recording beside it.
#[derive(Debug)]
pub struct Sink {
    pub(crate) journal: Journal,
    /// Writes a recording, if one is wanted: everything that a replay needs.
    pub recorder: Option<Box<Recorder>>,
}

impl Sink {
    pub(super) fn new(journal_bytes_max: usize) -> Self {
        Self {
            journal: Journal::new(journal_bytes_max),
            recorder: None,
        }
    }

    /// Ends a turn, which took this long.
    pub(super) fn end_turn(&mut self, micros: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
        self.journal.end_turn(micros);
    }

    /// Adds the act of a fault on a client's message. The action is a word such as `delay`.
    pub(super) fn fault(
        &mut self,
        now: Now,
        who: Who<'_>,
        input: &Input,
        fault: u64,
        action: &str,
    ) {
        self.journal.begin_turn(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.fault(who, input, fault, action);
        }
        self.journal.fault(who, input, fault, action);
        self.end_turn(0);
    }

    /// Adds something that happened outside of requests, with a text that says what.
    pub(super) fn happened(
        &mut self,
        now: Now,
        kind: RecordKind,
        who: Option<Who<'_>>,
        text: &str,
    ) {
        self.journal.begin_turn(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(who.map_or(0, |who| who.conn), text);
        }
        self.journal.happened(kind, who, text);
        self.end_turn(0);
    }
}

impl Turns {
    /// Adds to the journal, if there is one, what happened outside of requests. A connection that is
    /// named is one whose handshake is done.
    pub fn note(&self, kind: RecordKind, conn: Option<ConnId>, text: impl FnOnce() -> String) {
        self.lock().note(&self.clock, kind, conn, text);
        if self.activity.is_wanted() {
            self.activity.notify_recorded();
        }
    }

    /// Adds the act of a fault to the journal, if there is one.
    pub(crate) fn note_fault(&self, conn: ConnId, input: &Input, fault: u64, action: &str) {
        let mut core = self.lock();
        let Core { sink, members, .. } = &mut *core;
        if let (Some(sink), Some(member)) = (sink, members.get(conn.0 as usize)) {
            sink.fault(self.clock.now(), member.who(), input, fault, action);
        }
        drop(core);
        if self.activity.is_wanted() {
            self.activity.notify_recorded();
        }
    }
}

/// Writes what happens in one turn to the sink, and to the server's log.
pub struct Observer<'a> {
    sink: Option<&'a mut Sink>,
    /// Whether requests are recorded, in the journal or in the server's log.
    pub(super) is_on: bool,
    /// The outcome of the request being served, if requests are recorded.
    outcome: RequestOutcome,
    /// Where the output for that request begins.
    out_from: usize,
}

impl<'a> Observer<'a> {
    pub(super) fn new(sink: Option<&'a mut Sink>) -> Self {
        Self {
            is_on: sink.is_some() || tracing::enabled!(tracing::Level::DEBUG),
            sink,
            outcome: RequestOutcome::default(),
            out_from: 0,
        }
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        self.sink.as_mut().map(|sink| &mut sink.journal)
    }

    /// Returns what writes the recording, if there is one.
    #[inline]
    pub fn recorder(&mut self) -> Option<&mut Recorder> {
        self.sink.as_mut()?.recorder.as_deref_mut()
    }

    /// Notes that a connection begins its handshake.
    pub(super) fn opened(&mut self, member: &Member) {
        if let Some(journal) = self.journal() {
            journal.opened(member.who());
        }
    }

    /// Notes that what follows belongs to an input of a connection. Its output begins at `out_from`.
    #[inline]
    pub(super) fn begin_input(&mut self, now: Now, input: &Input, out_from: usize) {
        if let Some(sink) = &mut self.sink {
            sink.journal.begin_request();
            if let Some(recorder) = &mut sink.recorder {
                recorder.input(now, input);
                self.out_from = out_from;
            }
        }
        self.outcome.clear();
    }

    /// Notes an input that is no client's.
    pub(super) fn input(&mut self, now: Now, input: &Input) {
        if let Some(recorder) = self.recorder() {
            recorder.input(now, input);
        }
    }

    /// Notes a change by the administrator.
    pub(super) fn administer(&mut self, now: Now, request: &Request) {
        if let Some(recorder) = self.recorder() {
            recorder.administer(now, request);
        }
    }

    /// Notes that a mark is rewound to. Returns whether the recording, if there is one, has it.
    pub(super) fn rewind(&mut self, now: Now, mark: Mark) -> bool {
        let recorder = self.recorder();
        recorder.is_none_or(|recorder| recorder.rewind(now, mark))
    }

    /// Notes that a mark from before the recording was rewound to, and this is the state now.
    pub(super) fn rewound(&mut self, now: Now, engine: &Engine) {
        if let Some(recorder) = self.recorder() {
            recorder.rewound(now, engine);
        }
    }

    /// Records an input of this connection that was applied, with its outcome.
    #[inline(never)]
    pub(super) fn end_input(&mut self, input: &Input, conn: ConnId, member: &Member, out: &[u8]) {
        if self.recorder().is_some() {
            self.record_reply(conn, out);
        }
        if let Some(sink) = &mut self.sink {
            sink.journal.request(member.who(), input, &self.outcome);
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            trace_request(member, input, &self.outcome);
        }
    }

    /// Records the reply to the request that was applied last.
    #[cold]
    fn record_reply(&mut self, conn: ConnId, out: &[u8]) {
        let Some(reply) = aftermath::last_reply(out, self.out_from) else {
            return;
        };
        let length = frame::next(&out[reply..], usize::MAX);
        if let (Ok(Some(body)), Some(recorder)) = (length, self.recorder()) {
            recorder.sent(conn, &out[reply..reply + body.end]);
        }
    }

    /// Notes the session that a handshake opened or resumed.
    pub(super) const fn connected(&mut self, session: SessionId) {
        self.outcome.session = session;
    }

    /// Notes the header of the reply.
    #[inline]
    pub(super) const fn reply(&mut self, header: ReplyHeader) {
        self.outcome.reply = Some(header);
    }

    /// Notes what a reply with paths says of the outcome.
    #[inline(never)]
    pub(super) fn reply_with_paths(&mut self, header: ReplyHeader, body: &ReplyRef<'_>) {
        match body {
            ReplyRef::Path(Some(path)) | ReplyRef::PathStat(path, _) => {
                self.outcome.created.extend_from_slice(path);
            }
            ReplyRef::Multi(results) => {
                let error = results.iter().find_map(|result| match result {
                    MultiResult::Error(error) => *error,
                    _ => None,
                });
                self.outcome.reply = Some(ReplyHeader { error, ..header });
            }
            _ => {}
        }
    }

    /// Adds an event for a connection of a universe with this prefix.
    pub(super) fn event(
        &mut self,
        (to, member): (ConnId, &Member),
        event: &Event<'_>,
        prefix: &str,
        is_held: bool,
    ) {
        let Some(sink) = &mut self.sink else {
            return;
        };
        sink.journal.event(member.who(), event, is_held);
        if let Some(recorder) = &mut sink.recorder {
            let path: Cow<'_, [u8]> = if prefix.is_empty() {
                Cow::Borrowed(event.path)
            } else {
                Cow::Owned(prefix_replies::path(prefix, event.path))
            };
            recorder.event(to, (event, &path), is_held);
        }
    }

    pub(super) fn closed(&mut self, conn: ConnId, why: CloseReason) {
        if let Some(recorder) = self.recorder() {
            recorder.close(conn, why);
        }
    }

    /// Adds that a session began on a connection, new or resumed there.
    pub(super) fn session_began(
        &mut self,
        member: Option<&Member>,
        session: SessionId,
        timeout_ms: u32,
        is_new: bool,
    ) {
        if let (Some(journal), Some(member)) = (self.journal(), member) {
            let who = Who {
                session,
                ..member.who()
            };
            journal.session_began(who, timeout_ms, is_new);
        }
        tracing::info!(%session, timeout_ms, "session opened");
    }

    /// Adds that the engine deleted a znode.
    pub(super) fn deleted(&mut self, path: &[u8], zxid: Zxid, why: Removal) {
        if let Some(journal) = self.journal() {
            journal.deleted(path, zxid, why);
        }
    }

    pub(super) fn session_ended(&mut self, session: SessionId, expired: bool) {
        if let Some(recorder) = self.recorder() {
            recorder.session_ended(session, expired);
        }
        if let Some(journal) = self.journal() {
            journal.session_ended(session, expired);
        }
        tracing::info!(%session, expired, "session ended");
    }
}

/// Writes a request to the server's log.
#[cold]
#[inline(never)]
fn trace_request(member: &Member, input: &Input, outcome: &RequestOutcome) {
    let conn = member.stats.number;
    let err = outcome.reply.and_then(|reply| reply.error);
    let err = err.map(|error| error.name());
    let request = match input {
        Input::Request { xid, request, .. } => Some((xid, request)),
        Input::Refused { xid, request, .. } => request.as_deref().map(|request| (xid, request)),
        _ => None,
    };
    if let Some((xid, request)) = request {
        tracing::debug!(
            conn,
            session = %member.session,
            xid = xid.0,
            op = request.op().name(),
            // Quoted and escaped: a path with the end of a line would forge lines of the log.
            path = request.path().map(tracing::field::debug),
            zxid = outcome.reply.map(|reply| tracing::field::display(reply.zxid)),
            err,
            "request"
        );
        return;
    }
    match input {
        Input::Connect { hello, .. } => tracing::debug!(
            conn,
            session = %outcome.session,
            asked = %hello.session_id,
            timeout_ms = hello.timeout_ms,
            "handshake"
        ),
        other => tracing::debug!(conn, session = %member.session, ?other, err, "input"),
    }
}
