//! Which requests commute. `tests/state/commuting.rs` serves random pairs in both orders.

use minikeeper_protocol::{Create, CreateMode, MultiOp, Request};

use super::{engine, request};
use crate::{ConnId, Engine, Settings};

fn create(path: &str, mode: CreateMode) -> Request {
    Request::Create(Create::new(path, b"", mode))
}

fn get(path: &str) -> Request {
    Request::GetData {
        path: Some(path.into()),
        watch: false,
    }
}

fn children(path: &str) -> Request {
    Request::GetChildren {
        path: Some(path.into()),
        watch: false,
    }
}

fn set(path: &str) -> Request {
    Request::SetData {
        path: Some(path.into()),
        data: None,
        version: -1,
    }
}

fn delete(path: &str) -> Request {
    Request::Delete {
        path: Some(path.into()),
        version: -1,
    }
}

/// An engine with `/a`, `/b` and the ephemeral `/a/e` of connection 1.
fn furnished() -> Engine {
    let mut engine = engine(3, Settings::default());
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    request(&mut engine, 0, create("/b", CreateMode::Persistent));
    request(&mut engine, 1, create("/a/e", CreateMode::Ephemeral));
    engine
}

/// Returns whether requests of connections 0 and 1 commute.
fn commute(engine: &Engine, one: &Request, other: &Request) -> bool {
    let one = engine.footprint(ConnId(0), one);
    let other = engine.footprint(ConnId(1), other);
    assert_eq!(one.commutes_with(&other), other.commutes_with(&one));
    one.commutes_with(&other)
}

#[test]
fn requests_commute_unless_one_changes_what_the_other_touches() {
    use CreateMode::{EphemeralSequential, Persistent};
    let engine = furnished();
    let ephemerals = || Request::GetEphemerals {
        prefix: Some("/".into()),
    };
    let cases = [
        (get("/a"), get("/a"), true),
        (get("/a"), set("/a"), false),
        (get("/a"), set("/b"), true),
        (set("/a"), set("/a"), false),
        (children("/a"), set("/a"), false), // Permissions are read with the stat.
        (children("/a"), create("/a/x", Persistent), false),
        (children("/b"), create("/a/x", Persistent), true),
        (create("/a/x", Persistent), create("/a/y", Persistent), true),
        (
            create("/a/x", Persistent),
            create("/a/x", Persistent),
            false,
        ),
        // The number counts all children there have been.
        (
            create("/a/x", Persistent),
            create("/a/n-", EphemeralSequential),
            false,
        ),
        (
            create("/a/n-", EphemeralSequential),
            create("/a/m-", EphemeralSequential),
            false,
        ),
        (
            create("/a/n-", EphemeralSequential),
            create("/b/n-", EphemeralSequential),
            true,
        ),
        (
            get("/a/n-0000000001"),
            create("/a/n-", EphemeralSequential),
            false,
        ),
        (delete("/b"), create("/b/x", Persistent), false),
        (delete("/a/e"), delete("/b"), true),
        (delete("/a/e"), ephemerals(), false),
        (get("/a/e"), Request::CloseSession, false),
        (get("/b"), Request::CloseSession, true),
        (Request::Ping, Request::CloseSession, true),
        (
            Request::GetAllChildrenNumber {
                path: Some("/".into()),
            },
            create("/a/x", Persistent),
            false,
        ),
    ];
    for (one, other, expected) in cases {
        assert_eq!(
            commute(&engine, &one, &other),
            expected,
            "{one:?} {other:?}"
        );
    }
}

#[test]
fn event_for_a_session_clashes_with_what_else_it_is_sent() {
    let mut engine = furnished();
    let watch = |path: &str| Request::GetData {
        path: Some(path.into()),
        watch: true,
    };
    assert!(commute(&engine, &set("/a"), &get("/b")));
    request(&mut engine, 1, watch("/a"));
    assert!(!commute(&engine, &set("/a"), &get("/b")));
    // Two events for a third session come in the order of the changes.
    assert!(commute(&engine, &set("/b"), &delete("/a/e")));
    request(&mut engine, 2, watch("/b"));
    request(&mut engine, 2, watch("/a/e"));
    assert!(!commute(&engine, &set("/b"), &delete("/a/e")));
}

#[test]
fn large_request_commutes_with_none() {
    let engine = furnished();
    let multi = |count: usize| {
        let parts = (0..count).map(|number| {
            let path = format!("/a/{number}");
            MultiOp::Create(Create::new(&path, b"", CreateMode::Persistent))
        });
        Request::Multi(parts.collect())
    };
    assert!(commute(&engine, &multi(300), &get("/b")));
    assert!(!commute(&engine, &multi(400), &get("/b")));
}
