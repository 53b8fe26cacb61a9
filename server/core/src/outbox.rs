//! The output of a connection other than replies to its requests: events, or the order to close.
//!
//! Other connections' turns fill it, under the engine lock, which fixes the order. The connection
//! itself empties it, at the start of each of its turns or when it is woken.

use std::{
    cmp::Reverse,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    task::Waker,
};

use minikeeper_engine::CloseReason;
use parking_lot::Mutex;

use crate::order;

/// Why a connection closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// The engine closes it.
    Engine(CloseReason),
    /// `outbox_bytes_max` is reached: the client does not read its events.
    OutboxFull,
    /// `unsent_bytes_max` is reached, and this connection has the most unread output.
    UnsentFull,
    /// `unserved_bytes_max` is reached, and this connection's input has waited longest.
    UnservedFull,
    /// The universe already has the session, on another connection.
    UniverseRefused,
    /// `handshake_timeout` is over.
    HandshakeTimeout,
    /// A thread has answered its four-letter word.
    WordAnswered,
    /// A test or administrator asked for it.
    Asked,
    /// An injected fault closes it.
    Injected,
    /// The server stops.
    Shutdown,
    /// The server has failed and serves no more requests.
    Broken,
}

impl std::fmt::Display for Close {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(reason) => reason.fmt(f),
            Self::OutboxFull => f.write_str("outbox_bytes_max reached: events are not read"),
            Self::UnsentFull => f.write_str("unsent_bytes_max reached: output is not read"),
            Self::UnservedFull => f.write_str("unserved_bytes_max reached: input waits too long"),
            Self::UniverseRefused => f.write_str("session is already connected to the universe"),
            Self::WordAnswered => f.write_str("four-letter word answered"),
            Self::HandshakeTimeout => f.write_str("handshake_timeout over"),
            Self::Asked => f.write_str("disconnected on request"),
            Self::Injected => f.write_str("cut by an injected fault"),
            Self::Shutdown => f.write_str("server stops"),
            Self::Broken => f.write_str("server has failed"),
        }
    }
}

#[derive(Debug, Default)]
pub struct Outbox {
    inner: Mutex<OutboxState>,
    /// Whether there is anything inside, so that a turn need not take the inner lock to find out.
    /// Changed only under the inner lock. Frames are added under the engine lock, so a turn, which
    /// holds it, sees all of them.
    is_filled: AtomicBool,
    /// Whether the handshake is done, so that its deadline no longer counts.
    is_open: AtomicBool,
    /// Whether the connection has sent a four-letter word, so that it makes no handshake.
    is_word: AtomicBool,
    /// Whether it is decided which universe the connection belongs to.
    is_bound: AtomicBool,
    /// Whether the connection reads and serves nothing until a delayed request has been served.
    is_delayed: AtomicBool,
    /// Output that the connection has taken but its socket has not. Unit: bytes.
    unsent_bytes: AtomicUsize,
    /// Memory of the connection's input that cannot be served yet, as counted against
    /// `unserved_bytes_max`. Code that takes this value must subtract it from that count. Unit:
    /// bytes.
    held_bytes: AtomicUsize,
    /// Orders connections by when their input began to wait: lower is earlier; 0 if none waits.
    held_since: AtomicU64,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// Whole frames, in the order in which to send them. Freed when emptied.
    frames: Vec<u8>,
    /// Why the connection must close once the frames are sent.
    close: Option<Close>,
    /// Whether an order to close waits for the end of a delay.
    is_pausing: bool,
    /// That order.
    late_close: Option<Close>,
    /// Wakes the connection; the first turn that adds a frame takes it.
    waker: Option<Waker>,
    /// Whether it is woken only to close: it is busy writing and has no use for frames.
    is_writing: bool,
    /// The number of frames that other turns have added, since the start or a reset.
    events: u32,
    /// The number of frames that other turns have ever added; wraps around.
    pushed: u32,
    /// The number of those that have been written for certain.
    written: u32,
    /// Whether the socket is full.
    is_stuck: bool,
    /// Whether the frames are kept back: a fault delays the reply before them.
    is_held: bool,
}

impl OutboxState {
    /// Takes the task to wake because a frame was added.
    const fn reader(&mut self) -> Option<Waker> {
        if self.is_writing || self.is_held {
            return None;
        }
        self.waker.take()
    }

    fn remember(&mut self, waker: &Waker, is_writing: bool) {
        self.is_writing = is_writing;
        if !self
            .waker
            .as_ref()
            .is_some_and(|known| known.will_wake(waker))
        {
            self.waker = Some(waker.clone());
        }
    }
}

