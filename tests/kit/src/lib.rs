//! Helpers for the tests of several crates: random numbers and requests, a raw client, a link that
//! injects faults, and functions that start servers.
//!
//! Most parts are behind features, so that a crate's tests compile only what they use.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking"
)]

#[cfg(feature = "link")]
pub mod clock;
#[cfg(feature = "link")]
pub mod link;
#[cfg(feature = "proptest")]
pub mod property;
pub mod random;
#[cfg(feature = "wire")]
pub mod requests;
#[cfg(feature = "link")]
pub mod servers;
#[cfg(feature = "wire")]
pub mod wire;

#[cfg(feature = "link")]
pub use self::servers::example;
