//! Runs the simulation from one seed, and from many.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use minikeeper_tests::sim::{CLIENTS, CONTENDERS};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::{
    chance::Chance,
    chaos, clock,
    contender::{Contender, PROGRESS, left_behind},
    history::{History, Totals, VIOLATION},
    judge::Judge,
    site::Site,
    worlds::World,
};

/// How long faults are injected in each run.
const CHAOS: Duration = Duration::from_secs(60);

/// The limit for a contender to notice a loss. It is short because time passes only when all tasks
/// wait.
const NOTICE: Duration = Duration::from_millis(5);

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) world: World,
}

impl Plan {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self {
            seed,
            world: World::of_seed(seed),
        }
    }
}

/// Runs the simulation once.
pub(crate) fn simulate(plan: Plan) -> History {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run(plan))
}

async fn run(Plan { seed, world }: Plan) -> History {
    let site = Arc::new(Site::start(seed, CLIENTS).await);
    let judge = Arc::new(Judge::new(CLIENTS, NOTICE, true));
    let end = clock::now() + CHAOS;
    let mut tasks = Vec::new();
    for who in 0..CONTENDERS {
        let chance = Chance::from_seed(seed * 1_000 + 500 + who as u64);
        let number = who % CLIENTS;
        let client = (number, &site.clients[number].0);
        let contender = Contender::new(who, client, chance, &judge, end);
        tasks.push(tokio::spawn(world.contend(seed, contender)));
    }
    chaos::inject_faults(Arc::clone(&site), Arc::clone(&judge), seed, end).await;
    for (who, task) in tasks.into_iter().enumerate() {
        // Contenders have time limits of their own; this one catches a bug in the simulation.
        match timeout(10 * PROGRESS, task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => judge.violation(format!("{who}: {error}")),
            Err(_) => judge.violation(format!("{who} has not ended")),
        }
    }
    look_for_leftovers(&site, &judge).await;
    let mut history = judge.with_history(|history| std::mem::replace(history, History::begin()));
    history.totals.runs = 1;
    history.totals.simulated_ms = history.elapsed_ms();
    history
}

/// Checks that the contenders leave no watch and no contender's znode behind.
async fn look_for_leftovers(site: &Site, judge: &Judge) {
    let server = site.server().expect("the server is up after the faults");
    let left = || left_behind(&server, site.clients.iter().map(|(client, _)| client));
    let until = clock::now() + PROGRESS;
    while let Some(left) = left() {
        if clock::now() > until {
            judge.violation(left);
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    if let Err(broken) = server.check() {
        judge.violation(broken.to_string());
    }
}

/// A run with violations.
pub(crate) struct Failure {
    pub(crate) plan: Plan,
    pub(crate) history: History,
}

impl Failure {
    /// Returns the seed to repeat the run, the violations, and the history around the first one.
    pub(crate) fn report(&self) -> String {
        let Self { plan, history } = self;
        let first = history
            .lines
            .iter()
            .position(|line| line.contains(VIOLATION));
        let from = first.unwrap_or_default().saturating_sub(60);
        let lines: Vec<_> = history.lines[from..].iter().take(90).cloned().collect();
        let lines = lines.join("\n");
        format!(
            "MINIKEEPER_SIM_SEED={}, {:?}: {:#?}\n{lines}",
            plan.seed, plan.world, history.violations
        )
    }
}

/// Runs plans on all cores, one thread per run, until one has violations.
pub(crate) fn first_failure(plans: &[Plan]) -> Result<Totals, Box<Failure>> {
    let next = AtomicU64::new(0);
    let totals = Mutex::new(Totals::default());
    let failure = Mutex::new(None);
    let work = || {
        while failure.lock().is_none() {
            let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
            let Some(&plan) = plans.get(at) else { return };
            let history = simulate(plan);
            if history.violations.is_empty() {
                totals.lock().add(history.totals);
            } else {
                *failure.lock() = Some(Box::new(Failure { plan, history }));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    match failure.into_inner() {
        Some(failure) => Err(failure),
        None => Ok(totals.into_inner()),
    }
}
