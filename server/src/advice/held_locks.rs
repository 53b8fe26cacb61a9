//! Which exclusive locks each session holds, as far as the journal shows: its contender is the first in the queue.

use std::collections::BTreeMap;

use minikeeper_protocol::SessionId;

use crate::locks::naming::{self, Role};

/// The maximum number of contenders known. One that is full forgets all.
const CONTENDERS_MAX: usize = 1 << 16;

/// The maximum number of places of one session that are looked at, the latest first.
const PLACES_MAX: usize = 8;

/// The queues of locks, and the places of sessions in them.
#[derive(Debug, Default)]
pub(super) struct HeldLocks {
    /// By parent: the contenders by sequence number and path.
    queues: BTreeMap<String, BTreeMap<(String, String), ()>>,
    /// The places of each session, numbered in the order in which they were taken.
    places: BTreeMap<(SessionId, u64), HeldPlace>,
    /// Where each contender is among the places.
    by_path: BTreeMap<String, (SessionId, u64)>,
    /// The number of the next place.
    next: u64,
}

/// A contender of a session.
#[derive(Debug)]
struct HeldPlace {
    lock: String,
    /// The sequence number and the path.
    key: (String, String),
    is_exclusive: bool,
}

/// A lock that a session holds, and the contender with which it does.
pub(super) type HeldLock = (String, String);

impl HeldLocks {
    pub(super) const fn new() -> Self {
        Self {
            queues: BTreeMap::new(),
            places: BTreeMap::new(),
            by_path: BTreeMap::new(),
            next: 0,
        }
    }

    /// Notes that a session created a sequential ephemeral.
    pub(super) fn enqueue(&mut self, session: SessionId, lock: &str, path: &str) {
        let name = path.rfind('/').map_or(path, |slash| &path[slash + 1..]);
        let Some(name) = naming::parse(name, true) else {
            return;
        };
        if self.places.len() >= CONTENDERS_MAX {
            self.clear();
        }
        let place = HeldPlace {
            lock: lock.to_owned(),
            key: (name.key.to_owned(), path.to_owned()),
            is_exclusive: matches!(
                name.role,
                Role::Exclusive | Role::Writer | Role::Latch | Role::Election
            ),
        };
        let queue = self.queues.entry(place.lock.clone()).or_default();
        queue.insert(place.key.clone(), ());
        let at = (session, self.next);
        self.next += 1;
        if let Some(before) = self.by_path.insert(path.to_owned(), at) {
            self.places.remove(&before);
        }
        self.places.insert(at, place);
    }

    /// Notes that an ephemeral is gone.
    pub(super) fn leave(&mut self, path: &str) {
        let at = self.by_path.remove(path);
        let Some(place) = at.and_then(|at| self.places.remove(&at)) else {
            return;
        };
        if let Some(queue) = self.queues.get_mut(&place.lock) {
            queue.remove(&place.key);
            if queue.is_empty() {
                self.queues.remove(&place.lock);
            }
        }
    }

    /// Returns the exclusive locks that a session holds, of its latest places.
    pub(super) fn of(&self, session: SessionId) -> Vec<HeldLock> {
        let places = self.places.range((session, 0)..=(session, u64::MAX)).rev();
        let held = places
            .map(|(_, place)| place)
            .take(PLACES_MAX)
            .filter(|place| {
                let first = self
                    .queues
                    .get(&place.lock)
                    .and_then(|it| it.first_key_value());
                place.is_exclusive && first.is_some_and(|(key, ())| *key == place.key)
            });
        held.map(|place| (place.lock.clone(), place.key.1.clone()))
            .collect()
    }

    /// Returns the sessions that have a place, each several times if it has several.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.places.keys().map(|(session, _)| *session)
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}