impl Outbox {
    /// Sets whether the handshake is done.
    pub(crate) fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Notes that the connection has sent a four-letter word.
    pub(crate) fn set_word(&self) {
        self.is_word.store(true, Ordering::Release);
    }

    /// Returns whether the handshake is still to come.
    pub(crate) fn owes_handshake(&self) -> bool {
        !self.is_open() && !self.is_word.load(Ordering::Acquire)
    }

    pub(crate) fn set_bound(&self) {
        self.is_bound.store(true, Ordering::Release);
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound.load(Ordering::Acquire)
    }

    /// Returns whether the connection must close.
    pub(crate) fn is_closing(&self) -> bool {
        self.inner.lock().close.is_some()
    }

    /// Adds a frame. Returns the task to wake after the engine lock is released.
    ///
    /// If the frames then exceed `bytes_max`, the client does not read: drops all frames and closes
    /// the connection. The session lives on.
    pub(crate) fn push(
        &self,
        bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Pushed, Overflow> {
        let mut inner = self.inner.lock();
        if inner.close.is_some() {
            return Ok(Pushed::default());
        }
        self.is_filled.store(true, Ordering::Release);
        let before = inner.frames.capacity();
        write(&mut inner.frames);
        let grown_bytes = inner.frames.capacity() - before;
        inner.events = inner.events.saturating_add(1);
        inner.pushed = inner.pushed.wrapping_add(1);
        if inner.frames.len() > bytes_max {
            inner.frames = Vec::new();
            inner.close = Some(Close::OutboxFull);
            return Err(Overflow {
                waker: inner.waker.take(),
            });
        }
        Ok(Pushed {
            waker: inner.reader(),
            grown_bytes,
        })
    }

    /// Sets the size of the output that the socket has not taken; 0 once it has taken all.
    pub(crate) fn set_unsent(&self, bytes: usize) {
        self.unsent_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the memory of the output that the client has not read; 0 if the connection is
    /// closing.
    fn waiting_bytes(&self) -> usize {
        let inner = self.inner.lock();
        if inner.close.is_some() {
            return 0;
        }
        inner.frames.capacity() + self.unsent_bytes.load(Ordering::Relaxed)
    }

    /// Orders the connection to close, and drops the frames that it has not taken. Returns the task
    /// to wake.
    fn cut(&self, why: Close) -> Option<Waker> {
        let mut inner = self.inner.lock();
        self.is_filled.store(true, Ordering::Release);
        inner.frames = Vec::new();
        inner.close.get_or_insert(why);
        inner.waker.take()
    }

    /// Takes the counted size of the connection's waiting input, which becomes 0.
    pub(crate) fn take_held(&self) -> usize {
        self.held_bytes.swap(0, Ordering::AcqRel)
    }

    /// Sets the size of the connection's waiting input, and the number with which it began to wait.
    pub(crate) fn set_held(&self, bytes: usize, since: u64) {
        self.held_since.store(since, Ordering::Relaxed);
        self.held_bytes.store(bytes, Ordering::Release);
    }

    /// Returns the number with which its input began to wait; 0 if none waits.
    pub(crate) fn held_since(&self) -> u64 {
        self.held_since.load(Ordering::Relaxed)
    }

    /// Adds the output of a turn that served this connection in place of its task, under the same
    /// lock as the turn. Not limited in size, because a single reply is not. Returns the task to
    /// wake.
    pub(crate) fn put_back(&self, out: &mut Vec<u8>) -> Option<Waker> {
        let mut inner = self.inner.lock();
        if out.is_empty() || inner.close.is_some() {
            return None;
        }
        self.is_filled.store(true, Ordering::Release);
        inner.frames.append(out);
        inner.reader()
    }

    /// Keeps this reply back, and all frames behind it, until [`Outbox::end_delay`].
    pub(crate) fn hold_reply(&self, mut reply: Vec<u8>) {
        let mut inner = self.inner.lock();
        inner.is_held = true;
        if !reply.is_empty() && inner.close.is_none() {
            reply.append(&mut inner.frames);
            inner.frames = reply;
        }
    }

    /// Lets an order to close wait until [`Outbox::end_delay`].
    pub(crate) fn begin_pause(&self) {
        self.inner.lock().is_pausing = true;
    }

    /// Sends what was kept back, and nothing that comes later. Returns the task to wake.
    pub(crate) fn send_held(&self) -> Option<Waker> {
        let mut inner = self.inner.lock();
        inner.is_held = false;
        self.is_filled
            .store(!inner.frames.is_empty(), Ordering::Release);
        inner.waker.take()
    }

    pub(crate) fn set_delayed(&self) {
        self.is_delayed.store(true, Ordering::Release);
    }

    pub(crate) fn is_delayed(&self) -> bool {
        self.is_delayed.load(Ordering::Acquire)
    }

    /// Lets the connection continue after a delay. Returns the task to wake. A task that registers
    /// later must check [`Outbox::is_delayed`] after that.
    pub(crate) fn end_delay(&self) -> Option<Waker> {
        let mut inner = self.inner.lock();
        inner.is_held = false;
        if std::mem::take(&mut inner.is_pausing) && inner.close.is_none() {
            inner.close = inner.late_close.take();
        }
        let is_filled = !inner.frames.is_empty() || inner.close.is_some();
        self.is_filled.store(is_filled, Ordering::Release);
        self.is_delayed.store(false, Ordering::Release);
        inner.waker.take()
    }

    /// Returns the state that reports show.
    pub fn view(&self) -> OutboxView {
        let inner = self.inner.lock();
        OutboxView {
            events: inner.events,
            is_filled: !inner.frames.is_empty(),
            is_writing: inner.is_writing,
        }
    }

    pub(crate) fn reset_events(&self) {
        self.inner.lock().events = 0;
    }

    /// Orders the connection to close. Returns the task to wake.
    pub fn close(&self, why: Close) -> Option<Waker> {
        let mut inner = self.inner.lock();
        if inner.is_pausing {
            inner.late_close.get_or_insert(why);
            return None;
        }
        self.is_filled.store(true, Ordering::Release);
        if inner.is_held {
            // A reply that is late is lost, even if its delay ends before the connection's task runs.
            inner.frames = Vec::new();
        }
        inner.close.get_or_insert(why);
        inner.waker.take()
    }

    /// Moves all waiting frames to the end of `out`. Returns why the connection must close, if it
    /// must.
    pub(crate) fn drain(&self, out: &mut Vec<u8>) -> Option<Close> {
        if !self.is_filled.load(Ordering::Acquire) {
            return None;
        }
        let mut inner = self.inner.lock();
        if !inner.frames.is_empty() && !inner.is_held {
            if out.is_empty() {
                std::mem::swap(out, &mut inner.frames);
                // The exchanged buffer may be large; an idle outbox keeps no memory.
                inner.frames = Vec::new();
            } else {
                out.append(&mut std::mem::take(&mut inner.frames));
            }
        }
        // An order to close is never withdrawn.
        self.is_filled
            .store(inner.close.is_some(), Ordering::Release);
        inner.close
    }

    /// Registers the task to wake, unless something already waits. Call it only after everything
    /// drained before has been written.
    #[inline]
    pub(crate) fn register(&self, waker: &Waker) -> Registered {
        let mut inner = self.inner.lock();
        inner.is_stuck = false;
        if !inner.frames.is_empty() && !inner.is_held || inner.close.is_some() {
            return Registered::SomethingWaits;
        }
        inner.remember(waker, false);
        inner.written = inner.pushed;
        Registered::Quiet
    }

    /// Registers the task to wake when something changes, whatever waits.
    pub(crate) fn wait(&self, waker: &Waker) {
        self.inner.lock().remember(waker, true);
    }

    /// Takes the task to wake.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        self.inner.lock().waker.take()
    }

    /// Records that the socket is full.
    pub(crate) fn set_stuck(&self) {
        self.inner.lock().is_stuck = true;
    }

    /// Returns how many frames were ever added, if some are not written yet and the socket is not
    /// full.
    pub fn owed(&self) -> Option<u32> {
        let inner = self.inner.lock();
        let is_owed = inner.pushed != inner.written && !inner.is_stuck && !inner.is_held;
        is_owed.then_some(inner.pushed)
    }

    /// Returns whether one of the first `pushed` frames is not written yet and the socket is not
    /// full.
    pub fn owes(&self, pushed: u32) -> bool {
        let inner = self.inner.lock();
        // The counts wrap around, but never during one wait.
        let missing = pushed.wrapping_sub(inner.written).cast_signed();
        missing > 0 && !inner.is_stuck && !inner.is_held
    }

    /// Registers the task to wake only when the connection must close: the socket is full, so
    /// frames can wait. Returns why it must close if it already must.
    pub(crate) fn register_close(&self, waker: &Waker) -> Option<Close> {
        let mut inner = self.inner.lock();
        if inner.close.is_none() {
            inner.remember(waker, true);
        }
        inner.close
    }
}

/// The unread output of all connections of a universe: events in outboxes, and output that sockets
/// did not take.
///
/// The count only grows, so that sending costs nothing. When it reaches the limit, the real total
/// is measured. The cost of measuring every connection is spread over the bytes counted since then.
#[derive(Debug)]
pub(crate) struct UnsentTotal {
    /// An upper bound of the real total. Unit: bytes.
    counted: AtomicUsize,
    bytes_max: usize,
}

impl UnsentTotal {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            counted: AtomicUsize::new(0),
            bytes_max,
        }
    }

    /// Adds to the total. Returns whether it may exceed the limit; then the caller calls
    /// [`UnsentTotal::relieve`].
    #[inline]
    pub(crate) fn add(&self, bytes: usize) -> bool {
        bytes > 0 && self.counted.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bytes_max
    }

    /// Measures the total and, if it exceeds the limit, closes the connections with the most output
    /// until an eighth of the limit is free. Their sessions live on. Returns how many it closed,
    /// and the tasks to wake.
    ///
    /// Called under the engine lock.
    pub(crate) fn relieve<'a>(
        &self,
        outboxes: impl Iterator<Item = &'a Outbox>,
    ) -> (u64, Vec<Waker>) {
        let counted = self.counted.load(Ordering::Relaxed);
        let mut waiting: Vec<_> = outboxes
            .map(|outbox| (outbox.waiting_bytes(), outbox))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        let mut total: usize = waiting.iter().map(|(bytes, _)| bytes).sum();
        let (mut closed, mut wakes) = (0, Vec::new());
        if total > self.bytes_max {
            order::sort_by_key(&mut waiting, |(bytes, _)| Reverse(*bytes));
            for (bytes, outbox) in waiting {
                if total <= self.bytes_max - self.bytes_max / 8 {
                    break;
                }
                wakes.extend(outbox.cut(Close::UnsentFull));
                total -= bytes;
                closed += 1;
            }
            tracing::warn!(
                setting = "unsent_bytes_max",
                max = self.bytes_max,
                closed,
                "limit reached: the connections with the most unread output are closed"
            );
        }
        // Output added in the meantime stays counted.
        let change = total.wrapping_sub(counted);
        self.counted.fetch_add(change, Ordering::Relaxed);
        (closed, wakes)
    }
}

