//! Keys that fall due at a time, found without a search over all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::Time;

/// The keys that wait, each with the time at which it falls due.
#[derive(Debug)]
pub(crate) struct Schedule<K> {
    by_time: BTreeSet<(Time, K)>,
    by_key: BTreeMap<K, Time>,
}

impl<K> Default for Schedule<K> {
    fn default() -> Self {
        Self {
            by_time: BTreeSet::new(),
            by_key: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Schedule<K> {
    /// Sets when the key falls due, in place of an earlier time.
    pub(crate) fn set(&mut self, key: K, at: Time) {
        self.remove(&key);
        self.by_time.insert((at, key.clone()));
        self.by_key.insert(key, at);
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some((key, at)) = self.by_key.remove_entry(key) {
            self.by_time.remove(&(at, key));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }

    /// Returns whether the key waits.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    /// Returns when the next key falls due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns the keys that are due by now, in their order.
    pub(crate) fn take_due(&mut self, now: Time) -> Vec<K> {
        let mut due = Vec::new();
        while let Some((at, _)) = self.by_time.first()
            && *at <= now
            && let Some((_, key)) = self.by_time.pop_first()
        {
            self.by_key.remove(&key);
            due.push(key);
        }
        due.sort_unstable();
        due
    }

    /// Returns the keys that wait, in their order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.by_key.keys()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keys_fall_due_once_at_the_latest_time_that_was_set() {
        let at = Duration::from_secs;
        let mut schedule = Schedule::default();
        for (key, time) in [("b", 1), ("a", 1), ("c", 2), ("b", 2)] {
            schedule.set(key, at(time));
        }
        assert_eq!(schedule.next(), Some(at(1)));
        assert_eq!(schedule.take_due(at(1)), ["a"]);
        schedule.remove(&"c");
        assert!(!schedule.contains(&"c") && schedule.contains(&"b"));
        assert_eq!(schedule.take_due(at(3)), ["b"]);
        assert_eq!(schedule.next(), None);
    }
}
