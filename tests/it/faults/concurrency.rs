//! Faults that are injected and removed while clients are busy on several threads.

use std::time::Duration;

use minikeeper::{Fault, OpCode, Server};
use minikeeper_protocol::CreateMode;
use minikeeper_test_kit::wire::{self, PATIENCE};

use super::client::Scene;

const CLIENTS: usize = 4;
const REQUESTS: usize = 300;

/// A delayed request is served in every interleaving of the end of its delay, the removal of its
/// fault and its connection's task. Each client waits for its replies, so a lost request fails the
/// test by the time limit.
#[test]
fn no_request_is_lost_while_delays_are_injected_and_removed() {
    for over_tcp in [false, true] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .unwrap();
        let in_time =
            runtime.block_on(async { tokio::time::timeout(6 * PATIENCE, play(over_tcp)).await });
        assert!(in_time.is_ok(), "a request was lost, over TCP: {over_tcp}");
    }
}

async fn play(over_tcp: bool) {
    let server = Server::builder().start().await.unwrap();
    let scene = Scene::new(server, over_tcp);
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = scene.open().await;
        clients.spawn(async move {
            for round in 0..REQUESTS {
                let path = format!("/{number}-{round}");
                let create = wire::create(&path, b"", CreateMode::Persistent);
                client.send(&[create, wire::exists(&path, false)]).await;
                client.answer(OpCode::Create).await.unwrap();
                client.answer(OpCode::Exists).await.unwrap();
            }
        });
    }
    let mut rounds = 0;
    while !clients.is_empty() {
        let delay = if rounds % 2 == 0 { 1 } else { 60_000 };
        let fault = Fault::delay(Duration::from_millis(delay))
            .with_probability(0.5, rounds)
            .optional();
        let guard = scene.server.inject(fault).unwrap();
        for _ in 0..rounds % 50 {
            tokio::task::yield_now().await;
        }
        drop(guard);
        while let Some(ended) = clients.try_join_next() {
            ended.unwrap();
        }
        rounds += 1;
    }
    assert_eq!(
        scene.server.children("/").unwrap().len(),
        CLIENTS * REQUESTS + 1
    );
    scene.end();
}
