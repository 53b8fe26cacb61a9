//! The server's clock. No other file reads the time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use minikeeper_engine::Now;
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};

/// The time of day of a clock that starts frozen: 2024-01-01 00:00 UTC, in milliseconds since 1970.
const FROZEN_WALL_START_MS: i64 = 1_704_067_200_000;

/// How long the time of day is derived from the elapsed time before it is read again.
const WALL_KEPT_MS: u64 = 16;

/// The limit of the elapsed time: a thousand years.
const ELAPSED_MAX_MS: u64 = 1 << 45;

/// The bit of [`Clock::stand`] that is set while time is frozen.
const FROZEN: u64 = 1 << 63;

/// Measures how long something takes, in real time.
#[cfg(feature = "control")]
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

#[cfg(feature = "control")]
impl Stopwatch {
    /// Starts.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since it started.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A server's clock: runs with real time or is frozen, and can be advanced in either state.
///
/// Only the holder of the engine lock freezes, advances or unfreezes it, and turns read it under that
/// lock, so time never runs backwards from turn to turn. Other readers may see a change a moment later.
#[derive(Debug)]
pub struct Clock {
    /// Tokio's instant rather than the system's, so that a paused runtime governs it.
    start: Instant,
    /// The same instant of the system's clock.
    system_start: std::time::Instant,
    /// Frozen: the elapsed time, and the top bit. Running: how far the elapsed time is ahead of real
    /// time, in 63 bits, negative if it was frozen for longer than it was advanced.
    stand: AtomicU64,
    /// The time of day when the elapsed time was 0, as last determined.
    wall_start_ms: AtomicI64,
    /// When that was determined, in milliseconds since the start.
    found_at_ms: AtomicU64,
    /// How far the time of day is ahead of the system's while time runs.
    wall_ahead_ms: AtomicI64,
    /// Notifies sleepers that time was frozen, advanced or unfrozen.
    changed: Notify,
}

impl Clock {
    /// Creates a clock that runs with real time.
    pub(crate) fn running() -> Self {
        Self::new(0, wall_ms())
    }

    /// Returns what users see of the clock.
    pub fn moment(&self) -> Moment {
        let now = self.now();
        let since_1970 = Duration::from_millis(now.wall_ms.max(0).unsigned_abs());
        Moment {
            elapsed: Duration::from_millis(now.elapsed_ms),
            wall: UNIX_EPOCH + since_1970,
            is_frozen: self.is_frozen(),
        }
    }

    /// Creates a frozen clock at a fixed time of day.
    pub fn frozen() -> Self {
        Self::new(FROZEN, FROZEN_WALL_START_MS)
    }

    fn new(stand: u64, wall_start_ms: i64) -> Self {
        Self {
            start: Instant::now(),
            system_start: std::time::Instant::now(),
            stand: AtomicU64::new(stand),
            wall_start_ms: AtomicI64::new(wall_start_ms),
            found_at_ms: AtomicU64::new(0),
            wall_ahead_ms: AtomicI64::new(0),
            changed: Notify::new(),
        }
    }

    /// Returns an independent clock that continues from here. For the holder of the engine lock.
    pub fn fork(&self) -> Self {
        let load = |value: &AtomicI64| AtomicI64::new(value.load(Ordering::Relaxed));
        Self {
            start: self.start,
            system_start: self.system_start,
            stand: AtomicU64::new(self.stand.load(Ordering::Relaxed)),
            wall_start_ms: load(&self.wall_start_ms),
            found_at_ms: AtomicU64::new(self.found_at_ms.load(Ordering::Relaxed)),
            wall_ahead_ms: load(&self.wall_ahead_ms),
            changed: Notify::new(),
        }
    }

    /// Returns the time. Only for turns and other holders of the engine lock.
    #[inline]
    pub fn now(&self) -> Now {
        let stand = self.stand.load(Ordering::Relaxed);
        self.now_at(stand, self.elapsed_at(stand))
    }

    /// Returns the time, and that of [`Clock::micros`], with one look at the system's clock. Only for
    /// turns.
    pub(crate) fn now_and_micros(&self) -> (Now, u64) {
        let stand = self.stand.load(Ordering::Relaxed);
        let elapsed = self.start.elapsed();
        let elapsed_ms = elapsed_at(stand, || elapsed);
        (self.now_at(stand, elapsed_ms), micros(elapsed))
    }

