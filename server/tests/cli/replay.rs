//! `--record` and `minikeeper replay`.

use std::fs;

use minikeeper_protocol::ConnectRequest;

use crate::program::{Running, connect, hello, open, run, scratch_file, text};

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

/// A recording whose disk is full ended with a line in the log, which is off by default, and the exit
/// code was 0.
#[cfg(target_os = "linux")]
#[test]
fn recording_that_cannot_be_written_is_reported_and_fails() {
    let file = scratch_file("full.rec");
    let _ = fs::remove_file(&file);
    // The limit of the size of files has the effect of a full disk. Unit of ulimit: 512 bytes.
    let script = format!(
        "trap '' XFSZ; ulimit -f 4; exec {} --port 0 --record {}",
        env!("CARGO_BIN_EXE_minikeeper"),
        file.display()
    );
    let mut server = Running::spawn(
        std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    );
    for _ in 0..40 {
        hello(&mut connect(server.address()), &ConnectRequest::new(10_000));
    }
    let line = server.error_line();
    let wanted = "minikeeper: the recording has ended: it cannot be written: File too large (os error 27); \
                  continues to serve\n";
    assert_eq!(line, wanted);
    drop(open(server.address()));
    let (status, _, errors) = server.terminate();
    assert_eq!(status.code(), Some(1));
    assert!(errors.contains("the recording is not whole: "), "{errors}");
    let replayed = run(&["replay", file.to_str().unwrap()]);
    let shown = text(&replayed.stdout);
    assert!(
        shown.contains("breaks off: it is replayed up to there"),
        "{shown}"
    );
}
