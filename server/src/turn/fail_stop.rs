//! Stops everything when a turn panics: half a change may have been made, and the engine's lock
//! does not poison.

/// Calls `stop` when it is dropped by a panic.
pub(crate) struct FailStop<F: Fn()> {
    stop: F,
    /// Whether the thread was unwinding already when the turn began: an in-process connection is
    /// dropped by its owner's panic, which is none of ours.
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
