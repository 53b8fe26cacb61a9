//! Clients that stand still or die, servers that are out of reach, and servers that come back older.

use std::time::Duration;

use minikeeper::{Fault, FaultAction, FaultOp, OpCode, Tree};
use minikeeper_protocol::{ConnectRequest, CreateMode, EventKind, Request};
use minikeeper_test_kit::wire;

use super::client::{Client, Scene, both};
use crate::kit::TIMEOUT_MS;

const SECOND: Duration = Duration::from_secs(1);

fn create(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Persistent)
}

fn ephemeral(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Ephemeral)
}

/// Connects and asks for a session again. Returns whether the server takes it: not if it has closed the
/// connection.
async fn resumes(scene: &Scene, session: &minikeeper_protocol::ConnectResponse) -> Option<bool> {
    let mut client = scene.connect().await;
    let mut hello = ConnectRequest::new(TIMEOUT_MS);
    hello.session_id = session.session_id;
    hello.password = session.password.clone();
    client.hello(&hello).await;
    let frame = client.frame().await?;
    let response =
        minikeeper_protocol::ConnectResponse::decode(&mut minikeeper_protocol::Reader::new(&frame));
    Some(response.unwrap().session_id == session.session_id)
}

async fn is_refused(scene: &Scene) -> bool {
    let mut client: Client = scene.connect().await;
    client.hello(&ConnectRequest::new(TIMEOUT_MS)).await;
    client.frame().await.is_none()
}

async fn until_held(scene: &Scene) {
    while scene.server.faults().iter().all(|info| info.held == 0) {
        tokio::task::yield_now().await;
    }
}

#[test]
fn paused_client_gets_its_reply_and_learns_later_that_its_session_is_gone() {
    both(async |scene| {
        let (mut client, mut other) = (scene.open().await, scene.open().await);
        client.must(&ephemeral("/lock")).await;
        other.call(&wire::exists("/lock", true)).await.unwrap();
        let fault = Fault::pause(SECOND)
            .on(wire::children("/", false).op())
            .once();
        let paused = scene.server.inject(fault).unwrap();
        client
            .send(&[wire::children("/", false), create("/a")])
            .await;
        until_held(&scene).await;
        assert_eq!(other.event().await.0, EventKind::Deleted);
        assert_eq!(scene.server.sessions().len(), 1);
        assert!(client.is_silent().await);
        scene.server.advance(SECOND);
        // The reply is that of before its session expired.
        client
            .answer(wire::children("/", false).op())
            .await
            .unwrap();
        assert!(client.is_silent().await);
        scene.server.advance(SECOND);
        client.expect_end().await;
        assert!(scene.server.get("/a").is_none());
        assert_eq!(paused.hits(), 1);
        scene.end();
    });
}

#[test]
fn pause_ends_with_its_fault() {
    both(async |scene| {
        let mut client = scene.open().await;
        let fault = Fault::pause(SECOND).on(OpCode::Create).once();
        let paused = scene.server.inject(fault).unwrap();
        client.send(&[create("/a")]).await;
        until_held(&scene).await;
        drop(paused);
        client.answer(OpCode::Create).await.unwrap();
        client.expect_end().await;
        scene.end();
    });
}

#[test]
fn nobody_is_served_in_an_outage_and_sessions_live_on() {
    both(async |scene| {
        let ((mut client, session), mut other) = (scene.open_session().await, scene.open().await);
        let fault = Fault::outage(SECOND).on(OpCode::Create).once();
        let outage = scene.server.inject(fault).unwrap();
        client.send(&[create("/a")]).await;
        client.expect_end().await;
        other.expect_end().await;
        assert!(scene.server.get("/a").is_none());
        assert!(is_refused(&scene).await);
        assert_eq!(resumes(&scene, &session).await, None);
        scene.server.advance(SECOND);
        assert_eq!(resumes(&scene, &session).await, Some(true));
        let mut new = scene.open().await;
        // It has acted once.
        new.must(&create("/a")).await;
        assert_eq!(outage.hits(), 3);
        scene.end();
    });
}

#[test]
fn outage_without_a_limit_lasts_until_it_is_removed() {
    both(async |scene| {
        let fault = Fault::outage(Duration::MAX).on(FaultOp::Connect).once();
        let outage = scene.server.inject(fault).unwrap();
        assert!(is_refused(&scene).await);
        scene.server.advance(1_000 * SECOND);
        assert!(is_refused(&scene).await);
        drop(outage);
        assert!(!is_refused(&scene).await);
        scene.end();
    });
}

