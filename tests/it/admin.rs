//! ZooKeeper's AdminServer on the clients' port: every command, access, methods, limits; metrics.

use std::net::SocketAddr;

use minikeeper_protocol::CreateMode;
use minikeeper_test_kit::wire;
use serde_json::{Value, json};

use crate::{
    http::{Answer, raw, request, scene},
    kit::Scene,
};

const HOST: &str = "Host: localhost\r\n";

/// Every name of `/commands`.
#[track_caller]
fn names(address: SocketAddr) -> Vec<String> {
    let list = raw(
        address,
        b"GET /commands HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    let list = String::from_utf8(list).unwrap();
    let links = list.lines().filter_map(|line| {
        let (_, name) = line.strip_suffix("</a>")?.rsplit_once('>')?;
        Some(name.to_owned())
    });
    links.collect()
}

#[track_caller]
fn ask(address: SocketAddr, method: &str, name: &str) -> Answer {
    request(address, &format!("{method} /commands/{name}"), HOST, "")
}

/// Returns the body of a successful command; panics if it failed.
#[track_caller]
fn body(address: SocketAddr, name: &str) -> Value {
    let answer = ask(address, "GET", name);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body["error"].is_null(), "{}", answer.body);
    answer.body
}

#[track_caller]
fn metrics(address: SocketAddr) -> String {
    let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = String::from_utf8(raw(address, get.as_bytes())).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body.to_owned()
}

#[test]
fn every_command_answers_json_with_its_name_and_error() {
    let scene = scene(|_| {});
    let names = names(scene.address());
    assert_eq!(names.len(), 28, "{names:?}");
    for name in names {
        let answer = ask(scene.address(), "GET", &name);
        assert!(answer.head.contains("\r\ncontent-type: application/json"));
        assert_eq!(answer.body["command"], json!(name), "{name}");
        let (status, error) = match name.as_str() {
            "leader" => (200, json!("server is not initialized")),
            "set_trace_mask" => (200, json!("setTraceMask requires long traceMask argument")),
            "restore" | "snapshot" => (401, json!("Auth info is missing for the command")),
            _ => (200, Value::Null),
        };
        assert_eq!(answer.body.get("error"), Some(&error), "{name}");
        assert_eq!(answer.status, status, "{name}");
    }
    let unknown = ask(scene.address(), "GET", "%22%3Cscript%3E");
    assert_eq!(unknown.status, 200);
    assert_eq!(
        unknown.body,
        json!({"command": "\"<script>", "error": "Unknown command: \"<script>"})
    );
    assert_eq!(ask(scene.address(), "GET", "%ff").status, 400);
    scene.end();
}

#[test]
fn commands_report_sessions_watches_and_ephemerals() {
    let scene = scene(|_| {});
    let (mut client, session) = scene.open_session();
    let id = session.session_id.0;
    client.must(&wire::create("/e", b"1", CreateMode::Ephemeral));
    client.must(&wire::get("/e", true));
    let ask = |name: &str| body(scene.address(), name);
    let sessions = &ask("cons")["connections"];
    let own = sessions.as_array().unwrap().iter();
    let mut own = own.filter(|connection| connection["session_id"] == json!(id));
    let own = own.next().expect("the connection of the session");
    assert_eq!(own["last_operation"], json!("GETD"));
    assert_eq!(own["packets_received"], json!(3));
    assert_eq!(own["session_timeout"], json!(10_000));
    let key = id.to_string();
    assert_eq!(
        ask("wchc")["session_id_to_watched_paths"],
        json!({&key: ["/e"]})
    );
    assert_eq!(ask("wchp")["path_to_session_ids"], json!({"/e": [id]}));
    assert_eq!(ask("wchs")["num_total_watches"], json!(1));
    let dump = ask("dump");
    assert_eq!(dump["session_id_to_ephemeral_paths"][&key], json!(["/e"]));
    let expiries = dump["expiry_time_to_session_ids"].as_object().unwrap();
    let ids: Vec<_> = expiries
        .values()
        .flat_map(|ids| ids.as_array().unwrap())
        .collect();
    assert!(ids.contains(&&json!(id)), "{dump}");
    let monitor = ask("mntr");
    assert_eq!(monitor["ephemerals_count"], json!(2));
    assert_eq!(monitor["num_alive_connections"], json!(2));
    assert_eq!(
        ask("srvr")["server_stats"]["num_alive_client_connections"],
        json!(2)
    );
    scene.end();
}

