//! What the listener, the connections and the server's handle have in common.

use std::sync::{Arc, atomic::AtomicI64};

use crate::{
    config::Config,
    data::saves::Saving,
    net::{
        handshake_deadlines::HandshakeDeadlines, limits::Limits, listener::OpenConnections,
        reachability::Reachability, scratch::ScratchPool,
    },
    turn::{time_control::TimeControl, turns::Turns},
    universe::registry::Universes,
};

/// What `gtmk` tells until `stmk` sets another.
const TRACE_MASK: i64 = 306;

/// What the listener, the connections and the handle share, for one universe.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) turns: Turns,
    pub(crate) config: Config,
    pub(crate) scratches: Arc<ScratchPool>,
    pub(crate) open_connections: Arc<OpenConnections>,
    pub(crate) handshakes: HandshakeDeadlines,
    /// What `stmk` sets and `gtmk` tells; nothing is traced by it.
    pub(crate) trace_mask: AtomicI64,
    pub(crate) limits: Limits,
    pub(crate) time_control: TimeControl,
    /// Only the server's own universe is saved.
    pub(crate) saving: Saving,
    /// Those behind the same port; only the server's own universe has some.
    pub(crate) universes: Universes<Self>,
    /// Whether the server can be reached; the server's own universe alone knows.
    pub(crate) reachability: Reachability,
}

impl Shared {
    /// For the server's own universe, on the calling runtime.
    pub(crate) fn root(config: Config, turns: Turns) -> Self {
        Self::with(
            config,
            turns,
            Arc::default(),
            Arc::default(),
            Universes::here(),
        )
    }

    /// For one behind the same port as another.
    pub(crate) fn beside(root: &Self, config: Config, turns: Turns) -> Self {
        let (scratches, open_connections) = (
            Arc::clone(&root.scratches),
            Arc::clone(&root.open_connections),
        );
        Self::with(
            config,
            turns,
            scratches,
            open_connections,
            Universes::none(),
        )
    }

    fn with(
        config: Config,
        turns: Turns,
        scratches: Arc<ScratchPool>,
        open_connections: Arc<OpenConnections>,
        universes: Universes<Self>,
    ) -> Self {
        let handshake_ms = u64::try_from(config.handshake_timeout.as_millis()).unwrap_or(u64::MAX);
        Self {
            turns,
            config,
            scratches,
            open_connections,
            handshakes: HandshakeDeadlines::new(handshake_ms),
            trace_mask: AtomicI64::new(TRACE_MASK),
            limits: Limits::default(),
            time_control: TimeControl::default(),
            saving: Saving::default(),
            universes,
            reachability: Reachability::default(),
        }
    }
}
