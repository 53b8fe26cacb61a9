//! Replies and events that arrive late, connections that close after a reply, sessions that expire
//! with one, and faults that only tell.

use std::time::Duration;

use minikeeper::{ErrorCode, Fault, FaultFor, FaultOp, OpCode};
use minikeeper_protocol::{ConnectRequest, CreateMode, EventKind, Request};
use minikeeper_test_kit::wire;

use super::client::{Scene, both};
use crate::kit::TIMEOUT_MS;

const SECOND: Duration = Duration::from_secs(1);

fn create(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Persistent)
}

fn ephemeral(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Ephemeral)
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

async fn until_held(scene: &Scene, wanted: usize) {
    until(|| {
        scene
            .server
            .faults()
            .iter()
            .map(|info| info.held)
            .sum::<usize>()
            == wanted
    })
    .await;
}

#[test]
fn delayed_reply_comes_after_its_delay_and_before_what_follows() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        client.call(&wire::exists("/seen", true)).await.unwrap_err();
        let fault = Fault::delay_reply(3 * SECOND)
            .on(OpCode::Create)
            .at("/slow");
        let slow = scene.server.inject(fault).unwrap();
        client.send(&[create("/slow"), create("/next")]).await;
        until_held(&scene, 1).await;
        assert_eq!(slow.hits(), 1);
        // The request is carried out; the next one is not read.
        assert!(scene.server.get("/slow").is_some());
        assert!(scene.server.get("/next").is_none());
        // An event waits behind the reply.
        other.must(&create("/seen")).await;
        scene.server.advance(3 * SECOND - Duration::from_millis(1));
        assert!(client.is_silent().await);
        scene.server.advance(Duration::from_millis(1));
        client.answer(OpCode::Create).await.unwrap();
        assert_eq!(client.event().await.1, "/seen");
        client.answer(OpCode::Create).await.unwrap();
        assert_eq!(scene.server.faults()[0].held, 0);
        scene.end();
    });
}

#[test]
fn delayed_reply_is_sent_when_its_fault_is_removed() {
    both(async |scene| {
        let mut client = scene.open().await;
        let slow = scene
            .server
            .inject(Fault::delay_reply(SECOND).on(OpCode::Create));
        client.send(&[create("/a")]).await;
        until_held(&scene, 1).await;
        drop(slow);
        client.answer(OpCode::Create).await.unwrap();
        client.check_quiet().await;
        scene.end();
    });
}

/// The delay ended in the same move of the clock as the session, and the reply was sent after all.
#[test]
fn reply_is_lost_if_its_session_expires_before_its_delay_ends() {
    both(async |scene| {
        let mut client = scene.open().await;
        let timeout = Duration::from_millis(TIMEOUT_MS.unsigned_abs().into());
        let fault = Fault::delay_reply(3 * timeout).on(OpCode::Create).once();
        let _slow = scene.server.inject(fault).unwrap();
        client.send(&[create("/a")]).await;
        until_held(&scene, 1).await;
        scene.server.advance(3 * timeout);
        client.expect_end().await;
        assert!(scene.server.get("/a").is_some());
        scene.end();
    });
}

/// The session is silent while its reply waits, so it expires; other sessions do not.
#[test]
fn reply_delayed_beyond_the_timeout_is_lost_with_its_session() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        let timeout = Duration::from_millis(TIMEOUT_MS.unsigned_abs().into());
        let fault = Fault::delay_reply(3 * timeout).on(OpCode::Create).once();
        let _slow = scene.server.inject(fault).unwrap();
        client.send(&[ephemeral("/e")]).await;
        until_held(&scene, 1).await;
        assert!(scene.server.get("/e").is_some());
        scene.server.advance(2 * timeout);
        client.expect_end().await;
        assert!(scene.server.get("/e").is_none());
        other.must(&Request::Ping).await;
        scene.end();
    });
}

#[test]
fn request_delayed_by_one_fault_may_have_its_reply_delayed_by_another() {
    both(async |scene| {
        let mut client = scene.open().await;
        let late = scene.server.inject(Fault::delay(SECOND).on(OpCode::Create));
        let slow = scene
            .server
            .inject(Fault::delay_reply(SECOND).on(OpCode::Create));
        client.send(&[create("/a")]).await;
        until_held(&scene, 1).await;
        scene.server.advance(SECOND);
        assert!(scene.server.get("/a").is_some());
        assert!(client.is_silent().await);
        scene.server.advance(SECOND);
        client.answer(OpCode::Create).await.unwrap();
        client.check_quiet().await;
        drop((late, slow));
        scene.end();
    });
}

