//! Tests that no verb holds the engine lock for more than a piece of work, however large the state is.

use minikeeper_core::work;

use crate::{Server, Tree, Znode, universe::inspect::ChildOrder};

/// The most znodes, changes, watches or ancestors that one hold may handle, with those that are looked
/// at to plan it.
const HOLD_MAX: usize = 2_500;

fn wide(count: usize) -> Tree {
    let paths = (0..count).map(|number| format!("/wide/{number:05}"));
    paths.map(|path| (path, Znode::from("data"))).collect()
}

#[tokio::test]
async fn large_tree_is_seeded_in_pieces() {
    let server = Server::builder().start().await.unwrap();
    let tree = wide(10_000);
    let mut seeded = Default::default();
    let longest = work::longest_hold(|| seeded = server.seed(&tree).unwrap());
    assert!(longest <= HOLD_MAX, "{longest} in one hold");
    assert_eq!(seeded.created, 10_001);
    assert_eq!(server.diff_tree(&tree.clone().with("/wide", "")), None);
    // The second time there is nothing to do, and the third time there is a conflict: nothing
    // changes, although it is at the end.
    assert_eq!(server.seed(&tree).unwrap(), Default::default());
    let tree = tree.with("/wide/00000", "new");
    let tree = tree.with("/wide/09999", Znode::from("x").container());
    let longest = work::longest_hold(|| {
        let error = server.seed(&tree).unwrap_err();
        assert!(
            matches!(error, crate::SeedError::Lifetime { .. }),
            "{error}"
        );
    });
    assert!(longest <= HOLD_MAX, "{longest} in one hold");
    assert_eq!(server.get("/wide/00000").unwrap().0.unwrap(), b"data");
}

#[tokio::test]
async fn large_data_is_seeded_in_pieces() {
    let server = Server::builder().start().await.unwrap();
    let data = vec![7; 400 << 10];
    let paths = (0..10).map(|number| (format!("/{number}"), Znode::from(data.clone())));
    let tree: Tree = paths.collect();
    let before = server.shared.turns.inspect(minikeeper_engine::Engine::zxid);
    server.seed(&tree).unwrap();
    let after = server.shared.turns.inspect(minikeeper_engine::Engine::zxid);
    assert_eq!(after.0 - before.0, 10);
    assert_eq!(server.diff_tree(&tree), None);
}

/// A lock in each znode of a tree 6,000 deep held the lock for 11 s: for each of them every ancestor
/// was found by its whole path.
#[tokio::test]
async fn locks_deep_in_a_tree_are_reported_within_the_bounds() {
    let server = Server::builder().start().await.unwrap();
    let mut tree = Tree::new();
    let mut path = String::new();
    for _ in 0..600 {
        path += "/x";
        tree.insert(format!("{path}/lock-0000000001"), "");
        tree.insert(format!("{path}/lock-0000000002"), "");
    }
    server.seed(&tree).unwrap();
    let longest = work::longest_hold(|| {
        let report = server.locks();
        assert_eq!((report.locks.len(), report.is_truncated), (600, false));
    });
    assert!(longest <= HOLD_MAX, "{longest} in one hold");
}

/// To delete 300,000 znodes held the lock until the last one was gone.
#[tokio::test]
async fn large_subtree_is_deleted_in_pieces() {
    let server = Server::builder().start().await.unwrap();
    server.seed(&wide(10_000)).unwrap();
    let deep: String = (0..1_500).map(|_| "/x").collect();
    server.seed(&Tree::new().with(deep, "")).unwrap();
    server.seed(&Tree::new().with("/wide-not", "")).unwrap();
    for (path, count) in [("/wide", 10_001), ("/x", 1_500)] {
        let refused = server.delete_recursively(path, Some(7)).unwrap_err();
        assert!(
            matches!(refused, crate::ChangeError::BadVersion { .. }),
            "{refused}"
        );
        let mut deleted = 0;
        let longest = work::longest_hold(|| {
            deleted = server.delete_recursively(path, Some(0)).unwrap();
        });
        assert!((1..=HOLD_MAX).contains(&longest), "{longest} in one hold");
        assert_eq!(deleted, count);
    }
    assert_eq!(server.children("/").unwrap(), ["zookeeper", "wide-not"]);
}

/// Each of eight verbs at a time had a copy of the whole state, besides those that take no permit.
#[tokio::test]
async fn large_state_has_one_copy_at_a_time() {
    let server = Server::builder().start().await.unwrap();
    server.seed(&wide(20_000)).unwrap();
    let turns = &server.shared.turns;
    let is_copying = || turns.copying.try_lock().is_none();
    turns.view(|_| assert!(is_copying()));
    let (_, only) = turns.view_alone(|_| ());
    assert!(is_copying());
    drop(only);
    assert!(!is_copying());
}

/// Whatever reads the whole state reads it in pieces: an export of 300,000 znodes held the lock for
/// 4 s.
#[tokio::test]
async fn whole_state_is_read_in_pieces() {
    let server = Server::builder().start().await.unwrap();
    let address = server.connect_string();
    let client = minikeeper_client::Client::connect(&address).await.unwrap();
    server.seed(&wide(20_000)).unwrap();
    let mut watches = Vec::new();
    for number in 0..3_000 {
        let path = format!("/wide/{number:05}");
        watches.push(client.exists_and_watch(&path).await.unwrap());
    }
    let tree = server.export_tree();
    let turns = &server.shared.turns;
    let room = minikeeper_engine::Room {
        rows: 10,
        bytes: 1_000,
    };
    let reads: [(&str, &dyn Fn()); 17] = [
        ("export_tree", &|| {
            assert_eq!(server.export_tree().len(), 20_001);
        }),
        ("export_subtree", &|| {
            assert!(server.export_subtree("/wide").is_some());
        }),
        ("diff_tree", &|| assert_eq!(server.diff_tree(&tree), None)),
        ("dump", &|| assert!(server.dump().lines().count() > 23_000)),
        ("dump_with_ids", &|| {
            assert!(server.dump_with_ids().lines().count() > 23_000);
        }),
        ("tree", &|| {
            assert!(server.tree("/", 10).unwrap().is_truncated);
        }),
        ("children", &|| {
            assert_eq!(server.children("/wide").unwrap().len(), 20_000);
        }),
        ("list_children", &|| {
            assert_eq!(
                server.list_children("/wide", "", "", 5).unwrap().total,
                20_000
            );
        }),
        ("list_children_by", &|| {
            let order = ChildOrder::Children;
            let listing = server.list_children_by(order, "/wide", ("", ""), 5);
            assert_eq!(listing.unwrap().total, 20_000);
        }),
        ("find_znodes", &|| {
            assert_eq!(server.find_znodes("/", "0000", true, 9).unwrap().0.len(), 9);
        }),
        ("sessions", &|| {
            assert_eq!(server.sessions()[0].watches.len(), 3_000);
        }),
        ("servers", &|| {
            assert_eq!(server.servers()[0].sessions.len(), 1);
        }),
        ("locks", &|| assert_eq!(server.locks().locks.len(), 0)),
        ("story", &|| drop(server.story())),
        ("watch_summary", &|| {
            assert_eq!(turns.watch_summary().paths, 3_000);
        }),
        ("watches_by_path", &|| {
            assert_eq!(turns.watches_by_path(room).groups_total, 3_000);
        }),
        ("fork", &|| drop(server.fork("copy").unwrap())),
    ];
    for (name, read) in reads {
        let longest = work::longest_hold(read);
        assert!(
            (1..=HOLD_MAX).contains(&longest),
            "{name}: {longest} in one hold"
        );
    }
    drop(watches);
    client.close().await;
}
