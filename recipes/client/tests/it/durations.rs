//! Every method that takes a time limit, with the shortest and the longest: none panics, and the
//! longest never passes.

use std::time::Duration;

use minikeeper_client::{Backoff, Client, ConnectionState, CreateMode, CreateOptions, Error};

use crate::{
    kit::{self, builder, scene, start},
    link::Link,
};

#[tokio::test(start_paused = true)]
async fn longest_limits_do_not_pass() {
    let server = start().await;
    let max = Duration::MAX;
    let link = Link::to(&server);
    let builder = builder(&link)
        .session_timeout(max)
        .connection_timeout(max)
        .server_timeout(max)
        .close_wait(max)
        .call_timeout(max)
        .namespace("app")
        .unwrap();
    let client = builder.connect().await.unwrap();
    client.connected(max).await.unwrap();
    // At time zero no sum overflows.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut states = client.states();
    link.cut();
    let is_back = |state: &ConnectionState| matches!(state, ConnectionState::Reconnected { .. });
    kit::state(&mut states, is_back).await;
    let patient = client.with_timeout(max).with_call_timeout(max);
    patient.exists("/").await.unwrap();
    let brief = CreateOptions::new(CreateMode::PersistentWithTtl).ttl(max);
    let refused = patient.create("/brief", b"", brief).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    assert!(Backoff::new(max, max, 1).next_pause() > Duration::from_secs(1));
    assert!(client.safe_until().is_some());
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn shortest_limits_fail_at_once() {
    let server = start().await;
    let zero = Duration::ZERO;
    let short =
        |change: fn(minikeeper_client::ClientBuilder) -> minikeeper_client::ClientBuilder| {
            change(builder(&Link::to(&server))).connect()
        };
    let client = short(|it| {
        it.session_timeout(Duration::ZERO)
            .close_wait(Duration::ZERO)
    });
    let client = client.await.unwrap();
    client.connected(zero).await.unwrap();
    let hurried = client.with_timeout(zero).with_call_timeout(zero);
    // The reply may be there before the limit is looked at.
    if let Err(error) = hurried.exists("/").await {
        let class = error.class();
        assert_eq!(class, minikeeper_client::ErrorClass::DeadlinePassed);
    }
    assert_eq!(Backoff::new(zero, zero, 1).next_pause(), zero);
    client.close().await;
    for refused in [
        short(|it| it.connection_timeout(Duration::ZERO)).await,
        short(|it| it.server_timeout(Duration::ZERO)).await,
    ] {
        if let Err(error) = refused {
            assert!(matches!(error, Error::NotConnected { .. }), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn closing_without_a_wait_ends_the_session_on_the_server() {
    // closeSession was not sent: the ephemeral znodes stayed until the session timeout.
    let scene = scene().await;
    let client = builder(&scene.link).close_wait(Duration::ZERO);
    let client: Client = client.connect().await.unwrap();
    let ephemeral = client.create("/mine", b"", CreateMode::Ephemeral).await;
    ephemeral.unwrap();
    client.close().await;
    let other = scene.other().await;
    let wait = async {
        while other.exists("/mine").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let soon = kit::SESSION_TIMEOUT / 2;
    tokio::time::timeout(soon, wait).await.unwrap();
}
