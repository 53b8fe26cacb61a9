//! What the tests of several crates share: one generator of random numbers, one raw client, one
//! link that injects faults, one way to start servers.
//!
//! Each part behind a feature, so that a crate's tests compile only what they use.

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
#[cfg(feature = "link")]
pub mod servers;
#[cfg(feature = "wire")]
pub mod wire;
