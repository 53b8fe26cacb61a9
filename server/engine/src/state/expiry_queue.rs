//! Sessions by deadline: one bucket per deadline, each a list of sessions.
//!
//! Deadlines are exact, or rounded up to the next tick. With rounding, the session of a request is
//! nearly always in the right bucket already, and touching it takes one division and one
//! comparison. Without, nearly every request moves a deadline: the new deadline is stored and the
//! session stays in its bucket until that is due, so that touching it takes one addition and one
//! comparison.
//!
//! Source: `docs/zookeeper-protocol.md` section 14.1, ZooKeeper's `ExpiryQueue`.

use std::collections::BTreeMap;

use crate::state::keys::SessionKey;

#[derive(Clone, Debug)]
pub(crate) struct ExpiryQueue {
    /// The tick to which deadlines are rounded up; `None` if they are exact.
    tick_ms: Option<u64>,
    /// The first session of each bucket, by the time at which the bucket is due.
    buckets: BTreeMap<u64, SessionKey>,
    /// By session: its deadline, its bucket and its neighbours there.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    deadline_ms: u64,
    /// When its bucket is due, which is never later than the session.
    bucket_ms: u64,
    prev: SessionKey,
    next: SessionKey,
}

impl Link {
    const NONE: Self = Self {
        deadline_ms: 0,
        bucket_ms: 0,
        prev: SessionKey::NONE,
        next: SessionKey::NONE,
    };
}

impl ExpiryQueue {
    pub(crate) fn new(tick_ms: Option<u32>) -> Self {
        Self {
            tick_ms: tick_ms.map(|tick_ms| u64::from(tick_ms.max(1))),
            buckets: BTreeMap::new(),
            links: Vec::new(),
        }
    }

    /// Returns the deadline of a session that sends a message now: after its timeout, or at the
    /// next tick after that.
    const fn deadline_of(&self, elapsed_ms: u64, timeout_ms: u32) -> u64 {
        let deadline_ms = elapsed_ms + timeout_ms as u64;
        match self.tick_ms {
            None => deadline_ms,
            Some(tick_ms) => (deadline_ms / tick_ms + 1) * tick_ms,
        }
    }

    /// Returns the deadline of a session, in milliseconds since the start.
    pub(crate) fn deadline_ms(&self, key: SessionKey) -> u64 {
        self.links[key.0 as usize].deadline_ms
    }

    /// Returns when the first bucket is due, in milliseconds since the start. No session is due
    /// earlier.
    pub(crate) fn first_bucket_ms(&self) -> Option<u64> {
        self.buckets.first_key_value().map(|(&bucket, _)| bucket)
    }

    /// Returns the first deadline, in milliseconds since the start.
    pub(crate) fn next_deadline_ms(&mut self) -> Option<u64> {
        self.first_due(u64::MAX).map(|key| self.deadline_ms(key))
    }

    /// Returns the first session that is due by this time.
    pub(crate) fn first_due(&mut self, elapsed_ms: u64) -> Option<SessionKey> {
        loop {
            let (&bucket_ms, &key) = self.buckets.first_key_value()?;
            if bucket_ms > elapsed_ms {
                return None;
            }
            let deadline_ms = self.deadline_ms(key);
            if deadline_ms == bucket_ms {
                return Some(key);
            }
            // Touched since it was put into this bucket.
            self.relink(key, deadline_ms);
        }
    }

