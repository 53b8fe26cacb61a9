//! Several servers in front of one engine: clients fail over between them.

use std::{
    future::Future,
    net::{SocketAddr, TcpListener, TcpStream},
};

use minikeeper::{EnsembleError, Keep, RestartError, ServerMode, blocking};
use minikeeper_protocol::{ConnectRequest, CreateMode, ErrorCode, Request, Zxid};
use minikeeper_test_kit::wire::{self, Wire, four_letter};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

use crate::{
    http::{done, get, post, request, said},
    kit::{TIMEOUT_MS, wait_until},
};

fn three() -> blocking::Server {
    let builder = blocking::Server::builder().manual_clock();
    builder
        .configure(|config| {
            config.servers = 3;
            config.control.is_enabled = true;
        })
        .start()
        .unwrap()
}

fn address(server: &blocking::Server, id: u8) -> SocketAddr {
    server.servers()[usize::from(id) - 1].address
}

fn roles(server: &blocking::Server) -> Vec<String> {
    let role = |id| {
        let text = four_letter(address(server, id), b"srvr");
        let line = text.lines().find_map(|line| line.strip_prefix("Mode: "));
        line.unwrap_or_default().to_owned()
    };
    (1..=3).map(role).collect()
}

#[test]
fn servers_share_one_state_and_each_has_an_address() {
    let server = three();
    let addresses: Vec<_> = server.servers().iter().map(|one| one.address).collect();
    let listed: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(server.connect_string(), listed.join(","));
    assert_eq!(addresses[0], server.addr());
    let port = addresses[0].port();
    assert_eq!(
        [addresses[1].port(), addresses[2].port()],
        [port + 1, port + 2]
    );
    let (mut first, _) = Wire::open(addresses[0], TIMEOUT_MS);
    let (mut third, session) = Wire::open(addresses[2], TIMEOUT_MS);
    let created = first.call(&wire::create("/a", b"1", CreateMode::Persistent));
    let read = third.call(&wire::get("/a", true));
    assert!(read.outcome.is_ok() && read.zxid == created.zxid);
    first.must(&wire::set("/a", b"2"));
    assert_eq!(third.event().path, "/a");
    assert_eq!(server.servers()[2].sessions, [session.session_id]);
}

#[test]
fn ports_follow_the_first_one_at_the_next_start_too() {
    let server = three();
    let before = server.connect_string();
    let first = server.addr();
    server.shutdown().unwrap();
    let builder = blocking::Server::builder().listen(first);
    let again = builder
        .configure(|config| config.servers = 3)
        .start()
        .unwrap();
    assert_eq!(again.connect_string(), before);
}

#[test]
fn ports_beyond_the_last_one_are_refused() {
    let builder = blocking::Server::builder().configure(|config| config.servers = 3);
    let started = builder.listen(([127, 0, 0, 1], 65_534).into()).start();
    let error = started.map(|_| ()).unwrap_err();
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "listen has port 65534, which leaves too few for 3 servers on consecutive ports; it must be \
         at most 65533"
    );
}

#[test]
fn session_moves_when_its_server_goes_down_and_zxids_never_go_back() {
    let server = three();
    let (mut client, session) = Wire::open(address(&server, 1), TIMEOUT_MS);
    let seen = client
        .call(&wire::create("/e", b"", CreateMode::Ephemeral))
        .zxid;
    server.set_server(1, ServerMode::Down).unwrap();
    client.expect_closed();
    assert!(TcpStream::connect(address(&server, 1)).is_err());
    let mut moved = Wire::connect(address(&server, 2));
    let password = session.password.as_deref().unwrap();
    assert_eq!(
        moved.resume(session.session_id, password, seen, TIMEOUT_MS),
        session
    );
    let next = moved.call(&wire::set("/e", b"2"));
    assert_eq!(next.zxid, Zxid(seen.0 + 1));
    // Back at the first one, which listens at the same address.
    server.set_server(1, ServerMode::Up).unwrap();
    let mut back = Wire::connect(address(&server, 1));
    assert_eq!(
        back.resume(session.session_id, password, next.zxid, TIMEOUT_MS),
        session
    );
    moved.expect_closed();
    back.must(&wire::get("/e", false));
    server.check().unwrap();
}

