//! Transaction logs: what a server recovers after it ended without saving.
//!
//! Source: `docs/zookeeper-protocol.md` sections 22.1 and 22.3.

use std::{fs, path::Path};

use minikeeper::{Config, Keep, TxnLog, blocking, tree};
use minikeeper_protocol::{
    AclList, ConnectRequest, Create, CreateMode, CreateOp, MultiOp, Request, Zxid,
};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{TIMEOUT_MS, scratch_dir, wait_until};

/// Starts a server with a frozen clock that logs its changes in this directory.
fn start(dir: &Path) -> blocking::Server {
    start_with(dir, |_| {})
}

fn start_with(dir: &Path, configure: impl FnOnce(&mut Config)) -> blocking::Server {
    blocking::Server::builder()
        .manual_clock()
        .data_dir(dir)
        .configure(|config| {
            config.txn_log = TxnLog::Write;
            configure(config);
        })
        .start()
        .unwrap()
}

/// Returns the lines of a dump that survive a restart: znodes, and sessions without deadlines.
fn lasting(server: &blocking::Server) -> Vec<String> {
    let dump = server.dump_exact();
    let lasts = |line: &&str| line.starts_with("znode ") || line.starts_with("session ");
    let lines = dump.lines().filter(lasts);
    lines
        .map(|line| line.split(" timeout ").next().unwrap_or(line).to_owned())
        .collect()
}

fn zxid(dump: &str) -> Zxid {
    let hex = dump
        .lines()
        .next()
        .unwrap()
        .strip_prefix("zxid 0x")
        .unwrap();
    Zxid(i64::from_str_radix(hex, 16).unwrap())
}

fn files(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(dir.join("version-2")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

fn create(path: &str, mode: CreateMode) -> Request {
    wire::create(path, b"data", mode)
}

/// Every kind of change is recovered if it was answered, without a save.
#[test]
fn answered_changes_survive_a_crash() {
    let dir = scratch_dir("logging/everything");
    let server = start(&dir);
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut other, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&create("/a", CreateMode::Persistent));
    client.must(&create("/a/n-", CreateMode::PersistentSequential));
    client.must(&create("/a/e", CreateMode::Ephemeral));
    other.must(&create("/a/gone with its session", CreateMode::Ephemeral));
    client.must(&create("/deleted", CreateMode::Persistent));
    client.must(&wire::delete("/deleted"));
    client.must(&wire::set("/a", b"once more"));
    client.must(&Request::SetAcl {
        path: Some("/a".into()),
        acl: AclList::world_all(),
        version: -1,
    });
    for (op, path, ttl_ms) in [
        (CreateOp::Container, "/container", 0),
        (CreateOp::Ttl, "/ttl", 5_000),
    ] {
        let mode = if ttl_ms > 0 {
            CreateMode::PersistentWithTtl
        } else {
            CreateMode::Container
        };
        client.must(&Request::Create(Create {
            op,
            path: Some(path.into()),
            data: None,
            acl: AclList::world_all(),
            flags: mode.flags(),
            ttl_ms,
        }));
    }
    other.must(&Request::CloseSession);
    server.seed(&tree! { "/seeded" => "by a test" }).unwrap();
    let (before, seen) = (lasting(&server), zxid(&server.dump_exact()));
    drop(server);

    let server = start(&dir);
    assert_eq!(lasting(&server), before);
    assert!(
        zxid(&server.dump_exact()) > seen,
        "clients have seen the old zxid"
    );
    let mut again = Wire::connect(server.addr());
    let password = session.password.as_deref().unwrap();
    let response = again.resume(session.session_id, password, seen, TIMEOUT_MS);
    assert_eq!(response.session_id, session.session_id);
}

/// A successful multi is in the log whole, a failed one is not.
#[test]
fn multi_is_recovered_whole_or_not_at_all() {
    let dir = scratch_dir("logging/multi");
    let server = start(&dir);
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let creates = |paths: &[&str]| {
        let op = |path: &&str| match create(path, CreateMode::Persistent) {
            Request::Create(create) => MultiOp::Create(create),
            other => panic!("{other:?} is no create"),
        };
        Request::Multi(paths.iter().map(op).collect())
    };
    client.must(&creates(&["/a", "/a/b", "/a/c"]));
    client.call(&creates(&["/x", "/a"])).outcome.unwrap();
    let before = lasting(&server);
    drop(server);
    let server = start(&dir);
    assert_eq!(lasting(&server), before);
    assert_eq!(server.children("/a").unwrap(), ["b", "c"]);
    assert_eq!(server.get("/x"), None);
}

/// ZooKeeper does not start from a log in which a zxid is missing, so refused requests are logged
/// too. Source: ZooKeeper 3.9, ZKDatabase.addCommittedProposal.
#[test]
fn log_has_every_zxid_even_of_refused_requests() {
    let dir = scratch_dir("logging/numbers");
    let server = start(&dir);
    let first = zxid(&server.dump_exact()).0 + 1;
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&create("/a", CreateMode::Persistent));
    client.refused(&create("/a", CreateMode::Persistent));
    client.refused(&wire::delete("/b"));
    client.must(&create("/b", CreateMode::Persistent));
    client.refused(&create("/b", CreateMode::Persistent));
    let last = zxid(&server.dump_exact()).0;
    drop(server);
    let [log] = &files(&dir, "log.")[..] else {
        panic!("one log");
    };
    assert_eq!(*log, format!("log.{first:x}"));
    let bytes = fs::read(dir.join("version-2").join(log)).unwrap();
    let mut found = Vec::new();
    let mut rest = &bytes[16..];
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[8..12].try_into().unwrap()) as usize;
        found.push(i64::from_be_bytes(rest[24..32].try_into().unwrap()));
        rest = &rest[12 + length + 1..];
    }
    assert_eq!(found, (first..=last).collect::<Vec<_>>());
}

