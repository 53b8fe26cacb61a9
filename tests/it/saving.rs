//! Saving to a data directory, and starting the next server from it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 14.7 and 22.1.

use std::{fs, path::PathBuf, time::Duration};

use minikeeper::{
    Config, DataDirError, LoadError, SaveError, Server, StartError, TxnLog, Znode, assert_tree,
    blocking, tree,
};
use minikeeper_protocol::{ConnectResponse, CreateMode, Reply, Request, Zxid};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{TIMEOUT_MS, runtime_that_panics, scratch_dir, wait_until};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a server with a frozen clock on this directory.
fn start(dir: &PathBuf) -> blocking::Server {
    let builder = blocking::Server::builder().manual_clock().data_dir(dir);
    builder.start().unwrap()
}

/// Resumes a session of an earlier server.
#[track_caller]
fn resume(server: &Server, session: &ConnectResponse, seen: Zxid) -> (Wire, ConnectResponse) {
    let mut wire = Wire::connect(server.addr());
    let password = session.password.as_deref().expect("always sent");
    let response = wire.resume(session.session_id, password, seen, TIMEOUT_MS);
    (wire, response)
}

#[track_caller]
fn create_numbered(client: &mut Wire, path: &str) -> (String, Zxid) {
    let answer = client.call(&wire::create(path, b"", CreateMode::PersistentSequential));
    match answer.outcome {
        Ok(Reply::Path(Some(path))) => (path.to_string(), answer.zxid),
        other => panic!("{other:?} in reply to a create"),
    }
}

/// Returns the znode lines of a dump. Session lines have deadlines, which do not survive a restart.
fn znodes(dump: &str) -> Vec<&str> {
    dump.lines()
        .filter(|line| line.starts_with("znode "))
        .collect()
}

#[test]
fn next_server_continues_where_the_last_one_stopped() {
    let dir = scratch_dir("saving/goes_on");
    let first = start(&dir);
    let address = first.addr();
    let (mut client, session) = Wire::open(address, TIMEOUT_MS);
    client.must(&wire::create("/p", b"data", CreateMode::Persistent));
    client.must(&wire::set("/p", b"more"));
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    create_numbered(&mut client, "/p/n-");
    let (path, seen) = create_numbered(&mut client, "/p/n-");
    let zxid = client.call(&wire::delete(&path)).zxid;
    assert!(zxid > seen);
    let before = first.dump_exact();
    first.shutdown().unwrap();
    client.expect_closed();

    let builder = blocking::Server::builder().manual_clock().data_dir(&dir);
    let second = builder.listen(address).start().unwrap();
    assert_eq!(znodes(&second.dump_exact()), znodes(&before));
    second.check().unwrap();
    let (mut client, resumed) = resume(&second, &session, zxid);
    assert_eq!(resumed, session);
    let ephemerals = Request::GetEphemerals {
        prefix: Some("/".into()),
    };
    assert_eq!(
        client.must(&ephemerals),
        Reply::Ephemerals(vec!["/e".into()])
    );
    let (path, next) = create_numbered(&mut client, "/p/n-");
    assert_eq!(path, "/p/n-0000000002");
    assert_eq!(next.0, zxid.0 + 1);
    client.must(&Request::CloseSession);
    assert!(second.get("/e").is_none());
    second.shutdown().unwrap();
    let third = start(&dir);
    assert!(third.get("/e").is_none());
    assert!(third.sessions().is_empty());
}

/// After a start, every session has its whole timeout left, whatever was left before.
#[test]
fn restored_session_has_its_whole_timeout_left() {
    let dir = scratch_dir("saving/timeout");
    let mut server = start(&dir);
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    drop(client);
    for _ in 0..3 {
        server.advance(9 * SECOND);
        server.shutdown().unwrap();
        server = start(&dir);
    }
    server.advance(9 * SECOND);
    assert!(server.get("/e").is_some());
    // The session expires at most one tick of 3 s after its timeout.
    server.advance(4 * SECOND);
    assert!(server.get("/e").is_none());
    let (_client, response) = resume(&server, &session, Zxid(0));
    assert_eq!(response, ConnectResponse::refused(Some(false)));
    server.check().unwrap();
}

