//! The client against a server in the same process, over a link that injects faults, on paused time.
//!
//! | module | contents |
//! | --- | --- |
//! | `link` | the link and its faults |
//! | `kit` | a server and its clients |
//! | `acceptance` | E1 to E13 of `docs/client.md` section 2, each with the opposite outcome |
//! | `auto_traits` | `Send` and `Sync` |
//! | `cuts` | the connection is cut after each single byte |
//! | `servers` | the list of servers changes |
//! | `sessions` | connection states, resuming, losing, closing |
//! | `operations` | every operation, chroot, errors |
//! | `sasl` | SASL and other identities; with feature `sasl` |
//! | `tls` | TLS over sockets, in real time; with feature `tls` |
//! | `roots` | chroot and namespace created on demand, access lists, identities |
//! | `watches` | one-shot and persistent watches, their removal |
//! | `persistent_watcher` | the watch that survives sessions, and its gaps |
//! | `watcher_removal`, `failed_delete`, `connection_states` | Curator's tests of these names |

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are not tests to the lint; time is paused here"
)]

mod acceptance;
mod auto_traits;
mod connection_states;
mod cuts;
mod driver_end;
mod durations;
mod failed_delete;
mod kit;
mod operations;
mod persistent_watcher;
mod roots;
#[cfg(feature = "sasl")]
mod sasl;
mod servers;
mod sessions;
#[cfg(feature = "tls")]
mod tls;
mod watcher_removal;
mod watches;

use minikeeper_test_kit::{clock, link};
