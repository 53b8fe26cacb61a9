//! The effect of each verb over HTTP, and the OpenAPI description.

use std::time::Duration;

use minikeeper::{Znode, assert_tree, control, tree};
use minikeeper_protocol::{CreateMode, EventKind};
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::{Value, json};

use crate::http::{done, get, post, request, said, scene};

#[test]
fn advance_moves_the_clock() {
    let scene = scene(|_| {});
    let address = scene.address();
    let now = done(get(address, "now"));
    assert_eq!(now["is_frozen"], true);
    assert_eq!(
        done(post(address, "advance", &json!({"by_ms": 5_000}))),
        json!({})
    );
    let later = done(get(address, "now"));
    let passed = later["elapsed_ms"].as_u64().unwrap() - now["elapsed_ms"].as_u64().unwrap();
    assert_eq!(passed, 5_000);
    scene.end();
}

#[test]
fn sessions_are_listed_disconnected_and_expired() {
    let scene = scene(|_| {});
    let address = scene.address();
    let (mut client, session) = scene.open_session();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let id = session.session_id.to_string();
    let sessions = done(get(address, "sessions"));
    let sessions = sessions["sessions"].as_array().unwrap();
    let own = sessions
        .iter()
        .find(|session| session["id"] == id.as_str())
        .unwrap();
    assert_eq!(
        (&own["timeout_ms"], &own["is_connected"]),
        (&json!(10_000), &json!(true))
    );
    assert_eq!(
        done(post(address, "disconnect", &json!({"session": id}))),
        json!({"count": 1})
    );
    client.expect_closed();
    assert!(scene.server.get("/e").is_some());
    assert_eq!(
        done(post(address, "expire", &json!({"session": id}))),
        json!({"count": 1})
    );
    assert!(scene.server.get("/e").is_none());
    let none = post(address, "expire", &json!({"session": id}));
    let none = said(&none, 404);
    assert!(none.starts_with(&format!(
        "expire: no session matches session {id}; there is 1"
    )));
    let allowed = json!({"session": id, "allow_none": true});
    assert_eq!(done(post(address, "expire", &allowed)), json!({"count": 0}));
    scene.end();
}

#[test]
fn disconnecting_all_sessions_leaves_the_reply_whole() {
    let scene = scene(|_| {});
    let mut client = scene.open();
    assert_eq!(
        done(post(scene.address(), "disconnect_all", &json!({}))),
        json!({})
    );
    client.expect_closed();
    assert_eq!(scene.server.sessions().len(), 2);
}

#[test]
fn tree_is_read_seeded_and_exported() {
    let scene = scene(|_| {});
    let address = scene.address();
    let seed = json!({"tree": {"/a/b": "ü", "/c": {"data_base64": "/w==", "container": true}, "/n": null}});
    assert_eq!(
        done(post(address, "seed", &seed)),
        json!({"created": 4, "changed": 0})
    );
    let yaml = json!({"yaml": "/a/b: y\n"});
    assert_eq!(
        done(post(address, "seed", &yaml)),
        json!({"created": 0, "changed": 1})
    );
    assert_tree!(scene.server, { "/a/b" => "y", "/c" => b"\xff", "/n" => null, .. });
    let znode = done(get(address, "get?path=%2Fa%2Fb"));
    assert_eq!(
        (&znode["data"], &znode["stat"]["version"]),
        (&json!("y"), &json!(1))
    );
    assert_eq!(done(get(address, "get?path=/c"))["data_base64"], "/w==");
    assert_eq!(done(get(address, "get?path=/n"))["data"], Value::Null);
    assert_eq!(
        done(get(address, "children?path=/a")),
        json!({"children": ["b"]})
    );
    let exported = done(get(address, "export_tree"));
    assert_eq!(exported["ephemerals"], json!(["/bystander"]));
    assert_eq!(
        exported["tree"]["/c"],
        json!({"data_base64": "/w==", "container": true})
    );
    assert_eq!(
        done(post(address, "seed", &json!({"tree": exported["tree"]})))["changed"],
        0
    );
    let yaml = done(get(address, "export_tree?format=yaml"));
    let text = "/a: \"\"\n/a/b: \"y\"\n/c: {container: true, data_base64: \"/w==\"}\n/n: null\n";
    assert_eq!(yaml["tree"], text);
    let dump = done(get(address, "dump"));
    assert!(dump["dump"].as_str().unwrap().contains("/a/b"));
    let dump = done(get(address, "dump?ids=true"));
    let dump = dump["dump"].as_str().unwrap();
    assert_eq!(dump, scene.server.dump_with_ids());
    scene.end();
}

