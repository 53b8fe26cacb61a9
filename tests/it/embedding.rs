//! A server inside the process of a test suite: start, inspect, advance the clock, disconnect,
//! stop.

use std::{error::Error as _, net::SocketAddr, time::Duration};

use expect_test::expect;
use minikeeper::{Server, StartError, blocking};
use minikeeper_protocol::{CreateMode, EventKind, SessionId, Zxid};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{
    TIMEOUT_MS, alone_with_memory, raise_open_files_limit, start, stuck_reader, wait_until,
};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn started_server_listens_and_reports_its_address() {
    let server = start();
    assert!(server.addr().ip().is_loopback());
    assert_ne!(server.addr().port(), 0);
    assert_eq!(server.connect_string(), server.addr().to_string());
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.ping();
    // A client cannot connect to the wildcard address.
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let server = blocking::Server::builder()
        .listen(everywhere)
        .start()
        .unwrap();
    assert_eq!(
        server.connect_string(),
        format!("127.0.0.1:{}", server.addr().port())
    );
    let address: SocketAddr = server.connect_string().parse().unwrap();
    let (mut client, _) = Wire::open(address, TIMEOUT_MS);
    client.ping();
}

#[test]
fn shutdown_closes_clients_and_frees_the_port() {
    let runtime = runtime();
    let mut address = "127.0.0.1:0".parse().unwrap();
    for _ in 0..3 {
        let builder = Server::builder().listen(address);
        let server = runtime.block_on(builder.start()).unwrap();
        address = server.addr();
        let (mut client, _) = Wire::open(address, TIMEOUT_MS);
        let mut silent = Wire::connect(address);
        runtime
            .block_on(async { tokio::time::timeout(PATIENCE, server.shutdown()).await })
            .expect("the server stops within PATIENCE")
            .unwrap();
        client.expect_closed();
        silent.expect_closed();
        assert!(Wire::try_connect(address).is_err());
    }
}

#[test]
fn shutdown_does_not_wait_for_a_client_that_does_not_read() {
    let _alone = alone_with_memory();
    let runtime = runtime();
    let server = runtime.block_on(Server::builder().start()).unwrap();
    let _client = stuck_reader(&server, "/stuck");
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, server.shutdown()).await })
        .expect("the server stops within PATIENCE")
        .unwrap();
}

#[test]
fn stopped_server_still_shows_its_state() {
    let runtime = runtime();
    let mut server = runtime.block_on(Server::builder().start()).unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/kept", b"data", CreateMode::Persistent));
    runtime.block_on(server.stop()).unwrap();
    client.expect_closed();
    assert_eq!(server.get("/kept").unwrap().0.unwrap(), b"data");
    assert_eq!(server.connections(), 0);
    server.check().unwrap();
    // A second stop has no effect.
    runtime.block_on(server.stop()).unwrap();
}

#[test]
fn dropped_server_closes_its_clients_and_frees_the_port() {
    let runtime = runtime();
    let server = runtime.block_on(Server::builder().start()).unwrap();
    let address = server.addr();
    let (mut client, _) = Wire::open(address, TIMEOUT_MS);
    drop(server);
    client.expect_closed();
    wait_until("the port is free", || Wire::try_connect(address).is_err());
}

#[test]
fn dropped_blocking_server_closes_its_clients_and_frees_the_port() {
    let server = start();
    let address = server.addr();
    let (mut client, _) = Wire::open(address, TIMEOUT_MS);
    let mut local = server.local();
    drop(server);
    client.expect_closed();
    assert!(Wire::try_connect(address).is_err());
    let again = blocking::Server::builder().listen(address).start().unwrap();
    assert_eq!(again.addr(), address);
    again.shutdown().unwrap();
    // An in-process connection that outlives its server reads the end of the stream.
    let mut answer = Vec::new();
    let read = async { tokio::io::AsyncReadExt::read_to_end(&mut local, &mut answer).await };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    assert_eq!(runtime.block_on(read).unwrap(), 0);
}

