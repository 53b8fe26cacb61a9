//! Limits the rate of handshakes with a token bucket: each handshake takes a token.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.2 and 17.1.

use parking_lot::Mutex;

use crate::config::Config;

/// The token bucket. Used only while the limit is on.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Option<TokenBucket>>);

#[derive(Debug)]
struct TokenBucket {
    tokens: u64,
    /// When it was filled last, in milliseconds since the start.
    filled_ms: u64,
}

impl Throttle {
    /// Takes a token. Returns false if there is none.
    ///
    /// The first call after the fill time has passed adds tokens, in proportion to the time since
    /// the last fill.
    ///
    /// Source: `BlueThrottle.checkLimit` of ZooKeeper, without its random part and without
    /// weights; compared with a live 3.9.5.
    pub(crate) fn take(&self, config: &Config, now_ms: u64) -> bool {
        let tokens_max = u64::from(config.connection_throttle_tokens);
        let fill_ms = u64::try_from(config.connection_throttle_fill_time.as_millis());
        let fill_ms = fill_ms.unwrap_or(u64::MAX).max(1);
        let fill_count = u64::from(config.connection_throttle_fill_count);
        let mut bucket = self.0.lock();
        let bucket = bucket.get_or_insert(TokenBucket {
            tokens: tokens_max,
            filled_ms: 0,
        });
        // Threads may get here in another order than that in which they read the time.
        let passed_ms = now_ms.saturating_sub(bucket.filled_ms);
        if passed_ms > fill_ms {
            let brought = passed_ms.saturating_mul(fill_count) / fill_ms;
            bucket.tokens = bucket.tokens.saturating_add(brought).min(tokens_max);
            bucket.filled_ms = now_ms;
        }
        let is_there = bucket.tokens > 0;
        bucket.tokens -= u64::from(is_there);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// `docs/zookeeper-protocol.md` section 17.1. A live 3.9.5 with the same settings gave the same
    /// answers.
    #[test]
    fn tokens_are_refilled_with_time_up_to_the_maximum() {
        let config = Config {
            connection_throttle_tokens: 2,
            connection_throttle_fill_time: Duration::from_millis(2_000),
            connection_throttle_fill_count: 1,
            ..Config::default()
        };
        let throttle = Throttle::default();
        let taken = [
            (0, true),
            (10, true),
            (20, false),
            // The fill time must have passed; reaching it is not enough.
            (2_000, false),
            (2_001, true),
            (2_002, false),
            // Counted from the last fill.
            (4_001, false),
            (4_002, true),
            (60_000, true),
            (60_000, true),
            (60_000, false),
            // Another thread's earlier reading.
            (59_000, false),
        ];
        for (number, (now_ms, is_there)) in taken.into_iter().enumerate() {
            assert_eq!(throttle.take(&config, now_ms), is_there, "call {number}");
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let config = Config {
            connection_throttle_tokens: u32::MAX,
            connection_throttle_fill_time: Duration::ZERO,
            connection_throttle_fill_count: u32::MAX,
            ..Config::default()
        };
        let throttle = Throttle::default();
        for now_ms in [0, u64::MAX, u64::MAX] {
            assert!(throttle.take(&config, now_ms));
        }
    }
}
