//! Clients that cost memory. The bounds are wide, for other tests run in the same process; what
//! is asked for is far beyond them.

use std::time::Duration;

use minikeeper_protocol::{ConnectRequest, CreateMode, Request, Xid, Zxid};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{
    Logged, Scene, TIMEOUT_MS, alone_with_memory, memory_kib, raise_open_files_limit, stuck_reader,
    wait_until,
};

/// What the process may grow by. Unit: KiB.
const GROWTH_KIB_MAX: usize = 300 << 10;

#[track_caller]
fn assert_grown_little(before_kib: usize) {
    let grown_kib = memory_kib().saturating_sub(before_kib);
    assert!(grown_kib < GROWTH_KIB_MAX, "grown by {grown_kib} KiB");
}

/// Goal: replies a client does not read cost no more than the backlog. Method: ask for four
/// gigabytes and read nothing.
#[test]
fn replies_never_read_are_not_made() {
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
    // Others are served in between, and the server continues to take turns.
    for _ in 0..50 {
        scene.check_bystander();
    }
    assert_grown_little(before_kib);
    assert_eq!(scene.server.connections(), 2);
    drop(client);
    scene.wait_alone();
    scene.end();
}

/// Makes events for a watcher that does not read, until the server has had enough of it.
fn flood(scene: &Scene, writer: &mut Wire, path: &str) {
    // Each event is as long as its path; two thousand of them are 400 MB.
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

/// Goal: events a client does not read cost no more than `outbox_bytes_max`; its connection is
/// closed then, although the socket is full, and its session lives on.
#[test]
fn events_never_read_close_the_connection_at_the_outbox_limit() {
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

/// The same for a client whose replies fill the socket: no task empties its outbox any more, and
/// still it is closed.
#[test]
fn events_behind_replies_never_read_close_the_connection_at_the_outbox_limit() {
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

/// A hundred watchers that never read had 1.45 GB together, each below `outbox_bytes_max`.
#[test]
fn events_that_no_watcher_reads_cost_no_more_than_unsent_bytes_max_together() {
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
    // 200 KB for each of 60, 60 times: 720 MB, of which sockets take some.
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

/// The same for replies: each connection may keep its backlog and one reply.
#[test]
fn replies_that_no_client_reads_cost_no_more_than_unsent_bytes_max_together() {
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
    wait_until("the ones with most are cut", || {
        logged.server.limit_counts().unsent_bytes_rejected > 20
    });
    assert_grown_little(before_kib);
    writer.ping();
    drop(readers);
    logged.server.check().unwrap();
}

/// A client whose socket is full cannot keep its connection from being cut.
#[test]
fn connection_with_a_full_socket_is_cut_by_disconnect_expiry_and_move() {
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

/// Goal: connections leave nothing behind. Method: ten thousand, in chunks; some say nothing,
/// some say half of a handshake, some open a session and close it.
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
fn handshakes_never_finished_are_closed_in_time() {
    let scene = Scene::new();
    let mut silent = scene.connect();
    let mut half = scene.connect();
    half.send_raw(&[0, 0, 0, 45, 0, 0]);
    let mut in_time = scene.connect();
    wait_until("all are accepted", || scene.server.connections() == 4);
    scene.server.advance(Duration::from_millis(9_999));
    in_time.handshake(60_000);
    assert_eq!(scene.server.connections(), 4);
    scene.server.advance(Duration::from_millis(1));
    silent.expect_closed();
    half.expect_closed();
    wait_until("both are gone", || scene.server.connections() == 2);
    in_time.ping();
    scene.end();
}
