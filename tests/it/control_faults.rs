//! Verbs for faults, silence, the clock and waiting over HTTP.

use std::thread;

use minikeeper_protocol::CreateMode;
use minikeeper_test_kit::wire;
use serde_json::json;

use crate::http::{Kept, done, get, post, said, scene};

#[test]
fn lost_reply_fault_is_injected_counted_and_removed() {
    let scene = scene(|_| {});
    let address = scene.address();
    let fault = json!({
        "action": "lose-reply", "op": "create", "path": "/lost/*", "skip": 0, "count": 1,
        "probability": 1, "seed": 7,
    });
    let fault = done(post(address, "inject", &fault))["fault"].clone();
    let mut client = scene.open();
    client.must(&wire::create("/lost", b"", CreateMode::Persistent));
    client.send(&wire::create("/lost/a", b"", CreateMode::Persistent));
    let until = json!({"fault": fault, "within_ms": 10_000});
    let told = done(post(address, "until_hit", &until));
    assert_eq!(told["hits"], 1);
    let hit = &told["last_hit"];
    assert_eq!(
        (&hit["op"], &hit["path"]),
        (&json!("create"), &json!("/lost/a"))
    );
    assert_eq!(hit["xid"], 2);
    let sessions = done(get(address, "sessions"));
    assert_eq!(hit["session"], sessions["sessions"][1]["id"]);
    client.expect_closed();
    assert!(scene.server.get("/lost/a").is_some());
    let faults = done(get(address, "faults"));
    let shown = &faults["faults"][0];
    assert_eq!(
        (&shown["action"], &shown["op"], &shown["hits"]),
        (&json!("lose-reply"), &json!("create"), &json!(1))
    );
    let late = json!({"fault": fault, "hits": 2, "within_ms": 1});
    assert!(said(&post(address, "until_hit", &late), 408).contains('2'));
    let fault = json!({"fault": fault});
    assert_eq!(
        done(post(address, "remove_fault", &fault)),
        json!({"hits": 1})
    );
    said(&post(address, "remove_fault", &fault), 404);
    said(&post(address, "until_hit", &fault), 404);
    done(post(address, "inject", &json!({"action": "cut"})));
    done(post(address, "reset_faults", &json!({})));
    assert_eq!(done(get(address, "faults")), json!({"faults": []}));
    scene.end();
}

#[test]
fn invalid_fault_is_refused() {
    let scene = scene(|_| {});
    for (fault, complaint) in [
        (json!({"action": "explode"}), "not one of refuse"),
        (json!({"action": "delay"}), "needs a duration"),
        (json!({"action": "error", "error": "NOSENSE"}), "NOSENSE"),
        (json!({"action": "cut", "op": "dance"}), "dance"),
        (
            json!({"action": "cut", "probability": 2}),
            "outside the range of 0 to 1",
        ),
        (
            json!({"action": "cut", "session": "0x1", "address": "127.0.0.1"}),
            "at most one",
        ),
    ] {
        let refused = post(scene.address(), "inject", &fault);
        assert!(said(&refused, 400).contains(complaint), "{fault}");
    }
}

#[test]
fn silenced_session_expires_although_its_client_pings() {
    let scene = scene(|_| {});
    let address = scene.address();
    let (mut client, session) = scene.open_session();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let owner = json!({"owner": "/e"});
    assert_eq!(done(post(address, "silence", &owner)), json!({"count": 1}));
    let id = session.session_id.to_string();
    let sessions = done(get(address, "sessions"));
    let sessions = sessions["sessions"].as_array().unwrap();
    let own = sessions.iter().find(|session| session["id"] == id.as_str());
    assert_eq!(own.unwrap()["is_silenced"], true);
    assert_eq!(
        done(post(address, "unsilence", &owner)),
        json!({"count": 1})
    );
    said(&post(address, "unsilence", &owner), 404);
    client.ping();
    done(post(address, "silence", &owner));
    client.send(&minikeeper_protocol::Request::Ping);
    done(post(address, "advance", &json!({"by_ms": 10_000})));
    client.expect_closed();
    assert!(scene.server.get("/e").is_none());
}

#[test]
fn clock_is_unfrozen_and_frozen() {
    let scene = scene(|_| {});
    let address = scene.address();
    done(post(address, "unfreeze", &json!({})));
    assert_eq!(done(get(address, "now"))["is_frozen"], false);
    done(post(address, "freeze", &json!({})));
    assert_eq!(done(get(address, "now"))["is_frozen"], true);
}

#[test]
fn auto_advance_moves_time_until_disabled() {
    let scene = scene(|_| {});
    let address = scene.address();
    let mut client = scene.open();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    // Opened first: the clock could advance past the handshake deadline of a later connection.
    let mut control = Kept::open(address);
    let on = control.post("auto_advance", &json!({"idle_ms": 1}));
    assert_eq!(done(on), json!({}));
    drop(client);
    let gone = json!({"path": "/", "count": 2});
    assert_eq!(done(control.post("until_children", &gone)), json!({}));
    assert!(scene.server.get("/e").is_none());
    done(control.post("auto_advance", &json!({"idle_ms": null})));
    let mut client = scene.open();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let before = done(get(address, "now"));
    assert_eq!(before["is_frozen"], true);
    done(post(address, "until_idle", &json!({"quiet_ms": 20})));
    assert_eq!(done(get(address, "now")), before);
    client.must(&wire::get("/e", false));
}

#[test]
fn waits_end_when_their_condition_holds_or_report_what_they_saw() {
    let scene = scene(|_| {});
    let address = scene.address();
    let mut client = scene.open();
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    client.must(&wire::get("/a", true));
    let watched = json!({"path": "/a"});
    assert_eq!(done(post(address, "until_watched", &watched)), json!({}));
    let children = json!({"path": "/", "count": 3});
    assert_eq!(done(post(address, "until_children", &children)), json!({}));
    let mut contenders = json!({"lock": "/a", "count": 1, "within_ms": 1});
    let early = post(address, "until_contenders", &contenders);
    assert!(
        said(&early, 408).ends_with("it has no children"),
        "{}",
        early.body
    );
    contenders["within_ms"] = json!(10_000);
    let waited = thread::scope(|threads| {
        let waiting = threads.spawn(|| post(address, "until_contenders", &contenders));
        let contender = wire::create("/a/lock-", b"", CreateMode::EphemeralSequential);
        client.must(&contender);
        waiting.join().unwrap()
    });
    assert_eq!(done(waited), json!({}));
    assert_eq!(
        done(post(address, "until_idle", &json!({"quiet_ms": 1}))),
        json!({})
    );
    let late = json!({"quiet_ms": 10_000, "within_ms": 1});
    let late = post(address, "until_idle", &late);
    assert!(said(&late, 408).contains("10s"), "{}", late.body);
    let late = json!({"path": "/", "count": 9, "within_ms": 1});
    assert!(said(&post(address, "until_children", &late), 408).contains("has 3"));
    scene.end();
}
