//! Random choices that a seed reproduces.

/// A small random generator: SplitMix64. Each fault has its own, so that faults do not affect each
/// other's choices.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Decides whether an event of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        // The upper 53 bits, the precision of an f64.
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }

    /// Draws a number below this one, which is not 0.
    #[cfg(feature = "control")]
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or_default()
    }

    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_gives_the_published_numbers() {
        let mut chance = Chance::new(1_234_567);
        let numbers = [(); 3].map(|()| chance.next());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
            ]
        );
    }

    #[test]
    fn probabilities_0_and_1_are_exact_and_one_half_is_about_half() {
        let mut chance = Chance::new(7);
        assert!((0..1_000).all(|_| chance.happens(1.0)));
        assert!(!(0..1_000).any(|_| chance.happens(0.0)));
        let half = (0..10_000).filter(|_| chance.happens(0.5)).count();
        assert!((4_800..5_200).contains(&half), "{half} of 10,000");
    }
}
