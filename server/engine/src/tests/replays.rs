//! Replayed changes of a log. Source: `docs/zookeeper-protocol.md` section 22.3.

use minikeeper_protocol::{Acl, Perms, Ustring};

use super::{
    records::{ROOT, session, znode},
    *,
};
use crate::{Change, ChangeHead, ImageError, Life, Restoration, ZnodeImage};

const fn head(session: i64, zxid: i64) -> ChangeHead {
    ChangeHead {
        session: SessionId(session),
        zxid: Zxid(zxid),
        wall_ms: 1_000 + zxid % 1_000,
    }
}

static EVERYBODY: AclList = AclList::world_all();

fn created(path: &str, created_children: i32, life: Life) -> Change<'_> {
    Change::Create {
        path: path.as_bytes(),
        data: Some(b"new"),
        acl: &EVERYBODY,
        life,
        created_children: Some(created_children),
    }
}

fn persistent(path: &str, created_children: i32) -> Change<'_> {
    created(path, created_children, Life::Persistent)
}

fn deleted(path: &str) -> Change<'_> {
    let path = path.as_bytes();
    Change::Delete { path }
}

fn data_set(path: &str, version: i32) -> Change<'_> {
    Change::SetData {
        path: path.as_bytes(),
        data: Some(b"other"),
        version,
    }
}

/// Restores a snapshot of these znodes and replays these changes.
#[track_caller]
fn replayed(znodes: &[ZnodeImage<'_>], changes: &[(ChangeHead, Change<'_>)]) -> Engine {
    let mut restoration = Restoration::new(Settings::default());
    for znode in znodes {
        restoration.znode(znode).unwrap();
    }
    finished(restoration, changes)
}

