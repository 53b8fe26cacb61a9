//! An in-memory server that speaks the ZooKeeper wire protocol.
//!
//! Stock ZooKeeper clients of any language connect to it as to an Apache ZooKeeper: one node, in
//! memory, up in a millisecond. Tests embed it and own its time, sessions and connections:
//!
//! ```no_run
//! use std::time::Duration;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let server = minikeeper::Server::builder().manual_clock().start().await?;
//! let address = server.connect_string(); // give it to any ZooKeeper client
//! # drop(address);
//! server.advance(Duration::from_secs(60)); // an hour would do: connected sessions live on
//! server.expire("/locks/lock-0000000007")?; // or end one by hand: whoever holds that lock
//! server.disconnect("127.0.0.1")?; // cut connections, and keep the sessions
//! server.until_children("/locks", 0, Duration::from_secs(10)).await?; // no test sleeps
//! println!("{}", server.dump()); // znodes, sessions, watches: equal trees, equal text
//! server.shutdown().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | what | where |
//! | --- | --- |
//! | a server on the calling runtime | [`Server`], [`Builder`] |
//! | a server for tests without a runtime | [`blocking::Server`] |
//! | a connection without a socket | [`Universe::local`], [`LocalStream`] |
//! | time that stands still, runs and jumps | [`Universe::advance`], [`Universe::freeze`], [`Moment`] |
//! | sessions seen, ended and cut | [`Universe::sessions`], [`Universe::expire_told`], [`Who`] |
//! | waiting without sleeping | [`Universe::until_watched`], [`WaitError`] |
//! | a state that outlives the process | [`Config::data_dir`], [`Server::save`] |
//! | back to how it was before a test | [`Universe::snapshot`], [`Universe::restore`] |
//! | a tree of its own for each test, behind one port | [`Universe::create_universe`], [`Universe::fork`] |
//! | a production data directory to start from | [`Builder::data_from`], [`Universe::import_data`] |
//! | a restart within the process | [`Universe::restart`]; [`Universe::state`], [`Builder::state`] |
//! | znodes to begin with or to compare with | [`tree!`], [`Tree`], [`assert_tree!`] |
//! | what is to go wrong | [`Fault`], [`Universe::inject`] |
//! | every setting and limit | [`Config`] |
//! | the verbs of a test over HTTP, with the feature `control` | `Builder::control` |
//!
//! Complete, explained tests are in `docs/testing/` of the repository.
//!
//! Features: `cli` (default) is what the binary needs beyond the library: arguments, signals,
//! logs, and `control`: the verbs of a test over HTTP. That brings `seed-files`: trees in YAML and
//! JSON. `tls` lets clients connect over TLS too, and builds C for it. Embedders take
//! `default-features = false`. The library writes logs with `tracing` and nowhere else; it reads no
//! environment and keeps no global state.

mod admin;
mod alarm;
mod batch;
mod binding;
pub mod blocking;
mod clock;
mod config;
mod connection;
#[cfg(feature = "control")]
pub mod control;
mod core_state;
mod door;
mod expiry;
mod fail_stop;
mod fault_turn;
mod faults;
#[doc(hidden)]
pub mod files;
mod fresh;
mod heed;
mod jaas;
mod latency;
mod limits;
mod listener;
mod listening;
mod live;
mod local;
mod metrics;
mod movers;
mod outbox;
#[cfg(feature = "planted")]
pub mod planted;
mod rebased;
mod rest;
mod saves;
mod saving;
mod scratch;
mod seeding;
mod server;
mod session_info;
mod shared;
mod snapshot;
mod socket;
mod standing;
mod start;
mod stats;
mod stream;
mod telling;
mod throttle;
mod timekeeper;
#[cfg(feature = "tls")]
mod tls;
mod trace;
mod tree;
mod turn;
mod turn_effects;
mod universe;
mod universes;
mod who;

#[cfg(feature = "control")]
pub use config::ControlConfig;
pub use config::{Config, ConfigError, TxnLog};
pub use faults::{
    FaultInfo,
    action::FaultAction,
    error::{FaultError, NotHit},
    fault::Fault,
    op::FaultOp,
    who::FaultFor,
};
pub use jaas::{JaasError, jaas_users};
pub use limits::LimitCounts;
pub use local::LocalStream;
pub use minikeeper_engine::{
    Broken, DigestAlgorithm, ImageError, Keep, Secret, UnknownDigestAlgorithm, WatchKind,
};
pub use minikeeper_protocol::{ErrorCode, OpCode, SessionId, Stat, Zxid};
pub use seeding::SeedError;
pub use server::{Builder, Server};
pub use session_info::{LastOperation, SessionInfo, WatchInfo};
pub use snapshot::{DataDirError, DataSource, ExportError, SaveError, SnapshotFault, State};
pub use standing::Failure;
pub use start::StartError;
#[cfg(feature = "tls")]
pub use tls::TlsError;
#[cfg(feature = "seed-files")]
pub use tree::TreeFileError;
pub use tree::{Difference, Lifetime, Tree, TreeDiff, Znode};
pub use universe::{
    Moment, RestartError, RestoreError, Seeded, Snapshot, Universe, UniverseError, UniverseGuard,
    WaitError, faults::FaultGuard,
};
pub use who::{NoSession, Who, WhoError};
