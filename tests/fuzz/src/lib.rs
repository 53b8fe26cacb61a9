//! Fuzz targets of minikeeper. What they do is in `bodies.rs` and `engine_bodies.rs`, which
//! ordinary tests include.

#![forbid(unsafe_code)]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../engine_bodies.rs"]
mod engine_bodies;

pub use bodies::{BODIES, Body, decode_reply, decode_request, path, split_frames};
pub use engine_bodies::{BODIES as ENGINE_BODIES, engine_ops};