#[test]
fn client_may_leave_while_its_reply_waits() {
    both(async |scene| {
        let mut client = scene.open().await;
        let slow = scene
            .server
            .inject(Fault::delay_reply(SECOND).on(OpCode::Create));
        client.send(&[ephemeral("/a")]).await;
        until_held(&scene, 1).await;
        drop(client);
        scene.server.advance(SECOND);
        until_held(&scene, 0).await;
        until(|| scene.server.connections() == 0).await;
        assert!(scene.server.get("/a").is_some());
        drop(slow);
        scene.end();
    });
}

#[test]
fn connection_is_cut_after_the_reply() {
    both(async |scene| {
        let (mut client, session) = scene.open_session().await;
        let cut = scene
            .server
            .inject(Fault::cut_after().on(OpCode::Create).once());
        client.send(&[create("/a"), create("/b")]).await;
        client.answer(OpCode::Create).await.unwrap();
        client.expect_end().await;
        assert!(scene.server.get("/a").is_some());
        assert!(scene.server.get("/b").is_none());
        assert_eq!(scene.server.sessions()[0].id, session.session_id);
        drop(cut);
        scene.end();
    });
}

#[test]
fn session_expires_after_the_reply() {
    both(async |scene| {
        let (mut client, session) = scene.open_session().await;
        let mut other = scene.open().await;
        other.call(&wire::exists("/e", true)).await.unwrap_err();
        let expired = scene
            .server
            .inject(Fault::expire().on(OpCode::Create).once())
            .unwrap();
        client.send(&[ephemeral("/e")]).await;
        client.answer(OpCode::Create).await.unwrap();
        client.expect_end().await;
        assert!(scene.server.get("/e").is_none());
        assert_eq!(other.event().await.0, EventKind::Created);
        assert_eq!(scene.server.sessions().len(), 1);
        let hit = expired.last_hit().unwrap();
        assert_eq!(hit.session, Some(session.session_id));
        assert_eq!((hit.op, hit.path.as_deref()), ("create", Some("/e")));
        scene.end();
    });
}

/// Closing the session leaves none to expire.
#[test]
fn fault_that_expires_a_session_may_act_on_its_end() {
    both(async |scene| {
        let mut client = scene.open().await;
        let expired = scene.server.inject(Fault::expire()).unwrap();
        client.send(&[Request::CloseSession]).await;
        client.answer(OpCode::CloseSession).await.unwrap();
        client.expect_end().await;
        assert_eq!(expired.hits(), 1);
        scene.end();
    });
}

#[test]
fn event_is_delayed_until_the_watchers_next_request_is_answered() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        for path in ["/a", "/b"] {
            client.call(&wire::exists(path, true)).await.unwrap_err();
        }
        let late = scene
            .server
            .inject(Fault::delay_events(SECOND).once())
            .unwrap();
        other.must(&create("/a")).await;
        assert_eq!(late.hits(), 1);
        // Only the first is delayed, and a ping does not end that.
        other.must(&create("/b")).await;
        assert_eq!(client.event().await.1, "/b");
        client.check_quiet().await;
        client.must(&wire::get("/a", false)).await;
        client.check_quiet().await;
        client.send(&[wire::get("/a", false)]).await;
        assert_eq!(client.event().await, (EventKind::Created, "/a".to_owned()));
        client.answer(OpCode::GetData).await.unwrap();
        scene.end();
    });
}

#[test]
fn event_is_delayed_no_longer_than_its_time() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        client.call(&wire::exists("/a", true)).await.unwrap_err();
        let late = scene.server.inject(Fault::delay_events(SECOND));
        other.must(&create("/a")).await;
        scene.server.advance(SECOND - Duration::from_millis(1));
        assert!(client.is_silent().await);
        scene.server.advance(Duration::from_millis(1));
        assert_eq!(client.event().await.1, "/a");
        assert_eq!(scene.server.faults()[0].held, 0);
        drop(late);
        scene.end();
    });
}

#[test]
fn trigger_tells_what_was_served_and_changes_nothing() {
    both(async |scene| {
        let (mut client, session) = scene.open_session().await;
        let told = scene.server.inject(Fault::trigger().at("/a*")).unwrap();
        let error = Fault::error(ErrorCode::NoAuth).at("/ab");
        let refused = scene.server.inject(error).unwrap();
        assert_eq!(told.last_hit(), None);
        client.must(&create("/a")).await;
        let hit = told.last_hit().unwrap();
        assert_eq!(
            (hit.session, hit.op, hit.path.as_deref(), hit.xid),
            (Some(session.session_id), "create", Some("/a"), Some(1))
        );
        // Faults after it act, too.
        assert_eq!(client.call(&create("/ab")).await, Err(ErrorCode::NoAuth));
        assert_eq!((told.hits(), refused.hits()), (2, 1));
        scene.end();
    });
}

