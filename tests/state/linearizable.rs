//! Checks histories of real servers under concurrency by replaying them in the order of zxids.

use std::sync::{Arc, atomic::AtomicU64};

use minikeeper_protocol::Request;
use minikeeper_test_kit::{
    random::Random,
    requests::{LASTING_KINDS, Requests},
};
use minikeeper_tests::replay::{self, Summary};
use tokio::sync::Barrier;

use crate::{
    effort, seed,
    traffic::{Client, runtime, server},
};

const CLIENTS: usize = 8;
/// The number of batches of each client in one history.
const BATCHES: usize = 120;

#[test]
fn history_of_local_connections_is_linearizable() {
    check_and_print(false);
}

#[test]
fn history_of_sockets_is_linearizable() {
    check_and_print(true);
}

fn check_and_print(over_tcp: bool) {
    let rounds = 3 * u64::from(effort());
    let mut total = Summary::default();
    for round in 0..rounds {
        let summary =
            check_history(over_tcp, seed() + round).unwrap_or_else(|fault| panic!("{fault}"));
        total.writes += summary.writes;
        total.reads += summary.reads;
        total.events += summary.events;
    }
    // Histories with few operations would prove little. How many events one has depends on its seed.
    let least = usize::try_from(500 * rounds).expect("a small number");
    assert!(total.writes > least, "{total:?}");
    assert!(total.reads > least, "{total:?}");
    assert!(total.events > least, "{total:?}");
}

/// Checks that one order of all requests, which respects real time, explains every reply and event.
/// Eight clients pipeline requests on few paths; everything is recorded and replayed by zxid.
fn check_history(over_tcp: bool, seed: u64) -> Result<Summary, String> {
    runtime().block_on(async {
        let server = server().await;
        let clock = Arc::new(AtomicU64::new(0));
        let barrier = Arc::new(Barrier::new(CLIENTS));
        let mut tasks = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let client = Client::connect(&server, over_tcp, &clock).await;
            clients.push(client.map_err(|error| error.to_string())?);
        }
        for (number, client) in clients.into_iter().enumerate() {
            let random = Random::new(seed ^ ((number as u64 + 1) << 32));
            tasks.push(tokio::spawn(run(
                client,
                number,
                random,
                Arc::clone(&barrier),
            )));
        }
        let mut recorded = Vec::new();
        for task in tasks {
            let client = task.await.map_err(|error| error.to_string())?;
            recorded.push(client?.recorded());
        }
        server.check().map_err(|broken| broken.to_string())?;
        server.shutdown().await.expect("nothing is saved");
        replay::check(&recorded).map_err(|fault| format!("{fault}\nMINIKEEPER_SEED={seed}"))
    })
}

async fn run(
    mut client: Client,
    number: usize,
    mut random: Random,
    barrier: Arc<Barrier>,
) -> Result<Client, String> {
    let mut outcome = Ok(());
    for _ in 0..BATCHES {
        let length = 1 + random.below(16);
        let batch: Vec<_> = (0..length).map(|_| request(&mut random)).collect();
        client.send(batch).await;
        outcome = client.answered().await;
        if outcome.is_err() {
            break;
        }
    }
    // Every task reaches both barriers, even after an error, so that a failure is reported and no
    // task hangs.
    barrier.wait().await;
    if !number.is_multiple_of(2) {
        // The close deletes the session's ephemerals, which sends events to the other clients.
        outcome = outcome.and(client.ask(Request::CloseSession).await);
    }
    barrier.wait().await;
    if number.is_multiple_of(2) {
        // Events on the way arrive before this reply.
        outcome = outcome.and(client.ask(Request::Ping).await);
    }
    outcome.map(|()| client)
}

/// Any request that keeps the connection open.
fn request(random: &mut Random) -> Request {
    let kind = random.byte() % (LASTING_KINDS + 1);
    match kind {
        LASTING_KINDS => Request::Ping,
        kind => Requests::new(|| random.byte()).whole().request(kind),
    }
}
