//! The session state machine: takes bytes, time and requests; yields bytes, results and events.
//!
//! It has no I/O, clock, task or entropy: the driver passes in events with their times, and carries
//! out what the machine yields. So tests run it without a socket, on a manual clock.
//!
//! | file | contents |
//! | --- | --- |
//! | `machine.rs` | the machine: calls, events from the driver, sending, how requests and sessions end |
//! | `replies.rs` | handles messages of a server: handshake, replies, events |
//! | `sasl.rs` | the seam for SASL mechanisms, DIGEST-MD5 |
//! | `requests.rs`, `watches.rs`, `session.rs`, `hosts.rs`, `backoff.rs`, `cleanup.rs`, `schedule.rs` | its parts |
//! | `outcome.rs` | the output of the machine |
//! | `tests.rs` | tests that play the server |
//!
//! Source: `docs/client.md` sections 3 and 6.

pub(crate) mod backoff;
pub(crate) mod cleanup;
pub(crate) mod hosts;
pub(crate) mod machine;
pub(crate) mod outcome;
mod replies;
pub(crate) mod requests;
pub(crate) mod sasl;
mod schedule;
mod session;
pub(crate) mod watches;

#[cfg(test)]
mod tests;
