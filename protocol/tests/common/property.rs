//! Runs a property over values from a strategy, from the one seed all randomized tests take.

#[path = "seed.rs"]
mod seed;

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner},
};
use seed::seed;

/// Runs `property` on `cases` values; on failure panics with the smallest value that fails.
#[track_caller]
pub(crate) fn check<S: Strategy>(
    cases: u32,
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let seed = seed();
    let mut runner = TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    });
    match runner.run(strategy, property) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => {
            panic!("{reason}\nsmallest case: {value:?}\nrepeat with MINIKEEPER_SEED={seed}")
        }
        Err(TestError::Abort(reason)) => panic!("gave up: {reason}"),
    }
}
