//! Fault injection: the faults in force, the requests that each applies to, and what they hold
//! back.
//!
//! A [`fault::Fault`] is what a test describes: an [`action`], and conditions on the operation
//! ([`op`]), path (`glob`), client ([`who`]) and chance (`chance`). [`rule`] is a fault in force,
//! with its counts ([`hits`]) and held events, which a sweep puts at a [`place`]; `delayed` holds
//! requests to serve later, and `aftermath` alters the output of a turn. [`error`] says why a fault
//! cannot be injected, or has not acted. This module decides; turns and connections carry the decisions
//! out. While no fault is set, the cost is one load of an atomic flag.
//!
//! Lock order: the table's lock may be taken under the engine's, never the reverse.

pub mod action;
pub(crate) mod aftermath;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod chance;
pub(crate) mod delayed;
pub mod error;
pub mod fault;
pub mod hits;
pub mod op;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod place;
pub mod rule;
pub mod who;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::Waker,
    time::Duration,
};

use minikeeper_engine::{ConnId, Input, Mark};
use minikeeper_protocol::{EventKind, SessionId, Zxid};
use parking_lot::{Condvar, Mutex};

use self::{
    action::FaultAction,
    delayed::{Delayed, DelayedRequests},
    error::FaultError,
    fault::Fault,
    hits::{FaultHit, Hits},
    place::FaultPlace,
    rule::{HeldEvent, Rule, ShutOut, Subject},
};
use crate::{outbox::Outbox, peer::Peer};

/// The maximum number of faults at a time. Every one of them is checked for every request.
const FAULTS_MAX: usize = 1_000;

/// The maximum memory of the events that all faults hold together. Unit: bytes.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The maximum number of sessions that get a number. Every request looks its session up.
const CLIENTS_MAX: usize = 10_000;

/// The cost of an event in addition to its frame. Unit: bytes.
const HELD_EVENT_BYTES: usize = 64;

/// Stands for the number of a fault where a request waits to be picked: see [`Faults::hold_requests`].
pub(crate) const PICKED: u64 = 0;

/// An injected fault, as [`Universe::faults`](../minikeeper/struct.Universe.html#method.faults) reports it.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::Fault;
/// let server = minikeeper::Server::builder().start().await?;
/// let guard = server.inject(Fault::cut().at("/a"))?;
/// let info = &server.faults()[0];
/// assert_eq!((info.id, &info.fault), (guard.id(), &Fault::cut().at("/a")));
/// assert_eq!((info.matches, info.hits, info.held), (0, 0, 0));
/// # guard.keep();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct FaultInfo {
    /// Its number, counted from 1 in the order of injection and never reused.
    pub id: u64,
    /// The injected fault.
    pub fault: Fault,
    /// The number of requests, connections or events that it matched, skipped ones included.
    pub matches: u64,
    /// The number of times it has acted.
    pub hits: u64,
    /// The number of requests, replies or events that it currently holds back.
    pub held: usize,
    /// What it has acted on last.
    pub last_hit: Option<FaultHit>,
}

/// The action of a fault on a request.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) rule: u64,
    pub(crate) action: FaultAction,
    hits: Arc<Hits>,
    /// The triggers that the request meets on the way.
    triggers: Vec<Arc<Hits>>,
    hit: FaultHit,
}

impl Verdict {
    /// Counts a delay, which has begun.
    pub(crate) fn begun(self) {
        self.done(SessionId::NONE);
    }

    /// Counts the action, which is done. `session` is the client's, which a handshake may just have
    /// opened.
    pub(crate) fn done(mut self, session: SessionId) {
        if self.hit.session.is_none() && session != SessionId::NONE {
            self.hit.session = Some(session);
        }
        for trigger in self.triggers {
            trigger.hit(self.hit.clone());
        }
        self.hits.hit(self.hit);
    }
}

