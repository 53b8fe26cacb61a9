//! The state and its changes in the form that snapshots and transaction logs hold them.
//!
//! [`image`] reads a state, [`restore`] builds one and verifies every invariant on the way.
//! [`change`] reports each change for the log, and [`replay`] applies such changes again behind a
//! restored image. Bytes and files are the server's.

pub(crate) mod change;
pub(crate) mod image;
pub(crate) mod replay;
pub(crate) mod restore;
