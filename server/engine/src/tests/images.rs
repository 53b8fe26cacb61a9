//! States that are saved and restored. Source: `docs/zookeeper-protocol.md` sections 14.7 and 22.1.

use minikeeper_protocol::{Acl, Perms, Ustring};

use super::{
    records::{ROOT, session, znode},
    *,
};
use crate::{ImageError, Restoration, ZnodeImage};

/// Copies an engine through its image.
fn restored(engine: &Engine) -> Engine {
    let mut restoration = Restoration::new(engine.settings().clone());
    for session in engine.image().sessions() {
        restoration.session(session).unwrap();
    }
    for (id, list) in engine.image().access_lists() {
        restoration.access_list(id, list).unwrap();
    }
    for znode in engine.image().znodes() {
        restoration.znode(&znode).unwrap();
    }
    let restored = Engine::restore(restoration, engine.zxid()).unwrap();
    restored.check().unwrap();
    restored
}

#[test]
fn state_of_a_new_server_is_restored() {
    let engine = engine(0, Settings::default());
    let restored = restored(&engine);
    assert_eq!(restored.dump(), engine.dump());
    let paths: Vec<_> = engine.image().znodes().map(|znode| znode.path).collect();
    assert_eq!(
        paths,
        [
            &b"/"[..],
            b"/zookeeper",
            b"/zookeeper/quota",
            b"/zookeeper/config"
        ]
    );
}

/// `docs/zookeeper-protocol.md` section 22.1, rule 4: the server does not create it, but clients
/// may.
#[test]
fn missing_config_znode_is_not_created_by_a_restore() {
    let mut restoration = Restoration::new(Settings::default());
    for image in [ROOT, znode("/zookeeper", 3), znode("/zookeeper/quota", 3)] {
        restoration.znode(&image).unwrap();
    }
    let mut engine = Engine::restore(restoration, Zxid(9)).unwrap();
    engine.check().unwrap();
    open(&mut engine, 0);
    let config = "/zookeeper/config";
    let missing = outcome(&mut engine, 0, get(config));
    assert_eq!(missing, Err(ErrorCode::NoNode));
    let special = outcome(&mut engine, 0, delete(config));
    assert_eq!(special, Err(ErrorCode::BadArguments));
    let made = create(config, CreateMode::Persistent);
    assert_eq!(outcome(&mut engine, 0, made), Ok(()));
}

#[test]
fn counters_owners_and_access_lists_are_restored() {
    let mut first = engine(1, Settings::default());
    let list = AclList::new(&[Acl {
        perms: Perms::READ,
        scheme: Some(Ustring::from_static("digest")),
        id: Some(Ustring::from_static("a:b")),
    }]);
    for asked in [
        create("/p", CreateMode::Persistent),
        create("/p/n", CreateMode::PersistentSequential),
        create("/p/n", CreateMode::EphemeralSequential),
        create("/c", CreateMode::Container),
        create("/e", CreateMode::Ephemeral),
        set("/p", b"other"),
        Request::Create(create_with("/secret", list)),
        delete("/p/n0000000000"),
    ] {
        assert_eq!(outcome(&mut first, 0, asked), Ok(()));
    }
    apply(&mut first, &Input::Disconnect { conn: ConnId(0) });
    let mut second = restored(&first);
    assert_eq!(second.dump(), first.dump());
    // The sequence continues, and the next change has the next zxid.
    let seen = open(&mut second, 0);
    assert_eq!(
        seen.session.unwrap().0,
        first.image().sessions()[0].id.0 + 1
    );
    let seen = request(
        &mut second,
        0,
        create("/p/n", CreateMode::PersistentSequential),
    );
    assert_eq!(seen.path.unwrap(), "/p/n0000000002");
    assert_eq!(seen.reply.unwrap().zxid.0, first.zxid().0 + 2);
}

