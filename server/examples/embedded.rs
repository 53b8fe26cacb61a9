//! Embeds a server, connects a client, and prints the whole state.
//!
//! ```text
//! cargo run -p minikeeper --example embedded
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use minikeeper::{Server, assert_tree};
use minikeeper_client::{Client, CreateMode};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Listens on a free port of 127.0.0.1; any ZooKeeper client connects to it.
    let server = Server::builder().manual_clock().start().await?;
    let client = Client::connect(&server.connect_string()).await?;

    client
        .create("/app", b"config", CreateMode::Persistent)
        .await?;
    for host in [b"host 1", b"host 2"] {
        let mode = CreateMode::EphemeralSequential;
        client.create("/app/worker-", host, mode).await?;
    }
    let workers = client.child_names("/app").await?;
    println!("workers: {}", workers.iter().collect::<Vec<_>>().join(", "));

    // The whole state as text that is the same in every run, for snapshot tests.
    println!("\n{}", server.dump());

    // Advances the clock by an hour. The client is connected, so its session lives on.
    server.advance(Duration::from_secs(3600));
    assert_eq!(client.child_names("/app").await?.len(), 2);

    // Its ephemerals are deleted with its session.
    client.close().await;
    assert_tree!(server, { "/app" => "config" });
    server.shutdown().await?;
    Ok(())
}