#[track_caller]
fn finished(mut restoration: Restoration, changes: &[(ChangeHead, Change<'_>)]) -> Engine {
    for (head, change) in changes {
        restoration.replay(*head, change).unwrap();
    }
    let engine = Engine::restore(restoration, Zxid(0)).unwrap();
    engine.check().unwrap();
    engine
}

#[test]
fn complete_log_rebuilds_the_state_from_a_new_tree() {
    let restoration = Restoration::fresh(Settings::default());
    let engine = finished(
        restoration,
        &[
            (head(7, 1), Change::OpenSession { timeout_ms: 5_000 }),
            (head(7, 2), persistent("/a", 1)),
            (head(7, 3), created("/a/e", 1, Life::Session(SessionId(7)))),
            (head(7, 4), created("/a/c", 2, Life::Container)),
            (head(7, 5), created("/a/t", 3, Life::Ttl { ms: 50 })),
            (head(7, 6), data_set("/a", 1)),
            (head(7, 7), Change::Nothing),
            (head(7, 8), deleted("/a/c")),
        ],
    );
    assert_eq!(engine.zxid(), Zxid(8));
    assert_eq!(engine.children("/a").unwrap(), ["e", "t"]);
    let (data, stat) = engine.get("/a").unwrap();
    assert_eq!(data, Some(&b"other"[..]));
    assert_eq!(
        (stat.version, stat.mzxid, stat.mtime_ms),
        (1, Zxid(6), 1_006)
    );
    assert_eq!((stat.czxid, stat.ctime_ms), (Zxid(2), 1_002));
    assert_eq!((stat.cversion, stat.pzxid), (4, Zxid(8)));
    let owner = engine.get("/a/e").unwrap().1.ephemeral_owner;
    assert_eq!(owner, SessionId(7));
    assert!(engine.dump().contains("znode /a/t "), "{}", engine.dump());
    let sessions: Vec<_> = engine.sessions().collect();
    assert_eq!(sessions, [(SessionId(7), 5_000, None)]);
}

/// Source: ZooKeeper's `DataTree.createNode` and `setCversionPzxid`.
#[test]
fn replayed_create_of_an_existing_znode_sets_only_its_access_list() {
    let list = AclList::new(&[Acl {
        perms: Perms::READ,
        scheme: Some(Ustring::from_static("digest")),
        id: Some(Ustring::from_static("a:b")),
    }]);
    let change = Change::Create {
        path: b"/a",
        data: Some(b"old"),
        acl: &list,
        life: Life::Persistent,
        created_children: Some(4),
    };
    let ahead = ZnodeImage {
        data: Some(b"from the future"),
        version: 3,
        ..znode("/a", 12)
    };
    let engine = replayed(&[ROOT, ahead], &[(head(1, 11), change)]);
    let (data, stat) = engine.get("/a").unwrap();
    assert_eq!(data, Some(&b"from the future"[..]));
    assert_eq!((stat.version, stat.czxid), (3, Zxid(12)));
    assert!(engine.dump().contains("a:b"), "{}", engine.dump());
    assert_eq!(engine.image().znodes().next().unwrap().created_children, 4);
}

#[test]
fn change_of_a_missing_znode_is_skipped_but_a_delete_raises_the_parents_pzxid() {
    let parent = ZnodeImage {
        created_children: 5,
        ..znode("/p", 9)
    };
    let engine = replayed(
        &[ROOT, parent],
        &[
            (head(1, 10), deleted("/p/gone")),
            (head(1, 11), data_set("/p/gone", 2)),
            (head(1, 12), persistent("/nowhere/x", 1)),
            (head(1, 13), deleted("/nowhere/x")),
            (head(1, 14), deleted("/")),
            (head(1, 15), persistent("/", 9)),
        ],
    );
    let stat = engine.get("/p").unwrap().1;
    assert_eq!((stat.pzxid, stat.cversion), (Zxid(10), 10));
    assert_eq!(engine.zxid(), Zxid(15));
    assert_eq!(engine.children("/").unwrap(), ["p"]);
}

/// The log repeats creations and deletions from before the snapshot, with lower numbers.
#[test]
fn counters_of_a_parent_never_go_back() {
    let parent = ZnodeImage {
        created_children: 5,
        pzxid: Zxid(20),
        ..znode("/p", 3)
    };
    let engine = replayed(
        &[ROOT, parent],
        &[
            (head(1, 10), persistent("/p/x", 4)),
            (head(1, 11), deleted("/p/x")),
        ],
    );
    let stat = engine.get("/p").unwrap().1;
    assert_eq!((stat.pzxid, stat.cversion), (Zxid(20), 10));
}

/// The znode was childless when it was deleted, so its descendants in the snapshot are newer.
#[test]
fn replayed_delete_also_removes_newer_descendants_in_a_fuzzy_snapshot() {
    let engine = replayed(
        &[
            ROOT,
            znode("/a", 12),
            znode("/a/b", 13),
            znode("/a/b/c", 14),
        ],
        &[
            (head(1, 11), deleted("/a")),
            (head(1, 12), persistent("/a", 2)),
            (head(1, 13), persistent("/a/b", 1)),
        ],
    );
    assert_eq!(engine.children("/a").unwrap(), ["b"]);
    assert_eq!(engine.get("/a/b").unwrap().0, Some(&b"new"[..]));
    assert!(engine.get("/a/b/c").is_none());
}

/// Source: ZooKeeper's `DataTree.killSession`: deletes the listed ephemerals, and the others too.
#[test]
fn replayed_end_of_a_session_deletes_its_ephemerals_listed_or_not() {
    for paths in [
        &[][..],
        &[&b"/e"[..]][..],
        &[&b"/e"[..], b"/f", b"/gone"][..],
    ] {
        let mut restoration = Restoration::fresh(Settings::default());
        for id in [5, 6] {
            restoration.session(session(id, 4_000)).unwrap();
        }
        let engine = finished(
            restoration,
            &[
                (head(5, 1), created("/e", 1, Life::Session(SessionId(5)))),
                (head(5, 2), created("/f", 2, Life::Session(SessionId(5)))),
                (head(6, 3), created("/g", 3, Life::Session(SessionId(6)))),
                (head(5, 4), Change::CloseSession { paths }),
            ],
        );
        assert_eq!(engine.children("/").unwrap(), ["zookeeper", "g"]);
        assert_eq!(engine.get("/").unwrap().1.pzxid, Zxid(4));
        let ids: Vec<_> = engine.sessions().map(|(id, ..)| id).collect();
        assert_eq!(ids, [SessionId(6)]);
    }
}

/// A fuzzy snapshot may have an ephemeral at a path where the log still has a parent.
#[test]
fn ephemeral_below_another_one_is_removed_with_it() {
    let restoration = Restoration::fresh(Settings::default());
    let engine = finished(
        restoration,
        &[
            (head(5, 1), Change::OpenSession { timeout_ms: 4_000 }),
            (head(5, 2), created("/e", 1, Life::Session(SessionId(5)))),
            (head(5, 3), created("/e/f", 1, Life::Session(SessionId(5)))),
            (head(5, 4), Change::CloseSession { paths: &[] }),
        ],
    );
    assert_eq!(engine.children("/").unwrap(), ["zookeeper"]);
}

#[test]
fn replayed_open_of_a_known_session_sets_its_timeout() {
    let restoration = Restoration::fresh(Settings::default());
    let engine = finished(
        restoration,
        &[
            (head(5, 1), Change::OpenSession { timeout_ms: 4_000 }),
            (head(5, 2), Change::OpenSession { timeout_ms: 9_000 }),
        ],
    );
    let sessions: Vec<_> = engine.sessions().collect();
    assert_eq!(sessions, [(SessionId(5), 9_000, None)]);
}

/// A fuzzy snapshot contains its access lists first: a znode may use one that was added later.
#[test]
fn access_list_missing_from_the_snapshot_may_come_from_the_log() {
    let znode = ZnodeImage {
        acl: 3,
        ..znode("/a", 12)
    };
    let snapshot = || {
        let mut restoration = Restoration::new(Settings::default());
        restoration.znode(&ROOT).unwrap();
        restoration.znode(&znode).unwrap();
        restoration
    };
    let error = Engine::restore(snapshot(), Zxid(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "znode \"/a\": access list 3 is not in the table"
    );
    for change in [
        persistent("/a", 1),
        Change::SetAcl {
            path: b"/a",
            acl: &AclList::world_read(),
            aversion: 1,
        },
        deleted("/a"),
    ] {
        finished(snapshot(), &[(head(1, 12), change)]);
    }
}

/// A snapshot without its log may contain a parent whose pzxid is too low.
#[test]
fn pzxid_of_a_parent_is_raised_to_the_czxid_of_its_child() {
    let engine = replayed(&[ROOT, znode("/a", 3), znode("/a/b", 9)], &[]);
    assert_eq!(engine.get("/a").unwrap().1.pzxid, Zxid(9));
}

#[test]
fn invalid_change_is_refused() {
    let nameless = AclList::new(&[Acl {
        perms: Perms::ALL,
        scheme: None,
        id: None,
    }]);
    let with_list = Change::SetAcl {
        path: b"/a",
        acl: &nameless,
        aversion: 1,
    };
    let mut restoration = Restoration::fresh(Settings::default());
    for (head, change, fault) in [
        (
            head(1, 1),
            persistent("/a//b", 1),
            "path \"/a//b\": empty component at byte 3",
        ),
        (
            head(1, 1),
            deleted("a"),
            "path \"a\": does not start with a slash",
        ),
        (
            head(1, 1),
            created("/t", 1, Life::Ttl { ms: 0 }),
            "znode \"/t\": ttl of 0 ms is outside the range of 1 ms to 1099511627775 ms",
        ),
        (
            head(0, 1),
            created("/e", 1, Life::Session(SessionId(0))),
            "session 0x0: no session can have this id",
        ),
        (
            head(1, 1),
            with_list,
            "access list 0: null, or an entry without scheme or id",
        ),
        (
            head(1, i64::MAX),
            Change::Nothing,
            "zxid 0x7fffffffffffffff exceeds the limit of 0x7ffffeffffffffff",
        ),
    ] {
        let error = restoration.replay(head, &change).unwrap_err();
        assert_eq!(error.to_string(), fault);
    }
    // After the replay, no ephemeral may have children.
    for (zxid, change) in [
        (1, Change::OpenSession { timeout_ms: 1_000 }),
        (2, created("/e", 1, Life::Session(SessionId(1)))),
        (3, persistent("/e/x", 1)),
    ] {
        restoration.replay(head(1, zxid), &change).unwrap();
    }
    let path = "/e/x".to_owned();
    assert_eq!(
        Engine::restore(restoration, Zxid(0)).unwrap_err(),
        ImageError::EphemeralParent { path }
    );
}
