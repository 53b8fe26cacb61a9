//! No seed gives a violation, and equal seeds give equal runs.

use std::io::Write as _;

use crate::{
    history::Totals,
    run::{Plan, first_failure, simulate},
    worlds::World,
};

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("MINIKEEPER_SIM_SEED") {
        return seed..seed + 1;
    }
    let from = number("MINIKEEPER_SIM_FROM").unwrap_or(0);
    from..from + number("MINIKEEPER_SIM_SEEDS").unwrap_or(51)
}

/// Prints a line even if the test passes.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

#[test]
fn no_seed_gives_a_violation() {
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

/// Runs every other world twice: a difference comes from the simulation or from a part that all
/// worlds share.
#[test]
fn equal_seeds_give_equal_runs() {
    for world in World::ALL.into_iter().step_by(2) {
        let plan = Plan { seed: 1_007, world };
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
