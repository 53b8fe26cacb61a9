//! What a request to minikeeper passes through, from the socket to the engine, and what is written on
//! the way: journal, recording, data directory.
//!
//! Users depend on the crate `minikeeper`, which exports every type of this one that is for them. The
//! rest serves that crate and may change with every version. The order of the modules is in
//! `ARCHITECTURE.md`.

// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod clock;
pub mod config;
#[cfg(feature = "data")]
pub mod data;
#[cfg(not(feature = "data"))]
#[path = "no_data.rs"]
pub mod data;
pub mod ensemble;
pub mod faults;
#[cfg(any(feature = "data", feature = "tls"))]
pub mod files;
pub mod glob;
pub mod journal;
pub mod limits;
pub mod net;
pub mod order;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod outbox;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod peer;
pub mod race;
pub mod random;
pub mod recording;
pub mod replay;
pub mod session_selector;
pub mod start;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod state;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod stream;
pub mod trees;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod turn;
pub mod work;

// The macros `tree!` and `assert_tree!` name them.
pub use trees::{Tree, TreeDiff, Znode};