#[test]
fn server_that_is_cut_off_reads_and_answers_nothing_until_it_is_up() {
    let server = three();
    let (mut client, session) = Wire::open(address(&server, 2), TIMEOUT_MS);
    client.must(&wire::get("/", true));
    server.set_server(2, ServerMode::CutOff).unwrap();
    client.send(&wire::create("/a", b"", CreateMode::Persistent));
    // What another server answers comes after what this one would have read.
    let (mut other, _) = Wire::open(address(&server, 1), TIMEOUT_MS);
    for _ in 0..100 {
        assert_eq!(other.refused(&wire::get("/a", false)), ErrorCode::NoNode);
    }
    // Its session is silent, and expires like any other.
    server.advance(std::time::Duration::from_secs(7));
    other.ping();
    server.advance(std::time::Duration::from_secs(4));
    let is_alive = |id| server.sessions().iter().any(|one| one.id == id);
    assert!(!is_alive(session.session_id));
    // The order to close waits, too.
    server.set_server(2, ServerMode::Up).unwrap();
    client.expect_closed();
    assert_eq!(other.refused(&wire::get("/a", false)), ErrorCode::NoNode);
}

#[test]
fn connection_continues_after_a_cut() {
    let server = three();
    let (mut client, _) = Wire::open(address(&server, 1), TIMEOUT_MS);
    assert_eq!(client.refused(&wire::exists("/a", true)), ErrorCode::NoNode);
    server.set_server(1, ServerMode::CutOff).unwrap();
    client.send(&wire::get("/", false));
    // It accepts connections all the same.
    let mut late = Wire::connect(address(&server, 1));
    late.send_raw(b"ruok");
    let (mut other, _) = Wire::open(address(&server, 3), TIMEOUT_MS);
    other.must(&wire::create("/a", b"", CreateMode::Persistent));
    server.set_server(1, ServerMode::Up).unwrap();
    assert_eq!(client.event().path, "/a");
    client.frame("the reply to get");
    assert_eq!(late.rest(), b"imok");
}

#[test]
fn read_only_server_serves_reads_to_clients_that_accept_it() {
    let server = three();
    let (mut open, _) = Wire::open(address(&server, 3), TIMEOUT_MS);
    open.must(&wire::create("/a", b"1", CreateMode::Persistent));
    server.set_server(3, ServerMode::ReadOnly).unwrap();
    open.expect_closed();
    assert_eq!(four_letter(address(&server, 3), b"isro"), "ro");
    assert_eq!(four_letter(address(&server, 1), b"isro"), "rw");
    // As ZooKeeper does, it disconnects others without an answer.
    let mut strict = Wire::connect(address(&server, 3));
    let mut hello = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    strict.send_raw(&hello);
    strict.expect_closed();
    let mut client = Wire::connect(address(&server, 3));
    let accepting = ConnectRequest {
        read_only: Some(true),
        ..ConnectRequest::new(TIMEOUT_MS)
    };
    let response = client.hello(&accepting);
    assert_eq!(response.read_only, Some(true));
    client.must(&wire::get("/a", false));
    for change in [
        wire::set("/a", b"2"),
        wire::create("/b", b"", CreateMode::Ephemeral),
        wire::delete("/a"),
        Request::Sync {
            path: Some("/a".into()),
        },
    ] {
        assert_eq!(client.refused(&change), ErrorCode::NotReadOnly);
    }
    client.must(&wire::get("/a", false));
    // Reads and writes again: clients find that out when they reconnect.
    server.set_server(3, ServerMode::Up).unwrap();
    client.expect_closed();
    let mut client = Wire::connect(address(&server, 3));
    let seen = response.session_id;
    let password = response.password.as_deref().unwrap();
    assert_eq!(
        client
            .resume(seen, password, Zxid(0), TIMEOUT_MS)
            .session_id,
        seen
    );
    client.must(&wire::set("/a", b"2"));
}

