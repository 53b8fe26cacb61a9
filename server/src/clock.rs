//! The only file that reads time.
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

/// Where a clock that starts frozen stands: 2024-01-01 00:00 UTC, in milliseconds since 1970.
const FROZEN_WALL_START_MS: i64 = 1_704_067_200_000;

/// How long the time of day is reckoned from the elapsed time before it is read again.
const WALL_KEPT_MS: u64 = 16;

/// Time does not go further than this: a thousand years.
const ELAPSED_MAX_MS: u64 = 1 << 45;

/// Set in [`Clock::stand`] while time stands still.
const FROZEN: u64 = 1 << 63;

/// What a server takes the time from: real time or frozen time, moved ahead by hand in either.
///
/// Frozen, moved and set free again only under the engine lock, under which turns read it: so time
/// never runs backwards from turn to turn. Who reads it elsewhere may see it a moment later.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Tokio's instant rather than the system's, so that a paused runtime governs it.
    start: Instant,
    /// Frozen: the elapsed time, and the topmost bit. Running: what the elapsed time is ahead of
    /// the real one, in 63 bits, negative if it has been frozen for longer than it was moved.
    stand: AtomicU64,
    /// The time of day when the elapsed time was 0, as last found.
    wall_start_ms: AtomicI64,
    /// When that was found, in milliseconds since the start.
    found_at_ms: AtomicU64,
    /// What the time of day is ahead of the system's while time runs.
    wall_ahead_ms: AtomicI64,
    /// Notifies sleepers that time was frozen, moved or unfrozen.
    changed: Notify,
}

impl Clock {
    /// Runs with real time.
    pub(crate) fn running() -> Self {
        Self::new(0, wall_ms())
    }

    /// Stands still at a fixed time of day.
    pub(crate) fn frozen() -> Self {
        Self::new(FROZEN, FROZEN_WALL_START_MS)
    }

    fn new(stand: u64, wall_start_ms: i64) -> Self {
        Self {
            start: Instant::now(),
            stand: AtomicU64::new(stand),
            wall_start_ms: AtomicI64::new(wall_start_ms),
            found_at_ms: AtomicU64::new(0),
            wall_ahead_ms: AtomicI64::new(0),
            changed: Notify::new(),
        }
    }

    /// A clock that runs on from here by itself. For the holder of the engine lock.
    pub(crate) fn fork(&self) -> Self {
        let load = |value: &AtomicI64| AtomicI64::new(value.load(Ordering::Relaxed));
        Self {
            start: self.start,
            stand: AtomicU64::new(self.stand.load(Ordering::Relaxed)),
            wall_start_ms: load(&self.wall_start_ms),
            found_at_ms: AtomicU64::new(self.found_at_ms.load(Ordering::Relaxed)),
            wall_ahead_ms: load(&self.wall_ahead_ms),
            changed: Notify::new(),
        }
    }

    /// Returns the time. Only for turns and other holders of the engine lock.
    #[inline]
    pub(crate) fn now(&self) -> Now {
        let stand = self.stand.load(Ordering::Relaxed);
        let elapsed_ms = self.elapsed_at(stand);
        let wall_start_ms = self.wall_start_ms.load(Ordering::Relaxed);
        // A busy server does not look at its calendar every few microseconds: that the time of
        // day was set is seen a little later.
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
        let wall_ms = wall_ms() + self.wall_ahead_ms.load(Ordering::Relaxed);
        let wall_start_ms = wall_ms - elapsed_ms.cast_signed();
        self.wall_start_ms.store(wall_start_ms, Ordering::Relaxed);
        self.found_at_ms.store(elapsed_ms, Ordering::Relaxed);
        wall_ms
    }

    /// Returns the cheaper half of [`Clock::now`], which every task may read.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.elapsed_at(self.stand.load(Ordering::Relaxed))
    }

    fn elapsed_at(&self, stand: u64) -> u64 {
        if is_frozen(stand) {
            return stand & !FROZEN;
        }
        millis(self.start.elapsed()).wrapping_add(ahead_ms(stand))
    }

    pub(crate) fn is_frozen(&self) -> bool {
        is_frozen(self.stand.load(Ordering::Relaxed))
    }

    /// Freezes time; returns whether it ran. For the holder of the engine lock.
    pub(crate) fn freeze(&self) -> bool {
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

    /// Lets time run on from where it stands, the time of day too; whether it stood still. For the
    /// holder of the engine lock.
    pub(crate) fn unfreeze(&self) -> bool {
        if !self.is_frozen() {
            return false;
        }
        let now = self.now();
        let ahead_ms = now.elapsed_ms.wrapping_sub(millis(self.start.elapsed()));
        let wall_ahead_ms = now.wall_ms - wall_ms();
        self.wall_ahead_ms.store(wall_ahead_ms, Ordering::Relaxed);
        self.found_at_ms.store(now.elapsed_ms, Ordering::Relaxed);
        self.stand.store(ahead_ms & !FROZEN, Ordering::Relaxed);
        true
    }

    /// Moves time ahead, frozen or not. For the holder of the engine lock.
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

    /// Wakes who sleeps in [`Clock::wait_until`], to look at the time again.
    pub(crate) fn notify_changed(&self) {
        self.changed.notify_waiters();
    }

    /// Resolves when time is frozen, moved or set free from now on.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until the server is so old, however time gets there.
    pub(crate) async fn wait_until(&self, deadline_ms: u64) {
        loop {
            // From here on no change is missed.
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
            // Looked at again, whichever came first.
            let _ =
                tokio::time::timeout_at(self.start + Duration::from_millis(real_ms), changed).await;
        }
    }
}

const fn is_frozen(stand: u64) -> bool {
    stand & FROZEN != 0
}

/// What a running clock is ahead, from its 63 bits.
const fn ahead_ms(stand: u64) -> u64 {
    ((stand << 1).cast_signed() >> 1).cast_unsigned()
}

fn millis(duration: Duration) -> u64 {
    duration.as_secs() * 1_000 + u64::from(duration.subsec_millis())
}

fn wall_ms() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    millis(since_1970).cast_signed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Real time is paused too, and moved by the runtime.
    #[tokio::test(start_paused = true)]
    async fn clock_runs_stands_still_and_jumps_and_the_time_of_day_with_it() {
        let clock = Clock::frozen();
        let start = clock.now();
        // The time of day is the system's own while time runs, so only frozen it is exact.
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

    #[tokio::test(start_paused = true)]
    async fn sleeper_follows_the_clock_however_it_moves() {
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
