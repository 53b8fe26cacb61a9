//! Recordings of servers, and their replay.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use minikeeper::{
    Config, Keep, Recording, RecordingError, ReplayError, blocking::Server, replay, tree,
};
use minikeeper_core::replay::{
    ReplayClock, canonical::KnownDifferences, replay_against, version::Version,
};
use minikeeper_protocol::{CreateMode, ErrorCode, OpCode, Request};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{TIMEOUT_MS, resume, scratch_dir, wait_until};

const BYTES_MAX: usize = 16 << 20;

fn recorded() -> Server {
    let server = Server::builder().start().expect("a free port");
    server.start_recording(BYTES_MAX).unwrap();
    server
}

#[track_caller]
fn replays(server: &Server) -> Recording {
    let recording = server.stop_recording().unwrap();
    let again = Recording::from_bytes(recording.to_bytes()).unwrap();
    assert_eq!(again, recording);
    if let Err(error) = replay(&again) {
        panic!("{error}");
    }
    recording
}

#[test]
fn clients_time_and_restarts_replay_equally() {
    let server = recorded();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let auth = Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(b"bob:secret".as_slice().into()),
    };
    client.must(&auth);
    client.must(&wire::create("/a", b"1", CreateMode::Persistent));
    client.must(&wire::create("/a/e", b"", CreateMode::Ephemeral));
    client.must(&wire::get("/a/e", true));
    let (mut other, expiring) = Wire::open(server.addr(), TIMEOUT_MS);
    other.must(&wire::create("/a/x", b"", CreateMode::EphemeralSequential));
    server.advance(Duration::from_secs(3_600));
    server.freeze();
    server.expire(expiring.session_id).unwrap();
    other.expect_closed();
    server.unfreeze();
    for keep in [Keep::Everything, Keep::Data, Keep::Nothing] {
        server.restart(keep).unwrap();
        drop(resume(&server, &session));
        let (mut fresh, _) = Wire::open(server.addr(), TIMEOUT_MS);
        fresh.call(&wire::get("/a", true));
    }
    server.advance_strictly(Duration::from_secs(60));
    replays(&server);
}

#[test]
fn changes_of_the_administrator_and_snapshots_replay_equally() {
    let server = recorded();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    server.seed(&tree! { "/a/b" => "x", "/c" => null }).unwrap();
    client.must(&wire::get("/a/b", true));
    let before = server.snapshot();
    server.set("/a/b", "y", None).unwrap();
    server.delete_recursively("/a", None).unwrap();
    let (mut new, _) = Wire::open(server.addr(), TIMEOUT_MS);
    server.restore(&before).unwrap();
    new.expect_closed();
    client.event();
    client.must(&wire::get("/a/b", false));
    drop(before);
    server.create("/d", "").unwrap();
    replays(&server);
}

#[test]
fn recording_begins_with_what_is_there() {
    let server = Server::builder().manual_clock().start().unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/e", b"data", CreateMode::Ephemeral));
    client.must(&wire::create("/c", b"", CreateMode::Container));
    let old = server.snapshot();
    server.start_recording(BYTES_MAX).unwrap();
    // The client connects again, as after a restart.
    client.expect_closed();
    let (mut client, again) = resume(&server, &session);
    assert_eq!(again.session_id, session.session_id);
    client.must(&wire::get("/e", false));
    server.advance_strictly(Duration::from_secs(600));
    let refused = server.start_recording(BYTES_MAX);
    assert_eq!(refused, Err(RecordingError::Running));
    replays(&server);
    assert_eq!(server.stop_recording(), Err(RecordingError::NotRunning));
    drop(old);
}

#[test]
fn universe_and_its_clients_replay_equally() {
    let server = Server::builder().start().unwrap();
    let universe = server.create_universe("test").unwrap();
    universe.start_recording(BYTES_MAX).unwrap();
    server.start_recording(BYTES_MAX).unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/test/a", b"1", CreateMode::Persistent));
    client.must(&wire::get("/test/a", true));
    client.send(&wire::set("/test/a", b"2"));
    client.event();
    client.answer(OpCode::SetData);
    assert_eq!(client.refused(&wire::get("/x", false)), ErrorCode::NoNode);
    let of_universe = universe.stop_recording().unwrap();
    assert!(replay(&of_universe).unwrap().requests >= 3);
    replays(&server);
}