/// ZooKeeper saves the timeout that a session was opened with: `docs/zookeeper-protocol.md` section
/// 6.4.
#[test]
fn restored_session_has_the_timeout_it_was_opened_with() {
    let mut first = engine(1, Settings::default());
    let id = first.image().sessions()[0].id;
    apply(&mut first, &Input::Disconnect { conn: ConnId(0) });
    let hello = ConnectRequest {
        session_id: id,
        password: Some(bytes::Bytes::copy_from_slice(
            &crate::state::sessions::password(id),
        )),
        ..ConnectRequest::new(50_000)
    };
    let conn = ConnId(1);
    apply(
        &mut first,
        &Input::Connect {
            conn,
            hello,
            is_read_only: false,
        },
    );
    assert_eq!(first.next_deadline_ms(Now::default()), Some(51_000));
    assert_eq!(first.image().sessions(), [session(id.0, 10_000)]);
    let mut second = restored(&first);
    assert_eq!(second.next_deadline_ms(Now::default()), Some(12_000));
    assert_eq!(second.sessions().collect::<Vec<_>>(), [(id, 10_000, None)]);
}

/// Source: `docs/zookeeper-protocol.md` section 22.1, point 8; observed on a live server.
#[test]
fn ephemeral_of_unknown_session_is_deleted_without_a_zxid() {
    let mut restoration = Restoration::new(Settings::default());
    restoration.session(session(5, 10_000)).unwrap();
    restoration.znode(&ROOT).unwrap();
    for (path, owner) in [("/mine", 5), ("/lost", 6)] {
        let znode = ZnodeImage {
            owner,
            ..znode(path, 3)
        };
        restoration.znode(&znode).unwrap();
    }
    let engine = Engine::restore(restoration, Zxid(12)).unwrap();
    engine.check().unwrap();
    assert_eq!(engine.children("/").unwrap(), ["mine"]);
    assert_eq!(engine.zxid(), Zxid(12));
    assert_eq!(engine.get("/").unwrap().1.pzxid, Zxid(12));
}

#[test]
fn restored_zxid_is_at_least_that_of_the_newest_znode() {
    let mut restoration = Restoration::new(Settings::default());
    restoration.znode(&ROOT).unwrap();
    let mut engine = Engine::restore(restoration, Zxid(2)).unwrap();
    assert_eq!(engine.zxid(), Zxid(9));
    engine.skip_to(Zxid(5));
    assert_eq!(engine.zxid(), Zxid(9));
    engine.skip_to(Zxid(15));
    assert_eq!(engine.zxid(), Zxid(15));
    // The numbers do not run out.
    engine.skip_to(Zxid(i64::MAX));
    open(&mut engine, 0);
}

#[test]
fn ids_of_restored_sessions_are_not_reused() {
    let settings = Settings {
        first_session_id: SessionId(100),
        ..Settings::default()
    };
    let mut restoration = Restoration::new(settings);
    for id in [i64::MIN + 1, 7, 101, 105, i64::MAX] {
        restoration.session(session(id, 10_000)).unwrap();
    }
    restoration.znode(&ROOT).unwrap();
    let mut engine = Engine::restore(restoration, Zxid(9)).unwrap();
    assert_eq!(open(&mut engine, 0).session, Some(SessionId(106)));
    assert_eq!(open(&mut engine, 1).session, Some(SessionId(107)));
}

/// A root with an owner was deleted with its session, or as a container, and the server panicked:
/// at its start, when a session ended, and in an export.
#[test]
fn root_with_an_owner_is_refused() {
    for owner in [5, 7, -1, i64::MIN, (0xff << 56) | 1_000] {
        let mut restoration = Restoration::new(Settings::default());
        restoration.session(session(5, 10_000)).unwrap();
        let fault = restoration
            .znode(&ZnodeImage { owner, ..ROOT })
            .unwrap_err();
        let text = fault.to_string();
        assert!(text.starts_with("znode \"/\": owner 0x"), "{text}");
        restoration.znode(&ROOT).unwrap();
    }
}

