//! The page at `/`: its files, headers and access.

use minikeeper_test_kit::wire;
use serde_json::json;

use crate::{
    http::{done, raw, request, said, scene},
    kit::Scene,
};

const HOST: &str = "Host: 127.0.0.1\r\n";

/// Sends a GET, and returns the head in lower case and the body.
fn fetched(scene: &Scene, path: &str, headers: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    let text = String::from_utf8(raw(scene.address(), request.as_bytes())).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn page_and_its_files_are_served_with_their_headers() {
    let scene = scene(|_| {});
    let (_, page) = fetched(&scene, "/", HOST);
    assert!(page.starts_with("<!doctype html>"), "{page}");
    for (path, content_type) in [
        ("/", "text/html"),
        ("/page/app.css", "text/css"),
        ("/page/app.js", "text/javascript"),
        ("/page/preact.js", "text/javascript"),
        ("/page/LICENCES.txt", "text/plain"),
    ] {
        let (head, body) = fetched(&scene, path, HOST);
        assert!(head.starts_with("http/1.1 200 ok"), "{path}: {head}");
        assert!(!body.is_empty(), "{path}");
        for line in [
            &format!("content-type: {content_type}; charset=utf-8"),
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-cache",
        ] {
            assert!(
                head.lines().any(|found| found == line),
                "{path}: {line}: {head}"
            );
        }
    }
    for path in [
        "/page/",
        "/page/nope.js",
        "/page/../page/app.js",
        "/page/app.js/",
        "/app.js",
    ] {
        said(
            &request(scene.address(), &format!("GET {path}"), HOST, ""),
            404,
        );
    }
    // An answer with a client's data is never taken for a page.
    let (head, _) = fetched(&scene, "/v1/get?path=/bystander", HOST);
    assert!(
        head.contains("\r\nx-content-type-options: nosniff"),
        "{head}"
    );
    // Clients are served as before.
    assert_eq!(wire::four_letter(scene.address(), b"ruok"), "imok");
    scene.end();
}

#[test]
fn page_takes_only_reads() {
    let scene = scene(|_| {});
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        for path in ["/", "/page/app.js"] {
            let refused = request(scene.address(), &format!("{method} {path}"), HOST, "");
            assert_eq!(said(&refused, 405), "the page takes GET, HEAD");
            assert!(
                refused.head.contains("\r\nallow: get, head"),
                "{}",
                refused.head
            );
        }
    }
    scene.end();
}

#[test]
fn page_is_refused_to_other_hosts_and_origins() {
    let scene = scene(|_| {});
    for headers in [
        "Host: example.org\r\n",
        "Host: 127.0.0.1\r\nOrigin: http://example.org\r\n",
        "Host: 127.0.0.1\r\nOrigin: null\r\n",
        "",
    ] {
        for path in ["/", "/page/app.js"] {
            let refused = request(scene.address(), &format!("GET {path}"), headers, "");
            assert_eq!(refused.status, 403, "{headers}");
        }
    }
    scene.end();
}

/// Browsers send `Origin` with each POST of the page too. Any other origin is another page, those of this
/// machine included.
#[test]
fn only_the_page_of_the_same_host_and_port_may_call_verbs() {
    let scene = scene(|_| {});
    let create = |headers: &str| {
        let body = json!({"path": "/from-the-page", "sequential": true}).to_string();
        request(scene.address(), "POST /v1/create", headers, &body)
    };
    for host in ["127.0.0.1:2181", "localhost:2181", "[::1]:2181"] {
        done(create(&format!(
            "Host: {host}\r\nOrigin: http://{host}\r\n"
        )));
    }
    for headers in [
        "Host: 127.0.0.1:2181\r\nOrigin: http://127.0.0.1:3000\r\n",
        "Host: 127.0.0.1:2181\r\nOrigin: http://127.0.0.1\r\n",
        "Host: 127.0.0.1:2181\r\nOrigin: http://localhost:2181\r\n",
        "Host: 127.0.0.1:2181\r\nOrigin: 127.0.0.1:2181\r\n",
        "Host: 127.0.0.1:2181\r\nOrigin: file://127.0.0.1:2181\r\n",
        "Host: 127.0.0.1:2181\r\nOrigin: http://127.0.0.1:2181\r\nOrigin: http://127.0.0.1:2181\r\n",
        "Host: 127.0.0.1:2181\r\nHost: a\r\nOrigin: http://127.0.0.1:2181\r\n",
        // A name that resolves to this machine: DNS rebinding.
        "Host: rebound.example:2181\r\nOrigin: http://rebound.example:2181\r\n",
    ] {
        let refused = create(headers);
        assert!(
            [400, 403].contains(&refused.status),
            "{headers}: {}",
            refused.status
        );
    }
    let children = scene.server.children("/").unwrap();
    let created = children
        .iter()
        .filter(|name| name.starts_with("from-the-page"));
    assert_eq!(created.count(), 3);
    scene.end();
}

/// A browser sends no token with the address that a user enters, so the page asks for it.
#[test]
fn page_is_served_without_the_token_and_verbs_are_not() {
    let scene = scene(|config| config.control.token = Some("s3cret".into()));
    let (head, _) = fetched(&scene, "/", "Host: minikeeper.example\r\n");
    assert!(head.starts_with("http/1.1 200 ok"), "{head}");
    said(&request(scene.address(), "GET /v1/now", HOST, ""), 401);
    said(&request(scene.address(), "GET /metrics", HOST, ""), 401);
    scene.end();
}

#[test]
fn server_without_control_serves_no_page() {
    let scene = Scene::new();
    let request = format!("GET / HTTP/1.1\r\n{HOST}\r\n");
    assert_eq!(raw(scene.address(), request.as_bytes()), b"");
    scene.end();
}
