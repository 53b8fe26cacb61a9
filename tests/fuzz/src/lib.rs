//! Fuzz targets of minikeeper. Each is a plain function that panics when a guarantee does not hold.
//!
//! `tests/bodies.rs` runs the functions on their seeds and on random bytes with any compiler; the
//! fuzz targets need `cargo fuzz`.

mod data;
mod engine;
mod protocol;
mod recording;

pub use data::{read_log, replay_changes};

pub use engine::engine_ops;
pub use protocol::{decode_reply, decode_request, path, split_frames};
pub use recording::replay_recording;

/// The name of a function, which is also that of its target and seed folder, and the function.
pub type Body = (&'static str, fn(&[u8]));

/// Every function.
pub const BODIES: &[Body] = &[
    ("decode_request", decode_request),
    ("decode_reply", decode_reply),
    ("split_frames", split_frames),
    ("path", path),
    ("engine_ops", engine_ops),
    ("read_log", read_log),
    ("replay_changes", replay_changes),
    ("replay_recording", replay_recording),
];