/// The outcome for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventFate {
    Sent,
    Held,
    /// It should be held, but there is no room.
    NoRoom,
}

/// The requests and events that removed faults were holding back.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// The number of faults removed.
    pub(crate) faults: usize,
    /// In the order in which to send them.
    pub(crate) events: Vec<HeldEvent>,
    pub(crate) delayed: Vec<Delayed>,
}

/// The faults of one universe.
#[derive(Debug, Default)]
pub struct Faults {
    /// Whether there are any. Changed under the table's lock.
    is_set: AtomicBool,
    /// Whether one of them holds events. Changed under the table's lock; to false only under the
    /// engine's lock too.
    holds_events: AtomicBool,
    /// Whether each request waits until it is picked. Changed under the table's lock.
    holds_requests: AtomicBool,
    /// How many of the last changes may have to be taken back. Changed under the table's lock.
    rollback_max: AtomicU32,
    /// The state before each of the last changes, oldest first.
    pub(crate) marks: Mutex<VecDeque<(Zxid, Mark)>>,
    table: Mutex<Table>,
    /// Notified when a request waits to be picked.
    came: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    /// Oldest first.
    rules: Vec<Rule>,
    injected: u64,
    delayed: DelayedRequests,
    held_bytes: usize,
    /// The sessions that have sent a request since there has been any fault, in order.
    clients: Vec<SessionId>,
}

impl Table {
    /// Returns the number of a session, counted from 1.
    fn number_of(&self, session: SessionId) -> Option<u32> {
        let place = self.clients.iter().position(|known| *known == session)?;
        u32::try_from(place + 1).ok()
    }

    /// Gives a session that sends a request a number.
    fn number(&mut self, subject: &Subject<'_>) -> Option<u32> {
        if matches!(subject.input, Input::Connect { .. }) || subject.session == SessionId::NONE {
            return None;
        }
        let known = self.number_of(subject.session);
        if known.is_none() && self.clients.len() < CLIENTS_MAX {
            self.clients.push(subject.session);
            return u32::try_from(self.clients.len()).ok();
        }
        known
    }
}

impl Faults {
    /// Returns whether there is any fault.
    ///
    /// Relaxed is enough: a caller that injects a fault and then sends a request has held the
    /// table's lock, and its request comes through a socket or on the same thread.
    pub(crate) fn are_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Returns whether a fault holds events.
    pub(crate) fn hold_events(&self) -> bool {
        self.holds_events.load(Ordering::Relaxed)
    }

    /// Adds a fault. Returns its number and its counters.
    ///
    /// # Errors
    /// When the fault makes no sense, or there are too many.
    pub fn add(&self, fault: Fault) -> Result<(u64, Arc<Hits>), FaultError> {
        self.add_at(fault, None)
    }

    /// Adds a fault that acts at a place, whatever else it says of clients, operations and paths.
    ///
    /// # Errors
    /// See [`Faults::add`].
    pub fn add_at(
        &self,
        fault: Fault,
        place: Option<FaultPlace>,
    ) -> Result<(u64, Arc<Hits>), FaultError> {
        let mut table = self.table.lock();
        if table.rules.len() >= FAULTS_MAX {
            return Err(FaultError::TooMany { max: FAULTS_MAX });
        }
        let mut rule = Rule::new(table.injected + 1, fault)?;
        rule.place = place;
        table.injected += 1;
        let added = (rule.id, Arc::clone(&rule.hits));
        table.rules.push(rule);
        self.set_flags(&table);
        Ok(added)
    }

    /// Returns whether each request waits until it is picked.
    pub(crate) fn hold_requests(&self) -> bool {
        self.holds_requests.load(Ordering::Relaxed)
    }

    /// Makes each request wait until it is picked, from now on or no longer. Those that wait go on to do so.
    pub(crate) fn set_hold_requests(&self, holds: bool) {
        let table = self.table.lock();
        self.holds_requests.store(holds, Ordering::Release);
        self.set_flags(&table);
    }

