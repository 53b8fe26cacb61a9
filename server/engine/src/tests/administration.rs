//! Changes without a session.

use super::*;

fn administer(engine: &mut Engine, change: &Request) -> (Result<(), ErrorCode>, Seen) {
    let mut seen = Seen::default();
    let outcome = engine.administer(Now::default(), change, &mut seen);
    engine.check().unwrap();
    (outcome.map(drop), seen)
}

fn notified(seen: Seen) -> Vec<(u32, EventKind, String)> {
    let events = seen.events.into_iter();
    events
        .map(|(conn, kind, path, _)| (conn, kind, path))
        .collect()
}

#[test]
fn administration_sends_events_and_takes_zxids() {
    let mut engine = engine(2, Settings::default());
    request(&mut engine, 1, list("/"));
    let before = engine.zxid();
    let (outcome, seen) = administer(&mut engine, &create("/a", CreateMode::Persistent));
    assert_eq!(outcome, Ok(()));
    assert_eq!(
        notified(seen),
        [(1, EventKind::ChildrenChanged, "/".to_owned())]
    );
    request(&mut engine, 1, get("/a"));
    let (_, seen) = administer(&mut engine, &set("/a", b"x"));
    assert_eq!(
        notified(seen),
        [(1, EventKind::DataChanged, "/a".to_owned())]
    );
    request(&mut engine, 1, get("/a"));
    let (_, seen) = administer(&mut engine, &delete("/a"));
    assert_eq!(notified(seen), [(1, EventKind::Deleted, "/a".to_owned())]);
    assert_eq!(engine.zxid(), Zxid(before.0 + 3));
    assert_eq!(engine.counts().sessions, 2);
}

#[test]
fn administration_ignores_access_lists() {
    let mut engine = engine(1, Settings::default());
    let closed = Request::Create(create_with("/r", AclList::world_read()));
    assert_eq!(outcome(&mut engine, 0, closed), Ok(()));
    let change = set("/r", b"x");
    assert_eq!(
        outcome(&mut engine, 0, change.clone()),
        Err(ErrorCode::NoAuth)
    );
    assert_eq!(administer(&mut engine, &change).0, Ok(()));
    let open = Request::SetAcl {
        path: Some("/r".into()),
        acl: AclList::world_all(),
        version: -1,
    };
    assert_eq!(administer(&mut engine, &open).0, Ok(()));
    assert_eq!(outcome(&mut engine, 0, change), Ok(()));
}

#[test]
fn impossible_or_unsupported_administration_is_refused() {
    let mut engine = engine(1, Settings::default());
    for (change, error) in [
        (create("/e", CreateMode::Ephemeral), ErrorCode::BadArguments),
        (
            create("/e", CreateMode::EphemeralSequential),
            ErrorCode::BadArguments,
        ),
        (
            create("/no/parent", CreateMode::Persistent),
            ErrorCode::NoNode,
        ),
        (
            create("/zookeeper", CreateMode::Persistent),
            ErrorCode::NodeExists,
        ),
        (set("/missing", b""), ErrorCode::NoNode),
        (delete("/zookeeper"), ErrorCode::BadArguments),
        (Request::Ping, ErrorCode::Unimplemented),
        (Request::CloseSession, ErrorCode::Unimplemented),
    ] {
        assert_eq!(administer(&mut engine, &change).0, Err(error), "{change:?}");
    }
    assert_eq!(engine.counts().sessions, 1);
}
