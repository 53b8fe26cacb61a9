//! The output of a connection that is not a reply to its requests: events, or the order to close.
//!
//! Filled by other connections' turns, under the engine lock, which fixes the order; emptied by
//! the connection itself, at the start of each of its turns or when it is woken.

use std::{
    cmp::Reverse,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    task::Waker,
};

use minikeeper_engine::CloseReason;
use parking_lot::Mutex;

/// Why a connection closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Close {
    /// The engine said so.
    Engine(CloseReason),
    /// `outbox_bytes_max` is reached: the client does not read its events.
    OutboxFull,
    /// `unsent_bytes_max` is reached, and this connection has most of it.
    UnsentFull,
    /// `unserved_bytes_max` is reached, and this connection's input has waited longest.
    UnservedFull,
    /// The universe has the session already, on another connection.
    UniverseRefused,
    /// `handshake_timeout` is over.
    HandshakeTimeout,
    /// A test or administrator asked for it.
    Asked,
    /// A fault that a test has injected says so.
    Injected,
    /// The server stops.
    Shutdown,
    /// The engine panicked; nothing is served any more.
    Broken,
}

impl std::fmt::Display for Close {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(reason) => reason.fmt(f),
            Self::OutboxFull => f.write_str("outbox_bytes_max reached: events are not read"),
            Self::UnsentFull => f.write_str("unsent_bytes_max reached: output is not read"),
            Self::UnservedFull => f.write_str("unserved_bytes_max reached: input waits too long"),
            Self::UniverseRefused => f.write_str("session is in the universe already, connected"),
            Self::HandshakeTimeout => f.write_str("handshake_timeout over"),
            Self::Asked => f.write_str("disconnected on request"),
            Self::Injected => f.write_str("cut by an injected fault"),
            Self::Shutdown => f.write_str("server stops"),
            Self::Broken => f.write_str("server is broken by an internal error"),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    inner: Mutex<OutboxState>,
    /// Whether there is something inside, so that a turn need not take the inner lock to find
    /// nothing. Changed under the inner lock only; frames are put in under the engine lock, so
    /// a turn, which holds that, sees every one of them.
    is_filled: AtomicBool,
    /// Whether the handshake is over, so that its deadline no longer counts.
    is_open: AtomicBool,
    /// Whether the connection has shown which universe it belongs to.
    is_bound: AtomicBool,
    /// Whether the connection reads and serves nothing until a delayed request has been served.
    is_delayed: AtomicBool,
    /// Output that the connection has taken and its socket has not. Unit: bytes.
    unsent_bytes: AtomicUsize,
    /// Memory of the connection's input that cannot be served yet, as it is counted against
    /// `unserved_bytes_max`. The code that takes it out uncounts it. Unit: bytes.
    held_bytes: AtomicUsize,
    /// Which input began to wait first: the lower number; 0 for none.
    held_since: AtomicU64,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// Whole frames, in the order they are to be sent. Freed when emptied.
    frames: Vec<u8>,
    /// Why the connection must close once the frames are sent.
    close: Option<Close>,
    /// Wakes the connection; the first turn that adds a frame takes it.
    waker: Option<Waker>,
    /// Whether it is woken only to close: it is busy writing and has no use for frames.
    is_writing: bool,
    /// The number of frames that other turns have added, since the start or a reset.
    events: u32,
    /// The number of frames that other turns have ever added; wraps around.
    pushed: u32,
    /// The number of those that have certainly been written.
    written: u32,
    /// Whether the socket is full.
    is_stuck: bool,
}