/// Changes outside of any session fire watches and answer with ZooKeeper's errors.
#[test]
fn znodes_are_created_set_and_deleted() {
    let scene = scene(|_| {});
    let address = scene.address();
    let mut client = scene.open();
    let act = |verb: &str, body: Value| done(post(address, verb, &body));
    client.must(&wire::children("/", true));
    let created = act("create", json!({"path": "/a", "data": "x"}));
    assert_eq!(created, json!({"path": "/a"}));
    let event = client.event();
    assert_eq!(
        (event.kind, event.path.as_str()),
        (EventKind::ChildrenChanged, "/")
    );
    client.must(&wire::get("/a", true));
    let set = act(
        "set",
        json!({"path": "/a", "data_base64": "/w==", "version": 0}),
    );
    assert_eq!(set, json!({"version": 1}));
    assert_eq!(client.event().kind, EventKind::DataChanged);
    let sequential = json!({"path": "/a/n-", "sequential": true});
    assert_eq!(
        act("create", sequential.clone()),
        json!({"path": "/a/n-0000000000"})
    );
    assert_eq!(
        act("create", sequential),
        json!({"path": "/a/n-0000000001"})
    );
    act("create", json!({"path": "/a/box", "container": true}));
    act(
        "create",
        json!({"path": "/a/box/t-", "ttl_ms": 5000, "sequential": true}),
    );
    assert_tree!(scene.server, {
        "/a" => b"\xff", "/a/n-0000000000" => "", "/a/n-0000000001" => "",
        "/a/box" => Znode::from("").container(),
        "/a/box/t-0000000000" => Znode::from("").time_to_live(Duration::from_secs(5)),
        ..
    });
    for (verb, body, status, sentence) in [
        (
            "create",
            json!({"path": "/a"}),
            409,
            "path \"/a\": znode already exists (NODEEXISTS -110)",
        ),
        (
            "create",
            json!({"path": "/x/y"}),
            404,
            "path \"/x/y\": parent \"/x\": znode does not exist (NONODE -101); create it first",
        ),
        (
            "create",
            json!({"path": "/bystander/x"}),
            409,
            "path \"/bystander/x\": ephemeral cannot have children (NOCHILDRENFOREPHEMERALS -108)",
        ),
        (
            "create",
            json!({"path": "/c", "container": true, "sequential": true}),
            400,
            "a container cannot be sequential; choose one of the two",
        ),
        (
            "create",
            json!({"path": "/c", "container": true, "ttl_ms": 1}),
            400,
            "give at most one of container, ttl_ms",
        ),
        (
            "create",
            json!({"path": "/c", "data": "", "data_base64": ""}),
            400,
            "give at most one of data, data_base64",
        ),
        (
            "create",
            json!({"path": "/c", "data_base64": "?"}),
            400,
            "parameter data_base64: not base64",
        ),
        (
            "create",
            json!({"path": "/zookeeper/x"}),
            400,
            "path \"/zookeeper/x\": /zookeeper and everything below it belongs to the server",
        ),
        (
            "create",
            json!({"path": "/c", "ephemeral": true}),
            400,
            "unknown parameter \"ephemeral\"; expected path, data, data_base64, sequential, \
             container, ttl_ms",
        ),
        (
            "set",
            json!({"path": "/a", "data": "y", "version": 0}),
            409,
            "path \"/a\": version 0 expected, 1 found: version does not match (BADVERSION -103)",
        ),
        (
            "set",
            json!({"path": "/none", "data": "y"}),
            404,
            "path \"/none\": znode does not exist (NONODE -101)",
        ),
        (
            "set",
            json!({"path": "/a"}),
            400,
            "give exactly one of data, data_base64",
        ),
        (
            "set",
            json!({"path": "/a", "data": "y", "version": -2}),
            400,
            "parameter version: -2 is not a whole number from -1 to 2147483647",
        ),
        (
            "delete",
            json!({"path": "/none"}),
            404,
            "path \"/none\": znode does not exist (NONODE -101)",
        ),
        (
            "delete",
            json!({"path": "/a", "version": 7, "recursive": true}),
            409,
            "path \"/a\": version 7 expected, 1 found: version does not match (BADVERSION -103)",
        ),
        (
            "delete",
            json!({"path": "/a"}),
            409,
            "path \"/a\": znode has children (NOTEMPTY -111): 3; delete them first, or delete it \
             recursively",
        ),
        (
            "delete",
            json!({"path": "/", "recursive": true}),
            400,
            "path \"/\": the root cannot be deleted",
        ),
    ] {
        assert_eq!(
            said(&post(address, verb, &body), status),
            sentence,
            "{verb} {body}"
        );
    }
    client.must(&wire::children("/a/box", true));
    assert_eq!(
        act("delete", json!({"path": "/a/n-0000000000", "version": 0})),
        json!({"deleted": 1})
    );
    assert_eq!(
        act("delete", json!({"path": "/a", "recursive": true})),
        json!({"deleted": 4})
    );
    // The child, then the parent, as if a client had deleted one after the other.
    let event = client.event();
    assert_eq!(
        (event.kind, event.path.as_str()),
        (EventKind::ChildrenChanged, "/a/box")
    );
    assert!(scene.server.get("/a").is_none());
    scene.server.check().unwrap();
    scene.end();
}

