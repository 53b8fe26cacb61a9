//! Numbers from a seed.

use std::time::Duration;

use minikeeper_recipes::{ErrorPolicy, LockOptions};

/// `SplitMix64`.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Yes, once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn millis(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.below(below))
    }

    /// One of the ways to go about a lock: Curator's, the default, or any mixture.
    pub(crate) fn options(&mut self) -> LockOptions {
        let mut options = match self.below(4) {
            0 => return LockOptions::curator_exact(),
            1 => return LockOptions::default(),
            _ => LockOptions::default(),
        };
        options.create_and_list_together = self.once_in(2);
        options.look_ahead = usize::try_from(self.below(4)).unwrap_or_default();
        options.nearest_writer = self.once_in(2);
        options.peek = self.once_in(2);
        options.watch_own = self.once_in(2);
        options.leave_at_once = self.once_in(2);
        options.names_only = self.once_in(2);
        options.leases_together = self.once_in(2);
        options
    }

    pub(crate) fn error_policy(&mut self) -> ErrorPolicy {
        if self.once_in(2) {
            ErrorPolicy::Standard
        } else {
            ErrorPolicy::Session
        }
    }
}
