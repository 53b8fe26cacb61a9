//! Which web pages may call control: every route with every `Origin`, `Host` and `Sec-Fetch-` header.
//!
//! Verbs are called with an argument that they do not have, so that an admitted call has status 400 and
//! no effect.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use minikeeper::control::{Method, verbs};

use crate::http::{connect, raw, scene};

/// The number of requests that are on their way at a time.
const PIPELINED: usize = 64;

const HOST: &str = "127.0.0.1:2181";

/// The number of values of a header, from the first on, that are combined with those of the others.
const COMBINED: usize = 5;

/// The values of `Host`, and whether they name this machine alone.
const HOSTS: &[(&str, bool)] = &[
    (HOST, true),
    // DNS rebinding.
    ("rebound.example:2181", false),
    // Names of this machine to which browsers send no `Sec-Fetch-Site`.
    ("0.0.0.0:2181", false),
    ("[::ffff:127.0.0.1]:2181", false),
    ("localhost:2181", true),
    ("0", false),
    ("[::]:2181", false),
    ("192.0.2.1:2181", false),
    ("127.0.0.1.nip.io", false),
    ("localhost.example.org", false),
    ("127.0.0.1", true),
    ("127.9.9.9:1", true),
    ("[::1]:2181", true),
];

/// The values of `Origin`; `None` for no such header. Only the page at [`HOST`] is the server's own.
const ORIGINS: &[Option<&str>] = &[
    None,
    Some("http://127.0.0.1:2181"),
    Some("http://127.0.0.1:3000"),
    Some("http://rebound.example:2181"),
    Some("null"),
    Some("https://127.0.0.1:2181"),
    Some("http://localhost:2181"),
    Some("https://example.org"),
    Some(""),
];

/// The values of `Sec-Fetch-Site`; the first is that of curl and the packages.
const SITES: &[Option<&str>] = &[
    None,
    Some("none"),
    Some("same-origin"),
    Some("same-site"),
    Some("cross-site"),
    Some("Same-Origin"),
    Some(""),
    Some("of-a-later-standard"),
    Some("same-origin\r\nSec-Fetch-Site: cross-site"),
];

/// The values of `Sec-Fetch-Mode` and `Sec-Fetch-Dest`.
const MODES: &[Option<(&str, &str)>] = &[
    None,
    Some(("navigate", "document")),
    Some(("navigate", "iframe")),
    Some(("no-cors", "image")),
    Some(("cors", "empty")),
    Some(("navigate", "embed")),
    Some(("no-cors", "script")),
    Some(("websocket", "websocket")),
];

/// The headers of a request that tell who sends it.
#[derive(Clone, Copy)]
struct Sender {
    host: (&'static str, bool),
    origin: Option<&'static str>,
    site: Option<&'static str>,
    mode: Option<(&'static str, &'static str)>,
}

/// A program on this machine.
const CURL: Sender = Sender {
    host: (HOST, true),
    origin: None,
    site: None,
    mode: None,
};

impl Sender {
    /// Returns whether it may call a route. A link may open the page in a tab.
    fn is_admitted(&self, route: &Route) -> bool {
        let is_own_origin = self.origin.is_none_or(|origin| {
            let host = origin.strip_prefix("http://");
            host.or_else(|| origin.strip_prefix("https://")) == Some(self.host.0)
        });
        let is_own_site = [None, Some("none"), Some("same-origin")].contains(&self.site);
        let is_link = route.line == "GET /" && self.mode == Some(("navigate", "document"));
        self.host.1 && is_own_origin && (is_own_site || is_link)
    }

