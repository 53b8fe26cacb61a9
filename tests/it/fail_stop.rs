//! A panic inside a turn stops everything; a panic outside of turns stops nothing.
//!
//! Source: `ARCHITECTURE.md`, "Locks, bounds, panics": half a change may have been made, so every
//! connection is closed and new ones are refused.

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

/// A sync; that of `/panic` makes the turn panic.
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
        .expect("the server says that it is closed");
}

#[test]
fn panic_in_a_turn_closes_every_connection_and_refuses_new_ones() {
    let logged = Logged::start(|_| {});
    let (mut idle, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let (mut waiting, _) = Wire::open(logged.address(), TIMEOUT_MS);
    waiting.must(&wire::watch("/w"));
    let mut silent = Wire::connect(logged.address());
    wait_until("all are accepted", || logged.server.connections() == 3);
    let (mut culprit, _) = Wire::open(logged.address(), TIMEOUT_MS);
    culprit.must(&sync("/no/panic"));
    culprit.send(&wire::create("/before", b"", CreateMode::Persistent));
    culprit.send(&sync("/panic"));
    // What was answered before may have been sent; nothing else comes.
    let _ = culprit.rest();
    idle.expect_closed();
    waiting.expect_closed();
    silent.expect_closed();
    wait_closed(&logged.server);
    logged.wait_for_line(&["ERROR", "the engine panicked"]);
    // Asked again, it is still closed; a connection is accepted and closed.
    wait_closed(&logged.server);
    let mut late = Wire::connect(logged.address());
    let mut bytes = Vec::new();
    minikeeper_protocol::ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    late.send_raw(&bytes);
    late.expect_closed();
    wait_until("nothing is left", || logged.server.connections() == 0);
}

/// Sessions are still known to the broken engine, and due; moving time must not wait for them.
#[test]
fn time_of_a_broken_server_can_still_be_moved() {
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
    wait.recv_timeout(PATIENCE).expect("time is moved");
    advancing.join().unwrap();
    // Nothing is served: neither by time nor by hand does the session end.
    let sessions = logged.server.sessions();
    assert!(sessions.iter().any(|other| other.id == session.session_id));
}

/// A broken server stops as any other.
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
        .expect("it stops in time")
        .expect("there is nowhere to save to");
    assert!(Wire::try_connect(address).is_err());
}

/// The owner of an in-process connection panics, and the connection is dropped on the way: that
/// is a failed test, not a bug of the server.
#[test]
fn panic_of_a_local_client_leaves_the_server_serving() {
    let logged = Logged::start(|_| {});
    let (mut bystander, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let local = logged.server.local();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let _local = local;
        panic!("a client's own panic");
    }));
    assert!(outcome.is_err());
    assert_eq!(logged.server.connections(), 1);
    bystander.must(&wire::create("/served", b"", CreateMode::Ephemeral));
    assert!(!logged.text().contains("ERROR"), "{}", logged.text());
}
