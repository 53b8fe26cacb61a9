//! Requests delayed by a fault, on the server's clock.

use std::time::Duration;

use minikeeper::{Fault, OpCode, Server};
use minikeeper_protocol::{CreateMode, EventKind, Request};
use minikeeper_test_kit::wire;
use tokio::io::AsyncWriteExt as _;

use super::client::{Client, Scene, both};

const SECOND: Duration = Duration::from_secs(1);

fn create(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Persistent)
}

/// Sends requests of which the first is delayed, and waits until the server holds it.
async fn send_delayed(scene: &Scene, client: &mut Client, requests: &[Request]) {
    let before: usize = scene.server.faults().iter().map(|info| info.held).sum();
    client.send(requests).await;
    while scene
        .server
        .faults()
        .iter()
        .map(|info| info.held)
        .sum::<usize>()
        == before
    {
        tokio::task::yield_now().await;
    }
}

#[test]
fn delayed_request_is_served_at_its_deadline() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        let fault = Fault::delay(3 * SECOND).on(OpCode::Create).at("/slow");
        let slow = scene.server.inject(fault).unwrap();
        send_delayed(&scene, &mut client, &[create("/slow")]).await;
        assert_eq!(slow.hits(), 1);
        other.must(&create("/quick")).await;
        scene.server.advance(3 * SECOND - Duration::from_millis(1));
        assert!(scene.server.get("/slow").is_none());
        assert!(client.is_silent().await);
        // Served before the call returns.
        scene.server.advance(Duration::from_millis(1));
        assert!(scene.server.get("/slow").is_some());
        client.answer(OpCode::Create).await.unwrap();
        client.must(&create("/slow/child")).await;
        assert_eq!(scene.server.faults()[0].held, 0);
        scene.end();
    });
}

/// A client that waits for the server to close the connection waited for ever.
#[test]
fn connection_closes_behind_the_reply_to_a_delayed_end_of_its_session() {
    both(async |scene| {
        let mut client = scene.open().await;
        let fault = Fault::delay(SECOND).on(OpCode::CloseSession);
        let _late = scene.server.inject(fault).unwrap();
        send_delayed(&scene, &mut client, &[Request::CloseSession]).await;
        scene.server.advance(SECOND);
        client.answer(OpCode::CloseSession).await.unwrap();
        client.expect_end().await;
        assert!(scene.server.sessions().is_empty());
        scene.end();
    });
}

/// Later requests of the connection wait and are answered in order, in the same write or not.
#[test]
fn requests_after_a_delayed_one_wait_for_it() {
    both(async |scene| {
        let mut client = scene.open().await;
        let fault = Fault::delay(SECOND).on(OpCode::Create).once();
        let _slow = scene.server.inject(fault).unwrap();
        let batch = [create("/a"), create("/a/b"), Request::Ping];
        send_delayed(&scene, &mut client, &batch).await;
        client.send(&[wire::exists("/a/b", false)]).await;
        assert!(client.is_silent().await);
        scene.server.advance(SECOND);
        client.answer(OpCode::Create).await.unwrap();
        client.answer(OpCode::Create).await.unwrap();
        client.answer(OpCode::Ping).await.unwrap();
        client.answer(OpCode::Exists).await.unwrap();
        scene.end();
    });
}

#[test]
fn events_are_sent_while_a_request_is_delayed() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        client.must(&wire::watch("/w")).await;
        let fault = Fault::delay(SECOND).on(OpCode::GetData).once();
        let _slow = scene.server.inject(fault).unwrap();
        send_delayed(&scene, &mut client, &[wire::get("/w", false)]).await;
        other.must(&create("/w")).await;
        assert_eq!(client.event().await, (EventKind::Created, "/w".into()));
        other.must(&wire::set("/w", b"x")).await;
        scene.server.advance(SECOND);
        // ZooKeeper's guarantee: the event comes before a reply that shows the change.
        assert_eq!(client.event().await, (EventKind::DataChanged, "/w".into()));
        client.answer(OpCode::GetData).await.unwrap();
        scene.end();
    });
}

