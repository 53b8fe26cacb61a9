//! What a sweep of orders finds, and what it says of it.

use std::sync::Arc;

use minikeeper::{ErrorCode, Server, Sweep, SweepState};
use minikeeper_client::{Client, CreateMode, Error};
use minikeeper_test_kit::{link::Link, servers};

async fn connect(server: &Arc<Server>) -> Client {
    let link = Link::to(server);
    servers::client_builder(&link, 1)
        .connect()
        .await
        .expect("nothing fails")
}

/// Lets two clients do the same.
async fn twice<F: Future<Output = ()> + Send + 'static>(
    server: Arc<Server>,
    client: fn(Client) -> F,
) {
    let one = tokio::spawn(client(connect(&server).await));
    let other = tokio::spawn(client(connect(&server).await));
    for task in [one, other] {
        if let Err(error) = task.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn check_then_create(client: Client) {
    if client.exists("/a").await.unwrap().is_none() {
        let created = client.create("/a", b"", CreateMode::Persistent).await;
        created.expect("nobody else creates it");
    }
}

async fn create_or_find(client: Client) {
    match client.create("/a", b"", CreateMode::Persistent).await {
        Ok(_)
        | Err(Error::Refused {
            code: ErrorCode::NodeExists,
            ..
        }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn check_then_create_is_found() {
    let report = Sweep::new(|server| twice(server, check_then_create))
        .orders()
        .run();
    println!("{report}");
    assert_eq!(report.state(), SweepState::Failed);
}

#[test]
fn create_that_may_find_it_is_clean() {
    let report = Sweep::new(|server| twice(server, create_or_find))
        .orders()
        .run();
    println!("{report}");
    report.assert_clean();
}
