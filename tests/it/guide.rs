//! The code in the pages of `docs/`, which include the sections between the markers.

use std::time::Duration;

use minikeeper::{Expected, Fault, JournalFilter, Keep, OpCode, Server, ServerMode, tree};
use minikeeper_client::{Client, CreateMode};
use minikeeper_recipes::InterProcessMutex;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn time_of_the_guide() -> Outcome {
    // --8<-- [start:time]
    let server = Server::builder().manual_clock().start().await?; // the clock starts frozen
    let client = Client::connect(&server.connect_string()).await?;
    client.create("/mine", b"", CreateMode::Ephemeral).await?;

    server.advance(Duration::from_secs(3600)); // connected sessions survive
    assert!(server.get("/mine").is_some());

    server.advance_strictly(Duration::from_secs(3600)); // as if no client had sent a ping
    assert!(server.get("/mine").is_none());
    // --8<-- [end:time]
    Ok(())
}

#[tokio::test]
async fn fault_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    server.seed(&tree! { "/locks/a" => "" })?;
    // --8<-- [start:fault]
    // The server carries out one create below /locks/a and closes the connection without a reply.
    let fault = Fault::lose_reply().on(OpCode::Create).at("/locks/a/*");
    let lost = server.inject(fault.once())?;

    let created = client.create("/locks/a/n", b"", CreateMode::Ephemeral);
    assert!(created.await.is_err()); // the client cannot know the outcome

    lost.hit_within(Duration::from_secs(10)).await?; // fails if the fault did not act
    assert_eq!(server.children("/locks/a"), Some(vec!["n".to_owned()]));
    drop(lost); // ends the fault
    // --8<-- [end:fault]
    Ok(())
}

#[tokio::test]
async fn journal_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    client.create("/locks", b"", CreateMode::Persistent).await?;
    // --8<-- [start:journal]
    let path = "/locks/lock-";
    client
        .create(path, b"", CreateMode::EphemeralSequential)
        .await?;
    let creates: JournalFilter = "create /locks/* -> OK".parse()?;
    for entry in server.journal(&creates)? {
        println!("{entry}");
    }
    server.verify(&creates, Expected::Exactly(1))?; // the error would show what comes nearest
    server
        .verify_order(&["create /locks/*".parse()?, "session_expired".parse()?])
        .expect_err("no session has expired");
    // --8<-- [end:journal]
    Ok(())
}

#[tokio::test]
async fn advice_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    client
        .create("/lock-", b"", CreateMode::EphemeralSequential)
        .await?;
    // --8<-- [start:advice]
    let advice = server.advise(&["unprotected-sequential", "/legacy/**"])?; // what to ignore
    assert!(advice.findings.is_empty(), "{advice}");
    // --8<-- [end:advice]
    assert_eq!(server.advise(&[])?.findings.len(), 1);
    Ok(())
}

#[tokio::test]
async fn sessions_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    client.create("/mine", b"", CreateMode::Ephemeral).await?;
    // --8<-- [start:sessions]
    for session in server.sessions() {
        println!(
            "{} from {:?} owns {:?}",
            session.id, session.address, session.ephemerals
        );
    }
    server.disconnect("127.0.0.1")?; // close connections; the sessions survive
    server.expire_and_flush("/mine").await?; // end the session that owns /mine; its watchers are notified
    assert!(server.get("/mine").is_none());
    // --8<-- [end:sessions]
    Ok(())
}

#[tokio::test]
async fn locks_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    let mutex = InterProcessMutex::new(client.clone(), "/locks/orders")?;
    let _guard = mutex.acquire().await?;
    // --8<-- [start:locks]
    let report = server.locks();
    for lock in &report.locks {
        for contender in lock.holders.iter().chain(&lock.waiters) {
            println!(
                "{}: {:?} {:?}",
                lock.path, contender.session, contender.waits_for
            );
        }
        assert!(lock.warnings.is_empty(), "{lock}");
    }
    assert!(report.deadlocks.is_empty(), "{report}"); // prints the report as below
    // --8<-- [end:locks]
    assert_eq!(report.locks[0].holders[0].session, client.session_id());
    Ok(())
}

#[tokio::test]
async fn story_of_the_guide() -> Outcome {
    // --8<-- [start:story]
    let server = Server::builder().start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    let _story = server.story_on_panic(); // declared after the clients, so dropped before them
    client.create("/a", b"", CreateMode::Ephemeral).await?;
    assert_eq!(server.sessions()[0].ephemerals, ["/a"]);
    // --8<-- [end:story]
    Ok(())
}

#[tokio::test]
async fn universes_and_snapshots_of_the_guide() -> Outcome {
    // --8<-- [start:universes]
    let server = Server::builder().start().await?;
    let test = server.create_universe("test-1")?; // dropped with this guard
    let client = Client::connect(&test.connect_string()).await?; // 127.0.0.1:PORT/test-1
    client.create("/a", b"1", CreateMode::Persistent).await?;
    assert!(server.get("/a").is_none()); // the server's own universe is another tree

    let before = test.snapshot();
    client.delete("/a", None).await?;
    test.restore(&before)?; // undoes every change since
    assert!(test.get("/a").is_some());

    let copy = test.fork("copy")?; // an independent copy
    client.delete("/a", None).await?;
    assert!(copy.get("/a").is_some());
    // --8<-- [end:universes]
    Ok(())
}

#[tokio::test]
async fn restarts_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    // --8<-- [start:restart]
    server.restart(Keep::Everything).await?; // same port; clients reconnect with their sessions
    server.restart(Keep::Data).await?; // znodes stay; sessions end, and so do their ephemerals
    server.restart(Keep::Nothing).await?; // an empty tree
    server.go_down().await; // refuse connections and close all that are open
    server.come_up(Keep::Everything).await?;
    // --8<-- [end:restart]
    Ok(())
}

#[tokio::test]
async fn lock_of_the_guide() -> Outcome {
    let server = Server::builder().start().await?;
    let address = server.connect_string();
    // --8<-- [start:lock]
    let client = Client::connect(&address).await?; // for example 127.0.0.1:2181
    let printer = InterProcessMutex::new(client, "/locks/printer")?;
    let guard = printer.acquire().await?;
    println!("printing, with token {}", guard.token());
    guard.release().await?; // dropping the guard releases too, and does not wait
    // --8<-- [end:lock]
    Ok(())
}

#[tokio::test]
async fn failover_of_the_guide() -> Outcome {
    // --8<-- [start:failover]
    let server = Server::builder().servers(3).start().await?;
    let client = Client::connect(&server.connect_string()).await?;
    client.create("/owned", b"", CreateMode::Ephemeral).await?;

    let session = client.session_id().expect("connected");
    let servers = server.servers();
    let mut its_server = servers.iter().filter(|one| one.sessions.contains(&session));
    let its_server = its_server.next().expect("connected").id;
    server.set_server(its_server, ServerMode::Down).await?;

    // A request on its way fails, as with any ZooKeeper. The next one finds another server.
    let mut found = client.exists("/owned").await;
    if found.is_err() {
        found = client.exists("/owned").await;
    }
    assert!(found?.is_some()); // the session has moved, and kept its ephemeral
    // --8<-- [end:failover]
    Ok(())
}
