//! Helpers of the tests that cross crates.
//!
//! | module | contents |
//! | --- | --- |
//! | [`access`] | how test programs connect, and wait for each other |
//! | [`drive`] | an engine with recorded effects and a manual clock |
//! | [`kept`] | recorded changes, which can be replayed |
//! | [`model`] | a naive tree that random operations are compared with |
//! | [`replay`] | checks a recorded history by zxid |
//! | [`sent`] | decodes what a server sends |
//! | [`scenario`] | readable scripts of requests and replies, and their targets |
//! | [`sim`] | contenders for every recipe, and the judge of their holds |
//! | [`differential`] | scenarios and random histories on two servers at once |

pub mod access;
pub mod differential;
pub mod drive;
pub mod kept;
pub mod model;
mod recorder;
pub mod replay;
pub mod scenario;
pub mod sent;
pub mod sim;

/// Runs the example in the README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
