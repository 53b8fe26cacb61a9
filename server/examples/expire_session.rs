//! Expires a session: its ephemeral is deleted, and another client's watch fires.
//!
//! A test shows in this way what an application does when it loses a peer, without waiting for a
//! timeout or killing a process.
//!
//! ```text
//! cargo run -p minikeeper --example expire_session
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use minikeeper::Server;
use minikeeper_client::{Client, ConnectionState, CreateMode, LostReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().manual_clock().start().await?;
    let leader = Client::connect(&server.connect_string()).await?;
    let standby = Client::connect(&server.connect_string()).await?;
    let mut states = leader.states();

    leader
        .create("/leader", b"host 1", CreateMode::Ephemeral)
        .await?;
    let (_, gone) = standby.exists_and_watch("/leader").await?;

    // Selects the session by the ephemeral it owns. `server.advance(..)` would instead expire every
    // session that stays silent for that long.
    server.expire("/leader")?;

    let fired = gone.await;
    println!("the standby's watch: {fired:?}");
    assert!(fired.is_deleted());
    assert_eq!(server.get("/leader"), None);

    // The client learns that it has lost its session when it reconnects.
    loop {
        match states.next().await {
            Some(ConnectionState::Lost { reason, .. }) => {
                println!("the leader's session: {reason}");
                assert_eq!(reason, LostReason::Expired);
                return Ok(());
            }
            Some(state) => println!("the leader: {state:?}"),
            None => return Err("the leader's client is closed".into()),
        }
    }
}
