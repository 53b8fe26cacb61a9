//! The recipes against a server in the same process, over links that inject faults, on time that
//! passes only when all tasks wait.
//!
//! Tests from Curator's catalogue (`docs/curator-recipes.md` section 15) keep their names there;
//! tests of a hazard of `docs/hazards.md` begin with the hazard's number.
//!
//! | module | contents |
//! | --- | --- |
//! | `link`, `kit` | the link and its faults; servers, clients, helpers |
//! | `read_write` | the catalogue's tests of the read/write lock, and revocation |
//! | `mutex` | the catalogue's tests of the mutex |
//! | `semaphore`, `semaphore_faults` | the catalogue's tests of the semaphore; the semaphore under faults |
//! | `semaphore_mutex` | the catalogue's tests of the semaphore mutex |
//! | `multi_lock` | the catalogue's tests of the multi-lock |
//! | `shared_count` | the catalogue's tests of shared values and counts |
//! | `loss` | guards that lose their lock; tokens |
//! | `leader_latch`, `latch_faults` | the leader latch |
//! | `atomic` | the counter |
//! | `auto_traits` | `Send` and `Sync` |
//! | `leader_selector` | the leader selector |
//! | `group_member` | the group member |
//! | `persistent_node`, `persistent_ttl_node` | the persistent node; the one with a time to live |
//! | `local_hand_over` | locks that are passed on within a process |
//! | `request_savings` | the requests on the wire, with each saving and without it |
//! | `barriers` | the barrier and the double barrier |
//! | `access` | every recipe with access lists, in a namespace; chroots that are missing |
//! | `wire`, `every_recipe`, `sweeps` | every recipe dropped, disconnected and expired at every step |
//! | `error_sweep` | every refusal of every request of every recipe |
//! | `retries` | retries after refusals, after reconnects and in later sessions |
//! | `observability` | metrics, spans and events |
//! | `owners` | one owner in several tasks; releases without a server |
//! | `costs` | the cost of waiting; exact deadlines |
//! | `curator_cache` | the cache, its options and its views; Curator's known bugs of caches |
//! | `background_tasks` | background tasks (latch, selector, persistent node) under refusals, panics and without a server |
//! | `ended_tasks` | background tasks that panic, or whose runtime shuts down |
//! | `exclusion` | no lock counts as held once another contender may have it: closing clients, read-only servers |
//! | `framework` | the catalogue's tests of what locks are built on |
//! | `outages` | handles with a limit, releases and closing while the connection is lost; equal seeds |
//! | `restart`, `rollback` | servers that stop and restart; servers that move to an older state |
//! | `hazards`, `hazards_of_many` | hazards of the register that have no other place |
//! | `discovery` | service discovery, its cache and providers |
//! | `queue_position` | the position of an acquisition in its queue |
//! | `call_limits` | calls on a server that never replies |
//! | `every_lock` | what all locks pass: the catalogue; dropped at every await point, replies and sessions lost at every step |

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are not tests to the lint; time is paused here"
)]

mod access;
mod atomic;
mod auto_traits;
mod background_tasks;
mod barriers;
mod call_limits;
mod costs;
mod curator_cache;
#[cfg(feature = "discovery")]
mod discovery;
mod durations;
mod ended_tasks;
mod error_sweep;
mod every_lock;
mod every_recipe;
mod exclusion;
mod framework;
mod group_member;
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
mod observability;
mod outages;
mod owners;
mod persistent_node;
mod persistent_ttl_node;
mod queue_position;
mod read_write;
mod request_savings;
mod restart;
mod retries;
mod rollback;
mod semaphore;
mod semaphore_faults;
mod semaphore_mutex;
mod shared_count;
mod sweeps;
mod wire;

use minikeeper_test_kit::{clock, link};
