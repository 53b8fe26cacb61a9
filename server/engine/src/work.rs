//! Counts the entries that a request visits, to test that no request holds the lock for more work
//! than its bound. Only in tests; in other builds this costs nothing.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static VISITS: Cell<usize> = const { Cell::new(0) };
}

/// Counts a visit to an entry: a child, a watch, an ephemeral, a path in a list, an entry of an
/// access list, an identity.
#[inline]
pub(crate) fn visit() {
    #[cfg(test)]
    VISITS.set(VISITS.get() + 1);
}

/// Returns how many entries `during` visits.
#[cfg(test)]
pub(crate) fn visits(during: impl FnOnce()) -> usize {
    let before = VISITS.get();
    during();
    VISITS.get() - before
}
