//! The session state machine: takes bytes, time and requests; yields bytes, results and events.
//!
//! It has no I/O, clock, task or randomness of its own: the driver tells it what happened and when,
//! and carries out what it yields. So tests run it without a socket, on a manual clock.
//!
//! | file | what is there |
//! | --- | --- |
//! | `machine.rs` | the machine: what callers ask for, what happens, what is sent, how things end |
//! | `replies.rs` | what a server sends: handshake, replies, events |
//! | `requests.rs`, `watches.rs`, `session.rs`, `hosts.rs`, `backoff.rs`, `cleanup.rs` | its parts |
//! | `outcome.rs` | what it yields |
//! | `tests.rs` | tests against a server that the test plays |
//!
//! Source: `docs/client.md` sections 3 and 6.

pub(crate) mod backoff;
pub(crate) mod cleanup;
pub(crate) mod hosts;
pub(crate) mod machine;
pub(crate) mod outcome;
mod replies;
pub(crate) mod requests;
mod session;
pub(crate) mod watches;

#[cfg(test)]
mod tests;
