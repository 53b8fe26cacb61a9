//! The only file that reads time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use crate::core::outcome::Time;

/// What a client counts time from. Tokio's instant rather than the system's, so that a paused or
/// simulated runtime governs it.
///
/// Tokio's time stands still while the system is suspended, and a server's does not: the session
/// may be over when the system wakes up. So that time is added, where the system tells it (Linux).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// For how long the system had been suspended then.
    suspended_before: Duration,
    suspended: fn() -> Duration,
}

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

    /// When it will be that time, unless the system is suspended until then.
    pub(crate) fn at(self, time: Time) -> Instant {
        self.start + time.saturating_sub(self.suspended_since())
    }

    fn suspended_since(self) -> Duration {
        (self.suspended)().saturating_sub(self.suspended_before)
    }
}

/// For how long the system has been suspended since it was started, as far as this process knows.
/// Never goes back.
fn suspended() -> Duration {
    static KNOWN_MS: AtomicU64 = AtomicU64::new(0);
    if let Some(measured) = measure() {
        note(&KNOWN_MS, measured);
    }
    Duration::from_millis(KNOWN_MS.load(Ordering::Relaxed))
}

/// The two clocks are read one after the other, and may seem to differ by what lies between.
/// Suspensions shorter than this are not worth being told from that. Unit: milliseconds.
const NOISE_MS: u64 = 50;

fn note(known_ms: &AtomicU64, measured: Duration) {
    let measured_ms = u64::try_from(measured.as_millis()).unwrap_or(u64::MAX);
    let _ = known_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| {
        (measured_ms >= known.saturating_add(NOISE_MS)).then_some(measured_ms)
    });
}

/// How far the clock that runs on in suspension is ahead of the one that does not. `None` if the
/// process was interrupted for too long in between.
#[cfg(target_os = "linux")]
fn measure() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| Duration::try_from(clock_gettime(clock)).ok();
    let before = read(ClockId::Monotonic)?;
    let ahead = read(ClockId::Boottime)?.saturating_sub(before);
    // The second reading is later: what passed in between is no suspension.
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
    async fn time_goes_on_while_the_system_is_suspended() {
        // Only time awake was counted: a laptop that woke up still held its locks.
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
    fn what_is_known_of_suspensions_grows_and_heeds_no_noise() {
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
    fn suspended_time_never_goes_back() {
        let first = suspended();
        assert!((0..1000).all(|_| suspended() >= first));
    }
}
