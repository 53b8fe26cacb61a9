//! Path rules over the wire: what each operation checks, and in which order.

use minikeeper_protocol::{AclList, CreateMode, ErrorCode, Reply, Request};
use minikeeper_test_kit::wire;

use crate::kit::Scene;

/// At least one path for each rule of `docs/zookeeper-protocol.md` section 8.1.
const INVALID: [(&str, &[u8]); 25] = [
    ("rule 1: empty", b""),
    ("rule 1: relative", b"relative"),
    ("rule 1: relative, with a slash", b"a/b"),
    ("rule 3: trailing slash", b"/a/"),
    ("rule 4: empty component in front", b"//a"),
    ("rule 4: empty component", b"/a//b"),
    ("rule 4: only slashes", b"//"),
    ("rule 5: one dot", b"/."),
    ("rule 5: two dots", b"/.."),
    ("rule 5: one dot inside", b"/a/./b"),
    ("rule 5: two dots at the end", b"/a/.."),
    ("rule 6: nul", b"/a\0b"),
    ("rule 6: U+0001", b"/a\x01"),
    ("rule 6: newline", b"/a\n"),
    ("rule 6: U+001F", b"/a\x1f"),
    ("rule 6: U+007F", b"/a\x7f"),
    ("rule 6: U+0080", "/a\u{80}".as_bytes()),
    ("rule 6: U+009F", "/a\u{9f}".as_bytes()),
    ("rule 6: U+E000, private use", "/a\u{e000}".as_bytes()),
    ("rule 6: U+F8FF, private use", "/a\u{f8ff}".as_bytes()),
    ("rule 6: U+FFF0", "/a\u{fff0}".as_bytes()),
    ("rule 6: U+FFFF", "/a\u{ffff}".as_bytes()),
    ("rule 6: U+10000, beyond the BMP", "/a\u{10000}".as_bytes()),
    ("rule 6: a surrogate in bytes", b"/a\xed\xa0\xbd"),
    ("malformed UTF-8", b"/a\xff"),
];

const VALID: [&str; 10] = [
    "/...",
    "/.a",
    "/a..",
    "/ ",
    "/~",
    "/é",
    "/\u{a0}",
    "/\u{d7ff}",
    "/\u{f900}",
    "/\u{ffef}",
];

fn ustring(path: &[u8]) -> Option<minikeeper_protocol::Ustring> {
    Some(bytes::Bytes::copy_from_slice(path).into())
}

fn create(path: &[u8], mode: CreateMode) -> Request {
    let Request::Create(mut create) = wire::create("", b"", mode) else {
        unreachable!("`wire::create` returns a create");
    };
    create.path = ustring(path);
    Request::Create(create)
}

/// `docs/zookeeper-protocol.md` sections 8.1 and 8.2, rows setData, setACL: full validation first.
#[test]
fn every_invalid_path_is_refused_by_set_data_and_set_acl() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    for (rule, path) in INVALID {
        let set_data = Request::SetData {
            path: ustring(path),
            data: None,
            version: -1,
        };
        assert_eq!(client.refused(&set_data), ErrorCode::BadArguments, "{rule}");
        let set_acl = Request::SetAcl {
            path: ustring(path),
            acl: AclList::world_all(),
            version: -1,
        };
        assert_eq!(client.refused(&set_acl), ErrorCode::BadArguments, "{rule}");
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 8.2, row create: the parent is looked up before the name is
/// validated.
#[test]
fn every_invalid_path_is_refused_by_create_once_its_parent_is_found() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    for (rule, path) in INVALID {
        // A path without a slash or with a NUL is refused before the parent is looked up.
        let parent_missing = matches!(path, b"a/b" | b"/a//b" | b"/a/./b");
        let expected = if parent_missing {
            ErrorCode::NoNode
        } else {
            ErrorCode::BadArguments
        };
        let create = create(path, CreateMode::Persistent);
        assert_eq!(client.refused(&create), expected, "{rule}");
    }
    assert_eq!(scene.server.children("/a").unwrap(), [""; 0]);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 8.1: unusual paths that are valid.
#[test]
fn every_valid_path_is_created_and_read_back() {
    let scene = Scene::new();
    let mut client = scene.open();
    for path in VALID {
        client.must(&wire::create(path, path.as_bytes(), CreateMode::Persistent));
        let read = client.must(&wire::get(path, false));
        assert!(
            matches!(&read, Reply::Data(Some(data), _) if *data == path.as_bytes()),
            "{path}: {read:?}"
        );
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 8.2: reads do not validate, so an invalid path does not
/// exist. Only exists rejects a NUL.
#[test]
fn every_invalid_path_does_not_exist_for_reads() {
    let scene = Scene::new();
    let mut client = scene.open();
    for (rule, path) in INVALID.into_iter().skip(1) {
        let (path, watch) = (ustring(path), false);
        let expected = if rule.ends_with("nul") {
            ErrorCode::BadArguments
        } else {
            ErrorCode::NoNode
        };
        let exists = Request::Exists {
            path: path.clone(),
            watch,
        };
        assert_eq!(client.refused(&exists), expected, "{rule}");
        for read in [
            Request::GetData {
                path: path.clone(),
                watch,
            },
            Request::GetChildren {
                path: path.clone(),
                watch,
            },
            Request::GetAcl { path: path.clone() },
        ] {
            assert_eq!(client.refused(&read), ErrorCode::NoNode, "{rule}: {read:?}");
        }
    }
    // `docs/zookeeper-protocol.md` section 24, item 34: the empty path reads the root.
    assert!(matches!(
        client.must(&wire::exists("", false)),
        Reply::Stat(_)
    ));
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 8.2, row delete, and 10.4: delete rejects special paths, a
/// path without a slash and a NUL, and checks nothing else.
#[test]
fn delete_checks_only_slash_nul_and_special_paths() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    for (path, expected) in [
        (&b""[..], ErrorCode::BadArguments),
        (b"relative", ErrorCode::BadArguments),
        (b"/a\0b", ErrorCode::BadArguments),
        (b"/", ErrorCode::BadArguments),
        (b"/zookeeper", ErrorCode::BadArguments),
        (b"/zookeeper/quota", ErrorCode::BadArguments),
        (b"/zookeeper/config", ErrorCode::BadArguments),
        (b"/a/", ErrorCode::NoNode),
        (b"//a", ErrorCode::NoNode),
        (b"/.", ErrorCode::NoNode),
        (b"/a\xff", ErrorCode::NoNode),
    ] {
        let delete = Request::Delete {
            path: ustring(path),
            version: -1,
        };
        assert_eq!(client.refused(&delete), expected, "{delete:?}");
    }
    assert!(scene.server.get("/a").is_some());
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 8.2, "consequences": a trailing slash is valid before a
/// sequence number.
#[test]
fn trailing_slash_depends_on_parent_and_sequence() {
    let scene = Scene::new();
    let mut client = scene.open();
    let plain = create(b"/x/", CreateMode::Persistent);
    assert_eq!(client.refused(&plain), ErrorCode::NoNode);
    client.must(&wire::create("/x", b"", CreateMode::Persistent));
    assert_eq!(client.refused(&plain), ErrorCode::BadArguments);
    let sequential = create(b"/x/", CreateMode::PersistentSequential);
    assert_eq!(
        client.must(&sequential),
        Reply::Path(Some("/x/0000000000".into()))
    );
    // For the root, NodeExists comes before any other rule (`docs/zookeeper-protocol.md` section
    // 10.1).
    let root = create(b"/", CreateMode::Persistent);
    assert_eq!(client.refused(&root), ErrorCode::NodeExists);
    scene.end();
}