    /// Adds a session, whose first message has just arrived.
    pub(crate) fn insert(&mut self, key: SessionKey, elapsed_ms: u64, timeout_ms: u32) {
        let index = key.0 as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, Link::NONE);
        }
        self.link(key, self.deadline_of(elapsed_ms, timeout_ms));
    }

    /// Moves the deadline of a session that has sent another message.
    pub(crate) fn touch(&mut self, key: SessionKey, elapsed_ms: u64, timeout_ms: u32) {
        let deadline_ms = self.deadline_of(elapsed_ms, timeout_ms);
        let link = &mut self.links[key.0 as usize];
        if deadline_ms == link.deadline_ms {
            return;
        }
        link.deadline_ms = deadline_ms;
        // With ticks, a bucket lists its sessions in the order in which they were touched.
        if self.tick_ms.is_some() || deadline_ms < link.bucket_ms {
            self.relink(key, deadline_ms);
        }
    }

    fn relink(&mut self, key: SessionKey, deadline_ms: u64) {
        self.remove(key);
        self.link(key, deadline_ms);
    }

    fn link(&mut self, key: SessionKey, deadline_ms: u64) {
        let next = self.buckets.insert(deadline_ms, key);
        let next = next.unwrap_or(SessionKey::NONE);
        self.links[key.0 as usize] = Link {
            deadline_ms,
            bucket_ms: deadline_ms,
            prev: SessionKey::NONE,
            next,
        };
        if next != SessionKey::NONE {
            self.links[next.0 as usize].prev = key;
        }
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, key: SessionKey) {
        let Link {
            bucket_ms,
            prev,
            next,
            ..
        } = self.links[key.0 as usize];
        if next != SessionKey::NONE {
            self.links[next.0 as usize].prev = prev;
        }
        if prev != SessionKey::NONE {
            self.links[prev.0 as usize].next = next;
        } else if next != SessionKey::NONE {
            self.buckets.insert(bucket_ms, next);
        } else {
            self.buckets.remove(&bucket_ms);
        }
    }

    /// Returns every deadline, the earliest first, with its sessions, the last one touched first.
    pub(crate) fn by_deadline(&self) -> BTreeMap<u64, Vec<SessionKey>> {
        let mut deadlines: BTreeMap<u64, Vec<SessionKey>> = BTreeMap::new();
        for &first in self.buckets.values() {
            let mut key = first;
            while key != SessionKey::NONE {
                let link = self.links[key.0 as usize];
                deadlines.entry(link.deadline_ms).or_default().push(key);
                key = link.next;
            }
        }
        deadlines
    }

    /// Returns every session once, bucket by bucket; `None` if the links are inconsistent.
    pub(crate) fn sessions(&self) -> Option<Vec<SessionKey>> {
        let mut sessions = Vec::new();
        for (&bucket_ms, &first) in &self.buckets {
            let (mut prev, mut key) = (SessionKey::NONE, first);
            while key != SessionKey::NONE {
                let link = self.links[key.0 as usize];
                if link.bucket_ms != bucket_ms
                    || link.deadline_ms < bucket_ms
                    || link.prev != prev
                    || sessions.len() > self.links.len()
                {
                    return None;
                }
                sessions.push(key);
                (prev, key) = (key, link.next);
            }
        }
        Some(sessions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_is_the_next_tick_after_the_timeout() {
        // Observed on a live server with a tick of 1000 ms: 2000 -> 2.6 s, 2500 -> 3.0 s,
        // 3000 -> 4.0 s (`docs/zookeeper-protocol.md` section 14.1), each from a start between two
        // ticks.
        let mut wheel = ExpiryQueue::new(Some(1000));
        for (elapsed_ms, timeout_ms, deadline_ms) in [
            (400, 2000, 3000),
            (500, 2500, 4000),
            (0, 3000, 4000),
            (0, 2000, 3000),
            (999, 2000, 3000),
        ] {
            wheel.insert(SessionKey(0), elapsed_ms, timeout_ms);
            assert_eq!(
                wheel.next_deadline_ms(),
                Some(deadline_ms),
                "{elapsed_ms} + {timeout_ms}"
            );
            wheel.remove(SessionKey(0));
        }
    }
    /// Without ticks the timeout is exact. However often a session is touched, it moves to another
    /// bucket only when its bucket is due.
    #[test]
    fn exact_deadline_is_the_timeout_after_the_last_touch() {
        let (first, second) = (SessionKey(0), SessionKey(1));
        let mut wheel = ExpiryQueue::new(None);
        wheel.insert(first, 0, 2000);
        wheel.insert(second, 1, 2000);
        for elapsed_ms in 1..=1500 {
            wheel.touch(first, elapsed_ms, 2000);
        }
        assert_eq!(
            (wheel.deadline_ms(first), wheel.first_bucket_ms()),
            (3500, Some(2000))
        );
        assert_eq!(wheel.first_due(2000), None);
        assert_eq!(wheel.first_bucket_ms(), Some(2001));
        assert_eq!(
            (wheel.first_due(2000), wheel.first_due(2001)),
            (None, Some(second))
        );
        wheel.remove(second);
        assert_eq!(wheel.next_deadline_ms(), Some(3500));
        // A shorter timeout takes effect at once.
        wheel.touch(first, 1600, 100);
        assert_eq!(wheel.first_bucket_ms(), Some(1700));
        assert_eq!(wheel.first_due(1699), None);
        assert_eq!(wheel.first_due(u64::MAX), Some(first));
        assert_eq!(wheel.sessions(), Some(vec![first]));
    }
}