#[test]
fn tree_is_listed_by_name_up_to_its_limit() {
    let scene = scene(|_| {});
    let address = scene.address();
    scene
        .server
        .seed(&tree! { "/a-b" => null, "/a/c" => b"\xff\xfe", "/a/b" => Znode::from("x").container() })
        .unwrap();
    let listing = done(get(address, "tree?path=/a"));
    let znode = |path: &str, length: usize, container: bool| {
        json!({"path": path, "data_length": length, "ephemeral_owner": null,
               "container": container, "ttl_ms": null})
    };
    let expected = [
        znode("/a", 0, false),
        znode("/a/b", 1, true),
        znode("/a/c", 2, false),
    ];
    assert_eq!(listing, json!({"znodes": expected, "is_truncated": false}));
    let paths = |query: &str| -> (Vec<String>, Value) {
        let listing = done(get(address, query));
        let znodes = listing["znodes"].as_array().unwrap();
        let paths = znodes
            .iter()
            .map(|znode| znode["path"].as_str().unwrap().to_owned());
        (paths.collect(), listing["is_truncated"].clone())
    };
    let (all, is_truncated) = paths("tree");
    assert_eq!(all[..6], ["/", "/a", "/a/b", "/a/c", "/a-b", "/bystander"]);
    assert_eq!(is_truncated, false);
    assert_eq!(paths("tree?max=3"), (all[..3].to_vec(), json!(true)));
    assert_eq!(paths("tree?max=0"), (vec![], json!(true)));
    let owner = &done(get(address, "tree?path=/bystander"))["znodes"][0]["ephemeral_owner"];
    assert!(owner.as_str().unwrap().starts_with("0x"), "{owner}");
    assert_eq!(
        said(&get(address, "tree?path=/none"), 404),
        "no znode \"/none\""
    );
    let many = said(&get(address, "tree?max=10001"), 400).to_owned();
    assert!(many.contains("from 0 to 10000"), "{many}");
    scene.end();
}

