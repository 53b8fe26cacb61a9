//! What the tests that cross crates share.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`wire`] | a deliberately dumb client over a blocking socket, able to send nonsense |
//! | [`drive`] | an engine with recorded effects and a clock moved by hand |
//! | [`model`] | a naive tree, the reference that random operations are compared with |
//! | [`replay`] | checks a recorded history by zxid |

pub mod drive;
pub mod model;
pub mod replay;
pub mod wire;
