//! One connection without its socket: bytes in, turns taken, bytes out.
//!
//! Splits frames, decodes requests, batches them into turns. It reads no socket, so the TCP task
//! ([`crate::net::socket`]) and the in-process stream ([`crate::net::local`]) are the same server.
//!
//! Source: `docs/zookeeper-protocol.md` sections 2.1, 2.2, 6.2 and 6.5.

use std::{ops::Range, sync::Arc, task::Waker, time::Duration};

use bytes::{Bytes, BytesMut};
use minikeeper_engine::{ConnId, Input};
use minikeeper_protocol::{
    ConnectRequest, DecodeError, FrameError, OpCode, Reader, Request, RequestHeader, frame,
};

use crate::{
    admin::four_letter::words,
    faults::{Verdict, action::FaultAction, delayed::Delayed},
    net::{
        limits::{self, Breach, Held},
        scratch::{READ_BYTES, Scratch},
    },
    turn::{
        fault_turn::{self, FaultedRequest},
        outbox::{Close, Outbox},
        stats::Peer,
        turns::Batch,
    },
    universe::state::UniverseState,
};

#[cfg(feature = "control")]
use crate::control::handover;

/// The longest handshake. A usual one has 45 bytes, 16 of them the password. The server keeps no
/// more input than this of a connection without a handshake. Unit: bytes.
const HANDSHAKE_BYTES_MAX: usize = 8 << 10;

/// Why the connection itself wants to close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CloseCause {
    /// The length in front of a frame cannot be followed.
    Frame(FrameError),
    /// The length in front of a handshake cannot be followed.
    Handshake(FrameError),
    /// The handshake, a request header or an auth packet makes no sense.
    Message(DecodeError),
    /// A four-letter word was answered.
    FourLetterWord,
    /// Another turn or the engine said so.
    Told(Close),
    /// A limit is reached.
    Limit(Breach),
    /// It speaks HTTP, which other code serves: see [`Connection::take_read`].
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
            Self::Told(why) => why.fmt(f),
            Self::Limit(breach) => breach.fmt(f),
            #[cfg(feature = "control")]
            Self::Http => f.write_str("it speaks HTTP"),
        }
    }
}