#[test]
fn recording_ends_at_its_limit_and_what_it_has_replays() {
    let server = Server::builder().start().unwrap();
    server.start_recording(6_000).unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", &[7; 500], CreateMode::Persistent));
    for _ in 0..20 {
        client.must(&wire::get("/a", false));
    }
    let recording = replays(&server);
    let length = recording.to_bytes().len();
    assert!((4_000..=6_000).contains(&length), "{length}");
    let ended = recording.ended().unwrap();
    let text = "the limit of 6000 bytes is reached; raise it to record more";
    assert_eq!(ended, text);
}

/// The first record was dropped without a word, and what was left was no recording.
#[test]
fn limit_below_the_state_is_refused() {
    let server = Server::builder().start().unwrap();
    let error = server.start_recording(300).unwrap_err().to_string();
    assert!(error.starts_with("the state alone takes "), "{error}");
    assert!(
        error.ends_with("more than the limit of 300 bytes; raise the limit"),
        "{error}"
    );
    assert_eq!(server.stop_recording(), Err(RecordingError::NotRunning));
    server.start_recording(1 << 20).unwrap();
    let recording = server.stop_recording().unwrap();
    assert!(!recording.is_truncated() && recording.ended().is_none());
}

/// The refused recording had already detached each session from its connection, which stayed open: no
/// request of the client got a reply, and the session expired beside a socket that looked sound.
#[test]
fn refused_recording_changes_nothing() {
    let server = Server::builder().manual_clock().start().unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    client.must(&wire::get("/e", true));
    let before = server.dump();
    let refused = server.start_recording(300).unwrap_err();
    assert!(
        matches!(refused, RecordingError::Limit { bytes_max: 300, .. }),
        "{refused}"
    );
    assert_eq!(server.dump(), before);
    let sessions = server.sessions();
    assert!(sessions[0].id == session.session_id && sessions[0].is_connected);
    server.set("/e", "1", None).unwrap();
    client.event();
    client.must(&wire::get("/e", false));
    // What the refusal asks for is enough.
    let RecordingError::Limit { needed, .. } = refused else {
        unreachable!("checked above");
    };
    server.start_recording(needed + 100).unwrap();
    client.expect_closed();
    let (mut client, _) = resume(&server, &session);
    client.call(&wire::get("/e", false));
    replays(&server);
}

/// The file of a refused recording stayed, so that the next attempt failed because it existed.
#[test]
fn refused_recording_leaves_no_file() {
    let dir = scratch_dir("refused-recording");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("run.rec");
    let configured = |builder: minikeeper::blocking::BlockingBuilder| {
        builder.configure(|config| config.record = Some(file.clone()))
    };
    let limit = configured(Server::builder())
        .configure(|config| config.record_bytes = 300)
        .start()
        .unwrap_err();
    assert!(
        limit.to_string().starts_with("cannot record to "),
        "{limit}"
    );
    assert!(!file.exists());
    // Nor does one of a server that cannot start.
    let seed = configured(Server::builder())
        .seed(tree! { "/big" => "x".repeat(100_000) })
        .configure(|config| config.tree_bytes_max = 10_000)
        .start()
        .unwrap_err();
    assert_eq!(seed.to_string(), "cannot seed the tree");
    assert!(!file.exists());
    let server = configured(Server::builder()).start().unwrap();
    assert!(file.exists());
    let running = server.record_to(&file, 1 << 20).unwrap_err();
    assert_eq!(running.kind(), io::ErrorKind::AlreadyExists);
    let other = file.with_extension("other");
    server.record_to(&other, 1 << 20).unwrap_err();
    assert!(file.exists() && !other.exists());
}

#[test]
fn file_has_everything_and_one_that_is_cut_off_is_replayed_up_to_there() {
    let dir = scratch_dir("recording");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("run.rec");
    let server = Server::builder()
        .seed(tree! { "/seeded" => "x" })
        .configure(|config| config.record = Some(file.clone()))
        .start()
        .unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::get("/seeded", false));
    let whole = std::fs::read(&file).unwrap();
    let requests = replay(&Recording::from_bytes(whole.clone()).unwrap())
        .unwrap()
        .requests;
    assert_eq!(requests, 2);
    for length in 0..whole.len() {
        match Recording::from_bytes(whole[..length].to_vec()) {
            Ok(recording) => {
                assert!(recording.is_truncated(), "{length} bytes");
                let replayed = replay(&recording);
                assert!(replayed.is_ok(), "{length} bytes: {replayed:?}");
            }
            Err(RecordingError::NoRecording | RecordingError::Empty) => {}
            Err(error) => panic!("{length} bytes: {error}"),
        }
    }
    let taken = Server::builder()
        .configure(|config| config.record = Some(file.clone()))
        .start()
        .unwrap_err();
    assert!(
        taken.to_string().starts_with("cannot record to "),
        "{taken}"
    );
    drop(client);
    wait_until("the client is gone", || server.connections() == 0);
}

