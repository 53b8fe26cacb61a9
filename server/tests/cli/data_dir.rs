//! The state that the program keeps between runs. Source: `docs/zookeeper-protocol.md` section 14.7.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::SocketAddr,
    path::PathBuf,
    thread,
    time::Duration,
};

use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, Reader, Reply, ReplyHeader, Request, Xid,
    Zxid,
};
use rustix::process::Signal;

use crate::program::{PATIENCE, Running, connect, frame, hello, open, run, text};

fn scratch_dir(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

#[track_caller]
fn start(dir: &str, more: &[&str]) -> Running {
    Running::start(&[&["--port", "0", "--data-dir", dir], more].concat())
}

/// Reconnects to a session, as a client does automatically.
#[track_caller]
fn resume(
    address: SocketAddr,
    session: &ConnectResponse,
    last_zxid_seen: Zxid,
) -> (std::net::TcpStream, ConnectResponse) {
    let mut stream = connect(address);
    let response = hello(
        &mut stream,
        &ConnectRequest {
            session_id: session.session_id,
            password: session.password.clone(),
            last_zxid_seen,
            ..ConnectRequest::new(10_000)
        },
    );
    (stream, response)
}

#[track_caller]
fn ask(stream: &mut std::net::TcpStream, request: &Request) -> (ReplyHeader, Reply) {
    let mut out = Vec::new();
    request.encode(Xid(1), &mut out);
    stream.write_all(&out).unwrap();
    let frame = frame(stream);
    let mut reader = Reader::new(&frame);
    let header = ReplyHeader::decode(&mut reader).unwrap();
    assert_eq!(header.error, None);
    let reply = Reply::decode(request.op(), &mut reader).unwrap();
    (header, reply)
}

fn sequential() -> Request {
    Request::Create(Create::new("/n-", b"x", CreateMode::PersistentSequential))
}

fn created(reply: &Reply) -> String {
    match reply {
        Reply::PathStat(path, _) => path.to_string(),
        other => panic!("{other:?} to a create"),
    }
}

/// Waits until a directory has a snapshot of this change or a later one.
fn wait_for_save(dir: &str, zxid: Zxid) {
    for _ in 0..PATIENCE.as_millis() {
        let names = fs::read_dir(format!("{dir}/version-2")).unwrap();
        let is_saved = names.into_iter().any(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let saved = name.strip_prefix("snapshot.");
            saved.is_some_and(|hex| i64::from_str_radix(hex, 16).unwrap() >= zxid.0)
        });
        if is_saved {
            return;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    panic!("no save within {PATIENCE:?}");
}

#[test]
fn termination_and_interrupt_save_and_the_next_run_continues() {
    let dir = scratch_dir("saved_at_the_end");
    let dir = dir.to_str().unwrap();
    let server = start(dir, &[]);
    let (mut client, session, _) = open(server.address());
    let (header, reply) = ask(&mut client, &sequential());
    assert_eq!(created(&reply), "/n-0000000001");
    let mut zxid = header.zxid;
    let mut server = Some(server);
    for (signal, path) in [
        (Signal::TERM, "/n-0000000002"),
        (Signal::INT, "/n-0000000003"),
    ] {
        let running = server.take().unwrap();
        running.signal(signal);
        let (status, _, err) = running.end();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""), "{signal:?}");
        let running = start(dir, &[]);
        let (mut client, response) = resume(running.address(), &session, zxid);
        assert_eq!(response.session_id, session.session_id, "{signal:?}");
        let request = Request::GetEphemerals {
            prefix: Some("/".into()),
        };
        let (_, reply) = ask(&mut client, &request);
        assert_eq!(reply, Reply::Ephemerals(vec!["/e".into()]), "{signal:?}");
        let (header, reply) = ask(&mut client, &sequential());
        assert_eq!(created(&reply), path, "{signal:?}");
        // The restart has used no zxid.
        assert_eq!(header.zxid.0, zxid.0 + 1, "{signal:?}");
        zxid = header.zxid;
        server = Some(running);
    }
}

