//! Carries out the engine's effects during a turn, as far as possible under its lock.

use std::{borrow::Cow, sync::Arc, task::Waker};

use minikeeper_engine::{
    Change, ChangeHead, CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Mark, Now,
    Removal,
};
use minikeeper_protocol::{
    ConnectResponse, ErrorCode, MultiResult, ReplyHeader, ReplyRef, Request, SessionId, Xid, Zxid,
    event, frame,
};
use slab::Slab;

use crate::{
    data::LogWriter,
    faults::{EventFate, Faults, aftermath},
    journal::{Journal, RequestOutcome, Who},
    outbox::{Close, Outbox, UnsentTotal},
    recording::{format::kind, recorder::Recorder},
    turn::{
        prefix_replies,
        stats::{ConnStats, Counters},
        turns::Turns,
    },
};

/// The state that turns keep about a connection.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) outbox: Arc<Outbox>,
    /// The session it opened or resumed; NONE before that.
    pub(crate) session: SessionId,
    pub(crate) stats: Box<ConnStats>,
}

/// Carries out the engine's effects, as far as possible under its lock.
pub(crate) struct TurnEffects<'a> {
    /// The connection whose turn it is.
    pub(crate) own: Option<ConnId>,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) members: &'a Slab<Member>,
    pub(crate) turns: &'a Turns,
    /// The injected faults; some may hold events back.
    pub(crate) faults: &'a Faults,
    pub(crate) outbox_bytes_max: usize,
    pub(crate) reply_bytes_max: usize,
    pub(crate) unsent: &'a UnsentTotal,
    /// The prefix of the paths that clients use.
    pub(crate) prefix: &'a str,
    pub(crate) wakes: Vec<Waker>,
    /// Why the own connection must close.
    pub(crate) close: Option<Close>,
    pub(crate) counters: &'a mut Counters,
    /// Logs changes, if a log is configured.
    pub(crate) log: Option<&'a mut LogWriter>,
    /// The number of replies to the own connection, those to handshakes included.
    pub(crate) replies: u64,
    /// The number of events for the own connection.
    pub(crate) own_events: u64,
    /// The length of those events. Unit: bytes.
    pub(crate) own_event_bytes: usize,
    pub(crate) timed: Timed,
    /// Whether the handshake asks for a new session.
    pub(crate) opens_session: bool,
    /// The session that the handshake opened or resumed.
    pub(crate) session: SessionId,
    /// Keeps what happened, if a journal is configured.
    pub(crate) journal: Option<&'a mut Journal>,
    /// The outcome of the request, if it is recorded.
    pub(crate) outcome: RequestOutcome,
    /// Whether requests are recorded, in the journal or in the log.
    pub(crate) is_recorded: bool,
    /// Where the output for the request begins that is being recorded.
    pub(crate) recorded_from: usize,
}

impl Member {
    /// Returns what the journal says of the connection.
    pub(crate) fn who(&self) -> Who<'_> {
        Who {
            conn: self.stats.number,
            session: self.session,
            peer: &self.stats.peer,
        }
    }
}

