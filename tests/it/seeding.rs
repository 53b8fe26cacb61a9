//! Seeding, exporting and comparing trees.

use std::time::Duration;

use expect_test::expect;
use minikeeper::{SeedError, StartError, Tree, Universe, Znode, assert_tree, blocking, tree};
use minikeeper_protocol::{AclList, Create, CreateMode, CreateOp, ErrorCode, EventKind, Request};
use minikeeper_test_kit::{
    random::Random,
    wire::{self, Wire},
};

use crate::kit::{Scene, start};

const ROUNDS: u64 = 200;

#[test]
fn seed_creates_missing_znodes_and_sets_different_ones() {
    let server = start();
    let seeded = server
        .seed(&tree! { "/a/b/c" => "1", "/d" => null })
        .unwrap();
    assert_eq!((seeded.created, seeded.changed), (4, 0));
    assert_tree!(server, { "/a" => "", "/a/b" => "", "/a/b/c" => "1", "/d" => null });
    let seeded = server
        .seed(&tree! { "/a/b/c" => "2", "/d" => null, "/e" => "" })
        .unwrap();
    assert_eq!((seeded.created, seeded.changed), (1, 1));
    assert_eq!(server.get("/a/b/c").unwrap().1.version, 1);
    let before = server.dump_exact();
    let seeded = server.seed(&server.export_tree()).unwrap();
    assert_eq!((seeded.created, seeded.changed), (0, 0));
    assert_eq!(server.dump_exact(), before);
    server.check().unwrap();
}

#[test]
fn seed_notifies_watchers_and_takes_a_zxid_per_change() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/a", b"1", CreateMode::Persistent));
    client.must(&wire::get("/a", true));
    client.must(&wire::children("/a", true));
    scene
        .server
        .seed(&tree! { "/a" => "2", "/a/b" => "x" })
        .unwrap();
    let (set, created) = (client.event(), client.event());
    assert_eq!(
        (set.kind, set.path.as_str()),
        (EventKind::DataChanged, "/a")
    );
    assert_eq!(
        (created.kind, created.path.as_str()),
        (EventKind::ChildrenChanged, "/a")
    );
    let (_, a) = scene.server.get("/a").unwrap();
    let (_, b) = scene.server.get("/a/b").unwrap();
    assert_eq!(b.czxid.0, a.mzxid.0 + 1);
    assert_eq!(scene.server.sessions().len(), 2, "no session was added");
    scene.end();
}

#[test]
fn seed_sets_lifetimes_and_access_lists() {
    let scene = Scene::new();
    let mut client = scene.open();
    let ttl = Duration::from_secs(60);
    scene
        .server
        .seed(&tree! {
            "/c" => Znode::from("").container(),
            "/t" => Znode::from("x").time_to_live(ttl),
            "/r" => Znode::from("x").acl(["world:anyone:r"]),
        })
        .unwrap();
    // The access list binds the client, but not a seed.
    assert_eq!(client.refused(&wire::set("/r", b"y")), ErrorCode::NoAuth);
    scene.server.seed(&tree! { "/r" => "y" }).unwrap();
    scene
        .server
        .seed(&tree! { "/r" => Znode::any().acl(["world:anyone:cdrwa"]) })
        .unwrap();
    client.must(&wire::set("/r", b"z"));
    // The empty container waits for the next check, and the time to live has not run out.
    client.must(&wire::create("/c/x", b"", CreateMode::Persistent));
    client.must(&wire::delete("/c/x"));
    scene.server.advance(Duration::from_secs(5));
    assert_tree!(scene.server, { "/t" => "x", "/c" => "", .. });
    scene
        .server
        .seed(&tree! { "/t" => Znode::any().time_to_live(ttl) })
        .unwrap();
}