/// A killed process keeps the last save. Later changes are lost, but clients that have seen them are
/// served.
#[test]
fn killed_process_keeps_the_last_save() {
    let dir = scratch_dir("killed");
    let dir = dir.to_str().unwrap();
    let server = start(dir, &["--save-interval", "5"]);
    let (mut client, session, _) = open(server.address());
    let (header, _) = ask(&mut client, &sequential());
    wait_for_save(dir, header.zxid);
    server.signal(Signal::KILL);
    assert_eq!(server.end().0.code(), None);

    // Without the option, this server never saves before it is killed.
    let server = start(dir, &[]);
    let (mut client, response) = resume(server.address(), &session, header.zxid);
    assert_eq!(response.session_id, session.session_id);
    let (lost, reply) = ask(&mut client, &sequential());
    assert_eq!(created(&reply), "/n-0000000002");
    assert!(lost.zxid > header.zxid);
    server.signal(Signal::KILL);
    assert_eq!(server.end().0.code(), None);

    let server = start(dir, &[]);
    let (mut client, response) = resume(server.address(), &session, lost.zxid);
    assert_eq!(response.session_id, session.session_id);
    let (again, reply) = ask(&mut client, &sequential());
    assert_eq!(created(&reply), "/n-0000000002");
    assert!(again.zxid > lost.zxid);
}

/// A process that logs its changes and is killed while a client writes keeps every acknowledged change,
/// run after run. It may also keep the change that was in progress.
#[test]
fn killed_process_with_a_log_keeps_acknowledged_changes() {
    let dir = scratch_dir("killed_with_a_log");
    let dir = dir.to_str().unwrap();
    let mut answered = 0;
    for (what, wanted) in [("write", 50), ("sync", 70), ("write", 120)] {
        let server = start(dir, &["--txn-log", what, "--snap-count", "20"]);
        let mut client = connect(server.address());
        hello(&mut client, &ConnectRequest::new(10_000));
        let children = Request::GetChildren {
            path: Some("/".into()),
            watch: false,
        };
        let (_, reply) = ask(&mut client, &children);
        let Reply::Children(names) = reply else {
            panic!("{reply:?} to getChildren");
        };
        let found = names
            .iter()
            .filter(|name| name.to_string().starts_with("n-"));
        let found = found.count();
        // One change may have been logged without an answer.
        assert!(
            (answered..=answered + 1).contains(&found),
            "{found} of {answered}"
        );
        let (sender, receiver) = std::sync::mpsc::sync_channel(1 << 16);
        let writer = thread::spawn(move || {
            let mut out = Vec::new();
            sequential().encode(Xid(1), &mut out);
            let mut answered = found;
            let mut head = [0; 4];
            while client.write_all(&out).is_ok() && client.read_exact(&mut head).is_ok() {
                let mut body = vec![0; u32::from_be_bytes(head) as usize];
                if client.read_exact(&mut body).is_err() {
                    break;
                }
                answered += 1;
                let _ = sender.send(answered);
            }
            answered
        });
        while receiver.recv().unwrap() < wanted {}
        server.signal(Signal::KILL);
        assert_eq!(server.end().0.code(), None);
        answered = writer.join().unwrap();
    }
    assert!(answered >= 120, "{answered}");
}