#[test]
fn ordinals_of_requests_leave_out_handshakes_pings_and_ends_of_sessions() {
    both(async |scene| {
        let third = scene
            .server
            .inject(Fault::cut().on(FaultOp::Request).nth(3))
            .unwrap();
        let mut client = scene.open().await;
        client.must(&create("/a")).await;
        client.must(&Request::Ping).await;
        let mut other = scene.open().await;
        other.must(&Request::CloseSession).await;
        client.must(&create("/b")).await;
        client.must(&Request::Ping).await;
        client.send(&[create("/c")]).await;
        client.expect_end().await;
        assert_eq!(third.last_hit().unwrap().path.as_deref(), Some("/c"));
        scene.end();
    });
}

#[test]
fn clients_are_numbered_by_their_first_request() {
    both(async |scene| {
        let (mut late, mut early) = (scene.open().await, scene.open().await);
        let cut = Fault::cut().of(FaultFor::Client(2)).on(OpCode::Create);
        let cut = scene.server.inject(cut).unwrap();
        early.must(&create("/a")).await;
        late.send(&[create("/b")]).await;
        late.expect_end().await;
        early.must(&create("/c")).await;
        assert_eq!(cut.hits(), 1);
        assert_eq!(scene.server.faults()[0].matches, 1);
        scene.end();
    });
}

/// Its client waited for ever: the handshake counted as done.
#[test]
fn connection_closes_after_a_lost_handshake() {
    both(async |scene| {
        let lost = Fault::drop_request().on(FaultOp::Connect).once();
        let lost = scene.server.inject(lost).unwrap();
        let mut client = scene.connect().await;
        client.hello(&ConnectRequest::new(TIMEOUT_MS)).await;
        until(|| lost.hits() == 1).await;
        assert!(client.is_silent().await);
        scene.server.advance(60 * SECOND);
        client.expect_end().await;
        scene.open().await;
        scene.end();
    });
}

/// Its client waited for ever, and kept the session with pings.
#[test]
fn session_expires_after_its_end_was_lost() {
    both(async |scene| {
        let mut client = scene.open().await;
        let lost = Fault::drop_request().on(OpCode::CloseSession).once();
        let lost = scene.server.inject(lost).unwrap();
        client.send(&[Request::CloseSession, Request::Ping]).await;
        until(|| lost.hits() == 1).await;
        assert!(client.is_silent().await);
        // Pings cannot keep it.
        scene.server.advance(60 * SECOND);
        client.expect_end().await;
        assert!(scene.server.sessions().is_empty());
        scene.end();
    });
}

/// A client whose session had sent no path yet was left out.
#[test]
fn disconnect_all_of_a_universe_closes_connections_that_have_sent_no_path() {
    both(async |scene| {
        let universe = scene.server.create_universe("u").unwrap();
        let (mut client, _) = scene.open_session().await;
        universe.disconnect_all();
        client.expect_end().await;
        // With a second universe it might be the other's.
        let second = scene.server.create_universe("v").unwrap();
        let (mut client, _) = scene.open_session().await;
        universe.disconnect_all();
        client.must(&Request::Ping).await;
        drop(second);
        scene.end();
    });
}

#[test]
fn disconnect_all_ends_every_wait() {
    both(async |scene| {
        let _late = scene.server.inject(Fault::delay(SECOND).on(OpCode::Create));
        let _slow = scene
            .server
            .inject(Fault::delay_reply(SECOND).on(OpCode::SetData));
        let _never = scene
            .server
            .inject(Fault::never_answer().on(OpCode::Exists));
        let _lost = scene
            .server
            .inject(Fault::drop_request().on(OpCode::CloseSession));
        let requests = [
            create("/a"),
            wire::set("/zookeeper", b""),
            wire::exists("/", true),
            Request::CloseSession,
        ];
        let mut clients = Vec::new();
        for request in requests {
            let mut client = scene.open().await;
            client.send(&[request, Request::Ping]).await;
            clients.push(client);
        }
        let lost = Fault::drop_request().on(FaultOp::Connect).once();
        let _lost_handshake = scene.server.inject(lost).unwrap();
        let mut client = scene.connect().await;
        client.hello(&ConnectRequest::new(TIMEOUT_MS)).await;
        clients.push(client);
        until(|| scene.server.faults().iter().all(|info| info.hits == 1)).await;
        scene.server.disconnect_all();
        for client in &mut clients[..2] {
            client.expect_end().await;
        }
        clients[2].answer(OpCode::Ping).await.unwrap();
        for client in &mut clients[2..] {
            client.expect_end().await;
        }
        scene.end();
    });
}
