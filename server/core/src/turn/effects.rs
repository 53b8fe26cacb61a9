//! Carries out the engine's effects during a turn, as far as possible under its lock.

use std::{borrow::Cow, task::Waker};

use minikeeper_engine::{
    Change, ChangeHead, CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Mark, Now,
    Removal,
};
use minikeeper_protocol::{
    ConnectResponse, ErrorCode, ReplyHeader, ReplyRef, Request, SessionId, Xid, Zxid, event,
};
use slab::Slab;

use crate::{
    data::LogWriter,
    faults::{EventFate, Faults},
    outbox::{Close, Pushed, UnsentTotal},
    turn::{members::Member, prefix_replies, sink::Observer, stats::Counters, turns::Turns},
};

/// Carries out the engine's effects, as far as possible under its lock.
pub struct TurnEffects<'a> {
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
    /// Writes what happens.
    pub observer: Observer<'a>,
}

impl TurnEffects<'_> {
    /// Applies an input that is no client's request.
    #[inline(never)]
    pub(crate) fn apply(&mut self, engine: &mut Engine, now: Now, input: &Input) {
        self.observer.input(now, input);
        engine.apply(now, input, self);
    }

    /// Applies an input of a recording, as a turn applies a client's.
    pub(crate) fn replay(&mut self, engine: &mut Engine, now: Now, conn: ConnId, input: &Input) {
        self.observer.begin_input(now, input, self.out.len());
        engine.apply(now, input, self);
        let member = &self.members[conn.0 as usize];
        self.observer.end_input(input, conn, member, self.out);
    }

    /// Sends an event that a fault has held back.
    pub(crate) fn send_held(&mut self, to: ConnId, frame: Vec<u8>) {
        let Some(member) = self.members.get(to.0 as usize) else {
            return;
        };
        let bytes = frame.len();
        let pushed = member
            .outbox
            .push(self.outbox_bytes_max, |out| out.extend(frame));
        match pushed {
            Ok(pushed) => {
                self.counters.event(bytes);
                self.pushed(pushed);
            }
            Err(overflow) => {
                self.outbox_overflowed(to);
                self.wakes.extend(overflow.waker);
            }
        }
    }

    /// Makes a change as the administrator. Returns the path of the created znode, if any.
    ///
    /// # Errors
    /// Those of the engine.
    #[inline(never)]
    pub fn administer(
        &mut self,
        engine: &mut Engine,
        now: Now,
        request: &Request,
    ) -> Result<String, ErrorCode> {
        self.observer.administer(now, request);
        engine.administer(now, request, self)
    }

    /// Rewinds to a mark. Returns whether it exists.
    #[inline(never)]
    pub fn rewind(&mut self, engine: &mut Engine, now: Now, mark: Mark) -> bool {
        let is_known = self.observer.rewind(now, mark);
        let is_there = engine.rewind(mark, now, self);
        if !is_known && is_there {
            self.observer.rewound(now, engine);
        }
        is_there
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
        self.observer.reply(header);
        self.limit_hit(Limit::ReplyBytes, self.reply_bytes_max);
    }

    /// Accounts for an event that was added to an outbox.
    fn pushed(&mut self, pushed: Pushed) {
        self.wakes.extend(pushed.waker);
        if self.unsent.add(pushed.grown_bytes) {
            self.relieve_unsent();
        }
    }

    /// Enforces the limit on the unread output of all connections together.
    #[cold]
    #[inline(never)]
    fn relieve_unsent(&mut self) {
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
    pub fn note_replaced(&mut self, zxid: Zxid) {
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
    fn outbox_overflowed(&mut self, conn: ConnId) {
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
        self.observer.connected(response.session_id);
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
        if self.observer.is_on {
            self.observer.reply(header);
            if has_paths {
                self.observer.reply_with_paths(header, &body);
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
        let member = &self.members[to.0 as usize];
        self.observer
            .event((to, member), event, self.prefix, is_held);
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
            match member.outbox.push(self.outbox_bytes_max, write) {
                Ok(pushed) => self.pushed(pushed),
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
        self.observer.closed(conn, why);
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
        let member = self.own.and_then(|own| self.members.get(own.0 as usize));
        (self.observer).session_began(member, session, timeout_ms, self.opens_session);
    }

    fn removed(&mut self, path: &[u8], zxid: Zxid, why: Removal) {
        self.observer.deleted(path, zxid, why);
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
        self.observer.session_ended(session, expired);
    }
}
