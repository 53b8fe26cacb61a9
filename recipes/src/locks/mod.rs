//! Locks: who may hold something, one at a time or several.
//!
//! A lock enters the [queue](crate::queue) and waits there; what it gives is a guard. `held` is what
//! the guards of one acquisition share: the znode, the loss, the release.
//!
//! | file | what is there |
//! | --- | --- |
//! | `mutex`, `semaphore_mutex`, `read_write`, `multi_lock`, `semaphore` | the locks |
//! | `acquire` | how they are to be acquired: limit, owner |
//! | `guard`, `held`, `write_guard`, `multi_guard`, `lease` | what they give |
//! | `leasing`, `max_leases` | how leases of a semaphore are got, and how many there are |
//! | `owner` | who may enter again |
//! | `local` | passing a lock on inside a process |
//! | `revoke` | asking a holder to give the lock back |

pub(crate) mod acquire;
pub(crate) mod guard;
pub(crate) mod held;
pub(crate) mod lease;
pub(crate) mod leasing;
pub(crate) mod local;
pub(crate) mod max_leases;
pub(crate) mod multi_guard;
pub(crate) mod multi_lock;
pub(crate) mod mutex;
pub(crate) mod owner;
pub(crate) mod read_write;
pub(crate) mod revoke;
pub(crate) mod semaphore;
pub(crate) mod semaphore_mutex;
pub(crate) mod write_guard;
