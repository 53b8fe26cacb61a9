//! `--record` and `minikeeper replay`.

use std::fs;

use crate::program::{Running, open, run, scratch_file, text};

#[test]
fn recording_of_the_program_replays_here_and_on_another_one() {
    let file = scratch_file("run.rec");
    let path = file.to_str().unwrap();
    let server = Running::start(&["--port", "0", "--record", path]);
    drop(open(server.address()));
    drop(server.terminate());
    let here = run(&["replay", path]);
    let shown = text(&here.stdout);
    assert!(here.status.success(), "{}", text(&here.stderr));
    assert!(shown.starts_with("equal: "), "{shown}");
    let other = Running::start(&["--port", "0"]);
    let address = other.address().to_string();
    let there = run(&["replay", path, "--against", &address]);
    assert!(there.status.success(), "{}", text(&there.stderr));
    assert_eq!(text(&there.stdout), shown);
}

#[test]
fn damaged_recordings_are_refused_or_replayed_as_far_as_they_go() {
    let file = scratch_file("damaged.rec");
    let path = file.to_str().unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let replayed = run(&["replay", path]);
        assert_eq!(replayed.status.code(), Some(1));
        text(&replayed.stderr)
    };
    assert!(refused(b"x").ends_with("not a recording of minikeeper\n"));
    let newer = refused(b"mkrecrd\x09");
    let wanted = "a recording of version 9; this program reads version 1\n";
    assert!(newer.ends_with(wanted), "{newer}");
}