/// Closes connections whose input has waited longer than that with the number `since`, the longest
/// first, until this many bytes are free. Returns the number of bytes freed, the number of
/// connections closed, and the tasks to wake.
pub(crate) fn free_held<'a>(
    outboxes: impl Iterator<Item = &'a Outbox>,
    since: u64,
    bytes: usize,
) -> (usize, u64, Vec<Waker>) {
    let mut waiting: Vec<_> = outboxes
        .map(|outbox| (outbox.held_since(), outbox))
        .filter(|(other, _)| (1..since).contains(other))
        .collect();
    order::sort_by_key(&mut waiting, |(since, _)| *since);
    let (mut freed, mut closed, mut wakes) = (0, 0, Vec::new());
    for (_, outbox) in waiting {
        if freed >= bytes {
            break;
        }
        match outbox.take_held() {
            0 => {}
            held => {
                freed += held;
                closed += 1;
                wakes.extend(outbox.close(Close::UnservedFull));
            }
        }
    }
    (freed, closed, wakes)
}

/// The result of adding a frame. Empty if the connection is closing.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    /// The task to wake after the engine lock is released.
    pub(crate) waker: Option<Waker>,
    /// The growth of the outbox. Unit: bytes.
    pub(crate) grown_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct OutboxView {
    /// The number of frames added since the start or a reset.
    pub events: u32,
    /// Whether frames wait.
    pub is_filled: bool,
    /// Whether the socket is full.
    pub is_writing: bool,
}

