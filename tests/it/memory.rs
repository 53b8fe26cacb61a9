//! Clients that cost memory. The bounds are wide because other tests run in the same process; the
//! clients request far more.

use std::time::Duration;

use minikeeper_protocol::{ConnectRequest, CreateMode, Request, Xid, Zxid};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{
    Logged, Scene, TIMEOUT_MS, alone_with_memory, memory_kib, raise_open_files_limit, stuck_reader,
    wait_until,
};

/// The limit of the growth of the process in KiB.
const GROWTH_KIB_MAX: usize = 300 << 10;

#[track_caller]
fn assert_grown_little(before_kib: usize) {
    let grown_kib = memory_kib().saturating_sub(before_kib);
    assert!(grown_kib < GROWTH_KIB_MAX, "grown by {grown_kib} KiB");
}

/// Replies that a client does not read cost no more memory than the backlog: the client requests 4
/// GB and reads nothing.
#[test]
fn unread_replies_are_not_built() {
    let _alone = alone_with_memory();
    let mut scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create(
        "/mb",
        &vec![1; 1_000_000],
        CreateMode::Persistent,
    ));
    let before_kib = memory_kib();
    let mut bytes = Vec::new();
    for xid in 1..=4000 {
        wire::get("/mb", false).encode(Xid(xid), &mut bytes);
    }
    client.send_raw(&bytes);
    // The server still serves other clients.
    for _ in 0..50 {
        scene.check_bystander();
    }
    assert_grown_little(before_kib);
    assert_eq!(scene.server.connections(), 2);
    drop(client);
    scene.wait_alone();
    scene.end();
}

/// Makes events for a watcher that does not read, until the server closes its connection.
fn flood(scene: &Scene, writer: &mut Wire, path: &str) {
    // Each event is as long as its path; 2,000 of them are 400 MB.
    for _ in 0..2000 {
        writer.must(&wire::set(path, b""));
        if scene.server.connections() == 2 {
            return;
        }
    }
    wait_until("the watcher's connection is closed", || {
        scene.server.connections() == 2
    });
}

fn long_path() -> String {
    format!("/{}", "e".repeat(200_000))
}

/// Events that a client does not read cost no more than `outbox_bytes_max`. Beyond it the server
/// closes the connection, even if the socket is full; the session survives.
#[test]
fn unread_events_close_the_connection_at_the_outbox_limit() {
    let _alone = alone_with_memory();
    let scene = Scene::with(|config| config.outbox_bytes_max = 1 << 20);
    let mut writer = scene.open();
    let path = long_path();
    writer.must(&wire::create(&path, b"", CreateMode::Persistent));
    let (mut watcher, session) = scene.open_session();
    watcher.must(&wire::watch(&path));
    let before_kib = memory_kib();
    flood(&scene, &mut writer, &path);
    assert_grown_little(before_kib);
    let mut again = scene.connect();
    let password = session.password.unwrap();
    let resumed = again.resume(session.session_id, &password, Zxid(0), TIMEOUT_MS);
    assert_eq!(resumed.session_id, session.session_id);
    scene.end();
}

/// Unread replies fill the client's socket, so that no task empties its outbox; the connection is
/// closed nevertheless.
#[test]
fn unread_events_after_unread_replies_close_the_connection_at_the_outbox_limit() {
    let _alone = alone_with_memory();
    let scene = Scene::with(|config| config.outbox_bytes_max = 1 << 20);
    let mut writer = scene.open();
    let path = long_path();
    writer.must(&wire::create(&path, b"", CreateMode::Persistent));
    writer.must(&wire::create(
        "/mb",
        &vec![1; 1_000_000],
        CreateMode::Persistent,
    ));
    let mut watcher = scene.open();
    watcher.must(&wire::watch(&path));
    let mut bytes = Vec::new();
    for xid in 1..=100 {
        wire::get("/mb", false).encode(Xid(xid), &mut bytes);
    }
    watcher.send_raw(&bytes);
    flood(&scene, &mut writer, &path);
    scene.end();
}