/// If times to live are off, a znode with one is deleted at the start. Its children stayed, which
/// broke the state.
#[test]
fn znode_with_ttl_is_deleted_with_its_descendants_if_extended_types_are_off() {
    let settings = Settings {
        extended_types: false,
        ..Settings::default()
    };
    let mut restoration = Restoration::new(settings);
    restoration.session(session(5, 10_000)).unwrap();
    let with = |owner: i64, path: &'static str| ZnodeImage {
        owner,
        ..znode(path, 3)
    };
    let ttl = (0xff << 56) | 1_000;
    for znode in [
        ROOT,
        with(ttl, "/t"),
        with(0, "/t/p"),
        with(5, "/t/p/e"),
        with(ttl, "/t/p/t"),
        with(0, "/stays"),
    ] {
        restoration.znode(&znode).unwrap();
    }
    let engine = Engine::restore(restoration, Zxid(9)).unwrap();
    engine.check().unwrap();
    assert_eq!(engine.children("/").unwrap(), ["stays"]);
}

#[test]
fn invalid_znode_is_refused() {
    let settings = Settings {
        tree_bytes_max: 10_000,
        ..Settings::default()
    };
    let mut restoration = Restoration::new(settings);
    assert_eq!(restoration.znode(&znode("/a", 3)), Err(ImageError::NoRoot));
    restoration.znode(&ROOT).unwrap();
    restoration.znode(&znode("/a", 3)).unwrap();
    let owner = 5;
    let ephemeral = ZnodeImage {
        owner,
        ..znode("/e", 3)
    };
    restoration.znode(&ephemeral).unwrap();
    let data = vec![0; 9_700];
    let too_high = Zxid(i64::MAX - 1);
    for (znode, fault) in [
        (
            znode("/a//b", 3),
            "path \"/a//b\": empty component at byte 3",
        ),
        (znode("a", 3), "path \"a\": does not start with a slash"),
        (znode("/a", 3), "duplicate znode \"/a\""),
        (znode("/", 3), "duplicate znode \"/\""),
        (
            znode("/b/c", 3),
            "znode \"/b/c\": no parent comes before it",
        ),
        (znode("/e/c", 3), "znode \"/e/c\": its parent is ephemeral"),
        (
            ZnodeImage {
                mzxid: too_high,
                ..znode("/b", 3)
            },
            "zxid 0x7ffffffffffffffe exceeds the limit of 0x7ffffeffffffffff",
        ),
        (
            ZnodeImage {
                data: Some(&data),
                ..znode("/b", 3)
            },
            "the tree exceeds tree_bytes_max of 10000 bytes",
        ),
    ] {
        assert_eq!(restoration.znode(&znode).unwrap_err().to_string(), fault);
    }
    let engine = Engine::restore(restoration, Zxid(9)).unwrap();
    engine.check().unwrap();
    let nothing = Restoration::new(Settings::default());
    assert_eq!(
        Engine::restore(nothing, Zxid(9)).unwrap_err(),
        ImageError::NoRoot
    );
}

#[test]
fn invalid_session_or_access_list_is_refused() {
    let settings = Settings {
        sessions_max: 2,
        ..Settings::default()
    };
    let mut restoration = Restoration::new(settings);
    restoration.session(session(5, 0)).unwrap();
    for (image, fault) in [
        (session(0, 1), "session 0x0: no session can have this id"),
        (
            session(i64::MIN, 1),
            "session 0x8000000000000000: no session can have this id",
        ),
        (session(5, 1), "duplicate session 0x5"),
        (session(6, -1), "session 0x6: timeout of -1 ms is negative"),
    ] {
        assert_eq!(restoration.session(image).unwrap_err().to_string(), fault);
    }
    restoration.session(session(6, 1)).unwrap();
    assert_eq!(
        restoration.session(session(7, 1)),
        Err(ImageError::SessionsMax { max: 2 })
    );
    let nameless = AclList::new(&[Acl {
        perms: Perms::ALL,
        scheme: None,
        id: Some(Ustring::from_static("x")),
    }]);
    for list in [AclList::null(), nameless] {
        assert_eq!(
            restoration.access_list(1, &list),
            Err(ImageError::IncompleteAccessList { id: 1 })
        );
    }
    restoration.access_list(2, &AclList::new(&[])).unwrap();
    assert_eq!(
        restoration.access_list(2, &AclList::new(&[])),
        Err(ImageError::AccessListTwice { id: 2 })
    );
}

