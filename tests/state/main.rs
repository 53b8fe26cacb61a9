//! Tests the engine against the scenarios and the model, and servers under concurrency.

mod commuting;
mod faults;
mod images;
mod journal;
mod linearizable;
mod model;
mod ordering;
mod rewinding;
mod scenarios;
mod traces;
mod traffic;

use minikeeper_test_kit::random::seed;

/// Returns the factor by which random tests run longer than usual: `MINIKEEPER_EFFORT`, or 1.
fn effort() -> u32 {
    let effort = minikeeper_test_kit::random::number_of_environment("MINIKEEPER_EFFORT", 1);
    u32::try_from(effort).expect("MINIKEEPER_EFFORT is a small number")
}
