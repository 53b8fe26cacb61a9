//! One connection without its socket: bytes in, turns taken, bytes out.
//!
//! Splits frames, decodes requests, batches them into turns. It does no I/O, so the TCP task
//! ([`crate::net::socket`]) and the in-process stream ([`crate::net::local`]) share all of it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 2.1, 2.2, 6.2 and 6.5.

use std::{ops::Range, sync::Arc, task::Waker, time::Duration};

use bytes::{Bytes, BytesMut};
use minikeeper_engine::{ConnId, Input};
use minikeeper_protocol::{
    ConnectRequest, DecodeError, ErrorCode, FrameError, OpCode, Reader, Request, RequestHeader,
    frame,
};

use crate::{
    ensemble::ServerMode,
    faults::{self, Verdict, action::FaultAction, delayed::Delayed},
    journal::record::RecordKind,
    limits::{self, Breach, Held},
    outbox::{Close, Outbox},
    peer::Peer,
    state::{
        UniverseState,
        fault_turn::{self, FaultedRequest},
        picking,
        scratch::{READ_BYTES, Scratch},
        words::{self, Word},
    },
    turn::turns::Batch,
};

#[cfg(feature = "control")]
use crate::net::handover;

/// The maximum length of a handshake. A usual one has 45 bytes, 16 of them the password. This also
/// bounds the input that the server keeps for a connection without a handshake. Unit: bytes.
const HANDSHAKE_BYTES_MAX: usize = 8 << 10;

/// Why a connection closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CloseCause {
    /// The length prefix of a frame is invalid.
    Frame(FrameError),
    /// The length prefix of a handshake is invalid.
    Handshake(FrameError),
    /// A handshake, request header or auth packet cannot be decoded.
    Message(DecodeError),
    /// A four-letter word was answered.
    FourLetterWord,
    /// A thread answers a four-letter word: the connection is kept until then.
    FourLetterWordBegun,
    /// A turn or the outbox orders it.
    Ordered(Close),
    /// A limit is reached.
    Limit(Breach),
    /// The server is read-only, and the client does not accept that.
    ReadOnly,
    /// The client speaks HTTP, which other code serves: see [`Connection::take_read`].
    #[cfg(feature = "control")]
    Http,
}

impl std::fmt::Display for CloseCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frame(error @ FrameError::TooLong { .. }) => {
                write!(f, "{error} (frame_bytes_max)")
            }
            Self::Frame(error) => error.fmt(f),
            Self::Handshake(error) => write!(f, "handshake: {error}"),
            Self::Message(error) => error.fmt(f),
            Self::FourLetterWord => f.write_str("four-letter word answered"),
            Self::FourLetterWordBegun => f.write_str("four-letter word begun"),
            Self::Ordered(why) => why.fmt(f),
            Self::Limit(breach) => breach.fmt(f),
            Self::ReadOnly => {
                f.write_str("the server is read-only, which the client does not accept")
            }
            #[cfg(feature = "control")]
            Self::Http => f.write_str("the client speaks HTTP"),
        }
    }
}

