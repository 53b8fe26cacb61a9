//! The recipes with every fault at every place: the contenders of the simulation, one round each and
//! a last one, judged as there.

use std::{sync::Arc, time::Duration};

use minikeeper::{Server, Sweep, SweepFault, SweepReport};
use minikeeper_client::{Client, Epoch};
use minikeeper_test_kit::{clock, random, servers};
use minikeeper_tests::sim::{
    CONTENDERS,
    chance::Chance,
    contender::{Contender, PROGRESS, left_behind},
    history::{History, VIOLATION},
    judge::Judge,
    worlds::World,
};
use tokio::time::{sleep, timeout};

const CLIENTS: usize = 2;
/// The limit for a contender to notice a loss.
const NOTICE: Duration = Duration::from_millis(5);

/// What a recipe cannot know when a server forgets a change that it has acknowledged: what the judge says then, and why.
/// Two holders at a time come only with a second fault.
const TAKEN_BACK: [(&str, &str); 6] = [
    ("left: ", "the znode is back that its contender has deleted"),
    (
        "is not served in time",
        "a lock that was released has its znode back",
    ),
    (
        "never leads",
        "a leader that has resigned has its znode back",
    ),
    ("twice", "an increment was taken back"),
    (
        "does not finish",
        "an instance that was registered, or a znode with a value, is gone",
    ),
    ("does not have", "a value that was set is gone"),
];

/// Lets the contenders of a world compete once.
async fn play(
    server: &Arc<Server>,
    world: World,
    (seed, is_hasty): (u64, bool),
) -> Result<(), String> {
    let mut clients = Vec::new();
    for number in 0..CLIENTS as u64 {
        clients.push(connect(server, seed * 1_000 + number).await?);
    }
    let judge = Arc::new(Judge::new(CLIENTS, NOTICE, true));
    let (known, asked) = (clients.clone(), Arc::clone(server));
    judge.expect_faults(Box::new(move |client, epoch: Epoch| {
        let client: &Client = &known[client];
        let is_its = |session| asked.sessions().iter().any(|info| Some(info.id) == session);
        client.epoch() == epoch && is_its(client.session_id())
    }));
    let mut tasks = Vec::new();
    let contenders = match world {
        // All of them enter it.
        World::DoubleBarrier => CONTENDERS,
        _ => 3,
    };
    for who in 0..contenders {
        let mut chance = Chance::from_seed(seed * 1_000 + 500 + who as u64);
        if is_hasty {
            // Else no two of them would ask at the same time.
            chance = chance.hasty();
        }
        let number = who % CLIENTS;
        let client = (number, &clients[number]);
        let contender = Contender::new(who, client, chance, &judge, clock::now());
        tasks.push(servers::spawn(world.contend(seed, contender)));
    }
    for (who, task) in tasks.into_iter().enumerate() {
        match timeout(5 * PROGRESS, task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("{who}: {error}")),
            Err(_) => return Err(format!("{who} has not ended")),
        }
    }
    let history = judge.with_history(|history| std::mem::replace(history, History::begin()));
    if let Some(first) = history.violations.first() {
        let lines = history.lines.iter().rev().take(12).rev().cloned();
        let lines: Vec<_> = lines.filter(|line| !line.contains(VIOLATION)).collect();
        return Err(format!("{first}\n{}", lines.join("\n")));
    }
    nothing_is_left(server, &clients).await
}

