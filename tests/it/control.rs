//! The control API on the clients' port: access, limits, malformed requests.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use minikeeper::SessionId;
use minikeeper_test_kit::wire;
use serde_json::json;

use crate::{
    http::{answer, connect, done, get, post, raw, request, said, scene},
    kit::{Scene, wait_until},
};

/// Without the control API, the first four bytes of a request are the length of a frame.
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
fn control_on_the_clients_port_leaves_clients_and_words_served() {
    let scene = scene(|_| {});
    assert_eq!(wire::four_letter(scene.address(), b"ruok"), "imok");
    done(get(scene.address(), "now"));
    let mut wire = scene.connect();
    // No method begins with these four bytes.
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
fn head_reply_has_no_body_and_chunked_body_is_accepted() {
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
fn requests_with_foreign_origin_or_host_are_forbidden() {
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
        "127.0.0.2:2181",
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
fn token_is_required_and_admits_every_address() {
    let scene = scene(|config| config.control.token = Some("s3cret".into()));
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

/// Guesses at the token were limited only by the speed of the network.
#[test]
fn wrong_tokens_are_rate_limited() {
    let scene = scene(|config| config.control.token = Some("s3cret".into()));
    let address = scene.address();
    let show = |token: &str| {
        let headers = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
        request(address, "GET /v1/now", &headers, "").status
    };
    // The server checks sixteen wrong tokens a second.
    let tries: Vec<_> = (0..300).map(|_| show("guess")).collect();
    let checked = tries.iter().filter(|status| **status == 401).count();
    let refused = tries.iter().filter(|status| **status == 429).count();
    assert_eq!(checked + refused, tries.len());
    assert!(refused > 0);
    // A request without a token is not a guess.
    let nothing = request(address, "GET /v1/now", "Host: localhost\r\n", "");
    assert_eq!(nothing.status, 401);
    wait_until("the server checks the right token again", || {
        show("s3cret") == 200
    });
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
    // The server rejects the announced length without waiting for the body.
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

/// The server answers malformed requests with an error or closes the connection, and keeps running.
#[test]
fn malformed_requests_are_answered_or_closed() {
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

/// Opens a connection that stays open, and asks for a verb.
fn asking(address: SocketAddr, verb: &str) -> TcpStream {
    let mut stream = connect(address);
    let request = format!("GET /v1/{verb} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[test]
fn connections_count_against_the_limit_until_they_end() {
    let scene = scene(|config| config.connections_max = 2);
    let stream = asking(scene.address(), "now");
    scene.connect().expect_reset();
    drop(stream);
    let address = scene.address();
    wait_until("the server accepts a connection again", || {
        let answer = raw(
            address,
            b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        );
        answer.starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn shutdown_closes_idle_http_connections() {
    let scene = scene(|_| {});
    let mut stream = asking(scene.address(), "now");
    scene.server.shutdown().unwrap();
    let mut rest = Vec::new();
    // The connection may end orderly or by a reset.
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn http_connection_opens_no_session_and_is_not_counted_as_client() {
    let scene = scene(|_| {});
    let mut stream = asking(scene.address(), "sessions");
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
    // Advancing the clock does not close the connection either.
    scene.server.advance(Duration::from_secs(30));
    stream
        .write_all(b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("elapsed_ms"), "{text}");
}

/// Answers that clients did not read counted against no limit.
#[test]
fn unread_answers_have_a_limit() {
    let scene = scene(|config| config.unsent_bytes_max = 1 << 20);
    let address = scene.address();
    for number in 0..24 {
        let path = format!("/big{number}");
        scene.server.create(&path, "x".repeat(1_000_000)).unwrap();
    }
    // More than the buffers of a socket hold.
    let mut unread = connect(address);
    unread
        .write_all(b"GET /v1/export_tree HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let ask = || get(address, "get?path=/big0");
    wait_until("an answer is refused", || ask().status == 503);
    let refused = ask();
    let sentence = said(&refused, 503);
    assert!(
        sentence.contains("(unsent_bytes_max, --max-unsent-bytes)"),
        "{sentence}"
    );
    // The page is the same file for all, and takes no memory.
    let page = raw(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(page.starts_with(b"HTTP/1.1 200 OK"));
    // A small answer is sent nevertheless.
    done(get(address, "now"));
    drop(unread);
    wait_until("the next answer is sent", || ask().status == 200);
    // One alone is sent, however long it is, and whole.
    let tree = done(get(address, "export_tree"));
    assert!(tree.to_string().len() > 24_000_000);
    scene.end();
}

/// The last of two equal keys counted, and a seed lost a znode in silence.
#[test]
fn body_with_a_key_twice_is_refused() {
    let scene = scene(|_| {});
    for body in [
        r#"{"tree": {"/a": "1", "/a": "2"}}"#,
        r#"{"tree": {"/a": {"data": "1", "data": "2"}}}"#,
        r#"{"tree": {"/a": "1"}, "tree": {"/b": "1"}}"#,
    ] {
        let refused = request(
            scene.address(),
            "POST /v1/seed",
            "Host: localhost\r\n",
            body,
        );
        let sentence = said(&refused, 400);
        assert!(sentence.contains("duplicate \""), "{sentence}");
    }
    assert!(scene.server.get("/a").is_none());
    scene.end();
}

/// An empty order holds for every journal, and `exactly` beside an order was ignored.
#[test]
fn verification_of_nothing_is_refused() {
    let scene = scene(|_| {});
    let refused = post(scene.address(), "verify", &json!({"in_order": []}));
    assert!(said(&refused, 400).contains("the list of filters is empty"));
    let both = json!({"in_order": ["create"], "exactly": 7});
    said(&post(scene.address(), "verify", &both), 400);
    let empty = scene.server.verify_order(&[]);
    assert_eq!(empty, Err(minikeeper::JournalError::NoFilter));
    scene.end();
}