#[test]
fn blocking_server_inside_a_runtime_starts_and_is_dropped() {
    runtime().block_on(async {
        let server = start();
        let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
        client.ping();
        drop(server);
        client.expect_closed();
    });
}

#[test]
fn two_servers_in_one_process_share_nothing() {
    let (first, second) = (start(), start());
    assert_ne!(first.addr(), second.addr());
    let (mut client, session) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/here", b"", CreateMode::Persistent));
    let untouched = start().dump_exact();
    assert_eq!(second.dump_exact(), untouched);
    let mut stranger = Wire::connect(second.addr());
    let password = session.password.unwrap();
    let refused = stranger.resume(session.session_id, &password, Zxid(0), TIMEOUT_MS);
    assert_eq!(refused.session_id, SessionId::NONE);
    first.advance_strictly(Duration::from_secs(60));
    client.expect_closed();
    assert_eq!((first.sessions().len(), second.sessions().len()), (0, 0));
    drop(first);
    let (mut other, _) = Wire::open(second.addr(), TIMEOUT_MS);
    other.ping();
}

/// A server is light enough to start one per test: a thousand run at once on one thread, each with
/// its own client.
#[test]
fn thousand_servers_in_one_process_all_serve() {
    raise_open_files_limit();
    let runtime = runtime();
    let servers: Vec<_> = (0..1000)
        .map(|_| {
            let builder = Server::builder().manual_clock();
            runtime.block_on(builder.start()).unwrap()
        })
        .collect();
    let mut clients: Vec<_> = servers
        .iter()
        .map(|server| Wire::open(server.addr(), TIMEOUT_MS).0)
        .collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let data = number.to_string();
        client.must(&wire::create("/n", data.as_bytes(), CreateMode::Ephemeral));
    }
    for (number, server) in servers.iter().enumerate() {
        let (data, _) = server.get("/n").unwrap();
        assert_eq!(data.unwrap(), number.to_string().as_bytes());
    }
}

/// Sessions on the way expire in the order of their deadlines, each with its own zxid.
#[test]
fn advance_walks_from_deadline_to_deadline() {
    let server = start();
    let (mut watcher, _) = Wire::open(server.addr(), 60_000);
    let mut owners = Vec::new();
    for (path, timeout_ms) in [("/third", 20_000), ("/first", 6_000), ("/second", 12_000)] {
        let (mut owner, _) = Wire::open(server.addr(), timeout_ms);
        owner.must(&wire::create(path, b"", CreateMode::Ephemeral));
        watcher.must(&wire::exists(path, true));
        owners.push(owner);
    }
    let mut silent = Wire::connect(server.addr());
    wait_until("the connection is accepted", || server.connections() == 5);
    server.advance_strictly(Duration::from_secs(50));
    let mut last = Zxid(0);
    for path in ["/first", "/second", "/third"] {
        let event = watcher.event();
        assert_eq!((event.kind, &*event.path), (EventKind::Deleted, path));
        assert!(event.zxid > last);
        last = event.zxid;
    }
    silent.expect_closed();
    owners.iter_mut().for_each(Wire::expect_closed);
    assert_eq!(server.sessions().len(), 1);
    // The longest duration does not overflow.
    server.advance_strictly(Duration::MAX);
    watcher.expect_closed();
    assert!(server.sessions().is_empty());
}

#[test]
fn advance_moves_the_time_in_stats() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), 60_000);
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    server.advance(Duration::from_millis(1234));
    client.must(&wire::create("/b", b"", CreateMode::Persistent));
    let ctime_ms = |path| server.get(path).unwrap().1.ctime_ms;
    assert_eq!(ctime_ms("/b") - ctime_ms("/a"), 1234);
}

#[test]
fn expire_session_removes_ephemerals_notifies_watchers_and_closes() {
    let server = start();
    let (mut owner, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut watcher, _) = Wire::open(server.addr(), TIMEOUT_MS);
    owner.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    watcher.must(&wire::exists("/e", true));
    assert!(server.expire(session.session_id).is_ok());
    assert_eq!(watcher.event().kind, EventKind::Deleted);
    owner.expect_closed();
    assert!(server.get("/e").is_none());
    assert!(server.expire(session.session_id).is_err());
    assert!(server.expire(SessionId(12345)).is_err());
    server.check().unwrap();
}

