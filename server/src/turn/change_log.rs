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

    /// The state has this number now: what was between is of requests that were refused. It gets an
    /// entry too, since ZooKeeper does not start from a log in which a number is missing.
    fn keep_up(&mut self, zxid: Zxid, wall_ms: i64);

    /// Writes all that is kept, and makes it durable if that is wanted. False, from then on for
    /// ever, when that failed: there is no telling what of it is in the file.
    fn write(&mut self) -> bool;

    /// What was saved has all that was written, and this number: the next change begins a file.
    fn go_on_from(&mut self, zxid: Zxid);

    /// Why nothing more can be written, once.
    fn take_failure(&mut self) -> Option<SaveError>;
}
