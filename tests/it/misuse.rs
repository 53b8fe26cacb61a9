//! Every verb that matches nothing or gets an invalid name fails with an error that says what to
//! do, and never succeeds silently.

use std::{net::SocketAddr, time::Duration};

use minikeeper::{ErrorCode, Fault, FaultError, OpCode, control};
use minikeeper_protocol::CreateMode;
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::{Value, json};

use crate::{
    http::{Answer, done, get, post, said, scene},
    kit::{Scene, TIMEOUT_MS},
};

/// The target of a verb, derived from its parameters.
#[derive(PartialEq, Eq)]
enum About {
    /// Sessions, selected in one of four ways.
    Sessions,
    /// Something that must exist. The parameter, and a value that names nothing.
    Thing(&'static str, Value),
    /// Everything, something that need not exist, or something new.
    Nothing,
}

/// Returns the target of a verb by the kinds of its parameters. Lists the verbs whose targets have
/// names or ids that no parameter kind shows.
fn about(verb: &control::Verb) -> About {
    let takes = |is_it: fn(&control::ParameterKind) -> bool| {
        let mut kinds = verb.parameters.iter().map(|parameter| &parameter.kind);
        kinds.any(is_it)
    };
    // It waits for a session that has ended, or will.
    if verb.name == "until_noticed" {
        return About::Nothing;
    }
    if takes(|kind| matches!(kind, control::ParameterKind::SessionSelector)) {
        return About::Sessions;
    }
    if takes(|kind| matches!(kind, control::ParameterKind::Fault)) {
        return About::Thing("fault", json!(999));
    }
    let takes_path = takes(|kind| matches!(kind, control::ParameterKind::Path));
    if takes_path && verb.method == control::Method::Get {
        return About::Thing("path", json!("/nobodys"));
    }
    match verb.name {
        "restore" | "drop_snapshot" | "changes_since" => About::Thing("snapshot", json!(999)),
        "drop_universe" => About::Thing("name", json!("nobodys")),
        "import_data" => About::Thing("dir", json!("/nobodys/directory")),
        _ => About::Nothing,
    }
}

fn call(address: SocketAddr, verb: &control::Verb, field: &str, value: &Value) -> Answer {
    match verb.method {
        control::Method::Get => {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let is_search = verb.name == "find_znodes";
            let text = if is_search { "&containing=x" } else { "" };
            get(address, &format!("{}?{field}={value}{text}", verb.name))
        }
        control::Method::Post => post(address, verb.name, &json!({field: value})),
    }
}

#[test]
fn every_verb_that_matches_nothing_fails() {
    let scene = scene(|_| {});
    let address = scene.address();
    let no_match = [
        ("session", "0x1"),
        ("address", "127.0.0.1:1"),
        ("identity", "digest:nobody"),
        ("owner", "/nobodys"),
    ];
    for verb in control::verbs() {
        let takes = |name: &str| verb.parameters.iter().any(|given| given.name == name);
        let about = about(verb);
        assert_eq!(
            takes("allow_none"),
            about == About::Sessions,
            "{}",
            verb.name
        );
        match about {
            About::Nothing => {}
            About::Thing(field, value) => {
                let answer = call(address, verb, field, &value);
                assert!([404, 409].contains(&answer.status), "{}", verb.name);
                let words = value.as_str().unwrap_or("999");
                let sentence = said(&answer, answer.status);
                assert!(sentence.contains(words), "{}: {sentence}", verb.name);
            }
            About::Sessions => {
                for (field, value) in no_match {
                    let answer = post(address, verb.name, &json!({field: value}));
                    let sentence = said(&answer, 404);
                    let is_whole = sentence.starts_with(&format!("{}: no ", verb.name))
                        && sentence.contains("there is 1 session: 0x")
                        && sentence.ends_with("set allow_none to permit that");
                    assert!(is_whole, "{sentence}");
                    let allowed = json!({field: value, "allow_none": true});
                    let answer = done(post(address, verb.name, &allowed));
                    assert_eq!(answer, json!({"count": 0}), "{}", verb.name);
                }
            }
        }
    }
    scene.end();
}

/// A session without a connection cannot be disconnected, and one that is not silenced cannot be
/// unsilenced.
#[test]
fn verb_without_effect_fails() {
    let scene = Scene::new();
    let (mut client, session) = scene.open_session();
    let id = session.session_id;
    let heard = scene.server.unsilence(id).unwrap_err().to_string();
    let start = format!("unsilence: no silenced session matches session {id}; there are 2");
    assert!(heard.starts_with(&start), "{heard}");
    assert_eq!(scene.server.silence(id), Ok(1));
    assert_eq!(scene.server.unsilence(id), Ok(1));
    assert_eq!(scene.server.disconnect(id), Ok(1));
    client.expect_closed();
    scene.wait_alone();
    let gone = scene.server.disconnect(id).unwrap_err().to_string();
    let start = format!("disconnect: no connected session matches session {id};");
    assert!(gone.starts_with(&start), "{gone}");
    assert!(gone.contains("without a connection"), "{gone}");
    assert_eq!(scene.server.expire(id), Ok(1));
    scene.end();
}

#[test]
fn invalid_path_is_refused_by_every_verb_with_a_path() {
    let scene = scene(|_| {});
    let mut seen = 0;
    for verb in control::verbs() {
        let mut paths = verb.parameters.iter();
        let Some(field) = paths.find(|given| matches!(given.kind, control::ParameterKind::Path))
        else {
            continue;
        };
        seen += 1;
        for path in ["/q/", "q", "//", "/a/../b", ""] {
            let answer = call(scene.address(), verb, field.name, &json!(path));
            let sentence = said(&answer, 400);
            let start = format!("parameter {}: path {path:?}: ", field.name);
            assert!(sentence.starts_with(&start), "{}: {sentence}", verb.name);
        }
    }
    assert!(seen >= 5, "{seen} verbs take a path");
    let wait = scene
        .server
        .until_children("/q/", 0, Duration::from_secs(10));
    assert!(wait.unwrap_err().seen.contains("slash"));
}

#[test]
fn unknown_name_is_answered_with_the_known_ones() {
    let scene = scene(|_| {});
    let inject = |fault: Value| said(&post(scene.address(), "inject", &fault), 400).to_owned();
    let error = inject(json!({"action": "error", "error": "NO_NODE"}));
    for code in ErrorCode::ALL {
        assert!(error.contains(code.name()), "{error}");
    }
    let op = inject(json!({"action": "cut", "op": "getdata"}));
    for code in OpCode::ALL {
        assert!(op.contains(code.name()), "{op}");
    }
    let action = inject(json!({"action": "drop"}));
    for name in minikeeper::FaultAction::NAMES {
        assert!(action.contains(name), "{action}");
    }
    let path = inject(json!({"action": "cut", "path": "/q/"}));
    assert!(
        path.contains("write /q for the znode and /q/* for its children"),
        "{path}"
    );
}

#[test]
fn verb_of_the_whole_server_is_refused_for_a_universe() {
    let scene = scene(|_| {});
    let address = scene.address();
    done(post(address, "create_universe", &json!({"name": "mine"})));
    for verb in ["go_down", "come_up", "restart", "save", "drop_universe"] {
        let answer = post(address, &format!("universes/mine/{verb}"), &json!({}));
        let sentence = said(&answer, 400);
        let start = format!("{verb} applies to the whole server, not to universe \"mine\" alone; ");
        assert!(sentence.starts_with(&start), "{sentence}");
        assert!(sentence.ends_with(&format!("at /v1/{verb}")), "{sentence}");
    }
}

#[test]
fn removing_a_fault_that_never_acted_fails() {
    let scene = scene(|_| {});
    let address = scene.address();
    let never = || Fault::cut().on(OpCode::Delete).at("/never");
    let guard = scene.server.inject(never()).unwrap();
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(guard)));
    let panic = dropped.unwrap_err();
    let panic = panic.downcast_ref::<String>().unwrap();
    assert!(
        panic.starts_with("fault 1 (cut, op delete, path \"/never\"): ended and never acted"),
        "{panic}"
    );
    assert!(scene.server.faults().is_empty());
    // Removed explicitly, and over HTTP.
    assert!(scene.server.inject(never()).unwrap().remove().is_err());
    let fault = json!({"action": "cut", "path": "/never"});
    let id = done(post(address, "inject", &fault));
    let sentence = said(&post(address, "remove_fault", &id), 409).to_owned();
    assert!(
        sentence.contains("never acted; messages that matched it: 0"),
        "{sentence}"
    );
    assert!(sentence.contains("inject it as optional"), "{sentence}");
    assert!(scene.server.faults().is_empty());
    // No error if the fault is optional or was removed already.
    drop(scene.server.inject(never().optional()).unwrap());
    let guard = scene.server.inject(never()).unwrap();
    scene.server.reset_faults();
    drop(guard);
    let guard = scene.server.inject(never()).unwrap();
    assert!(scene.server.remove_fault(guard.id()).is_err());
    drop(guard);
    let optional = json!({"action": "cut", "path": "/never", "optional": true});
    let id = done(post(address, "inject", &optional));
    assert_eq!(done(get(address, "faults"))["faults"][0]["optional"], true);
    assert_eq!(done(post(address, "remove_fault", &id)), json!({"hits": 0}));
    // No error if the fault has acted.
    let mut client = scene.open();
    let guard = scene.server.inject(never()).unwrap();
    client.send(&wire::delete("/never"));
    client.expect_closed();
    assert_eq!(guard.remove(), Ok(1));
    scene.end();
}

