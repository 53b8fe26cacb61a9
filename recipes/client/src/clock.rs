//! The only file that reads the clock.
#![allow(
    clippy::disallowed_methods,
    reason = "only this file may read the clock"
)]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use crate::core::outcome::Time;

/// The client's clock, which counts from the client's start. It uses tokio's time rather than the
/// system's, so that a paused or simulated runtime controls it.
///
/// Tokio's time stops while the system is suspended, and a server's does not: the session may be
/// over when the system wakes up. So the clock adds the suspended time where the system reports it
/// (Linux).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// How long the system had been suspended at the start.
    suspended_before: Duration,
    suspended: fn() -> Duration,
}

/// Stands for a time that an instant cannot express: thirty years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

impl Clock {
    pub(crate) fn start() -> Self {
        Self::with_suspended(suspended)
    }

    fn with_suspended(suspended: fn() -> Duration) -> Self {
        Self {
            start: Instant::now(),
            suspended_before: suspended(),
            suspended,
        }
    }

    pub(crate) fn now(self) -> Time {
        self.start.elapsed() + self.suspended_since()
    }

    /// Returns the instant of this time, unless the system is suspended until then.
    pub(crate) fn at(self, time: Time) -> Instant {
        let time = time.saturating_sub(self.suspended_since());
        self.start
            .checked_add(time)
            .unwrap_or_else(|| self.start + FAR)
    }

    fn suspended_since(self) -> Duration {
        (self.suspended)().saturating_sub(self.suspended_before)
    }
}

/// Returns how long the system has been suspended since it booted, as far as this process knows.
/// Never decreases.
fn suspended() -> Duration {
    static KNOWN_MS: AtomicU64 = AtomicU64::new(0);
    if let Some(measured) = measure() {
        note(&KNOWN_MS, measured);
    }
    Duration::from_millis(KNOWN_MS.load(Ordering::Relaxed))
}

/// The two clocks are read one after the other, so the time between the reads looks like a
/// suspension. Suspensions shorter than this are ignored. Unit: milliseconds.
const NOISE_MS: u64 = 50;

fn note(known_ms: &AtomicU64, measured: Duration) {
    let measured_ms = u64::try_from(measured.as_millis()).unwrap_or(u64::MAX);
    let _ = known_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| {
        (measured_ms >= known.saturating_add(NOISE_MS)).then_some(measured_ms)
    });
}

/// Returns how far the clock that continues during suspension is ahead of the one that stops.
/// `None` if the process was interrupted for too long between the reads.
#[cfg(target_os = "linux")]
fn measure() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| Duration::try_from(clock_gettime(clock)).ok();
    let before = read(ClockId::Monotonic)?;
    let ahead = read(ClockId::Boottime)?.saturating_sub(before);
    // The second read is later: a small difference is not a suspension.
    if ahead < Duration::from_millis(NOISE_MS) {
        return Some(Duration::ZERO);
    }
    let between = read(ClockId::Monotonic)?.saturating_sub(before);
    (between < Duration::from_millis(NOISE_MS)).then_some(ahead)
}

#[cfg(not(target_os = "linux"))]
const fn measure() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clock_counts_the_time_in_which_the_system_is_suspended() {
        // The clock counted only time awake: a laptop that woke up still held its locks.
        static SUSPENDED_MS: AtomicU64 = AtomicU64::new(7_000);
        let clock =
            Clock::with_suspended(|| Duration::from_millis(SUSPENDED_MS.load(Ordering::Relaxed)));
        let started = Instant::now();
        let deadline = Duration::from_secs(10);
        assert_eq!(clock.now(), Duration::ZERO);
        assert_eq!(clock.at(deadline), started + deadline);
        tokio::time::advance(Duration::from_secs(1)).await;
        SUSPENDED_MS.store(10_000, Ordering::Relaxed);
        assert_eq!(clock.now(), Duration::from_secs(4));
        assert_eq!(clock.at(deadline), started + Duration::from_secs(7));
        SUSPENDED_MS.store(60_000, Ordering::Relaxed);
        assert!(clock.at(deadline) <= Instant::now());
    }

    #[test]
    fn known_suspended_time_only_grows_and_ignores_noise() {
        let known = AtomicU64::new(0);
        for (measured_ms, expected_ms) in [
            (49, 0),
            (3_000, 3_000),
            (3_020, 3_000),
            (100, 3_000),
            (9_000, 9_000),
        ] {
            note(&known, Duration::from_millis(measured_ms));
            assert_eq!(known.load(Ordering::Relaxed), expected_ms);
        }
    }

    #[test]
    fn suspended_time_never_decreases() {
        let first = suspended();
        assert!((0..1000).all(|_| suspended() >= first));
    }
}
