//! The complete test of `docs/getting-started.md`.

// --8<-- [start:test]
use minikeeper::{Server, assert_tree, tree};
use minikeeper_client::Client;

#[tokio::test]
async fn limit_is_raised() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().start().await?; // on a free port of 127.0.0.1
    server.seed(&tree! { "/app/limit" => "10" })?; // create znodes without a client
    let client = Client::connect(&server.connect_string()).await?; // or any other ZooKeeper client

    client.set_data("/app/limit", b"20", None).await?;

    assert_tree!(server, { "/app" => "", "/app/limit" => "20" }); // panics with the difference
    Ok(())
}
// --8<-- [end:test]
