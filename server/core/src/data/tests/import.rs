//! Which files are loaded: compressed snapshots, older ones, files in two directories.
//!
//! Source: `docs/zookeeper-protocol.md` section 22; ZooKeeper's `SnapStream` and
//! `FileSnap.deserialize`.

use std::{fs, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use minikeeper_engine::{Engine, Settings};
use minikeeper_protocol::{Zxid, jute};

use super::{
    dir::{Scratch, foreign, load},
    engine,
    logs::{create, log, txn},
};
use crate::data::{DataDirError, DataSource, copy};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Compresses as snappy-java's `SnappyOutputStream` does.
fn snappy(bytes: &[u8]) -> Vec<u8> {
    let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for block in bytes.chunks(100) {
        let block = snap::raw::Encoder::new().compress_vec(block).unwrap();
        out.extend(u32::try_from(block.len()).unwrap().to_be_bytes());
        out.extend(block);
    }
    out
}

#[test]
fn compressed_snapshots_are_read() {
    let saved = engine();
    for (name, bytes) in [
        ("snapshot.5.gz", gzip(&foreign(&saved))),
        ("snapshot.5.snappy", snappy(&foreign(&saved))),
        ("snapshot.5.snappy", snappy(&copy(&saved))),
    ] {
        let scratch = Scratch::new("compressed");
        scratch.put("snapshot.4", b"older");
        scratch.put(name, &bytes);
        assert_eq!(
            load(&mut scratch.open().unwrap()).dump(),
            saved.dump(),
            "{name}"
        );
        for length in [0, 5, bytes.len() / 2, bytes.len() - 1] {
            scratch.put(name, &bytes[..length]);
            let text = scratch.refusal();
            assert!(text.starts_with(&format!("\"{name}\" at byte ")), "{text}");
        }
    }
}

/// A snapshot of 2 MB made the server take 2 GB, and as many more as its author liked: no limit applied
/// to what it was decompressed to, until the znode was whole.
#[test]
fn small_file_that_decompresses_to_much_is_refused() {
    const MEMBERS: u32 = 300;
    let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
    zeros.write_all(&vec![0; 1 << 20]).unwrap();
    let zeros = zeros.finish().unwrap();
    let mut start = foreign(&engine())[..16].to_vec();
    // No sessions, no access lists, and the root with as much data as there is.
    for int in [0, 0, 0, i32::MAX] {
        jute::put_int(&mut start, int);
    }
    let mut bomb = gzip(&start);
    for _ in 0..MEMBERS {
        bomb.extend(&zeros);
    }
    assert!(bomb.len() < 500_000, "{}", bomb.len());
    let scratch = Scratch::new("bomb");
    scratch.put("snapshot.5.gz", &bomb);
    // The next older one would be taken for the newest state.
    scratch.put("snapshot.4", &copy(&engine()));
    let refused = DataSource::new(&scratch.0).read().unwrap_err();
    let DataDirError::Io { source, .. } = &refused else {
        panic!("{refused}");
    };
    let text = source.to_string();
    let limit = (256 << 20) + 100 * bomb.len();
    let wanted = format!("it decompresses to more than {limit} bytes, ");
    assert!(text.starts_with(&wanted), "{text}");
}

/// A ZooKeeper that is killed while it writes a snapshot leaves half of it, and complete logs.
#[test]
fn damaged_snapshot_is_skipped_if_the_logs_reach_as_far() {
    let fresh = foreign(&Engine::new(Settings::default()));
    let entries = [
        txn(1, 1, &create("/a", false, 1)),
        txn(2, 1, &create("/b", false, 2)),
    ];
    for (half, is_reached) in [("snapshot.2", true), ("snapshot.3", false)] {
        let scratch = Scratch::new("passed-over");
        scratch.put("snapshot.0", &fresh);
        scratch.put("log.1", &log(&entries));
        scratch.put(half, &fresh[..60]);
        if is_reached {
            let mut dir = scratch.open().unwrap();
            assert_eq!(load(&mut dir).zxid(), Zxid(2));
            // The damaged snapshot does not count as saved, so it is written again.
            assert_eq!(dir.saved(), Some(Zxid(0)));
        } else {
            let text = scratch.refusal();
            assert!(text.starts_with("\"snapshot.3\" at byte "), "{text}");
        }
    }
}

#[test]
fn import_reads_two_directories_and_writes_to_none() {
    let (data, logs) = (Scratch::new("data"), Scratch::new("data-logs"));
    data.put("snapshot.0", &foreign(&Engine::new(Settings::default())));
    logs.put("log.1", &log(&[txn(1, 1, &create("/a", false, 1))]));
    let before = (data.names(), logs.names());
    let load = |source: DataSource| {
        let engine = source.load(Settings::default()).unwrap();
        engine.children("/").unwrap().join(" ")
    };
    assert_eq!(load(DataSource::new(&data.0)), "zookeeper");
    let both = DataSource::new(&data.0).log_dir(&logs.0);
    assert_eq!(load(both), "zookeeper a");
    let folders = DataSource::new(data.0.join("version-2")).log_dir(logs.0.join("version-2"));
    assert_eq!(load(folders), "zookeeper a");
    assert_eq!((data.names(), logs.names()), before);
    assert!(!data.0.join("minikeeper.lock").exists());
}

#[test]
fn directory_without_data_is_refused() {
    let scratch = Scratch::new("no-data");
    let load = || DataSource::new(&scratch.0).load(Settings::default());
    let text = load().unwrap_err().to_string();
    assert!(text.starts_with("cannot list "), "{text}");
    fs::create_dir_all(scratch.0.join("version-2")).unwrap();
    let text = load().unwrap_err().to_string();
    assert!(
        text.ends_with("nor its version-2 has a snapshot or a transaction log"),
        "{text}"
    );
}
