//! The state and its changes in the form that snapshots and transaction logs hold them.

pub(crate) mod change;
pub(crate) mod image;
pub(crate) mod image_error;
pub(crate) mod journal;
pub(crate) mod replay;
pub(crate) mod restart;
pub(crate) mod restore;
