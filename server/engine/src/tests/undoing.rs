//! A failed multi changes nothing, down to links, counters and places of watches.

use minikeeper_protocol::{Acl, AclList, CreateMode, MultiOp, Perms, Request};

use super::*;

/// Returns the dump without its first line, the zxid, which even a failed multi takes.
fn state(engine: &Engine) -> String {
    let dump = engine.dump();
    dump.split_once('\n').unwrap().1.to_owned()
}

/// Runs a multi that fails at its end, and checks that it has changed nothing but the zxid.
fn assert_undone(engine: &mut Engine, mut ops: Vec<MultiOp>) {
    let before = (state(engine), engine.counts(), children_of_all(engine));
    let zxid = engine.zxid();
    ops.push(check_op("/missing"));
    request(engine, 0, Request::Multi(ops));
    let after = (state(engine), engine.counts(), children_of_all(engine));
    assert_eq!(after, before);
    assert_eq!(engine.zxid(), Zxid(zxid.0 + 1));
}

/// Returns the children of every znode in their order.
fn children_of_all(engine: &Engine) -> Vec<(String, Vec<String>)> {
    let tree = &engine.state.tree;
    let mut all: Vec<_> = tree
        .iter()
        .map(|(_, znode)| {
            let path = String::from_utf8(znode.path().to_vec()).unwrap();
            let children = engine.children(&path).unwrap();
            (path, children)
        })
        .collect();
    all.sort();
    all
}

fn with_children() -> Engine {
    let mut engine = engine(2, Settings::default());
    request(&mut engine, 0, create("/p", CreateMode::Persistent));
    for name in ["a", "b", "c", "d"] {
        request(
            &mut engine,
            0,
            create(&format!("/p/{name}"), CreateMode::Persistent),
        );
    }
    engine
}

#[test]
fn failed_multi_restores_the_order_of_deleted_siblings() {
    // Siblings form a linked list. Each set of deletions, in each order, removes other neighbours
    // from it.
    for ops in [
        &["a"][..],
        &["b"],
        &["d"],
        &["a", "b"],
        &["b", "a"],
        &["c", "b"],
        &["a", "d"],
        &["a", "b", "c", "d"],
        &["d", "c", "b", "a"],
        &["c", "a", "d", "b"],
    ] {
        let mut engine = with_children();
        let ops = ops.iter().map(|name| delete_op(&format!("/p/{name}")));
        assert_undone(&mut engine, ops.collect());
        assert_eq!(engine.children("/p").unwrap(), ["a", "b", "c", "d"]);
    }
}

#[test]
fn failed_multi_undoes_creations_between_deletions() {
    let mut engine = with_children();
    assert_undone(
        &mut engine,
        vec![
            delete_op("/p/b"),
            create_op("/p/x", CreateMode::Persistent),
            delete_op("/p/d"),
            create_op("/p/b", CreateMode::Persistent),
            create_op("/p/b/deep", CreateMode::EphemeralSequential),
            delete_op("/p/x"),
            create_op("/p/n", CreateMode::PersistentSequential),
        ],
    );
}

#[test]
fn failed_multi_restores_a_whole_subtree() {
    let mut engine = with_children();
    request(&mut engine, 0, create("/p/a/deep", CreateMode::Persistent));
    let paths = ["/p/a/deep", "/p/a", "/p/b", "/p/c", "/p/d", "/p"];
    assert_undone(&mut engine, paths.map(delete_op).to_vec());
}

#[test]
fn failed_multi_restores_counters_and_sequence_numbers_of_the_parent() {
    let mut engine = with_children();
    let before = engine.get("/p").unwrap().1;
    assert_undone(
        &mut engine,
        vec![
            create_op("/p/n", CreateMode::PersistentSequential),
            create_op("/p/n", CreateMode::PersistentSequential),
            delete_op("/p/a"),
        ],
    );
    assert_eq!(engine.get("/p").unwrap().1, before);
    let seen = request(
        &mut engine,
        0,
        create("/p/n", CreateMode::PersistentSequential),
    );
    assert_eq!(seen.path.unwrap(), "/p/n0000000004");
}

