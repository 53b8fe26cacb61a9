//! Restarting, saving, importing and exporting over HTTP.

use std::{
    io::{ErrorKind, Write as _},
    net::{SocketAddr, TcpStream},
};

use minikeeper::{JournalFilter, blocking};
use minikeeper_protocol::CreateMode;
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::json;

use crate::{
    http::{connect, done, get, post, raw, request, said, scene},
    kit::{scratch_dir, wait_until},
};

#[test]
fn restart_keeps_all_or_data_or_nothing() {
    let scene = scene(|_| {});
    let address = scene.address();
    let (mut client, session) = scene.open_session();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    client.must(&wire::create("/p", b"", CreateMode::Persistent));
    assert_eq!(done(post(address, "restart", &json!({}))), json!({}));
    client.expect_closed();
    let mut client = Wire::connect(address);
    let password = session.password.as_deref().unwrap();
    let seen = minikeeper::Zxid(0);
    let resumed = client.resume(session.session_id, password, seen, 10_000);
    assert_eq!(resumed, session);
    client.must(&wire::get("/e", false));
    done(post(address, "restart", &json!({"keep": "data"})));
    client.expect_closed();
    assert_eq!(scene.server.sessions(), []);
    assert!(scene.server.get("/e").is_none() && scene.server.get("/p").is_some());
    done(post(address, "restart", &json!({"keep": "nothing"})));
    assert_eq!(scene.server.children("/").unwrap(), ["zookeeper"]);
    let answer = post(address, "restart", &json!({"keep": "all"}));
    assert!(said(&answer, 400).starts_with("parameter keep: "));
}

/// Checks that connecting is refused. A port that accepts and closes would not do: some clients
/// notice.
#[track_caller]
fn assert_refused(address: SocketAddr) {
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{address}");
}

/// Takes a server down. Returns the address of the control API while it is down.
#[track_caller]
fn go_down(address: SocketAddr) -> SocketAddr {
    let answer = done(post(address, "go_down", &json!({})));
    answer["control"].as_str().unwrap().parse().unwrap()
}

#[test]
fn server_that_is_down_serves_control_on_a_side_port() {
    let scene = scene(|_| {});
    let address = scene.address();
    let (mut client, session) = scene.open_session();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let side = go_down(address);
    client.expect_closed();
    assert_refused(address);
    assert_eq!(side.ip(), address.ip());
    // Every verb works, each over a new connection; `go_down` again returns the same address.
    assert_eq!(done(get(side, "get?path=/e"))["data"], json!(""));
    assert_eq!(go_down(side), side);
    // The control port serves no ZooKeeper clients.
    assert!(raw(side, &[0, 0, 0, 44]).starts_with(b"HTTP/1.1 400 "));
    assert_eq!(done(post(side, "come_up", &json!({}))), json!({}));
    assert_refused(side);
    let password = session.password.as_deref().unwrap();
    let mut client = Wire::connect(address);
    client.resume(session.session_id, password, minikeeper::Zxid(0), 10_000);
    client.must(&wire::get("/e", false));
    done(get(address, "now"));
    // Down again, and up without sessions; a restart brings the server up too.
    let side = go_down(address);
    done(post(side, "come_up", &json!({"keep": "data"})));
    assert!(scene.server.get("/e").is_none());
    let side = go_down(address);
    done(post(side, "restart", &json!({})));
    assert_refused(side);
    done(get(address, "now"));
}

/// The port that only serves control while the server is down closes with that state, however it
/// ends.
#[test]
fn side_port_closes_when_the_server_comes_up_or_stops() {
    let scene = scene(|_| {});
    let side = go_down(scene.address());
    scene.server.come_up(minikeeper::Keep::Everything).unwrap();
    assert_refused(side);
    let side = go_down(scene.address());
    scene.server.shutdown().unwrap();
    assert_refused(side);
}

/// The side port requires the token just as the clients' port does.
#[test]
fn side_port_requires_the_token() {
    let scene = scene(|config| config.control.token = Some("s3cret".into()));
    let token = "Host: localhost\r\nAuthorization: Bearer s3cret\r\n";
    let answer = request(scene.address(), "POST /v1/go_down", token, "{}");
    let side = done(answer)["control"].as_str().unwrap().parse().unwrap();
    said(&post(side, "come_up", &json!({})), 401);
    assert_refused(scene.address());
    done(request(side, "POST /v1/come_up", token, "{}"));
    TcpStream::connect(scene.address()).unwrap();
}

