//! The recipes on the client `zookeeper-client`, over real sockets, because it supports nothing
//! else.
//!
//! The server's clock advances only when a test moves it, so sessions end only where a test ends
//! them. The client's own timers are real. Names of tests are those of `docs/curator-recipes.md`
//! section 15, as in the tests of `minikeeper-recipes`, which go deeper.
//!
//! | module | contents |
//! | --- | --- |
//! | `kit` | servers, clients, helpers |
//! | `locks` | mutex, semaphore mutex, read/write lock, semaphore, multi-lock |
//! | `leaders` | latch, selector |
//! | `others` | shared count, counter, barriers, persistent node |
//! | `faults` | expiry, cuts, lost replies, dropped futures |
//! | `promises` | the adapter's promises about its session, one by one |
//! | `interop` | one queue for contenders on this client and on `minikeeper-client` |

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
