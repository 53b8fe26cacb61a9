//! Listing, expiring and disconnecting sessions by id, address, identity and owner.

use std::{
    io::{self, Read as _},
    net::TcpStream,
    thread,
    time::Duration,
};

use minikeeper::{
    Server as AsyncServer, SessionInfo, SessionSelector, WatchKind, blocking::Server,
};
use minikeeper_protocol::{CreateMode, EventKind, Request, SessionId};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{Scene, TIMEOUT_MS, stuck_reader, wait_until};

const SECOND: Duration = Duration::from_secs(1);

/// The number of expiries whose events must be in the socket at once.
const ROUNDS: usize = 1_000;

fn info(server: &Server, id: SessionId) -> SessionInfo {
    let mut sessions = server.sessions().into_iter();
    sessions
        .find(|info| info.id == id)
        .expect("the session exists")
}

fn login(user: &str) -> Request {
    Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(format!("{user}:secret").into_bytes().into()),
    }
}

#[test]
fn session_info_reports_everything_about_a_session() {
    let scene = Scene::new();
    let (mut client, session) = scene.open_session();
    let id = session.session_id;
    let fresh = info(&scene.server, id);
    assert_eq!(fresh.last_operation.unwrap().name, "createSession");
    client.must(&login("alice"));
    client.must(&wire::create("/e1", b"", CreateMode::Ephemeral));
    client.must(&wire::create("/e2", b"", CreateMode::Ephemeral));
    client.refused(&wire::exists("/absent", true));
    client.must(&wire::children("/", true));
    for (path, mode) in [("/e1", 0), ("/", 1)] {
        client.must(&Request::AddWatch {
            path: Some(path.into()),
            mode,
        });
    }
    scene.server.advance_strictly(3 * SECOND);
    client.must(&wire::get("/e1", true));
    scene.server.advance_strictly(SECOND);
    let seen = info(&scene.server, id);
    assert_eq!(seen.timeout, 10 * SECOND);
    assert_eq!(seen.timeout_left, 9 * SECOND);
    assert!(seen.is_connected);
    assert_eq!(seen.address, Some(client.local_address()));
    assert_eq!(seen.identities, ["ip:127.0.0.1", "digest:alice"]);
    assert_eq!(seen.ephemerals, ["/e1", "/e2"]);
    let watches: Vec<_> = seen
        .watches
        .iter()
        .map(|watch| (&*watch.path, watch.kind))
        .collect();
    assert_eq!(
        watches,
        [
            ("/", WatchKind::Children),
            ("/", WatchKind::PersistentRecursive),
            ("/absent", WatchKind::Data),
            ("/e1", WatchKind::Data),
            ("/e1", WatchKind::Persistent),
        ]
    );
    let last = seen.last_operation.unwrap();
    assert_eq!((last.name, last.at), ("getData", 3 * SECOND));
    drop(client);
    scene.wait_alone();
    let gone = info(&scene.server, id);
    assert!(!gone.is_connected && gone.address.is_none() && gone.last_operation.is_none());
    assert!(gone.identities.is_empty() && gone.watches.is_empty());
    assert_eq!(gone.ephemerals, ["/e1", "/e2"]);
    // An in-process connection has no address.
    let _local = scene.server.local();
    scene.end();
}

