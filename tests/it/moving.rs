//! Exporting a server's state to a data directory, and importing it into another server:
//! `docs/zookeeper-protocol.md` section 22.

use std::fs;

use minikeeper::{DataDirError, ExportError, LoadError, StartError, blocking};
use minikeeper_protocol::{CreateMode, SessionId, Zxid};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{TIMEOUT_MS, scratch_dir};

fn builder() -> blocking::BlockingBuilder {
    blocking::Server::builder().manual_clock()
}

/// Returns the znode lines of a dump.
fn znodes(dump: &str) -> Vec<&str> {
    let lines = dump.lines();
    lines.filter(|line| line.starts_with("znode ")).collect()
}

#[test]
fn exported_directory_starts_another_server_with_the_same_state() {
    let dir = scratch_dir("moving/exported");
    let first = builder().start().unwrap();
    let (mut client, session) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/p", b"data", CreateMode::Persistent));
    client.must(&wire::create("/p/e", b"", CreateMode::Ephemeral));
    let zxid = first.export_data(&dir).unwrap();
    let refusal = first.export_data(&dir).unwrap_err();
    assert!(matches!(refusal, ExportError::NotEmpty { .. }), "{refusal}");
    // Starting from the directory does not change it.
    for _ in 0..2 {
        let second = builder().data_from(&dir).start().unwrap();
        assert_eq!(znodes(&second.dump_exact()), znodes(&first.dump_exact()));
        let mut client = Wire::connect(second.addr());
        let password = session.password.as_deref().unwrap();
        let resumed = client.resume(session.session_id, password, zxid, TIMEOUT_MS);
        assert_eq!(resumed, session);
        client.must(&wire::set("/p", b"changed"));
    }
    let names: Vec<_> = fs::read_dir(dir.join("version-2")).unwrap().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn running_server_continues_with_an_imported_state() {
    let dir = scratch_dir("moving/imported");
    let production = builder().start().unwrap();
    let (mut client, _) = Wire::open(production.addr(), TIMEOUT_MS);
    client.must(&wire::create(
        "/from_production",
        b"",
        CreateMode::Persistent,
    ));
    production.export_data(&dir).unwrap();

    let test = builder()
        .configure(|config| config.initial_zxid = Some(1_000))
        .start()
        .unwrap();
    // Frozen clocks give the same session ids; the first one is the id of production's session.
    let _ = Wire::open(test.addr(), TIMEOUT_MS);
    let (mut client, session) = Wire::open(test.addr(), TIMEOUT_MS);
    let created = client.call(&wire::create("/of_the_test", b"", CreateMode::Ephemeral));
    test.advance(std::time::Duration::from_secs(5));
    test.import_data(&dir).unwrap();
    client.expect_closed();
    test.check().unwrap();
    assert_eq!(znodes(&test.dump_exact()), znodes(&production.dump_exact()));
    // The imported sessions have their whole timeout left.
    assert_eq!(test.sessions().len(), 1);
    test.advance(std::time::Duration::from_secs(9));
    assert_eq!(test.sessions().len(), 1);
    let mut client = Wire::connect(test.addr());
    let password = session.password.as_deref().unwrap();
    let refused = client.resume(session.session_id, password, created.zxid, TIMEOUT_MS);
    assert_eq!(refused.session_id, SessionId::NONE);
    let (mut client, _) = Wire::open(test.addr(), TIMEOUT_MS);
    let next = client.call(&wire::create("/next", b"", CreateMode::Persistent));
    assert_eq!(next.zxid, Zxid(created.zxid.0 + 3));
}

#[test]
fn import_that_fails_changes_nothing() {
    let server = builder().start().unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    let error = server
        .import_data(scratch_dir("moving/absent"))
        .unwrap_err();
    assert!(matches!(error, DataDirError::Io { .. }), "{error}");
    client.must(&wire::get("/a", false));
}

#[test]
fn import_into_a_data_directory_that_is_not_empty_is_refused() {
    let (dir, data_dir) = (
        scratch_dir("moving/source"),
        scratch_dir("moving/lives_there"),
    );
    let first = builder().start().unwrap();
    let (mut client, _) = Wire::open(first.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", b"", CreateMode::Persistent));
    first.export_data(&dir).unwrap();
    let both = || builder().data_from(&dir).data_dir(&data_dir).start();
    both().unwrap().shutdown().unwrap();
    let error = both().unwrap_err();
    assert!(
        matches!(error, StartError::Load(LoadError::ImportToo { .. })),
        "{error}"
    );
    let alone = builder().data_dir(&data_dir).start().unwrap();
    assert!(alone.get("/a").is_some());
}
