//! When sessions are due: one bucket a tick, each a list of sessions.
//!
//! A request nearly always finds its session in the right bucket already, and then touching it
//! is one division and one comparison.
//!
//! Source: reference section 14.1, the original's `ExpiryQueue`.

use std::collections::BTreeMap;

use crate::keys::SessionKey;

#[derive(Clone, Debug)]
pub(crate) struct ExpiryWheel {
    tick_ms: u64,
    /// First session of each bucket that has any, by the number of the tick it is due at.
    buckets: BTreeMap<u64, SessionKey>,
    /// By session: the bucket it is in and its neighbours there.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    bucket: u64,
    prev: SessionKey,
    next: SessionKey,
}

impl ExpiryWheel {
    pub(crate) fn new(tick_ms: u32) -> Self {
        Self {
            tick_ms: u64::from(tick_ms.max(1)),
            buckets: BTreeMap::new(),
            links: Vec::new(),
        }
    }

    /// The bucket of a session heard of now: past its timeout, rounded up to the next tick.
    const fn bucket(&self, elapsed_ms: u64, timeout_ms: u32) -> u64 {
        (elapsed_ms + timeout_ms as u64) / self.tick_ms + 1
    }

    /// When a session is due, in milliseconds since the start.
    pub(crate) fn deadline_ms(&self, key: SessionKey) -> u64 {
        self.links[key.0 as usize].bucket * self.tick_ms
    }

    /// When the first bucket is due, in milliseconds since the start.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.buckets
            .first_key_value()
            .map(|(&bucket, _)| bucket * self.tick_ms)
    }

    /// The first session that is due.
    pub(crate) fn first_due(&self, elapsed_ms: u64) -> Option<SessionKey> {
        let (&bucket, &key) = self.buckets.first_key_value()?;
        (bucket * self.tick_ms <= elapsed_ms).then_some(key)
    }

    /// Takes up a session that has just been heard of for the first time.
    pub(crate) fn insert(&mut self, key: SessionKey, elapsed_ms: u64, timeout_ms: u32) {
        let index = key.0 as usize;
        if index >= self.links.len() {
            let link = Link {
                bucket: 0,
                prev: SessionKey::NONE,
                next: SessionKey::NONE,
            };
            self.links.resize(index + 1, link);
        }
        self.link(key, self.bucket(elapsed_ms, timeout_ms));
    }

    /// Moves a session that has been heard of again.
    pub(crate) fn touch(&mut self, key: SessionKey, elapsed_ms: u64, timeout_ms: u32) {
        let bucket = self.bucket(elapsed_ms, timeout_ms);
        if bucket != self.links[key.0 as usize].bucket {
            self.remove(key);
            self.link(key, bucket);
        }
    }

    fn link(&mut self, key: SessionKey, bucket: u64) {
        let next = self.buckets.insert(bucket, key).unwrap_or(SessionKey::NONE);
        self.links[key.0 as usize] = Link {
            bucket,
            prev: SessionKey::NONE,
            next,
        };
        if next != SessionKey::NONE {
            self.links[next.0 as usize].prev = key;
        }
    }

    /// Forgets a session.
    pub(crate) fn remove(&mut self, key: SessionKey) {
        let Link { bucket, prev, next } = self.links[key.0 as usize];
        if next != SessionKey::NONE {
            self.links[next.0 as usize].prev = prev;
        }
        if prev != SessionKey::NONE {
            self.links[prev.0 as usize].next = next;
        } else if next != SessionKey::NONE {
            self.buckets.insert(bucket, next);
        } else {
            self.buckets.remove(&bucket);
        }
    }

    /// Every bucket, the one due first in front: when it is due, and its sessions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Bucket<'_>)> {
        self.buckets.iter().map(|(&bucket, &first)| {
            let next = first;
            (bucket * self.tick_ms, Bucket { wheel: self, next })
        })
    }

    /// Every session once, bucket by bucket; `None` if the links disagree.
    pub(crate) fn sessions(&self) -> Option<Vec<SessionKey>> {
        let mut sessions = Vec::new();
        for (&bucket, &first) in &self.buckets {
            let (mut prev, mut key) = (SessionKey::NONE, first);
            while key != SessionKey::NONE {
                let link = self.links[key.0 as usize];
                if link.bucket != bucket || link.prev != prev || sessions.len() > self.links.len() {
                    return None;
                }
                sessions.push(key);
                (prev, key) = (key, link.next);
            }
        }
        Some(sessions)
    }
}

/// Walks the sessions of a bucket, the one heard of last in front.
pub(crate) struct Bucket<'a> {
    wheel: &'a ExpiryWheel,
    next: SessionKey,
}

impl Iterator for Bucket<'_> {
    type Item = SessionKey;

    fn next(&mut self) -> Option<SessionKey> {
        let key = self.next;
        if key == SessionKey::NONE {
            return None;
        }
        self.next = self.wheel.links[key.0 as usize].next;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_is_the_next_tick_after_the_timeout() {
        // Observed on a live server with a tick of 1000 ms: 2000 -> 2.6 s, 2500 -> 3.0 s,
        // 3000 -> 4.0 s (reference section 14.1), each from a start between two ticks.
        let mut wheel = ExpiryWheel::new(1000);
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
}