/// The outbox is full; its connection must close.
pub(crate) struct Overflow {
    pub(crate) waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Registered {
    /// The waker is registered and will be called.
    Quiet,
    /// Drain first.
    SomethingWaits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_in_order_and_once() {
        let outbox = Outbox::default();
        let mut out = b"own".to_vec();
        for frame in [b"a", b"b"] {
            assert!(outbox.push(10, |out| out.extend_from_slice(frame)).is_ok());
        }
        assert_eq!(outbox.register(Waker::noop()), Registered::SomethingWaits);
        assert_eq!(outbox.drain(&mut out), None);
        assert_eq!(out, b"ownab");
        assert_eq!(outbox.drain(&mut out), None);
        assert_eq!(out, b"ownab");
        assert_eq!(outbox.register(Waker::noop()), Registered::Quiet);
    }

    /// Drained frames may still be unwritten: only a connection that waits again has written all.
    #[test]
    fn event_is_owed_until_its_connection_waits_again_or_is_stuck() {
        let outbox = Outbox::default();
        assert_eq!(outbox.owed(), None);
        for _ in 0..2 {
            assert!(outbox.push(10, |out| out.push(1)).is_ok());
        }
        let owed = outbox.owed().unwrap();
        assert_eq!(outbox.register(Waker::noop()), Registered::SomethingWaits);
        outbox.drain(&mut Vec::new());
        assert!(outbox.owes(owed));
        outbox.set_stuck();
        assert!(!outbox.owes(owed) && outbox.owed().is_none());
        assert_eq!(outbox.register(Waker::noop()), Registered::Quiet);
        assert!(outbox.push(10, |out| out.push(1)).is_ok());
        // The later frame is not one of those waited for.
        assert!(!outbox.owes(owed) && outbox.owed().is_some());
    }

    #[test]
    fn writer_is_woken_to_close_and_not_for_frames() {
        let outbox = Outbox::default();
        assert_eq!(outbox.register_close(Waker::noop()), None);
        let pushed = outbox.push(10, |out| out.push(1));
        assert!(pushed.is_ok_and(|pushed| pushed.waker.is_none()));
        assert!(outbox.close(Close::Asked).is_some());
        assert_eq!(outbox.register_close(Waker::noop()), Some(Close::Asked));
        // Too many frames wake it too, to close.
        let outbox = Outbox::default();
        assert_eq!(outbox.register_close(Waker::noop()), None);
        let pushed = outbox.push(3, |out| out.extend_from_slice(b"four"));
        assert!(pushed.is_err_and(|overflow| overflow.waker.is_some()));
    }

    /// A hundred watchers that never read held 1.45 GB together, each below its own limit.
    #[test]
    fn outboxes_with_most_unread_output_are_closed_beyond_the_total_limit() {
        let total = UnsentTotal::new(10_000);
        let outboxes: Vec<_> = (0..5).map(|_| Outbox::default()).collect();
        let all = || outboxes.iter();
        let push = |number: usize, bytes: usize| {
            let pushed = outboxes[number].push(1 << 20, |out| {
                out.reserve_exact(bytes);
                out.resize(out.len() + bytes, 0);
            });
            total.add(pushed.ok().unwrap().grown_bytes)
        };
        let is_closed = |number: usize| outboxes[number].drain(&mut Vec::new()).is_some();
        for number in 0..4 {
            assert!(!push(number, 2_000 + number));
        }
        // Output that was read stays counted until the next measurement.
        outboxes[0].drain(&mut Vec::new());
        assert!(push(4, 3_000));
        let (closed, wakes) = total.relieve(all());
        assert_eq!((closed, wakes.len()), (0, 0));
        // Output that sockets did not take counts too.
        outboxes[0].set_unsent(1_900);
        assert!(total.add(1_900));
        let (closed, _) = total.relieve(all());
        assert_eq!(
            closed, 1,
            "closing the one with 3,000 bytes frees more than an eighth"
        );
        assert!(is_closed(4) && !is_closed(0));
        // The others had less, and stay counted with their real sizes.
        assert!(!push(1, 1_000));
    }

    #[test]
    fn input_that_waits_longest_is_dropped_first() {
        let outboxes: Vec<_> = (0..4).map(|_| Outbox::default()).collect();
        for (outbox, since) in outboxes.iter().zip([3, 1, 2, 0]) {
            outbox.set_held(100, since);
        }
        let (freed, closed, _) = free_held(outboxes.iter(), 3, 150);
        assert_eq!((freed, closed), (200, 2));
        assert_eq!(outboxes[0].take_held(), 100);
        for outbox in &outboxes[1..3] {
            assert_eq!(outbox.drain(&mut Vec::new()), Some(Close::UnservedFull));
            // The connection itself then has nothing left to subtract.
            assert_eq!(outbox.take_held(), 0);
        }
        assert_eq!(free_held(outboxes.iter(), 9, 1).0, 0);
    }

    #[test]
    fn full_outbox_drops_everything_and_closes() {
        let outbox = Outbox::default();
        assert_eq!(outbox.register(Waker::noop()), Registered::Quiet);
        let pushed = outbox.push(3, |out| out.extend_from_slice(b"four"));
        assert!(pushed.is_err_and(|overflow| overflow.waker.is_some()));
        let mut out = Vec::new();
        assert_eq!(outbox.drain(&mut out), Some(Close::OutboxFull));
        assert_eq!(out, b"");
        // Nothing is kept for a connection that is closing.
        assert!(
            outbox
                .push(3, |out| out.push(1))
                .is_ok_and(|pushed| pushed.waker.is_none())
        );
        assert_eq!(outbox.drain(&mut out), Some(Close::OutboxFull));
        assert_eq!(out, b"");
    }
}
