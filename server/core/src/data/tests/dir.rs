//! Loading, saving and locking a data directory.

use std::{fs, io::Write as _, path::PathBuf};

use minikeeper_engine::{Engine, Settings};
use minikeeper_protocol::{Zxid, jute};

use super::engine;
use crate::data::{DataDir, DataDirError, SaveError, copy};

/// A temporary directory of a test, deleted on drop.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("minikeeper-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    pub(super) fn open(&self) -> Result<DataDir, DataDirError> {
        DataDir::open(&self.0)
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let folder = self.0.join("version-2");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }

    /// Returns the sorted names in `version-2`.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("version-2")).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Loads the directory, which must fail and change nothing. Returns the error text without the
    /// directory's path.
    #[track_caller]
    pub(super) fn refusal(&self) -> String {
        let before = self.names();
        let outcome = self
            .open()
            .and_then(|mut dir| dir.load(Settings::default(), false));
        let text = outcome.unwrap_err().to_string();
        assert_eq!(self.names(), before, "no file is added or removed");
        // Errors quote paths, with two backslashes for one on Windows.
        let folder = format!("{:?}", self.0.join("version-2"));
        let folder = folder.trim_matches('"');
        let text = text.replace(&format!("{folder}/"), "");
        text.replace(&format!("{folder}\\\\"), "")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn save(dir: &mut DataDir, engine: &Engine) {
    let copy = copy(engine);
    dir.save(engine.zxid(), |out| out.write_all(&copy)).unwrap();
}

pub(super) fn load(dir: &mut DataDir) -> Engine {
    dir.load(Settings::default(), false).unwrap()
}

/// Encodes a snapshot as ZooKeeper 3.5 writes it: without minikeeper's mark in the header, and without
/// the sections after the tree.
pub(super) fn foreign(engine: &Engine) -> Vec<u8> {
    let mut bytes = copy(engine);
    let sections = (20 + 13) + (8 + 13);
    bytes.truncate(bytes.len() - sections - 13);
    bytes[8..16].copy_from_slice(&[0xff; 8]);
    let adler = adler2::adler32_slice(&bytes);
    jute::put_long(&mut bytes, adler.into());
    jute::put_buffer(&mut bytes, Some(b"/"));
    bytes
}

#[test]
fn saved_state_is_loaded_with_its_zxid() {
    let scratch = Scratch::new("loaded");
    let mut dir = scratch.open().unwrap();
    assert_eq!(dir.saved(), None);
    let saved = engine();
    dir.begin(&saved).unwrap();
    save(&mut dir, &saved);
    dir.note_saved().unwrap();
    drop(dir);
    assert_eq!(scratch.names(), [format!("snapshot.{:x}", saved.zxid().0)]);
    let mut dir = scratch.open().unwrap();
    assert_eq!(load(&mut dir).dump(), saved.dump());
    assert_eq!(dir.saved(), Some(saved.zxid()));
}

#[test]
fn directory_in_use_is_refused_to_a_second_server() {
    let scratch = Scratch::new("locked");
    let first = scratch.open().unwrap();
    let text = scratch.refusal();
    assert!(
        text.ends_with("is held by another server; stop that server, or use another directory"),
        "{text}"
    );
    drop(first);
    scratch.open().unwrap();
}

/// `docs/zookeeper-protocol.md` section 14.7: a server rejects a client that has seen a higher zxid
/// than its own.
#[test]
fn zxid_after_killed_servers_is_above_all_they_can_have_used() {
    let scratch = Scratch::new("killed");
    let saved = engine();
    let above = |times: i64| Zxid(saved.zxid().0 + (times << 32));
    let mut dir = scratch.open().unwrap();
    dir.begin(&saved).unwrap();
    save(&mut dir, &saved);
    // Three servers are killed; the fourth saves.
    drop(dir);
    for times in 1..3 {
        let mut dir = scratch.open().unwrap();
        let loaded = load(&mut dir);
        assert_eq!(loaded.zxid(), above(times));
        assert_eq!(dir.zxid(), above(times));
        dir.begin(&loaded).unwrap();
    }
    let mut dir = scratch.open().unwrap();
    let fourth = load(&mut dir);
    assert_eq!(fourth.zxid(), above(3));
    dir.begin(&fourth).unwrap();
    save(&mut dir, &fourth);
    dir.note_saved().unwrap();
    drop(dir);
    assert_eq!(load(&mut scratch.open().unwrap()).zxid(), above(3));
}

#[test]
fn three_newest_snapshots_are_kept_and_all_of_zookeeper() {
    let scratch = Scratch::new("kept");
    scratch.put("snapshot.1", &foreign(&Engine::new(Settings::default())));
    scratch.put("snapshot.2", &foreign(&engine()));
    scratch.put("notes.txt", b"not a snapshot");
    let mut dir = scratch.open().unwrap();
    let mut engine = load(&mut dir);
    assert_eq!(engine.counts().znodes, 8);
    for zxid in [0x10, 0x20, 0x30, 0x40, 0x50] {
        engine.skip_to(Zxid(zxid));
        save(&mut dir, &engine);
    }
    assert_eq!(
        scratch.names(),
        [
            "notes.txt",
            "snapshot.1",
            "snapshot.2",
            "snapshot.30",
            "snapshot.40",
            "snapshot.50"
        ]
    );
}

#[test]
fn failed_save_leaves_the_previous_snapshot() {
    let scratch = Scratch::new("failed");
    let mut dir = scratch.open().unwrap();
    let saved = engine();
    save(&mut dir, &saved);
    let names = scratch.names();
    let error = dir
        .save(Zxid(99), |out| {
            out.write_all(b"half of it")?;
            Err(std::io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
    assert!(matches!(error, SaveError::Io { .. }));
    let text = error.to_string();
    assert!(text.contains("snapshot.63"), "{text}");
    assert!(text.ends_with("the previous save is untouched"), "{text}");
    assert_eq!(scratch.names(), names);
    assert_eq!(dir.saved(), Some(saved.zxid()));
    assert_eq!(load(&mut dir).dump(), saved.dump());
}

#[test]
fn unfinished_save_is_ignored() {
    let scratch = Scratch::new("unfinished");
    let mut dir = scratch.open().unwrap();
    let saved = engine();
    save(&mut dir, &saved);
    drop(dir);
    scratch.put("minikeeper.unfinished", b"half of it");
    let mut dir = scratch.open().unwrap();
    assert_eq!(load(&mut dir).dump(), saved.dump());
}

#[test]
fn damaged_snapshot_is_refused_by_name_and_offset() {
    let scratch = Scratch::new("damaged");
    scratch.put("snapshot.5", &copy(&engine()));
    let mut bytes = copy(&engine());
    bytes.truncate(100);
    scratch.put("snapshot.10", &bytes);
    assert_eq!(
        scratch.refusal(),
        "\"snapshot.10\" at byte 79: the file ends 47 bytes too early; restore the file, or lose the \
         changes that cannot be read (--trust-damaged-data, trust_damaged_data)"
    );
    fs::remove_file(scratch.0.join("version-2/snapshot.10")).unwrap();
    assert_eq!(load(&mut scratch.open().unwrap()).counts().znodes, 8);
}

#[test]
fn directory_that_cannot_be_created_is_refused() {
    let scratch = Scratch::new("file");
    fs::write(&scratch.0, b"a file").unwrap();
    let error = scratch.open().unwrap_err();
    assert!(error.to_string().starts_with("cannot create "), "{error}");
    fs::remove_file(&scratch.0).unwrap();
}
