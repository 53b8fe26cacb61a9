//! One file a family of operations. Each operation reads as: check, change, tell, answer.
//!
//! Source: `docs/zookeeper-protocol.md` section 1.3.

pub(crate) mod administer;
pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod cleanup;
pub(crate) mod create;
pub(crate) mod deadlines;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod handover;
pub(crate) mod marks;
pub(crate) mod multi;
pub(crate) mod read;
pub(crate) mod session;
pub(crate) mod set;
pub(crate) mod watch;
