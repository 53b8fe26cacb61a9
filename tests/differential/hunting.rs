//! A difference between two servers is found, shrunk, and written down so that it is found again.
//!
//! The servers differ by a setting.

use minikeeper::Config;
use minikeeper_tests::differential::{
    hunt::hunt,
    known::{Avoid, Quirks},
    server::{Minikeeper, TIMEOUT_MAX_MS},
};

use crate::{plan, run, sane};

/// Histories are tried until then; often one of the first few is enough.
const SEEDS_MAX: u64 = 200;

/// What a shrunk history may have of steps: handshakes and a handful of requests, or time that
/// passes in portions.
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
    let (mut sane, mut other) = (sane(), Minikeeper::new(change));
    let plan = plan(SEEDS_MAX);
    let quirks = Quirks::default();
    let hunted = hunt(&mut sane, &mut other, quirks, Avoid::default(), &plan).expect("both serve");
    let found = hunted.found.expect("SEEDS_MAX is enough");
    assert!(found.is_repeated);
    let text = found.scenario(&mut sane, quirks).expect("it serves");
    assert!(found.steps().len() <= STEPS_MAX, "{text}");
    assert_eq!(run(&text, &mut sane), Ok(()), "{text}");
    assert!(run(&text, &mut other).is_err(), "passes:\n{text}");
}