/// One call of `advance` serves everything at its own time: two delayed creates, of which the one
/// sent first is due last, and the expiry of a session.
#[test]
fn delayed_requests_and_expiries_happen_in_deadline_order() {
    both(async |scene| {
        let (mut late, late_session) = scene.open_session().await;
        let mut early = scene.open().await;
        let inject = |delay: Duration, path: &str| {
            let fault = Fault::delay(delay).on(OpCode::Create).at(path);
            scene.server.inject(fault).unwrap().keep();
        };
        inject(9 * SECOND, "/late");
        inject(5 * SECOND, "/early");
        late.must(&Request::Ping).await;
        send_delayed(&scene, &mut late, &[create("/late")]).await;
        send_delayed(&scene, &mut early, &[create("/early")]).await;
        // Timeouts are 10 s, in ticks of 3 s: the creates are signs of life at 5 s and at 9 s.
        scene.server.advance_strictly(18 * SECOND);
        let sessions = scene.server.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        assert_eq!(sessions[0].id, late_session.session_id);
        let names = scene.server.children("/").unwrap();
        assert_eq!(names, ["zookeeper", "early", "late"]);
        scene.end();
    });
}

#[test]
fn later_faults_apply_when_the_delay_is_over() {
    both(async |scene| {
        let mut client = scene.open().await;
        let delay = |by| scene.server.inject(Fault::delay(by).on(OpCode::Create));
        let (_one, _two) = (delay(SECOND), delay(2 * SECOND));
        let lost = Fault::lose_reply().on(OpCode::Create);
        let lost = scene.server.inject(lost).unwrap();
        send_delayed(&scene, &mut client, &[create("/a"), create("/b")]).await;
        scene.server.advance(SECOND);
        assert_eq!(lost.hits(), 0);
        assert!(scene.server.get("/a").is_none());
        scene.server.advance(2 * SECOND);
        assert_eq!(lost.hits(), 1);
        client.expect_end().await;
        assert_eq!(scene.server.children("/").unwrap(), ["zookeeper", "a"]);
        scene.end();
    });
}

#[test]
fn cut_reply_after_a_delay_sends_half_the_reply() {
    both(async |scene| {
        let mut client = scene.open().await;
        let _slow = scene.server.inject(Fault::delay(SECOND).on(OpCode::Exists));
        let _cut = scene.server.inject(Fault::cut_reply().on(OpCode::Exists));
        send_delayed(&scene, &mut client, &[wire::exists("/", false)]).await;
        scene.server.advance(SECOND);
        // Length prefix, header and stat.
        assert_eq!(client.rest().await.len(), (4 + 16 + 68) / 2);
        scene.end();
    });
}

#[test]
fn delayed_handshake_opens_its_session_later() {
    both(async |scene| {
        let fault = Fault::delay(SECOND).on(minikeeper::FaultOp::Connect);
        let _slow = scene.server.inject(fault).unwrap();
        let mut client = scene.connect().await;
        let hello = minikeeper_protocol::ConnectRequest::new(10_000);
        client.hello(&hello).await;
        assert!(client.is_silent().await);
        assert_eq!(scene.server.sessions(), []);
        scene.server.advance(SECOND);
        assert_eq!(scene.server.sessions().len(), 1);
        client.connected().await;
        client.check_quiet().await;
        scene.end();
    });
}

#[test]
fn request_is_served_at_once_when_its_delay_is_removed() {
    both(async |scene| {
        let mut client = scene.open().await;
        let slow = scene.server.inject(Fault::delay(60 * SECOND)).unwrap();
        send_delayed(&scene, &mut client, &[create("/a")]).await;
        drop(slow);
        assert!(scene.server.get("/a").is_some());
        client.answer(OpCode::Create).await.unwrap();
        scene
            .server
            .inject(Fault::delay(60 * SECOND))
            .unwrap()
            .keep();
        send_delayed(&scene, &mut client, &[create("/b")]).await;
        scene.server.reset_faults();
        assert!(scene.server.get("/b").is_some());
        client.answer(OpCode::Create).await.unwrap();
        client.check_quiet().await;
        scene.end();
    });
}

/// Like a request that was on its way when its client disconnected.
#[test]
fn delayed_request_is_served_after_its_client_disconnected() {
    both(async |scene| {
        let mut client = scene.open().await;
        let slow = scene.server.inject(Fault::delay(SECOND)).unwrap();
        send_delayed(&scene, &mut client, &[create("/a")]).await;
        drop(client);
        assert_eq!(scene.server.connections(), 1);
        scene.server.advance(SECOND);
        assert!(scene.server.get("/a").is_some());
        while scene.server.connections() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(slow.hits(), 1);
        scene.end();
    });
}

