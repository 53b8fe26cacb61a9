//! The client's thread, the end of its session, calls inside a runtime.

use std::time::Duration;

use minikeeper::{Fault, OpCode, blocking::Server};
use minikeeper_client::{ConnectError, CreateMode, Error};
use minikeeper_recipes::{
    LockError, Status,
    blocking::{Client, InterProcessMutex, Interrupt, PersistentNode},
};
use tokio::runtime;

use crate::{PATH, PATIENCE, client, on_thread, server, soon};

#[test]
fn session_is_kept_alive_while_no_call_is_made() {
    let server = Server::builder()
        .tick_time(Duration::from_millis(100))
        .start()
        .unwrap();
    let settings = Client::builder(&server.connect_string()).unwrap();
    let _client = Client::start(settings.session_timeout(Duration::from_millis(200))).unwrap();
    let pings = server.inject(Fault::trigger().on(OpCode::Ping)).unwrap();
    server.until_hit(pings.id(), 1, PATIENCE).unwrap();
}

#[test]
fn dropped_client_leaves_the_session_to_its_guards() {
    let server = server();
    let client = client(&server);
    let lock = InterProcessMutex::new(&client, PATH).unwrap();
    let guard = lock.acquire().unwrap();
    drop((client, lock));
    assert!(server.get(guard.path()).is_some());
    assert_eq!(guard.status(), Status::Held);
    assert_eq!(server.sessions().len(), 1);
    // The last drop waits for the end of the session.
    drop(guard);
    assert_eq!(server.sessions().len(), 0);
}

#[test]
fn last_drop_waits_until_a_kept_znode_is_deleted() {
    let server = server();
    for mode in [CreateMode::Persistent, CreateMode::Ephemeral] {
        let client = client(&server);
        let node = PersistentNode::start(&client, "/here", b"", mode).unwrap();
        node.created().unwrap();
        drop((client, node));
        assert!(server.get("/here").is_none(), "{mode:?}");
    }
}

#[test]
fn last_drop_of_a_kept_znode_without_a_server_ends_in_time() {
    let server = server();
    let client = client(&server);
    let mode = CreateMode::Persistent;
    let node = PersistentNode::start(&client, "/here", b"", mode).unwrap();
    node.created().unwrap();
    server.go_down();
    soon(&on_thread(move || drop((client, node))));
}

#[test]
fn last_drop_without_a_server_ends_in_time() {
    let server = server();
    let client = client(&server);
    let guard = InterProcessMutex::new(&client, PATH)
        .unwrap()
        .acquire()
        .unwrap();
    server.go_down();
    soon(&on_thread(move || drop((guard, client))));
}

#[test]
fn connect_without_a_server_fails_and_names_it() {
    let server = server();
    let address = server.connect_string();
    server.go_down();
    let settings = Client::builder(&address).unwrap();
    let refused = Client::start(settings.connection_timeout(Duration::from_millis(50)));
    let error = refused.expect_err("no server listens");
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn call_in_a_runtime_fails_and_says_what_to_do() {
    let server = server();
    let client = client(&server);
    let lock = InterProcessMutex::new(&client, PATH).unwrap();
    let guard = lock.acquire().unwrap();
    let address = server.connect_string();
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let error = lock.try_acquire().expect_err("a runtime runs here");
        let LockError::Client(Error::InRuntime { .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(
            error.to_string(),
            "InterProcessMutex::try_acquire: this thread belongs to a tokio runtime, whose tasks \
             a blocking call would stop; await the async type instead, or call this on a thread of \
             std::thread::spawn"
        );
        assert!(matches!(client.exists("/"), Err(Error::InRuntime { .. })));
        let connected = Client::connect(&address);
        assert!(matches!(
            connected,
            Err(ConnectError::Connect(Error::InRuntime { .. }))
        ));
        // The lock is released in the background all the same.
        let released = guard.release();
        assert!(matches!(released, Err(Error::InRuntime { .. })));
    });
    lock.acquire_timeout(PATIENCE).unwrap();
}

#[test]
fn last_drop_in_a_runtime_ends_the_session_in_the_background() {
    let server = server();
    let client = client(&server);
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { drop(client) });
    server.until_sessions(0, PATIENCE).unwrap();
}

#[test]
fn call_that_is_refused_or_interrupted_sends_nothing() {
    let server = server();
    let client = client(&server);
    let interrupt = Interrupt::default();
    let interrupted = client.with_interrupt(&interrupt);
    interrupt.trigger();
    let mode = CreateMode::Persistent;
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    let refused = runtime.block_on(async { client.create("/refused", b"", mode) });
    assert!(matches!(refused, Err(Error::InRuntime { .. })));
    let ended = interrupted.create("/interrupted", b"", mode);
    assert!(matches!(ended, Err(Error::Interrupted { .. })));
    // Requests of one session are served in order.
    client.exists("/").unwrap();
    assert_eq!(server.children("/").unwrap(), ["zookeeper"]);
}

#[test]
fn call_within_a_future_that_another_call_waits_for_fails() {
    let server = server();
    let client = client(&server);
    let inner = client.wait(async { client.exists("/") });
    assert!(matches!(inner, Err(Error::InRuntime { .. })));
}