#[test]
fn outage_of_one_client_leaves_the_others_alone() {
    both(async |scene| {
        let ((mut client, session), mut other) = (scene.open_session().await, scene.open().await);
        let fault = Fault::client_outage(SECOND).on(OpCode::Create).once();
        let outage = scene.server.inject(fault).unwrap();
        client.send(&[create("/a")]).await;
        client.expect_end().await;
        other.must(&create("/b")).await;
        assert_eq!(resumes(&scene, &session).await, None);
        scene.server.advance(SECOND);
        assert_eq!(resumes(&scene, &session).await, Some(true));
        drop(outage);
        scene.end();
    });
}

#[test]
fn clients_that_have_died_are_not_served_and_new_ones_are() {
    both(async |scene| {
        let ((mut client, session), mut other) = (scene.open_session().await, scene.open().await);
        client.must(&ephemeral("/e")).await;
        let crash = scene
            .server
            .inject(Fault::crash().on(OpCode::SetData).once())
            .unwrap();
        client.send(&[wire::set("/e", b"1")]).await;
        client.expect_end().await;
        other.expect_end().await;
        assert_eq!(scene.server.get("/e").unwrap().0.unwrap(), b"1");
        assert_eq!(resumes(&scene, &session).await, None);
        let mut new = scene.open().await;
        new.call(&wire::exists("/e", true)).await.unwrap();
        for _ in 0..4 {
            scene.server.advance(Duration::from_millis(
                u64::from(TIMEOUT_MS.unsigned_abs()) / 2,
            ));
        }
        // Its session was not closed: it had to expire.
        assert_eq!(new.event().await.0, EventKind::Deleted);
        drop(crash);
        scene.end();
    });
}

#[test]
fn rollback_takes_the_last_changes_back() {
    both(async |scene| {
        for (changes, left) in [(1, &["/a", "/b"][..]), (2, &["/a"]), (100, &[])] {
            let before = scene.server.snapshot();
            let rollback = scene
                .server
                .inject(Fault::rollback(changes).on(OpCode::Create).nth(3))
                .unwrap();
            let (mut client, session) = scene.open_session().await;
            for path in ["/a", "/b"] {
                client.must(&create(path)).await;
                client.must(&wire::children("/", false)).await;
            }
            client.must(&create("/c")).await;
            client.expect_end().await;
            let there = ["/a", "/b", "/c"].into_iter();
            let there: Vec<_> = there
                .filter(|path| scene.server.get(path).is_some())
                .collect();
            assert_eq!(there, left, "{changes}");
            // The last of 100 changes is that of its session.
            assert_eq!(resumes(&scene, &session).await, Some(changes < 100));
            drop(rollback);
            scene.server.restore(&before).unwrap();
        }
        scene.end();
    });
}

/// A change between two requests is one, too.
#[test]
fn rollback_takes_back_what_was_done_between_requests() {
    both(async |scene| {
        let rollback = scene
            .server
            .inject(Fault::rollback(2).on(OpCode::SetData).once())
            .unwrap();
        let mut client = scene.open().await;
        client.must(&create("/a")).await;
        scene
            .server
            .seed(&Tree::from_yaml("/seeded: 1").unwrap())
            .unwrap();
        client.must(&wire::set("/a", b"new")).await;
        client.expect_end().await;
        assert!(scene.server.get("/seeded").is_none());
        assert_eq!(scene.server.get("/a").unwrap().0.unwrap(), b"");
        drop(rollback);
        scene.end();
    });
}

#[test]
fn senseless_outage_or_rollback_is_refused() {
    both(async |scene| {
        for (fault, why) in [
            (Fault::rollback(0), "at least 1"),
            (Fault::rollback(1_001), "at most 1,000"),
            (Fault::pause(Duration::ZERO), "at least 1 ms"),
            (Fault::outage(Duration::ZERO), "at least 1 ms"),
            (
                Fault::pause(SECOND).on(FaultOp::Connect),
                "the client has no session yet",
            ),
            (
                Fault::client_outage(SECOND).on(FaultOp::Connect),
                "the client has no session yet",
            ),
        ] {
            let error = scene.server.inject(fault.clone()).unwrap_err().to_string();
            assert!(error.contains(why), "{fault:?}: {error}");
        }
        let lasting = FaultAction::from_name("outage", None, None);
        assert_eq!(lasting, Ok(FaultAction::Outage(Duration::MAX)));
        scene.end();
    });
}
