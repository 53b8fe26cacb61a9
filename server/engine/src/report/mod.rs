//! Reads the whole state without changing it.
//!
//! [`check`] verifies every invariant, [`dump`] prints the state as text, [`inspect`] lists
//! sessions, watches and ephemerals for administrators and tests, and [`digest`] computes
//! ZooKeeper's checksum of the tree; [`footprint`] tells what a request would read and write.

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod digest;
pub(crate) mod dump;
pub(crate) mod footprint;
pub(crate) mod inspect;
