//! Waits between attempts: exponential, with jitter, up to a cap.

use std::time::Duration;

/// Generates random numbers from a seed, for the order of servers and the jitter of waits.
///
/// `SplitMix64`: good enough to spread clients, and repeatable from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below the bound, which must not be zero.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The bounds of the waits between attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pauses {
    /// The first wait.
    pub(crate) min: Duration,
    /// The longest wait.
    pub(crate) max: Duration,
}

impl Pauses {
    /// Returns the wait after N earlier failures: `min`, doubled for each failure up to `max`, of
    /// which a random part of up to one half is subtracted, so that many clients do not retry
    /// together.
    pub(crate) fn after(self, failures: u32, chance: &mut Chance) -> Duration {
        let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        let pause = self.min.saturating_mul(factor).min(self.max);
        let half_us = u64::try_from(pause.as_micros() / 2).unwrap_or(u64::MAX - 1);
        pause / 2 + Duration::from_micros(chance.below(half_us.saturating_add(1)))
    }
}

/// Computes the wait before the next attempt. It doubles with each attempt up to a cap, and half of
/// it is random.
///
/// The client uses it between connections and between clean-ups. Use it for retries after errors
/// for which [`Error::is_retryable`](crate::Error::is_retryable) is true, so that they do not flood
/// a server that throttles or closes connections. Create one `Backoff` per operation, wait for
/// [`Backoff::next_pause`] before each further attempt, and call [`Backoff::reset`] after progress.
///
/// It reads no clock and does not sleep. Take the seed from
/// [`Client::random`](crate::Client::random), so that a client with a fixed seed makes the same
/// waits in each run. Any other random number also works.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_client::Backoff;
///
/// let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1), client.random());
/// let data = loop {
///     match client.get_data("/").await {
///         Err(error) if error.is_retryable() => tokio::time::sleep(backoff.next_pause()).await,
///         result => break result?,
///     }
/// };
/// # drop(data);
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    pauses: Pauses,
    failures: u32,
    chance: Chance,
}

impl Backoff {
    /// Creates a backoff whose first wait is between half of `min` and `min`, and later ones at
    /// most `max`.
    #[must_use]
    pub fn new(min: Duration, max: Duration, seed: u128) -> Self {
        Self {
            pauses: Pauses { min, max },
            failures: 0,
            chance: Chance::new(
                seed.to_le_bytes()
                    .first_chunk()
                    .map_or(0, |low| u64::from_le_bytes(*low)),
            ),
        }
    }

    /// Returns how long to wait before the next attempt.
    #[must_use]
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.pauses.after(self.failures, &mut self.chance);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Returns to the shortest wait, after an attempt that made progress.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(20);
    const MAX: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_the_cap_and_half_of_each_is_random() {
        for seed in 0..50 {
            let mut backoff = Backoff::new(MIN, MAX, seed);
            for failures in 0..100 {
                let whole = MIN.saturating_mul(1 << failures.min(20)).min(MAX);
                let pause = backoff.next_pause();
                assert!(whole / 2 <= pause && pause <= whole, "{pause:?}");
            }
        }
    }

    #[test]
    fn clients_with_different_seeds_retry_at_different_times() {
        let third = |seed| {
            let mut backoff = Backoff::new(MIN, MAX, seed);
            (0..3).map(|_| backoff.next_pause()).last()
        };
        assert!((1..20).all(|seed| third(seed) != third(0)));
        assert_eq!(third(7), third(7));
    }

    #[test]
    fn extreme_bounds_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX, 1);
        assert!(backoff.next_pause() >= Duration::MAX / 2);
        let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO, 1);
        assert_eq!(backoff.next_pause(), Duration::ZERO);
    }
}
