//! Each bug in the protocol is found, shrunk, and written down so that it is found again.

use minikeeper::planted::PlantedInEngine;
use minikeeper_tests::differential::{
    hunt::hunt,
    known::{Avoid, Quirks},
};

use crate::{plan, run, sane, with_bug};

/// Histories are tried until then; often one of the first few is enough.
const SEEDS_MAX: u64 = 200;

/// What a shrunk history may have of steps: handshakes and a handful of requests, or time that
/// passes in portions.
const STEPS_MAX: usize = 25;

fn assert_found(bug: PlantedInEngine) {
    let (mut sane, mut broken) = (sane(), with_bug(bug));
    let plan = plan(SEEDS_MAX);
    let quirks = Quirks::default();
    let hunted = hunt(&mut sane, &mut broken, quirks, Avoid::default(), &plan).expect("both serve");
    let found = hunted
        .found
        .unwrap_or_else(|| panic!("{bug:?} is not found by {SEEDS_MAX} seeds"));
    assert!(found.is_repeated, "{bug:?}");
    let text = found.scenario(&mut sane, quirks).expect("it serves");
    assert!(found.steps().len() <= STEPS_MAX, "{bug:?}:\n{text}");
    assert_eq!(run(&text, &mut sane), Ok(()), "{bug:?}:\n{text}");
    let fault = run(&text, &mut broken);
    assert!(fault.is_err(), "{bug:?} passes:\n{text}");
}

macro_rules! found {
    ($($name:ident: $bug:ident;)*) => {
        $(
            #[test]
            fn $name() {
                assert_found(PlantedInEngine::$bug);
            }
        )*

        #[test]
        fn every_bug_of_the_protocol_is_looked_for() {
            let bug = PlantedInEngine::SyncPanics;
            match bug {
                $(PlantedInEngine::$bug => {})*
                // Not a wrong answer but none ever again: caught by `fail_stop` of tests/it.
                PlantedInEngine::SyncPanics
                | PlantedInEngine::AclNotRewound
                | PlantedInEngine::FailedMultiLogged => {}
            }
        }
    };
}

found! {
    sequence_suffix_reused_after_delete_is_found: SequenceReused;
    ephemeral_kept_after_expiry_is_found: EphemeralKept;
    watch_fired_twice_is_found: WatchFiredTwice;
    multi_not_rolled_back_is_found: MultiNotRolledBack;
    children_looked_at_before_the_version_is_found: NotEmptyFirst;
    events_for_those_who_may_not_read_is_found: EventsUnfiltered;
    ttl_counted_from_the_creation_is_found: TtlFromCreation;
    password_ignored_is_found: PasswordIgnored;
}