    /// Shows each request that waits to be picked, in the order in which they came.
    pub(crate) fn each_waiting(&self, show: impl FnMut(&Delayed)) {
        let table = self.table.lock();
        table.delayed.of_rule(PICKED).for_each(show);
    }

    /// Waits until a further request waits to be picked, for at most this time.
    pub(crate) fn wait_for_request(&self, within: Duration) {
        self.came.wait_for(&mut self.table.lock(), within);
    }

    /// Takes the request of this connection that waits to be picked.
    pub(crate) fn pick(&self, conn: ConnId) -> Option<Delayed> {
        let mut table = self.table.lock();
        let is_its = |delayed: &Delayed| delayed.rule == PICKED && delayed.conn == conn;
        table.delayed.take(is_its).pop()
    }

    fn set_flags(&self, table: &Table) {
        let holds = |rule: &Rule| rule.fault.action.is_on_events();
        let taken_back = |rule: &Rule| match rule.fault.action {
            FaultAction::Rollback(changes) => Some(changes),
            _ => None,
        };
        let most = table.rules.iter().filter_map(taken_back).max();
        (self.rollback_max).store(most.unwrap_or(0), Ordering::Release);
        self.is_set.store(
            !table.rules.is_empty() || self.hold_requests(),
            Ordering::Release,
        );
        self.holds_events
            .store(table.rules.iter().any(holds), Ordering::Release);
    }

    /// Lists the faults, the oldest first.
    pub fn infos(&self) -> Vec<FaultInfo> {
        let table = self.table.lock();
        let info = |rule: &Rule| {
            let seen = rule.hits.seen();
            FaultInfo {
                id: rule.id,
                fault: rule.fault.clone(),
                matches: seen.matches,
                hits: seen.hits,
                held: rule.held.len() + table.delayed.of_rule(rule.id).count(),
                last_hit: rule.hits.last(),
            }
        };
        table.rules.iter().map(info).collect()
    }

    /// Returns whether a fault holds events back.
    pub fn is_holding(&self, id: u64) -> bool {
        let table = self.table.lock();
        let rule = table.rules.iter().find(|rule| rule.id == id);
        rule.is_some_and(|rule| !rule.held.is_empty())
    }

    /// Returns the counts of a fault that is set.
    pub fn hits(&self, id: u64) -> Option<Arc<Hits>> {
        let table = self.table.lock();
        let rule = table.rules.iter().find(|rule| rule.id == id)?;
        Some(Arc::clone(&rule.hits))
    }

    /// Returns whether a fault refuses a connection from this address.
    pub(crate) fn refuse(&self, peer: &Peer) -> bool {
        let mut table = self.table.lock();
        let refusing = table.rules.iter_mut().find_map(|rule| {
            let refuses = rule.refuses(peer);
            refuses.then(|| Arc::clone(&rule.hits))
        });
        drop(table);
        if let Some(hits) = &refusing {
            hits.hit(FaultHit {
                op: "connect",
                ..FaultHit::default()
            });
        }
        refusing.is_some()
    }

    /// Returns whether a fault keeps pings from renewing a session: it loses them all, or delays
    /// each for at least the session's timeout.
    pub(crate) fn silence(&self, session: SessionId, peer: &Peer, timeout_ms: u32) -> bool {
        let table = self.table.lock();
        let client = table.number_of(session);
        let mut rules = table.rules.iter();
        rules.any(|rule| rule.silences((session, client), peer, timeout_ms))
    }

