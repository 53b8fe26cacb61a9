//! The recipes against a server in the same process, over links that can be made to misbehave, on
//! time that passes only when all tasks wait.
//!
//! Tests that come from Curator (`docs/curator-recipes.md` section 15) carry its
//! names; those about a hazard of `docs/hazards.md` begin with the hazard's number.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `link`, `kit` | the link and its faults; servers, clients, helpers |
//! | `read_write` | the same of the read/write lock, and revoking |
//! | `mutex` | the catalogue's tests of the mutex |
//! | `semaphore`, `semaphore_faults` | those of the semaphore; under faults, and dropped |
//! | `semaphore_mutex` | those of the semaphore mutex |
//! | `multi_lock` | those of the multi-lock |
//! | `shared_count` | those of shared values and counts |
//! | `loss` | guards that lose their lock; tokens |
//! | `leader_latch`, `latch_faults` | the leader latch |
//! | `atomic` | the counter |
//! | `auto_traits` | `Send` and `Sync` |
//! | `leader_selector` | the leader selector |
//! | `persistent_node` | the znode that comes back |
//! | `simple` | locks written by hand |
//! | `local_hand_over` | locks passed on inside a process |
//! | `thrift` | what goes over the wire, with each saving and without |
//! | `barriers` | the barrier and the double barrier |
//! | `wire`, `every`, `sweeps` | every recipe dropped, cut off and expired at every step |
//! | `error_sweep` | every refusal of every request of every recipe |
//! | `retries` | what is asked again: after refusals, reconnects, in later sessions |
//! | `owners` | one owner in several tasks; giving back without a server |
//! | `costs` | what waiting costs, deadlines to the moment |
//! | `going_on` | latches, selectors and kept znodes under refusals, panics, without a server |
//! | `claims` | nothing is claimed that another may have: closing clients, servers that only read |
//! | `framework` | what locks rest on |
//! | `restart` | servers that really stop |
//! | `hazards`, `hazards_of_many` | hazards of the register that belong nowhere else |
//! | `cancelling` | dropping at every await point, lost replies at every step |

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are not tests to the lint; time is paused here"
)]

mod atomic;
mod auto_traits;
mod barriers;
mod cancelling;
mod claims;
mod costs;
mod error_sweep;
mod every;
mod framework;
mod going_on;
mod hazards;
mod hazards_of_many;
mod kit;
mod latch_faults;
mod leader_latch;
mod leader_selector;
mod local_hand_over;
mod loss;
mod multi_lock;
mod mutex;
mod owners;
mod persistent_node;
mod read_write;
mod restart;
mod retries;
mod semaphore;
mod semaphore_faults;
mod semaphore_mutex;
mod shared_count;
mod simple;
mod sweeps;
mod thrift;
mod wire;

use minikeeper_test_kit::{clock, link};
