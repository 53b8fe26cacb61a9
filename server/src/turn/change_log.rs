//! The interface between turns and the log that keeps their changes.

use std::fmt;

use minikeeper_engine::{Change, ChangeHead};
use minikeeper_protocol::Zxid;

use crate::data::SaveError;

/// Keeps the changes of turns before any client sees them. `data/` has the one implementation.
pub(crate) trait ChangeLog: fmt::Debug + Send {
    /// Keeps a change, to be written.
    fn keep(&mut self, head: ChangeHead, change: &Change<'_>);

    /// Discards the changes of the newest zxid.
    fn take_back(&mut self, zxid: Zxid);

    /// Records that the state has reached this number by refused requests. They get an entry too,
    /// since ZooKeeper does not start from a log in which a number is missing.
    fn keep_up(&mut self, zxid: Zxid, wall_ms: i64);

    /// Writes all pending changes, and makes them durable if so configured. Returns false when that
    /// fails, and from then on: it is unknown how much of them is in the file.
    fn write(&mut self) -> bool;

    /// Begins a file with the next change: the saved state has every change up to this number.
    fn go_on_from(&mut self, zxid: Zxid);

    /// Why nothing more can be written, once.
    fn take_failure(&mut self) -> Option<SaveError>;
}
