//! Fuzz targets of minikeeper. What they do is in `bodies.rs`, `engine_bodies.rs` and
//! `data_bodies.rs`, which ordinary tests include.

#![forbid(unsafe_code)]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../data_bodies.rs"]
mod data_bodies;
#[path = "../engine_bodies.rs"]
mod engine_bodies;

pub use bodies::{BODIES, Body, decode_reply, decode_request, path, split_frames};
pub use data_bodies::{BODIES as DATA_BODIES, read_log, replay_changes};
pub use engine_bodies::{BODIES as ENGINE_BODIES, engine_ops};
