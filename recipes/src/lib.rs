//! Apache Curator's lock recipes for async Rust.
//!
//! A lock taken here queues beside locks taken with Curator in Java on the same path, in the same
//! order. Beyond Curator, every guard carries a [`FencingToken`], tells its [`Status`], and says
//! when it is [`lost`](Guard::lost); and dropping a future that waits gives its place in the queue
//! back, for certain.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`naming`], [`order`] | names of znodes, and who holds a lock by a list of them: pure |
//! | [`client`] | what is needed of a client, as a trait; [`minikeeper_client::Client`] has it |
//! | `queue.rs`, `waiting.rs`, `acquire.rs`, `place.rs`, `parents.rs` | getting in, waiting, both, getting out |
//! | `guard.rs`, `owner.rs`, `options.rs`, `error.rs` | what users hold and set |
//! | `mutex.rs`, `read_write.rs`, `semaphore_mutex.rs`, `multi_lock.rs`, `revoke.rs` | locks |
//! | `local.rs` | locks passed on inside a process |
//! | `write_guard.rs`, `multi_guard.rs` | what two of them give |
//! | `semaphore.rs`, `leasing.rs`, `lease.rs`, `max_leases.rs` | the semaphore, how it is got, what it gives, how much of it |
//! | `shared_value.rs`, `shared_count.rs` | values that processes share |
//! | `leader_latch.rs`, `leader_selector.rs`, `leading.rs`, `participant.rs`, `task.rs` | leaders |
//! | `barrier.rs`, `double_barrier.rs`, `atomic.rs`, `counter.rs`, `persistent_node.rs` | the others |
//! | [`simple`] | locks written by hand, for comparison: weak |

mod acquire;
mod atomic;
mod barrier;
pub mod client;
mod clock;
mod counter;
mod double_barrier;
mod error;
mod guard;
mod leader_latch;
mod leader_selector;
mod leading;
mod lease;
mod leasing;
mod local;
mod max_leases;
mod multi_guard;
mod multi_lock;
mod mutex;
pub mod naming;
mod options;
pub mod order;
mod owner;
mod parents;
mod participant;
mod persistent_node;
mod place;
#[cfg(feature = "planted")]
mod planted;
mod queue;
mod read_write;
mod revoke;
mod semaphore;
mod semaphore_mutex;
mod shared_count;
mod shared_value;
pub mod simple;
mod task;
mod waiting;
mod write_guard;

#[cfg(feature = "planted")]
pub use self::planted::Planted;
pub use self::{
    atomic::{AtomicOptions, AtomicValue, DistributedAtomicLong, Promotion},
    barrier::DistributedBarrier,
    double_barrier::{DistributedDoubleBarrier, Member},
    error::{AtomicError, LockError, Released, ValueError},
    guard::{FencingToken, Guard, Loss, Status},
    leader_latch::{LatchError, LatchOptions, LeaderLatch},
    leader_selector::{LeaderSelector, SelectorOptions, Work},
    leading::{ErrorPolicy, Leadership, LeadershipChanges},
    lease::Lease,
    local::LocalHandOver,
    max_leases::MaxLeases,
    multi_guard::MultiGuard,
    multi_lock::{InterProcessMultiLock, MultiMember},
    mutex::InterProcessMutex,
    options::LockOptions,
    owner::Owner,
    participant::Participant,
    persistent_node::PersistentNode,
    read_write::InterProcessReadWriteLock,
    revoke::{REVOKE, Revoker},
    semaphore::InterProcessSemaphoreV2,
    semaphore_mutex::InterProcessSemaphoreMutex,
    shared_count::{CountChanges, SharedCount},
    shared_value::{SharedValue, ValueChanges, VersionedValue},
    write_guard::WriteGuard,
};
