//! A difference between two servers with different settings is found, shrunk, and written as a scenario
//! that shows it again.

use minikeeper::Config;
use minikeeper_tests::differential::{
    hunt::hunt,
    known::{Avoid, KnownDifferences},
    server::{Minikeeper, TIMEOUT_MAX_MS},
};

use crate::{plan, reference, run};

/// The maximum number of seeds; usually one of the first few is enough.
const SEEDS_MAX: u64 = 200;

/// The maximum number of steps in a shrunk history: handshakes and a few requests, or a clock that
/// advances in portions.
const STEPS_MAX: usize = 25;

#[test]
fn difference_in_permissions_is_found() {
    assert_found(|config| config.skip_acl = true);
}

#[test]
fn difference_in_handshakes_is_found() {
    assert_found(|config| config.session_timeout_max_ms = Some(TIMEOUT_MAX_MS - 1));
}

#[test]
fn difference_in_clean_up_is_found() {
    assert_found(|config| config.container_check_interval_ms *= 2);
}

#[test]
fn difference_in_operations_is_found() {
    assert_found(|config| config.extended_types = false);
}

fn assert_found(change: impl FnOnce(&mut Config)) {
    let (mut reference, mut other) = (reference(), Minikeeper::new(change));
    let plan = plan(SEEDS_MAX);
    let known = KnownDifferences::default();
    let hunted = hunt(&mut reference, &mut other, known, Avoid::default(), &plan)
        .expect("both servers work");
    let found = hunted.found.expect("SEEDS_MAX is enough");
    assert!(found.is_repeated);
    let text = found
        .scenario(&mut reference, known)
        .expect("the server works");
    assert!(found.steps().len() <= STEPS_MAX, "{text}");
    assert_eq!(run(&text, &mut reference), Ok(()), "{text}");
    assert!(run(&text, &mut other).is_err(), "passes:\n{text}");
}