/// What the owner of the connection does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// All whole frames are served: read more input.
    Continue,
    /// There is much output: write it, then call [`Connection::serve_rest`].
    Full,
    /// A fault delays a request: read and serve nothing until it is served. Events may come.
    Delayed,
    /// Write the output, then close.
    Close(CloseCause),
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) shared: Arc<UniverseState>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) id: ConnId,
    /// Whether the first frame, the handshake, has been served.
    pub(crate) is_open: bool,
    /// Whether the client closed its side.
    pub(crate) is_left: bool,
    /// Whether it is known which universe it belongs to.
    pub(crate) is_bound: bool,
    /// Whether it has seen a zxid of the server's own universe.
    pub(crate) has_seen_root: bool,
    /// The number of the server of the ensemble that accepted it; 0 for a connection inside the
    /// process, which belongs to none.
    server: u8,
    /// Whether the server was read-only when it accepted the connection.
    is_read_only: bool,
    /// Input that has not been served. Boxed, because few connections have any.
    rest: Option<Box<PendingInput>>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<UniverseState>, peer: Peer, server: u8) -> Self {
        let (id, outbox) = shared.turns.register(peer, server);
        let ensemble = &shared.server.ensemble;
        Self {
            server,
            // Read after the connection was registered: a change of the mode closes it.
            is_read_only: ensemble.mode(server) == ServerMode::ReadOnly,
            shared,
            outbox,
            id,
            is_open: false,
            is_left: false,
            is_bound: false,
            has_seen_root: false,
            rest: None,
        }
    }

    /// Returns whether the server is cut off from its clients.
    pub(crate) fn is_cut_off(&self) -> bool {
        let turns = &self.shared.turns;
        self.shared.server.ensemble.mode(self.server) == ServerMode::CutOff
            && !turns.is_stopped()
            && !turns.is_broken()
    }

    /// Reports why the connection ends.
    pub(crate) fn note_closed(&self, why: &dyn std::fmt::Display) {
        let turns = &self.shared.turns;
        tracing::debug!(conn = turns.number_of(self.id), %why, "connection closed");
        turns.note(RecordKind::ConnectionClosed, Some(self.id), || {
            why.to_string()
        });
    }

    /// Returns the buffer for the next read: it appends to the unserved input, if there is any.
    pub(crate) fn read_buffer<'a>(&'a mut self, scratch: &'a mut Scratch) -> &'a mut BytesMut {
        let Some(rest) = &mut self.rest else {
            scratch.read.reserve(READ_BYTES);
            return &mut scratch.read;
        };
        // Doubles as data arrives: a large length prefix alone costs no memory.
        let wanted = rest.bytes.len().clamp(4 << 10, READ_BYTES);
        rest.bytes.reserve(wanted);
        &mut rest.bytes
    }

    /// Serves the input that a read has put into [`Connection::read_buffer`].
    pub(crate) fn serve_read(&mut self, scratch: &mut Scratch) -> Flow {
        if self.rest.is_some() {
            return self.serve_rest(scratch);
        }
        let batch = std::mem::take(&mut scratch.read).freeze();
        let read_ms = self.read_ms();
        let (mut flow, served) = self.serve(&batch, read_ms, scratch);
        #[cfg(feature = "control")]
        if matches!(flow, Flow::Close(CloseCause::Http)) {
            self.keep_http(&batch);
        }
        let has_more = served < batch.len() || matches!(flow, Flow::Delayed);
        if has_more && !matches!(flow, Flow::Close(_)) {
            let mut rest = Box::<PendingInput>::default();
            rest.bytes.extend_from_slice(&batch[served..]);
            rest.read_ms = read_ms;
            flow = self.keep(rest, flow);
        }
        // Normally no slice of the batch is left, so the buffer can be reused.
        if let Ok(mut buffer) = batch.try_into_mut() {
            buffer.clear();
            scratch.read = buffer;
        }
        flow
    }

    /// Serves left-over input, after output was written or more input was appended.
    pub(crate) fn serve_rest(&mut self, scratch: &mut Scratch) -> Flow {
        let Some(mut rest) = self.rest.take() else {
            return Flow::Continue;
        };
        if rest.is_delayed {
            if self.outbox.is_delayed() {
                return self.keep(rest, Flow::Delayed);
            }
            rest.is_delayed = false;
            if rest.bytes.is_empty() {
                self.shared
                    .limits
                    .release_rest(&mut rest.held, &self.outbox);
                return Flow::Continue;
            }
        }
        // Part of a frame cannot be served before the frame is whole.
        if let Ok(None) = frame::next(&rest.bytes, self.shared.config.frame_bytes_max)
            && (self.is_open || rest.bytes.len() < 4)
        {
            return self.keep(rest, Flow::Continue);
        }
        self.shared
            .limits
            .release_rest(&mut rest.held, &self.outbox);
        let batch = std::mem::take(&mut rest.bytes).freeze();
        rest.read_ms = rest.read_ms.or_else(|| self.read_ms());
        let (flow, served) = self.serve(&batch, rest.read_ms, scratch);
        #[cfg(feature = "control")]
        if matches!(flow, Flow::Close(CloseCause::Http)) {
            self.keep_http(&batch);
        }
        let has_more = served < batch.len() || matches!(flow, Flow::Delayed);
        if !has_more || matches!(flow, Flow::Close(_)) {
            return flow;
        }
        match batch.try_into_mut() {
            Ok(mut buffer) => {
                bytes::Buf::advance(&mut buffer, served);
                rest.bytes = buffer;
            }
            Err(batch) => rest.bytes.extend_from_slice(&batch[served..]),
        }
        self.keep(rest, flow)
    }

    /// Lets a thread answer a word about a large state, so that clients are served meanwhile. The
    /// connection waits, as for a delayed request, and closes behind the answer.
    #[cold]
    fn answer_on_thread(&self, word: &'static Word, input: Bytes) {
        let (shared, outbox) = (Arc::clone(&self.shared), Arc::clone(&self.outbox));
        let (peer, server) = (words::count(word, &shared, self.id), self.server.max(1));
        // It may wait for its turn for longer than a handshake may take.
        outbox.set_word();
        outbox.set_delayed();
        let runtime = shared.server.runtime.clone();
        runtime.spawn(async move {
            // The semaphore is never closed.
            let _permit = shared.server.word_threads.acquire().await;
            let answering = Arc::clone(&shared);
            let answer = tokio::task::spawn_blocking(move || {
                words::text(word, &input, &answering, peer, server)
            });
            // Without an answer, because that panicked, the connection closes, too.
            let mut answer = answer.await.unwrap_or_default().into_bytes();
            let woken = [
                outbox.put_back(&mut answer),
                outbox.close(Close::WordAnswered),
                outbox.end_delay(),
            ];
            woken.into_iter().flatten().for_each(Waker::wake);
        });
    }

    /// Keeps unserved input, if the limits permit it.
    fn keep(&mut self, mut rest: Box<PendingInput>, flow: Flow) -> Flow {
        if flow == Flow::Continue {
            // Part of a frame: it counts as read when its last byte is.
            rest.read_ms = None;
        }
        rest.is_delayed = matches!(flow, Flow::Delayed);
        let UniverseState {
            limits,
            config,
            turns,
            ..
        } = &*self.shared;
        let memory_bytes = rest.bytes.capacity();
        let free = |since, bytes| turns.free_held(since, bytes);
        let (held, input) = (&mut rest.held, &rest.bytes);
        match limits.hold_rest(config, held, &self.outbox, memory_bytes, input, free) {
            Ok(()) => {
                self.rest = Some(rest);
                flow
            }
            Err(breach) => Flow::Close(CloseCause::Limit(breach)),
        }
    }

    /// Keeps the HTTP input for [`Connection::take_read`]: at most one read, for a short time.
    #[cfg(feature = "control")]
    #[cold]
    fn keep_http(&mut self, batch: &Bytes) {
        let mut rest = Box::<PendingInput>::default();
        rest.bytes.extend_from_slice(batch);
        self.rest = Some(rest);
    }

    /// Takes the bytes read so far, after [`CloseCause::Http`].
    #[cfg(feature = "control")]
    pub(crate) fn take_read(&mut self) -> BytesMut {
        self.rest.take().map(|rest| rest.bytes).unwrap_or_default()
    }

    /// Returns the time if the waiting time of requests is limited.
    fn read_ms(&self) -> Option<u64> {
        let UniverseState { turns, config, .. } = &*self.shared;
        let is_asked = !config.throttled_op_wait_time.is_zero();
        is_asked.then(|| turns.clock().elapsed_ms())
    }

    /// Returns whether requests that were read at this time have waited too long.
    fn is_too_late(&self, read_ms: Option<u64>) -> bool {
        let (Some(read_ms), Some(now_ms)) = (read_ms, self.read_ms()) else {
            return false;
        };
        let wait_max = self.shared.config.throttled_op_wait_time.as_millis();
        u128::from(now_ms.saturating_sub(read_ms)) > wait_max
    }

    /// Returns whether input is left over: frames for [`Connection::serve_rest`], or part of one.
    pub(crate) const fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Serves the whole frames of a batch. Returns how many bytes were served.
    fn serve(
        &mut self,
        batch: &Bytes,
        read_ms: Option<u64>,
        scratch: &mut Scratch,
    ) -> (Flow, usize) {
        let mut served = 0;
        let mut arrived_ms = None;
        loop {
            let mut fault = None;
            // Requests are served one by one while there are faults, and until one of them shows
            // which universe the connection belongs to.
            let has_faults = self.shared.turns.faults.are_set();
            let is_unbound = self.is_unbound();
            let turn_max = if is_unbound || has_faults {
                1
            } else {
                self.shared.config.turn_requests_max
            };
            scratch.ends.clear();
            let mut end = served;
            while scratch.inputs.len() < turn_max && fault.is_none() {
                match self.take_frame(batch, end, scratch) {
                    Ok(Some(next)) => {
                        scratch.ends.push(next);
                        end = next;
                    }
                    Ok(None) => break,
                    Err(why) => fault = Some(why),
                }
            }
            if scratch.inputs.is_empty() {
                let flow = match fault {
                    None => Flow::Continue,
                    Some(CloseCause::FourLetterWordBegun) => Flow::Delayed,
                    Some(why) => Flow::Close(why),
                };
                return (flow, served);
            }
            if is_unbound && self.bind(&mut scratch.inputs) {
                // Decoded again, in the universe it belongs to.
                scratch.inputs.clear();
                continue;
            }
            self.rebase(&mut scratch.inputs);
            if self.is_read_only {
                refuse_changes(&mut scratch.inputs);
            }
            if has_faults {
                let frame = served..end;
                served = end;
                match self.serve_with_faults(batch, frame, read_ms, &mut arrived_ms, scratch) {
                    Flow::Continue => continue,
                    flow => return (flow, served),
                }
            }
            let out_bytes_max = self.shared.config.write_backlog_bytes_max;
            let Scratch {
                inputs,
                ends,
                out,
                wakes,
                ..
            } = scratch;
            let is_too_late = self.is_too_late(read_ms);
            if is_too_late {
                limits::throttle(inputs);
            }
            let requests = Batch {
                conn: self.id,
                inputs,
                ends,
                start: served,
                arrived_ms,
                out_bytes_max,
                aftermath: None,
            };
            let leftover = self.shared.turns.serve(requests, out, wakes);
            arrived_ms.get_or_insert(leftover.began_ms);
            if is_too_late {
                let UniverseState { limits, config, .. } = &*self.shared;
                limits.throttled(config, &inputs[..leftover.applied]);
            }
            let all_applied = leftover.applied == inputs.len();
            inputs.clear();
            if leftover.applied > 0 {
                served = scratch.ends[leftover.applied - 1];
            }
            if let Some(why) = leftover.close {
                return (Flow::Close(CloseCause::Ordered(why)), served);
            }
            if !all_applied {
                return (Flow::Full, served);
            }
            if let Some(why) = fault {
                return (Flow::Close(why), served);
            }
            if out.len() > out_bytes_max {
                return (Flow::Full, served);
            }
        }
    }

    /// Returns whether the input of a new connection is to be read as a handshake: not while the server
    /// is cut off.
    ///
    /// # Errors
    /// When it is HTTP or a four-letter word, which is answered here.
    #[cold]
    #[inline(never)]
    fn is_handshake(
        &self,
        batch: &Bytes,
        start: usize,
        scratch: &mut Scratch,
    ) -> Result<bool, CloseCause> {
        #[cfg(feature = "control")]
        if self.shared.config.control.is_enabled && handover::are_http(&batch[start..]) {
            return Err(CloseCause::Http);
        }
        if self.is_cut_off() {
            return Ok(false);
        }
        let Some(word) = (self.shared.server.find_word)(&batch[start..]) else {
            return Ok(true);
        };
        if !self.shared.turns.is_small() {
            self.answer_on_thread(word, batch.slice(start..));
            return Err(CloseCause::FourLetterWordBegun);
        }
        let (input, server) = (&batch[start..], self.server.max(1));
        let answer = words::answer(word, input, &self.shared, self.id, server);
        scratch.out.extend_from_slice(answer.as_bytes());
        Err(CloseCause::FourLetterWord)
    }

    /// Decodes the frame at `start` into the turn's inputs, if it is whole. Returns where the next
    /// one begins.
    ///
    /// Inputs are large, so they are created in place instead of being returned.
    fn take_frame(
        &mut self,
        batch: &Bytes,
        start: usize,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, CloseCause> {
        if !self.is_open && !self.is_handshake(batch, start, scratch)? {
            return Ok(None);
        }
        let bytes_max = self.shared.config.frame_bytes_max;
        let found = if self.is_open {
            frame::next(&batch[start..], bytes_max).map_err(CloseCause::Frame)
        } else {
            let bytes_max = bytes_max.min(HANDSHAKE_BYTES_MAX);
            frame::next(&batch[start..], bytes_max).map_err(CloseCause::Handshake)
        };
        let Some(body) = found? else {
            return Ok(None);
        };
        let UniverseState { limits, config, .. } = &*self.shared;
        let length = body.len();
        limits
            .admit_request(config, length)
            .map_err(CloseCause::Limit)?;
        let (body_start, end) = (start + body.start, start + body.end);
        let mut reader = Reader::window(batch, body_start..end);
        if self.is_open {
            decode(self.id, &mut reader, &mut scratch.inputs).map_err(CloseCause::Message)?;
        } else {
            let hello = ConnectRequest::decode(&mut reader).map_err(CloseCause::Message)?;
            if self.is_read_only && hello.read_only != Some(true) {
                return Err(CloseCause::ReadOnly);
            }
            let now_ms = || self.shared.turns.clock().elapsed_ms();
            limits.admit(config, now_ms).map_err(CloseCause::Limit)?;
            self.is_open = true;
            self.outbox.set_open(true);
            scratch.inputs.push(Input::Connect {
                conn: self.id,
                hello,
                is_read_only: self.is_read_only,
            });
        }
        Ok(Some(end))
    }
}