#[test]
fn one_server_that_is_up_says_it_is_the_leader() {
    let server = three();
    assert_eq!(roles(&server), ["leader", "follower", "follower"]);
    server.set_leader(3).unwrap();
    assert_eq!(roles(&server), ["follower", "follower", "leader"]);
    server.set_server(3, ServerMode::ReadOnly).unwrap();
    assert_eq!(roles(&server), ["leader", "follower", "read-only"]);
    let error = server.set_leader(3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "server 3 cannot be the leader: it is read-only, and must be up"
    );
    // The appointment holds.
    server.set_server(3, ServerMode::Up).unwrap();
    assert_eq!(roles(&server), ["follower", "follower", "leader"]);
    let alone = blocking::Server::builder().start().unwrap();
    assert!(four_letter(alone.addr(), b"stat").contains("Mode: standalone\n"));
    assert!(!alone.servers()[0].is_leader);
}

#[test]
fn unknown_servers_are_refused() {
    let server = three();
    for id in [0, 4] {
        let error = server.set_server(id, ServerMode::Down).unwrap_err();
        assert!(matches!(error, EnsembleError::NoServer { servers: 3, .. }));
        assert_eq!(
            error.to_string(),
            format!("there is no server {id}, only 1 to 3")
        );
    }
    let alone = blocking::Server::builder().start().unwrap();
    assert_eq!(
        alone.set_leader(2).unwrap_err().to_string(),
        "there is no server 2, only server 1; `--servers` (`Config::servers`) adds more"
    );
}

#[test]
fn port_that_is_taken_keeps_the_server_down() {
    let server = three();
    server.set_server(2, ServerMode::Down).unwrap();
    let taken = TcpListener::bind(address(&server, 2)).unwrap();
    let error = server.set_server(2, ServerMode::Up).unwrap_err();
    assert!(matches!(error, EnsembleError::Start(_)));
    assert_eq!(server.servers()[1].mode, ServerMode::Down);
    drop(taken);
    server.set_server(2, ServerMode::Up).unwrap();
    let _client = Wire::open(address(&server, 2), TIMEOUT_MS);
}

/// Returns whether another program may be given this port as a free one.
fn is_free(address: SocketAddr) -> bool {
    // Unlike `TcpListener::bind` of std, without SO_REUSEADDR.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address).is_ok()
}

#[test]
fn ports_of_servers_that_are_down_are_held_until_the_end() {
    // Another test may be given a port as soon as it is free, and its connections keep it for a minute after they end.
    assert!((0..5).any(|_| are_held_until_the_end()));
}

