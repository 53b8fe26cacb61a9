//! Connection states, resuming and losing sessions, closing.

use std::{sync::atomic::Ordering, time::Duration};

use minikeeper_client::{Cause, Client, ConnectionState, CreateMode, Epoch, Error, LostReason};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{self, builder, create, scene, start, until},
    link::{Link, Mode},
};

#[tokio::test(start_paused = true)]
async fn every_change_of_state_is_returned_in_order() {
    let scene = scene().await;
    let mut states = scene.client.states();
    let session = scene.client.session_id().unwrap();
    scene.link.cut();
    let epoch = Epoch(1);
    let state = states.next().await.unwrap();
    assert!(matches!(
        state,
        ConnectionState::Suspended {
            epoch: Epoch(1),
            ..
        }
    ));
    let state = states.next().await.unwrap();
    assert_eq!(state, ConnectionState::Reconnected { epoch, session });
    scene.server.expire(session).unwrap();
    let state = states.next().await.unwrap();
    assert!(matches!(state, ConnectionState::Suspended { .. }));
    let state = states.next().await.unwrap();
    let reason = LostReason::Expired;
    assert_eq!(state, ConnectionState::Lost { epoch, reason });
    let state = states.next().await.unwrap();
    let session = scene.client.session_id().unwrap();
    let epoch = Epoch(2);
    assert_eq!(state, ConnectionState::Reconnected { epoch, session });
    scene.client.close().await;
    assert_eq!(states.next().await, Some(ConnectionState::Closed));
    assert_eq!(states.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn session_survives_a_short_interruption() {
    let scene = scene().await;
    let client = &scene.client;
    client
        .create("/mine", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    scene.link.set(Mode::Cut);
    sleep(Duration::from_secs(2)).await;
    scene.link.set(Mode::Pass);
    assert!(client.exists("/mine").await.unwrap().is_some());
    assert_eq!(client.epoch(), Epoch(1));
}

#[tokio::test(start_paused = true)]
async fn idle_session_is_kept_alive() {
    let scene = scene().await;
    scene
        .client
        .create("/mine", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert!(scene.server.get("/mine").is_some());
    assert_eq!(scene.link.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_made_while_disconnected_are_sent_in_order_afterwards() {
    let scene = scene().await;
    let client = &scene.client;
    scene.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let first = client.create("/n-", b"", CreateMode::PersistentSequential);
    let second = client.create("/n-", b"", CreateMode::PersistentSequential);
    scene.link.set(Mode::Pass);
    assert_eq!(second.await.unwrap().path, "/n-0000000001");
    assert_eq!(first.await.unwrap().path, "/n-0000000000");
}

#[tokio::test(start_paused = true)]
async fn request_of_one_epoch_is_not_sent_in_the_next() {
    let scene = scene().await;
    let client = &scene.client;
    let bound = client.in_epoch(client.epoch());
    scene.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let kept = bound.create("/kept", b"", CreateMode::Persistent);
    let free = client.create("/free", b"", CreateMode::Persistent);
    scene.server.expire(client.session_id().unwrap()).unwrap();
    scene.link.set(Mode::Pass);
    let not_sent = |error: Error| {
        matches!(
            error,
            Error::NotSent {
                cause: Cause::SessionLost,
                ..
            }
        )
    };
    assert!(not_sent(kept.await.unwrap_err()));
    free.await.unwrap();
    assert!(not_sent(bound.sync("/").await.unwrap_err()));
    assert!(scene.server.get("/kept").is_none());
}

#[tokio::test(start_paused = true)]
async fn stamped_replies_have_their_epoch_and_zxid() {
    let scene = scene().await;
    let client = &scene.client;
    let created = client
        .create("/a", b"", CreateMode::Persistent)
        .stamped()
        .await
        .unwrap();
    assert_eq!(
        (created.epoch, created.zxid),
        (Epoch(1), created.value.stat.czxid)
    );
    let mut states = client.states();
    scene.server.expire(client.session_id().unwrap()).unwrap();
    kit::lost(&mut states).await;
    let read = client.exists("/a").stamped().await.unwrap();
    assert_eq!(read.epoch, Epoch(2));
    assert!(read.zxid > created.zxid);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_session_and_every_call() {
    let scene = scene().await;
    let client = &scene.client;
    client
        .create("/mine", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    let (_, watch) = client.get_data_and_watch("/").await.unwrap();
    let clone = client.clone();
    client.close().await;
    assert!(scene.server.get("/mine").is_none());
    assert!(scene.server.sessions().is_empty());
    let error = clone.sync("/").await.unwrap_err();
    assert_eq!(error.cause(), Some(Cause::Closed));
    assert_eq!(
        error.to_string(),
        "sync \"/\": not carried out: the client is closed"
    );
    watch.await;
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn closing_without_a_server_takes_the_close_wait() {
    let scene = scene().await;
    scene.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let kept = scene.client.sync("/");
    timeout(Duration::from_millis(1_100), scene.client.close())
        .await
        .unwrap();
    assert_eq!(kept.await.unwrap_err().cause(), Some(Cause::Closed));
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_pending_clean_up() {
    let scene = scene().await;
    let client = &scene.client;
    create(client, "/held").await;
    scene.link.delay_replies(Duration::from_millis(100));
    client.clean_up(client.epoch(), "/held").unwrap();
    client.close().await;
    assert!(scene.server.get("/held").is_none());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_the_session() {
    let scene = scene().await;
    let server = scene.server.clone();
    let clone = scene.client.clone();
    drop(scene);
    assert_eq!(server.sessions().len(), 1);
    drop(clone);
    until("the session ends", || server.sessions().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_driver_ends_every_call() {
    let server = start().await;
    let link = Link::to(&server);
    let (client, driver) = builder(&link).build();
    let driver = tokio::spawn(driver.run());
    client.connected(kit::PATIENCE).await.unwrap();
    link.set(Mode::SwallowReplies);
    let call = client.sync("/");
    tokio::pin!(call);
    assert!(timeout(Duration::from_millis(10), &mut call).await.is_err());
    driver.abort();
    assert!(call.await.unwrap_err().is_outcome_unknown());
    assert_eq!(client.state(), ConnectionState::Closed);
}

#[tokio::test(start_paused = true)]
async fn error_without_a_server_says_what_to_do() {
    let server = start().await;
    let link = Link::to(&server);
    link.set(Mode::Cut);
    let within = Duration::from_millis(700);
    let error = builder(&link)
        .connection_timeout(within)
        .connect()
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection within 700 ms; last attempt: server:2181: connection refused"
    );
}

#[tokio::test(start_paused = true)]
async fn every_server_of_the_list_is_tried() {
    let server = start().await;
    let mut link = Link::to(&server);
    let transport = move |host: &str| -> minikeeper_client::Connecting {
        if host.starts_with("good") {
            minikeeper_client::Transport::connect(&mut link, host)
        } else {
            Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) })
        }
    };
    let builder = Client::builder("bad1,bad2,good,bad3").unwrap();
    let client = builder
        .seed(3)
        .transport(transport)
        .connect()
        .await
        .unwrap();
    client.sync("/").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_abandoned_for_the_next() {
    let server = start().await;
    let mut link = Link::to(&server);
    let mut calls = 0;
    let transport = move |host: &str| -> minikeeper_client::Connecting {
        calls += 1;
        if calls > 1 {
            return minikeeper_client::Transport::connect(&mut link, host);
        }
        Box::pin(async {
            let (near, far) = tokio::io::duplex(64);
            // The far end stays open, and silent.
            tokio::spawn(async move {
                sleep(Duration::from_secs(3600)).await;
                drop(far);
            });
            let (reader, writer) = tokio::io::split(near);
            Ok((Box::new(reader) as _, Box::new(writer) as _))
        })
    };
    let builder = Client::builder("server").unwrap();
    let builder = builder
        .server_timeout(Duration::from_secs(1))
        .transport(transport);
    builder.connect().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn server_with_malformed_response_is_abandoned_for_the_next() {
    let server = start().await;
    let mut link = Link::to(&server);
    let mut calls = 0;
    let transport = move |host: &str| -> minikeeper_client::Connecting {
        calls += 1;
        if calls > 1 {
            return minikeeper_client::Transport::connect(&mut link, host);
        }
        Box::pin(async {
            let writer: minikeeper_client::Writer = Box::new(tokio::io::sink());
            let reader: minikeeper_client::Reader = Box::new(&b"HTTP/1.1 400 Bad Request\r\n"[..]);
            Ok((reader, writer))
        })
    };
    let builder = Client::builder("server").unwrap();
    builder.transport(transport).connect().await.unwrap();
}

/// The driver went on waiting for a server that the machine had given up, and so skipped the next
/// one: of two servers, the second was never tried if the first did not answer.
#[tokio::test(start_paused = true)]
async fn server_behind_one_that_never_answers_is_tried() {
    let server = start().await;
    for seed in 0..8 {
        for silent in ["a:2181", "b:2181"] {
            let mut link = Link::to(&server);
            let transport = move |host: &str| -> minikeeper_client::Connecting {
                if host == silent {
                    return Box::pin(std::future::pending());
                }
                minikeeper_client::Transport::connect(&mut link, host)
            };
            let client = Client::builder("a,b")
                .unwrap()
                .transport(transport)
                .seed(seed);
            let client = client
                .connection_timeout(Duration::from_secs(2))
                .connect()
                .await;
            client.unwrap();
        }
    }
}
