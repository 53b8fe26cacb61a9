//! The client's task ends although the client is open: its runtime shuts down, or it panics. Every
//! wait ends, with an error that says so.

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{
    AclList, Cause, Client, Connecting, ConnectionState, CreateMode, Error, ErrorClass,
};
use tokio::time::timeout;

use crate::{
    kit::{builder, start},
    link::{Link, Mode},
};

/// The limit of waits, in real time: a test with two runtimes has no clock to move.
const WITHIN: Duration = Duration::from_secs(30);

/// Connects a client whose task runs on a runtime of its own.
fn on_its_own_runtime(server: &Arc<Server>) -> (Client, Link, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let link = Link::to(server);
    let (client, driver) = builder(&link).build();
    runtime.spawn(driver.run());
    (client, link, runtime)
}

fn check(error: &Error) {
    assert_eq!(error.cause(), Some(Cause::DriverEnded), "{error}");
    assert_eq!(error.class(), ErrorClass::Closed);
    assert!(error.to_string().contains("its runtime has shut down"));
}

#[tokio::test]
async fn every_wait_ends_when_the_runtime_of_the_client_goes_away() {
    let server = start().await;
    let (client, link, runtime) = on_its_own_runtime(&server);
    client.connected(WITHIN).await.unwrap();
    let (_, watch) = client.exists_and_watch("/a").await.unwrap();
    let (mut states, mut events) = (client.states(), client.watch_events());
    link.set(Mode::SwallowReplies);
    let pending = client.sync("/");
    client.flush();
    runtime.shutdown_background();
    let waits = async {
        check(&pending.await.unwrap_err());
        watch.await;
        while states.next().await.is_some() {}
        while events.next().await.is_some() {}
        client.close().await;
    };
    timeout(WITHIN, waits).await.expect("every wait ends");
    assert_eq!(client.state(), ConnectionState::Closed);
    assert_eq!(client.safe_until(), None);
    check(&client.sync("/").await.unwrap_err());
    let error = client.connected(WITHIN).await.unwrap_err().to_string();
    assert!(error.contains("its runtime has shut down"), "{error}");
}

#[tokio::test]
async fn every_wait_ends_when_the_task_of_the_client_panics() {
    let transport = |_: &str| -> Connecting { panic!("planted") };
    let builder = Client::builder("server").unwrap().transport(transport);
    let (client, driver) = builder.build();
    let waiting = client.sync("/");
    assert!(tokio::spawn(driver.run()).await.is_err(), "it panics");
    let ended = timeout(WITHIN, waiting).await;
    check(&ended.expect("the wait ends").unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn panic_of_an_access_list_provider_concerns_its_caller_only() {
    let server = start().await;
    let client = builder(&Link::to(&server)).connect().await.unwrap();
    let planted = |_: &str| -> AclList { panic!("planted") };
    let panicking = client.with_acl_provider(planted);
    let task = tokio::spawn(async move {
        let created = panicking.create("/a", b"", CreateMode::Persistent).await;
        created.map(drop)
    });
    assert!(task.await.unwrap_err().is_panic());
    let created = client.create("/a", b"", CreateMode::Persistent).await;
    created.unwrap();
}
