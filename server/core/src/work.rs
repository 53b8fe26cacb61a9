//! Counts work: the steps of a matcher, and the znodes, changes and entries handled in one hold of the
//! engine lock. Only in tests; in other builds this costs nothing.

#[cfg(any(test, feature = "count-work"))]
use std::cell::Cell;

#[cfg(any(test, feature = "count-work"))]
thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static HOLD_FROM: Cell<Option<usize>> = const { Cell::new(None) };
    static LONGEST_HOLD: Cell<usize> = const { Cell::new(0) };
}

/// Counts units of work.
#[inline]
pub fn count(units: usize) {
    #[cfg(any(test, feature = "count-work"))]
    {
        COUNT.set(COUNT.get() + units);
        let in_hold = HOLD_FROM.get().map_or(0, |from| COUNT.get() - from);
        LONGEST_HOLD.set(LONGEST_HOLD.get().max(in_hold));
    }
    let _ = units;
}

/// Marks that this thread has locked the engine.
#[inline]
pub(crate) fn begin_hold() {
    #[cfg(any(test, feature = "count-work"))]
    HOLD_FROM.set(Some(COUNT.get()));
}

/// Marks that this thread has unlocked the engine.
#[inline]
pub(crate) fn end_hold() {
    #[cfg(any(test, feature = "count-work"))]
    HOLD_FROM.set(None);
}

/// Returns how many units of work `during` does.
#[cfg(any(test, feature = "count-work"))]
pub fn counted(during: impl FnOnce()) -> usize {
    let before = COUNT.get();
    during();
    COUNT.get() - before
}

/// Returns how many units of work `during` does at most in one hold of the engine lock.
#[cfg(any(test, feature = "count-work"))]
pub fn longest_hold(during: impl FnOnce()) -> usize {
    LONGEST_HOLD.set(0);
    during();
    LONGEST_HOLD.get()
}
