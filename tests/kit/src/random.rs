//! Random numbers from a seed.

use std::time::Duration;

/// Returns the seed of a run: the value of `MINIKEEPER_SEED`, or a constant if it is not set.
#[must_use]
pub fn seed() -> u64 {
    seed_or(0x6d69_6e69)
}

/// Returns the value of `MINIKEEPER_SEED`, or `default` if it is not set.
#[must_use]
pub fn seed_or(default: u64) -> u64 {
    number_of_environment("MINIKEEPER_SEED", default)
}

/// Returns the number in the environment variable `name`, or `default` if it is not set.
#[must_use]
pub fn number_of_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a decimal number, not {text:?}"))
    })
}

/// Marsaglia's xorshift64*: the same numbers on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // The state may not be zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number of 56 bits.
    pub const fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).expect("the number is below a size")
    }

    /// Returns a random byte.
    pub const fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[4]
    }

    /// Returns an element of `list`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns an element of `list`, each as often as its number says; not all may be 0.
    pub fn pick_weighted<T: Copy>(&mut self, list: &[(usize, T)]) -> T {
        let mut at = self.below(list.iter().map(|(weight, _)| weight).sum());
        for (weight, element) in list {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return *element,
            }
        }
        unreachable!("the number is below the sum of the weights")
    }

    /// Returns true with a probability of `in_thousand` / 1,000.
    pub fn chance(&mut self, in_thousand: usize) -> bool {
        self.below(1_000) < in_thousand
    }

    /// Returns true with a probability of 1 / `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a duration of less than `below` milliseconds.
    pub const fn millis(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.number() % below)
    }
}