    fn headers(&self) -> String {
        let mut headers = format!("Host: {}\r\n", self.host.0);
        for (name, value) in [
            ("Origin", self.origin),
            ("Sec-Fetch-Site", self.site),
            ("Sec-Fetch-Mode", self.mode.map(|(mode, _)| mode)),
            ("Sec-Fetch-Dest", self.mode.map(|(_, dest)| dest)),
        ] {
            if let Some(value) = value {
                let _ = write!(headers, "{name}: {value}\r\n");
            }
        }
        headers
    }
}

/// Returns each value of each header alone.
fn each_header() -> Vec<Sender> {
    let hosts = HOSTS.iter().map(|host| Sender {
        host: *host,
        ..CURL
    });
    let origins = ORIGINS.iter().map(|origin| Sender {
        origin: *origin,
        ..CURL
    });
    let sites = SITES.iter().flat_map(|site| {
        MODES.iter().map(|mode| Sender {
            site: *site,
            mode: *mode,
            ..CURL
        })
    });
    hosts.chain(origins).chain(sites).collect()
}

/// Returns each combination of values.
fn every_combination() -> Vec<Sender> {
    let mut senders = Vec::new();
    for host in &HOSTS[..COMBINED] {
        for origin in &ORIGINS[..COMBINED] {
            for site in &SITES[..COMBINED] {
                senders.extend(MODES[..COMBINED].iter().map(|mode| Sender {
                    host: *host,
                    origin: *origin,
                    site: *site,
                    mode: *mode,
                }));
            }
        }
    }
    senders
}

/// A request line without its version, and a body.
struct Route {
    line: String,
    body: &'static str,
    /// The status when it is admitted.
    status: &'static str,
}

impl Route {
    fn new(line: impl Into<String>, status: &'static str) -> Self {
        Self {
            line: line.into(),
            body: "",
            status,
        }
    }
}

/// Returns every route of the server.
fn routes(address: SocketAddr) -> Vec<Route> {
    let mut routes: Vec<_> = [
        ("GET /", "200"),
        ("HEAD /", "200"),
        ("GET /v1/openapi.json", "200"),
        ("GET /metrics", "200"),
        ("GET /commands", "200"),
        ("GET /commands/", "200"),
        ("GET /commands/no-such-command", "200"),
        ("GET /no-such-path", "404"),
        ("OPTIONS /v1/now", "405"),
    ]
    .map(|(line, status)| Route::new(line, status))
    .into();
    for verb in verbs() {
        let universes = ["", "universes/a/"];
        let count = if verb.is_of_the_server() { 1 } else { 2 };
        for universe in &universes[..count] {
            let path = format!("/v1/{universe}{}", verb.name);
            match verb.method {
                Method::Get => {
                    routes.push(Route::new(format!("GET {path}?no-such=1"), "400"));
                    routes.push(Route::new(format!("HEAD {path}?no-such=1"), "400"));
                }
                Method::Post => routes.push(Route {
                    body: "{\"no-such\": 1}",
                    ..Route::new(format!("POST {path}"), "400")
                }),
            }
        }
    }
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/src/page/assets");
    for file in std::fs::read_dir(assets).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        routes.push(Route::new(format!("GET /page/{name}"), "200"));
    }
    let get = b"GET /commands HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let list = String::from_utf8(raw(address, get)).unwrap();
    let names: BTreeSet<_> = list
        .split("\"/commands/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(names.len() > 20, "{list}");
    for name in names {
        let status = match name {
            "snapshot" | "restore" => "401",
            _ => "200",
        };
        routes.push(Route::new(format!("GET /commands/{name}"), status));
    }
    assert!(routes.len() > 150, "{}", routes.len());
    routes
}

/// Sends requests on one connection, and checks who is admitted. Returns how many were refused.
#[track_caller]
fn check(address: SocketAddr, requests: &[(&Route, Sender)]) -> usize {
    let mut stream = BufReader::new(connect(address));
    let mut refused = 0;
    for batch in requests.chunks(PIPELINED) {
        let mut text = String::new();
        for (Route { line, body, .. }, sender) in batch {
            let (headers, length) = (sender.headers(), body.len());
            let _ = write!(
                text,
                "{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
            );
        }
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        for (route, sender) in batch {
            let status = next_status(&mut stream, route.line.starts_with("HEAD"));
            let is_admitted = sender.is_admitted(route);
            let wanted = if is_admitted { route.status } else { "403" };
            assert_eq!(status, wanted, "{} {:?}", route.line, sender.headers());
            refused += usize::from(!is_admitted);
        }
    }
    refused
}

/// Reads an answer, and returns its status.
#[track_caller]
fn next_status(stream: &mut BufReader<TcpStream>, is_head: bool) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "closed: {head}");
    }
    let head = head.to_ascii_lowercase();
    // No other page may read the answer.
    assert!(!head.contains("access-control-allow"), "{head}");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; if is_head { 0 } else { length }];
    stream.read_exact(&mut body).unwrap();
    head[9..12].to_owned()
}

/// Any page could call every GET verb, by an image for example: only commands of AdminServer that
/// change something looked at `Sec-Fetch-Site`. And a page could call `http://0.0.0.0:2181`, to which
/// browsers send neither that header nor, for an image, `Origin`.
#[test]
fn no_route_serves_a_page_of_another_site() {
    let scene = scene(|_| {});
    let _universe = scene.server.create_universe("a").unwrap();
    let routes = routes(scene.address());
    let senders = each_header();
    for route in &routes {
        let requests: Vec<_> = senders.iter().map(|sender| (route, *sender)).collect();
        let refused = check(scene.address(), &requests);
        assert!(refused > senders.len() / 2, "{}: {refused}", route.line);
    }
    scene.end();
}

/// Headers that are harmless alone are checked together.
#[test]
fn no_combination_of_headers_opens_a_route_to_another_site() {
    let scene = scene(|_| {});
    let _universe = scene.server.create_universe("a").unwrap();
    let senders = every_combination();
    let routes = routes(scene.address());
    for line in [
        "GET /",
        "GET /page/app.js",
        "GET /v1/openapi.json",
        "GET /v1/dump?no-such=1",
        "HEAD /v1/tail?no-such=1",
        "POST /v1/universes/a/create",
        "GET /commands/stat_reset",
        "GET /metrics",
    ] {
        let route = routes.iter().find(|route| route.line == line).expect(line);
        let requests: Vec<_> = senders.iter().map(|sender| (route, *sender)).collect();
        check(scene.address(), &requests);
    }
    scene.end();
}

/// A page cannot know the token, and no browser sends it by itself: a page of another site that shows it
/// was given it. The page itself is served without, because it asks for the token.
#[test]
fn with_a_token_no_header_stands_for_it() {
    let scene = scene(|config| config.control.token = Some("s3cret".into()));
    let senders = each_header();
    for path in ["/v1/now", "/commands/stat_reset", "/metrics", "/commands"] {
        let mut stream = BufReader::new(connect(scene.address()));
        for sender in &senders {
            let headers = sender.headers();
            let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            assert_eq!(next_status(&mut stream, false), "401", "{path} {headers:?}");
        }
    }
    scene.end();
}