#[test]
fn difference_shows_what_was_given_expected_and_received() {
    let server = recorded();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", b"before", CreateMode::Persistent));
    client.must(&wire::get("/a", false));
    let mut bytes = replays(&server).to_bytes().to_vec();
    let last = bytes
        .windows(6)
        .rposition(|part| part == b"before")
        .unwrap();
    bytes[last..last + 6].copy_from_slice(b"behind");
    let error = replay(&Recording::from_bytes(bytes).unwrap()).unwrap_err();
    let ReplayError::Difference(difference) = error else {
        panic!("{error}");
    };
    assert!(difference.given.contains("getData /a"), "{difference}");
    assert!(difference.expected.contains("behind"), "{difference}");
    assert!(difference.received.contains("before"), "{difference}");
    assert!(difference.before.len() >= 3, "{difference}");
}

#[test]
fn other_bytes_and_versions_are_refused() {
    let refused = |bytes: &'static [u8]| Recording::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(refused(b""), "not a recording of minikeeper");
    assert_eq!(refused(b"something else"), "not a recording of minikeeper");
    assert_eq!(
        refused(b"mkrecrd\x02"),
        "a recording of version 2; this program reads version 1"
    );
    assert_eq!(
        refused(b"mkrecrd\x01"),
        "the recording ends within its first record"
    );
}

/// Listens in front of a server, as a ZooKeeper before 3.9.0 does: it says that version, and no event has a zxid.
/// Serves until the process ends.
fn older_server(server: SocketAddr, version: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || relay(client, server, version));
        }
    });
    address
}

fn relay(mut client: TcpStream, server: SocketAddr, version: &str) -> io::Result<()> {
    let mut first = [0; 4];
    client.read_exact(&mut first)?;
    if &first == b"srvr" {
        return writeln!(
            client,
            "Zookeeper version: {version}-1, built on 2022-02-25"
        );
    }
    let mut server = TcpStream::connect(server)?;
    server.write_all(&first)?;
    let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut requests, &mut to_server));
    loop {
        let mut length = [0; 4];
        server.read_exact(&mut length)?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        server.read_exact(&mut frame)?;
        if frame.starts_with(&(-1_i32).to_be_bytes()) {
            frame[4..12].fill(0xff);
        }
        client.write_all(&length)?;
        client.write_all(&frame)?;
    }
}

struct NoTime;

impl ReplayClock for NoTime {
    fn advance(&mut self, _: u64, _: bool) -> Result<(), String> {
        Ok(())
    }
}

/// A replay against ZooKeeper 3.8 failed at the first event, and the two lines that differ were the same.
#[test]
fn events_of_an_older_zookeeper_need_no_zxid_and_lines_that_differ_look_different() {
    let server = recorded();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.refused(&wire::exists("/a", true));
    client.send(&wire::create("/a", b"x", CreateMode::Persistent));
    client.event();
    let recording = server.stop_recording().unwrap();
    for (version, is_equal) in [("3.8.0", true), ("3.9.5", false)] {
        let other = Server::builder().start().unwrap();
        let older = older_server(other.addr(), version);
        let found = Version::of_server(older).unwrap();
        assert_eq!(found.to_string(), version);
        let known = KnownDifferences::of_version(found);
        assert_eq!(known.description().is_empty(), !is_equal);
        match replay_against(&recording, older, &mut NoTime, known) {
            Err(ReplayError::Difference(difference)) if !is_equal => {
                let (expected, received) = (&difference.expected, &difference.received);
                assert!(
                    expected.starts_with("event NodeCreated /a, zxid 0x"),
                    "{expected}"
                );
                assert_eq!(received, "event NodeCreated /a, zxid none");
            }
            outcome => assert!(outcome.is_ok() && is_equal, "{version}: {outcome:?}"),
        }
    }
}

/// Replies that an excused difference made look different hid the one that counts.
#[test]
fn difference_shows_no_zxid_or_session_that_differs_by_nature() {
    let server = recorded();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", b"x", CreateMode::Persistent));
    client.must(&wire::get("/a", false));
    let recording = server.stop_recording().unwrap();
    let settings = |config: &mut Config| config.session_timeout_max_ms = Some(9_000);
    let other = Server::builder().configure(settings).start().unwrap();
    let outcome = replay_against(
        &recording,
        other.addr(),
        &mut NoTime,
        KnownDifferences::default(),
    );
    let Err(ReplayError::Difference(difference)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(difference.expected, "session 0x1, timeout 10000 ms");
    assert_eq!(difference.received, "session 0x1, timeout 9000 ms");
}
