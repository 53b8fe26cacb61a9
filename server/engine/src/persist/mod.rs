//! The state and its changes, in the form in which snapshots and transaction logs contain them.
//!
//! [`image`] reads a state, [`restore`] builds one and verifies every invariant on the way.
//! [`change`] reports each change for the log, and [`replay`] applies such changes again after an
//! image is restored. The server handles bytes and files.

pub(crate) mod change;
pub(crate) mod image;
pub(crate) mod replay;
pub(crate) mod restore;
