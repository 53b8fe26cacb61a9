//! The only file that reads time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use minikeeper_engine::Now;
use tokio::time::Instant;

/// Where a manual clock starts: 2024-01-01 00:00 UTC, in milliseconds since 1970.
const MANUAL_WALL_START_MS: i64 = 1_704_067_200_000;

/// How long the time of day is reckoned from the elapsed time before it is read again.
const WALL_KEPT_MS: u64 = 16;

/// What a server takes the time from.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Real time. Tokio's instant rather than the system's, so that a paused runtime governs it.
    System {
        start: Instant,
        /// The time of day when the elapsed time was 0, as last found.
        wall_start_ms: AtomicI64,
        /// When that was found, in milliseconds since the start.
        found_at_ms: AtomicU64,
    },
    /// Moves only when told to.
    Manual { elapsed_ms: AtomicU64 },
}

impl Clock {
    pub(crate) fn system() -> Self {
        Self::System {
            start: Instant::now(),
            wall_start_ms: AtomicI64::new(wall_ms()),
            found_at_ms: AtomicU64::new(0),
        }
    }

    pub(crate) const fn manual() -> Self {
        Self::Manual {
            elapsed_ms: AtomicU64::new(0),
        }
    }

    /// A clock that goes on from here by itself.
    pub(crate) fn fork(&self) -> Self {
        match self {
            Self::System {
                start,
                wall_start_ms,
                found_at_ms,
            } => Self::System {
                start: *start,
                wall_start_ms: AtomicI64::new(wall_start_ms.load(Ordering::Relaxed)),
                found_at_ms: AtomicU64::new(found_at_ms.load(Ordering::Relaxed)),
            },
            Self::Manual { elapsed_ms } => Self::Manual {
                elapsed_ms: AtomicU64::new(elapsed_ms.load(Ordering::Acquire)),
            },
        }
    }

    pub(crate) fn now(&self) -> Now {
        match self {
            Self::System {
                start,
                wall_start_ms,
                found_at_ms,
            } => {
                let elapsed_ms = millis(start.elapsed());
                // A busy server does not look at its calendar every few microseconds: that the
                // time of day was set is seen a little later.
                let age_ms = elapsed_ms.wrapping_sub(found_at_ms.load(Ordering::Relaxed));
                let wall_ms = if age_ms < WALL_KEPT_MS {
                    wall_start_ms.load(Ordering::Relaxed) + elapsed_ms.cast_signed()
                } else {
                    let wall_ms = wall_ms();
                    wall_start_ms.store(wall_ms - elapsed_ms.cast_signed(), Ordering::Relaxed);
                    found_at_ms.store(elapsed_ms, Ordering::Relaxed);
                    wall_ms
                };
                Now {
                    elapsed_ms,
                    wall_ms,
                }
            }
            Self::Manual { elapsed_ms } => {
                let elapsed_ms = elapsed_ms.load(Ordering::Acquire);
                Now {
                    elapsed_ms,
                    wall_ms: MANUAL_WALL_START_MS + elapsed_ms.cast_signed(),
                }
            }
        }
    }

    /// The half of [`Clock::now`] that costs less.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        match self {
            Self::System { start, .. } => millis(start.elapsed()),
            Self::Manual { elapsed_ms } => elapsed_ms.load(Ordering::Acquire),
        }
    }

    pub(crate) const fn is_manual(&self) -> bool {
        matches!(self, Self::Manual { .. })
    }

    /// Moves a manual clock forward to this time; a later time stays.
    pub(crate) fn set(&self, to_ms: u64) {
        if let Self::Manual { elapsed_ms } = self {
            elapsed_ms.fetch_max(to_ms, Ordering::AcqRel);
        }
    }

    /// Waits until the server is so old. Never returns on a manual clock.
    pub(crate) async fn wait_until(&self, deadline_ms: u64) {
        match self {
            Self::System { start, .. } => {
                tokio::time::sleep_until(*start + Duration::from_millis(deadline_ms)).await;
            }
            Self::Manual { .. } => std::future::pending().await,
        }
    }
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
