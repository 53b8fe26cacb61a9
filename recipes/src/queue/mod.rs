//! The queue of a lock: sequential znodes in its directory, one for each contender.
//!
//! `acquire` is the way through: `contending` gets in and out and lists, `waiting` watches the znodes
//! ahead, `queue_node` is the own znode and its clean-up. [`naming`] and [`order`] are pure: the names,
//! and who holds the lock by a list of them.

pub(crate) mod acquire;
pub(crate) mod contending;
pub mod naming;
pub mod order;
pub(crate) mod pace;
pub(crate) mod parents;
pub(crate) mod queue_node;
pub(crate) mod waiting;
