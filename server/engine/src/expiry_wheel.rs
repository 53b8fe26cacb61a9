//! When sessions are due: one bucket a tick, each a list through the sessions themselves.
//!
//! A request nearly always finds its session in the right bucket already, and then touching it
//! is one division and one comparison.
//!
//! Source: reference section 14.1, the original's `ExpiryQueue`.

use std::collections::BTreeMap;

use slab::Slab;

use crate::sessions::{Session, SessionKey};

#[derive(Debug)]
pub(crate) struct ExpiryWheel {
    tick_ms: u64,
    /// First session of each bucket that has any, by the number of the tick it is due at.
    buckets: BTreeMap<u64, SessionKey>,
}

impl ExpiryWheel {
    pub(crate) fn new(tick_ms: u32) -> Self {
        Self {
            tick_ms: u64::from(tick_ms.max(1)),
            buckets: BTreeMap::new(),
        }
    }

    /// The bucket of a session heard of now: past its timeout, rounded up to the next tick.
    pub(crate) const fn bucket(&self, elapsed_ms: u64, timeout_ms: u32) -> u64 {
        (elapsed_ms + timeout_ms as u64) / self.tick_ms + 1
    }

    pub(crate) const fn deadline_ms(&self, bucket: u64) -> u64 {
        bucket * self.tick_ms
    }

    /// When the first bucket is due, in milliseconds since the start.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.buckets
            .first_key_value()
            .map(|(&bucket, _)| self.deadline_ms(bucket))
    }

    /// The first session that is due.
    pub(crate) fn first_due(&self, elapsed_ms: u64) -> Option<SessionKey> {
        let (&bucket, &key) = self.buckets.first_key_value()?;
        (self.deadline_ms(bucket) <= elapsed_ms).then_some(key)
    }

    /// Puts a session at the front of its bucket.
    pub(crate) fn insert(&mut self, sessions: &mut Slab<Session>, key: SessionKey, bucket: u64) {
        let next = self.buckets.insert(bucket, key);
        let session = &mut sessions[key.0 as usize];
        session.bucket = bucket;
        session.bucket_prev = None;
        session.bucket_next = next;
        if let Some(next) = next {
            sessions[next.0 as usize].bucket_prev = Some(key);
        }
    }

    /// Takes a session out of its bucket.
    pub(crate) fn remove(&mut self, sessions: &mut Slab<Session>, key: SessionKey) {
        let session = &sessions[key.0 as usize];
        let (bucket, prev, next) = (session.bucket, session.bucket_prev, session.bucket_next);
        if let Some(next) = next {
            sessions[next.0 as usize].bucket_prev = prev;
        }
        match (prev, next) {
            (Some(prev), next) => sessions[prev.0 as usize].bucket_next = next,
            (None, Some(next)) => {
                self.buckets.insert(bucket, next);
            }
            (None, None) => {
                self.buckets.remove(&bucket);
            }
        }
    }

    /// The buckets and their first sessions, for the check of the whole state.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u64, SessionKey)> {
        self.buckets.iter().map(|(&bucket, &key)| (bucket, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_is_the_next_tick_after_the_timeout() {
        // Observed on a live server with a tick of 1000 ms: 2000 -> 2.6 s, 2500 -> 3.0 s,
        // 3000 -> 4.0 s (reference section 14.1), each from a start between two ticks.
        let wheel = ExpiryWheel::new(1000);
        for (elapsed_ms, timeout_ms, deadline_ms) in [
            (400, 2000, 3000),
            (500, 2500, 4000),
            (0, 3000, 4000),
            (0, 2000, 3000),
            (999, 2000, 3000),
        ] {
            let bucket = wheel.bucket(elapsed_ms, timeout_ms);
            assert_eq!(
                wheel.deadline_ms(bucket),
                deadline_ms,
                "{elapsed_ms} + {timeout_ms}"
            );
        }
    }
}
