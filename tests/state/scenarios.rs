//! Runs the scenario files on the engine.

use std::{fs, path::PathBuf};

use minikeeper_tests::scenario::{OnEngine, Script};

use crate::model;

/// Runs one file, each case on a new engine.
fn check_file(name: &str) -> Result<(), String> {
    let file = folder().join(format!("{name}.txt"));
    let text = fs::read_to_string(&file).map_err(|error| format!("{file:?}: {error}"))?;
    let script = Script::parse(&format!("{name}.txt"), &text).map_err(|fault| fault.to_string())?;
    script
        .run(|| OnEngine::new(model::settings()))
        .map_err(|fault| fault.to_string())
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name)),*];

        mod file {
            $(
                #[test]
                fn $name() {
                    let outcome = super::check_file(stringify!($name));
                    outcome.unwrap_or_else(|fault| panic!("{fault}"));
                }
            )*
        }
    };
}

files! {
    acl
    acl_enforced
    acl_events
    auth
    containers
    create
    delete
    empty_path_and_builtin
    exists
    expiry
    get_children
    get_data
    multi
    multi_read
    quotas
    reconfig_unknown_ops
    sequential
    sessions
    set_data
    set_watches
    sync_ping
    ttl
    watches_one_shot
    watches_persistent
    zxids
}

#[test]
fn every_file_is_run_and_every_case_names_its_source() {
    let mut found: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, FILES);
    for name in FILES {
        let text = fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with("case ") {
                let above = lines[..at]
                    .iter()
                    .rev()
                    .take_while(|line| line.starts_with('#'));
                let names_source = above.into_iter().any(|line| line.contains("section"));
                assert!(names_source, "{name}.txt:{}: no source: {line}", at + 1);
            }
        }
    }
}

#[test]
fn script_error_names_file_and_line() {
    for (text, message) in [
        (
            "connect a",
            "f.txt:1: line before the first case: connect a",
        ),
        (
            "case x\n\nfoo bar",
            "f.txt:3: unknown operation bar: foo bar",
        ),
        (
            "case x\na delete /x",
            "f.txt:2: delete needs a version: a delete /x",
        ),
        (
            "case x\na ping -> wrong=1",
            "f.txt:2: unknown field wrong: a ping -> wrong=1",
        ),
        (
            "case x\na ping -> maybe",
            "f.txt:2: invalid zxid maybe: a ping -> maybe",
        ),
        (
            "case x\na sync \"/x",
            "f.txt:2: missing closing quote: a sync \"/x",
        ),
        (
            "case x\nadvance 4s",
            "f.txt:2: a time looks like 4000ms: advance 4s",
        ),
        (
            "case x\na ping x",
            "f.txt:2: ping does not take x: a ping x",
        ),
        (
            "case x\na multi { sync /x }",
            "f.txt:2: sync is not allowed in a multi: a multi { sync /x }",
        ),
    ] {
        let fault = Script::parse("f.txt", text).unwrap_err();
        assert_eq!(fault.to_string(), message);
    }
}

#[test]
fn mismatch_names_file_line_expected_and_got() {
    for (text, parts) in [
        (
            "a create /x \"\" -> /y",
            ["f.txt:3: t", "expected ok", "/y", "got      ok"],
        ),
        (
            "a create /x \"\" -> NODEEXISTS",
            ["f.txt:3: t", "expected NODEEXISTS", "got", "/x"],
        ),
        ("a ping -> zxid+1", ["f.txt:3: t", "expected ok", "2", "1"]),
        (
            "a <- closed",
            ["f.txt:3: t", "expected closed", "got", "nothing"],
        ),
        ("a ping", ["f.txt", "at the end", "a received", "Xid(-2)"]),
    ] {
        let script = Script::parse("f.txt", &format!("case t\nconnect a\n{text}")).unwrap();
        let fault = script
            .run(|| OnEngine::new(model::settings()))
            .unwrap_err()
            .to_string();
        for part in parts {
            assert!(fault.contains(part), "{part} in {fault}");
        }
    }
}
