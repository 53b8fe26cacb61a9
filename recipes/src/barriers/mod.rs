//! Barriers: contenders wait for one of them, or for each other.

pub(crate) mod barrier;
pub(crate) mod double_barrier;
