//! The engine against scenarios and the model, and servers under concurrency against both.

mod faults;
mod fuzz;
mod images;
mod journal;
mod linearizable;
mod model;
mod ordering;
mod planted;
mod rewinding;
mod scenarios;
mod traces;
mod traffic;

/// The seed of every randomized test, so that a failure can be repeated:
/// `MINIKEEPER_SEED=<number in the failure message>`.
fn seed() -> u64 {
    std::env::var("MINIKEEPER_SEED").map_or(0x6d69_6e69, |text| {
        text.parse().expect("MINIKEEPER_SEED is a decimal number")
    })
}

/// How much longer than usual randomized tests run: `MINIKEEPER_EFFORT=<factor>`.
fn effort() -> u32 {
    std::env::var("MINIKEEPER_EFFORT").map_or(1, |text| {
        text.parse().expect("MINIKEEPER_EFFORT is a decimal number")
    })
}