    #[inline]
    fn now_at(&self, stand: u64, elapsed_ms: u64) -> Now {
        let wall_start_ms = self.wall_start_ms.load(Ordering::Relaxed);
        // A busy server does not read the system's time of day every few microseconds, so it notices
        // an adjustment a little later.
        let age_ms = elapsed_ms.wrapping_sub(self.found_at_ms.load(Ordering::Relaxed));
        let wall_ms = if age_ms < WALL_KEPT_MS || is_frozen(stand) {
            wall_start_ms + elapsed_ms.cast_signed()
        } else {
            self.find_wall_ms(elapsed_ms)
        };
        Now {
            elapsed_ms,
            wall_ms,
        }
    }

    fn find_wall_ms(&self, elapsed_ms: u64) -> i64 {
        let wall_ms = self.runtime_wall_ms() + self.wall_ahead_ms.load(Ordering::Relaxed);
        let wall_start_ms = wall_ms - elapsed_ms.cast_signed();
        self.wall_start_ms.store(wall_start_ms, Ordering::Relaxed);
        self.found_at_ms.store(elapsed_ms, Ordering::Relaxed);
        wall_ms
    }

    /// Returns the system's time of day. On a paused runtime it is ahead by as much as the runtime's
    /// time, so that a time to live ends there, too.
    fn runtime_wall_ms(&self) -> i64 {
        let runtime = micros(self.start.elapsed()).cast_signed();
        let system = micros(self.system_start.elapsed()).cast_signed();
        wall_ms() + (runtime - system) / 1_000
    }

    /// Returns the elapsed time, which is cheaper than [`Clock::now`] and which every task may read.
    pub fn elapsed_ms(&self) -> u64 {
        self.elapsed_at(self.stand.load(Ordering::Relaxed))
    }

    /// Returns the real time since the start in microseconds, to measure how long something takes.
    pub(crate) fn micros(&self) -> u64 {
        micros(self.start.elapsed())
    }

    fn elapsed_at(&self, stand: u64) -> u64 {
        elapsed_at(stand, || self.start.elapsed())
    }

    /// Returns whether the clock is frozen.
    pub fn is_frozen(&self) -> bool {
        is_frozen(self.stand.load(Ordering::Relaxed))
    }

    /// Freezes time. Returns whether it was running. For the holder of the engine lock.
    pub fn freeze(&self) -> bool {
        if self.is_frozen() {
            return false;
        }
        let Now {
            elapsed_ms,
            wall_ms,
        } = self.now();
        let wall_start_ms = wall_ms - elapsed_ms.cast_signed();
        self.wall_start_ms.store(wall_start_ms, Ordering::Relaxed);
        self.stand.store(elapsed_ms | FROZEN, Ordering::Relaxed);
        true
    }

    /// Lets time, and the time of day, run on from where they were frozen. Returns whether they were
    /// frozen. For the holder of the engine lock.
    pub fn unfreeze(&self) -> bool {
        if !self.is_frozen() {
            return false;
        }
        let now = self.now();
        let ahead_ms = now.elapsed_ms.wrapping_sub(millis(self.start.elapsed()));
        let wall_ahead_ms = now.wall_ms - self.runtime_wall_ms();
        self.wall_ahead_ms.store(wall_ahead_ms, Ordering::Relaxed);
        self.found_at_ms.store(now.elapsed_ms, Ordering::Relaxed);
        self.stand.store(ahead_ms & !FROZEN, Ordering::Relaxed);
        true
    }

    /// Freezes time at this moment. For the holder of the engine lock.
    pub fn set(&self, now: Now) {
        let wall_start_ms = now.wall_ms - now.elapsed_ms.cast_signed();
        self.wall_start_ms.store(wall_start_ms, Ordering::Relaxed);
        let elapsed_ms = now.elapsed_ms.min(ELAPSED_MAX_MS);
        self.stand.store(elapsed_ms | FROZEN, Ordering::Relaxed);
    }

    /// Advances time, frozen or not. For the holder of the engine lock.
    pub(crate) fn jump(&self, by_ms: u64) {
        let stand = self.stand.load(Ordering::Relaxed);
        let room_ms = ELAPSED_MAX_MS.saturating_sub(self.elapsed_at(stand));
        let by_ms = by_ms.min(room_ms);
        if is_frozen(stand) {
            self.stand.store(stand + by_ms, Ordering::Relaxed);
            return;
        }
        let wall_ahead_ms = self.wall_ahead_ms.load(Ordering::Relaxed) + by_ms.cast_signed();
        self.wall_ahead_ms.store(wall_ahead_ms, Ordering::Relaxed);
        let ahead_ms = ahead_ms(stand).wrapping_add(by_ms);
        self.stand.store(ahead_ms & !FROZEN, Ordering::Relaxed);
    }

    /// Wakes the tasks in [`Clock::wait_until`], which check the time again.
    pub(crate) fn notify_changed(&self) {
        self.changed.notify_waiters();
    }