/// Whether the connection stays open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// Everything that has arrived whole is served; more input is welcome.
    Continue,
    /// There is much to write; call [`Connection::serve_rest`] once it is written.
    Full,
    /// A fault delays a request; nothing is read or served until then. Events may come.
    Delayed,
    /// Write what there is, then close.
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
    /// Whether it is known to which universe it belongs.
    pub(crate) is_bound: bool,
    /// Whether it has seen a zxid of the server's own universe.
    pub(crate) has_seen_root: bool,
    /// Input that has not been served. Behind a pointer, as few connections have some.
    rest: Option<Box<PendingInput>>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<UniverseState>, peer: Peer) -> Self {
        let (id, outbox) = shared.turns.register(peer);
        Self {
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

    /// Where the next read should go: behind the rest of the last one, if there was any.
    pub(crate) fn read_buffer<'a>(&'a mut self, scratch: &'a mut Scratch) -> &'a mut BytesMut {
        let Some(rest) = &mut self.rest else {
            scratch.read.reserve(READ_BYTES);
            return &mut scratch.read;
        };
        // Doubles as data comes: what a length prefix claims costs nothing by itself.
        let wanted = rest.bytes.len().clamp(4 << 10, READ_BYTES);
        rest.bytes.reserve(wanted);
        &mut rest.bytes
    }

    /// Serves what a read has put into [`Connection::read_buffer`].
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
        // Nothing keeps a slice of the batch, so the buffer comes back.
        if let Ok(mut buffer) = batch.try_into_mut() {
            buffer.clear();
            scratch.read = buffer;
        }
        flow
    }

    /// Serves what was left over: after writing, or after more input was appended to it.
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
        // Part of a frame needs no second look before the frame is whole.
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

    /// Keeps what could not be served, if the limits allow it.
    fn keep(&mut self, mut rest: Box<PendingInput>, flow: Flow) -> Flow {
        if flow == Flow::Continue {
            // Part of a frame: it comes when its last byte does.
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

    /// Keeps the HTTP input: at most one read, for a short time.
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

    /// The time, if it matters to requests how long they have waited.
    fn read_ms(&self) -> Option<u64> {
        let UniverseState { turns, config, .. } = &*self.shared;
        let is_asked = !config.throttled_op_wait_time.is_zero();
        is_asked.then(|| turns.clock().elapsed_ms())
    }

    /// Whether requests that were read then have waited too long.
    fn is_too_late(&self, read_ms: Option<u64>) -> bool {
        let (Some(read_ms), Some(now_ms)) = (read_ms, self.read_ms()) else {
            return false;
        };
        let wait_max = self.shared.config.throttled_op_wait_time.as_millis();
        u128::from(now_ms.saturating_sub(read_ms)) > wait_max
    }

    /// Whether frames wait in [`Connection::serve_rest`] or part of one does.
    pub(crate) const fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Serves the whole frames of a batch; says how many bytes are done with.
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
            // One by one while there are faults, and until one of them says to which universe they
            // all belong.
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
                return (fault.map_or(Flow::Continue, Flow::Close), served);
            }
            if is_unbound && self.bind(&mut scratch.inputs) {
                // Once more, in the universe it belongs to.
                scratch.inputs.clear();
                continue;
            }
            self.rebase(&mut scratch.inputs);
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
                return (Flow::Close(CloseCause::Told(why)), served);
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

    /// Decodes the frame at `start` into the turn's inputs, if it is whole; says where the next
    /// one begins.
    ///
    /// Inputs are large, so they are made where they stay instead of being handed up.
    fn take_frame(
        &mut self,
        batch: &Bytes,
        start: usize,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, CloseCause> {
        if !self.is_open
            && let Some(word) = words::find(&batch[start..])
        {
            let answer = words::answer(word, &batch[start..], &self.shared, self.id);
            scratch.out.extend_from_slice(answer.as_bytes());
            return Err(CloseCause::FourLetterWord);
        }
        #[cfg(feature = "control")]
        if !self.is_open
            && self.shared.config.control.is_enabled
            && handover::are_http(&batch[start..])
        {
            return Err(CloseCause::Http);
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
            let now_ms = || self.shared.turns.clock().elapsed_ms();
            limits.admit(config, now_ms).map_err(CloseCause::Limit)?;
            self.is_open = true;
            self.outbox.set_open();
            scratch.inputs.push(Input::Connect {
                conn: self.id,
                hello,
            });
        }
        Ok(Some(end))
    }
}

/// Decodes one request into the turn's inputs.
///
/// # Errors
/// When the connection must close over it: whatever can be answered becomes an input.
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
        // What bypasses the queue in ZooKeeper is not answered when malformed.
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

/// Part of a frame, or frames that wait for the writer. Exists only while there is some.
#[derive(Debug, Default)]
pub(crate) struct PendingInput {
    pub(crate) bytes: BytesMut,
    /// When the whole frames in it were read, in milliseconds since the start; `None` if there are
    /// none, or if it is not needed.
    pub(crate) read_ms: Option<u64>,
    /// Whether it waits for a request in front of it that a fault delays.
    pub(crate) is_delayed: bool,
    /// The share of the limits that it takes.
    pub(crate) held: Held,
}

impl Connection {
    /// Serves the one request that was taken, from this frame, as faults will have it.
    ///
    /// Out of the way of [`Connection::serve`], which stays as short as it is.
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
        let mut verdict = fault_turn::judge(&self.shared, self.id, &input, 0);
        while let Some(Verdict {
            rule,
            action: FaultAction::Delay(by),
            hits,
        }) = verdict
        {
            match self.delay(input, batch, frame.clone(), rule, by) {
                Ok(None) => {
                    hits.hit();
                    return Flow::Delayed;
                }
                // Removed this very moment.
                Ok(Some(back)) => input = back,
                Err(why) => return Flow::Close(why),
            }
            verdict = fault_turn::judge(&self.shared, self.id, &input, rule);
        }
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
        let Scratch { out, wakes, .. } = scratch;
        let leftover = fault_turn::serve(&self.shared, verdict, request, out, wakes);
        arrived_ms.get_or_insert(leftover.began_ms);
        match leftover.close {
            Some(why) => Flow::Close(CloseCause::Told(why)),
            None if out.len() > self.shared.config.write_backlog_bytes_max => Flow::Full,
            None => Flow::Continue,
        }
    }

    /// Has a request served later; gives it back if it will not be.
    ///
    /// Its slices keep all that came with the same read in memory, which is counted.
    fn delay(
        &self,
        input: Input,
        batch: &Bytes,
        frame: Range<usize>,
        rule: u64,
        by: Duration,
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
            input,
            length: frame.len(),
            rule,
            held,
            kept: None,
            writer: None,
        };
        Ok(match fault_turn::delay(&self.shared, by, delayed) {
            Ok(()) => None,
            Err(mut delayed) => {
                limits.release(&mut delayed.held);
                Some(delayed.input)
            }
        })
    }

    /// Whether nothing is read or served until a request has been.
    pub(crate) fn is_delayed(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_delayed) && self.outbox.is_delayed()
    }

    /// Whether it has been served since that was looked at.
    pub(crate) fn is_delay_over(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_delayed) && !self.outbox.is_delayed()
    }

    /// Whether a client inside the process has to wait before it writes more: as much waits
    /// behind a delayed request as one read would take. It is woken when that is served.
    #[cold]
    pub(crate) fn is_write_delayed(&self, waker: &Waker) -> bool {
        let waiting = self.rest.as_ref().map_or(0, |rest| rest.bytes.len());
        self.is_delayed()
            && waiting >= READ_BYTES
            && self.shared.turns.faults.wait_to_write(&self.outbox, waker)
    }

    /// The client is gone; what it has sent and what is delayed is still served.
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