    /// Finds the fault that acts on a request, among those after `after`.
    pub(crate) fn judge(&self, subject: &Subject<'_>, now_ms: u64, after: u64) -> Option<Verdict> {
        let mut table = self.table.lock();
        let client = table.number(subject);
        let mut verdict: Option<Verdict> = None;
        for rule in table.rules.iter_mut().filter(|rule| rule.id > after) {
            let mut action = rule.fault.action;
            if rule.shuts_out(subject.session, now_ms) {
                action = FaultAction::Cut;
            } else if rule.acts_on(subject, client) {
                rule.begin_outage(subject.session, now_ms);
            } else {
                continue;
            }
            let hits = Arc::clone(&rule.hits);
            let mut triggers = Vec::new();
            let before = verdict.take();
            let hit = match before {
                Some(before) => {
                    triggers = before.triggers;
                    triggers.push(before.hits);
                    before.hit
                }
                None => FaultHit::of(subject.input, subject.session),
            };
            verdict = Some(Verdict {
                rule: rule.id,
                action,
                hits,
                triggers,
                hit,
            });
            if action != FaultAction::Trigger {
                break;
            }
        }
        verdict
    }

    /// Holds an event back if a fault applies. Called under the engine's lock, at this time since
    /// the start.
    pub(crate) fn hold_event(
        &self,
        conn: ConnId,
        (session, peer): (SessionId, &Peer),
        (kind, path): (EventKind, &[u8]),
        now_ms: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> EventFate {
        let mut table = self.table.lock();
        let client = table.number_of(session);
        let Table {
            rules, held_bytes, ..
        } = &mut *table;
        let holding = rules
            .iter_mut()
            .find_map(|rule| rule.holds((session, client), peer, path).then_some(rule));
        let Some(rule) = holding else {
            return EventFate::Sent;
        };
        let mut frame = Vec::new();
        write(&mut frame);
        let bytes = frame.len() + HELD_EVENT_BYTES;
        if *held_bytes + bytes > HELD_BYTES_MAX {
            return EventFate::NoRoom;
        }
        *held_bytes += bytes;
        let until_ms = match rule.fault.action.delay() {
            Some(by) => now_ms.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)),
            None => u64::MAX,
        };
        rule.held.push(HeldEvent {
            conn,
            frame,
            is_late: false,
            until_ms,
        });
        rule.hits
            .hit(FaultHit::of_event(kind.name(), path, session));
        EventFate::Held
    }

    /// Notes that a request of this connection is served: the events that are only delayed for it
    /// are late enough.
    pub(crate) fn note_served(&self, conn: ConnId) {
        if !self.hold_events() {
            return;
        }
        let mut table = self.table.lock();
        for rule in table.rules.iter_mut().filter(|rule| rule.delays_events()) {
            for event in &mut rule.held {
                event.is_late |= event.conn == conn;
            }
        }
    }

    /// Takes the events that are only delayed and have waited long enough: those for a connection
    /// that sends a request and has been served one before, or those that are due by this time.
    /// Called under the engine's lock.
    pub(crate) fn take_events(&self, to: Option<ConnId>, now_ms: u64) -> Vec<HeldEvent> {
        let Table {
            rules, held_bytes, ..
        } = &mut *self.table.lock();
        let is_over = |event: &mut HeldEvent| {
            event.is_late && Some(event.conn) == to || event.until_ms <= now_ms
        };
        let mut taken = Vec::new();
        for rule in rules.iter_mut().filter(|rule| rule.delays_events()) {
            taken.extend(rule.held.extract_if(.., is_over));
        }
        for event in &taken {
            *held_bytes -= event.frame.len() + HELD_EVENT_BYTES;
        }
        taken
    }

    /// Drops the events held for a connection that has closed. Called under the engine's lock,
    /// before the connection's number can be reused.
    pub(crate) fn forget_events(&self, conn: ConnId) {
        let Table {
            rules, held_bytes, ..
        } = &mut *self.table.lock();
        for rule in rules {
            rule.held.retain(|event| {
                if event.conn == conn {
                    *held_bytes -= event.frame.len() + HELD_EVENT_BYTES;
                }
                event.conn != conn
            });
        }
    }

    /// Delays a request. Returns the request if its fault has been removed in the meantime.
    pub(crate) fn delay(&self, until_ms: u64, delayed: Delayed) -> Result<(), Box<Delayed>> {
        let mut table = self.table.lock();
        let is_in_force = match delayed.rule {
            PICKED => self.hold_requests(),
            id => table.rules.iter().any(|rule| rule.id == id),
        };
        if !is_in_force {
            return Err(Box::new(delayed));
        }
        delayed.outbox.set_delayed();
        if delayed.rule == PICKED {
            self.came.notify_all();
        }
        table.delayed.add(until_ms, delayed);
        Ok(())
    }

    /// Returns when the next delay ends, in milliseconds since the start.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        if !self.are_set() {
            return None;
        }
        let table = self.table.lock();
        // The events of a rule wait for the same time, so the first is due first.
        let delaying = table.rules.iter().filter(|rule| rule.delays_events());
        let of_events = delaying.filter_map(|rule| rule.held.first());
        let of_events = of_events.map(|event| event.until_ms).min();
        let of_requests = table.delayed.next_deadline_ms();
        let outages = table.rules.iter().filter_map(|rule| rule.shut_out.as_ref());
        let of_outages = outages
            .map(|out| out.until_ms)
            .filter(|until_ms| *until_ms < u64::MAX);
        of_events
            .into_iter()
            .chain(of_requests)
            .chain(of_outages.min())
            .min()
    }

    /// Ends the outages that are over.
    pub(crate) fn end_outages(&self, now_ms: u64) {
        if !self.are_set() {
            return;
        }
        for rule in &mut self.table.lock().rules {
            rule.shut_out.take_if(|out| out.until_ms <= now_ms);
        }
    }

    /// Serves nothing of these sessions any more, until a fault is removed.
    pub(crate) fn shut_out(&self, id: u64, sessions: Vec<SessionId>) {
        let mut table = self.table.lock();
        if let Some(rule) = table.rules.iter_mut().find(|rule| rule.id == id) {
            rule.shut_out = Some(ShutOut {
                sessions: Some(sessions),
                until_ms: u64::MAX,
            });
        }
    }

    /// Returns how many of the last changes may have to be taken back.
    pub(crate) fn rollback_max(&self) -> u32 {
        self.rollback_max.load(Ordering::Relaxed)
    }

    /// Takes the next request whose delay is over.
    pub(crate) fn take_due(&self, elapsed_ms: u64) -> Option<Delayed> {
        if !self.are_set() {
            return None;
        }
        self.table.lock().delayed.take_due(elapsed_ms)
    }

    /// Takes the delayed request of a connection that has closed: it is no longer served.
    pub(crate) fn take_delayed(&self, outbox: &Arc<Outbox>) -> Option<Delayed> {
        let mut table = self.table.lock();
        let is_its = |delayed: &Delayed| Arc::ptr_eq(&delayed.outbox, outbox);
        table.delayed.take(is_its).pop()
    }

    /// Keeps a connection until its delayed request is served. Returns the connection if it has
    /// none.
    pub(crate) fn keep_until_served<C: std::fmt::Debug + Send + 'static>(
        &self,
        outbox: &Arc<Outbox>,
        connection: Box<C>,
    ) -> Option<Box<C>> {
        let mut table = self.table.lock();
        match table.delayed.of(outbox) {
            None => Some(connection),
            Some(delayed) => {
                delayed.kept = Some(connection);
                None
            }
        }
    }

    /// Registers a writer to wake when the delay is over. Returns false if there is no delay.
    pub(crate) fn wait_to_write(&self, outbox: &Arc<Outbox>, waker: &Waker) -> bool {
        let mut table = self.table.lock();
        let delayed = table.delayed.of(outbox);
        delayed.is_some_and(|delayed| {
            delayed.writer = Some(waker.clone());
            true
        })
    }

    /// Removes one fault, or all. Returns what they held. Called under the engine's lock, so that
    /// no event overtakes the held ones. [`PICKED`] releases the requests that wait to be picked.
    pub(crate) fn remove(&self, id: Option<u64>) -> Released {
        let mut table = self.table.lock();
        let is_removed = |rule: u64| id.map_or(rule != PICKED, |id| id == rule);
        let mut released = Released {
            delayed: table.delayed.take(|delayed| is_removed(delayed.rule)),
            ..Released::default()
        };
        let rules = std::mem::take(&mut table.rules);
        for rule in rules {
            if !is_removed(rule.id) {
                table.rules.push(rule);
                continue;
            }
            released.faults += 1;
            for event in &rule.held {
                table.held_bytes -= event.frame.len() + HELD_EVENT_BYTES;
            }
            released.events.extend(rule.held);
            rule.hits.remove();
        }
        if table.rules.is_empty() {
            table.clients = Vec::new();
        }
        self.set_flags(&table);
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(faults: &Faults, conn: u32, bytes: usize) -> EventFate {
        let who = (SessionId(1), &Peer::Local);
        let event = (EventKind::Created, &b"/a"[..]);
        faults.hold_event(ConnId(conn), who, event, 0, |out| out.resize(bytes, 0))
    }

    /// Every held event, however many there were, was looked at for every request and every event.
    #[test]
    fn only_delayed_events_have_deadlines_and_the_first_of_a_fault_is_due_first() {
        let faults = Faults::default();
        let (id, _) = faults.add(Fault::hold_events()).unwrap();
        assert_eq!(hold(&faults, 1, 1), EventFate::Held);
        assert_eq!(faults.next_deadline_ms(), None);
        faults.note_served(ConnId(1));
        assert!(faults.take_events(Some(ConnId(1)), u64::MAX).is_empty());
        assert_eq!(faults.remove(Some(id)).events.len(), 1);
        let delay = Fault::delay_events(Duration::from_millis(100));
        faults.add(delay).unwrap();
        for now_ms in [5, 7, 9] {
            let who = (SessionId(1), &Peer::Local);
            let event = (EventKind::Created, &b"/a"[..]);
            faults.hold_event(ConnId(1), who, event, now_ms, |out| out.push(0));
        }
        assert_eq!(faults.next_deadline_ms(), Some(105));
        assert_eq!(faults.take_events(None, 107).len(), 2);
        assert_eq!(faults.next_deadline_ms(), Some(109));
        assert!(faults.take_events(Some(ConnId(1)), 0).is_empty());
        faults.note_served(ConnId(1));
        assert_eq!(faults.take_events(Some(ConnId(1)), 0).len(), 1);
        assert_eq!(faults.next_deadline_ms(), None);
        assert_eq!(faults.table.lock().held_bytes, 0);
    }

    #[test]
    fn held_events_are_bounded_and_free_their_room_when_released() {
        let faults = Faults::default();
        assert!(!faults.are_set());
        assert_eq!(hold(&faults, 1, 1), EventFate::Sent);
        let (id, _) = faults.add(Fault::hold_events()).unwrap();
        assert!(faults.are_set() && faults.hold_events());
        let most = HELD_BYTES_MAX / 2 - HELD_EVENT_BYTES;
        assert_eq!(hold(&faults, 1, most), EventFate::Held);
        assert_eq!(hold(&faults, 2, most), EventFate::Held);
        assert_eq!(hold(&faults, 3, 1), EventFate::NoRoom);
        faults.forget_events(ConnId(1));
        assert_eq!(hold(&faults, 3, 1), EventFate::Held);
        let held = faults.remove(Some(id)).events;
        assert_eq!(
            held.iter().map(|event| event.conn.0).collect::<Vec<_>>(),
            [2, 3]
        );
        assert!(!faults.are_set() && !faults.hold_events());
        faults.add(Fault::hold_events()).unwrap();
        assert_eq!(hold(&faults, 1, most), EventFate::Held);
    }
}
