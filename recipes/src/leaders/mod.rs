//! Leaders: one process of several does something.
//!
//! The latch and the selector stand in the [queue](crate::queue) of a lock with a task of their own;
//! `leadership` is the latch's, `participant` reads who else stands there.

pub(crate) mod latch;
pub(crate) mod leadership;
pub(crate) mod participant;
pub(crate) mod selector;
pub(crate) mod task;
