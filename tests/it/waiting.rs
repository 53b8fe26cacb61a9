//! Waiting for watches, children, contenders and idleness. Another thread brings about the
//! condition; a wait that times out has a short limit or runs on paused time.

use std::{thread, time::Duration};

use minikeeper::{Server as AsyncServer, blocking::Server};
use minikeeper_protocol::{CreateMode, Request};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{TIMEOUT_MS, resume, start};

const NOW: Duration = Duration::ZERO;
const MS: Duration = Duration::from_millis(1);

fn create(client: &mut Wire, path: &str) {
    client.must(&wire::create(path, b"", CreateMode::Persistent));
}

/// Runs the client on another thread while this one waits. Either may be first.
fn while_waiting(server: &Server, client: impl FnOnce(&mut Wire) + Send, wait: impl FnOnce()) {
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let (mut wire, _) = Wire::open(server.addr(), TIMEOUT_MS);
            client(&mut wire);
            wire
        });
        wait();
        acting.join().unwrap();
    });
}

#[test]
fn until_exists_ends_when_the_znode_is_created() {
    let server = start();
    while_waiting(
        &server,
        |client| {
            create(client, "/a");
            create(client, "/a/b");
        },
        || server.until_exists("/a/b", PATIENCE).unwrap(),
    );
    server.until_exists("/a/b", NOW).unwrap();
    let missing = server.until_exists("/a/c/d", NOW).unwrap_err();
    assert_eq!(missing.seen, "the nearest parent that exists is \"/a\"");
}

#[test]
fn until_watched_ends_with_any_kind_of_watch() {
    let server = start();
    for (path, watch) in [
        ("/data", wire::exists("/data", true)),
        ("/", wire::children("/", true)),
        (
            "/persistent",
            Request::AddWatch {
                path: Some("/persistent".into()),
                mode: 0,
            },
        ),
        (
            "/above/and/below",
            Request::AddWatch {
                path: Some("/above".into()),
                mode: 1,
            },
        ),
    ] {
        assert!(server.until_watched(path, NOW).is_err(), "{path}");
        while_waiting(
            &server,
            |client| {
                client.call(&watch);
                client.ping();
            },
            || server.until_watched(path, PATIENCE).unwrap(),
        );
        server.disconnect_all();
        server.until_idle(MS, PATIENCE).unwrap();
        crate::kit::wait_until("the connection is closed", || server.connections() == 0);
    }
}

#[test]
fn until_watched_error_lists_the_watched_paths() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.refused(&wire::exists("/a", true));
    client.must(&wire::children("/", true));
    let error = server.until_watched("/b", NOW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "path \"/b\" is watched: not within 0ns; watched: \"/\" (children), \"/a\" (data)"
    );
    for number in 0..20 {
        client.refused(&wire::exists(&format!("/many{number:02}"), true));
    }
    let error = server.until_watched("/b", NOW).unwrap_err();
    assert!(error.seen.ends_with("\"/many07\" (data), ..."), "{error}");
}

#[test]
fn until_children_ends_at_exactly_the_count() {
    let server = start();
    while_waiting(
        &server,
        |client| {
            for path in ["/p", "/p/a", "/p/b"] {
                create(client, path);
            }
        },
        || server.until_children("/p", 2, PATIENCE).unwrap(),
    );
    let error = server.until_children("/p", 1, NOW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "path \"/p\" has 1 children: not within 0ns; it has 2: \"a\", \"b\""
    );
    let error = server.until_children("/q", 1, NOW).unwrap_err();
    assert_eq!(error.seen, "the path does not exist");
    let error = server.until_children("/p/a", 1, NOW).unwrap_err();
    assert_eq!(error.seen, "it has no children");
    server.until_children("/q", 0, NOW).unwrap();
}

/// An expiry deletes ephemerals without a request of a client.
#[test]
fn until_children_ends_when_an_expiry_deletes_the_children() {
    let server = start();
    let (mut owner, _) = Wire::open(server.addr(), TIMEOUT_MS);
    create(&mut owner, "/p");
    owner.must(&wire::create("/p/e", b"", CreateMode::Ephemeral));
    thread::scope(|scope| {
        scope.spawn(|| server.advance_strictly(Duration::from_secs(10)));
        server.until_children("/p", 0, PATIENCE).unwrap();
    });
}

