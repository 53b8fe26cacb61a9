//! My client reconnects. `docs/testing/reconnect.md` explains it.

use std::time::Duration;

use minikeeper::{Keep, Server};
use minikeeper_client::{Client, ConnectionState, CreateMode, States};
use minikeeper_recipes::PersistentNode;
use tokio::time::timeout;

type Failure = Box<dyn std::error::Error>;

/// A time limit in case something is wrong; nothing here takes that long.
const WITHIN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn client_reconnects_and_registers_again() -> Result<(), Failure> {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    let session = client.session_id().ok_or("connected")?;
    // Under test: a service that announces itself while it lives.
    let web = CreateMode::Ephemeral;
    let here = PersistentNode::start(client.clone(), "/services/web", b"10.0.0.7:80", web)?;
    here.created().await?;
    let mut states = client.states();

    // The connection is cut once. The session and its znodes survive.
    server.disconnect(session)?;
    reconnected(&mut states).await?;
    assert_eq!(client.session_id(), Some(session));
    assert_eq!(server.children("/services"), Some(vec!["web".to_owned()]));

    // The server is down: it refuses connections until it comes up again.
    server.go_down().await;
    while client.state().is_connected() {
        next(&mut states).await?;
    }
    server.come_up(Keep::Everything).await?;
    reconnected(&mut states).await?;
    assert_eq!(client.session_id(), Some(session));

    // The server comes up without sessions: the client learns that its session is gone, and starts
    // again.
    server.restart(Keep::Data).await?;
    server.until_children("/services", 1, WITHIN).await?;
    assert_ne!(client.session_id(), Some(session));
    Ok(())
}

/// Waits until the client has a connection again, with any session.
async fn reconnected(states: &mut States) -> Result<(), Failure> {
    while !matches!(next(states).await?, ConnectionState::Reconnected { .. }) {}
    Ok(())
}

async fn next(states: &mut States) -> Result<ConnectionState, Failure> {
    let state = timeout(WITHIN, states.next()).await?;
    state.ok_or_else(|| "the client is closed".into())
}
