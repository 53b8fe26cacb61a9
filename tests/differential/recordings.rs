//! Random recordings: replayed in this process and on another server, and on one that differs.

use minikeeper::{Config, ReplayError};
use minikeeper_tests::differential::{
    generate::Generator,
    known::{Avoid, KnownDifferences},
    recordings::{compare, record, replay_on},
    server::Minikeeper,
};

use crate::reference;

const STEPS: usize = 150;

#[test]
fn random_recordings_replay_equally_here_and_over_sockets() {
    let first = minikeeper_test_kit::random::seed_or(1);
    let known = (KnownDifferences::default(), Avoid::default());
    let tally = compare(first..first + 24, STEPS, known, Some(&mut reference())).unwrap();
    assert!(
        tally.differences.is_empty(),
        "MINIKEEPER_SEED={first}: {:#?}",
        tally.differences
    );
    assert!(tally.requests > 24 * 150, "{tally:?}");
}

#[test]
fn replay_on_a_server_that_differs_shows_the_first_difference() {
    let changes: [fn(&mut Config); 3] = [
        |config| config.skip_acl = true,
        |config| config.extended_types = false,
        |config| config.container_check_interval_ms *= 2,
    ];
    for change in changes {
        let mut other = Minikeeper::new(change);
        let found = (1..200).find_map(|seed| {
            let generator = Generator::new(seed, 3, STEPS, Avoid::default());
            let recording = record(|_| {}, KnownDifferences::default(), generator).unwrap();
            match replay_on(&recording, &mut other, KnownDifferences::default()) {
                Ok(_) => None,
                Err(ReplayError::Difference(difference)) => Some(difference),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        });
        let difference = found.expect("one of the seeds shows it");
        assert_ne!(difference.expected, difference.received);
        assert!(!difference.before.is_empty(), "{difference}");
    }
}
