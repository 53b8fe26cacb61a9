//! Sessions: resume, move, expiry, negotiation, close. The clock is frozen.

use std::time::Duration;

use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, CreateMode, ErrorCode, EventKind, OpCode, Request, SessionId,
    Xid, Zxid,
};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{Scene, TIMEOUT_MS, wait_until};

const SECOND: Duration = Duration::from_secs(1);

/// Resumes a session over a new connection.
#[track_caller]
fn resume(scene: &Scene, session: &ConnectResponse, timeout_ms: i32) -> (Wire, ConnectResponse) {
    let mut wire = scene.connect();
    let password = session.password.as_deref().expect("always sent");
    let response = wire.resume(session.session_id, password, Zxid(0), timeout_ms);
    (wire, response)
}

/// Checks that a handshake was refused. `docs/zookeeper-protocol.md` section 6.4, rule 5: timeout,
/// id and password are zero, and the connection closes.
#[track_caller]
fn assert_refused(mut wire: Wire, response: &ConnectResponse) {
    assert_eq!(response, &ConnectResponse::refused(Some(false)));
    wire.expect_closed();
}

/// `docs/zookeeper-protocol.md` section 6.4, rule 4: id and password stay the same, the resume
/// takes no zxid; ephemerals stay, watches do not.
#[test]
fn resumed_session_keeps_ephemerals_but_not_watches() {
    let scene = Scene::new();
    let (mut first, session) = scene.open_session();
    first.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    first.must(&wire::watch("/e"));
    let zxid = first.call(&Request::Ping).zxid;
    drop(first);
    scene.wait_alone();
    let (mut second, resumed) = resume(&scene, &session, TIMEOUT_MS);
    assert_eq!(resumed, session);
    assert_eq!(second.call(&Request::Ping).zxid, zxid);
    second.must(&wire::set("/e", b"no event comes first"));
    let check = Request::CheckWatches {
        path: Some("/e".into()),
        kind: 3,
    };
    assert_eq!(second.refused(&check), ErrorCode::NoWatcher);
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 6.2, row 6, and 6.4, rule 1.
#[test]
fn session_that_moves_closes_its_old_connection() {
    let scene = Scene::new();
    let (mut old, session) = scene.open_session();
    old.must(&wire::watch("/m"));
    let (mut new, resumed) = resume(&scene, &session, TIMEOUT_MS);
    assert_eq!(resumed.session_id, session.session_id);
    old.expect_closed();
    new.must(&wire::create("/m", b"", CreateMode::Ephemeral));
    wait_until("the old connection is closed", || {
        scene.server.connections() == 2
    });
    // The end of the old connection must not affect the new one.
    new.ping();
    assert!(scene.server.get("/m").is_some());
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.4, rule 1: an attempt with a wrong password is refused,
/// but closes the owner's connection; the session survives.
#[test]
fn resume_with_a_wrong_password_is_refused_and_closes_the_old_connection() {
    let scene = Scene::new();
    let (mut rightful, session) = scene.open_session();
    rightful.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    for password in [&[0; 16][..], b"", &[7; 15], &[7; 17]] {
        let mut thief = scene.connect();
        let refused = thief.resume(session.session_id, password, Zxid(0), TIMEOUT_MS);
        assert_refused(thief, &refused);
    }
    rightful.expect_closed();
    assert!(scene.server.get("/e").is_some());
    let (_again, resumed) = resume(&scene, &session, TIMEOUT_MS);
    assert_eq!(resumed.session_id, session.session_id);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.4, rule 5: the response is the same for unknown and
/// expired sessions.
#[test]
fn unknown_and_expired_sessions_are_refused_with_zeros() {
    let scene = Scene::new();
    let mut stranger = scene.connect();
    let refused = stranger.resume(SessionId(0x1234), &[1; 16], Zxid(0), TIMEOUT_MS);
    assert_refused(stranger, &refused);
    let (mut client, session) = scene.open_session();
    scene.server.advance_strictly(12 * SECOND);
    client.expect_closed();
    let (wire, refused) = resume(&scene, &session, TIMEOUT_MS);
    assert_refused(wire, &refused);
    // A client that sent the short form gets the short response of 36 bytes.
    let mut old_client = scene.connect();
    let mut hello = wire::resume(session.session_id, &[0; 16], Zxid(0), TIMEOUT_MS);
    hello.read_only = None;
    assert_eq!(old_client.hello(&hello), ConnectResponse::refused(None));
    old_client.expect_closed();
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.2, row 2: for new and existing sessions; the session's
/// current connection stays open. Negative zxids pass.
#[test]
fn client_that_has_seen_a_later_zxid_is_closed_without_a_byte() {
    let scene = Scene::new();
    let (mut client, session) = scene.open_session();
    let zxid = client.call(&Request::Ping).zxid;
    for id in [SessionId::NONE, session.session_id, SessionId(0x1234)] {
        let mut ahead = scene.connect();
        let password = session.password.as_deref().unwrap();
        let mut bytes = Vec::new();
        wire::resume(id, password, Zxid(zxid.0 + 1), TIMEOUT_MS).encode(&mut bytes);
        ahead.send_raw(&bytes);
        ahead.expect_closed();
    }
    client.ping();
    for seen in [zxid, Zxid(-1), Zxid(i64::MIN)] {
        let mut level = scene.connect();
        let opened = level.resume(SessionId::NONE, &[0; 16], seen, TIMEOUT_MS);
        assert_eq!(opened.timeout_ms, TIMEOUT_MS);
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 14.1 and 14.6: the session expires at the first tick after
/// its timeout; its ephemerals are deleted under one zxid, and watchers get events.
#[test]
fn silent_session_expires_at_the_tick_and_its_ephemerals_with_it() {
    let scene = Scene::with(|config| config.rounds_expiry = true);
    let (mut owner, session) = scene.open_session();
    let mut watcher = scene.connect();
    watcher.handshake(60_000);
    watcher.must(&wire::create("/p", b"", CreateMode::Persistent));
    for path in ["/p/a", "/p/b"] {
        owner.must(&wire::create(path, b"", CreateMode::Ephemeral));
        watcher.must(&wire::exists(path, true));
    }
    watcher.must(&wire::children("/p", true));
    // (0 + 10,000) / 3,000 + 1 ticks: due at 12,000.
    scene.server.advance_strictly(Duration::from_millis(11_999));
    watcher.ping();
    assert!(scene.server.get("/p/a").is_some());
    scene.server.advance_strictly(Duration::from_millis(1));
    let events: Vec<_> = (0..3).map(|_| watcher.event()).collect();
    assert!(events.iter().all(|event| event.zxid == events[0].zxid));
    let kinds: Vec<_> = events
        .iter()
        .map(|event| (event.kind, &*event.path))
        .collect();
    assert_eq!(
        kinds,
        [
            (EventKind::Deleted, "/p/a"),
            (EventKind::ChildrenChanged, "/p"),
            (EventKind::Deleted, "/p/b"),
        ]
    );
    assert_eq!(watcher.call(&Request::Ping).zxid, events[0].zxid);
    owner.expect_closed();
    assert!(
        scene
            .server
            .sessions()
            .iter()
            .all(|other| other.id != session.session_id)
    );
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 14.2: pings and reads extend a session, events sent to it
/// do not.
#[test]
fn requests_keep_a_session_alive_and_events_do_not() {
    let scene = Scene::new();
    let (mut pinging, _) = scene.open_session();
    let (mut reading, _) = scene.open_session();
    let (mut watching, _) = scene.open_session();
    watching.must(&wire::watch("/w"));
    pinging.must(&wire::create("/w", b"", CreateMode::Persistent));
    for _ in 0..4 {
        scene.server.advance_strictly(5 * SECOND);
        pinging.ping();
        reading.must(&wire::exists("/", false));
        pinging.must(&wire::set("/w", b""));
    }
    assert_eq!(scene.server.sessions().len(), 3);
    // Only events come before the close, and no notice of the expiry.
    assert_eq!(watching.event().kind, EventKind::Created);
    while let Ok(message) = watching.try_frame("an event or the close") {
        assert_eq!(message[..4], Xid::EVENT.0.to_be_bytes());
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 14.4.
#[test]
fn session_without_a_connection_survives_until_its_deadline() {
    let scene = Scene::with(|config| config.rounds_expiry = true);
    let (mut owner, session) = scene.open_session();
    owner.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    drop(owner);
    scene.wait_alone();
    scene.server.advance(Duration::from_millis(11_999));
    assert!(scene.server.get("/e").is_some());
    // A reconnect extends the session (`docs/zookeeper-protocol.md` section 14.2).
    let (again, _) = resume(&scene, &session, TIMEOUT_MS);
    drop(again);
    scene.wait_alone();
    scene.server.advance(Duration::from_millis(9_999));
    assert!(scene.server.get("/e").is_some());
    scene.server.advance(5 * SECOND);
    assert!(scene.server.get("/e").is_none());
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.2, row 3: clamped without an error, here to 2 and 20
/// ticks of 3 s.
#[test]
fn timeout_is_clamped_between_minimum_and_maximum() {
    let scene = Scene::new();
    for (requested_ms, granted_ms) in [
        (i32::MIN, 6_000),
        (-1, 6_000),
        (0, 6_000),
        (5_999, 6_000),
        (6_001, 6_001),
        (60_000, 60_000),
        (60_001, 60_000),
        (i32::MAX, 60_000),
    ] {
        let (_wire, response) = Wire::open(scene.address(), requested_ms);
        assert_eq!(response.timeout_ms, granted_ms, "requested {requested_ms}");
    }
    scene.end();
    let scene = Scene::with(|config| {
        config.session_timeout_min_ms = Some(100);
        config.session_timeout_max_ms = Some(200);
    });
    for (requested_ms, granted_ms) in [(0, 100), (150, 150), (1000, 200)] {
        let (_wire, response) = Wire::open(scene.address(), requested_ms);
        assert_eq!(response.timeout_ms, granted_ms, "requested {requested_ms}");
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.2, rule 2: the response has 37 bytes with the read-only
/// byte, 36 without.
#[test]
fn connect_response_has_the_read_only_byte_only_if_the_request_had_it() {
    let scene = Scene::new();
    for (read_only, length) in [(Some(false), 37), (Some(true), 37), (None, 36)] {
        let mut wire = scene.connect();
        let mut bytes = Vec::new();
        let hello = ConnectRequest {
            read_only,
            ..ConnectRequest::new(TIMEOUT_MS)
        };
        hello.encode(&mut bytes);
        wire.send_raw(&bytes);
        let response = wire.frame("the connect response");
        assert_eq!(response.len(), length, "{read_only:?}");
        assert_eq!(response.get(36).copied().unwrap_or(0), 0, "never read-only");
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 6.2, rule 3, and 6.3, rule 3.
#[test]
fn handshake_of_a_new_session_ignores_version_and_password() {
    let scene = Scene::new();
    for password in [None, Some(vec![]), Some(vec![9; 5]), Some(vec![9; 1000])] {
        let mut wire = scene.connect();
        let response = wire.hello(&ConnectRequest {
            protocol_version: 12345,
            password: password.map(Into::into),
            ..ConnectRequest::new(TIMEOUT_MS)
        });
        assert_eq!(response.protocol_version, 0);
        assert_eq!(response.password.unwrap().len(), 16);
        assert_ne!(response.session_id.0, 0);
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.4, rule 4: the timeout negotiated by a reconnect applies
/// from then on, shorter or longer.
#[test]
fn reconnect_changes_the_timeout() {
    let scene = Scene::new();
    let (_first, session) = scene.open_session();
    let (_second, resumed) = resume(&scene, &session, 30_000);
    assert_eq!(resumed.timeout_ms, 30_000);
    scene.server.advance_strictly(20 * SECOND);
    assert_eq!(scene.server.sessions().len(), 2);
    let (mut third, resumed) = resume(&scene, &session, 6_000);
    assert_eq!(resumed.timeout_ms, 6_000);
    let info = scene.server.sessions();
    let info = info
        .iter()
        .find(|info| info.id == session.session_id)
        .unwrap();
    assert_eq!(info.timeout, 6 * SECOND);
    assert!(info.is_connected);
    scene.server.advance_strictly(9 * SECOND);
    third.expect_closed();
    assert_eq!(scene.server.sessions().len(), 1);
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 6.5 and 10.24: the server replies and closes the
/// connection; later pipelined requests get no reply; the session ends at once.
#[test]
fn close_session_is_answered_and_later_requests_are_not() {
    let scene = Scene::new();
    let (mut client, session) = scene.open_session();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let mut bytes = Vec::new();
    Request::CloseSession.encode(Xid(5), &mut bytes);
    wire::create("/late", b"", CreateMode::Persistent).encode(Xid(6), &mut bytes);
    Request::Ping.encode(Xid::PING, &mut bytes);
    client.send_raw(&bytes);
    let answer = client.answer(OpCode::CloseSession);
    assert_eq!((answer.xid, answer.outcome.is_ok()), (Xid(5), true));
    assert_eq!(client.rest(), b"");
    assert!(scene.server.get("/e").is_none());
    assert!(scene.server.get("/late").is_none());
    let (wire, refused) = resume(&scene, &session, TIMEOUT_MS);
    assert_refused(wire, &refused);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 12.9: the session's watch on its own ephemeral fires before
/// the reply.
#[test]
fn close_session_fires_its_own_watches_before_the_reply() {
    let scene = Scene::new();
    let mut client = scene.open();
    let mut other = scene.open();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    client.must(&wire::exists("/e", true));
    other.must(&wire::exists("/e", true));
    client.send(&Request::CloseSession);
    let event = client.event();
    assert_eq!(event.kind, EventKind::Deleted);
    assert_eq!(client.answer(OpCode::CloseSession).zxid, event.zxid);
    client.expect_closed();
    assert_eq!(other.event(), event);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 24, item 59: a client may change connections in quick
/// succession.
#[test]
fn session_that_moves_many_times_is_never_lost() {
    let scene = Scene::new();
    let (mut current, session) = scene.open_session();
    current.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let mut before = Vec::new();
    for _ in 0..50 {
        let (next, resumed) = resume(&scene, &session, TIMEOUT_MS);
        assert_eq!(resumed.session_id, session.session_id);
        before.push(std::mem::replace(&mut current, next));
        current.must(&wire::set("/e", b""));
    }
    for mut old in before {
        old.expect_closed();
    }
    assert_eq!(scene.server.get("/e").unwrap().1.version, 50);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 14.7: a restarted server begins with a later zxid than its
/// clients have seen, so it can reply that their sessions have expired.
#[test]
fn session_of_a_restarted_server_is_refused_with_a_response() {
    let restart = || minikeeper::blocking::Server::builder().start().unwrap();
    let server = restart();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let mut last = Zxid(0);
    for _ in 0..100 {
        last = client
            .call(&wire::create("/n-", b"", CreateMode::PersistentSequential))
            .zxid;
    }
    server.shutdown().unwrap();
    client.expect_closed();
    let server = restart();
    let mut client = Wire::connect(server.addr());
    let password = session.password.as_deref().unwrap();
    let response = client.resume(session.session_id, password, last, TIMEOUT_MS);
    assert_refused(client, &response);
}