/// Refuses the requests that a read-only server of ZooKeeper refuses. Source: ZooKeeper 3.9,
/// `ReadOnlyRequestProcessor`.
#[cold]
fn refuse_changes(inputs: &mut [Input]) {
    use OpCode::{
        Check, Create, Create2, CreateContainer, CreateTtl, Delete, DeleteContainer, Multi,
        Reconfig, SetAcl, SetData, Sync,
    };
    for input in inputs {
        if let Input::Request { request, .. } = input
            && let Sync | Create | Create2 | CreateTtl | CreateContainer | Delete | DeleteContainer
            | SetData | Reconfig | SetAcl | Multi | Check = request.op()
        {
            input.refuse(ErrorCode::NotReadOnly);
        }
    }
}

/// Decodes one request into the turn's inputs.
///
/// # Errors
/// When the connection must close because of it. Every other malformed request becomes an input
/// with an error reply.
fn decode(
    conn: ConnId,
    reader: &mut Reader<'_>,
    inputs: &mut Vec<Input>,
) -> Result<(), DecodeError> {
    let RequestHeader { xid, op } = RequestHeader::decode(reader)?;
    let Some(op) = OpCode::from_code(op) else {
        inputs.push(Input::UnknownOp { conn, xid });
        return Ok(());
    };
    match Request::decode(op, reader) {
        // ZooKeeper closes the connection over a null token.
        Ok(Request::Sasl { token: None }) => return Err(DecodeError::Null { field: "token" }),
        Ok(request) => inputs.push(Input::Request { conn, xid, request }),
        // ZooKeeper does not queue these, and does not reply to malformed ones.
        Err(error) if matches!(op, OpCode::Auth | OpCode::Sasl) => return Err(error),
        Err(_) => {
            let consumes_zxid = op == OpCode::Multi;
            inputs.push(Input::Undecodable {
                conn,
                xid,
                consumes_zxid,
            });
        }
    }
    Ok(())
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(rest) = &mut self.rest {
            self.shared
                .limits
                .release_rest(&mut rest.held, &self.outbox);
            self.shared.limits.dropped(&rest.bytes);
            if rest.is_delayed
                && let Some(mut delayed) = self.shared.turns.faults.take_delayed(&self.outbox)
            {
                self.shared.limits.release(&mut delayed.held);
            }
        }
        self.shared.turns.unregister(self.id, self.is_left);
    }
}

