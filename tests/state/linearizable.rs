//! Checks histories of real servers under concurrency by replaying them in the order of zxids.

use std::sync::{Arc, atomic::AtomicU64};

use bytes::Bytes;
use minikeeper_protocol::{Create, CreateMode, CreateOp, MultiOp, MultiReadOp, Request, Ustring};
use minikeeper_test_kit::random::Random;
use minikeeper_tests::replay::{self, Summary};
use tokio::sync::Barrier;

use crate::{
    effort, seed,
    traffic::{Client, runtime, server},
};

const CLIENTS: usize = 8;
/// The number of batches of each client in one history.
const BATCHES: usize = 60;

#[test]
fn history_of_local_connections_is_linearizable() {
    check_and_print(false);
}

#[test]
fn history_of_sockets_is_linearizable() {
    check_and_print(true);
}

fn check_and_print(over_tcp: bool) {
    for round in 0..3 * u64::from(effort()) {
        let summary =
            check_history(over_tcp, seed() + round).unwrap_or_else(|fault| panic!("{fault}"));
        // A history with few operations would prove little.
        assert!(summary.writes > 500, "{summary:?}");
        assert!(summary.reads > 500, "{summary:?}");
        assert!(summary.events > 500, "{summary:?}");
    }
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

fn request(random: &mut Random) -> Request {
    let path = random.pick(&["/a", "/b", "/a/x", "/a/y", "/b/x"]);
    let some = |path: &str| Some(Ustring::from(path));
    let watch = random.below(2) == 0;
    let version = random.pick(&[-1, -1, -1, 0, 1]);
    let data = Some(Bytes::from(vec![b'd'; random.below(20)]));
    let set = MultiOp::SetData {
        path: some(path),
        data: data.clone(),
        version,
    };
    match random.below(25) {
        0..=2 => create(path, CreateMode::Persistent),
        3..=4 => create(path, CreateMode::Ephemeral),
        5 => create("/a/s-", CreateMode::EphemeralSequential),
        6 => create("/s-", CreateMode::PersistentSequential),
        7..=8 => Request::Delete {
            path: some(path),
            version,
        },
        9..=11 => Request::SetData {
            path: some(path),
            data,
            version,
        },
        12 => Request::Multi(vec![
            set,
            MultiOp::Create(create_of("/a/s-", CreateMode::PersistentSequential)),
            MultiOp::Delete {
                path: some(path),
                version: -1,
            },
        ]),
        13 => Request::Multi(vec![set.clone(), set]),
        14..=16 => Request::GetData {
            path: some(path),
            watch,
        },
        17..=18 => Request::Exists {
            path: some(path),
            watch,
        },
        19..=20 => Request::GetChildren2 {
            path: some(random.pick(&["/", "/a", "/b"])),
            watch,
        },
        21 => Request::AddWatch {
            path: some(random.pick(&["/", "/a", "/b", "/b/x"])),
            mode: i32::from(watch),
        },
        22 => Request::RemoveWatches {
            path: some(random.pick(&["/", "/a", "/b", "/b/x"])),
            kind: 3,
        },
        23 => Request::MultiRead(vec![
            MultiReadOp::GetData {
                path: some(path),
                watch,
            },
            MultiReadOp::GetChildren {
                path: some("/a"),
                watch,
            },
        ]),
        _ => pick_request(random),
    }
}

fn pick_request(random: &mut Random) -> Request {
    match random.below(3) {
        0 => Request::Ping,
        1 => Request::Sync {
            path: Some("/a".into()),
        },
        _ => Request::GetEphemerals { prefix: None },
    }
}

fn create_of(path: &str, mode: CreateMode) -> Create {
    Create {
        op: CreateOp::Create2,
        ..Create::new(path, b"new", mode)
    }
}

fn create(path: &str, mode: CreateMode) -> Request {
    Request::Create(create_of(path, mode))
}
