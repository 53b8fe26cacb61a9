//! Turns: each holds the engine's lock once, for everything that one connection has sent.

pub(crate) mod activity;
pub(crate) mod core;
pub(crate) mod effects;
pub(crate) mod fault_turn;
pub(crate) mod health;
pub(crate) mod latency;
pub(crate) mod outbox;
pub(crate) mod prefix_replies;
pub(crate) mod stats;
pub(crate) mod time_control;
pub(crate) mod timers;
pub(crate) mod turns;