#[test]
fn invalid_requests_get_a_status_and_an_explanation() {
    let scene = scene(|_| {});
    let address = scene.address();
    for (answer, status, sentence) in [
        (get(address, "get"), 400, "parameter path: missing"),
        (
            get(address, "get?path=/a&path=/b"),
            400,
            "parameter path: given twice",
        ),
        (
            get(address, "get?path=%zz"),
            400,
            "\"%zz\" is not percent-encoded UTF-8",
        ),
        (
            get(address, "get?path=/a&x=1"),
            400,
            "unknown parameter \"x\"; expected path",
        ),
        (
            get(address, "get?path=/missing"),
            404,
            "no znode \"/missing\"",
        ),
        (
            get(address, "get?path=nonsense"),
            400,
            "parameter path: path \"nonsense\": does not start with a slash",
        ),
        (
            get(address, "now?x"),
            400,
            "unknown parameter \"x\"; none is expected",
        ),
        (
            get(address, "export_tree?format=xml"),
            400,
            "parameter format: \"xml\" is not one of json, yaml",
        ),
        (
            get(address, "nonsense"),
            404,
            "nothing at \"/v1/nonsense\"; GET /v1/openapi.json lists all verbs",
        ),
        (
            request(address, "GET /v1/", "Host: localhost\r\n", ""),
            404,
            "nothing at \"/v1/\"; GET /v1/openapi.json lists all verbs",
        ),
        (
            get(address, "universes/nobody/now"),
            404,
            "no universe \"nobody\"",
        ),
        (get(address, "advance"), 405, "/v1/advance takes POST"),
        (
            post(address, "now", &json!({})),
            405,
            "/v1/now takes GET, HEAD",
        ),
        (
            post(address, "advance", &json!([])),
            400,
            "the body is not a JSON object",
        ),
        (
            post(address, "advance", &json!({})),
            400,
            "parameter by_ms: missing",
        ),
        (
            post(address, "advance", &json!({"by_ms": -1})),
            400,
            "parameter by_ms: -1 is not a whole number from 0 to 31536000000",
        ),
        (
            post(address, "advance", &json!({"by_ms": "5"})),
            400,
            "parameter by_ms: \"5\" is not a whole number from 0 to 31536000000",
        ),
        (
            post(address, "expire", &json!({})),
            400,
            "give exactly one of session, address, identity, owner",
        ),
        (
            post(address, "expire", &json!({"session": "x"})),
            400,
            "parameter session: \"x\" is not a session id",
        ),
        (
            post(address, "seed", &json!({"tree": {"a": ""}})),
            400,
            "path \"a\": does not start with a slash",
        ),
        (
            post(
                address,
                "seed",
                &json!({"tree": {"/bystander": {"container": true}}}),
            ),
            409,
            "path \"/bystander\": exists as ephemeral; delete it first to create it as container",
        ),
        (
            post(address, "save", &json!({})),
            409,
            "there is no data directory; start the server with --data-dir",
        ),
    ] {
        assert_eq!(said(&answer, status), sentence);
    }
    let broken = request(address, "POST /v1/advance", "Host: localhost\r\n", "{");
    assert!(said(&broken, 400).starts_with("the body is not JSON: "));
    let refused = get(address, "advance");
    assert!(refused.head.contains("\r\nallow: post"), "{}", refused.head);
    scene.end();
}

/// The types of the schemas in an OpenAPI description are words of JSON Schema, each once.
fn assert_types(place: &str, value: &Value) {
    const WORDS: [&str; 7] = [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ];
    let is_word = |word: &Value| word.as_str().is_some_and(|word| WORDS.contains(&word));
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    // A property may have this name.
                    Value::String(_) if name == "type" => {
                        assert!(is_word(value), "{place}: {value}");
                    }
                    Value::Array(words) if name == "type" => {
                        let distinct: std::collections::BTreeSet<_> =
                            words.iter().map(Value::to_string).collect();
                        assert!(words.iter().all(is_word), "{place}: {value}");
                        assert_eq!(distinct.len(), words.len(), "{place}: {value}");
                    }
                    _ => assert_types(&format!("{place}/{name}"), value),
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                assert_types(place, value);
            }
        }
        _ => {}
    }
}

#[test]
fn openapi_describes_every_verb() {
    let scene = scene(|_| {});
    let description = done(get(scene.address(), "openapi.json"));
    assert_eq!(description["openapi"], "3.1.0");
    assert_types("", &description["paths"]);
    let paths = description["paths"].as_object().unwrap();
    let elsewhere = |path: &&String| path.starts_with("/v1/universes/{universe}/");
    let elsewhere = paths.keys().filter(elsewhere).count();
    assert_eq!(paths.len() - elsewhere, control::verbs().count());
    // Verbs of the whole server do not exist per universe.
    assert!(elsewhere > 10 && !paths.contains_key("/v1/universes/{universe}/save"));
    for verb in control::verbs() {
        let method = verb.method.name().to_ascii_lowercase();
        let operation = &paths[&format!("/v1/{}", verb.name)][&method];
        assert_eq!(operation["operationId"], verb.name);
        assert_eq!(operation["summary"], verb.summary());
        for status in ["200", "400", "401", "403", "404", "409", "413"] {
            let is_lines = verb.is_stream() && status == "200";
            let kind = if is_lines {
                "application/x-ndjson"
            } else {
                "application/json"
            };
            assert!(
                operation["responses"][status]["content"][kind]["schema"].is_object(),
                "{}: {status}",
                verb.name
            );
        }
        let first = verb.summary().chars().next().unwrap();
        assert!(
            first.is_uppercase() && !verb.summary().ends_with('.'),
            "{}",
            verb.name
        );
        assert!(
            verb.name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        );
    }
    scene.end();
}

