//! Shows that the tests would notice: each planted bug is switched on, and a check goes red.
//!
//! The checks are the functions that the ordinary tests call with no bug. `tests/planted.md` is
//! the list for people.

use minikeeper::planted::{Planted, PlantedInEngine};
use minikeeper_engine::Settings;

use crate::{faults, journal, linearizable, model, ordering, rewinding, scenarios, seed};

/// Rounds of a check whose outcome depends on how threads run, until it must have gone red.
const ROUNDS: u64 = 400;

const ALL: [Planted; 15] = [
    Planted::Engine(PlantedInEngine::SequenceReused),
    Planted::Engine(PlantedInEngine::EphemeralKept),
    Planted::Engine(PlantedInEngine::WatchFiredTwice),
    Planted::Engine(PlantedInEngine::MultiNotRolledBack),
    Planted::Engine(PlantedInEngine::PasswordIgnored),
    Planted::DrainLeftOut,
    Planted::ReplyAfterUnlock,
    Planted::Engine(PlantedInEngine::SyncPanics),
    Planted::Engine(PlantedInEngine::NotEmptyFirst),
    Planted::Engine(PlantedInEngine::EventsUnfiltered),
    Planted::Engine(PlantedInEngine::TtlFromCreation),
    Planted::Engine(PlantedInEngine::AclNotRewound),
    Planted::Engine(PlantedInEngine::FailedMultiLogged),
    Planted::LostNotApplied,
    Planted::ToldBeforeLogged,
];

/// The tests that catch a bug; the first of each list is the one meant for it. A new bug does
/// not compile before it is entered here.
fn assert_caught(bug: Planted) {
    match bug {
        Planted::Engine(bug) => {
            let file = match bug {
                PlantedInEngine::SequenceReused => "sequential",
                PlantedInEngine::EphemeralKept => "expiry",
                PlantedInEngine::WatchFiredTwice => "watches_one_shot",
                PlantedInEngine::MultiNotRolledBack => "multi",
                PlantedInEngine::PasswordIgnored => "sessions",
                PlantedInEngine::NotEmptyFirst => "delete",
                PlantedInEngine::EventsUnfiltered => "acl_events",
                PlantedInEngine::TtlFromCreation => "ttl",
                PlantedInEngine::AclNotRewound => {
                    let settings = Settings {
                        planted: Some(bug),
                        ..model::settings()
                    };
                    return assert_red(rewinding::check_random(&settings, 1_000), bug);
                }
                PlantedInEngine::FailedMultiLogged => {
                    let settings = Settings {
                        planted: Some(bug),
                        ..model::settings()
                    };
                    return assert_red(journal::check_random(&settings, 1_000), bug);
                }
                // Not a wrong answer but none: caught by `fail_stop` of tests/it.
                PlantedInEngine::SyncPanics => return,
            };
            let settings = Settings {
                planted: Some(bug),
                ..model::settings()
            };
            assert_red(scenarios::check_file(file, &settings), bug);
            // The model leaves clean-up out.
            if bug != PlantedInEngine::TtlFromCreation {
                assert_red(model::check_random(&settings, 1_000), bug);
            }
        }
        Planted::DrainLeftOut => {
            // Certain in the first round: nothing in these depends on chance.
            assert_red(ordering::check_one_by_one(Some(bug)), bug);
            until_red(bug, |_| ordering::check_watchers(Some(bug), false));
            until_red(bug, |round| history(bug, round));
        }
        Planted::ReplyAfterUnlock => {
            until_red(bug, |_| ordering::check_watchers(Some(bug), false));
            until_red(bug, |_| ordering::check_watchers(Some(bug), true));
            until_red(bug, |round| history(bug, round));
        }
        Planted::LostNotApplied => {
            for over_tcp in [false, true] {
                assert_red(faults::check_lost_reply(Some(bug), over_tcp), bug);
            }
        }
        Planted::ToldBeforeLogged => assert_red(journal::check_crash(Some(bug)), bug),
    }
}

fn history(bug: Planted, round: u64) -> Result<(), String> {
    linearizable::check_history(Some(bug), round % 2 == 1, seed() + round).map(drop)
}

fn assert_red<T>(outcome: Result<T, String>, bug: impl std::fmt::Debug) {
    assert!(outcome.is_err(), "{bug:?} is not noticed");
}

fn until_red(bug: Planted, check: impl Fn(u64) -> Result<(), String>) {
    let found = (0..ROUNDS).find(|round| check(*round).is_err());
    assert!(found.is_some(), "{bug:?} is not noticed in {ROUNDS} rounds");
}

macro_rules! caught {
    ($($name:ident: $number:literal;)*) => {
        $(
            #[test]
            fn $name() {
                assert_caught(ALL[$number]);
            }
        )*
    };
}

caught! {
    sequence_suffix_reused_after_delete_is_noticed: 0;
    ephemeral_kept_after_expiry_is_noticed: 1;
    watch_fired_twice_is_noticed: 2;
    multi_not_rolled_back_is_noticed: 3;
    password_ignored_is_noticed: 4;
    drain_of_the_outbox_left_out_is_noticed: 5;
    reply_appended_after_unlocking_is_noticed: 6;
    panic_in_a_turn_is_noticed: 7;
    children_looked_at_before_the_version_is_noticed: 8;
    event_to_who_may_not_read_is_noticed: 9;
    ttl_counted_from_creation_is_noticed: 10;
    access_list_not_rewound_is_noticed: 11;
    failed_multi_kept_by_a_log_is_noticed: 12;
    request_lost_with_its_reply_is_noticed: 13;
    change_told_before_it_is_logged_is_noticed: 14;
}