/// A server that stopped half way down could not be brought up again.
#[test]
fn server_goes_down_even_if_the_caller_disconnects() {
    let scene = scene(|_| {});
    let address = scene.address();
    let (mut client, _) = scene.open_session();
    let mut control = connect(address);
    let head = "POST /v1/go_down HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
    control.write_all(head.as_bytes()).unwrap();
    // A caller that leaves before the server has read its request is not served.
    wait_until("the verb has begun", || {
        let verbs = JournalFilter::new().kind("verb");
        scene.server.count(&verbs).unwrap() == 1
    });
    drop(control);
    client.expect_closed();
    wait_until("the port is closed", || {
        TcpStream::connect(address).is_err()
    });
}

/// A separate control port stays open before, while and after the server is down.
#[test]
fn separate_control_port_stays_open_while_the_server_is_down() {
    for is_on_both in [false, true] {
        let scene = scene(|config| {
            config.control.is_enabled = is_on_both;
            config.control.listen = Some(([127, 0, 0, 1], 0).into());
        });
        let address = scene.address();
        let control = scene.server.control_addr().unwrap();
        assert_ne!(control, address);
        let asked = raw(
            address,
            b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(!asked.is_empty(), is_on_both);
        assert_eq!(go_down(control), control);
        assert_refused(address);
        done(get(control, "now"));
        done(post(control, "come_up", &json!({})));
        TcpStream::connect(address).unwrap();
        done(post(control, "restart", &json!({})));
        done(get(control, "now"));
        scene.server.shutdown().unwrap();
        assert_refused(control);
    }
}

/// Restarting a named universe leaves the others alone; restarting the server's own restarts all.
#[test]
fn universe_restarts_alone_and_server_restarts_all_universes() {
    let scene = scene(|_| {});
    let other = scene.server.create_universe("other").unwrap();
    let open = |root: &str| {
        let (mut client, _) = Wire::open(scene.address(), 10_000);
        client.must(&wire::create(root, b"", CreateMode::Ephemeral));
        client
    };
    let (mut mine, mut theirs) = (open("/mine"), open("/other/theirs"));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(other.restart(minikeeper::Keep::Data))
        .unwrap();
    theirs.expect_closed();
    mine.must(&wire::get("/mine", false));
    assert!(other.get("/theirs").is_none());
    let mut theirs = open("/other/again");
    done(post(scene.address(), "restart", &json!({})));
    mine.expect_closed();
    theirs.expect_closed();
    assert!(scene.server.get("/mine").is_some() && other.get("/again").is_some());
    open("/other/more");
    other.check().unwrap();
}

#[test]
fn save_writes_the_state_of_that_moment() {
    let dir = scratch_dir("control_restarting/saved");
    let scene = scene(|config| config.data_dir = Some(dir.clone()));
    let (mut client, _) = scene.open_session();
    client.must(&wire::create("/saved", b"", CreateMode::Persistent));
    assert_eq!(done(post(scene.address(), "save", &json!({}))), json!({}));
    client.must(&wire::create("/later", b"", CreateMode::Persistent));
    let copy = blocking::Server::builder().data_from(dir).start().unwrap();
    assert!(copy.get("/saved").is_some() && copy.get("/later").is_none());
}

/// The answer left out the cause.
#[test]
fn failed_save_is_answered_with_its_cause() {
    let dir = scratch_dir("control_restarting/blocked");
    let scene = scene(|config| config.data_dir = Some(dir.clone()));
    let (mut client, _) = scene.open_session();
    client.must(&wire::create("/unsaved", b"", CreateMode::Persistent));
    // The name under which the server writes an unfinished snapshot is taken.
    std::fs::create_dir(dir.join("version-2/minikeeper.unfinished")).unwrap();
    let answer = post(scene.address(), "save", &json!({}));
    let text = said(&answer, 409);
    assert!(text.contains("Is a directory"), "{text}");
}

#[test]
fn data_is_exported_and_imported() {
    let dir = scratch_dir("control_restarting/exported");
    let dir = dir.to_str().unwrap();
    let scene = scene(|_| {});
    let address = scene.address();
    let (mut client, _) = scene.open_session();
    client.must(&wire::create("/p", b"", CreateMode::Persistent));
    let exported = done(post(address, "export_data", &json!({"dir": dir})));
    assert!(
        exported["zxid"].as_str().unwrap().starts_with("0x"),
        "{exported}"
    );
    let answer = post(address, "export_data", &json!({"dir": dir}));
    assert!(said(&answer, 409).contains("already exists"));
    client.must(&wire::delete("/p"));
    assert_eq!(
        done(post(address, "import_data", &json!({"dir": dir}))),
        json!({})
    );
    client.expect_closed();
    assert!(scene.server.get("/p").is_some());
    let answer = post(address, "import_data", &json!({"dir": "/nowhere"}));
    assert!(said(&answer, 409).starts_with("cannot list "));
}