/// Connects as often as it takes: a handshake may fail.
async fn connect(server: &Arc<Server>, seed: u64) -> Result<Client, String> {
    let mut last = String::new();
    for _ in 0..3 {
        let link = minikeeper_test_kit::link::Link::to(server);
        match servers::client_builder(&link, seed).connect().await {
            Ok(client) => return Ok(client),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// Checks that no contender's znode and no watch stays.
async fn nothing_is_left(server: &Server, clients: &[Client]) -> Result<(), String> {
    let until = clock::now() + PROGRESS;
    loop {
        let Some(left) = left_behind(server, clients.iter()) else {
            return server.check().map_err(|broken| broken.to_string());
        };
        if clock::now() > until {
            return Err(left);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Replays what the clients did: whatever went wrong, the server does the same again.
fn replays(server: &Server) -> Result<(), String> {
    let recording = server.recording().map_err(|error| error.to_string())?;
    match minikeeper::replay(&recording) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the recording of the run: {error}")),
    }
}

fn sweep(world: World, seed: u64, pairs: Option<Duration>) -> SweepReport {
    let play_and_replay = move |server: Arc<Server>| async move {
        play(&server, world, (seed, false)).await?;
        replays(&server)
    };
    let mut sweep = Sweep::new(play_and_replay)
        .server(servers::server)
        .faults(SweepFault::ALL)
        .seed(seed)
        .jobs(2);
    for (what, why) in TAKEN_BACK {
        let rule = format!("rollback raises {what} because {why}");
        sweep = sweep.allow(&rule).expect("it is a rule");
    }
    if let Ok(points) = std::env::var("MINIKEEPER_SWEEP_ONLY") {
        sweep = sweep.only(&points).expect("they are points");
    }
    if pairs.is_some() {
        let rule = "rollback raises when it is granted to because the znode of a holder was taken back, which it learns later";
        sweep = sweep.allow(rule).expect("it is a rule");
    }
    match pairs {
        // As many pairs as there is time for.
        // Behind a death or a rollback clients do not always come to the place of the second.
        Some(time) => sweep
            .pairs()
            .time(time)
            .allow_untried(u64::MAX)
            .allow_unreached(u64::MAX)
            .run(),
        None => sweep.run(),
    }
}

/// Every world, one fault a run. `MINIKEEPER_SWEEP_PAIRS_S` also tries pairs of faults, for so many
/// seconds a world; `MINIKEEPER_SWEEP_WORLDS` names the worlds, `MINIKEEPER_SWEEP_ONLY` the points of a
/// run, and `MINIKEEPER_SEED` chooses what the contenders do.
#[test]
fn recipes_pass_with_every_fault() {
    let seed = random::seed_or(1);
    let pairs_s = random::number_of_environment("MINIKEEPER_SWEEP_PAIRS_S", 0);
    let pairs = (pairs_s > 0).then(|| Duration::from_secs(pairs_s));
    for world in worlds() {
        let report = sweep(world, seed, pairs);
        println!("{world:?}: {}", report.summary());
        assert!(report.is_clean(), "{world:?}, seed {seed}: {report}");
    }
}

/// The number of orders of a world that are tried by default.
const ORDERS: u64 = 150;

/// Every world, in as many orders of requests as there is time for. `MINIKEEPER_SWEEP_ORDERS_S` tries for so many
/// seconds a world, those with at most two unforced changes first; `MINIKEEPER_SWEEP_DEPTH` is 2 for orders with a
/// fault; `MINIKEEPER_SWEEP_WORLDS` names the worlds, such as `Mutex,Latch`.
#[test]
fn recipes_pass_in_every_order() {
    let seed = random::seed_or(1);
    let seconds = random::number_of_environment("MINIKEEPER_SWEEP_ORDERS_S", 0);
    let depth = random::number_of_environment("MINIKEEPER_SWEEP_DEPTH", 1);
    for world in worlds() {
        let sweep = Sweep::new(move |server: Arc<Server>| async move {
            play(&server, world, (seed, true)).await
        })
        .orders()
        .server(servers::server)
        .seed(seed)
        .jobs(2)
        .allow_untried(u64::MAX);
        let sweep = match seconds {
            0 => sweep.runs(ORDERS),
            seconds => sweep.time(Duration::from_secs(seconds)),
        };
        let sweep = if depth > 1 { sweep.pairs() } else { sweep };
        let report = sweep.run();
        println!("{world:?}: {}", report.summary());
        assert!(report.is_clean(), "{world:?}, seed {seed}: {report}");
    }
}

/// The worlds that the environment names, or all.
fn worlds() -> Vec<World> {
    let Ok(names) = std::env::var("MINIKEEPER_SWEEP_WORLDS") else {
        return World::ALL.to_vec();
    };
    let named = |name: &str| {
        let mut all = World::ALL.into_iter();
        all.find(|world| format!("{world:?}") == name)
            .unwrap_or_else(|| {
                panic!(
                    "MINIKEEPER_SWEEP_WORLDS: {name:?} is none of {:?}",
                    World::ALL
                )
            })
    };
    names.split(',').map(named).collect()
}
