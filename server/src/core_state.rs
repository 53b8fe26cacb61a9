//! What a turn works on: the engine, the connections it knows, and the numbers.

use minikeeper_engine::{ConnId, Engine};
use minikeeper_protocol::SessionId;
use slab::Slab;

use crate::{stats::Counters, turn_effects::Member};

/// The engine, and everything else that only the holder of its lock may touch.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Engine,
    /// By connection number.
    pub(crate) members: Slab<Member>,
    pub(crate) counters: Counters,
}

/// A session and its connection, if it has one.
pub(crate) type Found = (SessionId, Option<ConnId>);

/// The state and the numbers between two turns.
pub(crate) struct Look<'a> {
    pub(crate) engine: &'a Engine,
    /// By connection number.
    pub(crate) members: &'a Slab<Member>,
    pub(crate) counters: &'a Counters,
}

impl Core {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            members: Slab::new(),
            counters: Counters::default(),
        }
    }

    pub(crate) const fn look(&self) -> Look<'_> {
        Look {
            engine: &self.engine,
            members: &self.members,
            counters: &self.counters,
        }
    }
}
