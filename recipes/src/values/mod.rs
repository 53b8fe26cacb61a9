//! Values that processes share, and znodes that are created again after a lost session.

pub(crate) mod atomic;
pub(crate) mod cached_atomic;
pub(crate) mod group_member;
pub(crate) mod persistent_node;
pub(crate) mod persistent_ttl_node;
pub(crate) mod shared_count;
pub(crate) mod shared_value;

pub use self::{
    atomic::{
        AtomicData, AtomicNumber, AtomicOptions, AtomicValue, DistributedAtomic,
        DistributedAtomicInteger, DistributedAtomicLong, DistributedAtomicValue, Promotion,
    },
    cached_atomic::CachedAtomicLong,
    group_member::{GroupChanges, GroupError, GroupMember},
    persistent_node::PersistentNode,
    persistent_ttl_node::{PersistentTtlNode, TtlNodeOptions},
    shared_count::{CountChanges, SharedCount},
    shared_value::{SharedValue, ValueChanges, VersionedValue},
};
