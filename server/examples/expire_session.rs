//! Expires a session: its ephemeral goes, and another client's watch fires.
//!
//! This is how a test shows what an application does when a peer is lost, without waiting for a
//! timeout and without killing anything.
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

    // Selected by what it owns. `server.advance(..)` would do the same to every session that keeps
    // silent for so long.
    server.expire("/leader")?;

    let fired = gone.await;
    println!("the standby's watch: {fired:?}");
    assert!(fired.is_deleted());
    assert_eq!(server.get("/leader"), None);

    // The client that has lost its session learns so when it comes back.
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
