//! My leader steps down on expiry. `docs/testing/leader-expiry.md` explains it.

use std::time::Duration;

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::{LeaderLatch, Leadership, LeadershipChanges};
use tokio::time::timeout;

type Failure = Box<dyn std::error::Error>;

/// A time limit in case something is wrong; nothing here takes that long.
const WITHIN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn leader_steps_down_when_its_session_expires() -> Result<(), Failure> {
    let server = Server::builder().start().await?;
    let address = server.connect_string();
    // Under test: two candidates, each with its own client. The first leads.
    let client = Client::connect(&address).await?;
    let session = client.session_id().ok_or("connected")?;
    let first = LeaderLatch::start(client, "/leaders/billing", "anna")?;
    let first_token = timeout(WITHIN, first.wait()).await??;
    let mut first_changes = first.changes();
    assert_eq!(
        next(&mut first_changes).await?,
        Leadership::Leader { token: first_token }
    );
    let second = LeaderLatch::start(
        Client::connect(&address).await?,
        "/leaders/billing",
        "boris",
    )?;
    server
        .until_contenders("/leaders/billing", 2, WITHIN)
        .await?;
    assert!(!second.has_leadership());

    // The server ends the leader's session, as if the leader had been silent for too long. When
    // this returns, its znode is gone.
    server.expire(session)?;

    // The leader notices the loss, and the next one leads, with a larger token.
    assert_eq!(next(&mut first_changes).await?, Leadership::Follower);
    let second_token = timeout(WITHIN, second.wait()).await??;
    assert!(second_token > first_token);

    // The first queues again, in a new session, and does not take the leadership back.
    server
        .until_contenders("/leaders/billing", 2, WITHIN)
        .await?;
    assert!(second.has_leadership() && !first.has_leadership());
    Ok(())
}

async fn next(changes: &mut LeadershipChanges) -> Result<Leadership, Failure> {
    let change = timeout(WITHIN, changes.next()).await?;
    change.ok_or_else(|| "the latch is closed".into())
}