#[test]
fn invalid_seed_is_refused_with_its_path_and_changes_nothing() {
    let scene = Scene::with(|config| config.tree_bytes_max = 100_000);
    let mut client = scene.open();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let before = scene.server.dump_exact();
    let ttl = |ms| Znode::any().time_to_live(Duration::from_millis(ms));
    for (tree, error) in [
        (
            tree! { "/ok" => "", "a" => "" },
            "path \"a\": does not start with a slash",
        ),
        (
            tree! { "/a//b" => "" },
            "path \"/a//b\": empty component at byte 3",
        ),
        (
            tree! { "" => "" },
            "path \"\": empty; a path starts with a slash",
        ),
        (
            tree! { "/zookeeper/x" => "" },
            "path \"/zookeeper/x\": /zookeeper and everything below it belongs to the server",
        ),
        (
            tree! { "/ok" => "", "/x" => Znode::any().ephemeral() },
            "path \"/x\": an ephemeral belongs to a session; let a client create it",
        ),
        (
            tree! { "/x" => Znode::any().acl(["world:anyone"]) },
            "path \"/x\": access list entry \"world:anyone\" is not SCHEME:ID:PERMISSIONS, as in \
             world:anyone:cdrwa",
        ),
        (
            tree! { "/x" => ttl(0) },
            "path \"/x\": time to live of 0 ms is outside the range of 1 ms to 1099511627775 ms",
        ),
        (
            tree! { "/x" => vec![0; 2_000_000] },
            "path \"/x\": data of 2000000 bytes exceeds the limit of 1048575 bytes \
             (frame_bytes_max)",
        ),
        (
            tree! { "/ok" => "", "/bystander" => Znode::any().container() },
            "path \"/bystander\": exists as ephemeral; delete it first to create it as container",
        ),
        (
            tree! { "/a" => "", "/e/x/y" => "" },
            "path \"/e/x\": its parent is an ephemeral, which cannot have children",
        ),
    ] {
        let refused = scene.server.seed(&tree).unwrap_err();
        assert_eq!(refused.to_string(), error);
        assert_eq!(scene.server.dump_exact(), before, "{error}");
    }
    let large = tree! { "/a" => "", "/b" => vec![0; 99_000] };
    let refused = scene.server.seed(&large).unwrap_err();
    assert!(
        matches!(refused, SeedError::TreeTooLarge { max: 100_000, .. }),
        "{refused}"
    );
    assert_eq!(scene.server.dump_exact(), before);
    // The server detects an unknown scheme only when it serves the create; the error has the path.
    let unknown = tree! { "/x" => Znode::any().acl(["nobody:knows:r"]) };
    let refused = scene.server.seed(&unknown).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "path \"/x\": invalid access list (INVALIDACL -114)"
    );
    scene.end();
}

#[test]
fn server_starts_with_its_seed_or_not_at_all() {
    let server = blocking::Server::builder()
        .seed(tree! { "/a" => "x" })
        .start()
        .unwrap();
    assert_tree!(server, { "/a" => "x" });
    let builder = blocking::Server::builder().seed(tree! { "a" => "x" });
    let error = builder.start().unwrap_err();
    assert!(
        matches!(error, StartError::Seed(SeedError::Path(_))),
        "{error:?}"
    );
}

#[test]
fn export_leaves_out_ephemerals_and_system_znodes() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/a", b"x", CreateMode::Persistent));
    client.must(&wire::create("/a/e", b"", CreateMode::Ephemeral));
    let tree = scene.server.export_tree();
    let paths: Vec<_> = tree.iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/a"]);
    // A comparison includes ephemerals.
    let differences = scene.server.diff_tree(&tree! { "/a" => "x" }).unwrap();
    let lines = differences.to_string();
    assert!(lines.contains("\n+ /a/e = \"\" (ephemeral)"), "{lines}");
    assert_tree!(scene.server, {
        "/a" => Znode::any(),
        "/a/e" => Znode::from("").ephemeral(),
        "/bystander" => Znode::any(),
    });
    scene.end();
}

#[test]
#[should_panic = "the tree is not as expected (- expected, + found):\n- /a = \"y\"\n+ /a = \"x\"\n+ /b = null"]
fn assert_tree_shows_the_difference() {
    let server = start();
    server.seed(&tree! { "/a" => "x", "/b" => null }).unwrap();
    assert_tree!(server, { "/a" => "y" });
}

