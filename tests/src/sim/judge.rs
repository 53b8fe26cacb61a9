//! Checks the holds of contenders: mutual exclusion, and the order of fencing tokens.
//!
//! A hold counts until the holder has released it or can know of its loss. A hold of a session that
//! the server expired before its timeout does not count: the holder learns of it only by a message.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use minikeeper_client::Epoch;
use minikeeper_recipes::FencingToken;
use parking_lot::Mutex;
use tokio::time::Instant;

use minikeeper_test_kit::clock;

use crate::sim::history::History;

/// How long a contender may use an old maximum: longer than a client without messages from its
/// server considers its session alive.
const STALE: Duration = Duration::from_secs(10);

/// The kind of a hold, which determines the holds that may coexist with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Excludes every other hold.
    Exclusive,
    /// Coexists with other readers.
    Read,
    /// Coexists with other readers. The contender was the writer until now: no other may write
    /// between.
    ReadOn,
    /// A lease of a semaphore with this maximum.
    Leases(u32),
    /// Excludes every other hold. The same leader may return with its old token.
    Leader,
}

impl Kind {
    const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadOn)
    }
}

/// A hold that a contender was granted.
pub struct Hold {
    /// The number of the client.
    pub client: usize,
    /// The number of the contender.
    pub who: usize,
    pub recipe: &'static str,
    pub lock: &'static str,
    pub kind: Kind,
    pub token: FencingToken,
    pub epoch: Epoch,
    /// Whether the holder believes that its hold is valid.
    pub is_believed: Box<dyn Fn() -> bool + Send>,
}

/// Identifies a hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HoldId(u64);

/// The greatest token of one lock so far.
#[derive(Clone, Copy)]
struct Newest {
    token: FencingToken,
    who: usize,
    /// The greatest token of a hold that excludes readers.
    exclusive: FencingToken,
}

impl Default for Newest {
    fn default() -> Self {
        let token = FencingToken { czxid: 0, pass: 0 };
        Self {
            token,
            who: 0,
            exclusive: token,
        }
    }
}

struct State {
    /// How long a contender may take to notice a loss.
    notice_max: Duration,
    /// Whether grants of leases are reported in their order. Not the case on several threads.
    is_in_order: bool,
    /// The values reached, by counter.
    counted: BTreeSet<(&'static str, i64)>,
    /// Since when the barrier certainly exists.
    barrier: Option<Instant>,
    history: History,
    holds: BTreeMap<HoldId, Hold>,
    /// Holds that are lost, and since when their holders can know it.
    doubted: BTreeMap<HoldId, Instant>,
    /// Holds whose holders do not wait for their loss now.
    unattended: BTreeSet<HoldId>,
    next: u64,
    newest: BTreeMap<&'static str, Newest>,
    /// The last session of each client that was expired before its timeout.
    expired: Vec<Epoch>,
    /// Whether the server still has the session of a client's epoch, where it may expire early at
    /// any time.
    is_alive: Option<IsAlive>,
    /// Maxima of leases, and since when they are no longer in force.
    maxima: Vec<(u32, Option<Instant>)>,
}

/// Returns whether the session of a client's epoch is alive.
pub type IsAlive = Box<dyn Fn(usize, Epoch) -> bool + Send>;

/// Checks every grant, and writes the history.
pub struct Judge(Mutex<State>);

impl Judge {
    pub fn new(clients: usize, notice_max: Duration, is_in_order: bool) -> Self {
        Self(Mutex::new(State {
            notice_max,
            is_in_order,
            counted: BTreeSet::new(),
            barrier: None,
            history: History::begin(),
            holds: BTreeMap::new(),
            doubted: BTreeMap::new(),
            unattended: BTreeSet::new(),
            next: 0,
            newest: BTreeMap::new(),
            expired: vec![Epoch(0); clients],
            is_alive: None,
            maxima: Vec::new(),
        }))
    }

    /// Expects faults to the end, and asks this whether a session is alive before a hold counts.
    pub fn expect_faults(&self, is_alive: IsAlive) {
        self.0.lock().is_alive = Some(is_alive);
    }

    /// Returns whether faults may happen to the end: then sessions may expire early at any time.
    pub fn expects_faults(&self) -> bool {
        self.0.lock().is_alive.is_some()
    }

    pub fn with_history<T>(&self, act: impl FnOnce(&mut History) -> T) -> T {
        act(&mut self.0.lock().history)
    }

    pub fn event(&self, name: &'static str) {
        self.0.lock().history.event(name);
    }

    /// Records a success that is not a hold.
    pub fn gained(&self, recipe: &'static str) {
        let totals = &mut self.0.lock().history.totals;
        *totals.grants.entry(recipe).or_default() += 1;
    }

    /// Records that a contender has counted to this number. No other may reach the same.
    pub fn counted(&self, recipe: &'static str, counter: &'static str, to: i64) {
        self.gained(recipe);
        let mut state = self.0.lock();
        if !state.counted.insert((counter, to)) {
            let what = format!("{counter} reaches {to} twice");
            state.history.violation(what);
        }
    }

    /// Records that the barrier is set: no contender may pass from now on.
    pub fn barrier_is_set(&self) {
        self.0.lock().barrier.get_or_insert_with(clock::now);
    }

    /// Records that the barrier may be removed.
    pub fn barrier_may_be_removed(&self) {
        self.0.lock().barrier = None;
    }

    /// Whether the barrier has existed without interruption since before `then`.
    pub fn is_set_since_before(&self, then: Instant) -> bool {
        self.0.lock().barrier.is_some_and(|since| since < then)
    }

    pub fn violation(&self, what: String) {
        self.0.lock().history.violation(what);
    }

