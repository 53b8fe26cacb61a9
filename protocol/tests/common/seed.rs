//! The seed of every randomized test, taken from the environment so that a failure can be
//! repeated: `MINIKEEPER_SEED=<number in the failure message>`.

/// Used unless the environment names another.
const SEED_DEFAULT: u64 = 0x6d69_6e69;

pub(crate) fn seed() -> u64 {
    std::env::var("MINIKEEPER_SEED").map_or(SEED_DEFAULT, |text| {
        text.parse().expect("MINIKEEPER_SEED is a decimal number")
    })
}
