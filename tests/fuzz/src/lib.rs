//! Fuzz targets of minikeeper. What they do is in `bodies.rs`, which ordinary tests include.

#![forbid(unsafe_code)]

#[path = "../bodies.rs"]
mod bodies;

pub use bodies::{BODIES, Body, decode_reply, decode_request, path, split_frames};