#[test]
#[should_panic = "+ /x = \"\""]
fn assert_tree_takes_a_universe() {
    let server = start();
    server.seed(&tree! { "/x" => "" }).unwrap();
    let universe: &Universe = &server;
    assert_tree!(universe, Tree::new());
}

/// An exported tree can be seeded, and JSON and YAML lose nothing. Random trees that a client
/// creates pass through both formats into new servers.
#[test]
fn exported_trees_can_be_seeded_without_loss() {
    let seed = minikeeper_test_kit::random::seed_or(0);
    for round in seed..seed + ROUNDS {
        let server = start();
        let (mut client, _) = Wire::open(server.addr(), 10_000);
        let mut random = Random::new(round);
        for _ in 0..random.below(20) {
            let request = random_create(&mut random);
            client.call(&request);
        }
        let tree = server.export_tree();
        let what = || format!("MINIKEEPER_SEED={round}");
        assert_eq!(
            Tree::from_json(&tree.to_json()).map(complete),
            Ok(tree.clone()),
            "{}",
            what()
        );
        assert_eq!(
            Tree::from_yaml(&tree.to_yaml()).map(complete),
            Ok(tree.clone()),
            "{}",
            what()
        );
        let other = start();
        other
            .seed(&Tree::from_yaml(&tree.to_yaml()).unwrap())
            .unwrap();
        assert_eq!(other.export_tree(), tree, "{}", what());
        assert_tree!(other, tree);
        other.check().unwrap();
    }
}

/// Adds the defaults that the JSON and YAML forms leave out.
fn complete(tree: Tree) -> Tree {
    tree.iter()
        .map(|(path, znode)| {
            let lifetime = znode.lifetime().unwrap_or(minikeeper::Lifetime::Persistent);
            let access = znode.access().map(<[_]>::to_vec);
            let access = access.unwrap_or_else(|| vec!["world:anyone:cdrwa".to_owned()]);
            (path, znode.clone().lives(lifetime).acl(access))
        })
        .collect()
}

/// Returns a random create, with any data and lifetime. It fails if the parent does not exist.
fn random_create(random: &mut Random) -> Request {
    const NAMES: [&str; 9] = ["a", "b c", "null", "no", "#", "ä€", "'\"\\", "0x10", ": -"];
    const TEXTS: [&str; 10] = [
        "",
        "x",
        "null",
        "~",
        "no",
        "0x10",
        " two\nlines\t",
        "\u{85}\u{2028}\u{feff}\u{0}\u{7f}",
        "😀: {",
        "- #&*!|>%@`",
    ];
    let depth = 1 + random.below(3);
    let path: String = (0..depth)
        .map(|_| format!("/{}", random.pick(&NAMES)))
        .collect();
    let mut create = Create::new(
        &path,
        random.pick(&TEXTS).as_bytes(),
        CreateMode::Persistent,
    );
    match random.below(8) {
        0 => create.data = None,
        1 => create.data = Some(b"\xff\x00\xfe"[..].into()),
        2 => create.acl = AclList::world_read(),
        3 => {
            create.op = CreateOp::Container;
            create.flags = CreateMode::Container.flags();
        }
        4 => {
            create.op = CreateOp::Ttl;
            create.flags = CreateMode::PersistentWithTtl.flags();
            create.ttl_ms = 1 + i64::try_from(random.below(1 << 40)).unwrap() % ((1 << 40) - 1);
        }
        5 => create.flags = CreateMode::Ephemeral.flags(),
        _ => {}
    }
    Request::Create(create)
}

