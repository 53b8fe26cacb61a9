//! The session state machine: bytes, time and wishes in; bytes, outcomes and news out.
//!
//! No I/O, clock, task or chance in here: whoever drives it says what has happened and when, and
//! carries out what it says. So it can be run against the server's engine without a socket, on a
//! clock that is moved by hand.
//!
//! | file | what is there |
//! | --- | --- |
//! | `machine.rs` | the machine: what callers want, what happens, what is sent |
//! | `replies.rs` | what a server says: handshake, replies, events |
//! | `ends.rs` | how connections, sessions, requests and the client end |
//! | `requests.rs`, `watches.rs`, `session.rs`, `hosts.rs`, `backoff.rs`, `cleanups.rs` | its parts |
//! | `input.rs`, `outcome.rs` | what it is told; what it says |
//! | `tests.rs` | the machine against a server played by the test |
//!
//! Source: `docs/client.md` sections 3 and 6.

pub(crate) mod backoff;
pub(crate) mod cleanup;
mod ends;
pub(crate) mod hosts;
pub(crate) mod input;
pub(crate) mod machine;
pub(crate) mod outcome;
mod replies;
pub(crate) mod requests;
mod session;
pub(crate) mod watches;

#[cfg(test)]
mod tests;
