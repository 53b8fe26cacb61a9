//! Values that processes share, and znodes that are created again after a lost session.

pub(crate) mod atomic;
pub(crate) mod persistent_node;
pub(crate) mod shared_count;
pub(crate) mod shared_value;

pub use self::{
    atomic::{AtomicOptions, AtomicValue, DistributedAtomicLong, Promotion},
    persistent_node::PersistentNode,
    shared_count::{CountChanges, SharedCount},
    shared_value::{SharedValue, ValueChanges, VersionedValue},
};
