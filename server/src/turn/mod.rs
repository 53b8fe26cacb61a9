//! Turns: one hold of the engine lock each, and everything that happens under it.
//!
//! [`turns`] owns the lock and serves: a connection hands in a batch of requests, and a turn applies
//! them all. During the turn, [`effects`] carries out the engine's effects: it encodes replies into
//! the connection's own output, events into the [outboxes](crate::outbox) of others, and changes into
//! the log; [`sink`] writes what happens to the journal and to a recording. What else takes the lock
//! is grouped by what it is about: [`members`] registers, closes and counts connections, [`time`] moves
//! the clock, `inspecting` shows the state, and [`copies`] reads a whole state in pieces, so that no
//! turn waits for long.
//!
//! [`core`] is the state behind the lock, with the counters of [`stats`] and [`latency`];
//! [`prefix_replies`] adds a universe's name to reply paths. [`alarm`] has the next deadline,
//! [`activity`] wakes tasks that wait for a turn, [`refused_sessions`] remembers which ended sessions
//! clients have asked for, and [`health`] records that the server has stopped or failed.

pub(crate) mod activity;
pub(crate) mod alarm;
pub(crate) mod copies;
pub(crate) mod core;
pub(crate) mod effects;
pub(crate) mod health;
mod inspecting;
pub(crate) mod latency;
pub(crate) mod members;
pub(crate) mod prefix_replies;
pub(crate) mod refused_sessions;
pub(crate) mod sink;
pub(crate) mod stats;
pub(crate) mod time;
pub(crate) mod turns;
