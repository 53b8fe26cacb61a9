//! Marks, rewinding to them, and forks.

use minikeeper_protocol::{CreateMode, Perms};

use super::*;
use crate::Mark;

/// Rewinds to a mark. Returns the connections that closed, or `None` if the mark does not exist.
fn rewind_at(engine: &mut Engine, mark: Mark, elapsed_ms: u64) -> Option<Vec<u32>> {
    #[derive(Default)]
    struct Closed(Vec<u32>);
    impl Effects for Closed {
        fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}
        fn reply(&mut self, _: ConnId, _: ReplyHeader, _: ReplyRef<'_>) {}
        fn event(&mut self, _: ConnId, _: &Event<'_>) {}
        fn close(&mut self, conn: ConnId, why: CloseReason) {
            assert_eq!(why, CloseReason::Rewound);
            self.0.push(conn.0);
        }
        fn limit_hit(&mut self, _: Limit, _: usize) {}
    }
    let now = Now {
        elapsed_ms,
        wall_ms: 0,
    };
    let mut closed = Closed::default();
    let is_there = engine.rewind(mark, now, &mut closed);
    engine.check().unwrap();
    is_there.then_some(closed.0)
}

/// Returns the paths of all znodes, without the built-in ones.
fn paths(engine: &Engine) -> Vec<String> {
    let mut paths: Vec<_> = engine
        .image()
        .znodes()
        .map(|znode| String::from_utf8_lossy(znode.path).into_owned())
        .filter(|path| !path.starts_with("/zookeeper"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn rewinding_keeps_the_mark_and_removes_later_ones() {
    let mut engine = engine(1, Settings::default());
    let empty = engine.mark();
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    let with_a = engine.mark();
    for _ in 0..2 {
        request(&mut engine, 0, create("/a/b", CreateMode::Persistent));
        request(&mut engine, 0, delete("/a/b"));
        request(&mut engine, 0, create("/c", CreateMode::Persistent));
        assert_eq!(rewind_at(&mut engine, with_a, 0), Some(vec![]));
        assert_eq!(paths(&engine), ["/", "/a"]);
    }
    assert_eq!(rewind_at(&mut engine, empty, 0), Some(vec![]));
    assert_eq!(paths(&engine), ["/"]);
    assert_eq!(rewind_at(&mut engine, with_a, 0), None);
    assert!(engine.forget_mark(empty));
    assert!(!engine.forget_mark(empty));
    assert_eq!(rewind_at(&mut engine, empty, 0), None);
}

#[test]
fn removing_an_older_mark_keeps_only_the_changes_since_the_younger() {
    let mut engine = engine(1, Settings::default());
    let old = engine.mark();
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    let all = engine.state.undo.bytes();
    let young = engine.mark();
    request(&mut engine, 0, create("/b", CreateMode::Persistent));
    assert!(engine.forget_mark(old));
    assert_eq!(engine.state.undo.bytes(), all);
    assert_eq!(rewind_at(&mut engine, young, 0), Some(vec![]));
    assert_eq!(paths(&engine), ["/", "/a"]);
    assert!(engine.forget_mark(young));
    assert!(engine.state.undo.is_clear());
}

#[test]
fn too_many_changes_drop_the_marks_and_refuse_no_request() {
    let mut engine = engine(
        1,
        Settings {
            undo_bytes_max: 4_000,
            ..Settings::default()
        },
    );
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    let mark = engine.mark();
    for _ in 0..200 {
        assert_eq!(outcome(&mut engine, 0, set("/a", b"0123456789")), Ok(()));
        assert!(engine.state.undo.bytes() < 5_000);
    }
    assert_eq!(rewind_at(&mut engine, mark, 0), None);
    assert!(engine.state.undo.is_clear());
}

/// A session that has ended since exists again, with its ephemeral and its full timeout; one opened
/// since is removed, and its connection closes. The zxid does not go back.
#[test]
fn rewinding_restores_ended_sessions_and_removes_new_ones() {
    let mut engine = engine(2, Settings::default());
    let first = engine.sessions().next().unwrap().0;
    request(&mut engine, 0, create("/e", CreateMode::Ephemeral));
    let mark = engine.mark();
    apply(&mut engine, &Input::Expire { session: first });
    assert_eq!(paths(&engine), ["/"]);
    open(&mut engine, 2);
    request(&mut engine, 2, create("/f", CreateMode::Ephemeral));
    let zxid = engine.zxid();
    assert_eq!(rewind_at(&mut engine, mark, 5_000), Some(vec![2]));
    assert_eq!(paths(&engine), ["/", "/e"]);
    assert_eq!(engine.zxid(), Zxid(zxid.0 + 1));
    let sessions: Vec<_> = engine.sessions().collect();
    assert_eq!(sessions.len(), 2);
    assert!(sessions.contains(&(first, 10_000, None)));
    let key = engine.state.sessions.find(first).unwrap();
    // 5 s and 10 s of timeout, rounded up to the next tick of 3 s.
    assert_eq!(engine.state.sessions.deadline_ms(key), 18_000);
}

/// A watch that has fired since fires again, and one registered since stays: its client waits for it.
#[test]
fn rewinding_restores_the_watches_of_connected_sessions() {
    let mut engine = engine(2, Settings::default());
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    request(&mut engine, 1, get("/a"));
    let mark = engine.mark();
    assert_eq!(request(&mut engine, 0, set("/a", b"1")).events.len(), 1);
    request(&mut engine, 1, list("/a"));
    assert_eq!(rewind_at(&mut engine, mark, 0), Some(vec![]));
    let seen = request(&mut engine, 0, create("/a/b", CreateMode::Persistent));
    assert_eq!(seen.events.len(), 1);
    assert_eq!(request(&mut engine, 0, set("/a", b"2")).events.len(), 1);
}

/// Every state of a watch since the mark came back: one that its client had removed, and one that had
/// fired.
#[test]
fn rewinding_restores_no_watch_that_was_registered_and_removed_since() {
    let mut engine = engine(2, Settings::default());
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    let mark = engine.mark();
    let path = || Some("/a".into());
    request(
        &mut engine,
        1,
        Request::AddWatch {
            path: path(),
            mode: minikeeper_protocol::AddWatchMode::Persistent.code(),
        },
    );
    request(
        &mut engine,
        1,
        Request::RemoveWatches {
            path: path(),
            kind: minikeeper_protocol::WatcherType::Any.code(),
        },
    );
    request(&mut engine, 1, get("/a"));
    assert_eq!(request(&mut engine, 0, set("/a", b"1")).events.len(), 1);
    // This one fires for the rewind.
    request(&mut engine, 1, get("/a"));
    assert_eq!(rewind_at(&mut engine, mark, 0), Some(vec![]));
    engine.check().unwrap();
    assert_eq!(request(&mut engine, 0, set("/a", b"2")).events, []);
}

/// Clients that stayed connected were not told: their caches stayed with what had been undone.
#[test]
fn rewinding_sends_the_events_of_the_differences() {
    #[derive(Default)]
    struct Told(Vec<(u32, EventKind, String, Zxid)>);
    impl Effects for Told {
        fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}
        fn reply(&mut self, _: ConnId, _: ReplyHeader, _: ReplyRef<'_>) {}
        fn event(&mut self, conn: ConnId, event: &Event<'_>) {
            let path = String::from_utf8_lossy(event.path).into_owned();
            self.0.push((conn.0, event.kind, path, event.zxid));
        }
        fn close(&mut self, _: ConnId, _: CloseReason) {}
        fn limit_hit(&mut self, _: Limit, _: usize) {}
    }
    let mut engine = engine(2, Settings::default());
    for path in ["/same", "/set", "/gone", "/gone/too", "/again"] {
        request(&mut engine, 0, create(path, CreateMode::Persistent));
    }
    let mark = engine.mark();
    request(&mut engine, 0, set("/set", b"1"));
    request(&mut engine, 0, delete("/gone/too"));
    request(&mut engine, 0, delete("/gone"));
    request(&mut engine, 0, delete("/again"));
    request(&mut engine, 0, create("/again", CreateMode::Persistent));
    request(&mut engine, 0, create("/new", CreateMode::Persistent));
    request(&mut engine, 0, create("/new/too", CreateMode::Persistent));
    // Created and deleted since: no difference.
    request(&mut engine, 0, create("/both", CreateMode::Persistent));
    request(&mut engine, 0, delete("/both"));
    request(
        &mut engine,
        1,
        Request::AddWatch {
            path: Some("/".into()),
            mode: minikeeper_protocol::AddWatchMode::PersistentRecursive.code(),
        },
    );
    request(&mut engine, 0, get("/set"));
    request(&mut engine, 0, list("/"));
    let mut told = Told::default();
    assert!(engine.rewind(mark, Now::default(), &mut told));
    engine.check().unwrap();
    let zxid = engine.zxid();
    let expected = [
        (1, EventKind::Deleted, "/new/too"),
        (1, EventKind::Deleted, "/new"),
        (0, EventKind::ChildrenChanged, "/"),
        (1, EventKind::Deleted, "/again"),
        (1, EventKind::Created, "/again"),
        (1, EventKind::Created, "/gone"),
        (1, EventKind::Created, "/gone/too"),
        (0, EventKind::DataChanged, "/set"),
        (1, EventKind::DataChanged, "/set"),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(conn, kind, path)| (conn, kind, path.to_owned(), zxid))
        .collect();
    assert_eq!(told.0, expected);
}

#[test]
fn fork_is_equal_and_independent() {
    let mut engine = engine(2, Settings::default());
    let acl = AclList::new(&[minikeeper_protocol::Acl {
        perms: Perms::ALL,
        scheme: Some("digest".into()),
        id: Some("a:b".into()),
    }]);
    request(
        &mut engine,
        0,
        Request::Create(create_with("/closed", acl.clone())),
    );
    request(&mut engine, 0, create("/e", CreateMode::Ephemeral));
    request(&mut engine, 1, get("/e"));
    let mark = engine.mark();
    request(&mut engine, 0, create("/a", CreateMode::Persistent));
    request(&mut engine, 0, delete("/closed"));
    let mut fork = engine.fork(SessionId(77));
    fork.check().unwrap();
    assert_eq!(paths(&fork), ["/", "/a", "/e"]);
    assert_eq!(fork.zxid(), engine.zxid());
    assert!(fork.sessions().all(|(.., conn)| conn.is_none()));
    assert_eq!(fork.sessions().count(), 2);
    request(&mut engine, 0, delete("/e"));
    assert_eq!(rewind_at(&mut engine, mark, 0), Some(vec![]));
    assert_eq!(paths(&fork), ["/", "/a", "/e"]);
    assert_eq!(open(&mut fork, 0).session, Some(SessionId(77)));
    request(&mut fork, 0, create("/own", CreateMode::Persistent));
    assert_eq!(paths(&engine), ["/", "/closed", "/e"]);
}
