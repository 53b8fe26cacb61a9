//! The interface between turns and the log that keeps their changes.

use std::fmt;

use minikeeper_engine::{Change, ChangeHead};
use minikeeper_protocol::Zxid;

use crate::data::SaveError;

/// Logs the changes of turns before any client sees them. `data/` has the only implementation.
pub(crate) trait ChangeLog: fmt::Debug + Send {
    /// Adds a change to be written.
    fn keep(&mut self, head: ChangeHead, change: &Change<'_>);

    /// Discards the pending changes of the newest zxid.
    fn take_back(&mut self, zxid: Zxid);

    /// Records that refused requests have advanced the state to this zxid. They get entries too,
    /// because ZooKeeper does not start from a log with a gap.
    fn keep_up(&mut self, zxid: Zxid, wall_ms: i64);

    /// Writes all pending changes, and makes them durable if so configured. Returns false if that
    /// fails, and from then on, because it is unknown how much the file contains.
    fn write(&mut self) -> bool;

    /// Begins a new file with the next change: the saved state has every change up to this zxid.
    fn go_on_from(&mut self, zxid: Zxid);

    /// Takes the error that stopped the log, if any.
    fn take_failure(&mut self) -> Option<SaveError>;
}
