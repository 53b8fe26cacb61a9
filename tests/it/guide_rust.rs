//! The five recipes of `docs/rust.md`. `.ci/crates test` runs them in a project outside of the workspace too.

// --8<-- [start:imports]
use std::time::Duration;

use minikeeper::{Expected, Fault, Keep, OpCode, Server, Znode, tree};
use minikeeper_client::{Client, ConnectionState, CreateMode};
use minikeeper_recipes::InterProcessMutex;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A limit for failures; nothing here takes that long.
const WITHIN: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3_600);
// --8<-- [end:imports]

// --8<-- [start:expire]
#[tokio::test]
async fn lock_passes_on_when_its_holder_expires() -> Outcome {
    let server = Server::builder().start().await?;
    let holder = Client::connect(&server.connect_string()).await?;
    let other = Client::connect(&server.connect_string()).await?;
    let session = holder.session_id().ok_or("connected")?;
    let guard = InterProcessMutex::new(holder, "/lock")?.acquire().await?;

    server.expire(session)?; // returns when the znode of the lock is gone

    guard.lost().await; // the holder learns of it
    let mutex = InterProcessMutex::new(other, "/lock")?;
    let _guard = mutex.acquire().within(WITHIN).await?;
    Ok(())
}
// --8<-- [end:expire]

// --8<-- [start:lost-reply]
#[tokio::test]
async fn create_has_happened_though_its_reply_is_lost() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    let fault = Fault::lose_reply().on(OpCode::Create).at("/job").once();
    let lost = server.inject(fault)?; // panics on drop if it has never acted

    let created = client.create("/job", b"mine", CreateMode::Persistent);
    let error = created.await.expect_err("the reply is lost");

    assert!(error.is_outcome_unknown());
    lost.hit_within(WITHIN).await?;
    assert!(server.get("/job").is_some());
    Ok(())
}
// --8<-- [end:lost-reply]

// --8<-- [start:outage]
#[tokio::test]
async fn client_survives_an_outage() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    let session = client.session_id();
    let mut states = client.states();

    server.go_down().await; // closes every connection and refuses new ones
    server.come_up(Keep::Everything).await?;

    let reconnected = async {
        while !matches!(
            states.next().await,
            Some(ConnectionState::Reconnected { .. })
        ) {}
    };
    tokio::time::timeout(WITHIN, reconnected).await?;
    assert_eq!(client.session_id(), session);
    Ok(())
}
// --8<-- [end:outage]

// --8<-- [start:time]
#[tokio::test]
async fn result_is_gone_after_an_hour() -> Outcome {
    let server = Server::builder().manual_clock().start().await?;
    server.seed(&tree! { "/results/42" => Znode::from("done").time_to_live(HOUR) })?;

    server.advance(HOUR + Duration::from_secs(60)); // the server looks for expired znodes once a minute

    assert_eq!(server.children("/results"), Some(Vec::new()));
    Ok(())
}
// --8<-- [end:time]

// --8<-- [start:verify]
#[tokio::test]
async fn job_writes_only_under_its_lock() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    let mutex = InterProcessMutex::new(client.clone(), "/locks/job")?;

    let guard = mutex.acquire().await?;
    let results = client.create("/results", b"done", CreateMode::Persistent);
    results.await?;
    guard.release().await?;

    server.verify_order(&[
        "create /locks/job/* -> OK".parse()?,
        "create /results -> OK".parse()?,
        "delete /locks/job/* -> OK".parse()?,
    ])?;
    server.verify(&"setData /results".parse()?, Expected::Exactly(0))?;
    Ok(())
}
// --8<-- [end:verify]
