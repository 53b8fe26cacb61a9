//! The state that connections, background tasks and handles share: one universe's, and the
//! server's; and what acts on it without a socket.
//!
//! `session_info` describes a session, `registry` finds the universe that a path or session belongs to,
//! `timers` takes turns when something is due, `time_control` decides who may advance a frozen clock,
//! `fault_turn` serves requests that an injected fault applies to, `picking` those whose order a caller
//! decides, `handshake_deadlines` closes
//! connections that do not finish the handshake in time, and `scratch` lends buffers to busy
//! connections, so that idle ones keep none. `reachability` says whether the server listens. `saving`
//! decides when to save the state; builds without the feature `data` use `no_saving.rs` instead.
//!
//! Two hooks let connections reach what lies above them: `upgrade` for HTTP, and `words` for four-letter
//! words.

pub mod fault_turn;
pub(crate) mod handshake_deadlines;
pub(crate) mod marks;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod picking;
pub mod reachability;
pub mod registry;
pub mod resources;
pub mod run_notes;
#[cfg(feature = "data")]
pub mod saving;
#[cfg(not(feature = "data"))]
#[path = "no_saving.rs"]
pub mod saving;
pub(crate) mod scratch;
pub mod session_info;
pub mod time_control;
pub mod timers;
#[cfg(feature = "control")]
pub mod upgrade;
pub mod words;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicUsize},
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{
    config::Config,
    ensemble::Ensemble,
    limits::{Limits, open_connections::OpenConnections},
    recording::recorder::FileEnd,
    state::{
        handshake_deadlines::HandshakeDeadlines, reachability::Reachability, registry::Registry,
        resources::Resources, run_notes::RunNotes, saving::Saving, scratch::ScratchPool,
        time_control::TimeControl, words::FindWord,
    },
    turn::turns::Turns,
};

/// The answer to `gtmk` until `stmk` sets another value.
const TRACE_MASK: i64 = 306;

/// One universe: its tree and sessions behind their lock, its limits and its clock.
#[derive(Debug)]
pub struct UniverseState {
    pub turns: Turns,
    pub config: Config,
    pub(crate) handshakes: HandshakeDeadlines,
    /// Set by `stmk` and read by `gtmk`; it has no other effect.
    pub trace_mask: AtomicI64,
    pub limits: Limits,
    pub time_control: TimeControl,
    /// Whether a panic has told its story.
    pub is_story_told: AtomicBool,
    /// What a sweep tries in it.
    pub run_notes: Mutex<RunNotes>,
    /// What its tests do with the resources that locks protect.
    pub resources: Mutex<Resources>,
    /// The end of its recording in a file.
    pub file_end: Arc<FileEnd>,
    pub server: Arc<ServerState>,
}

/// The state that all universes of a server share.
#[derive(Debug)]
pub struct ServerState {
    pub(crate) scratches: ScratchPool,
    pub open_connections: Arc<OpenConnections>,
    /// Saves the server's own universe; no other one is saved.
    pub saving: Saving,
    /// The universes beside the server's own.
    pub universes: Registry,
    pub reachability: Reachability,
    pub ensemble: Arc<Ensemble>,
    /// Runs the background tasks of universes created later.
    pub runtime: Handle,
    /// The number of connections that were given to a runtime, to choose that of the next one.
    pub(crate) placed: AtomicUsize,
    /// Finds the four-letter word that a connection has sent.
    pub(crate) find_word: FindWord,
    /// A permit for each four-letter word that is answered on a thread.
    pub word_threads: Semaphore,
}

/// The limit of the number of four-letter words that are answered on threads at a time.
const WORD_THREADS_MAX: usize = 4;

impl ServerState {
    /// Creates the state of a server on the calling runtime.
    fn new(ensemble: Arc<Ensemble>, find_word: FindWord) -> Self {
        Self {
            ensemble,
            scratches: ScratchPool::default(),
            open_connections: Arc::default(),
            saving: Saving::default(),
            universes: Registry::default(),
            reachability: Reachability::default(),
            runtime: Handle::current(),
            placed: AtomicUsize::new(0),
            find_word,
            word_threads: Semaphore::new(WORD_THREADS_MAX),
        }
    }

    /// Holds the ports of all servers of the ensemble while they are down.
    pub fn hold_ports(&self) {
        let addresses = self.ensemble.ids().map(|id| self.ensemble.addresses(id));
        self.reachability.hold_ports(addresses);
    }
}

impl UniverseState {
    /// Creates the own universe of a server on the calling runtime.
    pub fn root(
        config: Config,
        turns: Turns,
        ensemble: Arc<Ensemble>,
        find_word: FindWord,
    ) -> Self {
        Self::new(
            config,
            turns,
            Arc::new(ServerState::new(ensemble, find_word)),
        )
    }

    /// Creates a universe of this server.
    pub fn new(config: Config, turns: Turns, server: Arc<ServerState>) -> Self {
        let handshake_ms = u64::try_from(config.handshake_timeout.as_millis()).unwrap_or(u64::MAX);
        Self {
            turns,
            config,
            handshakes: HandshakeDeadlines::new(handshake_ms),
            trace_mask: AtomicI64::new(TRACE_MASK),
            limits: Limits::default(),
            time_control: TimeControl::default(),
            is_story_told: AtomicBool::new(false),
            run_notes: Mutex::default(),
            resources: Mutex::default(),
            file_end: Arc::default(),
            server,
        }
    }
}