/// No client requests an expiry.
#[test]
fn expiry_is_recovered_from_the_log() {
    let dir = scratch_dir("logging/expiry");
    let server = start(&dir);
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&create("/e", CreateMode::Ephemeral));
    client.must(&create("/kept", CreateMode::Persistent));
    server.expire(session.session_id).unwrap();
    drop(server);
    let server = start(&dir);
    assert_eq!(server.get("/e"), None);
    assert!(server.get("/kept").is_some());
    assert!(server.sessions().is_empty());
}

/// Changes that no log entry can express are saved at once: restored snapshots, restarts, imports.
#[test]
fn changes_without_log_entries_are_saved_at_once() {
    let dir = scratch_dir("logging/anew");
    let server = start(&dir);
    server.seed(&tree! { "/before" => "" }).unwrap();
    let before = server.snapshot();
    server.seed(&tree! { "/later" => "" }).unwrap();
    server.restore(&before).unwrap();
    drop(before);
    server.seed(&tree! { "/behind it" => "" }).unwrap();
    drop(server);

    let server = start(&dir);
    assert_eq!(
        server.children("/").unwrap(),
        ["zookeeper", "before", "behind it"]
    );
    server.restart(Keep::Nothing).unwrap();
    server.seed(&tree! { "/fresh" => "" }).unwrap();
    drop(server);

    let server = start(&dir);
    assert_eq!(server.children("/").unwrap(), ["zookeeper", "fresh"]);
    let exported = scratch_dir("logging/exported");
    let other = blocking::Server::builder().start().unwrap();
    other.seed(&tree! { "/elsewhere" => "" }).unwrap();
    other.export_data(&exported).unwrap();
    server.import_data(&exported).unwrap();
    server.seed(&tree! { "/elsewhere/below" => "" }).unwrap();
    drop(server);
    let server = start(&dir);
    assert_eq!(server.children("/elsewhere").unwrap(), ["below"]);
    assert_eq!(server.get("/fresh"), None);
}

/// After `snap_count` changes the server saves its state and begins another log. It deletes the
/// logs that no kept snapshot needs.
#[test]
fn long_log_is_saved_and_old_ones_are_deleted() {
    let dir = scratch_dir("logging/long");
    let server = start_with(&dir, |config| config.snap_count = 10);
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    for round in 0..8 {
        let newest = files(&dir, "snapshot.");
        for number in 0..10 {
            client.must(&create(
                &format!("/n{round}-{number}"),
                CreateMode::Persistent,
            ));
        }
        wait_until("the state is saved", || files(&dir, "snapshot.") != newest);
    }
    // The last save may still be deleting old files.
    wait_until("old files are deleted", || {
        files(&dir, "snapshot.").len() == 3 && files(&dir, "log.").len() <= 4
    });
    let before = lasting(&server);
    drop(server);
    assert_eq!(lasting(&start(&dir)), before);
}

