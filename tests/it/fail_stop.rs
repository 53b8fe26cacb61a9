//! A panic inside a turn stops the server; a panic outside of turns does not.
//!
//! `ARCHITECTURE.md`, "Locks, bounds, panics": the turn may have made half a change, so the server
//! closes every connection and refuses new ones.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use minikeeper::{Config, Server};
use minikeeper_protocol::{CreateMode, Request};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{Logged, TIMEOUT_MS, runtime_that_panics, wait_until};

/// Returns a `sync` request. The path `/panic` makes the turn panic.
fn sync(path: &str) -> Request {
    Request::Sync {
        path: Some(path.into()),
    }
}

/// Waits for [`Server::closed`], with a bound.
fn wait_closed(server: &Server) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, server.closed()).await })
        .expect("`closed` returns within PATIENCE");
}

#[test]
fn panic_in_a_turn_closes_every_connection_and_refuses_new_ones() {
    let logged = Logged::start(|_| {});
    let (mut idle, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let (mut waiting, _) = Wire::open(logged.address(), TIMEOUT_MS);
    waiting.must(&wire::watch("/w"));
    let mut silent = Wire::connect(logged.address());
    wait_until("all connections are accepted", || {
        logged.server.connections() == 3
    });
    let (mut culprit, _) = Wire::open(logged.address(), TIMEOUT_MS);
    culprit.must(&sync("/no/panic"));
    culprit.send(&wire::create("/before", b"", CreateMode::Persistent));
    culprit.send(&sync("/panic"));
    // Replies to the requests before the panic may have been sent.
    let _ = culprit.rest();
    idle.expect_closed();
    waiting.expect_closed();
    silent.expect_closed();
    wait_closed(&logged.server);
    logged.wait_for_line(&["ERROR", "the engine panicked"]);
    // `closed` returns again; a new connection is accepted and closed.
    wait_closed(&logged.server);
    let mut late = Wire::connect(logged.address());
    let mut bytes = Vec::new();
    minikeeper_protocol::ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    late.send_raw(&bytes);
    late.expect_closed();
    wait_until("no connection is left", || logged.server.connections() == 0);
}

/// The broken engine still has sessions with deadlines; advancing the clock must not wait for them.
#[test]
fn advance_returns_on_a_broken_server() {
    let logged = Logged::start(|_| {});
    let (_client, session) = Wire::open(logged.address(), TIMEOUT_MS);
    let (mut culprit, _) = Wire::open(logged.address(), TIMEOUT_MS);
    culprit.send(&sync("/panic"));
    culprit.expect_closed();
    let (done, wait) = mpsc::sync_channel(1);
    let server = Arc::clone(&logged.server);
    let advancing = thread::spawn(move || {
        server.advance_strictly(Duration::from_secs(60));
        done.send(()).unwrap();
    });
    wait.recv_timeout(PATIENCE).expect("the clock is advanced");
    advancing.join().unwrap();
    // A broken engine serves nothing, so the session has not expired.
    let sessions = logged.server.sessions();
    assert!(sessions.iter().any(|other| other.id == session.session_id));
}

#[test]
fn broken_server_shuts_down() {
    let runtime = runtime_that_panics();
    let server = runtime.block_on(Server::start(Config::default()));
    let server = server.unwrap();
    let address = server.addr();
    let (mut culprit, _) = Wire::open(address, TIMEOUT_MS);
    culprit.send(&sync("/panic"));
    culprit.expect_closed();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, server.shutdown()).await })
        .expect("the server stops within PATIENCE")
        .expect("nothing to save: there is no data directory");
    assert!(Wire::try_connect(address).is_err());
}

/// A panic of the thread that owns an in-process connection drops the connection. That is a failed
/// test, not a bug of the server.
#[test]
fn panic_of_a_local_client_leaves_the_server_serving() {
    let logged = Logged::start(|_| {});
    let (mut bystander, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let local = logged.server.local();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let _local = local;
        panic!("a panic of the client");
    }));
    assert!(outcome.is_err());
    assert_eq!(logged.server.connections(), 1);
    bystander.must(&wire::create("/served", b"", CreateMode::Ephemeral));
    assert!(!logged.text().contains("ERROR"), "{}", logged.text());
}
