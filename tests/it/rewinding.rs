//! Snapshots in memory and restoring them, as clients see it.

use std::time::Duration;

use minikeeper::RestoreError;
use minikeeper_protocol::{CreateMode, ErrorCode, EventKind};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{TIMEOUT_MS, resume, start, wait_until};

/// Source: the documentation of [`minikeeper::Universe::restore`].
#[test]
fn snapshot_can_be_restored_repeatedly() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", b"1", CreateMode::Persistent));
    let stat = server.get("/a").unwrap().1;
    let before = server.snapshot();
    for _ in 0..3 {
        client.must(&wire::set("/a", b"2"));
        client.must(&wire::create("/a/b", b"", CreateMode::Ephemeral));
        server.restore(&before).unwrap();
        assert_eq!(server.get("/a"), Some((Some(b"1".to_vec()), stat)));
        let missing = client.refused(&wire::get("/a/b", false));
        assert_eq!(missing, ErrorCode::NoNode);
    }
    server.check().unwrap();
}

#[test]
fn session_opened_after_the_snapshot_is_closed_and_unknown() {
    let server = start();
    let (mut old, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let before = server.snapshot();
    let (mut new, session) = Wire::open(server.addr(), TIMEOUT_MS);
    server.restore(&before).unwrap();
    new.expect_closed();
    wait_until("the connection is closed", || server.connections() == 1);
    let (_, refused) = resume(&server, &session);
    assert_eq!(refused.timeout_ms, 0);
    old.ping();
}

/// A session that expired after the snapshot can be resumed after the restore, with its ephemeral.
#[test]
fn session_expired_after_the_snapshot_can_be_resumed() {
    let server = start();
    let (mut owner, session) = Wire::open(server.addr(), TIMEOUT_MS);
    owner.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let before = server.snapshot();
    assert!(server.expire(session.session_id).is_ok());
    owner.expect_closed();
    server.restore(&before).unwrap();
    let (mut owner, resumed) = resume(&server, &session);
    assert_eq!(resumed.session_id, session.session_id);
    owner.must(&wire::get("/e", false));
    // Without a client, the restored session expires after its timeout.
    drop(owner);
    wait_until("the connection is closed", || server.connections() == 0);
    server.advance(Duration::from_secs(60));
    assert!(server.get("/e").is_none());
}

#[test]
fn watch_fired_after_the_snapshot_fires_again() {
    let server = start();
    let (mut watcher, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut writer, _) = Wire::open(server.addr(), TIMEOUT_MS);
    writer.must(&wire::create("/a", b"", CreateMode::Persistent));
    watcher.must(&wire::get("/a", true));
    let before = server.snapshot();
    for _ in 0..2 {
        writer.must(&wire::set("/a", b"x"));
        assert_eq!(watcher.event().kind, EventKind::DataChanged);
        server.restore(&before).unwrap();
    }
}

#[test]
fn restore_of_a_foreign_or_invalidated_snapshot_fails() {
    let (server, other) = (start(), start());
    let (old, foreign) = (server.snapshot(), other.snapshot());
    let young = server.snapshot();
    server.restore(&old).unwrap();
    assert_eq!(server.restore(&young), Err(RestoreError::Gone));
    assert_eq!(server.restore(&foreign), Err(RestoreError::OtherUniverse));
    server.restore(&old).unwrap();
}

/// The server keeps nothing once the last snapshot is dropped; its check would fail otherwise.
#[test]
fn dropped_snapshots_leave_nothing_behind() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let (first, second) = (server.snapshot(), server.snapshot());
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    drop(first);
    client.must(&wire::create("/b", b"", CreateMode::Persistent));
    server.restore(&second).unwrap();
    assert!(server.get("/a").is_none());
    drop(second);
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    server.check().unwrap();
}
