//! Random choices from a seed.

use std::time::Duration;

use minikeeper_recipes::{ErrorPolicy, LockOptions};
use minikeeper_test_kit::random::Random;

/// Random choices from a seed.
pub struct Chance {
    random: Random,
    is_hasty: bool,
}

impl Chance {
    pub const fn from_seed(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            is_hasty: false,
        }
    }

    /// Makes every random time 0, so that contenders do everything at once.
    #[must_use]
    pub const fn hasty(mut self) -> Self {
        self.is_hasty = true;
        self
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.number() % bound
    }

    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn millis(&mut self, below: u64) -> Duration {
        let time = self.random.millis(below);
        if self.is_hasty { Duration::ZERO } else { time }
    }

    /// Random lock options: those of Curator, the defaults, or any mixture.
    pub fn options(&mut self) -> LockOptions {
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

    pub fn error_policy(&mut self) -> ErrorPolicy {
        if self.once_in(2) {
            ErrorPolicy::Standard
        } else {
            ErrorPolicy::Session
        }
    }
}
