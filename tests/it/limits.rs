//! Each limit of the configuration: its effect, and the log line that names it.

use std::time::Duration;

use minikeeper_protocol::{
    CreateMode, ErrorCode, MultiOp, MultiReadOp, MultiResult, Reply, Request, Xid,
};
use minikeeper_test_kit::wire::{self, Wire, four_letter};

use crate::kit::{Logged, Scene, TIMEOUT_MS, wait_until};

/// `docs/zookeeper-protocol.md` section 17.1: a connection above the limit is reset without a byte.
#[test]
fn connection_beyond_connections_max_is_reset() {
    let logged = Logged::start(|config| config.connections_max = 2);
    let (first, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let (mut second, _) = Wire::open(logged.address(), TIMEOUT_MS);
    for _ in 0..3 {
        Wire::connect(logged.address()).expect_reset();
    }
    logged.wait_for_line(&["WARN", "connections_max"]);
    second.ping();
    drop(first);
    wait_until("the first connection is closed", || {
        logged.server.connections() == 1
    });
    wait_until("the next connection is accepted", || {
        let mut wire = Wire::connect(logged.address());
        let mut bytes = Vec::new();
        minikeeper_protocol::ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
        wire.try_send_raw(&bytes).is_ok() && wire.try_frame("the handshake").is_ok()
    });
}

/// `docs/zookeeper-protocol.md` section 17.1: connections count per address, handshake done or not.
#[test]
fn connection_beyond_connections_per_address_max_is_reset() {
    let logged = Logged::start(|config| config.connections_per_address_max = 3);
    let mut open: Vec<_> = (0..3).map(|_| Wire::connect(logged.address())).collect();
    wait_until("all connections are accepted", || {
        logged.server.connections() == 3
    });
    Wire::connect(logged.address()).expect_reset();
    logged.wait_for_line(&["WARN", "connections_per_address_max", "127.0.0.1"]);
    open.pop();
    wait_until("one connection is closed", || {
        logged.server.connections() == 2
    });
    wait_until("the next connection is accepted", || {
        let mut wire = Wire::connect(logged.address());
        wire.try_send_raw(b"ruok").is_ok()
            && wire.try_frame("imok").is_err()
            && logged.server.connections() <= 3
    });
    open[0].handshake(TIMEOUT_MS);
    open[0].ping();
}

/// The default of 0 means no limit.
#[test]
fn connections_per_address_are_unlimited_by_default() {
    let scene = Scene::new();
    let clients: Vec<_> = (0..100).map(|_| scene.open()).collect();
    assert_eq!(scene.server.connections(), 101);
    drop(clients);
    scene.wait_alone();
    scene.end();
}

/// A handshake beyond `sessions_max` is not answered; existing sessions can be resumed.
#[test]
fn handshake_beyond_sessions_max_is_closed_and_a_session_can_be_resumed() {
    let logged = Logged::start(|config| config.sessions_max = 2);
    let (_first, session) = Wire::open(logged.address(), TIMEOUT_MS);
    let (mut second, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let mut third = Wire::connect(logged.address());
    let mut bytes = Vec::new();
    minikeeper_protocol::ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    third.send_raw(&bytes);
    third.expect_closed();
    logged.wait_for_line(&["WARN", "sessions_max", "max=2"]);
    assert_eq!(logged.server.limit_counts().sessions_rejected, 1);
    assert!(four_letter(logged.address(), b"srst").contains("reset"));
    assert_eq!(logged.server.limit_counts().sessions_rejected, 0);
    let mut again = Wire::connect(logged.address());
    let password = session.password.unwrap();
    let resumed = again.resume(
        session.session_id,
        &password,
        minikeeper_protocol::Zxid(0),
        TIMEOUT_MS,
    );
    assert_eq!(resumed.session_id, session.session_id);
    second.must(&Request::CloseSession);
    let (_, fourth) = Wire::open(logged.address(), TIMEOUT_MS);
    assert_eq!(fourth.timeout_ms, TIMEOUT_MS);
}

/// Requests that would register a watch are refused, reads without one are served, and a fired
/// watch frees its place.
#[test]
fn watch_beyond_watches_max_is_refused_with_quota_exceeded() {
    let logged = Logged::start(|config| config.watches_max = 3);
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    for path in ["/a", "/b", "/c"] {
        client.refused(&wire::exists(path, true));
    }
    for request in [
        wire::exists("/d", true),
        wire::get("/", true),
        wire::children("/", true),
        wire::watch("/e"),
        Request::SetWatches {
            relative_zxid: minikeeper_protocol::Zxid(1 << 40),
            data: vec![],
            exist: vec!["/f".into()],
            child: vec![],
        },
    ] {
        assert_eq!(
            client.refused(&request),
            ErrorCode::QuotaExceeded,
            "{request:?}"
        );
    }
    logged.wait_for_line(&["WARN", "watches_max", "max=3"]);
    assert_eq!(logged.server.limit_counts().watches_rejected, 5);
    client.must(&wire::get("/", false));
    client.send(&wire::create("/a", b"", CreateMode::Persistent));
    assert_eq!(client.event().path, "/a");
    assert!(
        client
            .answer(minikeeper_protocol::OpCode::Create)
            .outcome
            .is_ok()
    );
    client.must(&wire::get("/", true));
    logged.server.check().unwrap();
}

/// A request of 39 KB, with 2,200 times getData of a megabyte, made the server build a reply of 2
/// GB, which terminated it.
#[test]
fn read_beyond_reply_bytes_max_is_refused_and_the_connection_stays_open() {
    let logged = Logged::start(|config| config.reply_bytes_max = Some(8 << 20));
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    client.must(&wire::create(
        "/big",
        &[0; 1_000_000],
        CreateMode::Persistent,
    ));
    let read = MultiReadOp::GetData {
        path: Some("/big".into()),
        watch: false,
    };
    let many = Request::MultiRead(vec![read.clone(); 2_200]);
    assert_eq!(client.refused(&many), ErrorCode::MarshallingError);
    logged.wait_for_line(&["WARN", "reply_bytes_max", "max=8388608"]);
    assert_eq!(logged.server.limit_counts().replies_rejected, 1);
    let few = client.must(&Request::MultiRead(vec![read; 8]));
    let Reply::Multi(results) = few else {
        unreachable!("the reply to a multiRead has results");
    };
    assert_eq!(results.len(), 8);
    logged.server.check().unwrap();
}

#[test]
fn multi_beyond_multi_operations_max_is_refused() {
    let logged = Logged::start(|config| config.multi_operations_max = 3);
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let check = MultiOp::Check {
        path: Some("/".into()),
        version: -1,
    };
    client.must(&Request::Multi(vec![check.clone(); 3]));
    let many = Request::Multi(vec![check; 4]);
    assert_eq!(client.refused(&many), ErrorCode::MarshallingError);
    logged.wait_for_line(&["WARN", "multi_operations_max", "max=3"]);
    assert_eq!(logged.server.limit_counts().multi_operations_rejected, 1);
}

/// Creates and growing sets are refused, alone and in a multi; deletes and shrinking sets free
/// space.
#[test]
fn write_beyond_tree_bytes_max_is_refused_with_quota_exceeded() {
    let logged = Logged::start(|config| config.tree_bytes_max = 4096);
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    client.must(&wire::create("/a", &[0; 1000], CreateMode::Persistent));
    client.must(&wire::create("/b", &[0; 1000], CreateMode::Persistent));
    let large = wire::create("/c", &[0; 3000], CreateMode::Persistent);
    assert_eq!(client.refused(&large), ErrorCode::QuotaExceeded);
    assert_eq!(
        client.refused(&wire::set("/a", &[0; 4000])),
        ErrorCode::QuotaExceeded
    );
    logged.wait_for_line(&["WARN", "tree_bytes_max", "max=4096"]);
    assert_eq!(logged.server.limit_counts().tree_bytes_rejected, 2);
    let Request::Create(create) = large.clone() else {
        unreachable!("a create is a create");
    };
    let multi = Request::Multi(vec![
        MultiOp::Delete {
            path: Some("/b".into()),
            version: -1,
        },
        MultiOp::Create(create),
    ]);
    let failed = [None, Some(ErrorCode::QuotaExceeded)].map(MultiResult::Error);
    assert_eq!(client.must(&multi), Reply::Multi(failed.to_vec()));
    assert_eq!(
        logged.server.children("/").unwrap(),
        ["zookeeper", "a", "b"]
    );
    client.must(&wire::set("/a", b""));
    client.must(&wire::delete("/b"));
    client.must(&large);
    logged.server.check().unwrap();
}

/// `docs/zookeeper-protocol.md` section 2.1, with a limit other than the default.
#[test]
fn frame_beyond_frame_bytes_max_is_closed() {
    let logged = Logged::start(|config| config.frame_bytes_max = 100);
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let overhead = 8 + 4 + "/a".len() + 4 + 4;
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    client.must(&wire::set("/a", &vec![0; 100 - overhead]));
    client.send(&wire::set("/a", &vec![0; 101 - overhead]));
    client.expect_closed();
    logged.wait_for_line(&["101 bytes", "limit of 100 bytes", "frame_bytes_max"]);
    let mut unopened = Wire::connect(logged.address());
    unopened.send_raw(&101_i32.to_be_bytes());
    unopened.expect_closed();
}

/// A client could make the server buffer a megabyte of a handshake that never completes.
#[test]
fn handshake_of_more_than_8_kib_is_closed_and_a_long_password_is_refused() {
    let logged = Logged::start(|_| {});
    let mut long = Wire::connect(logged.address());
    long.send_raw(&8_193_i32.to_be_bytes());
    long.expect_closed();
    logged.wait_for_line(&["handshake: frame of 8193 bytes", "limit of 8192 bytes"]);
    let mut wrong = Wire::connect(logged.address());
    let refused = wrong.hello(&minikeeper_protocol::ConnectRequest {
        session_id: minikeeper_protocol::SessionId(7),
        password: Some(vec![1; 8_000].into()),
        ..minikeeper_protocol::ConnectRequest::new(TIMEOUT_MS)
    });
    assert_eq!(refused.session_id, minikeeper_protocol::SessionId::NONE);
}

/// `docs/zookeeper-protocol.md` section 6.1, rule 4.
#[test]
fn handshake_beyond_handshake_timeout_is_closed() {
    let logged = Logged::start(|config| config.handshake_timeout = Duration::from_millis(100));
    let mut silent = Wire::connect(logged.address());
    wait_until("the connection is accepted", || {
        logged.server.connections() == 1
    });
    logged.server.advance(Duration::from_millis(99));
    assert_eq!(logged.server.connections(), 1);
    logged.server.advance(Duration::from_millis(1));
    silent.expect_closed();
    logged.wait_for_line(&["connection closed", "handshake_timeout"]);
}

/// `outbox_bytes_max` limits the events queued by other connections' turns.
#[test]
fn outbox_beyond_outbox_bytes_max_closes_the_connection() {
    let logged = Logged::start(|config| config.outbox_bytes_max = 100_000);
    let (mut writer, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let path = format!("/{}", "e".repeat(200_000));
    let (mut watcher, _) = Wire::open(logged.address(), TIMEOUT_MS);
    watcher.must(&wire::watch(&path));
    // A single event exceeds the limit.
    writer.must(&wire::create(&path, b"", CreateMode::Persistent));
    watcher.expect_closed();
    logged.wait_for_line(&["WARN", "outbox_bytes_max", "100000"]);
    assert_eq!(logged.server.limit_counts().outboxes_overflowed, 1);
    writer.ping();
    logged.server.check().unwrap();
}

/// Events caused by the client's own requests are not limited, as replies are not.
#[test]
fn own_events_do_not_count_against_outbox_bytes_max() {
    let scene = Scene::with(|config| config.outbox_bytes_max = 10);
    let mut client = scene.open();
    client.must(&wire::watch("/own"));
    for request in [
        wire::create("/own", b"", CreateMode::Persistent),
        wire::delete("/own"),
    ] {
        let xid = client.send(&request);
        assert_eq!(client.event().path, "/own");
        assert_eq!(client.answer(request.op()).xid, xid);
    }
    scene.end();
}

/// `write_backlog_bytes_max` and `turn_requests_max` slow a client down, but refuse no request.
#[test]
fn backlog_and_turn_limits_refuse_nothing() {
    let logged = Logged::start(|config| {
        config.write_backlog_bytes_max = 1;
        config.turn_requests_max = 1;
    });
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    client.must(&wire::create("/a", &[1; 100_000], CreateMode::Persistent));
    let mut bytes = Vec::new();
    for xid in 1..=100 {
        wire::get("/a", false).encode(Xid(xid), &mut bytes);
    }
    client.send_raw(&bytes);
    for xid in 1..=100 {
        let answer = client.answer(minikeeper_protocol::OpCode::GetData);
        assert_eq!(answer.xid, Xid(xid));
        assert!(matches!(answer.outcome, Ok(Reply::Data(..))));
    }
    assert!(!logged.text().contains("WARN"), "{}", logged.text());
}

#[test]
fn listen_backlog_of_1_serves_clients_one_after_the_other() {
    let logged = Logged::start(|config| config.listen_backlog = 1);
    for _ in 0..20 {
        Wire::open(logged.address(), TIMEOUT_MS).0.ping();
    }
}

/// The counts of all limits decided together whether a limit was logged, so that a limit which was reached
/// after others was not named. So did those of the limits on connections.
#[test]
fn each_limit_is_named_in_the_log_when_it_is_first_reached() {
    let logged = Logged::start(|config| {
        config.watches_max = 1;
        config.tree_bytes_max = 8_192;
        config.multi_operations_max = 2;
        config.acl_entries_max = 1;
        config.connections_max = 3;
        config.connections_per_address_max = 2;
    });
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    client.refused(&wire::exists("/a", true));
    for path in ["/b", "/c", "/d"] {
        client.refused(&wire::exists(path, true));
    }
    logged.wait_for_line(&["WARN", "watches_max", "max=1"]);
    // The fourth, sixth and so on of all: none of them is logged by the count of all.
    client.refused(&wire::create("/e", &[0; 9_000], CreateMode::Persistent));
    logged.wait_for_line(&["WARN", "tree_bytes_max", "max=8192"]);
    let check = MultiOp::Check {
        path: Some("/".into()),
        version: -1,
    };
    client.refused(&Request::Multi(vec![check; 3]));
    logged.wait_for_line(&["WARN", "multi_operations_max", "max=2"]);
    let (second, _) = Wire::open(logged.address(), TIMEOUT_MS);
    for _ in 0..3 {
        Wire::connect(logged.address()).expect_reset();
    }
    logged.wait_for_line(&["WARN", "connections_per_address_max", "max=2"]);
    drop(second);
}
