//! An in-memory server that speaks the ZooKeeper wire protocol.
//!
//! ZooKeeper clients in any language connect to it as to a standalone Apache ZooKeeper. Tests embed
//! it and control its clock, sessions and connections:
//!
//! ```no_run
//! use std::time::Duration;
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = minikeeper::Server::builder().manual_clock().start().await?;
//! let address = server.connect_string(); // give it to any ZooKeeper client
//! # drop(address);
//! server.advance(Duration::from_secs(60)); // connected sessions live on
//! server.expire("/locks/lock-0000000007")?; // end the session that owns this znode
//! server.disconnect("127.0.0.1")?; // close connections, keep the sessions
//! server.until_children("/locks", 0, Duration::from_secs(10)).await?; // wait without sleeping
//! println!("{}", server.dump()); // znodes, sessions, watches: equal trees, equal text
//! server.shutdown().await?;
//! # Ok(()) }
//! ```
//!
//! | task | items |
//! | --- | --- |
//! | a server on the calling runtime | [`Server`], [`Builder`] |
//! | a server without a runtime | [`blocking::Server`] |
//! | a connection without a socket | [`Universe::local`], [`LocalStream`] |
//! | freeze and advance the clock | [`Universe::advance`], [`Universe::freeze`], [`Moment`] |
//! | list, expire and disconnect sessions | [`Universe::sessions`], [`Universe::expire_and_flush`], [`SessionSelector`] |
//! | wait without sleeping | [`Universe::until_watched`], [`WaitError`] |
//! | keep the state after exit, with the feature `data` | [`Config::data_dir`], [`Server::save`] |
//! | go back to an earlier state | [`Universe::snapshot`], [`Universe::restore`] |
//! | one tree for each test, behind one port | [`Universe::create_universe`], [`Universe::fork`] |
//! | start from a production data directory, with the feature `data` | [`Builder::data_from`], [`Universe::import_data`] |
//! | restart within the process | [`Universe::restart`]; [`Universe::state`], [`Builder::state`] |
//! | seed and compare znodes | [`tree!`], [`Tree`], [`assert_tree!`] |
//! | see what a failed test did | [`Universe::story`], [`Stories`] |
//! | find known mistakes of clients | [`Universe::advise`], [`Advice`] |
//! | inject faults | [`Fault`], [`Universe::inject`] |
//! | judge what a lock protects | [`Universe::enter`], [`Universe::resource`] |
//! | settings and limits | [`Config`] |
//! | control over HTTP, with the feature `control` | `Builder::control` |
//!
//! Complete, explained tests are in `docs/testing/` of the repository.
//!
//! # Features
//!
//! Embedders set `default-features = false` and enable the features they need. A setting exists only
//! if its feature is enabled.
//!
//! | feature | adds |
//! | --- | --- |
//! | `data` | data directories: snapshots and transaction logs, import and export, [`Universe::state`] |
//! | `digest-algorithms` | hashes of digest identities other than SHA-1: [`DigestAlgorithm`] |
//! | `sasl` | users who log in by SASL (DIGEST-MD5), JAAS files: [`jaas_users`] |
//! | `seed-files` | trees in YAML and JSON |
//! | `control` | the same methods over HTTP; brings `data` and `seed-files` |
//! | `sweep` | [`Sweep`](https://docs.rs/minikeeper/latest/minikeeper/struct.Sweep.html): tests that run once for every fault, on paused time; brings `control` |
//! | `tls` | clients over TLS; builds the C and assembly of ring |
//! | `cli` (default) | the programs `minikeeper` and `minikeeper-cli`; brings all of these except `tls` |
//! | `completions` | subcommands of the program that write completion scripts and manual pages, for packagers |
//!
//! The library logs only with `tracing`, reads no environment variables and has no global state. The
//! exceptions are a server that a panic drops, see [`Stories`], and a `Sweep`, which keeps the panics of
//! its own threads from being printed.

// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod admin;
mod advice;
pub mod blocking;
#[cfg(feature = "control")]
pub mod control;
mod locks;
#[cfg(feature = "control")]
mod orders;
#[cfg(feature = "control")]
mod page;
mod server;
mod story;
#[cfg(feature = "control")]
mod sweep;
#[cfg(feature = "control")]
pub mod sweeping;
mod universe;
#[cfg(feature = "control")]
mod views;

pub use advice::{Advice, AdviceRule, Finding};
pub use locks::{
    Contender, Deadlock, DeadlockStep, LockFamily, LockHistory, LockInfo, LockKind, LockShare,
    LockWarning, LockWarningCode, Locks, Spread,
};
#[cfg(feature = "control")]
pub use minikeeper_core::config::ControlConfig;
#[cfg(feature = "data")]
pub use minikeeper_core::config::TxnLog;
#[cfg(feature = "sasl")]
pub use minikeeper_core::config::jaas::{JaasError, jaas_users};
pub use minikeeper_core::config::{Config, ConfigError};
pub use minikeeper_core::data::SaveError;
#[cfg(feature = "data")]
pub use minikeeper_core::data::{
    DataDirError, DataSource, ExportError, LoadError, SavedState, SnapshotFault,
};
pub use minikeeper_core::faults::{
    FaultInfo,
    action::FaultAction,
    error::{FaultError, NotHit},
    fault::Fault,
    hits::FaultHit,
    op::FaultOp,
    who::FaultFor,
};
pub use minikeeper_core::journal::{
    entry::{DeletionReason, JournalEntry, JournalOperation, JournalRequest, Occurrence},
    filter::{Expected, JournalError, JournalFilter},
};
pub use minikeeper_core::limits::LimitCounts;
pub use minikeeper_core::net::local::LocalStream;
pub use minikeeper_core::recording::{Recording, RecordingEnd, RecordingError};
pub use minikeeper_core::replay::{ReplayDifference, ReplayError, Replayed, replay};
pub use minikeeper_core::session_selector::{NoSession, SessionSelector, SessionSelectorError};
pub use minikeeper_core::start::StartError;
pub use minikeeper_core::state::resources::{ResourceError, ResourceReport, ResourceVerdict};
pub use minikeeper_core::state::session_info::{LastOperation, SessionInfo, WatchInfo};
#[cfg(feature = "tls")]
pub use minikeeper_core::stream::tls::TlsError;
pub use minikeeper_core::tree;
#[cfg(feature = "seed-files")]
pub use minikeeper_core::trees::TreeFileError;
pub use minikeeper_core::trees::seed_error::SeedError;
pub use minikeeper_core::trees::{Difference, Lifetime, Tree, TreeDiff, Znode};
pub use minikeeper_core::turn::health::Failure;
pub use minikeeper_engine::{
    Broken, DigestAlgorithm, ImageError, Keep, Secret, UnknownDigestAlgorithm, WatchKind,
};
pub use minikeeper_protocol::{ErrorCode, OpCode, SessionId, Stat, Zxid};
#[cfg(feature = "control")]
pub use orders::{choice::RequestOrder, fault::SweepFault};
pub use server::{Builder, Server};
#[cfg(feature = "control")]
pub use sweep::{
    SweepError,
    coverage::Coverage,
    order_report::OrderCoverage,
    plan::SweepOptions,
    point::FaultPoint,
    report::{SweepFailure, SweepReport, SweepState},
    rule::{RuleUse, SweepRule},
};
#[cfg(feature = "sweep")]
pub use sweeping::in_process::{Sweep, SweepOutcome};
pub use universe::changes::ChangeError;
pub use universe::inspect::{ChildListing, ListedChild, ListedZnode, TreeListing};
pub use {
    minikeeper_core::clock::Moment,
    universe::{
        Change, Changes, JournalTail, RestartError, RestoreError, Seeded, Snapshot, Universe,
        UniverseError, UniverseGuard, WaitError, faults::FaultGuard, resources::ResourceEntry,
    },
};
pub use {minikeeper_core::config::stories::Stories, story::Story, universe::panics::StoryGuard};
pub use {
    minikeeper_core::ensemble::ServerMode,
    universe::ensemble::{EnsembleError, ServerStatus},
};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