#[test]
fn second_process_on_a_directory_is_refused() {
    let dir = scratch_dir("second");
    let dir = dir.to_str().unwrap();
    let server = start(dir, &[]);
    let output = run(&["--port", "0", "--data-dir", dir]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    let complaint = text(&output.stderr);
    let expected = format!("minikeeper: cannot use data_dir {dir:?}: ");
    assert!(complaint.starts_with(&expected), "{complaint}");
    assert!(
        complaint.contains("is held by another server"),
        "{complaint}"
    );
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    // The first server is unaffected.
    let (_client, ..) = open(server.address());
    assert_eq!(server.terminate().0.code(), Some(0));
    assert_eq!(start(dir, &[]).terminate().0.code(), Some(0));
}

#[test]
fn damaged_snapshot_exits_with_1_and_stays_unchanged() {
    let dir = scratch_dir("damaged");
    let snapshot = dir.join("version-2/snapshot.5");
    fs::create_dir_all(snapshot.parent().unwrap()).unwrap();
    fs::write(&snapshot, b"ZKSN\0\0\0\x02").unwrap();
    let output = run(&["--port", "0", "--data-dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    let expected =
        format!("{snapshot:?} at byte 8: the file ends 8 bytes too early; restore the file");
    assert!(complaint.contains(&expected), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert_eq!(fs::read(&snapshot).unwrap(), b"ZKSN\0\0\0\x02");
}

/// A flipped bit in the end byte of an entry was taken for the end of the log: the server omitted the
/// later changes without an error.
#[test]
fn damaged_log_is_refused_unless_damage_is_trusted() {
    let dir = scratch_dir("damaged_log");
    let at = dir.to_str().unwrap();
    let server = start(at, &["--txn-log", "sync"]);
    let (mut client, ..) = open(server.address());
    for _ in 0..20 {
        ask(&mut client, &sequential());
    }
    server.signal(Signal::KILL);
    server.end();
    let folder = dir.join("version-2");
    let paths = fs::read_dir(&folder).unwrap();
    let mut paths = paths.map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("log.")
    };
    let log = paths.find(is_log).unwrap();
    let mut bytes = fs::read(&log).unwrap();
    // Finds the end byte of an entry after the middle: the next entry begins with the upper half of a
    // checksum, which is zero.
    let middle = bytes.len() / 2;
    let end = bytes[middle..]
        .windows(5)
        .position(|bytes| bytes == b"B\0\0\0\0");
    bytes[middle + end.unwrap()] ^= 0x40;
    fs::write(&log, &bytes).unwrap();
    let output = run(&["--port", "0", "--data-dir", at]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains(&format!("{log:?} at byte ")),
        "{complaint}"
    );
    assert!(complaint.contains("--trust-damaged-data"), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert_eq!(fs::read(&log).unwrap(), bytes);

    let server = start(at, &["--trust-damaged-data"]);
    let mut client = connect(server.address());
    hello(&mut client, &ConnectRequest::new(10_000));
    let children = Request::GetChildren {
        path: Some("/".into()),
        watch: false,
    };
    let (_, reply) = ask(&mut client, &children);
    let Reply::Children(names) = reply else {
        panic!("{reply:?} to getChildren");
    };
    let left = names
        .iter()
        .filter(|name| name.to_string().starts_with("n-"));
    assert!((5..20).contains(&left.count()), "{names:?}");
    let name = log.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        fs::read(folder.join(format!("unread.{name}"))).unwrap(),
        bytes
    );
    assert_eq!(server.terminate().0.code(), Some(0));
    assert_eq!(start(at, &[]).terminate().0.code(), Some(0));
}

/// The server wrote changes to a deleted file, and acknowledged them.
#[test]
fn deleted_log_stops_the_program() {
    let dir = scratch_dir("gone_log");
    let server = start(dir.to_str().unwrap(), &["--txn-log", "write"]);
    let (mut client, ..) = open(server.address());
    fs::remove_dir_all(&dir).unwrap();
    let mut out = Vec::new();
    sequential().encode(Xid(1), &mut out);
    let mut answered = 0;
    let mut head = [0; 4];
    while answered < 300 && client.write_all(&out).is_ok() && client.read_exact(&mut head).is_ok() {
        let mut body = vec![0; u32::from_be_bytes(head) as usize];
        if client.read_exact(&mut body).is_err() {
            break;
        }
        answered += 1;
    }
    assert!(answered <= 256, "{answered} changes were answered");
    let (status, _, err) = server.end();
    assert_eq!(status.code(), Some(1));
    assert!(err.contains("was deleted or replaced"), "{err}");
}

/// The files contain data, and digests of passwords.
#[cfg(unix)]
#[test]
fn files_are_private_to_the_server_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = scratch_dir("private");
    let at = dir.to_str().unwrap();
    let server = start(at, &["--txn-log", "write"]);
    let (mut client, ..) = open(server.address());
    ask(&mut client, &sequential());
    assert_eq!(server.terminate().0.code(), Some(0));
    let copy = dir.join("copy");
    let output = run(&["export", at, copy.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut folders = vec![dir];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder:?}");
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{path:?}");
            files += 1;
        }
    }
    assert!(files >= 4, "{files}");
}

/// The program opened a named pipe and waited forever.
#[cfg(unix)]
#[test]
fn every_option_for_a_file_refuses_pipes_devices_and_directories() {
    let dir = scratch_dir("irregular");
    let folder = dir.join("version-2");
    fs::create_dir_all(&folder).unwrap();
    let pipe = dir.join("pipe");
    for path in [&pipe, &folder.join("snapshot.5")] {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }
    let as_text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let (at, pipe) = (as_text(&dir), as_text(&pipe));
    let device = "/dev/zero".to_owned();
    for (path, what) in [
        (&pipe, "a named pipe, not a regular file"),
        (&device, "a device, not a regular file"),
        (&at, "a directory, not a regular file"),
    ] {
        for option in [
            "--config",
            "--seed",
            "--jaas-config",
            "--control-token-file",
        ] {
            // Of a directory, it reads the files.
            if option == "--seed" && path == &at {
                continue;
            }
            let output = run(&["--port", "0", option, path]);
            assert_eq!(output.status.code(), Some(2), "{option} {path}");
            let complaint = text(&output.stderr);
            assert!(complaint.contains(what), "{option} {path}: {complaint}");
        }
        #[cfg(feature = "tls")]
        for options in [
            ["--tls-cert", path, "--tls-key", &at],
            ["--tls-cert", &at, "--tls-key", path],
        ] {
            let output = run(&[&["--port", "0", "--secure-port", "0"], &options[..]].concat());
            assert_eq!(output.status.code(), Some(1), "{options:?}");
            let complaint = text(&output.stderr);
            assert!(
                complaint.contains("not a regular file"),
                "{options:?}: {complaint}"
            );
        }
    }
    for arguments in [
        vec!["--port", "0", "--data-dir", &at],
        vec!["--port", "0", "--import", &at],
        vec!["--port", "0", "--import", &pipe],
        vec!["--port", "0", "--import", &at, "--import-logs", &pipe],
        vec!["--port", "0", "--data-dir", &pipe],
        vec!["export", &at, &format!("{at}/copy")],
        vec!["export", &pipe, &format!("{at}/copy")],
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let complaint = text(&output.stderr);
        let faults = ["a named pipe", "cannot list", "cannot create"];
        let is_explained = faults.iter().any(|fault| complaint.contains(fault));
        assert!(is_explained, "{arguments:?}: {complaint}");
    }
}

/// After the lock file was deleted, a second server started in the directory of the first.
#[test]
fn second_process_is_refused_even_if_the_lock_file_was_deleted() {
    let dir = scratch_dir("second_without_file");
    let server = start(dir.to_str().unwrap(), &[]);
    fs::remove_file(dir.join("minikeeper.lock")).unwrap();
    let output = run(&["--port", "0", "--data-dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("is held by another server"),
        "{complaint}"
    );
    assert_eq!(server.terminate().0.code(), Some(0));
}

/// The directory was deleted, so the program cannot save when it stops.
#[test]
fn failed_final_save_exits_with_1_and_an_error() {
    let dir = scratch_dir("gone");
    let server = start(dir.to_str().unwrap(), &[]);
    let (_client, ..) = open(server.address());
    fs::remove_dir_all(&dir).unwrap();
    let (status, _, err) = server.terminate();
    assert_eq!(status.code(), Some(1));
    assert!(
        err.starts_with("minikeeper: cannot save the state to "),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// The server noticed the deletion only when it stopped, and its state was lost.
#[test]
fn deleted_directory_is_reported_while_the_server_runs() {
    let dir = scratch_dir("deleted");
    let mut server = start(dir.to_str().unwrap(), &[]);
    fs::remove_dir_all(&dir).unwrap();
    let complaint = server.error_line();
    assert!(complaint.contains("was deleted or replaced"), "{complaint}");
    // A new directory in its place may belong to a different server, so it is not used.
    fs::create_dir_all(dir.join("version-2")).unwrap();
    let (_client, ..) = open(server.address());
    let (status, _, err) = server.terminate();
    assert_eq!(status.code(), Some(1));
    assert!(err.contains("was deleted or replaced"), "{err}");
    assert_eq!(fs::read_dir(dir.join("version-2")).unwrap().count(), 0);
}

/// The first failure is reported at once, and the retries are not.
#[test]
fn failed_save_at_an_interval_is_reported_once() {
    let dir = scratch_dir("gone_early");
    let mut server = start(dir.to_str().unwrap(), &["--save-interval", "5"]);
    wait_for_save(dir.to_str().unwrap(), Zxid(0));
    fs::remove_dir_all(&dir).unwrap();
    let (_client, ..) = open(server.address());
    let complaint = server.error_line();
    assert!(
        complaint.starts_with("minikeeper: cannot save the state to "),
        "{complaint}"
    );
    assert!(
        complaint.contains("continues to serve, and tries again"),
        "{complaint}"
    );
    let (status, _, err) = server.terminate();
    assert_eq!(status.code(), Some(1));
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn save_interval_without_data_dir_is_wrong_usage() {
    let output = run(&["--port", "0", "--save-interval", "5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--data-dir"));
}

/// As in a container with a volume, where `MINIKEEPER_SEED_PATH` is always set.
#[test]
fn seed_does_not_undo_changes_at_a_restart_unless_always() {
    let dir = scratch_dir("seed_once");
    let seed = scratch_dir("seed_once_files");
    fs::create_dir_all(&seed).unwrap();
    fs::write(seed.join("tree.yaml"), "/config: default\n").unwrap();
    let (dir, seed) = (dir.to_str().unwrap(), seed.to_str().unwrap());
    let start = |more: &[&str]| {
        let args = [&["--port", "0", "--data-dir", dir][..], more].concat();
        Running::start_with(&args, &[("MINIKEEPER_SEED_PATH", seed)])
    };
    let ctl = |server: &Running, verb: &[&str]| {
        let address = server.address().to_string();
        let output = run(&[&["ctl", "--server", &address][..], verb].concat());
        assert!(output.status.success(), "{verb:?}: {output:?}");
        text(&output.stdout).to_owned()
    };
    let tree = |server: &Running| ctl(server, &["export-tree", "--format", "yaml"]);
    let mut first = start(&[]);
    assert_eq!(first.line_after("seeded: "), "1 created, 0 changed");
    ctl(&first, &["set", "/config", "changed"]);
    first.signal(Signal::TERM);
    first.end();
    let mut second = start(&[]);
    let said = second.line_after("not seeded: ");
    assert_eq!(
        said,
        "the data directory has a saved state; --seed-always applies --seed to it"
    );
    assert_eq!(tree(&second), "/config: \"changed\"\n");
    second.signal(Signal::TERM);
    second.end();
    let mut third = start(&["--seed-always"]);
    assert_eq!(third.line_after("seeded: "), "0 created, 1 changed");
    assert_eq!(tree(&third), "/config: \"default\"\n");
}
