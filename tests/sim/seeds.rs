//! What must hold for every seed, that a seed is a seed, and that bugs are found.

use std::io::Write as _;

use minikeeper_recipes::Planted;

use crate::{
    history::Totals,
    run::{Plan, first_failure, simulate},
    worlds::World,
};

/// Within how many runs a planted bug must be found.
const PLANTED_MAX: u64 = 60;

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("MINIKEEPER_SIM_SEED") {
        return seed..seed + 1;
    }
    let from = number("MINIKEEPER_SIM_FROM").unwrap_or(0);
    from..from + number("MINIKEEPER_SIM_SEEDS").unwrap_or(390)
}

/// Says so whether or not the test fails.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

#[test]
fn no_seed_breaks_a_promise() {
    let seeds = seeds();
    let plans: Vec<_> = seeds.clone().map(Plan::of_seed).collect();
    let totals = first_failure(&plans).unwrap_or_else(|failure| panic!("{}", failure.report()));
    let Totals {
        runs,
        simulated_ms,
        grants,
        faults,
        events,
    } = totals;
    let hours = simulated_ms / 36_000;
    say(&format!(
        "simulation: seeds {seeds:?}, {runs} runs, {}.{:02} simulated hours, violations 0\n\
         grants: {grants:?}\nfaults: {faults:?}\nevents: {events:?}",
        hours / 100,
        hours % 100
    ));
    let granted = grants.values().sum::<u64>();
    assert!(granted > runs * 10, "{granted} grants in {runs} runs");
}

#[test]
fn seed_repeats_exactly() {
    for world in World::ALL {
        let plan = Plan {
            seed: 1_007,
            world,
            planted: None,
        };
        let (first, second) = (simulate(plan), simulate(plan));
        let differs = first
            .lines
            .iter()
            .zip(&second.lines)
            .find(|(one, other)| one != other);
        assert_eq!(differs, None, "{world:?}");
        assert_eq!(first.lines.len(), second.lines.len(), "{world:?}");
        assert_eq!(first.totals, second.totals, "{world:?}");
    }
}

/// The world in which a bug shows.
const fn world_of(planted: Planted) -> World {
    match planted {
        Planted::OthersForgotten | Planted::LostReplyIgnored => World::Mutex,
        Planted::ReadersIgnored => World::ReadWrite,
        Planted::OwnLeaseNotCounted => World::Semaphore,
        Planted::SilenceIgnored => World::Latch,
    }
}

#[test]
fn planted_bugs_are_found() {
    for planted in Planted::ALL {
        let world = world_of(planted);
        let plan = |seed| Plan {
            seed,
            world,
            planted: Some(planted),
        };
        let plans: Vec<_> = (0..PLANTED_MAX).map(plan).collect();
        match first_failure(&plans) {
            Ok(_) => panic!("{planted:?} is not found in {PLANTED_MAX} runs"),
            Err(failure) => say(&format!(
                "{planted:?}: seed {}: {}",
                failure.plan.seed, failure.history.violations[0]
            )),
        }
    }
}
