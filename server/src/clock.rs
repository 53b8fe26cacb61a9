//! The only file that reads time.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use minikeeper_engine::Now;
use tokio::time::Instant;

/// Where a manual clock starts: 2024-01-01 00:00 UTC, in milliseconds since 1970.
const MANUAL_WALL_START_MS: i64 = 1_704_067_200_000;

/// What a server takes the time from.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Real time. Tokio's instant rather than the system's, so that a paused runtime governs it.
    System { start: Instant },
    /// Moves only when told to.
    Manual { elapsed_ms: AtomicU64 },
}

impl Clock {
    pub(crate) fn system() -> Self {
        Self::System {
            start: Instant::now(),
        }
    }

    pub(crate) const fn manual() -> Self {
        Self::Manual {
            elapsed_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn now(&self) -> Now {
        match self {
            Self::System { start } => Now {
                elapsed_ms: millis(start.elapsed()),
                wall_ms: wall_ms(),
            },
            Self::Manual { elapsed_ms } => {
                let elapsed_ms = elapsed_ms.load(Ordering::Acquire);
                Now {
                    elapsed_ms,
                    wall_ms: MANUAL_WALL_START_MS + elapsed_ms.cast_signed(),
                }
            }
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
            Self::System { start } => {
                tokio::time::sleep_until(*start + Duration::from_millis(deadline_ms)).await;
            }
            Self::Manual { .. } => std::future::pending().await,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn wall_ms() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    millis(since_1970).cast_signed()
}
