//! Faults of connections and handshakes, and silenced sessions.

use std::{net::IpAddr, time::Duration};

use minikeeper::{Fault, FaultOp, OpCode};
use minikeeper_protocol::{ConnectRequest, CreateMode, Request, Zxid};
use minikeeper_test_kit::wire;

use super::client::both;
use crate::kit::TIMEOUT_MS;

/// Longer than a session's timeout rounded up to ticks.
const LONG: Duration = Duration::from_secs(15);

#[test]
fn refused_connection_is_closed_at_accept() {
    both(async |scene| {
        let refusing = scene.server.inject(Fault::refuse().times(2)).unwrap();
        for _ in 0..2 {
            scene.connect().await.expect_end().await;
        }
        scene.open().await.check_quiet().await;
        assert_eq!(refusing.hits(), 2);
        assert_eq!(scene.server.sessions().len(), 1);
        scene.end();
    });
}

#[test]
fn refuse_with_an_address_spares_other_addresses() {
    both(async |scene| {
        let elsewhere: IpAddr = [127, 0, 0, 2].into();
        let here: IpAddr = [127, 0, 0, 1].into();
        let _elsewhere = scene
            .server
            .inject(Fault::refuse().of(elsewhere).optional());
        scene.open().await.check_quiet().await;
        let _here = scene.server.inject(Fault::refuse().of(here));
        scene.connect().await.expect_end().await;
    });
}

/// The server opens a session that its client never learns of; the session expires after its
/// timeout.
#[test]
fn lost_reply_to_a_handshake_leaves_a_session_behind() {
    both(async |scene| {
        let fault = Fault::lose_reply().on(FaultOp::Connect).once();
        let lost = scene.server.inject(fault).unwrap();
        let mut client = scene.connect().await;
        client.hello(&ConnectRequest::new(TIMEOUT_MS)).await;
        client.expect_end().await;
        assert_eq!(lost.hits(), 1);
        assert_eq!(scene.server.sessions().len(), 1);
        scene.server.advance(LONG);
        assert_eq!(scene.server.sessions(), []);
        scene.end();
    });
}

#[test]
fn dropped_handshake_opens_nothing() {
    both(async |scene| {
        let _dropped = scene
            .server
            .inject(Fault::drop_request().on(OpCode::CreateSession).once());
        let mut client = scene.connect().await;
        client.hello(&ConnectRequest::new(TIMEOUT_MS)).await;
        assert!(client.is_silent().await);
        assert_eq!(scene.server.sessions(), []);
        scene.open().await.check_quiet().await;
        scene.end();
    });
}

/// Simulates a client that pauses for long: no heartbeat, no reconnect, then expiry.
#[test]
fn silenced_session_is_not_served_and_expires() {
    both(async |scene| {
        let (mut client, session) = scene.open_session().await;
        let mut other = scene.open().await;
        client
            .must(&wire::create("/e", b"", CreateMode::Ephemeral))
            .await;
        let silence = Fault::silence(session.session_id);
        let silenced = scene.server.inject(silence).unwrap();
        scene.server.advance(Duration::from_secs(9));
        client.send(&[Request::Ping, wire::delete("/e")]).await;
        assert!(client.is_silent().await);
        other.check_quiet().await;
        assert_eq!(silenced.hits(), 2);
        // A new connection of the session is not served either.
        let mut again = scene.connect().await;
        let password = session.password.as_deref().unwrap();
        let resume = wire::resume(session.session_id, password, Zxid(0), TIMEOUT_MS);
        again.hello(&resume).await;
        assert!(again.is_silent().await);
        assert!(scene.server.get("/e").is_some());
        scene.server.advance(Duration::from_secs(6));
        assert!(scene.server.get("/e").is_none());
        client.expect_end().await;
        other.check_quiet().await;
        scene.end();
    });
}

#[test]
fn unsilenced_session_survives() {
    both(async |scene| {
        let (mut client, session) = scene.open_session().await;
        let silence = Fault::silence(session.session_id);
        let silenced = scene.server.inject(silence).unwrap();
        scene.server.advance(Duration::from_secs(9));
        client.send(&[Request::Ping]).await;
        assert!(client.is_silent().await);
        drop(silenced);
        client.check_quiet().await;
        scene.server.advance(Duration::from_secs(9));
        client.check_quiet().await;
        scene.end();
    });
}

/// The verbs of [`minikeeper::Universe`] silence and unsilence the selected sessions.
#[test]
fn silence_and_unsilence_select_sessions_by_owner() {
    both(async |scene| {
        let mut client = scene.open().await;
        client
            .must(&wire::create("/e", b"", CreateMode::Ephemeral))
            .await;
        assert_eq!(scene.server.silence("/e"), Ok(1));
        client.send(&[wire::delete("/e")]).await;
        assert!(client.is_silent().await);
        assert_eq!(scene.server.unsilence("/e"), Ok(1));
        assert!(scene.server.unsilence("/e").is_err());
        client.check_quiet().await;
        assert!(scene.server.get("/e").is_some());
        assert_eq!(scene.server.silence("/e"), Ok(1));
        assert!(scene.server.silence("/nobody").is_err());
        scene.server.advance(Duration::from_secs(9));
        client.send(&[Request::Ping]).await;
        assert!(client.is_silent().await);
        scene.server.advance(Duration::from_secs(1));
        assert!(scene.server.get("/e").is_none());
        client.expect_end().await;
        scene.end();
    });
}

/// A request answered with an error extends the session; a dropped request does not.
#[test]
fn heartbeats_with_injected_errors_keep_a_session_and_dropped_ones_do_not() {
    both(async |scene| {
        let (mut refused, session) = scene.open_session().await;
        let mut dropped = scene.open().await;
        let error = Fault::error(minikeeper::ErrorCode::SystemError).on(OpCode::Ping);
        let _error = scene.server.inject(error.of(session.session_id));
        let _drop = scene
            .server
            .inject(Fault::drop_request().on(OpCode::Ping).optional());
        for _ in 0..4 {
            scene.server.advance_strictly(Duration::from_secs(5));
            assert!(refused.call(&Request::Ping).await.is_err());
            let _ = scene.server.sessions();
        }
        assert_eq!(scene.server.sessions().len(), 1);
        dropped.expect_end().await;
        scene.end();
    });
}
