//! The code in `docs/find-the-fault.md`, which includes the sections between the markers.

use std::sync::Arc;

use minikeeper::{Server, Sweep};
use minikeeper_client::{Client, Connecting, CreateMode, Error, ErrorCode};
use tokio::io::split;

// --8<-- [start:connect]
/// Connects inside the process: a sweep runs on paused time, which runs ahead of sockets.
async fn connect(server: &Arc<Server>) -> Client {
    loop {
        let server = Arc::clone(server);
        let transport = move |_: &str| -> Connecting {
            let (reader, writer) = split(server.local());
            Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
        };
        let builder = Client::builder("server").unwrap().transport(transport);
        match builder.connect().await {
            Ok(client) => return client,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}
// --8<-- [end:connect]

// --8<-- [start:naive]
/// Places an order, again after each error that may pass.
async fn order(client: &Client) -> Result<(), Error> {
    loop {
        let order = client.create("/order-", b"1 cup", CreateMode::PersistentSequential);
        match order.await {
            Err(error) if error.is_retryable() => {}
            other => return other.map(drop),
        }
    }
}

async fn one_order_is_placed(server: Arc<Server>) {
    let client = connect(&server).await;
    if order(&client).await.is_ok() {
        let placed = server.children("/").unwrap();
        let orders = placed.iter().filter(|name| name.starts_with("order-"));
        assert_eq!(orders.count(), 1, "orders");
    }
}

#[test]
fn sweep_finds_the_second_order() {
    let report = Sweep::new(one_order_is_placed).run();
    println!("{report}");
    assert_eq!(report.failures[0].text(), "reply-lost:1:create2:1:/order-");
}
// --8<-- [end:naive]

// --8<-- [start:sound]
/// Places an order under a name of its own: placed again, it is the same.
async fn order_once(client: &Client, name: &str) -> Result<(), Error> {
    loop {
        let order = client.create(&format!("/order-{name}"), b"1 cup", CreateMode::Persistent);
        match order.await {
            Err(error) if error.is_retryable() => {}
            Err(error) if error.is(ErrorCode::NodeExists) => return Ok(()),
            other => return other.map(drop),
        }
    }
}

#[test]
fn sweep_finds_nothing_in_the_sound_order() {
    Sweep::new(async |server: Arc<Server>| {
        let client = connect(&server).await;
        if order_once(&client, "4711").await.is_ok() {
            assert_eq!(
                server.children("/").unwrap().len(),
                2,
                "zookeeper and the order"
            );
        }
    })
    .run()
    .assert_clean();
}
// --8<-- [end:sound]
