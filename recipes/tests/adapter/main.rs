//! The recipes once more, on the client of other people: `zookeeper-client` through its adapter,
//! over real sockets, because it has no others.
//!
//! The server's time stands still unless a test moves it, so no session ends but by a test's word.
//! The client's own timers are real: what needs them waits for them, never longer than it must.
//! Names of tests are those of the catalogue (`docs/curator-recipes.md` section 15), as in `it`,
//! which goes deeper.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `kit` | servers, clients, helpers |
//! | `locks` | mutex, semaphore mutex, read/write lock, semaphore, multi-lock |
//! | `leaders` | latch, selector |
//! | `others` | shared count, counter, barriers, persistent node |
//! | `faults` | expiry, cuts, lost replies, dropped futures |
//! | `promises` | what the adapter says of its session, one by one |
//! | `interop` | one queue for this client's contenders and our own's |

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are not tests to the lint; sleeps are real here"
)]

mod faults;
mod interop;
mod kit;
mod leaders;
mod locks;
mod others;
mod promises;

use minikeeper_test_kit::{clock, link};
