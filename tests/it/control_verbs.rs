//! The effect of each verb over HTTP, and the OpenAPI description.

use minikeeper::{assert_tree, control, tree};
use minikeeper_protocol::CreateMode;
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
            request(address, "GET /", "Host: localhost\r\n", ""),
            404,
            "nothing at \"/\"; GET /v1/openapi.json lists all verbs",
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

#[test]
fn openapi_describes_every_verb() {
    let scene = scene(|_| {});
    let description = done(get(scene.address(), "openapi.json"));
    assert_eq!(description["openapi"], "3.1.0");
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
            let content = &operation["responses"][status]["content"];
            assert!(
                content["application/json"]["schema"].is_object(),
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
