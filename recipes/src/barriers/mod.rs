//! Barriers: processes wait for a signal, or for each other.

pub(crate) mod barrier;
pub(crate) mod double_barrier;

pub use self::{
    barrier::DistributedBarrier,
    double_barrier::{DistributedDoubleBarrier, Member},
};
