//! Export and import of data directories. Source: `docs/zookeeper-protocol.md` section 22.

use std::{fs, path::PathBuf};

use crate::program::{Running, connect, open, run, text};

fn scratch_dir(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// Returns the line of `srvr` that counts the znodes.
fn znodes(server: &Running) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = connect(server.address());
    stream.write_all(b"srvr").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let line = answer.lines().find(|line| line.starts_with("Node count"));
    line.expect("srvr counts them").to_owned()
}

#[test]
fn exported_directory_is_imported() {
    let (data, copy) = (scratch_dir("moving_data"), scratch_dir("moving_copy"));
    let (data, copy) = (data.to_str().unwrap(), copy.to_str().unwrap());
    let server = Running::start(&["--port", "0", "--data-dir", data]);
    let (_client, ..) = open(server.address());
    let expected = znodes(&server);
    assert_eq!(server.terminate().0.code(), Some(0));

    let output = run(&["export", data, copy]);
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    assert!(
        said.starts_with(&format!("{copy} has everything up to zxid 0x")),
        "{said}"
    );
    let server = Running::start(&["--port", "0", "--import", copy]);
    assert_eq!(znodes(&server), expected);
    assert_eq!(server.terminate().0.code(), Some(0));

    let output = run(&["export", data, copy]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("already exists; export to an empty directory"),
        "{complaint}"
    );
}

#[test]
fn failed_import_exits_with_1_and_the_reason() {
    let absent = scratch_dir("moving_absent");
    let output = run(&["--port", "0", "--import", absent.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    let expected = format!("minikeeper: cannot import {absent:?}: cannot list ");
    assert!(complaint.starts_with(&expected), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    let output = run(&["--port", "0", "--import-logs", "logs"]);
    assert_eq!(output.status.code(), Some(2));
}
