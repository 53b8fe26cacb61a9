//! The story of a failed test: everything that helps to understand it, read at one moment.
//!
//! [`text`] prints it, and [`bundle`] makes a page and JSON of it. [`Universe`](crate::Universe) collects
//! it, and prints it when a server is dropped during a panic.

#[cfg(feature = "control")]
mod bundle;
mod text;

use minikeeper_core::{
    clock::Moment, faults::FaultInfo, journal::entry::JournalEntry,
    state::session_info::SessionInfo,
};

use crate::{advice::Advice, locks::Locks};

/// The maximum number of entries of the journal in a story; it has the newest.
pub(crate) const ENTRIES_MAX: u64 = 10_000;

/// The maximum length of [`Story::title`] and [`Story::failure`]. Unit: characters.
const TITLE_CHARS_MAX: usize = 200;
const FAILURE_CHARS_MAX: usize = 4_000;

/// What a universe looks like, and what happened in it: the result of
/// [`Universe::story`](crate::Universe::story).
///
/// `Display` prints it for people in at most about 100 lines: deadlocks and locks, sessions, faults,
/// known mistakes, and the last 50 requests and events. With the feature `control`, `save` writes a page with
/// everything.
///
/// A [`Server`](crate::Server) that is dropped during a panic prints its story: see
/// [`Stories`](crate::Stories).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Story {
    /// Its title, such as the name of a test; may be empty.
    pub title: String,
    /// Why the test failed; may be empty. `Display` omits it: test frameworks print it.
    pub failure: String,
    /// The connect string of the universe.
    pub server: String,
    /// When the story was read, by the universe's clock.
    pub at: Moment,
    /// The locks, their contenders, and deadlocks.
    pub locks: Locks,
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// The injected faults, oldest first.
    pub faults: Vec<FaultInfo>,
    /// The newest entries of the journal, at most 10,000, oldest first. Empty if the server keeps no
    /// journal.
    pub entries: Vec<JournalEntry>,
    /// The number of the oldest entry that the journal still has; 0 if there is no journal.
    pub oldest: u64,
    /// The number that the next entry gets; 0 if there is no journal.
    pub next: u64,
}

impl Story {
    /// Sets the title, cut after 200 characters.
    #[must_use]
    pub fn with_title(mut self, title: &str) -> Self {
        self.title = cut(title, TITLE_CHARS_MAX);
        self
    }

    /// Sets the reason of the failure, cut after 4,000 characters.
    #[must_use]
    pub fn with_failure(mut self, failure: &str) -> Self {
        self.failure = cut(failure, FAILURE_CHARS_MAX);
        self
    }

    /// Returns the known mistakes of clients in its entries.
    #[must_use]
    pub fn advice(&self) -> Advice {
        Advice::of(&self.entries, &[]).unwrap_or_default()
    }

    /// Returns whether the universe has a session, lock or fault of its own.
    pub(crate) fn is_used(&self) -> bool {
        let has_session = self.sessions.iter().any(|session| !session.is_unbound);
        has_session || !self.faults.is_empty() || !self.locks.locks.is_empty()
    }
}

/// Cuts a text that is too long, with a mark.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
