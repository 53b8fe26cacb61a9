//! How locks changed hands so far, from the journal.
//!
//! Only for queues with one holder: there the contender with the lowest number holds, so that creates, deletes and ends of
//! sessions prove who held when. A replay begins where the queue is known to be empty: at the first entry of the journal, or
//! at the create of the lock's own znode. It counts only if it ends with the contenders that the tree has.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use minikeeper_core::{
    journal::{
        Copied,
        entry::{JournalEntry, JournalRequest, Occurrence},
    },
    order,
};
use minikeeper_protocol::SessionId;

use crate::locks::{LockKind, Locks, naming, naming::Role};

/// How a lock changed hands, as far as the journal shows it: in [`LockInfo`](crate::LockInfo).
///
/// A contender acquires the lock when it becomes the first in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LockHistory {
    /// The sessions that queued, those that acquired most often first.
    pub sessions: Vec<LockShare>,
    /// How often a contender acquired the lock when another one left, by a release or the end of its session.
    pub hand_overs: u64,
    /// The times from there to the next holder's first request: when its client showed that it goes on. Pings do not count,
    /// and there is no time if that request is its release.
    pub hand_over_times: Option<Spread>,
    /// How long contenders waited that acquired the lock, from the create of their znodes.
    pub waits: Option<Spread>,
    /// The number of contenders that left without having held the lock.
    pub gave_up: u64,
}

/// What a session got of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LockShare {
    /// The session.
    pub session: SessionId,
    /// How often it acquired the lock.
    pub acquisitions: u64,
}

/// The distribution of times. They are those of the server's clock, in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Spread {
    /// The shortest time.
    pub min: Duration,
    /// The time that half of them do not exceed.
    pub median: Duration,
    /// The longest time.
    pub max: Duration,
}

impl LockHistory {
    /// Returns how often the lock was acquired.
    #[must_use]
    pub fn acquisitions(&self) -> u64 {
        self.sessions.iter().map(|share| share.acquisitions).sum()
    }

    /// Returns Jain's index of the acquisitions of each session that queued: 1 if all are equal, 1/n if one of n sessions has
    /// all. `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of entries in a journal")]
    pub fn fairness(&self) -> Option<f64> {
        let counts = || self.sessions.iter().map(|share| share.acquisitions as f64);
        let (sum, squares) = (
            counts().sum::<f64>(),
            counts().map(|it| it * it).sum::<f64>(),
        );
        (squares > 0.0).then(|| sum * sum / (self.sessions.len() as f64 * squares))
    }
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Option<Self> {
        order::sort_by_key(&mut times, |time| *time);
        Some(Self {
            min: *times.first()?,
            median: times[(times.len() - 1) / 2],
            max: *times.last()?,
        })
    }
}

/// Adds the history of each lock that the journal shows completely. The journal was copied at the instant of the report.
pub(super) fn add(locks: &mut Locks, journal: &Copied) {
    let queues = locks.locks.iter().enumerate().filter_map(|(index, lock)| {
        let has_one_holder = matches!(
            lock.kind,
            LockKind::Mutex | LockKind::LeaderLatch | LockKind::LeaderElection
        );
        let is_listed = lock.holders.len() + lock.waiters.len() == lock.contenders_total;
        (has_one_holder && is_listed)
            .then(|| (lock.path.clone(), (index, ReplayedQueue::default())))
    });
    let mut replay = Replay {
        queues: order::collect(queues),
        forgotten: (!journal.is_since_start()).then_some(0),
        ..Replay::default()
    };
    if replay.queues.is_empty() {
        return;
    }
    for entry in journal.entries() {
        replay.entry(&entry);
    }
    for (index, queue) in replay.queues.into_values() {
        let lock = &mut locks.locks[index];
        let contenders = lock.holders.iter().chain(&lock.waiters);
        let now: BTreeSet<_> = order::collect(contenders.map(|contender| contender.path.as_str()));
        let replayed = queue.places.keys().map(|(_, path)| path.as_str());
        let replayed: BTreeSet<_> = order::collect(replayed);
        let is_known = !queue.is_unknown && replay.forgotten.is_none_or(|at| queue.began > at);
        if is_known && replayed == now {
            lock.history = Some(queue.finish());
        }
    }
}

/// A contender's number, and the path of its znode: the order of the recipes' stable sorts.
type Key = (String, String);

