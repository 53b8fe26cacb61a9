//! Hours pass in milliseconds. `docs/testing/time-travel.md` explains it.

use std::time::Duration;

use minikeeper::{Server, Znode, tree};
use minikeeper_client::{Client, CreateMode};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn result_expires_after_an_hour_and_worker_with_its_session()
-> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().manual_clock().start().await?;
    // Under test: a worker that is registered while it lives, and a result that is kept for an
    // hour.
    let result = Znode::from("done").time_to_live(HOUR);
    server.seed(&tree! { "/workers" => "", "/results/42" => result })?;
    let client = Client::connect(&server.connect_string()).await?;
    let session = client.session_id().ok_or("connected")?;
    let worker = CreateMode::Ephemeral;
    client.create("/workers/anna", b"", worker).await?;

    // The result is kept for one hour, not for two. The server checks once a minute.
    server.advance(HOUR - MINUTE);
    assert!(server.get("/results/42").is_some());
    server.advance(2 * MINUTE);
    assert!(server.get("/results/42").is_none());

    // The worker is connected, so it has kept its session.
    assert_eq!(client.session_id(), Some(session));
    assert_eq!(server.children("/workers"), Some(vec!["anna".to_owned()]));

    // The worker hangs: it stays connected but sends nothing more.
    server.silence("/workers/anna")?;
    server.advance(MINUTE);
    assert_eq!(server.children("/workers"), Some(Vec::new()));
    Ok(())
}
