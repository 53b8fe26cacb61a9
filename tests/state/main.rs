//! The engine against scenarios and the model, and servers under concurrency against both.

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

/// How many times as long as usual random tests run: `MINIKEEPER_EFFORT`.
fn effort() -> u32 {
    let effort = minikeeper_test_kit::random::number_of_environment("MINIKEEPER_EFFORT", 1);
    u32::try_from(effort).expect("MINIKEEPER_EFFORT is a small number")
}
