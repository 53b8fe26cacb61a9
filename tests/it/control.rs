//! Control over HTTP, on the clients' port.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use minikeeper::{Config, SessionId, assert_tree, control, tree};
use minikeeper_protocol::CreateMode;
use minikeeper_tests::wire::{self, PATIENCE, Wire};
use serde_json::{Value, json};

use crate::kit::{Scene, wait_until};

/// A server with control, and whatever else is wished.
fn scene(change: impl FnOnce(&mut Config)) -> Scene {
    Scene::with(|config| {
        config.control.is_enabled = true;
        change(config);
    })
}

struct Answer {
    status: u16,
    head: String,
    body: Value,
}

/// Sends bytes, and reads until the server closes.
#[track_caller]
fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    // The server may have closed before everything was sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

#[track_caller]
fn answer(bytes: &[u8]) -> Answer {
    let text = std::str::from_utf8(bytes).expect("text");
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no head in {text:?}"));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status in {head:?}")),
        head: head.to_ascii_lowercase(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

/// One request on a connection of its own, with these lines in its head.
#[track_caller]
fn request(address: SocketAddr, line: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    answer(&raw(address, request.as_bytes()))
}

#[track_caller]
fn get(address: SocketAddr, path: &str) -> Answer {
    request(
        address,
        &format!("GET /v1/{path}"),
        "Host: localhost\r\n",
        "",
    )
}

#[track_caller]
fn post(address: SocketAddr, verb: &str, body: &Value) -> Answer {
    let line = format!("POST /v1/{verb}");
    request(address, &line, "Host: localhost\r\n", &body.to_string())
}

/// What a verb that succeeds answers.
#[track_caller]
fn done(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(
        answer.head.contains("content-type: application/json"),
        "{}",
        answer.head
    );
    answer.body
}

/// What a verb that fails says.
#[track_caller]
fn said(answer: &Answer, status: u16) -> &str {
    assert_eq!(answer.status, status, "{}", answer.body);
    answer.body["error"].as_str().expect("a sentence")
}

#[test]
fn time_is_moved() {
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
fn sessions_are_listed_disconnected_and_ended() {
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
    assert_eq!(
        done(post(address, "expire", &json!({"session": id}))),
        json!({"count": 0})
    );
    scene.end();
}

#[test]
fn disconnecting_everybody_leaves_the_answer_whole() {
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
fn what_makes_no_sense_is_said() {
    let scene = scene(|_| {});
    let address = scene.address();
    for (answer, status, sentence) in [
        (get(address, "get"), 400, "parameter path: missing"),
        (
            get(address, "get?path=/a&path=/b"),
            400,
            "parameter path: there twice",
        ),
        (
            get(address, "get?path=%zz"),
            400,
            "\"%zz\" is no UTF-8 with percent signs",
        ),
        (
            get(address, "get?path=/a&x=1"),
            400,
            "no parameter \"x\"; there are path",
        ),
        (
            get(address, "get?path=/missing"),
            404,
            "no znode \"/missing\"",
        ),
        (
            get(address, "get?path=nonsense"),
            404,
            "no znode \"nonsense\"",
        ),
        (
            get(address, "now?x"),
            400,
            "no parameter \"x\"; there is none",
        ),
        (
            get(address, "export_tree?format=xml"),
            400,
            "parameter format: \"xml\" is none of json, yaml",
        ),
        (
            get(address, "nonsense"),
            404,
            "nothing at \"/v1/nonsense\"; GET /v1/openapi.json tells what there is",
        ),
        (
            request(address, "GET /", "Host: localhost\r\n", ""),
            404,
            "nothing at \"/\"; GET /v1/openapi.json tells what there is",
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
            "the body is no JSON object",
        ),
        (
            post(address, "advance", &json!({})),
            400,
            "parameter by_ms: missing",
        ),
        (
            post(address, "advance", &json!({"by_ms": -1})),
            400,
            "parameter by_ms: -1 is no whole number from 0 to 10000000000000",
        ),
        (
            post(address, "advance", &json!({"by_ms": "5"})),
            400,
            "parameter by_ms: \"5\" is no whole number from 0 to 10000000000000",
        ),
        (
            post(address, "expire", &json!({})),
            400,
            "give exactly one of session, address, identity, owner",
        ),
        (
            post(address, "expire", &json!({"session": "x"})),
            400,
            "parameter session: \"x\" is no session id",
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
            "path \"/bystander\": it is there as ephemeral; delete it first to make it container",
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
    assert!(said(&broken, 400).starts_with("the body is no JSON: "));
    let refused = get(address, "advance");
    assert!(refused.head.contains("\r\nallow: post"), "{}", refused.head);
    scene.end();
}

/// Without control these bytes are what they always were: the length of a frame.
#[test]
fn server_without_control_closes_the_connection() {
    let scene = Scene::new();
    for line in ["GET /v1/now", "POST /v1/advance", "DELETE /"] {
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(raw(scene.address(), request.as_bytes()), b"", "{line}");
    }
    scene.wait_alone();
    scene.end();
}

#[test]
fn clients_and_words_are_served_beside_it() {
    let scene = scene(|_| {});
    assert_eq!(wire::four_letter(scene.address(), b"ruok"), "imok");
    done(get(scene.address(), "now"));
    let mut wire = scene.connect();
    // Four bytes that no method begins with.
    wire.send_raw(b"GETT");
    wire.expect_closed();
    scene.end();
}

#[test]
fn one_connection_serves_many_requests_however_they_are_split() {
    let scene = scene(|_| {});
    let mut stream = connect(scene.address());
    let get = "GET /v1/children?path=/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let last = "GET /v1/now HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    stream.set_nodelay(true).unwrap();
    for byte in get.as_bytes() {
        stream.write_all(&[*byte]).unwrap();
    }
    stream
        .write_all(format!("{get}{get}{last}").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 4, "{text}");
    assert_eq!(text.matches("bystander").count(), 3, "{text}");
    scene.end();
}

#[test]
fn head_gives_no_body_and_chunks_are_put_together() {
    let scene = scene(|_| {});
    let head = raw(
        scene.address(),
        b"HEAD /v1/now HTTP/1.1\r\nHost: [::1]:2181\r\nConnection: close\r\n\r\n",
    );
    let head = String::from_utf8(head).unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let chunked = raw(
        scene.address(),
        b"POST /v1/advance HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
          Transfer-Encoding: chunked\r\n\r\n5\r\n{\"by_\r\n7\r\nms\": 7}\r\n0\r\n\r\n",
    );
    assert_eq!(done(answer(&chunked)), json!({}));
    scene.end();
}

#[test]
fn web_pages_and_strange_names_are_not_served() {
    let scene = scene(|_| {});
    let address = scene.address();
    for headers in [
        "Host: localhost\r\nOrigin: http://localhost:2181\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
        "Host: example.org\r\n",
        "Host: localhost.example.org\r\n",
        "Host: localhost\r\nHost: example.org\r\n",
        "",
    ] {
        let refused = request(address, "GET /v1/now", headers, "");
        assert_eq!(refused.status, 403, "{headers}");
    }
    let elsewhere = request(
        address,
        "GET http://example.org/v1/now",
        "Host: localhost\r\n",
        "",
    );
    assert_eq!(elsewhere.status, 403);
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "[::1]:1",
        "192.0.2.1:2181",
    ] {
        done(request(
            address,
            "GET /v1/now",
            &format!("Host: {host}\r\n"),
            "",
        ));
    }
    scene.end();
}

#[test]
fn token_is_asked_for_and_lets_everybody_in() {
    let scene = scene(|config| config.control.token = Some("s3cret".to_owned()));
    let address = scene.address();
    for headers in [
        "",
        "Authorization: Bearer s3cre\r\n",
        "Authorization: Basic s3cret\r\n",
    ] {
        let headers = format!("Host: localhost\r\n{headers}");
        for path in ["/v1/now", "/v1/openapi.json", "/nonsense"] {
            let refused = request(address, &format!("GET {path}"), &headers, "");
            assert!(
                refused.head.contains("\r\nwww-authenticate: bearer"),
                "{}",
                refused.head
            );
            said(&refused, 401);
        }
    }
    let headers = "Host: example.org\r\nOrigin: http://example.org\r\n\
                   Authorization: Bearer s3cret\r\n";
    done(request(address, "GET /v1/now", headers, ""));
    scene.end();
}

#[test]
fn bodies_and_heads_have_a_limit() {
    let scene = scene(|config| config.control.body_bytes_max = 100);
    let address = scene.address();
    let refused = post(address, "seed", &json!({"yaml": "#".repeat(200)}));
    assert_eq!(
        said(&refused, 413),
        "the body exceeds the limit of 100 bytes"
    );
    // Announced alone: nobody waits for it.
    let head = "POST /v1/seed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n";
    assert_eq!(answer(&raw(address, head.as_bytes())).status, 413);
    let long = format!(
        "GET /v1/now HTTP/1.1\r\nHost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    let answer = String::from_utf8_lossy(&raw(address, long.as_bytes())).into_owned();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    scene.end();
}

/// No input may stop the server: nonsense behind each method is answered or the connection closed.
#[test]
fn nonsense_behind_a_method_does_no_harm() {
    let scene = scene(|_| {});
    for method in [
        "GET ", "POST", "HEAD", "PUT ", "DELE", "OPTI", "PATC", "TRAC", "CONN",
    ] {
        for rest in [
            "",
            "\r\n\r\n",
            "\0\0\0\0",
            " * HTTP/1.1\r\n\r\n",
            "TE / HTTP/9.9\r\n\r\n",
            "\u{ff}\n\n\n",
        ] {
            let mut stream = connect(scene.address());
            stream.write_all(method.as_bytes()).unwrap();
            let _ = stream.write_all(rest.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(
                answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
                "{method}{rest:?}: {answer:?}"
            );
        }
    }
    for query in ["?", "?&&=&", "?path", "?path=%00", "?path=%F0%9F%98%80"] {
        assert!(matches!(
            get(scene.address(), &format!("get{query}")).status,
            400 | 404
        ));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(
        request(
            scene.address(),
            "POST /v1/seed",
            "Host: localhost\r\n",
            &deep
        )
        .status,
        400
    );
    let deep = json!({"yaml": format!("/a: {}", "[".repeat(100_000))});
    assert_eq!(post(scene.address(), "seed", &deep).status, 400);
    scene.end();
}

#[test]
fn connections_count_against_the_limit_until_they_end() {
    let scene = scene(|config| config.connections_max = 2);
    let mut stream = connect(scene.address());
    stream
        .write_all(b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    scene.connect().expect_reset();
    drop(stream);
    let address = scene.address();
    wait_until("there is room again", || {
        let answer = raw(
            address,
            b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        );
        answer.starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn stop_ends_connections_that_wait_for_a_request() {
    let scene = scene(|_| {});
    let mut stream = connect(scene.address());
    stream
        .write_all(b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    scene.server.shutdown().unwrap();
    let mut rest = Vec::new();
    // By an orderly end or by a reset.
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn description_names_every_verb_and_what_it_takes() {
    let scene = scene(|_| {});
    let description = done(get(scene.address(), "openapi.json"));
    assert_eq!(description["openapi"], "3.1.0");
    let paths = description["paths"].as_object().unwrap();
    assert_eq!(paths.len(), control::verbs().count());
    for verb in control::verbs() {
        let method = verb.method.name().to_ascii_lowercase();
        let operation = &paths[&format!("/v1/{}", verb.name)][&method];
        assert_eq!(operation["operationId"], verb.name);
        assert_eq!(operation["summary"], verb.summary);
        for status in ["200", "400", "401", "403", "404", "409", "413"] {
            let content = &operation["responses"][status]["content"];
            assert!(
                content["application/json"]["schema"].is_object(),
                "{}: {status}",
                verb.name
            );
        }
        let first = verb.summary.chars().next().unwrap();
        assert!(
            first.is_uppercase() && !verb.summary.ends_with('.'),
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

/// Goal: the session goes on wherever its client is; HTTP is never a client.
#[test]
fn http_opens_no_session_and_counts_as_no_client() {
    let scene = scene(|_| {});
    let mut stream = connect(scene.address());
    stream
        .write_all(b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    wait_until("only the bystander is a client", || {
        scene.server.connections() == 1
    });
    assert_eq!(scene.server.sessions().len(), 1);
    assert!(
        scene
            .server
            .sessions()
            .iter()
            .all(|session| session.id != SessionId::NONE)
    );
    // Time that is moved by hand does not end it either.
    scene.server.advance(Duration::from_secs(30));
    stream
        .write_all(b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("elapsed_ms"), "{text}");
}

#[test]
fn tree_can_be_compared_after_a_round_trip() {
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
