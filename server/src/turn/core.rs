//! The state behind the engine lock: engine, connections, counters, log.

use minikeeper_engine::{ConnId, Engine, Now};
use minikeeper_protocol::SessionId;
use slab::Slab;

use crate::turn::{change_log::ChangeLog, effects::Member, stats::Counters};

/// The engine, and everything else that only the holder of its lock may touch.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Engine,
    /// By connection number.
    pub(crate) members: Slab<Member>,
    pub(crate) counters: Counters,
    /// Logs changes, if a log is configured.
    pub(crate) log: Option<Box<dyn ChangeLog>>,
}

/// A session and its connection, if it has one.
pub(crate) type Found = (SessionId, Option<ConnId>);

/// A read-only view of the state and the counters between two turns.
pub(crate) struct Look<'a> {
    pub(crate) engine: &'a Engine,
    /// By connection number.
    pub(crate) members: &'a Slab<Member>,
    pub(crate) counters: &'a Counters,
}

impl Look<'_> {
    /// Returns whether a connection in the server's own universe may still move to another one.
    pub(crate) fn is_unbound(&self, conn: ConnId) -> bool {
        // A broken server forgets connections that its engine still knows.
        let member = self.members.get(conn.0 as usize);
        member.is_some_and(|member| !member.outbox.is_bound())
    }
}

impl Core {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            members: Slab::new(),
            counters: Counters::default(),
            log: None,
        }
    }

    /// Writes the pending changes to the log. Returns false if that fails: then no client may see
    /// them.
    pub(crate) fn write_log(&mut self, now: Now) -> bool {
        let Some(log) = &mut self.log else {
            return true;
        };
        log.keep_up(self.engine.zxid(), now.wall_ms);
        log.write()
    }

    /// Notifies the log, if there is one, that the state was replaced and saved.
    pub(crate) fn note_anew(&mut self) {
        if let Some(log) = &mut self.log {
            log.go_on_from(self.engine.zxid());
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
