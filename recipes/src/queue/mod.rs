//! The queue of a lock: sequential znodes in its directory, one for each contender.
//!
//! `contending` enters, lists and leaves it; `waiting` watches the znodes ahead; `queue_node` is
//! the contender's own znode and its clean-up; `parents` creates the directory; `pace` spaces
//! retries; `position` tells a caller how many are ahead. [`naming`] and [`order`] are pure functions: the names of znodes, and which contender
//! holds the lock.

pub(crate) mod contending;
pub mod naming;
pub mod order;
pub(crate) mod pace;
pub(crate) mod parents;
pub(crate) mod position;
pub(crate) mod queue_node;
pub(crate) mod waiting;