/// A server that is killed while it writes leaves an incomplete last entry, for which no client has
/// a reply. A missing entry that had a reply is detected.
#[test]
fn incomplete_log_end_is_ignored_unless_it_was_answered() {
    let dir = scratch_dir("logging/torn");
    let server = start(&dir);
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    for path in ["/first", "/second"] {
        client.must(&create(path, CreateMode::Persistent));
    }
    drop(server);
    let [log] = &files(&dir, "log.")[..] else {
        panic!("one log");
    };
    let log = dir.join("version-2").join(log);
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..whole.len() - 3]).unwrap();
    let refused = blocking::Server::builder().data_dir(&dir).start();
    let text = format!("{:?}", refused.unwrap_err());
    assert!(text.contains("Behind"), "{text}");
    // A checksum and a length of 80, but only 60 bytes.
    let torn = [&whole[..], &[0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 80], &[7; 60]].concat();
    fs::write(&log, torn).unwrap();
    let server = start(&dir);
    assert!(server.get("/first").is_some() && server.get("/second").is_some());
    server.seed(&tree! { "/third" => "" }).unwrap();
    drop(server);
    // That server began another log, which is cut after its header. A server that trusts damaged data
    // starts without the lost entries.
    let [.., log] = &files(&dir, "log.")[..] else {
        panic!("two logs");
    };
    let log = dir.join("version-2").join(log);
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..20]).unwrap();
    let trusting = start_with(&dir, |config| config.trust_damaged_data = true);
    let names = ["zookeeper", "first", "second"];
    assert_eq!(trusting.children("/").unwrap(), names);
}

/// If a change cannot be logged, neither the requesting client nor a watcher learns of it, and the
/// server stops: a log with a gap would be worthless.
#[test]
fn change_that_cannot_be_logged_is_seen_by_no_client() {
    let dir = scratch_dir("logging/full");
    let server = start(&dir);
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut watcher, _) = Wire::open(server.addr(), TIMEOUT_MS);
    watcher.refused(&wire::exists("/a", true));
    server.save().unwrap();
    // A directory has the name of the next log.
    let next = zxid(&server.dump_exact()).0 + 1;
    let log = dir.join(format!("version-2/log.{next:x}"));
    fs::create_dir(&log).unwrap();
    client.send(&create("/a", CreateMode::Persistent));
    client.expect_closed();
    watcher.expect_closed();
    drop(server);
    fs::remove_dir(log).unwrap();
    assert_eq!(start(&dir).get("/a"), None);
}

/// A change of the embedding test that cannot be logged is an error.
#[test]
fn seed_fails_if_it_cannot_be_logged() {
    let dir = scratch_dir("logging/full_for_a_test");
    let server = start(&dir);
    let next = zxid(&server.dump_exact()).0 + 1;
    fs::create_dir(dir.join(format!("version-2/log.{next:x}"))).unwrap();
    server.seed(&tree! { "/a" => "" }).unwrap_err();
}

/// Like a [`broken`](super::fail_stop) server, it reports why it stopped.
#[test]
fn stopped_server_reports_the_log_failure() {
    let dir = scratch_dir("logging/says_why");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let builder = minikeeper::Server::builder().manual_clock().data_dir(&dir);
    let builder = builder.configure(|config| config.txn_log = TxnLog::Sync);
    let server = runtime.block_on(builder.start()).unwrap();
    let log = format!("log.{:x}", zxid(&server.dump_exact()).0 + 1);
    fs::create_dir(dir.join("version-2").join(&log)).unwrap();
    let mut hello = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    Wire::connect(server.addr()).send_raw(&hello);
    let failure = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, server.closed()).await })
        .unwrap();
    let minikeeper::Failure::Log(error) = failure else {
        panic!("{failure:?}");
    };
    assert!(error.to_string().contains(&log), "{error}");
}

#[test]
fn txn_log_without_a_data_directory_is_refused() {
    let builder = blocking::Server::builder().configure(|config| config.txn_log = TxnLog::Write);
    let error = builder.start().unwrap_err();
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "txn_log is set without data_dir"
    );
}
