//! The check of the whole state notices broken states, which no input leads to.

use minikeeper_protocol::Stat;

use super::*;
use crate::state::{
    keys::{WatchId, ZnodeId},
    znode::Owner,
};

/// Creates a sound state with something in every table.
fn sound() -> Engine {
    let mut engine = engine(2, Settings::default());
    for (path, mode) in [
        ("/p", CreateMode::Persistent),
        ("/p/a", CreateMode::Persistent),
        ("/p/b", CreateMode::Persistent),
        ("/e", CreateMode::Ephemeral),
    ] {
        request(&mut engine, 0, create(path, mode));
    }
    request(&mut engine, 1, get("/p"));
    request(&mut engine, 0, get("/p"));
    request(&mut engine, 1, add_watch("/missing", 1));
    engine
}

fn id(engine: &Engine, path: &str) -> ZnodeId {
    engine.state.tree.find(path.as_bytes()).unwrap()
}

/// Breaks a sound state and returns the fault that the check reports.
fn broken(break_it: impl FnOnce(&mut Engine)) -> String {
    let mut engine = sound();
    break_it(&mut engine);
    let fault = engine.check().expect_err("the check notices nothing");
    fault.to_string()
}

#[track_caller]
fn assert_noticed(text: &str, break_it: impl FnOnce(&mut Engine)) {
    let fault = broken(break_it);
    assert!(fault.contains(text), "{fault}");
}

#[test]
fn zxid_from_the_future_is_noticed() {
    assert_noticed("/p/a: zxid", |engine| {
        let id = id(engine, "/p/a");
        engine.state.tree[id].mzxid = Zxid(1_000);
    });
    assert_noticed("zxid", |engine| engine.state.zxid = Zxid(3));
}

#[test]
fn parents_and_children_that_disagree_are_noticed() {
    assert_noticed("another parent", |engine| {
        let (child, other) = (id(engine, "/p/a"), id(engine, "/e"));
        engine.state.tree[child].parent = other;
    });
    assert_noticed("/p: 2 children are linked", |engine| {
        let id = id(engine, "/p");
        engine.state.tree[id].family_mut().count = 3;
    });
    assert_noticed("sibling links disagree", |engine| {
        let id = id(engine, "/p/b");
        engine.state.tree[id].prev = ZnodeId::NONE;
    });
    assert_noticed("/p: its last child is another one", |engine| {
        let (parent, child) = (id(engine, "/p"), id(engine, "/p/a"));
        engine.state.tree[parent].family_mut().last = child;
    });
    assert_noticed("/p: pzxid is below", |engine| {
        let id = id(engine, "/p");
        engine.state.tree[id].family_mut().pzxid = Zxid(1);
    });
}

#[test]
fn ephemerals_and_sessions_that_disagree_are_noticed() {
    assert_noticed("ephemeral without a living owner", |engine| {
        let id = id(engine, "/p/a");
        // The ephemeral is counted, or the check would notice the wrong sum first.
        let mut znode = engine.state.tree.remove(id);
        znode.owner = Owner(77);
        engine.state.tree.restore(znode);
    });
    assert_noticed("ephemerals", |engine| {
        let id = id(engine, "/p/a");
        engine.state.tree[id].owner = Owner(77);
    });
}

#[test]
fn watches_out_of_place_are_noticed() {
    assert_noticed("ring", |engine| {
        let id = id(engine, "/p");
        engine.state.tree[id].watched = WatchId::NONE;
    });
    assert_noticed("ring of watches", |engine| {
        let (from, to) = (id(engine, "/p"), id(engine, "/p/a"));
        engine.state.tree[to].watched = engine.state.tree[from].watched;
    });
}

#[test]
fn changes_recorded_without_a_mark_are_noticed() {
    assert_noticed("changes are recorded without a mark", |engine| {
        let mark = engine.state.mark();
        request(engine, 0, create("/new", CreateMode::Persistent));
        engine.state.undo.forget(mark);
        engine.state.undo.pause(false);
    });
}

#[test]
fn access_list_counted_wrongly_is_noticed() {
    assert_noticed("access list", |engine| {
        let list = AclList::new(&[minikeeper_protocol::Acl {
            perms: minikeeper_protocol::Perms::READ,
            scheme: Some("ip".into()),
            id: Some("10.0.0.1".into()),
        }]);
        engine.state.acls.acquire(&list);
    });
}

#[test]
fn connection_of_two_sessions_is_noticed() {
    assert_noticed("connection", |engine| {
        let first = engine.state.session_of(ConnId(0)).unwrap();
        engine.state.sessions[first].conn = Some(ConnId(1));
    });
}

#[test]
fn sound_state_passes() {
    let engine = sound();
    engine.check().unwrap();
    let (data, stat) = engine.get("/p").unwrap();
    assert_eq!(data, Some(&b"data"[..]));
    assert_eq!(stat.num_children, 2);
    assert_ne!(stat, Stat::default());
}
