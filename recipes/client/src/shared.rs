//! The state that the calls and the driver of a client share: the machine, the waiting callers, and
//! the output.
//!
//! A call writes its request itself, so that no other task has to wake up for it. While one call
//! writes, other calls leave their requests to it, and it continues until the output is empty.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use minikeeper_protocol::ZnodePath;
use parking_lot::Mutex;
use tokio::io::AsyncWrite as _;

use crate::{
    clock::Clock,
    core::{machine::Core, machine::Settings, outcome::Time},
    notifications::Notifications,
    transport::Writer,
};

/// The right to write.
enum Wire {
    /// There is no connection, or it has failed.
    Gone,
    Idle(Writer),
    /// A task is writing.
    Busy,
}

/// The writing half of the connection.
pub(crate) struct Output {
    wire: Wire,
    /// Counts connections, so that a writer notices that its connection was lost.
    link: u64,
    /// The output taken from the machine, not written yet from `pending_from` on.
    pending: Vec<u8>,
    pending_from: usize,
    /// Whether the connection must still be flushed.
    unflushed: bool,
    /// Woken when the connection can be written to again or has failed, and when a deadline is
    /// earlier than the one for which the driver sleeps.
    driver: Option<Waker>,
    pub(crate) failed: Option<io::Error>,
}

/// The state behind the lock.
pub(crate) struct Inner {
    pub(crate) core: Core,
    pub(crate) notifications: Notifications,
    pub(crate) output: Output,
    /// The time until which the driver sleeps.
    pub(crate) armed: Option<Time>,
    /// Why the last attempt to connect failed or the last connection ended.
    pub(crate) last_failure: Option<String>,
}

/// The state of the connection for the driver.
pub(crate) struct OutputState {
    /// Whether there are bytes to write.
    pub(crate) is_due: bool,
    /// The reason why the connection is no longer usable.
    pub(crate) over: Option<String>,
}

impl Inner {
    pub(crate) fn output_state(&mut self) -> OutputState {
        let failed = self.output.failed.take().map(|error| error.to_string());
        let is_useless = || self.core.ended_for().to_owned();
        OutputState {
            is_due: self.output.is_due() || self.core.has_output(),
            over: failed.or_else(|| (!self.core.is_linked()).then(is_useless)),
        }
    }

    /// Returns whether `next` is before the time until which the driver sleeps.
    pub(crate) fn is_earlier(&self, next: Option<Time>) -> bool {
        next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed))
    }

    /// Sets the driver's waker.
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        let driver = &mut self.output.driver;
        if !driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *driver = Some(waker.clone());
        }
    }
}

impl Output {
    fn is_due(&self) -> bool {
        !self.pending.is_empty() || self.unflushed
    }
}

/// See the [module](self).
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    pub(crate) clock: Clock,
    pub(crate) chroot: Option<ZnodePath>,
    /// Whether the client may create the chroot.
    pub(crate) creates_chroot: bool,
    pub(crate) frame_bytes_max: usize,
}

impl Shared {
    pub(crate) fn new(settings: Settings, chroot: Option<ZnodePath>, creates_chroot: bool) -> Self {
        let clock = Clock::start();
        Self {
            frame_bytes_max: settings.frame_bytes_max,
            inner: Mutex::new(Inner {
                core: Core::new(settings),
                notifications: Notifications::new(clock),
                output: Output {
                    wire: Wire::Gone,
                    link: 0,
                    pending: Vec::new(),
                    pending_from: 0,
                    unflushed: false,
                    driver: None,
                    failed: None,
                },
                armed: None,
                last_failure: None,
            }),
            clock,
            chroot,
            creates_chroot,
        }
    }

    /// Runs `act` under the lock. It must not need the clock or wake a task.
    pub(crate) fn look<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock())
    }

    /// Runs `act` under the lock, then wakes the tasks that it concerns.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Inner, Time) -> T) -> T {
        let mut inner = self.inner.lock();
        // Read under the lock: time never runs backwards for the machine.
        let now = self.clock.now();
        let result = act(&mut inner, now);
        let wakers = std::mem::take(&mut inner.notifications.wakers);
        drop(inner);
        for waker in wakers {
            waker.wake();
        }
        result
    }

    /// Like [`Shared::with`], for changes that may bring the next deadline forward: then it wakes
    /// the driver.
    pub(crate) fn with_rearm<T>(&self, act: impl FnOnce(&mut Inner, Time) -> T) -> T {
        self.with(|inner, now| {
            let result = act(inner, now);
            if inner.core.is_stopped() || inner.is_earlier(inner.core.next_deadline()) {
                inner
                    .notifications
                    .wakers
                    .extend(inner.output.driver.clone());
            }
            result
        })
    }

    /// Handles a new connection.
    pub(crate) fn install(&self, writer: Writer) {
        let output = &mut self.inner.lock().output;
        output.link += 1;
        output.wire = Wire::Idle(writer);
        output.failed = None;
    }

    /// Handles the end of the connection. Returns the writer, unless a task is writing.
    pub(crate) fn uninstall(&self) -> Option<Writer> {
        let output = &mut self.inner.lock().output;
        output.link += 1;
        output.pending.clear();
        output.pending_from = 0;
        output.unflushed = false;
        match std::mem::replace(&mut output.wire, Wire::Gone) {
            Wire::Idle(writer) => Some(writer),
            Wire::Gone | Wire::Busy => None,
        }
    }

    /// Writes the output, as far as the connection accepts it.
    pub(crate) fn flush(&self) {
        let mut inner = self.inner.lock();
        let Inner { core, output, .. } = &mut *inner;
        if !output.is_due() && !core.has_output() {
            return;
        }
        let mut writer = match std::mem::replace(&mut output.wire, Wire::Busy) {
            Wire::Idle(writer) => writer,
            // The task that writes continues until the output is empty.
            Wire::Busy => return,
            Wire::Gone => {
                output.wire = Wire::Gone;
                return;
            }
        };
        let link = output.link;
        loop {
            let Inner { core, output, .. } = &mut *inner;
            if output.pending.is_empty() {
                if core.has_output() {
                    output.pending = core.take_output(std::mem::take(&mut output.pending));
                }
                if output.pending.is_empty() && !output.unflushed {
                    output.wire = Wire::Idle(writer);
                    return;
                }
            }
            let mut bytes = std::mem::take(&mut output.pending);
            let mut from = output.pending_from;
            let driver = output.driver.clone();
            drop(inner);
            let waker = driver.as_ref().unwrap_or(Waker::noop());
            let written = write(&mut writer, &bytes, &mut from, waker);
            inner = self.inner.lock();
            let output = &mut inner.output;
            if output.link != link {
                return;
            }
            if from == bytes.len() {
                bytes.clear();
                from = 0;
            }
            output.pending = bytes;
            output.pending_from = from;
            output.unflushed = written.is_pending();
            match written {
                Poll::Ready(Ok(())) => {}
                Poll::Pending => {
                    output.wire = Wire::Idle(writer);
                    return;
                }
                Poll::Ready(Err(error)) => {
                    output.wire = Wire::Gone;
                    output.failed = Some(error);
                    drop(inner);
                    waker.wake_by_ref();
                    return;
                }
            }
        }
    }
}

fn write(
    writer: &mut Writer,
    bytes: &[u8],
    from: &mut usize,
    waker: &Waker,
) -> Poll<io::Result<()>> {
    let mut cx = Context::from_waker(waker);
    while *from < bytes.len() {
        match Pin::new(&mut *writer).poll_write(&mut cx, &bytes[*from..]) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => *from += count,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
    Pin::new(writer).poll_flush(&mut cx)
}