impl OutboxState {
    /// The task to wake because a frame was added.
    const fn reader(&mut self) -> Option<Waker> {
        if self.is_writing {
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
    pub(crate) fn set_open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
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

    /// Adds a frame. Returns who is to be woken after the engine lock is released.
    ///
    /// Beyond `bytes_max` it adds nothing and closes the connection, whose client does not read.
    /// The session lives on.
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

    /// Memory for what the client has not read yet; of a connection that is closing, nothing.
    fn waiting_bytes(&self) -> usize {
        let inner = self.inner.lock();
        if inner.close.is_some() {
            return 0;
        }
        inner.frames.capacity() + self.unsent_bytes.load(Ordering::Relaxed)
    }

    /// Orders the connection to close, and drops the frames that it has not taken.
    fn cut(&self, why: Close) -> Option<Waker> {
        let mut inner = self.inner.lock();
        self.is_filled.store(true, Ordering::Release);
        inner.frames = Vec::new();
        inner.close.get_or_insert(why);
        inner.waker.take()
    }

    /// Takes out what is counted of the connection's input.
    pub(crate) fn take_held(&self) -> usize {
        self.held_bytes.swap(0, Ordering::AcqRel)
    }

    /// Sets the size of the connection's waiting input, and the number with which it began to wait.
    pub(crate) fn set_held(&self, bytes: usize, since: u64) {
        self.held_since.store(since, Ordering::Relaxed);
        self.held_bytes.store(bytes, Ordering::Release);
    }

    /// The number with which its input began to wait; 0 if none waits.
    pub(crate) fn held_since(&self) -> u64 {
        self.held_since.load(Ordering::Relaxed)
    }

    /// Adds what a turn has made for this connection on its behalf, under the same lock as the
    /// turn. Of any size, as one reply may be. Returns who is to be woken.
    pub(crate) fn put_back(&self, out: &mut Vec<u8>) -> Option<Waker> {
        let mut inner = self.inner.lock();
        if out.is_empty() || inner.close.is_some() {
            return None;
        }
        self.is_filled.store(true, Ordering::Release);
        inner.frames.append(out);
        inner.reader()
    }

    pub(crate) fn set_delayed(&self) {
        self.is_delayed.store(true, Ordering::Release);
    }

    pub(crate) fn is_delayed(&self) -> bool {
        self.is_delayed.load(Ordering::Acquire)
    }

    /// Lets the connection continue. Returns the task to wake. A task that registers later must
    /// check [`Outbox::is_delayed`] after that.
    pub(crate) fn end_delay(&self) -> Option<Waker> {
        let mut inner = self.inner.lock();
        self.is_delayed.store(false, Ordering::Release);
        inner.waker.take()
    }

    /// What a report tells about it.
    pub(crate) fn view(&self) -> OutboxView {
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
    pub(crate) fn close(&self, why: Close) -> Option<Waker> {
        let mut inner = self.inner.lock();
        self.is_filled.store(true, Ordering::Release);
        inner.close.get_or_insert(why);
        inner.waker.take()
    }

    /// Moves everything that waits to the end of `out`; says why to close, if it must.
    pub(crate) fn drain(&self, out: &mut Vec<u8>) -> Option<Close> {
        if !self.is_filled.load(Ordering::Acquire) {
            return None;
        }
        let mut inner = self.inner.lock();
        if !inner.frames.is_empty() {
            if out.is_empty() {
                std::mem::swap(out, &mut inner.frames);
                // What came in exchange may be large; the outbox keeps nothing while idle.
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

    /// Says who is to be woken, unless something waits already. What was drained before has been
    /// written.
    #[inline]
    pub(crate) fn register(&self, waker: &Waker) -> Registered {
        let mut inner = self.inner.lock();
        inner.is_stuck = false;
        if !inner.frames.is_empty() || inner.close.is_some() {
            return Registered::SomethingWaits;
        }
        inner.remember(waker, false);
        inner.written = inner.pushed;
        Registered::Quiet
    }

    /// Notes that the socket is full.
    pub(crate) fn set_stuck(&self) {
        self.inner.lock().is_stuck = true;
    }

    /// How many frames have ever been put in, if they have not all been written and the socket
    /// would take them.
    pub(crate) fn owed(&self) -> Option<u32> {
        let inner = self.inner.lock();
        (inner.pushed != inner.written && !inner.is_stuck).then_some(inner.pushed)
    }

    /// Returns whether one of the first `pushed` frames is not written yet.
    pub(crate) fn owes(&self, pushed: u32) -> bool {
        let inner = self.inner.lock();
        // The counts wrap around, but not within the time of a wait.
        let missing = pushed.wrapping_sub(inner.written).cast_signed();
        missing > 0 && !inner.is_stuck
    }

    /// Registers the task to wake when the connection must close, unless it must already. Frames
    /// can wait, because the socket is full.
    pub(crate) fn register_close(&self, waker: &Waker) -> Option<Close> {
        let mut inner = self.inner.lock();
        if inner.close.is_none() {
            inner.remember(waker, true);
        }
        inner.close
    }
}

/// What waits for clients to read it, of all connections of a universe: events in outboxes, and
/// replies and events that sockets did not take.
///
/// Counted upwards alone, so that sending costs nothing; looked up when the count says that the
/// limit is reached. The bytes that came since the last time pay for looking at every connection.
#[derive(Debug)]
pub(crate) struct UnsentTotal {
    /// At least as much as there is. Unit: bytes.
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

    /// Adds to the total; returns whether it may exceed the limit, so that [`UnsentTotal::relieve`] is due.
    #[inline]
    pub(crate) fn add(&self, bytes: usize) -> bool {
        bytes > 0 && self.counted.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bytes_max
    }

    /// Closes the connections with most output until an eighth of the limit is free, if there
    /// really is too much. Their sessions live on. Returns how many there were, and the tasks to
    /// wake.
    ///
    /// Called under the engine's lock.
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
            waiting.sort_by_key(|(bytes, _)| Reverse(*bytes));
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
                "limit reached: the connections that have read least are closed"
            );
        }
        // Output added in between stays counted.
        let change = total.wrapping_sub(counted);
        self.counted.fetch_add(change, Ordering::Relaxed);
        (closed, wakes)
    }
}

/// Closes connections whose input has waited longer than that of number `since`, the longest first,
/// until the given number of bytes is free. Returns how many bytes were freed, how many connections
/// there were, and the tasks to wake.
pub(crate) fn free_held<'a>(
    outboxes: impl Iterator<Item = &'a Outbox>,
    since: u64,
    bytes: usize,
) -> (usize, u64, Vec<Waker>) {
    let mut waiting: Vec<_> = outboxes
        .map(|outbox| (outbox.held_since(), outbox))
        .filter(|(other, _)| (1..since).contains(other))
        .collect();
    waiting.sort_unstable_by_key(|(since, _)| *since);
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

/// A frame was added, unless the connection is closing.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    /// The tasks to wake after the engine lock is released.
    pub(crate) waker: Option<Waker>,
    /// The growth of the outbox. Unit: bytes.
    pub(crate) grown_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OutboxView {
    /// Frames put in, since the start or a reset.
    pub(crate) events: u32,
    /// Whether some of them wait.
    pub(crate) is_filled: bool,
    /// Whether the socket takes nothing for now.
    pub(crate) is_writing: bool,
}

/// The outbox is full, and its connection must close.
pub(crate) struct Overflow {
    pub(crate) waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Registered {
    /// The waker is known and will be called.
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

    /// Drained is not written: only a connection that waits again has written everything.
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
        // What came later is not what was waited for.
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
        // The same when the frames become too many.
        let outbox = Outbox::default();
        assert_eq!(outbox.register_close(Waker::noop()), None);
        let pushed = outbox.push(3, |out| out.extend_from_slice(b"four"));
        assert!(pushed.is_err_and(|overflow| overflow.waker.is_some()));
    }

    /// A hundred watchers that never read had 1.45 GB together, each below its own limit.
    #[test]
    fn fullest_outboxes_are_cut_when_all_together_have_too_much() {
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
        // What was read stays counted until the next measurement.
        outboxes[0].drain(&mut Vec::new());
        assert!(push(4, 3_000));
        let (closed, wakes) = total.relieve(all());
        assert_eq!((closed, wakes.len()), (0, 0));
        // What sockets did not take counts too.
        outboxes[0].set_unsent(1_900);
        assert!(total.add(1_900));
        let (closed, _) = total.relieve(all());
        assert_eq!(
            closed, 1,
            "one of 3,000 leaves room for more than an eighth"
        );
        assert!(is_closed(4) && !is_closed(0));
        // The others had less, and are counted with what they have.
        assert!(!push(1, 1_000));
    }

    #[test]
    fn input_that_waits_longest_is_given_up_first() {
        let outboxes: Vec<_> = (0..4).map(|_| Outbox::default()).collect();
        for (outbox, since) in outboxes.iter().zip([3, 1, 2, 0]) {
            outbox.set_held(100, since);
        }
        let (freed, closed, _) = free_held(outboxes.iter(), 3, 150);
        assert_eq!((freed, closed), (200, 2));
        assert_eq!(outboxes[0].take_held(), 100);
        for outbox in &outboxes[1..3] {
            assert_eq!(outbox.drain(&mut Vec::new()), Some(Close::UnservedFull));
            // The next one to give it up has nothing to uncount.
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
