//! Counts how many entries a request looks at, in tests only: no request may hold the lock for more
//! work than its bound. In other builds counting costs nothing.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static VISITS: Cell<usize> = const { Cell::new(0) };
}

/// An entry is looked at: a child, a watch, an ephemeral, a path of a list, an access list's entry,
/// an identity.
#[inline]
pub(crate) fn visit() {
    #[cfg(test)]
    VISITS.set(VISITS.get() + 1);
}

/// Returns how many entries `during` looks at.
#[cfg(test)]
pub(crate) fn visits(during: impl FnOnce()) -> usize {
    let before = VISITS.get();
    during();
    VISITS.get() - before
}