#[test]
fn disconnect_cuts_the_connection_and_keeps_the_session() {
    let server = start();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut other, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    assert!(server.disconnect(session.session_id).is_ok());
    client.expect_closed();
    wait_until("the connection is closed", || server.connections() == 1);
    assert!(server.disconnect(session.session_id).is_err());
    assert!(server.disconnect(SessionId(12345)).is_err());
    other.ping();
    let info = server.sessions();
    let info = info
        .iter()
        .find(|info| info.id == session.session_id)
        .unwrap();
    assert!(!info.is_connected);
    assert!(server.get("/e").is_some());
    let mut again = Wire::connect(server.addr());
    let password = session.password.unwrap();
    let resumed = again.resume(session.session_id, &password, Zxid(0), TIMEOUT_MS);
    assert_eq!(resumed.session_id, session.session_id);
}

#[test]
fn disconnect_all_cuts_every_connection_and_keeps_every_session() {
    let server = start();
    let mut clients: Vec<_> = (0..20)
        .map(|_| Wire::open(server.addr(), TIMEOUT_MS).0)
        .collect();
    let mut silent = Wire::connect(server.addr());
    wait_until("the connection is accepted", || server.connections() == 21);
    server.disconnect_all();
    clients.iter_mut().for_each(Wire::expect_closed);
    silent.expect_closed();
    wait_until("all connections are closed", || server.connections() == 0);
    assert_eq!(server.sessions().len(), 20);
    assert!(server.sessions().iter().all(|info| !info.is_connected));
    // The server still serves.
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.ping();
}

