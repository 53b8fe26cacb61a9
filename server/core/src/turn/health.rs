//! Records whether the server is serving, stopped or failed. A panic in a turn makes it fail.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

use crate::data::SaveError;

/// Why a server has failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A bug in the server, which may have made half a change.
    Bug,
    /// A change could not be logged as [`Config::txn_log`](crate::config::Config::txn_log) promises.
    Log(Arc<SaveError>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bug => f.write_str("stopped by an internal error; please report it"),
            Self::Log(_) => f.write_str("stopped because a change could not be logged"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Log(error) => Some(error),
            Self::Bug => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Set once, by the first failure.
    broken: AtomicBool,
    /// The first failure.
    failure: OnceLock<Failure>,
    /// Set while the server is down, for now or for ever.
    stopped: AtomicBool,
    /// Wakes the tasks that wait in [`Health::broke`].
    broke: Notify,
}

impl Health {
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    pub(crate) fn set_broken(&self, failure: Failure) {
        self.failure.get_or_init(|| failure);
        self.broken.store(true, Ordering::Release);
    }

    /// Notifies the tasks that wait for a failure.
    pub(crate) fn notify_broken(&self) {
        self.broke.notify_waiters();
    }

    /// Waits until the server has failed. Returns why.
    pub(crate) async fn broke(&self) -> Failure {
        let broke = self.broke.notified();
        if !self.is_broken() {
            broke.await;
        }
        self.failure.get().cloned().unwrap_or(Failure::Bug)
    }

    /// Returns whether the server is down, for now or for ever.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn set_stopped(&self, is_stopped: bool) {
        self.stopped.store(is_stopped, Ordering::Release);
    }
}

/// Calls `stop` if a panic drops it.
pub(crate) struct FailStop<F: Fn()> {
    stop: F,
    /// Whether the thread was already unwinding when the turn began. A panic of its owner drops an
    /// in-process connection; that panic is not the server's.
    was_panicking: bool,
}

impl<F: Fn()> FailStop<F> {
    pub(crate) fn watch(stop: F) -> Self {
        Self {
            stop,
            was_panicking: std::thread::panicking(),
        }
    }
}

impl<F: Fn()> Drop for FailStop<F> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            (self.stop)();
        }
    }
}