#[test]
fn tree_exported_and_seeded_elsewhere_is_equal() {
    let one = scene(|_| {});
    let other = scene(|_| {});
    one.server
        .seed(&tree! { "/x/y" => "1", "/z" => null })
        .unwrap();
    let exported = done(get(one.address(), "export_tree"));
    done(post(
        other.address(),
        "seed",
        &json!({"tree": exported["tree"]}),
    ));
    assert_eq!(other.server.export_tree(), one.server.export_tree());
    let (mut client, _) = Wire::open(other.address(), 10_000);
    client.must(&wire::get("/x/y", false));
}

#[test]
fn list_children_returns_them_by_name_some_at_a_time() {
    let scene = scene(|_| {});
    let address = scene.address();
    let names: Vec<_> = (0..25)
        .rev()
        .map(|number| format!("n{number:02}"))
        .collect();
    let znodes: serde_json::Map<_, _> = names
        .iter()
        .map(|name| (format!("/many/{name}"), json!(name)))
        .collect();
    done(post(address, "seed", &json!({"tree": znodes})));
    done(post(address, "create", &json!({"path": "/many/n03/x"})));
    let mut seen = Vec::new();
    loop {
        let after = seen.last().cloned().unwrap_or_default();
        let page = done(get(
            address,
            &format!("list_children?path=/many&max=10&after={after}"),
        ));
        assert_eq!(page["total"], 25);
        let children = page["children"].as_array().unwrap();
        seen.extend(
            children
                .iter()
                .map(|child| child["name"].as_str().unwrap().to_owned()),
        );
        if page["is_truncated"] == false {
            break;
        }
    }
    let mut sorted = names;
    sorted.sort();
    assert_eq!(seen, sorted);
    let page = done(get(address, "list_children?path=/many&containing=03"));
    let child = json!({"name": "n03", "num_children": 1, "data_length": 3, "ephemeral_owner": null,
        "container": false, "ttl_ms": null});
    assert_eq!(
        page,
        json!({"children": [child], "total": 1, "is_truncated": false})
    );
    done(post(address, "create", &json!({"path": "/many/n07/x"})));
    done(post(address, "create", &json!({"path": "/many/n07/y"})));
    done(post(address, "create", &json!({"path": "/many/a"})));
    for (order, expected) in [
        ("name", ["a", "n00", "n01"]),
        ("newest", ["a", "n24", "n23"]),
        ("children", ["n07", "n03", "a"]),
    ] {
        let query = format!("list_children?path=/many&max=3&sort_by={order}");
        let page = done(get(address, &query));
        let children = page["children"].as_array().unwrap();
        let names: Vec<_> = children.iter().map(|child| &child["name"]).collect();
        assert_eq!(names, expected, "{order}");
        assert_eq!(
            (&page["total"], &page["is_truncated"]),
            (&json!(26), &json!(true))
        );
    }
    said(&get(address, "list_children?path=/many&sort_by=size"), 400);
    said(&get(address, "list_children?path=/nope"), 404);
    said(&get(address, "list_children?path=/many&max=10001"), 400);
    scene.end();
}

