//! Wakes tasks that wait for server activity. Every turn notifies them, so nothing polls.

use std::sync::atomic::{AtomicUsize, Ordering};

use minikeeper_engine::Input;
use minikeeper_protocol::Request;
use tokio::sync::{Notify, futures::Notified};

/// Notifies waiting tasks. While there are none, this costs a turn one relaxed load.
#[derive(Debug, Default)]
pub struct Activity {
    waiting: AtomicUsize,
    /// Notified after a turn that served more than pings.
    turned: Notify,
    /// Notified when the journal may have new entries.
    recorded: Notify,
    /// Notified when a connection has written its output, or cannot for now.
    written: Notify,
}

/// Registers a task as waiting until dropped.
#[derive(Debug)]
pub struct ActivityWaiter<'a>(&'a Activity);

impl Activity {
    /// Registers a waiting task. If the task then reads the state under the engine lock, it misses
    /// no turn after that.
    pub fn wait(&self) -> ActivityWaiter<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        ActivityWaiter(self)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Notifies waiting tasks after a turn of a connection, unless it served only pings.
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
        self.recorded.notify_waiters();
    }

    /// Notifies waiting tasks after a turn that belongs to no connection.
    #[cold]
    pub fn notify_turned(&self) {
        self.turned.notify_waiters();
        self.recorded.notify_waiters();
    }

    /// Notifies tasks that wait for new entries of the journal, outside of turns.
    #[cold]
    pub(crate) fn notify_recorded(&self) {
        self.recorded.notify_waiters();
    }

    #[cold]
    pub(crate) fn notify_written(&self) {
        self.written.notify_waiters();
    }
}

impl ActivityWaiter<'_> {
    /// Resolves at the end of the next turn that serves more than pings.
    pub fn turned(&self) -> Notified<'_> {
        self.0.turned.notified()
    }

    /// Resolves when the journal may have new entries.
    pub fn recorded(&self) -> Notified<'_> {
        self.0.recorded.notified()
    }

    /// Resolves when a connection next writes its output, or finds its socket full.
    pub fn written(&self) -> Notified<'_> {
        self.0.written.notified()
    }
}

impl Drop for ActivityWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
