//! Runs one round: starts contenders, injects faults, removes them, and checks that nothing is left.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::Client;
use tokio::time::{sleep, sleep_until, timeout};

use minikeeper_tests::sim::{CLIENTS, CONTENDERS};

use crate::{
    chance::Chance,
    clock,
    contender::{Contender, PROGRESS},
    faults::{self, FaultKind, Site},
    history::{History, Totals},
    judge::Judge,
    memory,
    worlds::World,
};

const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a contender may take to notice a loss. Long, because the machine may be busy.
const NOTICE_MAX: Duration = Duration::from_secs(5);

/// The settings of a round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) faults_for: Duration,
    /// How often the run prints a report.
    pub(crate) report: Duration,
    pub(crate) kinds: Vec<FaultKind>,
}

/// Returns a random seed.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0) % 1_000_000_000
}

pub(crate) async fn run(server: &Arc<Server>, round: &Round, before: &Totals) -> History {
    let clients = connect(server, round.seed).await;
    let judge = Arc::new(Judge::new(clients.len(), NOTICE_MAX, false));
    let end = clock::now() + round.faults_for;
    let mut tasks = Vec::new();
    for (at, world) in World::ALL.into_iter().enumerate() {
        for who in 0..CONTENDERS {
            let seed = round.seed.wrapping_mul(1_000) + (at * CONTENDERS + who) as u64;
            let number = at * CLIENTS + who % CLIENTS;
            let client = (number, &clients[number]);
            let contender = Contender::new(who, client, Chance::from_seed(seed), &judge, end);
            let task = tokio::spawn(world.contend(round.seed, contender));
            tasks.push((world, who, task));
        }
    }
    let reporting = tokio::spawn(report(Arc::clone(&judge), round.report, before.clone()));
    let site = Arc::new(Site {
        server: Arc::clone(server),
        clients,
        judge: Arc::clone(&judge),
    });
    faults::inject_faults(&site, &round.kinds, round.seed, end).await;
    for (world, who, task) in tasks {
        // Contenders have their own timeouts; this catches a bug in them.
        match timeout(10 * PROGRESS, task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => judge.violation(format!("{world:?}, {who}: {error}")),
            Err(_) => judge.violation(format!("{world:?}, {who} has not ended")),
        }
    }
    reporting.abort();
    look_for_leftovers(&site).await;
    for client in &site.clients {
        client.close().await;
    }
    judge.with_history(|history| std::mem::replace(history, History::begin()))
}

async fn connect(server: &Server, seed: u64) -> Vec<Client> {
    let mut clients = Vec::new();
    for number in 0..World::ALL.len() * CLIENTS {
        let client = Client::builder(&server.connect_string())
            .unwrap()
            .session_timeout(SESSION_TIMEOUT)
            .seed(seed.wrapping_mul(1_000) + number as u64)
            .connect();
        clients.push(client.await.unwrap());
    }
    clients
}

/// Prints the progress until aborted.
async fn report(judge: Arc<Judge>, every: Duration, before: Totals) {
    let mut due = clock::now();
    loop {
        due += every;
        sleep_until(due).await;
        judge.look();
        let (mut totals, violations) =
            judge.with_history(|history| (history.totals.clone(), history.violations.len()));
        totals.add(before.clone());
        let grants: BTreeMap<_, _> = totals.grants;
        println!(
            "{violations} violations, {} KiB resident, {} faults, grants so far: {grants:?}",
            memory::resident_kib(),
            totals.faults.values().sum::<u64>(),
        );
    }
}

/// Checks, after all contenders have ended, that no ephemeral, watch or pending clean-up is left.
async fn look_for_leftovers(site: &Site) {
    let server = &site.server;
    let left = || {
        let pending = site.clients.iter().map(Client::clean_ups_pending);
        let pending: usize = pending.sum();
        let sessions = server.sessions();
        let ephemerals: Vec<_> = sessions.iter().flat_map(|one| &one.ephemerals).collect();
        let watches: Vec<_> = sessions.iter().flat_map(|one| &one.watches).collect();
        (pending > 0 || !ephemerals.is_empty() || !watches.is_empty()).then(|| {
            format!("left: {pending} pending, ephemerals {ephemerals:?}, watches {watches:?}")
        })
    };
    let until = clock::now() + PROGRESS;
    while let Some(left) = left() {
        if clock::now() > until {
            site.judge.violation(left);
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    if let Err(broken) = server.check() {
        site.judge.violation(broken.to_string());
    }
}

/// Returns the resident memory once all connections are closed, in KiB.
pub(crate) async fn resident_at_rest(server: &Server) -> u64 {
    let until = clock::now() + PROGRESS;
    while server.connections() > 0 && clock::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
    // Leaves time to delete unused containers.
    sleep(Duration::from_secs(2)).await;
    memory::resident_kib()
}
