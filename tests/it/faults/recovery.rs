//! The effect of a lost reply on a naive client and on a protected one.

use std::sync::Arc;

use minikeeper::{Fault, OpCode, Server};
use minikeeper_client::{Client, Connecting, CreateMode};
use minikeeper_recipes::InterProcessMutex;

/// Runs a test in-process on tokio's paused clock, which advances only when all tasks wait.
fn run(play: impl AsyncFnOnce(Arc<Server>)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Server::builder().start().await.unwrap();
        play(Arc::new(server)).await;
    });
}

async fn client(server: &Arc<Server>) -> Client {
    let server = Arc::clone(server);
    let transport = move |_host: &str| -> Connecting {
        let (reader, writer) = tokio::io::split(server.local());
        Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
    };
    let builder = Client::builder("inside").unwrap();
    builder.transport(transport).connect().await.unwrap()
}

#[test]
fn naive_client_leaves_an_orphan_when_the_reply_is_lost() {
    run(async |server| {
        let client = client(&server).await;
        client
            .create("/locks", b"", CreateMode::Persistent)
            .await
            .unwrap();
        let fault = Fault::lose_reply().on(OpCode::Create).at("/locks/*").once();
        let lost = server.inject(fault).unwrap();
        // Retries, as naive clients do.
        let create = || client.create("/locks/n-", b"", CreateMode::EphemeralSequential);
        assert!(create().await.is_err());
        create().await.unwrap();
        assert_eq!(lost.hits(), 1);
        assert_eq!(
            server.children("/locks").unwrap(),
            ["n-0000000000", "n-0000000001"]
        );
    });
}

#[test]
fn protected_lock_recovers_when_the_reply_is_lost() {
    run(async |server| {
        let lost = Fault::lose_reply().on(OpCode::Create).at("/locks/*").once();
        let lost = server.inject(lost).unwrap();
        let lock = InterProcessMutex::new(client(&server).await, "/locks").unwrap();
        let guard = lock.acquire().await.unwrap();
        assert_eq!(lost.hits(), 1);
        assert_eq!(server.children("/locks").unwrap().len(), 1);
        guard.release().await.unwrap();
        assert_eq!(server.children("/locks").unwrap().len(), 0);
    });
}

/// Any request of the lock may be lost, before or after the server executes it, and no znode stays
/// behind. The test loses the nth request of a run, for every n until the run has fewer requests.
#[test]
fn lock_recovers_from_every_request_lost_either_way() {
    for kind in [Fault::cut, Fault::lose_reply, Fault::cut_reply] {
        for nth in 1.. {
            let mut was_hit = false;
            run(async |server| {
                let first = client(&server).await;
                let fault = kind().at("/locks/**").nth(nth);
                let guard = server.inject(fault).unwrap();
                let lock = InterProcessMutex::new(first, "/locks/a").unwrap();
                let held = lock.acquire().await.unwrap();
                // The client retries a release in the background when its reply is lost.
                let _ = held.release().await;
                let second = client(&server).await;
                let lock = InterProcessMutex::new(second, "/locks/a").unwrap();
                let held = lock.acquire().await.unwrap();
                assert_eq!(server.children("/locks/a").unwrap().len(), 1);
                was_hit = guard.hits() > 0;
                drop(held);
            });
            if !was_hit {
                assert!(nth > 3, "a lock sends more than {nth} requests");
                break;
            }
        }
    }
}
