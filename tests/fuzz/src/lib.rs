//! Fuzz targets of minikeeper: one plain function each, which panics when a promise is broken.
//!
//! `tests/bodies.rs` runs them over their seeds and over random bytes with any compiler; the targets
//! need `cargo fuzz`.

mod data;
mod engine;
mod protocol;

pub use data::{read_log, replay_changes};
pub use engine::engine_ops;
pub use protocol::{decode_reply, decode_request, path, split_frames};

/// The name of a function, of its target and of the folder with its seeds; and the function.
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
];