/// Equal trees have equal dumps, and different ones different dumps, whatever their history.
#[test]
fn equal_trees_have_equal_dumps() {
    let scene = Scene::new();
    let other = blocking::Server::builder().start().unwrap();
    for (path, data) in [("/a", "x"), ("/b", "old"), ("/b/c", "y")] {
        scene.server.seed(&Tree::new().with(path, data)).unwrap();
    }
    scene.server.advance(Duration::from_secs(60));
    scene.server.seed(&tree! { "/b" => b"\xff\"\n" }).unwrap();
    let tree = tree! { "/b/c" => "y", "/b" => b"\xff\"\n", "/a" => "x", "/bystander" => "x" };
    other.seed(&tree).unwrap();
    let (mut client, _) = Wire::open(other.addr(), 60_000);
    client.must(&wire::delete("/bystander"));
    client.must(&wire::create("/bystander", b"1", CreateMode::Ephemeral));
    assert_ne!(scene.server.dump_exact(), other.dump_exact());
    assert_eq!(scene.server.dump(), other.dump());
    client.must(&wire::get("/a", true));
    assert_eq!(
        other.dump(),
        "znode / \"\"\nznode /a \"x\"\nznode /b bytes \"\\xff\\\"\\n\"\nznode /b/c \"y\"\n\
         znode /bystander \"1\" session 1\nsession 1 connected timeout 60000 ms\n\
         watch /a data session 1\n"
    );
    for other_data in [&b"\xfe\"\n"[..], b"\xff\"", b"\\xff\"\n"] {
        other.seed(&Tree::new().with("/b", other_data)).unwrap();
        assert_ne!(scene.server.dump(), other.dump());
    }
}

/// Sessions were numbered by their ids, and `/a-b` was printed between `/a` and its children.
#[test]
fn dump_does_not_depend_on_the_order_of_creation() {
    let znodes = [
        ("/a-b", Znode::from("x")),
        ("/a/c", Znode::from(&b"\xff"[..])),
        ("/a", Znode::from("with \"quotes\"\n")),
        (
            "/acl",
            Znode::from("").acl(["digest:a,b c:hash:r", "world:anyone:cdrwa"]),
        ),
    ];
    let clients: [(&str, &str); 3] = [("/e1", "/w"), ("/e2", "/a"), ("", "/a-b")];
    let dump = |is_backwards: bool| {
        let server = blocking::Server::builder().manual_clock().start().unwrap();
        let order = |count: usize| {
            let mut order: Vec<_> = (0..count).collect();
            if is_backwards {
                order.reverse();
            }
            order
        };
        for index in order(znodes.len()) {
            let (path, znode) = &znodes[index];
            server
                .seed(&Tree::new().with(*path, znode.clone()))
                .unwrap();
            server.advance(Duration::from_secs(1 + index as u64));
        }
        let mut open = Vec::new();
        for index in order(clients.len()) {
            let (ephemeral, watched) = clients[index];
            let (mut client, _) = Wire::open(server.addr(), 60_000);
            if !ephemeral.is_empty() {
                client.must(&wire::create(ephemeral, b"", CreateMode::Ephemeral));
            }
            client.must(&wire::children("/a", true));
            client.call(&wire::exists(watched, true));
            open.push(client);
        }
        (server.dump(), server.dump_with_ids())
    };
    let ((dump, with_ids), (other, other_with_ids)) = (dump(false), dump(true));
    assert_eq!(dump, other);
    assert_ne!(with_ids, other_with_ids);
    expect![[r#"
        znode / ""
        znode /a "with \"quotes\"\n"
        znode /a/c bytes "\xff"
        znode /a-b "x"
        znode /acl "" acl "digest:a,b c:hash:r",world:anyone:cdrwa
        znode /e1 "" session 1
        znode /e2 "" session 2
        session 1 connected timeout 60000 ms
        session 2 connected timeout 60000 ms
        session 3 connected timeout 60000 ms
        watch /a children session 1
        watch /a data+children session 2
        watch /a children session 3
        watch /a-b data session 3
        watch /w data session 1
    "#]]
    .assert_eq(&dump);
    let line = with_ids
        .lines()
        .find(|line| line.starts_with("znode /a-b "));
    let line = line.unwrap();
    assert!(
        line.starts_with("znode /a-b \"x\" czxid 0x1 mzxid 0x1 "),
        "{line}"
    );
    assert!(line.ends_with(" version 0 cversion 0 aversion 0"), "{line}");
    assert!(with_ids.contains("znode /e1 \"\" session 0x"), "{with_ids}");
}
