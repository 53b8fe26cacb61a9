//! What the tests that cross crates share.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`drive`] | an engine with recorded effects and a clock moved by hand |
//! | [`kept`] | changes as a log has them, to be made once more |
//! | [`model`] | a naive tree that random operations are compared with |
//! | [`replay`] | checks a recorded history by zxid |
//! | [`sent`] | what a server sends, taken apart |
//! | [`scenario`] | readable scripts on the level of the wire, and what they run on |
//! | [`sim`] | contenders for every recipe, and their judge |
//! | [`differential`] | scenarios and random histories on two servers at once |

pub mod differential;
pub mod drive;
pub mod kept;
pub mod model;
mod recorder;
pub mod replay;
pub mod scenario;
pub mod sent;
pub mod sim;

/// The example in the README runs as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
