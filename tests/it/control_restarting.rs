//! Restarts and data that moves, over HTTP.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
};

use minikeeper_protocol::CreateMode;
use minikeeper_tests::wire::{self, Wire};
use serde_json::json;

use crate::http::{done, post, said, scene};

fn scratch_dir(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("control_restarting")
        .join(name);
    let _ = std::fs::remove_dir_all(&path);
    path
}

#[test]
fn server_is_restarted_with_what_is_kept() {
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

/// The connection that took the server down can bring it up.
#[test]
fn control_stays_while_the_server_is_down() {
    let scene = scene(|_| {});
    let address = scene.address();
    let mut control = TcpStream::connect(address).unwrap();
    let mut call = |verb: &str| {
        let head = format!("POST /v1/{verb} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n");
        control
            .write_all(format!("{head}\r\n{{}}").as_bytes())
            .unwrap();
        let mut answer = [0; 12];
        control.read_exact(&mut answer).unwrap();
        let mut rest = [0; 4_096];
        // What is left of the answer comes at once.
        let _ = control.read(&mut rest).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    assert_eq!(call("go_down"), "HTTP/1.1 200");
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(call("come_up"), "HTTP/1.1 200");
    TcpStream::connect(address).unwrap();
}

/// A universe of its own goes down alone; the server's own takes all with it.
#[test]
fn universes_go_down_alone_and_together() {
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
fn data_is_exported_and_imported() {
    let dir = scratch_dir("exported");
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
    assert!(said(&answer, 409).contains("is there already"));
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