/// A client that makes many sessions, watches or ephemerals could make each answer arbitrarily long.
#[test]
fn lists_have_a_limit_and_say_how_many_rows_are_left_out() {
    let scene = scene(|config| config.four_letter_rows_max = 5);
    let mut clients: Vec<_> = (0..10).map(|_| scene.open()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let path = format!("/e{number}");
        client.must(&wire::create(&path, b"", CreateMode::Ephemeral));
        client.must(&wire::get(&path, true));
    }
    for (name, key, left_out) in [
        ("connections", "connections", 6),
        ("stats", "connections", 6),
        ("watches", "session_id_to_watched_paths", 18),
        ("watches_by_path", "path_to_session_ids", 18),
    ] {
        let answer = body(scene.address(), name);
        let rows = match &answer[key] {
            Value::Array(rows) => rows.len(),
            rows => rows.as_object().map_or(0, serde_json::Map::len),
        };
        assert!((1..=5).contains(&rows), "{name}: {answer}");
        let said = answer["left_out"].as_u64().unwrap();
        assert!((left_out - 3..=left_out).contains(&said), "{name}: {said}");
    }
    assert!(body(scene.address(), "dump")["left_out"].as_u64().unwrap() > 10);
    scene.end();
}

#[test]
fn access_is_that_of_control() {
    let scene = scene(|_| {});
    for path in ["/commands", "/commands/ruok", "/commands/nope", "/metrics"] {
        let line = format!("GET {path}");
        for headers in [
            "Host: example.org\r\n",
            "Host: localhost\r\nOrigin: null\r\n",
            "",
        ] {
            assert_eq!(
                request(scene.address(), &line, headers, "").status,
                403,
                "{path}"
            );
        }
    }
    scene.end();
    let scene = crate::http::scene(|config| config.control.token = Some("s3cret".into()));
    for path in ["/commands", "/commands/stat_reset", "/metrics"] {
        let line = format!("GET {path}");
        assert_eq!(
            request(scene.address(), &line, HOST, "").status,
            401,
            "{path}"
        );
        let headers = "Host: prometheus.example\r\nAuthorization: Bearer s3cret\r\n";
        assert_eq!(
            request(scene.address(), &line, headers, "").status,
            200,
            "{path}"
        );
    }
    scene.end();
}

#[test]
fn server_without_control_answers_no_command() {
    let scene = Scene::new();
    for path in ["/commands/ruok", "/metrics"] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(raw(scene.address(), get.as_bytes()), b"", "{path}");
    }
    scene.wait_alone();
    scene.end();
}

/// An image in a page of another site is a GET without `Origin`.
#[test]
fn commands_that_change_something_serve_no_page_of_another_site() {
    let scene = scene(|_| {});
    for name in ["stat_reset", "crst", "orst", "stmk?traceMask=1"] {
        let line = format!("GET /commands/{name}");
        for site in [
            "cross-site",
            "same-site",
            "none\r\nSec-Fetch-Site: cross-site",
        ] {
            let headers = format!("{HOST}Sec-Fetch-Site: {site}\r\n");
            let refused = request(scene.address(), &line, &headers, "");
            assert_eq!(refused.status, 403, "{name} {site}");
        }
        for headers in [
            "",
            "Sec-Fetch-Site: none\r\n",
            "Sec-Fetch-Site: same-origin\r\n",
        ] {
            let headers = format!("{HOST}{headers}");
            assert_eq!(
                request(scene.address(), &line, &headers, "").status,
                200,
                "{name}"
            );
        }
    }
    assert_eq!(body(scene.address(), "gtmk")["tracemask"], json!(1));
    scene.end();
}