/// The journal, replayed up to an entry. Takes time in proportion to the entries, times the logarithm of their number.
#[derive(Default)]
struct Replay {
    /// The locks of the report whose history is wanted, by path, with their numbers in it.
    queues: BTreeMap<String, (usize, ReplayedQueue)>,
    /// The places that each session took, by lock. Some of them may have been left.
    taken: BTreeMap<SessionId, Vec<(String, Key)>>,
    /// The sessions that became holders and have sent no request since, with the locks.
    woken: BTreeMap<SessionId, BTreeSet<String>>,
    /// Whether a session is older than the journal, and may have places that the journal does not show.
    is_older: BTreeMap<SessionId, bool>,
    /// The last entry at which contenders may have left that the journal does not show.
    forgotten: Option<u64>,
}

/// The queue of a lock.
#[derive(Default)]
struct ReplayedQueue {
    /// The entry from which on it is known; 0 for the start of the journal.
    began: u64,
    is_unknown: bool,
    places: BTreeMap<Key, Place>,
    shares: BTreeMap<SessionId, u64>,
    hand_overs: u64,
    /// When the lock was handed over to the holder, until its client sends a request.
    released: Option<Duration>,
    times: Vec<Duration>,
    waits: Vec<Duration>,
    gave_up: u64,
}

#[derive(Clone, Copy)]
struct Place {
    session: SessionId,
    since: Duration,
    has_held: bool,
}

impl Replay {
    fn entry(&mut self, entry: &JournalEntry) {
        let is_older = match &entry.what {
            Occurrence::Request(request) if request.op == "createSession" => None,
            Occurrence::SessionBegan { is_new, .. } => Some(!is_new),
            // Ephemerals are deleted first.
            Occurrence::SessionEnded { .. } | Occurrence::Deleted { .. } => Some(true),
            _ => Some(false),
        };
        if let (Some(session), Some(is_older)) = (entry.session, is_older) {
            self.is_older.entry(session).or_insert(is_older);
        }
        match &entry.what {
            Occurrence::Request(request) => {
                if request.op != "ping" {
                    self.holder_went_on(entry, request);
                }
                if request.error.is_none() {
                    self.apply(entry, request);
                }
            }
            Occurrence::SessionEnded { .. } => {
                let session = entry.session.unwrap_or(SessionId::NONE);
                self.woken.remove(&session);
                if self.is_older.get(&session) == Some(&true) {
                    self.forgotten = Some(entry.number);
                }
                let taken = self.taken.remove(&session).unwrap_or_default();
                // All at once: no place of the session gets the lock from another one.
                let left = taken
                    .into_iter()
                    .filter(|(lock, key)| self.take(lock, key).is_some())
                    .map(|(lock, _)| lock);
                let left: BTreeSet<_> = order::collect(left);
                for lock in left {
                    self.hand_over(entry.at, lock);
                }
            }
            // Ends of sessions may be among what was left out.
            Occurrence::Omitted { .. } => self.forgotten = Some(entry.number),
            _ => {}
        }
    }

