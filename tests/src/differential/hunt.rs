//! Runs random histories until two servers differ.

use std::time::Duration;

use super::{
    generate::Generator,
    history::{self, Difference, Step},
    known::{Avoid, KnownDifferences},
    report,
    server::Server,
    shrink::shrink,
};
use minikeeper_test_kit::clock::Stopwatch;

/// The maximum number of runs to shrink a history.
const SHRINK_RUNS: usize = 3_000;

/// The maximum duration of shrinking. Every run against an unresponsive server waits for it.
const SHRINK_TIME: Duration = Duration::from_secs(180);

/// The histories to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// The maximum number of seeds.
    pub seeds: u64,
    /// The numbers of connections; each seed runs with each of them.
    pub connections: Vec<usize>,
    /// The number of steps in a history.
    pub steps: usize,
    /// Whether the servers enforce quotas; then every history sets one.
    pub enforces_quotas: bool,
    /// No history begins after this time.
    pub budget: Option<Duration>,
}

/// The outcome of a hunt.
#[derive(Clone, Debug, Default)]
pub struct Hunted {
    /// The number of histories run to their end.
    pub histories: u64,
    /// The number of client requests compared.
    pub operations: u64,
    /// The duration.
    pub took: Duration,
    /// The first difference.
    pub found: Option<Found>,
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed of its history.
    pub seed: u64,
    /// The number of connections of its history.
    pub connections: usize,
    /// The difference at the end of the smallest history.
    pub difference: Difference,
    /// Whether a second run of the history showed the difference again.
    pub is_repeated: bool,
}

impl Found {
    /// The steps of the smallest history.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.difference.steps
    }

    /// Formats the smallest history as a scenario that expects the replies of `server`.
    ///
    /// # Errors
    /// When the server is broken.
    pub fn scenario(
        &self,
        server: &mut dyn Server,
        known: KnownDifferences,
    ) -> Result<String, String> {
        let (seed, connections) = (self.seed, self.connections);
        let name = server.name();
        let title = format!("seed {seed} with {connections} connections");
        let text = report::scenario(server, known, &title, self.steps())?;
        Ok(format!(
            "# Shrunk from a random history; replies of {name}.\n\n{text}"
        ))
    }
}

/// Runs histories until the servers differ, and shrinks the one that shows it.
///
/// # Errors
/// When a server is broken.
pub fn hunt(
    left: &mut dyn Server,
    right: &mut dyn Server,
    known: KnownDifferences,
    avoid: Avoid,
    plan: &Plan,
) -> Result<Hunted, String> {
    let watch = Stopwatch::start();
    let mut hunted = Hunted::default();
    for seed in (plan.seed..).take(usize::try_from(plan.seeds).unwrap_or(usize::MAX)) {
        for &connections in &plan.connections {
            if plan.budget.is_some_and(|budget| watch.elapsed() > budget) {
                return Ok(hunted);
            }
            let mut generator = Generator::new(seed, connections, plan.steps, avoid);
            if plan.enforces_quotas {
                generator.enforce_quotas();
            }
            let played = history::play([&mut *left, &mut *right], known, |side| {
                generator.next(side)
            })?;
            hunted.operations += played.operations;
            hunted.took = watch.elapsed();
            let Some(difference) = played.difference else {
                hunted.histories += 1;
                continue;
            };
            let mut found = Found {
                seed,
                connections,
                difference,
                is_repeated: false,
            };
            let steps = found.difference.steps.clone();
            let shrinking = Stopwatch::start();
            let again = shrink(steps, SHRINK_RUNS, |steps| {
                if shrinking.elapsed() > SHRINK_TIME {
                    return Ok(false);
                }
                let outcome = history::replay([&mut *left, &mut *right], known, steps)?;
                Ok(outcome.is_some())
            })?;
            if let Some(difference) = history::replay([left, right], known, &again)? {
                found.difference = difference;
                found.is_repeated = true;
            }
            hunted.found = Some(found);
            return Ok(hunted);
        }
    }
    Ok(hunted)
}