/// `until_sessions` waits for a number of sessions; its error reports the sessions that exist.
#[test]
fn until_sessions_waits_over_http_or_lists_the_sessions() {
    let scene = scene(|_| {});
    let address = scene.address();
    let _open = scene.open();
    let wait = json!({"count": 2});
    assert_eq!(done(post(address, "until_sessions", &wait)), json!({}));
    let late = json!({"count": 9, "within_ms": 1});
    let late = post(address, "until_sessions", &late);
    let sentence = said(&late, 408);
    let start = "9 sessions exist: not within 1ms; there are 2 sessions: 0x";
    assert!(sentence.starts_with(start), "{sentence}");
}

#[test]
fn fault_that_can_match_nothing_in_its_universe_is_refused() {
    let scene = Scene::new();
    let mine = scene.server.create_universe("mine").unwrap();
    let refused = mine.inject(Fault::refuse()).unwrap_err();
    assert!(matches!(refused, FaultError::Pointless { .. }), "{refused}");
    assert!(refused.to_string().contains("server's own universe"));
    let guard = scene.server.inject(Fault::refuse().once()).unwrap();
    Wire::connect(scene.address()).expect_reset();
    drop(guard);
    // The server and the universe still serve.
    let (mut client, _) = Wire::open(scene.address(), TIMEOUT_MS);
    client.must(&wire::create("/mine/a", b"", CreateMode::Persistent));
    scene.end();
}
