//! Holds delayed requests until they are due.

use std::{collections::BTreeMap, sync::Arc, task::Waker, time::Duration};

use minikeeper_engine::{ConnId, Input};

use crate::{limits::Held, outbox::Outbox};

/// A request that is served later, or a reply that is sent later. A connection has at most one,
/// because it reads nothing until then.
#[derive(Debug)]
pub(crate) struct Delayed {
    pub(crate) conn: ConnId,
    pub(crate) outbox: Arc<Outbox>,
    /// The request; `None` if it has been served, and only its reply waits in the outbox.
    pub(crate) input: Option<Input>,
    /// The length of its frame. Unit: bytes.
    pub(crate) length: usize,
    /// The fault that delays it.
    pub(crate) rule: u64,
    /// For how long its connection goes on after the reply; `None` if it goes on as usual.
    pub(crate) pause: Option<Duration>,
    /// The share of the limits that it takes.
    pub(crate) held: Held,
    /// The connection, if its client has left without waiting. Dropped once the request is served.
    pub(crate) kept: Option<Box<dyn std::fmt::Debug + Send>>,
    /// An in-process client that waits to write more.
    pub(crate) writer: Option<Waker>,
}

/// The delayed requests, in the order in which to serve them.
#[derive(Debug, Default)]
pub(crate) struct DelayedRequests {
    /// By deadline, in milliseconds since the start, then by order of arrival.
    queue: BTreeMap<(u64, u64), Delayed>,
    /// The number of requests delayed so far.
    came: u64,
}

impl DelayedRequests {
    pub(crate) fn add(&mut self, deadline_ms: u64, delayed: Delayed) {
        self.came += 1;
        self.queue.insert((deadline_ms, self.came), delayed);
    }

    /// Returns when the first is due; one that waits to be picked never is.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        let first = self.queue.keys().next();
        first
            .map(|(deadline_ms, _)| *deadline_ms)
            .filter(|deadline_ms| *deadline_ms < u64::MAX)
    }

    /// Takes the first request if it is due.
    pub(crate) fn take_due(&mut self, elapsed_ms: u64) -> Option<Delayed> {
        let first = self.queue.first_entry()?;
        (first.key().0 <= elapsed_ms).then(|| first.remove())
    }

    /// Returns the delayed request of this connection.
    pub(crate) fn of(&mut self, outbox: &Arc<Outbox>) -> Option<&mut Delayed> {
        self.queue
            .values_mut()
            .find(|delayed| Arc::ptr_eq(&delayed.outbox, outbox))
    }

    /// Takes all requests that match.
    pub(crate) fn take(&mut self, mut is_wanted: impl FnMut(&Delayed) -> bool) -> Vec<Delayed> {
        let wanted: Vec<_> = self
            .queue
            .iter()
            .filter(|(_, delayed)| is_wanted(delayed))
            .map(|(key, _)| *key)
            .collect();
        wanted
            .into_iter()
            .filter_map(|key| self.queue.remove(&key))
            .collect()
    }

    pub(crate) fn of_rule(&self, rule: u64) -> impl Iterator<Item = &Delayed> {
        let all = self.queue.values();
        all.filter(move |delayed| delayed.rule == rule)
    }
}
