//! Injecting faults, waiting for hits, and removing faults.

use std::time::Duration;

use minikeeper::{ErrorCode, Fault, FaultError, NotHit, OpCode, blocking};
use minikeeper_protocol::Request;
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use super::client::both;
use crate::kit::TIMEOUT_MS;

#[test]
fn fault_is_removed_with_its_guard_unless_kept() {
    both(async |scene| {
        let mut client = scene.open().await;
        let asked = wire::exists("/", false);
        let fault = || Fault::error(ErrorCode::NoAuth).on(OpCode::Exists);
        {
            let _guard = scene.server.inject(fault()).unwrap();
            assert!(client.call(&asked).await.is_err());
        }
        client.must(&asked).await;
        let id = scene.server.inject(fault()).unwrap().keep();
        assert!(client.call(&asked).await.is_err());
        assert!(scene.server.remove_fault(id).is_ok());
        assert_eq!(scene.server.remove_fault(id), Err(NotHit::Unknown { id }));
        client.must(&asked).await;
        scene.server.inject(fault()).unwrap().keep();
        let guard = scene.server.inject(fault()).unwrap();
        scene.server.reset_faults();
        assert!(scene.server.faults().is_empty());
        client.must(&asked).await;
        // Ids are not reused: dropping the old guard removes no other fault.
        let last = scene.server.inject(fault()).unwrap().keep();
        assert!(last > guard.id());
        drop(guard);
        assert_eq!(scene.server.faults().len(), 1);
        scene.end();
    });
}

#[test]
fn waiting_for_hits_ends_or_reports_what_was_seen() {
    both(async |scene| {
        let server = &scene.server;
        let mut client = scene.open().await;
        let fault = Fault::error(ErrorCode::NoAuth).on(OpCode::Exists).skip(1);
        let guard = server.inject(fault).unwrap();
        let asked = wire::exists("/", false);
        client.must(&asked).await;
        let short = Duration::from_millis(1);
        let in_vain = guard.hit_within(short).await.unwrap_err();
        assert_eq!(
            in_vain.to_string(),
            "fault 1: acted 0 of 1 times within 1ms; messages that matched it: 1"
        );
        let waiting = server.universe().clone();
        let waiting = tokio::spawn(async move { waiting.until_hit(1, 2, PATIENCE).await });
        for _ in 0..2 {
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            assert!(client.call(&asked).await.is_err());
        }
        assert_eq!(waiting.await.unwrap(), Ok(2));
        assert_eq!(guard.hit().await, Ok(2));
        let waiting = server.universe().clone();
        let waiting = tokio::spawn(async move { waiting.until_hit(1, 3, PATIENCE).await });
        tokio::task::yield_now().await;
        drop(guard);
        let removed = NotHit::Removed {
            id: 1,
            hits: 2,
            wanted: 3,
        };
        assert_eq!(waiting.await.unwrap(), Err(removed));
        let unknown = Err(NotHit::Unknown { id: 1 });
        assert_eq!(server.until_hit(1, 1, PATIENCE).await, unknown);
        scene.end();
    });
}

#[test]
fn blocking_server_waits_for_hits() {
    let server = blocking::Server::builder().manual_clock().start().unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let guard = server
        .inject(Fault::drop_request().on(OpCode::Ping))
        .unwrap();
    client.send(&Request::Ping);
    client.send(&Request::Ping);
    assert_eq!(server.until_hit(guard.id(), 2, PATIENCE), Ok(2));
    let in_vain = server.until_hit(guard.id(), 3, Duration::from_millis(1));
    assert!(matches!(in_vain, Err(NotHit::TimedOut { hits: 2, .. })));
}

#[test]
fn number_of_faults_has_a_limit() {
    both(async |scene| {
        let inject = || scene.server.inject(Fault::cut().at("/never").optional());
        let guards: Vec<_> = (0..1_000).map(|_| inject().unwrap()).collect();
        assert_eq!(inject().unwrap_err(), FaultError::TooMany { max: 1_000 });
        // The server checks each of them, and none matches.
        scene.open().await.check_quiet().await;
        drop(guards);
        inject().unwrap().keep();
        scene.end();
    });
}

#[test]
fn invalid_fault_is_refused_with_a_reason() {
    both(async |scene| {
        let refused = |fault| scene.server.inject(fault).unwrap_err().to_string();
        assert_eq!(
            refused(Fault::cut().at("locks/*")),
            "path pattern \"locks/*\": must begin with \"/\" or \"*\" to match a path"
        );
        assert_eq!(
            refused(Fault::cut().times(0)),
            "count 0: the fault would never act; omit count for any number of times"
        );
        assert_eq!(
            refused(Fault::refuse().on(OpCode::Create)),
            "action \"refuse\": cannot be restricted to an operation: there is no request yet"
        );
        assert!(scene.server.faults().is_empty());
    });
}
