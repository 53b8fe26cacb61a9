//! Checks a property on values from a strategy, with the seed that all random tests share.

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner},
};

use crate::random::seed;

/// Runs `property` on `cases` values. On failure panics with the smallest value that fails and the
/// seed.
#[track_caller]
pub fn check<S: Strategy>(
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
        Err(TestError::Abort(reason)) => panic!("too many values were rejected: {reason}"),
    }
}
