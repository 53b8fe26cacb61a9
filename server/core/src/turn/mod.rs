//! Turns: one hold of the engine lock each, and everything that happens under it.
//!
//! [`turns`] owns the lock and serves: a connection hands in a batch of requests, and a turn applies
//! them all. During the turn, [`effects`] carries out the engine's effects: it encodes replies into
//! the connection's own output, events into the [outboxes](crate::outbox) of others, and changes into
//! the log; [`sink`] writes what happens to the journal and to a recording. What else takes the lock
//! is grouped by what it is about: [`members`] registers, closes and counts connections, [`time`] moves
//! the clock, `inspecting` shows the state, and `copies` reads a whole state in pieces, so that no
//! turn waits for long.
//!
//! [`core`] is the state behind the lock, with the counters of [`stats`] and [`latency`];
//! `prefix_replies` adds a universe's name to reply paths. `alarm` has the next deadline,
//! [`activity`] wakes tasks that wait for a turn, [`refused_sessions`] remembers which ended sessions
//! clients have asked for, and [`health`] records that the server has stopped or failed.

pub mod activity;
pub(crate) mod alarm;
pub(crate) mod copies;
pub mod core;
pub mod effects;
pub mod health;
mod inspecting;
pub mod latency;
pub mod members;
pub(crate) mod prefix_replies;
pub mod refused_sessions;
pub mod sink;
pub mod stats;
pub mod time;
pub mod turns;