/// A hundred watchers that never read took 1.45 GB together, each below `outbox_bytes_max`.
#[test]
fn unread_events_of_all_connections_are_limited_by_unsent_bytes_max() {
    let _alone = alone_with_memory();
    let logged = Logged::start(|config| config.unsent_bytes_max = 100 << 20);
    let (mut writer, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let path = long_path();
    writer.must(&wire::create(&path, b"", CreateMode::Persistent));
    let watchers: Vec<_> = (0..60)
        .map(|_| {
            let (mut watcher, session) = Wire::open(logged.address(), TIMEOUT_MS);
            watcher.must(&wire::watch(&path));
            (watcher, session)
        })
        .collect();
    let before_kib = memory_kib();
    // 60 events of 200 KB for each of 60 watchers: 720 MB, of which the sockets buffer some.
    for _ in 0..60 {
        writer.must(&wire::set(&path, b""));
    }
    assert_grown_little(before_kib);
    logged.wait_for_line(&["WARN", "unsent_bytes_max", "max=104857600"]);
    let counts = logged.server.limit_counts();
    assert!(counts.unsent_bytes_rejected > 0);
    assert_eq!(counts.outboxes_overflowed, 0);
    assert_eq!(logged.server.sessions().len(), 1 + watchers.len());
    writer.ping();
    logged.server.check().unwrap();
}

/// Each connection may buffer its backlog and one reply; `unsent_bytes_max` limits their sum.
#[test]
fn unread_replies_of_all_connections_are_limited_by_unsent_bytes_max() {
    let _alone = alone_with_memory();
    let logged = Logged::start(|config| config.unsent_bytes_max = 100 << 20);
    let (mut writer, _) = Wire::open(logged.address(), TIMEOUT_MS);
    writer.must(&wire::create(
        "/mb",
        &vec![1; 1_000_000],
        CreateMode::Persistent,
    ));
    let read = minikeeper_protocol::MultiReadOp::GetData {
        path: Some("/mb".into()),
        watch: false,
    };
    let before_kib = memory_kib();
    let readers: Vec<_> = (0..30)
        .map(|_| {
            let (mut reader, _) = Wire::open(logged.address(), TIMEOUT_MS);
            reader.send(&Request::MultiRead(vec![read.clone(); 40]));
            reader
        })
        .collect();
    wait_until(
        "the connections with the most unsent bytes are closed",
        || logged.server.limit_counts().unsent_bytes_rejected > 20,
    );
    assert_grown_little(before_kib);
    writer.ping();
    drop(readers);
    logged.server.check().unwrap();
}

/// The server can close a connection whose socket is full.
#[test]
fn connection_with_a_full_socket_is_closed_by_disconnect_expiry_and_move() {
    let _alone = alone_with_memory();
    let scene = Scene::new();
    let stuck = |sign| stuck_reader(&scene.server, sign);
    let (_client, session) = stuck("/disconnect");
    assert!(scene.server.disconnect(session.session_id).is_ok());
    scene.wait_alone();
    let (_client, session) = stuck("/expiry");
    assert!(scene.server.expire(session.session_id).is_ok());
    scene.wait_alone();
    let (_client, session) = stuck("/move");
    let mut other = scene.connect();
    let password = session.password.unwrap();
    let resumed = other.resume(session.session_id, &password, Zxid(0), TIMEOUT_MS);
    assert_eq!(resumed.session_id, session.session_id);
    drop(other);
    scene.wait_alone();
    scene.end();
}

/// Closed connections leave no memory and no session behind: ten thousand, in chunks. Some send
/// nothing, some send half a handshake, some open a session and close it.
#[test]
fn ten_thousand_connections_leave_nothing_behind() {
    let _alone = alone_with_memory();
    const CHUNK: usize = 200;
    raise_open_files_limit();
    let mut scene = Scene::new();
    let mut hello = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    let before_kib = memory_kib();
    for chunk in 0..50 {
        let clients: Vec<_> = (0..CHUNK)
            .map(|number| {
                let mut client = scene.connect();
                match number % 10 {
                    0 => client.send_raw(&hello[..20]),
                    1 => {
                        client.handshake(TIMEOUT_MS);
                        client.must(&Request::CloseSession);
                    }
                    _ => {}
                }
                client
            })
            .collect();
        drop(clients);
        if chunk % 10 == 0 {
            scene.check_bystander();
        }
    }
    scene.wait_alone();
    assert_grown_little(before_kib);
    assert_eq!(scene.server.sessions().len(), 1);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.1, rule 4: a connection that never finishes its handshake
/// is closed without a byte; one that did is not.
#[test]
fn unfinished_handshakes_are_closed_at_the_handshake_timeout() {
    let scene = Scene::new();
    let mut silent = scene.connect();
    let mut half = scene.connect();
    half.send_raw(&[0, 0, 0, 45, 0, 0]);
    let mut in_time = scene.connect();
    wait_until("all connections are accepted", || {
        scene.server.connections() == 4
    });
    scene.server.advance(Duration::from_millis(9_999));
    in_time.handshake(60_000);
    assert_eq!(scene.server.connections(), 4);
    scene.server.advance(Duration::from_millis(1));
    silent.expect_closed();
    half.expect_closed();
    wait_until("both connections are closed", || {
        scene.server.connections() == 2
    });
    in_time.ping();
    scene.end();
}
