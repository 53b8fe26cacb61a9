//! What one connection is still to be sent that it did not ask for: events, or the word to close.
//!
//! Filled by other connections' turns, under the engine lock, which fixes the order; emptied by
//! the connection itself, at the start of each of its turns or when it is woken.

use std::{
    sync::atomic::{AtomicBool, Ordering},
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
    inner: Mutex<Inner>,
    /// Whether there is something inside, so that a turn need not take the inner lock to find
    /// nothing. Changed under the inner lock only; frames are put in under the engine lock, so
    /// a turn, which holds that, sees every one of them.
    is_filled: AtomicBool,
    /// Whether the handshake is over, so that its deadline no longer counts.
    is_open: AtomicBool,
    /// Whether the connection reads and serves nothing until a delayed request has been served.
    is_delayed: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whole frames, in the order they are to be sent. Freed when emptied.
    frames: Vec<u8>,
    /// Why the connection must close once the frames are sent.
    close: Option<Close>,
    /// Who is to be woken; taken by the first that puts something in.
    waker: Option<Waker>,
    /// Whether it is woken only to close: it is busy writing and has no use for frames.
    is_writing: bool,
    /// How many frames other turns have put in, since the start or a reset.
    events: u32,
    /// How many frames other turns have put in, ever, modulo what fits.
    pushed: u32,
    /// How many of those have certainly been written.
    written: u32,
    /// Whether the socket takes no more for now.
    is_stuck: bool,
}

impl Inner {
    /// Who is to be woken because a frame was added.
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

    /// Adds a frame. Returns who is to be woken after the engine lock is released.
    ///
    /// Beyond `bytes_max` nothing is added any more and the connection is told to close: its
    /// client does not read. The client's session lives on.
    pub(crate) fn push(
        &self,
        bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<Waker>, Overflow> {
        let mut inner = self.inner.lock();
        if inner.close.is_some() {
            return Ok(None);
        }
        self.is_filled.store(true, Ordering::Release);
        write(&mut inner.frames);
        inner.events = inner.events.saturating_add(1);
        inner.pushed = inner.pushed.wrapping_add(1);
        if inner.frames.len() > bytes_max {
            inner.frames = Vec::new();
            inner.close = Some(Close::OutboxFull);
            return Err(Overflow {
                waker: inner.waker.take(),
            });
        }
        Ok(inner.reader())
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

    /// The connection may go on. Returns who is to be woken; whoever registers later has to look
    /// at [`Outbox::is_delayed`] behind that.
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

    /// Tells the connection to close. Returns who is to be woken.
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
        // A word to close is never taken back.
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

    /// Notes that the socket takes no more for now.
    pub(crate) fn set_stuck(&self) {
        self.inner.lock().is_stuck = true;
    }

    /// How many frames have ever been put in, if they have not all been written and the socket
    /// would take them.
    pub(crate) fn owed(&self) -> Option<u32> {
        let inner = self.inner.lock();
        (inner.pushed != inner.written && !inner.is_stuck).then_some(inner.pushed)
    }

    /// Whether so many frames, of all that were ever put in, are still to be written.
    pub(crate) fn owes(&self, pushed: u32) -> bool {
        let inner = self.inner.lock();
        // They wrap around, but not within the time that anybody waits.
        let missing = pushed.wrapping_sub(inner.written).cast_signed();
        missing > 0 && !inner.is_stuck
    }

    /// Says who is to be woken when the connection must close, unless it must already. Frames
    /// can wait: the socket takes no more for now.
    pub(crate) fn register_close(&self, waker: &Waker) -> Option<Close> {
        let mut inner = self.inner.lock();
        if inner.close.is_none() {
            inner.remember(waker, true);
        }
        inner.close
    }
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

/// The outbox is full, and its connection was told to close.
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

    /// Drained is not written: only who comes back to wait has written everything.
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
        assert!(pushed.is_ok_and(|waker| waker.is_none()));
        assert!(outbox.close(Close::Asked).is_some());
        assert_eq!(outbox.register_close(Waker::noop()), Some(Close::Asked));
        // The same when the frames become too many.
        let outbox = Outbox::default();
        assert_eq!(outbox.register_close(Waker::noop()), None);
        let pushed = outbox.push(3, |out| out.extend_from_slice(b"four"));
        assert!(pushed.is_err_and(|overflow| overflow.waker.is_some()));
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
                .is_ok_and(|waker| waker.is_none())
        );
        assert_eq!(outbox.drain(&mut out), Some(Close::OutboxFull));
        assert_eq!(out, b"");
    }
}