#[test]
fn reply_to_a_delayed_request_reaches_a_client_that_sends_no_more() {
    both(async |scene| {
        let mut client = scene.open().await;
        let _slow = scene.server.inject(Fault::delay(SECOND)).unwrap();
        send_delayed(&scene, &mut client, &[create("/a")]).await;
        client.stream.shutdown().await.unwrap();
        scene.server.advance(SECOND);
        client.answer(OpCode::Create).await.unwrap();
        client.expect_end().await;
        assert_eq!(scene.server.connections(), 0);
        scene.end();
    });
}

#[test]
fn delayed_request_is_discarded_when_the_server_closes_its_connection() {
    both(async |scene| {
        let (mut cut, session) = scene.open_session().await;
        let mut expired = scene.open().await;
        let fault = Fault::delay(40 * SECOND).on(OpCode::Create);
        let slow = scene.server.inject(fault).unwrap();
        send_delayed(&scene, &mut cut, &[create("/cut")]).await;
        send_delayed(&scene, &mut expired, &[create("/expired")]).await;
        assert!(scene.server.disconnect(session.session_id).is_ok());
        cut.expect_end().await;
        // The other session expires before its reply is due.
        scene.server.advance(20 * SECOND);
        expired.expect_end().await;
        assert_eq!(scene.server.faults()[0].held, 0);
        scene.server.advance(40 * SECOND);
        assert_eq!(scene.server.children("/").unwrap(), ["zookeeper"]);
        assert_eq!(slow.hits(), 2);
        scene.end();
    });
}

/// Backpressure stops a client that writes 3 MB after a delayed request, until that is served.
#[test]
fn writes_after_a_delayed_request_wait_and_none_is_lost() {
    both(async |scene| {
        let mut client = scene.open().await;
        client.must(&create("/a")).await;
        let fault = Fault::delay(SECOND).on(OpCode::Exists);
        let _slow = scene.server.inject(fault).unwrap();
        send_delayed(&scene, &mut client, &[wire::exists("/", false)]).await;
        let requests: Vec<_> = (0..3_000).map(|_| wire::set("/a", &[1; 1_000])).collect();
        let mut out = Vec::new();
        for (xid, request) in (1_000..).zip(&requests) {
            request.encode(minikeeper_protocol::Xid(xid), &mut out);
        }
        let (mut reading, mut writing) = tokio::io::split(client.stream);
        let writer = tokio::spawn(async move {
            writing.write_all(&out).await.unwrap();
            writing
        });
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(scene.server.get("/a").unwrap().1.version, 0);
        scene.server.advance(SECOND);
        use tokio::io::AsyncReadExt as _;
        for _ in 0..=requests.len() {
            let mut message = vec![0; reading.read_u32().await.unwrap() as usize];
            reading.read_exact(&mut message).await.unwrap();
        }
        assert_eq!(scene.server.get("/a").unwrap().1.version, 3_000);
        drop(writer.await.unwrap());
        scene.end();
    });
}

#[test]
fn server_shuts_down_with_delayed_requests() {
    both(async |scene| {
        let mut client = scene.open().await;
        let mut gone = scene.open().await;
        let fault = Fault::delay(SECOND).on(OpCode::Create);
        scene.server.inject(fault).unwrap().keep();
        send_delayed(&scene, &mut client, &[create("/a")]).await;
        send_delayed(&scene, &mut gone, &[create("/b")]).await;
        drop(gone);
        scene.server.shutdown().await.unwrap();
        client.expect_end().await;
    });
}

/// On the system clock a delay ends without `advance`. The paused runtime makes the wait instant.
#[test]
fn delay_ends_without_advance_on_the_system_clock() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Server::builder().start().await.unwrap();
        let scene = Scene::new(server, false);
        let mut client = scene.open().await;
        let fault = Fault::delay(3 * SECOND).on(OpCode::Create);
        let _slow = scene.server.inject(fault).unwrap();
        client.must(&create("/a")).await;
        client.must(&wire::exists("/a", false)).await;
        scene.end();
    });
}