#[test]
fn state_can_be_inspected_in_process() {
    let server = start();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/app", b"config", CreateMode::Persistent));
    for _ in 0..2 {
        client.must(&wire::create(
            "/app/n-",
            b"",
            CreateMode::EphemeralSequential,
        ));
    }
    client.must(&wire::watch("/app"));
    client.must(&wire::children("/app", true));
    let (data, stat) = server.get("/app").unwrap();
    assert_eq!(data.unwrap(), b"config");
    assert_eq!((stat.version, stat.num_children), (0, 2));
    assert_eq!(
        server.children("/app").unwrap(),
        ["n-0000000000", "n-0000000001"]
    );
    assert!(server.get("/none").is_none());
    assert!(server.children("/none").is_none());
    let sessions = server.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].id, session.session_id);
    assert_eq!(sessions[0].timeout, Duration::from_secs(10));
    assert!(sessions[0].is_connected);
    server.check().unwrap();
    expect![[r#"
        zxid 0x4
        znode / "" czxid 0x0 mzxid 0x0 pzxid 0x2 ctime 0 mtime 0 version 0 cversion 0 aversion 0 created 1 acl [Acl { perms: Perms(31), scheme: Some("world"), id: Some("anyone") }]
        znode /app "config" czxid 0x2 mzxid 0x2 pzxid 0x4 ctime 1704067200000 mtime 1704067200000 version 0 cversion 2 aversion 0 created 2 acl [Acl { perms: Perms(31), scheme: Some("world"), id: Some("anyone") }]
        znode /app/n-0000000000 "" czxid 0x3 mzxid 0x3 pzxid 0x3 ctime 1704067200000 mtime 1704067200000 version 0 cversion 0 aversion 0 created 0 owner 0x18cc251f4000000 acl [Acl { perms: Perms(31), scheme: Some("world"), id: Some("anyone") }]
        znode /app/n-0000000001 "" czxid 0x4 mzxid 0x4 pzxid 0x4 ctime 1704067200000 mtime 1704067200000 version 0 cversion 0 aversion 0 created 0 owner 0x18cc251f4000000 acl [Acl { perms: Perms(31), scheme: Some("world"), id: Some("anyone") }]
        znode /zookeeper "" czxid 0x0 mzxid 0x0 pzxid 0x0 ctime 0 mtime 0 version 0 cversion -2 aversion 0 created 0 acl [Acl { perms: Perms(31), scheme: Some("world"), id: Some("anyone") }]
        znode /zookeeper/config "" czxid 0x0 mzxid 0x0 pzxid 0x0 ctime 0 mtime 0 version 0 cversion 0 aversion -1 created 0 acl [Acl { perms: Perms(1), scheme: Some("world"), id: Some("anyone") }]
        znode /zookeeper/quota "" czxid 0x0 mzxid 0x0 pzxid 0x0 ctime 0 mtime 0 version 0 cversion 0 aversion 0 created 0 acl [Acl { perms: Perms(31), scheme: Some("world"), id: Some("anyone") }]
        session 0x18cc251f4000000 timeout 10000 ms due 10000 ms conn 0
          ephemeral /app/n-0000000000
          ephemeral /app/n-0000000001
        watch /app conn 0 data persistent child one-shot+persistent
    "#]].assert_eq(&server.dump_exact());
}

#[test]
fn start_on_a_taken_port_fails_with_the_address() {
    let server = start();
    let address = server.addr();
    let error = blocking::Server::builder()
        .listen(address)
        .start()
        .unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
    let cause = error
        .source()
        .unwrap()
        .downcast_ref::<std::io::Error>()
        .unwrap();
    assert_eq!(cause.kind(), std::io::ErrorKind::AddrInUse);
    // The first server still serves.
    let (mut client, _) = Wire::open(address, TIMEOUT_MS);
    client.ping();
}

#[test]
fn start_on_a_runtime_without_time_or_io_fails_with_what_is_missing() {
    // It panicked, as on the runtime of a simulator.
    fn builder() -> tokio::runtime::Builder {
        tokio::runtime::Builder::new_current_thread()
    }
    type Build = fn() -> tokio::runtime::Builder;
    let cases: [(&str, Build); 3] = [
        ("time", builder),
        ("time", || {
            let mut with = builder();
            with.enable_io();
            with
        }),
        ("I/O", || {
            let mut with = builder();
            with.enable_time();
            with
        }),
    ];
    let check = |error: &StartError, expected: &str| {
        let StartError::Runtime { missing } = error else {
            panic!("{error:?}");
        };
        assert_eq!(*missing, expected);
        assert!(error.to_string().contains("enable_all"), "{error}");
    };
    for (missing, build) in cases {
        let runtime = build().build().unwrap();
        let error = runtime.block_on(Server::builder().start()).unwrap_err();
        check(&error, missing);
    }
    let start = std::pin::pin!(Server::builder().start());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = start.poll(&mut cx) else {
        panic!("it fails at once");
    };
    check(&error, "runtime");
}

#[test]
fn start_with_a_bad_setting_fails_with_its_name() {
    for (setting, change) in [
        (
            "tick_time_ms",
            (|config| config.tick_time_ms = 0) as fn(&mut minikeeper::Config),
        ),
        ("turn_requests_max", |config| config.turn_requests_max = 0),
        ("frame_bytes_max", |config| {
            config.frame_bytes_max = usize::MAX;
        }),
        ("session_timeout_min_ms", |config| {
            config.session_timeout_min_ms = Some(70_000);
        }),
    ] {
        let error = blocking::Server::builder()
            .configure(change)
            .start()
            .unwrap_err();
        assert!(matches!(error, StartError::Config(_)), "{error:?}");
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains(setting), "{cause}");
    }
}

/// The same requests over two connections in the same order give the same dump, however the threads
/// are scheduled.
#[test]
fn same_requests_give_the_same_dump() {
    let dump = || {
        let server = start();
        let (mut first, _) = Wire::open(server.addr(), TIMEOUT_MS);
        let (mut second, _) = Wire::open(server.addr(), TIMEOUT_MS);
        for number in 0..50 {
            let client = if number % 2 == 0 {
                &mut first
            } else {
                &mut second
            };
            client.must(&wire::create("/n-", b"", CreateMode::EphemeralSequential));
            server.advance(Duration::from_millis(7));
        }
        server.dump_exact()
    };
    assert_eq!(dump(), dump());
}