    pub fn fault(&self, name: &'static str, client: Option<usize>) {
        let history = &mut self.0.lock().history;
        *history.totals.faults.entry(name).or_default() += 1;
        match client {
            Some(client) => history.line(format_args!("fault: {name} of client {client}")),
            None => history.line(format_args!("fault: {name}")),
        }
    }

    /// Records that the server ended this session, and those before it.
    pub fn expired(&self, client: usize, epoch: Epoch) {
        self.0.lock().expired[client] = epoch;
    }

    /// Allows this maximum of leases too from now on.
    pub fn maximum_may_be(&self, max: u32) {
        let mut state = self.0.lock();
        state.history.line(format_args!("maximum may be {max}"));
        state.maxima.push((max, None));
    }

    /// Allows only this maximum of leases from now on.
    pub fn maximum_is(&self, max: u32) {
        let mut state = self.0.lock();
        state.history.line(format_args!("maximum is {max}"));
        for (_, until) in &mut state.maxima {
            until.get_or_insert_with(clock::now);
        }
        state.maxima.push((max, None));
    }

    pub fn granted(&self, hold: Hold) -> HoldId {
        let mut state = self.0.lock();
        let id = HoldId(state.next);
        state.next += 1;
        let Hold {
            who, lock, token, ..
        } = hold;
        state
            .history
            .line(format_args!("{who}: {lock} {:?} token {token}", hold.kind));
        if !state.counts(&hold) {
            // The hold was lost before the grant was reported, and its status shows that.
            state.history.event("granted and lost at once");
            return id;
        }
        *state.history.totals.grants.entry(hold.recipe).or_default() += 1;
        let order = state.order(&hold);
        state.holds.insert(id, hold);
        for what in state.exclusion(id).into_iter().chain(order) {
            state.history.violation(what);
        }
        id
    }

    /// Checks all holds that count now.
    pub fn look(&self) {
        let mut state = self.0.lock();
        let ids: Vec<_> = state.holds.keys().copied().collect();
        for id in ids {
            let what = if state.counts(&state.holds[&id]) {
                state.exclusion(id)
            } else {
                state.unnoticed_loss(id)
            };
            if let Some(what) = what {
                state.history.violation(what);
            }
        }
    }

    /// Records that the holder does not wait for the loss of its hold from now on.
    pub fn unattended(&self, id: HoldId) {
        self.0.lock().unattended.insert(id);
    }

    pub fn ended(&self, id: HoldId) {
        let mut state = self.0.lock();
        state.doubted.remove(&id);
        if let Some(Hold { who, lock, .. }) = state.holds.remove(&id) {
            state.history.line(format_args!("{who}: gives up {lock}"));
        }
    }
}

impl State {
    fn counts(&self, hold: &Hold) -> bool {
        let is_alive = |is_alive: &IsAlive| is_alive(hold.client, hold.epoch);
        hold.epoch > self.expired[hold.client]
            && self.is_alive.as_ref().is_none_or(is_alive)
            && (hold.is_believed)()
    }

    /// Returns a violation if a holder has not noticed in time a loss that its status shows.
    fn unnoticed_loss(&mut self, id: HoldId) -> Option<String> {
        let hold = &self.holds[&id];
        if (hold.is_believed)() || self.unattended.contains(&id) {
            return None;
        }
        let now = clock::now();
        let since = *self.doubted.entry(id).or_insert(now);
        (now > since + self.notice_max)
            .then(|| format!("{} has not noticed its loss of {}", hold.who, hold.lock))
    }

    /// Returns a violation if the hold cannot coexist with the others.
    fn exclusion(&self, id: HoldId) -> Option<String> {
        let new = &self.holds[&id];
        let others = self.holds.iter().filter(|(other, _)| **other != id);
        let others = others.map(|(_, hold)| hold);
        let mut others = others.filter(|hold| hold.lock == new.lock && self.counts(hold));
        if let Kind::Leases(count) = new.kind {
            let leases = |hold: &Hold| match hold.kind {
                Kind::Leases(count) => count,
                _ => 0,
            };
            let all = count + others.map(leases).sum::<u32>();
            let is_in_force =
                |until: &Option<Instant>| until.is_none_or(|until| clock::now() < until + STALE);
            let maxima = self.maxima.iter().filter(|(_, until)| is_in_force(until));
            let max = maxima.map(|(max, _)| *max).max().unwrap_or(0);
            return (all > max).then(|| {
                format!(
                    "{all} leases with those of {} exceed the maximum of {max}",
                    new.who
                )
            });
        }
        let other = others.find(|hold| !(hold.kind.reads() && new.kind.reads()))?;
        Some(format!(
            "{} holds {} when it is granted to {}: {:?}, {:?}",
            other.who, new.lock, new.who, other.kind, new.kind
        ))
    }

    /// Returns a violation if tokens do not grow from grant to grant, which means that contenders are
    /// not served in order of arrival.
    fn order(&mut self, new: &Hold) -> Option<String> {
        let newest = self.newest.entry(new.lock).or_default();
        let (token, before) = (new.token, *newest);
        let is_ok = match new.kind {
            Kind::Read => token > before.exclusive,
            Kind::ReadOn => token == before.exclusive,
            Kind::Leader if token == before.token => new.who == before.who,
            Kind::Leases(_) if !self.is_in_order => true,
            _ => token > before.token,
        };
        if token >= newest.token {
            newest.token = token;
            newest.who = new.who;
        }
        if !new.kind.reads() {
            newest.exclusive = newest.exclusive.max(token);
        }
        (!is_ok).then(|| {
            format!(
                "{}: token {token} of {} after {} of {}",
                new.lock, new.who, before.token, before.who
            )
        })
    }
}