    /// Applies a request that succeeded.
    fn apply(&mut self, entry: &JournalEntry, request: &JournalRequest) {
        let path = request.created.as_ref().or(request.path.as_ref());
        match (request.op, path) {
            ("create" | "create2" | "createContainer" | "createTTL", Some(path)) => {
                if let Some((_, queue)) = self.queues.get_mut(path) {
                    *queue = ReplayedQueue {
                        began: entry.number,
                        ..ReplayedQueue::default()
                    };
                } else if let Some((lock, key)) = self.place_of(path) {
                    self.enqueue(entry, request, lock, key);
                }
            }
            ("delete", Some(path)) => self.delete(entry.at, path),
            ("multi", _) => {
                for operation in &request.operations {
                    if operation.op == "delete" {
                        self.delete(entry.at, &operation.path);
                    } else if operation.op.starts_with("create")
                        && let Some(queue) = self.queue_of(&operation.path)
                    {
                        // The journal does not have the number that was appended.
                        queue.is_unknown = true;
                    }
                }
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, entry: &JournalEntry, request: &JournalRequest, lock: String, key: Key) {
        let session = entry.session.unwrap_or(SessionId::NONE);
        let Some((_, queue)) = self.queues.get_mut(&lock) else {
            return;
        };
        let is_ephemeral = request
            .mode
            .is_some_and(|mode| mode.starts_with("EPHEMERAL"));
        // No session owns other znodes. And the server appends ascending numbers.
        queue.is_unknown |=
            !is_ephemeral || (queue.places.last_key_value()).is_some_and(|(last, _)| *last > key);
        queue.shares.entry(session).or_default();
        let place = Place {
            session,
            since: entry.at,
            has_held: false,
        };
        queue.places.insert(key.clone(), place);
        if queue.places.len() == 1 {
            queue.acquire(entry.at);
        }
        self.taken.entry(session).or_default().push((lock, key));
    }

    fn delete(&mut self, at: Duration, path: &str) {
        let Some((lock, key)) = self.place_of(path) else {
            return;
        };
        if self.take(&lock, &key).is_some() {
            self.hand_over(at, lock);
        } else if let Some(queue) = self.queue_of(path) {
            queue.is_unknown = true;
        }
    }

    /// Removes a place.
    fn take(&mut self, lock: &str, key: &Key) -> Option<Place> {
        let (_, queue) = self.queues.get_mut(lock)?;
        let place = queue.places.remove(key)?;
        queue.gave_up += u64::from(!place.has_held);
        Some(place)
    }

    /// Gives a lock to the first in its queue, if another one has left.
    fn hand_over(&mut self, at: Duration, lock: String) {
        let Some((_, queue)) = self.queues.get_mut(&lock) else {
            return;
        };
        if let Some(next) = queue.places.values().next().copied()
            && !next.has_held
        {
            queue.acquire(at);
            queue.hand_overs += 1;
            queue.released = Some(at);
            self.woken.entry(next.session).or_default().insert(lock);
        }
    }

    /// Notes the first request of a session since it got locks.
    fn holder_went_on(&mut self, entry: &JournalEntry, request: &JournalRequest) {
        let woken = entry
            .session
            .and_then(|session| self.woken.remove(&session));
        for lock in woken.into_iter().flatten() {
            let Some((_, queue)) = self.queues.get_mut(&lock) else {
                continue;
            };
            let Some(((_, path), holder)) = queue.places.first_key_value() else {
                continue;
            };
            let is_release = request.op == "closeSession"
                || request.op == "delete" && request.path.as_ref() == Some(path);
            if Some(holder.session) == entry.session
                && let Some(released) = queue.released.take()
                && !is_release
            {
                queue.times.push(entry.at.saturating_sub(released));
            }
        }
    }

    /// Returns the queue of the directory that a znode is in.
    fn queue_of(&mut self, path: &str) -> Option<&mut ReplayedQueue> {
        let (_, queue) = self.queues.get_mut(parent(path)?.0)?;
        Some(queue)
    }

    /// Returns the lock that a contender's znode belongs to, and its place in the queue.
    fn place_of(&self, path: &str) -> Option<(String, Key)> {
        let (lock, name) = parent(path)?;
        if !self.queues.contains_key(lock) {
            return None;
        }
        let parsed = naming::parse(name, true)?;
        let is_queued = matches!(parsed.role, Role::Exclusive | Role::Latch | Role::Election);
        is_queued.then(|| (lock.to_owned(), (parsed.key.to_owned(), path.to_owned())))
    }
}

/// Splits a path into that of its parent, and the name.
fn parent(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

impl ReplayedQueue {
    /// Notes that the first in the queue has the lock.
    fn acquire(&mut self, at: Duration) {
        self.released = None;
        if let Some(mut holder) = self.places.first_entry() {
            let holder = holder.get_mut();
            holder.has_held = true;
            self.waits.push(at.saturating_sub(holder.since));
            *self.shares.entry(holder.session).or_default() += 1;
        }
    }

    fn finish(self) -> LockHistory {
        let share = |(session, acquisitions)| LockShare {
            session,
            acquisitions,
        };
        let mut sessions: Vec<_> = self.shares.into_iter().map(share).collect();
        order::sort_by_key(&mut sessions, |share| {
            (std::cmp::Reverse(share.acquisitions), share.session)
        });
        LockHistory {
            sessions,
            hand_overs: self.hand_overs,
            hand_over_times: Spread::of(self.times),
            waits: Spread::of(self.waits),
            gave_up: self.gave_up,
        }
    }
}