#[test]
fn failed_multi_restores_data_null_or_empty() {
    let mut engine = with_children();
    let set = |data: Option<&'static [u8]>| MultiOp::SetData {
        path: Some("/p/a".into()),
        data: data.map(Into::into),
        version: -1,
    };
    request(&mut engine, 0, super::set("/p/a", b""));
    assert_undone(
        &mut engine,
        vec![set(None), set(Some(b"longer than before"))],
    );
    assert_eq!(engine.get("/p/a").unwrap().0, Some(&b""[..]));
    let path = Some("/p/a".into());
    request(
        &mut engine,
        0,
        Request::SetData {
            path,
            data: None,
            version: -1,
        },
    );
    assert_undone(
        &mut engine,
        vec![set(Some(b"")), set(Some(b"x")), delete_op("/p/a")],
    );
    assert_eq!(engine.get("/p/a").unwrap().0, None);
}

#[test]
fn failed_multi_restores_the_ephemerals_of_each_session() {
    let mut engine = with_children();
    request(&mut engine, 1, create("/e", CreateMode::Ephemeral));
    request(&mut engine, 0, create("/f", CreateMode::Ephemeral));
    assert_undone(
        &mut engine,
        vec![
            delete_op("/e"),
            create_op("/e", CreateMode::Ephemeral),
            delete_op("/f"),
            create_op("/g", CreateMode::Ephemeral),
        ],
    );
    // They are still deleted with the session that owned them.
    request(&mut engine, 1, Request::CloseSession);
    assert!(engine.get("/e").is_none() && engine.get("/f").is_some());
}

#[test]
fn failed_multi_restores_the_places_of_watches() {
    // Watches are attached to the znode if it exists and to the bare path otherwise, so each
    // operation of the multi moves some of them, and undoing it moves them again.
    let mut engine = with_children();
    for conn in [1, 0] {
        request(&mut engine, conn, get("/p/a"));
        request(&mut engine, conn, list("/p"));
        request(&mut engine, conn, add_watch("/p/new", 0));
        request(&mut engine, conn, add_watch("/p", 1));
    }
    assert_undone(
        &mut engine,
        vec![
            create_op("/p/new", CreateMode::Persistent),
            delete_op("/p/a"),
            delete_op("/p/new"),
            create_op("/p/a", CreateMode::Persistent),
            create_op("/p/new", CreateMode::Ephemeral),
            delete_op("/p/a"),
        ],
    );
    let seen = request(&mut engine, 0, set("/p/a", b"x"));
    let notified: Vec<_> = seen.events.iter().map(|(conn, ..)| *conn).collect();
    assert_eq!(notified, [1, 0], "in the order of registration, as before");
}

#[test]
fn failed_multi_restores_the_uses_of_shared_access_lists() {
    let mut engine = with_children();
    let list = AclList::new(&[Acl {
        perms: Perms::READ,
        scheme: Some("digest".into()),
        id: Some("bob:x".into()),
    }]);
    let other = AclList::new(&[Acl {
        perms: Perms::ALL,
        scheme: Some("ip".into()),
        id: Some("10.0.0.1".into()),
    }]);
    request(
        &mut engine,
        0,
        Request::Create(create_with("/l", list.clone())),
    );
    assert_undone(
        &mut engine,
        vec![
            MultiOp::Create(create_with("/m", list.clone())),
            delete_op("/l"),
            MultiOp::Create(create_with("/n", other.clone())),
            MultiOp::Create(create_with("/l", other.clone())),
        ],
    );
    // If the same multi succeeds, the lists are counted right too.
    let ops = vec![
        delete_op("/l"),
        MultiOp::Create(create_with("/l", other)),
        MultiOp::Create(create_with("/n", list)),
        delete_op("/n"),
    ];
    request(&mut engine, 0, Request::Multi(ops));
    assert_eq!(engine.state.acls.users().count(), 1);
}

#[test]
fn session_can_be_closed_after_a_failed_multi() {
    let mut engine = with_children();
    assert_undone(&mut engine, vec![create_op("/e", CreateMode::Ephemeral)]);
    request(&mut engine, 0, Request::CloseSession);
    assert_eq!(engine.counts().ephemerals, 0);
}
