//! Locks, for one holder at a time or for several.
//!
//! A lock enters the [queue](crate::queue), waits there, and returns a guard. `held` is the state
//! that all guards of one acquisition share: the znode, the loss, the release.
//!
//! | file | contents |
//! | --- | --- |
//! | `mutex`, `semaphore_mutex`, `read_write`, `multi_lock`, `semaphore` | the locks, and the guards that only one lock has |
//! | `acquire` | the future that acquires, with its time limit and owner |
//! | `guard`, `held` | the guard of a mutex, and the state that guards share |
//! | `leasing` | how a semaphore acquires leases |
//! | `owner` | owners, which may acquire again |
//! | `local` | passing a lock on within a process |
//! | `revoke` | asking a holder to release |

pub(crate) mod acquire;
pub(crate) mod guard;
pub(crate) mod held;
pub(crate) mod leasing;
pub(crate) mod local;
pub(crate) mod multi_lock;
pub(crate) mod mutex;
pub(crate) mod owner;
pub(crate) mod read_write;
pub(crate) mod revoke;
pub(crate) mod semaphore;
pub(crate) mod semaphore_mutex;

pub use self::{
    acquire::{Acquire, Reentrant},
    guard::Guard,
    local::LocalHandOver,
    multi_lock::{InterProcessMultiLock, MultiGuard, MultiMember},
    mutex::InterProcessMutex,
    owner::Owner,
    read_write::{InterProcessReadWriteLock, WriteGuard},
    revoke::{REVOKE, Revoker},
    semaphore::{InterProcessSemaphoreV2, Lease, MaxLeases},
    semaphore_mutex::InterProcessSemaphoreMutex,
};