impl TurnEffects<'_> {
    /// Notes that what follows belongs to an input, which is recorded afterwards.
    #[inline]
    pub(crate) fn begin_record(&mut self, now: Now, input: &Input) {
        if let Some(journal) = &mut self.journal {
            journal.begin_request();
            if let Some(recorder) = &mut journal.recorder {
                recorder.input(now, input);
                self.recorded_from = self.out.len();
            }
        }
        self.outcome.clear();
    }

    /// Returns what writes the recording, if there is one.
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.journal.as_mut()?.recorder.as_deref_mut()
    }

    /// Applies an input that is no client's request.
    #[inline(never)]
    pub(crate) fn apply(&mut self, engine: &mut Engine, now: Now, input: &Input) {
        if let Some(recorder) = self.recorder() {
            recorder.input(now, input);
        }
        engine.apply(now, input, self);
    }

    /// Applies an input of a recording, as a turn applies a client's.
    pub(crate) fn replay(&mut self, engine: &mut Engine, now: Now, conn: ConnId, input: &Input) {
        if let Some(journal) = &mut self.journal {
            journal.begin_request();
        }
        self.recorded_from = self.out.len();
        self.outcome.clear();
        self.apply(engine, now, input);
        let members = self.members;
        self.record(input, conn, &members[conn.0 as usize]);
    }

    /// Makes a change as the administrator. Returns the path of the created znode, if any.
    ///
    /// # Errors
    /// Those of the engine.
    #[inline(never)]
    pub(crate) fn administer(
        &mut self,
        engine: &mut Engine,
        now: Now,
        request: &Request,
    ) -> Result<String, ErrorCode> {
        if let Some(recorder) = self.recorder() {
            recorder.administer(now, request);
        }
        engine.administer(now, request, self)
    }

    /// Rewinds to a mark. Returns whether it exists.
    #[inline(never)]
    pub(crate) fn rewind(&mut self, engine: &mut Engine, now: Now, mark: Mark) -> bool {
        let is_known = self
            .recorder()
            .is_none_or(|recorder| recorder.return_to(now, kind::REWIND, mark));
        let is_there = engine.rewind(mark, now, self);
        if let (false, true, Some(recorder)) = (is_known, is_there, self.recorder()) {
            recorder.rewound(now, engine);
        }
        is_there
    }

    /// Records the reply to the request that was applied last.
    #[cold]
    fn record_reply(&mut self, conn: ConnId) {
        let from = self.recorded_from;
        let Some(reply) = aftermath::last_reply(self.out, from) else {
            return;
        };
        let length = frame::next(&self.out[reply..], usize::MAX);
        if let (Ok(Some(body)), Some(journal)) = (length, &mut self.journal)
            && let Some(recorder) = &mut journal.recorder
        {
            recorder.sent(conn, &self.out[reply..reply + body.end]);
        }
    }

    /// Records an input of this connection that was applied, with its outcome, in the journal and in
    /// the server's log.
    #[inline(never)]
    pub(crate) fn record(&mut self, input: &Input, conn: ConnId, member: &Member) {
        if self.recorder().is_some() {
            self.record_reply(conn);
        }
        if let Some(journal) = &mut self.journal {
            journal.request(member.who(), input, &self.outcome);
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            trace_request(member, input, &self.outcome);
        }
    }

    /// Notes what a reply with paths says of the outcome, for the journal.
    #[inline(never)]
    fn note_paths(&mut self, header: ReplyHeader, body: &ReplyRef<'_>) {
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

    /// Counts replies that ZooKeeper counts differently: to pings, auth and sasl.
    #[cold]
    fn special_reply(&mut self, xid: Xid, is_token: bool, bytes: usize) {
        match xid {
            Xid::PING => self.counters.ping(bytes),
            xid => self.timed.skipped += u64::from(xid == Xid::AUTH || is_token),
        }
    }

    /// Replies with an error instead of a reply longer than `reply_bytes_max`.
    #[cold]
    #[inline(never)]
    fn refuse_too_long(&mut self, xid: Xid, zxid: Zxid) {
        let header = ReplyHeader {
            xid,
            zxid,
            error: Some(ErrorCode::MarshallingError),
        };
        let encoded = ReplyRef::Empty.encode(header, self.out, ReplyRef::BYTES_MAX);
        debug_assert!(encoded.is_ok(), "a header alone fits");
        self.timed.failed = true;
        self.outcome.reply = Some(header);
        self.limit_hit(Limit::ReplyBytes, self.reply_bytes_max);
    }

    /// Enforces the limit on the unread output of all connections together.
    #[cold]
    #[inline(never)]
    pub(crate) fn relieve_unsent(&mut self) {
        let outboxes = self.members.iter().map(|(_, member)| &*member.outbox);
        let (closed, wakes) = self.unsent.relieve(outboxes);
        self.counters.limit_hits.unsent += closed;
        self.wakes.extend(wakes);
    }

    /// Writes an event for the connection whose turn it is. Limited, because a few bytes can cause
    /// many events: a session that watches its own ephemerals gets one for each when it closes.
    fn own_event(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.own_event_bytes > self.reply_bytes_max {
            if self.close.is_none() {
                self.limit_hit(Limit::ReplyBytes, self.reply_bytes_max);
                self.close = Some(Close::OutboxFull);
            }
            return 0;
        }
        let before = self.out.len();
        write(self.out);
        self.own_events += 1;
        let bytes = self.out.len() - before;
        self.own_event_bytes += bytes;
        bytes
    }

    /// Notifies the log, if there is one, that the state was replaced by one with this zxid, and
    /// saved.
    pub(crate) fn note_replaced(&mut self, zxid: Zxid) {
        if let Some(log) = &mut self.log {
            log.go_on_from(zxid);
        }
    }

    /// Returns a path as clients know it.
    fn shown<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        if self.prefix.is_empty() {
            Cow::Borrowed(path)
        } else {
            Cow::Owned(prefix_replies::path(self.prefix, path))
        }
    }

    /// Counts a connection that is closed because its client does not read its events.
    #[cold]
    pub(crate) fn outbox_overflowed(&mut self, conn: ConnId) {
        self.counters.limit_hits.outboxes += 1;
        tracing::warn!(
            conn = conn.0,
            bytes_max = self.outbox_bytes_max,
            "outbox_bytes_max reached: the connection is closed"
        );
    }

    /// Holds an event back if a fault says so. Returns whether it must not be sent now.
    #[cold]
    fn is_held_back(&mut self, to: ConnId, event: &Event<'_>) -> bool {
        let member = &self.members[to.0 as usize];
        let who = (member.session, &member.stats.peer);
        let path = self.shown(event.path);
        let write = |out: &mut Vec<u8>| event::encode(event.kind, &path, event.zxid, out);
        let now_ms = self.turns.clock().elapsed_ms();
        let what = (event.kind, event.path);
        match self.faults.hold_event(to, who, what, now_ms, write) {
            EventFate::Sent => return false,
            EventFate::Held => self.turns.alarm.rearm_for(self.faults.next_deadline_ms()),
            EventFate::NoRoom => {
                self.outbox_overflowed(to);
                if self.own == Some(to) {
                    self.close = Some(Close::OutboxFull);
                } else {
                    self.wakes.extend(member.outbox.close(Close::OutboxFull));
                }
            }
        }
        true
    }
}

