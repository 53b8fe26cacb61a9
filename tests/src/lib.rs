//! What the tests that cross crates share.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`wire`] | a deliberately dumb client over a blocking socket, able to send nonsense |
//! | [`drive`] | an engine with recorded effects and a clock moved by hand |
//! | [`model`] | a naive tree, the reference that random operations are compared with |
//! | [`replay`] | checks a recorded history by zxid |
//! | [`scenario`] | readable scripts on the level of the wire, and what they run on |

pub mod drive;
pub mod model;
pub mod replay;
pub mod scenario;
pub mod wire;
