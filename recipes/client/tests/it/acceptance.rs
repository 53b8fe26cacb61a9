//! E1 to E13 of `docs/client.md` section 2: defects of another client, each with the opposite
//! outcome. E5, the times of E11 and E12 are measured in `benches/`; E9 concerns guards.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use minikeeper_client::{
    AddWatchMode, Cause, Client, Connecting, ConnectionState, CreateMode, CreateOptions, Epoch,
    Error, EventKind, LostReason, WatchEvent,
};
use minikeeper_protocol::{ConnectResponse, SessionId, frame};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split},
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::{
    clock,
    kit::{self, SESSION_TIMEOUT, Scene, create, scene, until},
    link::Mode,
};

const NAME: &str = "/lock/_c_9dd8-lock-";

fn lock_options() -> CreateOptions {
    CreateOptions::new(CreateMode::EphemeralSequential).withdrawn_if_dropped(true)
}

#[tokio::test(start_paused = true)]
async fn e1_dropped_create_leaves_nothing() {
    let scene = scene().await;
    let client = &scene.client;
    create(client, "/lock").await;
    scene.link.delay_replies(Duration::from_millis(300));
    let create = client.create(NAME, b"", lock_options());
    assert!(timeout(Duration::from_millis(100), create).await.is_err());
    let children = || scene.server.children("/lock").unwrap();
    until("the request arrives", || !children().is_empty()).await;
    until("its znode is deleted", || children().is_empty()).await;
    until("the clean-up is done", || client.clean_ups_pending() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn e1_dropped_create_whose_reply_is_lost_leaves_nothing() {
    let scene = scene().await;
    let client = &scene.client;
    create(client, "/lock").await;
    scene.link.set(Mode::SwallowReplies);
    let create = client.create(NAME, b"", lock_options());
    assert!(timeout(Duration::from_millis(100), create).await.is_err());
    let children = || scene.server.children("/lock").unwrap();
    until("the request arrives", || !children().is_empty()).await;
    scene.link.cut();
    until("its znode is deleted", || children().is_empty()).await;
    assert_eq!(client.epoch(), Epoch(1), "in the same session");
}

/// Drops a call after its outcome has arrived and before it is polled again, as an aborted task
/// does.
async fn drop_with_its_outcome(scene: &Scene, call: impl Future, is_lost: bool) {
    let mut call = pin!(call);
    let once = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
    assert!(once, "the first poll is pending");
    sleep(Duration::from_millis(100)).await;
    if is_lost {
        scene.link.cut();
    }
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn e1_dropped_create_with_an_unread_outcome_leaves_nothing() {
    for is_lost in [false, true] {
        let scene = scene().await;
        let client = &scene.client;
        create(client, "/lock").await;
        if is_lost {
            scene.link.set(Mode::SwallowReplies);
        }
        let create = client.create(NAME, b"", lock_options());
        drop_with_its_outcome(&scene, create, is_lost).await;
        let children = || scene.server.children("/lock").unwrap();
        until("its znode is deleted", || children().is_empty()).await;
        until("the clean-up is done", || client.clean_ups_pending() == 0).await;
        assert_eq!(client.epoch(), Epoch(1), "in the same session");
    }
}

#[tokio::test(start_paused = true)]
async fn e2b_dropped_deletion_with_an_unread_loss_is_carried_out() {
    let scene = scene().await;
    let client = &scene.client;
    create(client, "/lock").await;
    scene.link.set(Mode::SwallowRequests);
    let delete = client.delete_for_certain("/lock");
    drop_with_its_outcome(&scene, delete, true).await;
    until("the znode is deleted", || {
        scene.server.get("/lock").is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e2_every_end_of_a_connection_gives_the_same_error() {
    for end in [
        Mode::Cut,
        Mode::SwallowRequests,
        Mode::SwallowReplies,
        Mode::Freeze,
    ] {
        let scene = scene().await;
        scene.link.set(Mode::SwallowReplies);
        let call = scene.client.set_data("/", b"x", None);
        tokio::pin!(call);
        assert!(timeout(Duration::from_millis(10), &mut call).await.is_err());
        scene.link.set(end);
        let error = call.await.unwrap_err();
        let expected = Error::OutcomeUnknown {
            op: "setData",
            path: "/".into(),
            cause: Cause::ConnectionLost,
        };
        assert_eq!(error, expected, "{end:?}");
        assert!(error.is_outcome_unknown() && error.is_retryable());
    }
}

#[tokio::test(start_paused = true)]
async fn e2b_deletion_is_carried_out_after_the_reconnect() {
    let scene = scene().await;
    let client = &scene.client;
    client
        .create("/held", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    scene.link.set(Mode::SwallowRequests);
    client.delete_for_certain("/held").detach();
    sleep(Duration::from_millis(50)).await;
    assert!(scene.server.get("/held").is_some());
    scene.link.cut();
    until("the znode is deleted", || {
        scene.server.get("/held").is_none()
    })
    .await;
    assert_eq!(client.epoch(), Epoch(1), "in the same session");
}

#[tokio::test(start_paused = true)]
async fn e3_watches_of_every_kind_survive_a_reconnect() {
    let scene = scene().await;
    let client = &scene.client;
    for path in ["/once", "/always", "/below"] {
        create(client, path).await;
    }
    let (_, once) = client.get_data_and_watch("/once").await.unwrap();
    let mut always = client
        .add_watch("/always", AddWatchMode::Persistent)
        .await
        .unwrap();
    let mut below = client
        .add_watch("/below", AddWatchMode::PersistentRecursive)
        .await
        .unwrap();
    let mut states = client.states();
    scene.link.cut();
    kit::state(&mut states, ConnectionState::is_connected).await;
    let other = scene.other().await;
    other.set_data("/once", b"1", None).await.unwrap();
    other.set_data("/always", b"1", None).await.unwrap();
    create(&other, "/below/a").await;
    once.await;
    let event = |event| match event {
        WatchEvent::Event { kind, path, .. } => (kind, path),
        other => panic!("{other:?}"),
    };
    // Servers do not send the events that a persistent watch has missed.
    assert_eq!(always.next().await, WatchEvent::Interrupted);
    assert_eq!(below.next().await, WatchEvent::Interrupted);
    assert_eq!(
        event(always.next().await),
        (EventKind::DataChanged, "/always".into())
    );
    assert_eq!(
        event(below.next().await),
        (EventKind::Created, "/below/a".into())
    );
}

#[tokio::test(start_paused = true)]
async fn e3_watches_fire_after_the_reconnect_for_changes_before_it() {
    let scene = scene().await;
    let client = &scene.client;
    create(client, "/a").await;
    let (_, changed) = client.get_data_and_watch("/a").await.unwrap();
    let (_, created) = client.exists_and_watch("/b").await.unwrap();
    scene.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let other = scene.other().await;
    other.set_data("/a", b"1", None).await.unwrap();
    create(&other, "/b").await;
    scene.link.set(Mode::Pass);
    changed.await;
    created.await;
}

#[tokio::test(start_paused = true)]
async fn e7_request_timed_out_or_dropped_before_sending_is_never_sent() {
    let scene = scene().await;
    scene.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let hurried = scene.client.with_timeout(Duration::from_millis(500));
    let error = hurried
        .create("/late", b"", CreateMode::Persistent)
        .await
        .unwrap_err();
    let expected = Error::NotSent {
        op: "create2",
        path: "/late".into(),
        cause: Cause::DeadlinePassed,
    };
    assert_eq!(error, expected);
    // The same holds for a dropped request.
    let dropped = scene.client.create("/later", b"", CreateMode::Persistent);
    assert!(timeout(Duration::from_millis(500), dropped).await.is_err());
    scene.link.set(Mode::Pass);
    scene.client.sync("/").await.unwrap();
    assert_eq!(scene.server.children("/").unwrap(), ["zookeeper"]);
}

/// When the request is made, the driver sleeps until a later deadline.
#[tokio::test(start_paused = true)]
async fn e7_unanswered_request_fails_at_its_deadline() {
    let scene = scene().await;
    scene.link.set(Mode::Freeze);
    let within = Duration::from_millis(100);
    let began = clock::now();
    let error = scene.client.with_timeout(within).exists("/").await;
    assert_eq!(clock::now() - began, within);
    let expected = Error::OutcomeUnknown {
        op: "exists",
        path: "/".into(),
        cause: Cause::DeadlinePassed,
    };
    assert_eq!(error.unwrap_err(), expected);
}

#[tokio::test(start_paused = true)]
async fn e10_loss_is_known_before_the_server_ends_the_session() {
    let scene = scene().await;
    let client = &scene.client;
    client
        .create("/held", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    let mut states = client.states();
    scene.link.set(Mode::Freeze);
    let frozen = clock::now();
    let suspended = kit::state(&mut states, |_| true).await;
    let ConnectionState::Suspended {
        epoch,
        until: deadline,
    } = suspended
    else {
        panic!("{suspended:?}");
    };
    assert_eq!((epoch, Some(deadline)), (Epoch(1), client.safe_until()));
    assert_eq!(kit::lost(&mut states).await, LostReason::Presumed);
    assert!(
        scene.server.get("/held").is_some(),
        "no other contender can hold it yet"
    );
    let after = frozen.elapsed();
    assert!(
        after <= SESSION_TIMEOUT && after >= SESSION_TIMEOUT * 9 / 10,
        "{after:?}"
    );
    until("the server ends it", || scene.server.get("/held").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn e11_requests_made_together_are_sent_with_one_write() {
    let scene = scene().await;
    let client = &scene.client;
    let before = scene.link.writes.load(Ordering::Relaxed);
    let created = client.create("/a", b"", CreateMode::Persistent);
    let listed = client.children("/");
    let read = client.get_data("/a");
    assert_eq!(created.await.unwrap().path, "/a");
    assert_eq!(listed.await.unwrap().names().len(), 2);
    read.await.unwrap();
    assert_eq!(scene.link.writes.load(Ordering::Relaxed) - before, 1);
}

/// The server end of a connection, played by the test.
struct FakeServer {
    stream: DuplexStream,
    buffer: BytesMut,
}

impl FakeServer {
    async fn frame(&mut self) -> Bytes {
        loop {
            if let Some(body) = frame::next(&self.buffer, 1 << 20).unwrap() {
                let frame = self.buffer.split_to(body.end).freeze();
                return frame.slice(body);
            }
            self.stream.read_buf(&mut self.buffer).await.unwrap();
        }
    }

    /// Completes the handshake with this session. Returns the session that the client asked for.
    async fn accept(&mut self, session: i64) -> SessionId {
        let mut hello = self.frame().await;
        hello.advance(16);
        let asked = SessionId(hello.get_i64());
        let mut out = Vec::new();
        let response = ConnectResponse {
            protocol_version: 0,
            timeout_ms: 4_000,
            session_id: SessionId(session),
            password: Some(Bytes::from_static(&[7; 16])),
            read_only: Some(false),
        };
        response.encode(&mut out);
        self.stream.write_all(&out).await.unwrap();
        asked
    }
}

#[tokio::test(start_paused = true)]
async fn e13_another_session_on_reconnect_is_a_loss() {
    let (give, mut take) = mpsc::channel(4);
    let transport = move |_: &str| -> Connecting {
        let (near, stream) = duplex(1 << 16);
        let server = FakeServer {
            stream,
            buffer: BytesMut::new(),
        };
        let give = give.clone();
        Box::pin(async move {
            give.send(server).await.unwrap();
            let (reader, writer) = split(near);
            Ok((Box::new(reader) as _, Box::new(writer) as _))
        })
    };
    let (client, driver) = Client::builder("server")
        .unwrap()
        .transport(transport)
        .build();
    tokio::spawn(driver.run());
    let mut states = client.states();
    let mut first = take.recv().await.unwrap();
    assert_eq!(first.accept(0x11).await, SessionId::NONE);
    let state = states.next().await.unwrap();
    assert!(matches!(
        state,
        ConnectionState::Connected {
            session: SessionId(0x11),
            ..
        }
    ));
    drop(first);
    let mut second = take.recv().await.unwrap();
    assert_eq!(second.accept(0x22).await, SessionId(0x11));
    assert_eq!(kit::lost(&mut states).await, LostReason::Replaced);
    let state = states.next().await.unwrap();
    let epoch = Epoch(2);
    let session = SessionId(0x22);
    assert_eq!(state, ConnectionState::Reconnected { epoch, session });
    assert_eq!(client.session_id(), Some(session));
}