#[test]
fn find_znodes_looks_at_paths_and_if_told_at_data() {
    let scene = scene(|_| {});
    let address = scene.address();
    let tree = json!({"/web/port": "80", "/db": "port 5432", "/web-2/port/x": null});
    done(post(address, "seed", &json!({"tree": tree})));
    let find = |query: &str| done(get(address, &format!("find_znodes?containing=port{query}")));
    assert_eq!(
        find("")["paths"],
        json!(["/web/port", "/web-2/port", "/web-2/port/x"])
    );
    let all = json!(["/db", "/web/port", "/web-2/port", "/web-2/port/x"]);
    assert_eq!(
        find("&in_data=true"),
        json!({"paths": all, "is_truncated": false})
    );
    assert_eq!(
        find("&path=/web"),
        json!({"paths": ["/web/port"], "is_truncated": false})
    );
    assert_eq!(
        find("&max=1"),
        json!({"paths": ["/web/port"], "is_truncated": true})
    );
    said(&get(address, "find_znodes?containing=x&path=/nope"), 404);
    scene.end();
}

#[test]
fn acl_and_export_tree_read_one_subtree() {
    let scene = scene(|_| {});
    let address = scene.address();
    let tree = json!({"/a": {"data": "1", "acl": ["world:anyone:r", "ip:127.0.0.1:cdrwa"]}, "/a/b": "2", "/c": "3"});
    done(post(address, "seed", &json!({"tree": tree})));
    let acl = |path: &str| done(get(address, &format!("acl?path={path}")))["acl"].clone();
    assert_eq!(acl("/a"), tree["/a"]["acl"]);
    assert_eq!(acl("/c"), json!(["world:anyone:cdrwa"]));
    said(&get(address, "acl?path=/nope"), 404);
    let exported = done(get(address, "export_tree?path=/a"));
    assert_eq!(
        exported,
        json!({"tree": {"/a": tree["/a"], "/a/b": "2"}, "ephemerals": []})
    );
    let bystander = done(get(address, "export_tree?path=/bystander"));
    assert_eq!(bystander, json!({"tree": {}, "ephemerals": ["/bystander"]}));
    said(&get(address, "export_tree?path=/nope"), 404);
    scene.end();
}

#[test]
fn snapshots_are_listed_and_compared() {
    let scene = scene(|_| {});
    let address = scene.address();
    done(post(
        address,
        "seed",
        &json!({"tree": {"/a": "1", "/b": "2"}}),
    ));
    let first = done(post(address, "snapshot", &json!({})))["snapshot"].clone();
    done(post(
        address,
        "set",
        &json!({"path": "/a", "data": "changed"}),
    ));
    let second = done(post(address, "snapshot", &json!({})))["snapshot"].clone();
    done(post(address, "delete", &json!({"path": "/b"})));
    done(post(
        address,
        "create",
        &json!({"path": "/c", "data": "new"}),
    ));
    let changes = |snapshot: &Value, query: &str| {
        done(get(
            address,
            &format!("changes_since?snapshot={snapshot}{query}"),
        ))
    };
    let change = |path: &str, change: &str, before, after| json!({"path": path, "change": change, "before": before, "after": after});
    let all = [
        change("/a", "changed", json!("1"), json!("changed")),
        change("/b", "deleted", json!("2"), json!(null)),
        change("/c", "created", json!(null), json!("new")),
    ];
    assert_eq!(
        changes(&first, ""),
        json!({"changes": all, "is_truncated": false})
    );
    assert_eq!(changes(&second, "")["changes"], json!(all[1..]));
    assert_eq!(
        changes(&first, "&max=1"),
        json!({"changes": all[..1], "is_truncated": true})
    );
    let listed = || {
        let answer = done(get(address, "snapshots"));
        let snapshots = answer["snapshots"].as_array().unwrap().iter();
        let shown = snapshots.map(|one| (one["snapshot"].clone(), one["is_there"] == true));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(listed(), [(first.clone(), true), (second.clone(), true)]);
    done(post(address, "restore", &json!({"snapshot": first})));
    assert_eq!(listed(), [(first.clone(), true), (second.clone(), false)]);
    assert_eq!(changes(&first, "")["changes"], json!([]));
    let gone = get(address, &format!("changes_since?snapshot={second}"));
    assert!(said(&gone, 409).contains("no longer exists"));
    done(post(address, "create_universe", &json!({"name": "other"})));
    assert_eq!(
        done(get(address, "universes/other/snapshots"))["snapshots"],
        json!([])
    );
    let elsewhere = get(
        address,
        &format!("universes/other/changes_since?snapshot={first}"),
    );
    assert!(said(&elsewhere, 409).contains("another universe"));
    scene.end();
}