#[test]
fn only_reads_take_head_and_nothing_takes_other_methods() {
    let scene = scene(|_| {});
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        for name in ["ruok", "stat_reset"] {
            let refused = ask(scene.address(), method, name);
            assert_eq!(refused.status, 405, "{method} {name}");
        }
        for path in ["/commands", "/metrics"] {
            let refused = request(scene.address(), &format!("{method} {path}"), HOST, "");
            assert_eq!(refused.status, 405, "{method} {path}");
        }
    }
    assert_eq!(ask(scene.address(), "HEAD", "ruok").status, 200);
    assert_eq!(ask(scene.address(), "HEAD", "srst").status, 405);
    assert_eq!(ask(scene.address(), "POST", "restore").status, 401);
    let headers = format!("{HOST}Authorization: digest a:b\r\n");
    let refused = request(scene.address(), "GET /commands/snapshot", &headers, "");
    assert_eq!(refused.status, 503);
    scene.end();
}

#[test]
fn resets_reset_what_the_four_letter_words_reset() {
    let scene = scene(|_| {});
    let received = |name: &str| body(scene.address(), "srvr")["server_stats"][name].clone();
    assert_eq!(received("packets_received"), json!(4));
    body(scene.address(), "srst");
    assert_eq!(received("packets_received"), json!(0));
    let connection = |key: &str| body(scene.address(), "cons")["connections"][0][key].clone();
    assert_eq!(connection("packets_received"), json!(4));
    body(scene.address(), "crst");
    assert_eq!(connection("packets_received"), json!(0));
    assert_eq!(
        body(scene.address(), "stmk?traceMask=7")["tracemask"],
        json!(7)
    );
    let wrong = ask(scene.address(), "GET", "stmk?traceMask=x");
    assert_eq!(
        wrong.body["error"],
        json!("setTraceMask requires long traceMask argument, got x")
    );
    assert_eq!(body(scene.address(), "gtmk")["tracemask"], json!(7));
    scene.end();
}

#[test]
fn server_that_is_down_says_so_on_the_control_port() {
    let scene = scene(|config| config.control.listen = Some("127.0.0.1:0".parse().unwrap()));
    let address = scene.server.control_addr().unwrap();
    scene.server.go_down();
    let down = ask(address, "GET", "ruok");
    assert_eq!(
        down.body["error"],
        json!("This ZooKeeper instance is not currently serving requests")
    );
    assert_eq!(body(address, "envi")["command"], json!("environment"));
    scene.server.come_up(minikeeper::Keep::Everything).unwrap();
    body(address, "ruok");
}

#[test]
fn every_metric_has_help_type_and_well_formed_samples() {
    let scene = scene(|_| {});
    let mut client = scene.open();
    client.must(&wire::create("/a\"b\\c", b"", CreateMode::Persistent));
    client.must(&wire::create(
        "/zookeeper/quota/a\"b\\c",
        b"",
        CreateMode::Persistent,
    ));
    let limits = "/zookeeper/quota/a\"b\\c/zookeeper_limits";
    client.must(&wire::create(
        limits,
        b"count=7,bytes=-1",
        CreateMode::Persistent,
    ));
    let text = metrics(scene.address());
    let mut family = String::new();
    let mut families = 0;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split_once(' ').unwrap().0.to_owned();
            families += 1;
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert!(["gauge", "counter", "summary"].contains(&kind), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        assert!(sample.starts_with(&family), "{line} in {family}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(families > 150, "{families}");
    for line in [
        "quota_count_limit_per_namespace{key=\"a\\\"b\\\\c\"} 7",
        "num_alive_connections 2",
        "readlatency_count 1",
        "readlatency{quantile=\"0.99\"} 0",
        "fsynctime{quantile=\"0.5\"} NaN",
        "# TYPE bytes_received_count counter",
        "# TYPE write_per_namespace summary",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    scene.end();
}