/// Part of a frame, or frames that wait until output is written or a delay is over.
#[derive(Debug, Default)]
pub(crate) struct PendingInput {
    pub(crate) bytes: BytesMut,
    /// When its whole frames were read, in milliseconds since the start; `None` if there are none,
    /// or if waiting time is not limited.
    pub(crate) read_ms: Option<u64>,
    /// Whether it waits for an earlier request that a fault delays.
    pub(crate) is_delayed: bool,
    /// The share of the limits that it takes.
    pub(crate) held: Held,
}

impl Connection {
    /// Serves the one decoded request, from this frame, as faults demand.
    ///
    /// A separate function, to keep [`Connection::serve`] short.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_with_faults(
        &mut self,
        batch: &Bytes,
        frame: Range<usize>,
        read_ms: Option<u64>,
        arrived_ms: &mut Option<u64>,
        scratch: &mut Scratch,
    ) -> Flow {
        let mut input = scratch.inputs.pop().expect("a frame is an input");
        if self.shared.turns.faults.hold_requests() && picking::is_held(&input) {
            let wait = fault_turn::wait_for_pick;
            match self.hold(input, batch, frame.clone(), faults::PICKED, wait) {
                Ok(Some(back)) => input = back,
                Ok(None) => return Flow::Delayed,
                Err(why) => return Flow::Close(why),
            }
        }
        let delay = |input, rule, by| self.delay(input, batch, frame.clone(), rule, by);
        let judged = fault_turn::judge_or_delay(&self.shared, self.id, input, 0, delay);
        let (mut input, verdict) = match judged {
            Ok(Some(judged)) => judged,
            Ok(None) => return Flow::Delayed,
            Err(why) => return Flow::Close(why),
        };
        if verdict.is_none() && self.is_too_late(read_ms) {
            limits::throttle(std::slice::from_mut(&mut input));
            let UniverseState { limits, config, .. } = &*self.shared;
            limits.throttled(config, std::slice::from_ref(&input));
        }
        let request = FaultedRequest {
            conn: self.id,
            input,
            length: frame.len(),
            arrived_ms: *arrived_ms,
            late: None,
        };
        let op = match &request.input {
            Input::Connect { .. } => Some(OpCode::CreateSession),
            Input::Request { request, .. } => Some(request.op()),
            _ => None,
        };
        let is_lost = (verdict.as_ref())
            .is_some_and(|verdict| matches!(verdict.action, FaultAction::DropRequest));
        if op != Some(OpCode::Ping) {
            fault_turn::send_delayed_events(&self.shared, Some(self.id));
        }
        let Scratch { out, wakes, .. } = scratch;
        let from = out.len();
        let (leftover, delays) = fault_turn::serve(&self.shared, verdict, request, out, wakes);
        arrived_ms.get_or_insert(leftover.began_ms);
        match op {
            Some(OpCode::CreateSession) if is_lost => {
                // The client still has to shake hands, and cannot do so on this connection.
                self.outbox.set_open(false);
                let UniverseState {
                    handshakes, turns, ..
                } = &*self.shared;
                handshakes.add(&self.outbox, turns);
            }
            Some(OpCode::CloseSession) if is_lost => {
                // Its pings would keep the session, which it no longer uses, and its client waiting.
                self.outbox.set_delayed();
                return Flow::Delayed;
            }
            _ => {}
        }
        if op != Some(OpCode::Ping) {
            self.shared.turns.faults.note_served(self.id);
        }
        if let Some(verdict) = delays {
            return match self.delay_reply(out, from, frame.len(), &verdict) {
                Ok(true) => {
                    verdict.begun();
                    Flow::Delayed
                }
                Ok(false) => Flow::Continue,
                Err(why) => Flow::Close(why),
            };
        }
        match leftover.close {
            Some(why) => Flow::Close(CloseCause::Ordered(why)),
            None if out.len() > self.shared.config.write_backlog_bytes_max => Flow::Full,
            None => Flow::Continue,
        }
    }

    /// Delays the reply that a turn has appended to `out`, from `from` on. Returns false if the fault
    /// has just been removed.
    fn delay_reply(
        &self,
        out: &mut Vec<u8>,
        from: usize,
        length: usize,
        verdict: &Verdict,
    ) -> Result<bool, CloseCause> {
        let mut held = Held::default();
        let UniverseState { limits, config, .. } = &*self.shared;
        limits
            .hold(config, &mut held, out.len() - from, &[])
            .map_err(CloseCause::Limit)?;
        let delayed = Delayed {
            conn: self.id,
            outbox: self.outbox.clone(),
            input: None,
            length,
            rule: verdict.rule,
            pause: verdict.action.pause(),
            held,
            kept: None,
            writer: None,
        };
        let by = verdict.action.delay().unwrap_or_default();
        let result = fault_turn::delay_reply(&self.shared, by, delayed, out, from);
        Ok(match result {
            Ok(()) => true,
            Err(mut delayed) => {
                limits.release(&mut delayed.held);
                false
            }
        })
    }

    /// Delays a request. Returns the request if the fault has just been removed.
    fn delay(
        &self,
        input: Input,
        batch: &Bytes,
        frame: Range<usize>,
        rule: u64,
        by: Duration,
    ) -> Result<Option<Input>, CloseCause> {
        let delay = |shared: &UniverseState, delayed| fault_turn::delay(shared, by, delayed);
        self.hold(input, batch, frame, rule, delay)
    }

    /// Holds a request back. Returns the request if `wait` does.
    ///
    /// The request's slices keep the whole read in memory, so all of it is counted.
    fn hold(
        &self,
        input: Input,
        batch: &Bytes,
        frame: Range<usize>,
        rule: u64,
        wait: impl FnOnce(&UniverseState, Delayed) -> Result<(), Box<Delayed>>,
    ) -> Result<Option<Input>, CloseCause> {
        let mut held = Held::default();
        let UniverseState { limits, config, .. } = &*self.shared;
        let memory_bytes = batch.len().max(READ_BYTES);
        limits
            .hold(config, &mut held, memory_bytes, &batch[frame.clone()])
            .map_err(CloseCause::Limit)?;
        let delayed = Delayed {
            conn: self.id,
            outbox: self.outbox.clone(),
            input: Some(input),
            length: frame.len(),
            rule,
            pause: None,
            held,
            kept: None,
            writer: None,
        };
        Ok(match wait(&self.shared, delayed) {
            Ok(()) => None,
            Err(mut delayed) => {
                limits.release(&mut delayed.held);
                delayed.input
            }
        })
    }

    /// Returns whether a delayed request keeps everything after it from being read and served.
    pub(crate) fn is_delayed(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_delayed) && self.outbox.is_delayed()
    }

    /// Returns whether the delayed request has been served, so that the connection can continue.
    pub(crate) fn is_delay_over(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_delayed) && !self.outbox.is_delayed()
    }

    /// Returns whether an in-process client must wait before it writes more: as much input as one
    /// read takes already waits for a delayed request. The client is woken when that request is
    /// served.
    #[cold]
    pub(crate) fn is_write_delayed(&self, waker: &Waker) -> bool {
        let waiting = self.rest.as_ref().map_or(0, |rest| rest.bytes.len());
        self.is_delayed()
            && waiting >= READ_BYTES
            && self.shared.turns.faults.wait_to_write(&self.outbox, waker)
    }

    /// Ends the connection when its client has left. A delayed request is still served, and so is
    /// the input after it.
    pub(crate) fn finish(self) {
        if self.is_delayed() {
            let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
            drop(
                shared
                    .turns
                    .faults
                    .keep_until_served(&outbox, Box::new(self)),
            );
        }
    }
}