/// Returns whether the ports were seen to be free in the end.
fn are_held_until_the_end() -> bool {
    let server = three();
    let addresses = [1, 2, 3].map(|id| address(&server, id));
    server.set_server(1, ServerMode::Down).unwrap();
    assert!(!is_free(addresses[0]));
    server.go_down();
    assert_eq!(addresses.map(is_free), [false; 3]);
    // A program that asks for this very port may have it, and is not disturbed.
    let taken = TcpListener::bind(addresses[2]).unwrap();
    let error = server.come_up(Keep::Everything).unwrap_err();
    assert!(matches!(error, RestartError::Start(_)), "{error}");
    assert_eq!(addresses.map(is_free), [false; 3]);
    drop(taken);
    server.come_up(Keep::Everything).unwrap();
    server.set_server(1, ServerMode::Up).unwrap();
    server.go_down();
    let universe = server.universe().clone();
    server.shutdown().unwrap();
    let mut left = addresses.to_vec();
    for _ in 0..500 {
        left.retain(|address| !is_free(*address));
        if left.is_empty() {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    drop(universe);
    left.is_empty()
}

#[test]
fn modes_hold_over_a_restart() {
    let server = three();
    server.set_server(1, ServerMode::Down).unwrap();
    server.set_server(2, ServerMode::ReadOnly).unwrap();
    server.restart(Keep::Everything).unwrap();
    assert!(TcpStream::connect(address(&server, 1)).is_err());
    assert_eq!(four_letter(address(&server, 2), b"isro"), "ro");
    let _client = Wire::open(address(&server, 3), TIMEOUT_MS);
    server.go_down();
    server.set_server(1, ServerMode::Up).unwrap();
    assert!(TcpStream::connect(address(&server, 1)).is_err());
    server.come_up(Keep::Everything).unwrap();
    let _client = Wire::open(address(&server, 1), TIMEOUT_MS);
}

#[test]
fn only_server_is_cut_off_too() {
    let server = blocking::Server::builder().manual_clock().start().unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    server.set_server(1, ServerMode::CutOff).unwrap();
    client.send(&wire::create("/a", b"", CreateMode::Persistent));
    for _ in 0..100 {
        assert!(server.children("/").unwrap() == ["zookeeper"]);
        std::thread::yield_now();
    }
    server.set_server(1, ServerMode::Up).unwrap();
    client.frame("the reply to create");
    assert!(server.get("/a").is_some());
}

#[tokio::test]
async fn connections_inside_the_process_belong_to_no_server() {
    let server = minikeeper::Server::builder()
        .servers(2)
        .start()
        .await
        .unwrap();
    let mut hello = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    for mode in [ServerMode::CutOff, ServerMode::ReadOnly, ServerMode::Down] {
        let mut before = server.local();
        server.set_server(1, mode).await.unwrap();
        for connection in [&mut before, &mut server.local()] {
            connection.write_all(&hello).await.unwrap();
            let mut head = [0; 4];
            connection.read_exact(&mut head).await.unwrap();
        }
        assert!(server.servers()[0].sessions.is_empty());
    }
}

#[tokio::test]
async fn call_that_was_dropped_is_finished_by_the_next_one() {
    let server = minikeeper::Server::builder()
        .servers(2)
        .start()
        .await
        .unwrap();
    let mut client = tokio::net::TcpStream::connect(server.addr()).await.unwrap();
    let mut hello = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    client.write_all(&hello).await.unwrap();
    let mut head = [0; 4];
    client.read_exact(&mut head).await.unwrap();
    // Polled once: it waits for the listening task to end.
    let mut down = Box::pin(server.set_server(1, ServerMode::Down));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(down.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
    drop(down);
    server.set_server(1, ServerMode::Down).await.unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
}

/// The server waits until every connection has ended.
#[test]
fn shutdown_ends_connections_that_are_cut_off() {
    let server = three();
    let (mut client, _) = Wire::open(address(&server, 1), TIMEOUT_MS);
    server.set_server(1, ServerMode::CutOff).unwrap();
    client.send(&wire::get("/", false));
    server.shutdown().unwrap();
    client.rest();
}

#[test]
fn verbs_change_servers_and_never_lose_control() {
    let server = three();
    let at = address(&server, 3);
    done(post(
        at,
        "set_server",
        &json!({"server": 1, "mode": "down"}),
    ));
    done(post(
        at,
        "set_server",
        &json!({"server": 2, "mode": "cut-off"}),
    ));
    done(post(at, "set_leader", &json!({"server": 3})));
    let listed = done(get(at, "servers"));
    let modes = listed["servers"].as_array().unwrap().iter();
    let modes: Vec<_> = modes.map(|one| one["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["down", "cut-off", "up"]);
    assert_eq!(listed["servers"][2]["is_leader"], true);
    // A server that is cut off from clients still serves control.
    done(get(address(&server, 2), "servers"));
    done(post(
        at,
        "set_server",
        &json!({"server": 2, "mode": "down"}),
    ));
    let answer = post(at, "set_server", &json!({"server": 3, "mode": "down"}));
    assert!(said(&answer, 409).starts_with("server 3 is the last one that listens"));
    let answer = post(at, "set_server", &json!({"server": 7, "mode": "down"}));
    assert_eq!(said(&answer, 404), "there is no server 7, only 1 to 3");
    done(post(
        at,
        "set_server",
        &json!({"server": 3, "mode": "read-only"}),
    ));
    let monitor = done(request(
        at,
        "GET /commands/monitor",
        "Host: localhost\r\n",
        "",
    ));
    assert_eq!(monitor["server_state"], "read-only");
    wait_until("the others to come up", || {
        done(post(at, "set_server", &json!({"server": 1, "mode": "up"})));
        four_letter(address(&server, 1), b"srvr").contains("Mode: leader")
    });
}