#[test]
fn sessions_can_be_selected_by_id_address_identity_and_owner() {
    let scene = Scene::new();
    let (mut alice, session) = scene.open_session();
    let (mut bob, other) = scene.open_session();
    alice.must(&login("alice"));
    bob.must(&login("bob"));
    alice.must(&wire::create("/alice", b"", CreateMode::Ephemeral));
    bob.must(&wire::create("/plain", b"", CreateMode::Persistent));
    let (alices, bobs) = (session.session_id, other.session_id);
    let address = alice.local_address();
    for who in [
        SessionSelector::from(alices),
        SessionSelector::from(address),
        SessionSelector::from(&*alices.to_string()),
        SessionSelector::from(&*alices.0.to_string()),
        SessionSelector::from(&*address.to_string()),
        SessionSelector::from("digest:alice"),
        SessionSelector::from("digest:alice:any hash"),
        SessionSelector::from("/alice"),
    ] {
        assert_eq!(scene.server.find_sessions(who.clone()), [alices], "{who:?}");
    }
    for no_match in [
        "/plain",
        "/none",
        "digest:carol",
        "sasl:alice",
        "10.0.0.1",
        "0x1",
        "nonsense",
        "",
    ] {
        assert_eq!(scene.server.find_sessions(no_match), [], "{no_match}");
        assert!(scene.server.expire(no_match).is_err());
        assert!(scene.server.disconnect(no_match).is_err());
    }
    // The bystander has this address too.
    for all in ["127.0.0.1", "ip:127.0.0.1", "::ffff:127.0.0.1"] {
        assert_eq!(scene.server.find_sessions(all).len(), 3, "{all}");
    }
    assert!(scene.server.disconnect("digest:alice").is_ok());
    alice.expect_closed();
    assert!(info(&scene.server, alices).ephemerals == ["/alice"]);
    // Without a connection the session still owns the znode, but has no identity.
    wait_until("the connection is closed", || {
        scene.server.find_sessions("digest:alice").is_empty()
    });
    assert!(scene.server.disconnect("/alice").is_err());
    assert!(scene.server.expire("/alice").is_ok());
    assert!(scene.server.get("/alice").is_none());
    assert_eq!(scene.server.expire(bobs), Ok(1));
    assert!(scene.server.expire(bobs).is_err());
    bob.expect_closed();
    scene.end();
}

#[test]
fn expire_and_disconnect_act_on_all_selected_sessions() {
    let server = Server::builder().manual_clock().start().unwrap();
    let mut clients: Vec<_> = (0..3)
        .map(|_| Wire::open(server.addr(), TIMEOUT_MS).0)
        .collect();
    assert!(server.disconnect("127.0.0.1").is_ok());
    clients.iter_mut().for_each(Wire::expect_closed);
    wait_until("the connections are closed", || server.connections() == 0);
    assert_eq!(server.sessions().len(), 3);
    assert!(
        server.disconnect("127.0.0.1").is_err(),
        "no session is connected from that address"
    );
    let mut clients: Vec<_> = (0..3)
        .map(|_| Wire::open(server.addr(), TIMEOUT_MS).0)
        .collect();
    assert!(server.expire("127.0.0.1").is_ok());
    clients.iter_mut().for_each(Wire::expect_closed);
    assert_eq!(
        server.sessions().len(),
        3,
        "sessions without a connection have no address"
    );
    server.check().unwrap();
}