/// Source: `docs/zookeeper-protocol.md` sections 5.6 and 15: the meaning of the mark of a time to
/// live depends on a setting.
#[test]
fn restored_containers_and_times_to_live_are_cleaned_up_again() {
    for extended_types in [true, false] {
        let settings = Settings {
            extended_types,
            ..Settings::default()
        };
        let mut restoration = Restoration::new(settings);
        restoration.znode(&ROOT).unwrap();
        for (path, owner, created_children) in [
            ("/container", i64::MIN, 0),
            ("/used", i64::MIN, 1),
            ("/ttl", (0xff << 56) | 5, 0),
            ("/long", (0xff << 56) | 500_000, 0),
        ] {
            let znode = ZnodeImage {
                owner,
                created_children,
                ..znode(path, 3)
            };
            restoration.znode(&znode).unwrap();
        }
        let mut engine = Engine::restore(restoration, Zxid(9)).unwrap();
        engine.check().unwrap();
        let names = |engine: &Engine| engine.children("/").unwrap().join(" ");
        if !extended_types {
            assert_eq!(names(&engine), "container used");
            assert_eq!(engine.zxid(), Zxid(9));
            continue;
        }
        assert_eq!(names(&engine), "container used ttl long");
        let elapsed_ms = engine.next_deadline_ms(Now::default()).unwrap();
        let now = Now {
            elapsed_ms,
            wall_ms: 60_000,
        };
        engine.apply(now, &Input::Tick, &mut Seen::default());
        engine.check().unwrap();
        assert_eq!(names(&engine), "container long");
    }
}

/// Source: `docs/zookeeper-protocol.md` sections 16 and 22.1, point 8.
#[test]
fn restored_quotas_are_counted_anew() {
    let mut restoration = Restoration::new(Settings::default());
    restoration.znode(&ROOT).unwrap();
    let (limits, stats) = (
        "/zookeeper/quota/a/zookeeper_limits",
        "/zookeeper/quota/a/zookeeper_stats",
    );
    let owner = 77;
    for (path, data, owner) in [
        ("/zookeeper", "", 0),
        ("/zookeeper/quota", "", 0),
        ("/zookeeper/quota/a", "", 0),
        (limits, "count=5,bytes=-1", 0),
        (stats, "count=90,bytes=90", 0),
        ("/a", "12", 0),
        ("/a/b", "345", 0),
        ("/a/of_no_session", "6789", owner),
    ] {
        let data = Some(data.as_bytes());
        let znode = ZnodeImage {
            data,
            owner,
            pzxid: Zxid(9),
            ..znode(path, 3)
        };
        restoration.znode(&znode).unwrap();
    }
    let mut engine = Engine::restore(restoration, Zxid(9)).unwrap();
    engine.check().unwrap();
    let counted = |engine: &Engine| {
        let data = engine.get(stats).unwrap().0.unwrap();
        String::from_utf8(data.to_vec()).unwrap()
    };
    assert_eq!(counted(&engine), "count=2,bytes=5");
    open(&mut engine, 0);
    request(&mut engine, 0, create("/a/c", CreateMode::Persistent));
    assert_eq!(counted(&engine), "count=3,bytes=9");
}
