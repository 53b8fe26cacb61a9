//! The state behind the engine lock: engine, connections, counters, log.

use minikeeper_engine::{ConnId, Engine, Now};
use minikeeper_protocol::SessionId;
use slab::Slab;

use crate::{
    clock::Clock,
    data::LogWriter,
    journal::{Journal, record::RecordKind},
    recording::recorder::Recorder,
    session_selector::SessionSelector,
    turn::{members::Member, sink::Sink, stats::Counters},
};

/// The engine, and everything else that only the holder of its lock may touch.
#[derive(Debug)]
pub struct Core {
    pub engine: Engine,
    /// By connection number.
    pub members: Slab<Member>,
    pub(crate) counters: Counters,
    /// Logs changes, if a log is configured.
    pub(crate) log: Option<Box<LogWriter>>,
    /// The journal and a recording, if a journal is configured.
    pub sink: Option<Box<Sink>>,
    /// The number of connections registered so far.
    pub(crate) registered: u64,
}

/// A session and its connection, if it has one.
pub(crate) type Found = (SessionId, Option<ConnId>);

/// A read-only view of the state and the counters between two turns.
pub struct LockedState<'a> {
    pub engine: &'a Engine,
    /// By connection number.
    pub members: &'a Slab<Member>,
    pub counters: &'a Counters,
    pub journal: Option<&'a Journal>,
}

impl LockedState<'_> {
    /// Returns whether a connection in the server's own universe may still move to another one.
    pub fn is_unbound(&self, conn: ConnId) -> bool {
        // A broken server forgets connections that its engine still knows.
        let member = self.members.get(conn.0 as usize);
        member.is_some_and(|member| !member.outbox.is_bound())
    }

    /// Finds the sessions that a selector means, each with its connection if it has one.
    pub fn find(&self, who: &SessionSelector) -> Vec<Found> {
        let owner = match who {
            SessionSelector::Owner(path) => self.engine.get(path),
            _ => None,
        };
        let owner = owner.map(|(_, stat)| stat.ephemeral_owner);
        let is_meant = |id: SessionId, conn: Option<ConnId>| match who {
            SessionSelector::Session(session) => id == *session,
            SessionSelector::Owner(_) => owner == Some(id),
            SessionSelector::Address(ip, port) => conn.is_some_and(|conn| {
                let member = self.members.get(conn.0 as usize);
                let address = member.and_then(|member| member.stats.peer.address());
                address.is_some_and(|address| {
                    address.ip() == *ip && port.is_none_or(|port| port == address.port())
                })
            }),
            SessionSelector::Identity(identity) => conn.is_some_and(|conn| {
                let identities = self.engine.identities(conn);
                identities
                    .iter()
                    .any(|(scheme, id)| is_identity(identity, scheme, id))
            }),
        };
        self.engine
            .sessions()
            .filter(|(id, _, conn)| is_meant(*id, *conn))
            .map(|(id, _, conn)| (id, conn))
            .collect()
    }

    /// Finds unbound sessions of the server's own universe for a caller in another universe.
    ///
    /// If that is not the only other one, only an id or an address with its port finds a session:
    /// an address without a port, or an identity, may match a client of a third universe.
    pub fn find_unbound(&self, who: &SessionSelector, is_only: bool) -> Vec<Found> {
        let is_named = matches!(
            who,
            SessionSelector::Session(_) | SessionSelector::Address(_, Some(_))
        );
        if !is_named && !is_only {
            return Vec::new();
        }
        let mut found = self.find(who);
        found.retain(|(_, conn)| conn.is_none_or(|conn| self.is_unbound(conn)));
        found
    }
}

impl Core {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            members: Slab::new(),
            counters: Counters::default(),
            log: None,
            sink: None,
            registered: 0,
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

    /// Returns what writes the recording, if there is one.
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.sink.as_mut()?.recorder.as_deref_mut()
    }

    /// Notifies the log, if there is one, that the state was replaced and saved.
    pub(crate) fn note_replaced(&mut self) {
        if let Some(log) = &mut self.log {
            log.go_on_from(self.engine.zxid());
        }
    }

    /// Begins a turn, in the sink too if there is one. Returns the time, and that in microseconds
    /// for the journal.
    #[inline]
    pub(crate) fn begin_turn(&mut self, clock: &Clock) -> (Now, u64) {
        let Some(sink) = &mut self.sink else {
            return (clock.now(), 0);
        };
        let (now, began_us) = clock.now_and_micros();
        sink.journal.begin_turn(now);
        (now, began_us)
    }

    /// Ends the turn that began at this time.
    #[inline]
    pub(crate) fn end_turn(&mut self, began_us: u64, clock: &Clock) {
        if let Some(sink) = &mut self.sink {
            let took_us = clock.micros().saturating_sub(began_us);
            sink.end_turn(u32::try_from(took_us).unwrap_or(u32::MAX));
        }
    }

    /// Adds to the journal, if there is one, what happened outside of requests.
    pub(crate) fn note(
        &mut self,
        clock: &Clock,
        kind: RecordKind,
        conn: Option<ConnId>,
        text: impl FnOnce() -> String,
    ) {
        let Some(sink) = &mut self.sink else {
            return;
        };
        let member = conn.and_then(|conn| self.members.get(conn.0 as usize));
        if conn.is_some() && member.is_none_or(|member| !member.outbox.is_open()) {
            return;
        }
        let who = member.map(Member::who);
        sink.happened(clock.now(), kind, who, &text());
    }

    pub(crate) fn locked(&self) -> LockedState<'_> {
        LockedState {
            engine: &self.engine,
            members: &self.members,
            counters: &self.counters,
            journal: self.sink.as_ref().map(|sink| &sink.journal),
        }
    }
}

fn is_identity(text: &str, scheme: &str, id: &str) -> bool {
    let Some((wanted_scheme, wanted)) = text.split_once(':') else {
        return false;
    };
    // The rest of a digest identity is a hash, which callers need not know.
    let user = wanted.split(':').next().unwrap_or_default();
    wanted_scheme == scheme && (wanted == id || scheme == "digest" && user == id)
}