/// Reads the bytes that have arrived, without waiting.
fn read_now(stream: &TcpStream) -> Vec<u8> {
    let mut bytes = vec![0; 1_024];
    let mut stream = stream;
    match stream.read(&mut bytes) {
        Ok(count) => bytes[..count].to_vec(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// A client that watches the ephemerals of `owners`.
struct Watcher {
    wire: Wire,
    owners: Vec<SessionId>,
}

/// Opens [`ROUNDS`] sessions with an ephemeral each, a client that watches all of them, and another
/// one.
fn watched_owners(address: std::net::SocketAddr) -> (Watcher, Wire) {
    let (mut wire, _) = Wire::open(address, 60_000);
    let mut owners = Vec::new();
    // The owners' connections are closed; their sessions survive.
    for round in 0..ROUNDS {
        let (mut owner, session) = Wire::open(address, 60_000);
        let path = format!("/e{round}");
        owner.must(&wire::create(&path, b"", CreateMode::Ephemeral));
        wire.must(&wire::exists(&path, true));
        owners.push(session.session_id);
    }
    let (other, _) = Wire::open(address, 60_000);
    (Watcher { wire, owners }, other)
}

#[track_caller]
fn assert_event_arrived(watcher: &Watcher, stream: &TcpStream, round: usize) {
    let frame = read_now(stream);
    let path = format!("/e{round}");
    assert!(frame.ends_with(path.as_bytes()), "round {round}: {frame:?}");
    // Length, header, kind Deleted (2), state, path.
    assert_eq!(frame.len(), 4 + 16 + 4 + 4 + 4 + path.len());
    assert_eq!(frame[20..24], 2_i32.to_be_bytes());
    assert!(!watcher.owners.is_empty());
}

/// When `expire` returns, the watchers' events are in their sockets: a thousand times, a read that
/// does not wait gets the bytes.
#[test]
fn expiry_event_is_in_the_socket_when_expire_returns() {
    let server = Server::builder().manual_clock().start().unwrap();
    let (watcher, mut other) = watched_owners(server.addr());
    let stream = watcher.wire.raw();
    stream.set_nonblocking(true).unwrap();
    for (round, owner) in watcher.owners.iter().enumerate() {
        // Another client keeps the server's thread busy.
        other.send(&Request::Ping);
        assert!(server.expire(*owner).is_ok());
        assert_event_arrived(&watcher, stream, round);
    }
    for _ in 0..ROUNDS {
        other.frame("the reply to a ping");
    }
    server.check().unwrap();
}

/// When `expire_and_flush` resolves, the event is in the socket, even on the server's only thread.
#[test]
fn expiry_event_is_in_the_socket_when_expire_told_resolves() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = AsyncServer::builder().manual_clock().start().await.unwrap();
        let address = server.addr();
        let watcher = tokio::task::spawn_blocking(move || watched_owners(address).0);
        let watcher = watcher.await.unwrap();
        let stream = watcher.wire.raw();
        stream.set_nonblocking(true).unwrap();
        for (round, owner) in watcher.owners.iter().enumerate() {
            assert_eq!(server.expire_and_flush(*owner).await, Ok(1));
            assert_event_arrived(&watcher, stream, round);
        }
    });
}

/// A watcher whose request is delayed by a fault gets the event meanwhile, and `expire` does not
/// wait for the delayed reply.
#[test]
fn expiry_does_not_wait_for_a_delayed_request_of_a_watcher() {
    let server = Server::builder().manual_clock().start().unwrap();
    let (mut owner, session) = Wire::open(server.addr(), 60_000);
    owner.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let (mut watcher, _) = Wire::open(server.addr(), 60_000);
    watcher.must(&wire::exists("/e", true));
    // The expiry then has no connection of the owner to close.
    drop(owner);
    wait_until("its connection is closed", || server.connections() == 1);
    let delay = minikeeper::Fault::delay(SECOND).at("/slow");
    let delay = server.inject(delay).unwrap();
    watcher.send(&wire::exists("/slow", false));
    wait_until("the request is delayed", || delay.hits() == 1);
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(|| done.send(server.expire(session.session_id)).unwrap());
        // Shorter than the time limit of `expire`.
        assert!(is_done.recv_timeout(PATIENCE / 2).unwrap().is_ok());
    });
    assert_eq!(watcher.event().kind, EventKind::Deleted);
}

/// A client whose socket is full cannot get its event; `expire` does not wait for it.
#[test]
fn expiry_does_not_wait_for_a_client_that_does_not_read() {
    let _alone = crate::kit::alone_with_memory();
    let server = Server::builder().manual_clock().start().unwrap();
    let (mut owner, session) = Wire::open(server.addr(), 60_000);
    owner.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let (mut stuck, _) = stuck_reader(&server, "/stuck");
    let mut bytes = Vec::new();
    wire::exists("/e", true).encode(minikeeper_protocol::Xid(3), &mut bytes);
    // The server reads this request only once the replies are read, so another client watches too.
    let (mut watcher, _) = Wire::open(server.addr(), 60_000);
    watcher.must(&wire::exists("/e", true));
    stuck.send_raw(&bytes);
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(|| done.send(server.expire(session.session_id)).unwrap());
        assert!(is_done.recv_timeout(PATIENCE).unwrap().is_ok());
    });
    assert_eq!(watcher.event().kind, EventKind::Deleted);
    drop(stuck);
}
