//! Whether a lock kept its word in a run: nobody's belief, only its history.
//!
//! *Exclusion*: a hold lasts from the return of acquire to the call of release, or to the moment
//! its client learned of the loss, or died. No two holds that exclude one another may overlap.
//!
//! *Fencing*: tokens rise from grant to grant; no write of the rightful holder is refused; no write
//! of a holder is accepted after that of a later one.
//!
//! *Unknown outcomes*: an acquire or release which failed so that nobody can say what the server
//! did is no hold and no violation, but it is counted, and never passed over.
//!
//! What could not be checked is [`Finding::NotChecked`], which is no pass.

/// What the judge says of one question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Checked, and it holds.
    Holds {
        /// How many things were looked at: holds, grants or writes.
        checked: usize,
    },
    /// It does not.
    Violated {
        /// How often.
        times: usize,
        /// The smallest part of the history that shows it, a line an event.
        counterexample: String,
    },
    /// It could not be checked; the text says why.
    NotChecked(String),
}

/// What the judge says of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether holds that exclude one another overlapped.
    pub exclusion: Finding,
    /// Whether the fencing tokens protect the resource.
    pub fencing: Finding,
    /// Acquires and releases of which nobody knows what became of them.
    pub unknown: usize,
    /// Why the figures of this run must not be published, if so.
    pub refusal: Option<String>,
}