/// A session is identified only by its id and password. If two runs gave out the same ids, clients
/// of one could take over sessions of the other.
#[test]
fn session_ids_of_earlier_runs_are_not_reused() {
    let dir = scratch_dir("saving/ids");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let server = start(&dir);
        let (_open, open) = Wire::open(server.addr(), TIMEOUT_MS);
        let (mut closed, session) = Wire::open(server.addr(), TIMEOUT_MS);
        closed.must(&Request::CloseSession);
        ids.extend([open.session_id, session.session_id]);
        server.shutdown().unwrap();
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn dropped_server_keeps_what_was_saved_before() {
    let dir = scratch_dir("saving/dropped");
    let first = start(&dir);
    let (mut client, session) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/saved", b"", CreateMode::Persistent));
    first.save().unwrap();
    // Without a change, nothing is written.
    first.save().unwrap();
    let seen = client.call(&wire::create("/lost", b"", CreateMode::Persistent));
    drop(first);

    let second = start(&dir);
    assert!(second.get("/saved").is_some());
    assert!(second.get("/lost").is_none());
    // The client has seen a later zxid than was saved, and is still served.
    let (mut client, resumed) = resume(&second, &session, seen.zxid);
    assert_eq!(resumed, session);
    let next = client.call(&wire::create("/lost", b"", CreateMode::Persistent));
    assert!(next.zxid > seen.zxid);
}

/// After `stop` the state can still be inspected, and the directory is unlocked.
#[test]
fn stopped_server_unlocks_its_directory() {
    let dir = scratch_dir("saving/let_go");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let builder = Server::builder().data_dir(&dir);
    let mut first = runtime.block_on(builder.start()).unwrap();
    let (mut client, _) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/kept", b"", CreateMode::Persistent));
    let refused = blocking::Server::builder().data_dir(&dir).start();
    let error = refused.map(|_| ()).unwrap_err();
    assert!(
        matches!(
            &error,
            StartError::Load(LoadError::DataDir {
                source: DataDirError::Locked { .. },
                ..
            })
        ),
        "{error:?}"
    );
    runtime.block_on(first.stop()).unwrap();
    let second = start(&dir);
    assert!(second.get("/kept").is_some());
    assert!(first.get("/kept").is_some());
    // A second stop has no effect; above all it does not save over the next server's state.
    runtime.block_on(first.stop()).unwrap();
}

#[test]
fn save_interval_saves_while_serving() {
    let dir = scratch_dir("saving/interval");
    let config = Config {
        data_dir: Some(dir.clone()),
        save_interval: Duration::from_millis(1),
        ..Config::default()
    };
    let server = blocking::Server::start(config).unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let zxid = client
        .call(&wire::create("/saved", b"", CreateMode::Persistent))
        .zxid;
    let saved = dir.join(format!("version-2/snapshot.{:x}", zxid.0));
    wait_until("the change is saved", || saved.exists());
    drop(server);
    assert!(start(&dir).get("/saved").is_some());
}

/// A state with half a change must not replace a consistent one.
#[test]
fn broken_server_saves_nothing() {
    let dir = scratch_dir("saving/broken");
    let first = start(&dir);
    let (mut client, _) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/whole", b"", CreateMode::Persistent));
    first.shutdown().unwrap();

    let runtime = runtime_that_panics();
    let second = runtime.block_on(Server::builder().data_dir(&dir).start());
    let second = second.unwrap();
    let (mut client, _) = Wire::open(second.addr(), TIMEOUT_MS);
    client.must(&wire::create("/half", b"", CreateMode::Persistent));
    let path = Some("/panic".into());
    client.send(&Request::Sync { path });
    client.expect_closed();
    let saved = runtime.block_on(second.save());
    assert!(matches!(saved, Err(SaveError::Broken)));
    let saved = runtime.block_on(second.shutdown());
    assert!(matches!(saved, Err(SaveError::Broken)));

    let third = start(&dir);
    assert!(third.get("/whole").is_some());
    assert!(third.get("/half").is_none());
}

/// A save is the state of one moment, even while clients write. A client creates pairs of znodes,
/// each pair in one multi, while the server saves. Every save has only whole pairs, and all pairs
/// that were created before it began.
#[test]
fn save_while_clients_write_is_the_state_of_one_moment() {
    let dir = scratch_dir("saving/moment");
    let server = start(&dir);
    let address = server.addr();
    let (stop, stopped) = std::sync::mpsc::sync_channel::<()>(1);
    let writer = std::thread::spawn(move || {
        let (mut client, _) = Wire::open(address, TIMEOUT_MS);
        let mut pairs = 0;
        while stopped.try_recv().is_err() {
            let create = |name: &str| {
                let create = wire::create(&format!("/{name}{pairs}"), b"", CreateMode::Persistent);
                match create {
                    Request::Create(create) => minikeeper_protocol::MultiOp::Create(create),
                    other => panic!("{other:?} is no create"),
                }
            };
            client.must(&Request::Multi(vec![create("a"), create("b")]));
            pairs += 1;
        }
        pairs
    });
    for round in 0..10 {
        wait_until("more pairs are created", || {
            server.get(&format!("/b{}", round * 20)).is_some()
        });
        server.save().unwrap();
        let copy = scratch_dir("saving/moment_copy");
        let folder = copy.join("version-2");
        fs::create_dir_all(&folder).unwrap();
        let mut names: Vec<_> = fs::read_dir(dir.join("version-2"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        let newest = names.last().unwrap();
        fs::copy(dir.join("version-2").join(newest), folder.join(newest)).unwrap();
        let saved = start(&copy);
        saved.check().unwrap();
        let made = saved.children("/").unwrap();
        let count = |first: char| made.iter().filter(|name| name.starts_with(first)).count();
        assert_eq!(count('a'), count('b'));
        assert!(count('b') > round * 20);
    }
    stop.send(()).unwrap();
    assert!(writer.join().unwrap() > 180);
}

/// Connections that stay open must not keep a server from saving.
#[test]
fn stop_within_saves_despite_open_connections() {
    let dir = scratch_dir("saving/hangs_on");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let builder = Server::builder().data_dir(&dir);
    let mut server = runtime.block_on(builder.start()).unwrap();
    let mut local = server.local();
    let before = server.dump_exact();
    let stop = async {
        let stop = server.stop_within(Duration::ZERO);
        tokio::time::timeout(PATIENCE, stop).await
    };
    runtime
        .block_on(stop)
        .expect("the server stops within PATIENCE")
        .expect("the server saves");
    let write = tokio::io::AsyncWriteExt::write_all(&mut local, b"ruok");
    let _ = runtime.block_on(write);
    assert_eq!(server.dump_exact(), before);
    start(&dir);
}

#[test]
fn next_server_in_the_process_continues_without_a_file() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let start = |builder: minikeeper::Builder| runtime.block_on(builder.start()).unwrap();
    let first = start(Server::builder().manual_clock());
    let (mut client, session) = Wire::open(first.addr(), TIMEOUT_MS);
    let (mut lazy, other) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/p", b"data", CreateMode::Persistent));
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    lazy.must(&wire::create("/l", b"", CreateMode::Ephemeral));
    let (before, state) = (first.dump_exact(), first.state());
    drop(first);
    let second = start(Server::builder().manual_clock().state(state.clone()));
    assert_eq!(znodes(&second.dump_exact()), znodes(&before));
    let timeout = Duration::from_millis(TIMEOUT_MS.unsigned_abs().into());
    second.advance(timeout / 2);
    let (mut client, resumed) = resume(&second, &session, Zxid(0));
    assert_eq!(resumed.session_id, session.session_id);
    client.must(&wire::delete("/e"));
    let (_, fresh) = Wire::open(second.addr(), TIMEOUT_MS);
    assert!(![session.session_id, other.session_id].contains(&fresh.session_id));
    // Each session has exactly its whole timeout left.
    assert!(second.get("/l").is_some());
    second.advance(timeout / 2 + 4 * SECOND);
    assert!(second.get("/l").is_none());
    assert!(second.get("/p").is_some());
    second.check().unwrap();
    let with_state = || Server::builder().state(state.clone());
    let dir = scratch_dir("saving/both");
    for (both, wrong) in [
        (with_state().data_dir(&dir), "data_dir"),
        (with_state().data_from(dir.clone()), "data_from"),
    ] {
        match runtime.block_on(both.start()).map(drop) {
            Err(StartError::Load(LoadError::TwoStates { setting, .. })) => {
                assert_eq!(setting, wrong);
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }
}

/// A restored snapshot differs from the last saved state, so it is saved too.
#[test]
fn restored_snapshot_is_saved() {
    let dir = scratch_dir("saving/gone_back");
    let server = start(&dir);
    let before = server.snapshot();
    server.seed(&tree! { "/later" => "" }).unwrap();
    server.save().unwrap();
    server.restore(&before).unwrap();
    drop(before);
    server.shutdown().unwrap();
    assert_eq!(start(&dir).get("/later"), None);
}

/// A seed that was applied at each start undid what clients had changed.
#[test]
fn seed_is_applied_to_a_directory_without_a_saved_state_and_to_no_other() {
    let seed = || tree! { "/config" => "default", "/config/limit" => "10" };
    let logs = [TxnLog::Off, TxnLog::Write];
    for (round, txn_log) in logs.into_iter().enumerate() {
        let dir = scratch_dir(&format!("saving/seeded_{round}"));
        let start = |always| {
            let builder = blocking::Server::builder().manual_clock().data_dir(&dir);
            let builder = builder.seed(seed()).configure(|config| {
                config.txn_log = txn_log;
                config.seed_always = always;
            });
            builder.start().unwrap()
        };
        let of = |server: &Server| {
            server
                .seeded()
                .map(|seeded| (seeded.created, seeded.changed))
        };
        let first = start(false);
        assert_eq!(of(&first), Some((2, 0)));
        if txn_log == TxnLog::Off {
            first.shutdown().unwrap();
        } else {
            // Killed: what was seeded is saved before a client is served.
            drop(first);
        }
        let second = start(false);
        assert_eq!(of(&second), None);
        assert_tree!(second, seed());
        let (mut client, _) = Wire::open(second.addr(), TIMEOUT_MS);
        client.must(&wire::set("/config", b"changed"));
        client.must(&wire::delete("/config/limit"));
        second.shutdown().unwrap();

        let third = start(false);
        assert_eq!(of(&third), None);
        assert_tree!(third, { "/config" => "changed" });
        third.shutdown().unwrap();
        let fourth = start(true);
        assert_eq!(of(&fourth), Some((1, 1)));
        assert_tree!(fourth, seed());
    }
}

/// The directory was marked as that of a running server first, so the zxids of the next one skipped 2^32.
#[test]
fn seed_that_is_refused_writes_nothing() {
    let dir = scratch_dir("saving/refused_seed");
    let first = start(&dir);
    first.seed(&tree! { "/a" => "" }).unwrap();
    let zxid = first.state().zxid();
    first.shutdown().unwrap();
    let files = || {
        let list = |dir: &PathBuf| {
            let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
            files
                .filter(|file| file.is_file())
                .map(|file| (fs::read(&file).unwrap(), file))
        };
        let mut files: Vec<_> = list(&dir).chain(list(&dir.join("version-2"))).collect();
        files.sort();
        files
    };
    let before = files();
    let builder = blocking::Server::builder().manual_clock().data_dir(&dir);
    let refused = builder
        .seed(tree! { "/a" => Znode::from("").container() })
        .configure(|config| config.seed_always = true)
        .start();
    assert!(matches!(refused, Err(StartError::Seed(_))), "{refused:?}");
    assert!(files() == before, "the directory has changed");
    assert_eq!(start(&dir).state().zxid(), zxid);
}