#[test]
fn until_contenders_counts_children_named_like_contenders() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    create(&mut client, "/lock");
    for name in [
        "_c_00000000-0000-0000-0000-000000000000-lock-0000000000",
        "_c_00000000-0000-0000-0000-000000000000-__READ__0000000001",
        "x-__WRIT__0000000002",
        "_c_0-lease-0000000003",
        "latch-0000000004",
        "0123__lock__0000000005",
        "plain",
    ] {
        create(&mut client, &format!("/lock/{name}"));
    }
    server.until_contenders("/lock", 6, NOW).unwrap();
    server.until_contenders("/lock", 1, NOW).unwrap();
    let error = server.until_contenders("/lock", 7, NOW).unwrap_err();
    assert!(
        error.seen.starts_with("it has 6 among 7 children: "),
        "{error}"
    );
    while_waiting(
        &server,
        |client| create(client, "/lock/lock-0000000006"),
        || server.until_contenders("/lock", 7, PATIENCE).unwrap(),
    );
}

#[tokio::test(start_paused = true)]
async fn until_idle_ignores_pings() {
    use tokio::io::AsyncWriteExt as _;
    let server = AsyncServer::builder().manual_clock().start().await.unwrap();
    let mut client = server.local();
    let mut hello = Vec::new();
    minikeeper_protocol::ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    client.write_all(&hello).await.unwrap();
    let universe = server.universe().clone();
    let waiting = tokio::spawn(async move { universe.until_idle(100 * MS, 350 * MS).await });
    let (mut busy, mut ping) = (Vec::new(), Vec::new());
    wire::exists("/", false).encode(minikeeper_protocol::Xid(1), &mut busy);
    Request::Ping.encode(minikeeper_protocol::Xid::PING, &mut ping);
    for _ in 0..6 {
        tokio::time::sleep(60 * MS).await;
        client.write_all(&busy).await.unwrap();
    }
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no request for 100ms: not within 350ms; \
         5 turns served requests or changed connections"
    );
    let universe = server.universe().clone();
    let waiting = tokio::spawn(async move { universe.until_idle(100 * MS, 350 * MS).await });
    for _ in 0..3 {
        tokio::time::sleep(40 * MS).await;
        client.write_all(&ping).await.unwrap();
    }
    assert!(waiting.is_finished());
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn blocking_wait_works_inside_a_runtime() {
    let server = start();
    server.until_children("/none", 0, PATIENCE).unwrap();
    assert!(server.expire("127.0.0.1").is_err());
}

/// Many threads wait at once for different conditions, and all are notified.
#[test]
fn concurrent_waits_are_all_notified() {
    let server = start();
    thread::scope(|scope| {
        for number in 0..8 {
            let path = format!("/p{number}");
            let server = &server;
            scope.spawn(move || server.until_children(&path, 1, PATIENCE).unwrap());
        }
        let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
        for number in (0..8).rev() {
            create(&mut client, &format!("/p{number}"));
            create(&mut client, &format!("/p{number}/child"));
        }
    });
}

/// A test that expires a session had no way to wait until its client knew.
#[test]
fn until_noticed_ends_when_a_client_is_told_that_its_session_has_expired() {
    let server = start();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let id = session.session_id;
    let wait = |within| server.until_noticed(id, within).map_err(|error| error.seen);
    assert_eq!(wait(MS), Err("the session has not ended".to_owned()));
    server.expire(id).unwrap();
    client.expect_closed();
    let silent = "the session does not exist, and no client has asked for it since it ended";
    assert_eq!(wait(MS), Err(silent.to_owned()));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(PATIENCE));
        let (_, refused) = resume(&server, &session);
        assert_eq!(refused.timeout_ms, 0);
        waiting.join().unwrap().unwrap();
    });
    // What is past is remembered.
    wait(NOW).unwrap();
    // A wrong password says nothing about the session.
    let (_client, other) = Wire::open(server.addr(), TIMEOUT_MS);
    let mut wrong = other.clone();
    wrong.password = session.password;
    resume(&server, &wrong);
    server.expire(other.session_id).unwrap();
    server.until_noticed(other.session_id, MS).unwrap_err();
}

#[test]
fn until_noticed_of_a_universe_learns_what_its_clients_are_told() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/mine/e", b"", CreateMode::Ephemeral));
    mine.expire("/e").unwrap();
    client.expect_closed();
    resume(&server, &session);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let waited = mine.until_noticed(session.session_id, PATIENCE);
    runtime.block_on(waited).unwrap();
}
