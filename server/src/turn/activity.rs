//! Wakes tasks that wait for server activity. Every turn notifies them, so nothing polls.

use std::sync::atomic::{AtomicUsize, Ordering};

use minikeeper_engine::Input;
use minikeeper_protocol::Request;
use tokio::sync::{Notify, futures::Notified};

/// While no task waits, a turn pays one relaxed load for it.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    waiting: AtomicUsize,
    /// Notified after a turn that served more than pings.
    turned: Notify,
    /// Notified when a connection has written its output, or cannot for now.
    written: Notify,
}

/// A task waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct ActivityWaiter<'a>(&'a Activity);

impl Activity {
    /// Begins to wait. A task that looks at the state after this, under the engine lock, misses no
    /// turn that comes after the look.
    pub(crate) fn wait(&self) -> ActivityWaiter<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        ActivityWaiter(self)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Notifies waiting tasks after a turn of a connection, unless it served pings alone.
    #[cold]
    pub(crate) fn notify_served(&self, inputs: &[Input]) {
        let is_ping = |input: &Input| {
            matches!(
                input,
                Input::Request {
                    request: Request::Ping,
                    ..
                }
            )
        };
        if !inputs.iter().all(is_ping) {
            self.turned.notify_waiters();
        }
    }

    /// A turn that no connection asked for is over.
    #[cold]
    pub(crate) fn notify_turned(&self) {
        self.turned.notify_waiters();
    }

    #[cold]
    pub(crate) fn notify_written(&self) {
        self.written.notify_waiters();
    }
}

impl ActivityWaiter<'_> {
    /// Resolves at the end of the first turn from now on, pings apart.
    pub(crate) fn turned(&self) -> Notified<'_> {
        self.0.turned.notified()
    }

    /// Resolves when a connection has written its output, from now on.
    pub(crate) fn written(&self) -> Notified<'_> {
        self.0.written.notified()
    }
}

impl Drop for ActivityWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
