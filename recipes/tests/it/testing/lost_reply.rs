//! My lock survives a lost reply. `docs/testing/lost-reply.md` explains it.

use std::time::Duration;

use minikeeper::{Fault, OpCode, Server};
use minikeeper_client::{Client, Error};
use minikeeper_recipes::InterProcessMutex;

/// A time limit in case something is wrong; nothing here takes that long.
const WITHIN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn lock_survives_a_lost_reply() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().start().await?;
    let address = server.connect_string();
    // Under test: two contenders for one lock.
    let first = InterProcessMutex::new(Client::connect(&address).await?, "/locks/printer")?;
    let second = InterProcessMutex::new(Client::connect(&address).await?, "/locks/printer")?;

    // The first create below the lock is carried out; its reply is lost with the connection. The
    // lock's directory is not below it, so its create is not affected.
    let create = Fault::lose_reply()
        .on(OpCode::Create)
        .at("/locks/printer/*");
    let lost = server.inject(create.once())?;
    let guard = first.acquire().within(WITHIN).await?;
    lost.hit_within(WITHIN).await?; // otherwise this test proves nothing
    // The lock has found its znode again, instead of queueing behind it with a second one.
    assert_eq!(
        server.children("/locks/printer").map(|it| it.len()),
        Some(1)
    );

    // The same for the release: the delete is carried out, and its reply is lost. `release` reports
    // an unknown outcome; in either case, the lock does not stay taken.
    let delete = Fault::lose_reply()
        .on(OpCode::Delete)
        .at("/locks/printer/*");
    let lost = server.inject(delete.once())?;
    let released = guard.release().await;
    assert!(matches!(released, Err(Error::OutcomeUnknown { .. })));
    lost.hit_within(WITHIN).await?; // otherwise this test proves nothing
    let guard = second.acquire().within(WITHIN).await?;
    guard.release().await?;

    assert_eq!(server.children("/locks/printer"), Some(Vec::new()));
    Ok(())
}