/// Counts for the replies whose latency ZooKeeper measures: those to requests except auth and sasl,
/// and those to handshakes that open a session.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    /// Whether the last reply was an error.
    pub(crate) failed: bool,
    /// The number of replies to auth, sasl and handshakes.
    pub(crate) skipped: u64,
    /// The number of sessions opened.
    pub(crate) opened: u64,
}

impl Effects for TurnEffects<'_> {
    fn connected(&mut self, _: ConnId, response: &ConnectResponse) {
        self.replies += 1;
        self.timed.skipped += 1;
        self.timed.opened += u64::from(self.opens_session);
        self.session = response.session_id;
        self.outcome.session = response.session_id;
        response.encode(self.out);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "three percent of a getData, measured")]
    fn reply(&mut self, _: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        let before = self.out.len();
        let is_token = matches!(body, ReplyRef::Token(_));
        let bytes_max = self.reply_bytes_max;
        self.timed.failed = header.error.is_some();
        let has_paths = prefix_replies::has_paths(&body);
        if self.is_recorded {
            self.outcome.reply = Some(header);
            if has_paths {
                self.note_paths(header, &body);
            }
        }
        let encoded = if has_paths && !self.prefix.is_empty() {
            prefix_replies::encode(self.prefix, header, body, self.out, bytes_max)
        } else {
            body.encode(header, self.out, bytes_max)
        };
        if encoded.is_err() {
            self.refuse_too_long(header.xid, header.zxid);
        }
        let bytes = self.out.len() - before;
        self.replies += 1;
        self.counters.reply(bytes);
        if header.xid.0 < 0 || is_token {
            self.special_reply(header.xid, is_token, bytes);
        }
    }

    fn event(&mut self, to: ConnId, event: &Event<'_>) {
        // Another connection may send its events before this turn is over.
        if let Some(log) = &mut self.log
            && self.own != Some(to)
            && !log.write()
        {
            return;
        }
        let is_held = self.faults.hold_events() && self.is_held_back(to, event);
        if let Some(journal) = &mut self.journal {
            let member = &self.members[to.0 as usize];
            journal.event(member.who(), event, is_held);
            if let Some(recorder) = &mut journal.recorder {
                let path: Cow<'_, [u8]> = if self.prefix.is_empty() {
                    Cow::Borrowed(event.path)
                } else {
                    Cow::Owned(prefix_replies::path(self.prefix, event.path))
                };
                recorder.event(to, (event, &path), is_held);
            }
        }
        if is_held {
            return;
        }
        let mut bytes = 0;
        let path = self.shown(event.path);
        if self.own == Some(to) {
            bytes = self.own_event(|out| event::encode(event.kind, &path, event.zxid, out));
        } else {
            let write = |out: &mut Vec<u8>| {
                let before = out.len();
                event::encode(event.kind, &path, event.zxid, out);
                bytes = out.len() - before;
            };
            match self.members[to.0 as usize]
                .outbox
                .push(self.outbox_bytes_max, write)
            {
                Ok(pushed) => {
                    self.wakes.extend(pushed.waker);
                    if self.unsent.add(pushed.grown_bytes) {
                        self.relieve_unsent();
                    }
                }
                Err(overflow) => {
                    self.outbox_overflowed(to);
                    self.wakes.extend(overflow.waker);
                }
            }
        }
        // Nothing is written for a connection that is closing.
        if bytes > 0 {
            self.counters.event(bytes);
        }
    }

    fn close(&mut self, conn: ConnId, why: CloseReason) {
        if let Some(recorder) = self.recorder() {
            recorder.close(conn, why);
        }
        if self.own == Some(conn) {
            self.close = Some(Close::Engine(why));
        } else if let Some(member) = self.members.get(conn.0 as usize) {
            self.wakes.extend(member.outbox.close(Close::Engine(why)));
        }
    }

    fn limit_hit(&mut self, limit: Limit, max: usize) {
        if self.counters.limit_hits.count(limit) {
            tracing::warn!(
                setting = limit.setting(),
                max,
                "limit reached: a request is refused"
            );
        }
    }

    fn session_opened(&mut self, session: SessionId, timeout_ms: u32) {
        if let (Some(journal), Some(own)) = (&mut self.journal, self.own)
            && let Some(member) = self.members.get(own.0 as usize)
        {
            let who = Who {
                session,
                ..member.who()
            };
            journal.session_began(who, timeout_ms, self.opens_session);
        }
        tracing::info!(%session, timeout_ms, "session opened");
    }

    fn removed(&mut self, path: &[u8], zxid: Zxid, why: Removal) {
        if let Some(journal) = &mut self.journal {
            journal.deleted(path, zxid, why);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one branch of every change")]
    fn keeps_changes(&self) -> bool {
        self.log.is_some()
    }

    #[cold]
    fn changed(&mut self, head: ChangeHead, change: &Change<'_>) {
        if let Some(log) = &mut self.log {
            log.keep(head, change);
        }
    }

    fn taken_back(&mut self, zxid: Zxid) {
        if let Some(log) = &mut self.log {
            log.take_back(zxid);
        }
    }

    fn session_refused(&mut self, session: SessionId) {
        self.turns.refused_sessions.note(session);
    }

    fn session_ended(&mut self, session: SessionId, expired: bool) {
        self.counters.sessions_expired += u64::from(expired);
        self.turns.refused_sessions.ended(session);
        if let Some(journal) = &mut self.journal {
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