    /// Resolves when time is next frozen, advanced or unfrozen.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until the elapsed time reaches a deadline, whether time runs there or is advanced.
    pub(crate) async fn wait_until(&self, deadline_ms: u64) {
        loop {
            // Created before the clock is read, so that no change is missed.
            let changed = self.changed();
            let stand = self.stand.load(Ordering::Acquire);
            if self.elapsed_at(stand) >= deadline_ms {
                return;
            }
            if is_frozen(stand) {
                changed.await;
                continue;
            }
            let real_ms = deadline_ms.wrapping_sub(ahead_ms(stand));
            // Checks the clock again, whether the timeout or a change came first.
            let _ =
                tokio::time::timeout_at(self.start + Duration::from_millis(real_ms), changed).await;
        }
    }
}

const fn is_frozen(stand: u64) -> bool {
    stand & FROZEN != 0
}

/// Returns how far a running clock is ahead, from its 63 bits.
const fn ahead_ms(stand: u64) -> u64 {
    ((stand << 1).cast_signed() >> 1).cast_unsigned()
}

/// Returns the elapsed time of the clock, in milliseconds, from the real one.
#[inline]
fn elapsed_at(stand: u64, real: impl FnOnce() -> Duration) -> u64 {
    if is_frozen(stand) {
        return stand & !FROZEN;
    }
    millis(real()).wrapping_add(ahead_ms(stand))
}

fn millis(duration: Duration) -> u64 {
    duration.as_secs() * 1_000 + u64::from(duration.subsec_millis())
}

fn micros(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + u64::from(duration.subsec_micros())
}

fn wall_ms() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    millis(since_1970).cast_signed()
}

/// The readings of a server's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Moment {
    /// The age of the server. Sessions and times to live expire by it.
    pub elapsed: Duration,
    /// The time of day, as in the stats of znodes.
    pub wall: SystemTime,
    /// Whether the clock is frozen.
    pub is_frozen: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Real time is paused too; the test advances it through the runtime.
    #[tokio::test(start_paused = true)]
    async fn clock_and_time_of_day_run_freeze_and_jump_together() {
        let clock = Clock::frozen();
        let start = clock.now();
        // The time of day follows the system's while time runs, so it is exact only while frozen.
        let elapsed_ms = || clock.elapsed_ms();
        assert_eq!((start.elapsed_ms, start.wall_ms), (0, FROZEN_WALL_START_MS));
        tokio::time::advance(Duration::from_secs(1)).await;
        clock.jump(100);
        let moved = clock.now();
        assert_eq!(
            (moved.elapsed_ms, moved.wall_ms - start.wall_ms),
            (100, 100)
        );
        assert!(clock.unfreeze() && !clock.unfreeze());
        assert_eq!(clock.now(), moved);
        tokio::time::advance(Duration::from_millis(7)).await;
        clock.jump(3);
        assert_eq!(elapsed_ms(), 110);
        assert_eq!(clock.now().wall_ms - start.wall_ms, 110);
        assert!(clock.freeze() && !clock.freeze());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(elapsed_ms(), 110);
        assert_eq!(clock.now().wall_ms - start.wall_ms, 110);
        clock.jump(u64::MAX);
        assert_eq!(elapsed_ms(), ELAPSED_MAX_MS);
    }

    /// Znodes with a time to live never expired on a paused runtime: the time of day stood still.
    #[tokio::test(start_paused = true)]
    async fn time_of_day_follows_a_paused_runtime() {
        let clock = Clock::running();
        let start = clock.now();
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let passed_ms = clock.now().wall_ms - start.wall_ms;
        // The test itself takes less than a minute.
        assert!((3_599_000..3_660_000).contains(&passed_ms), "{passed_ms}");
    }

    #[tokio::test(start_paused = true)]
    async fn sleeper_wakes_at_its_deadline_after_freeze_and_jump() {
        let clock = Arc::new(Clock::running());
        let sleeper = tokio::spawn({
            let clock = Arc::clone(&clock);
            async move { clock.wait_until(1_000).await }
        });
        let settle = async || {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        };
        settle().await;
        clock.freeze();
        clock.notify_changed();
        tokio::time::advance(Duration::from_secs(10)).await;
        settle().await;
        assert!(!sleeper.is_finished());
        clock.jump(600);
        clock.unfreeze();
        clock.notify_changed();
        settle().await;
        tokio::time::advance(Duration::from_millis(399)).await;
        settle().await;
        assert!(!sleeper.is_finished());
        tokio::time::advance(Duration::from_millis(1)).await;
        sleeper.await.unwrap();
    }
}
