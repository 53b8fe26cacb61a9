//! The data directory: what is loaded, what is refused, what is kept.

use std::{fs, io::Write as _, path::PathBuf};

use minikeeper_engine::{Engine, Settings};
use minikeeper_protocol::{Zxid, jute};

use super::engine;
use crate::data::{DataDir, DataDirError, SaveError, copy};

/// A directory of its own for a test, gone afterwards.
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

    /// The names in `version-2`.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("version-2")).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Why the directory is refused, its own path left out.
    #[track_caller]
    pub(super) fn refusal(&self) -> String {
        let before = self.names();
        let outcome = self
            .open()
            .and_then(|mut dir| dir.load(Settings::default(), false));
        let text = outcome.unwrap_err().to_string();
        assert_eq!(self.names(), before, "nothing is changed");
        text.replace(&format!("{}/version-2/", self.0.display()), "")
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

/// A snapshot as ZooKeeper writes it, without minikeeper's mark in the header.
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
fn saved_state_is_loaded_and_zxid_goes_on() {
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
fn directory_is_for_one_server_at_a_time() {
    let scratch = Scratch::new("locked");
    let first = scratch.open().unwrap();
    let text = scratch.refusal();
    assert!(
        text.ends_with("is held by another server; stop that one, or use another directory"),
        "{text}"
    );
    drop(first);
    scratch.open().unwrap();
}

/// `docs/zookeeper-protocol.md` section 14.7: a client that has seen more than the server knows is
/// turned away.
#[test]
fn zxid_after_killed_servers_is_above_all_they_can_have_used() {
    let scratch = Scratch::new("killed");
    let saved = engine();
    let above = |times: i64| Zxid(saved.zxid().0 + (times << 32));
    let mut dir = scratch.open().unwrap();
    dir.begin(&saved).unwrap();
    save(&mut dir, &saved);
    // Not stopped politely, three times; the third gets to save.
    drop(dir);
    for times in 1..3 {
        let mut dir = scratch.open().unwrap();
        let loaded = load(&mut dir);
        assert_eq!(loaded.zxid(), above(times));
        assert_eq!(dir.zxid(), above(times));
        dir.begin(&loaded).unwrap();
    }
    let mut dir = scratch.open().unwrap();
    let third = load(&mut dir);
    assert_eq!(third.zxid(), above(3));
    dir.begin(&third).unwrap();
    save(&mut dir, &third);
    dir.note_saved().unwrap();
    drop(dir);
    assert_eq!(load(&mut scratch.open().unwrap()).zxid(), above(3));
}

#[test]
fn three_newest_saves_are_kept_and_all_of_an_original() {
    let scratch = Scratch::new("kept");
    scratch.put("snapshot.1", &foreign(&Engine::new(Settings::default())));
    scratch.put("snapshot.2", &foreign(&engine()));
    scratch.put("notes.txt", b"mine");
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
fn failed_save_leaves_the_one_before_it() {
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
fn save_that_was_never_finished_is_not_looked_at() {
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
fn damaged_snapshot_is_refused_and_named() {
    let scratch = Scratch::new("damaged");
    scratch.put("snapshot.5", &copy(&engine()));
    let mut bytes = copy(&engine());
    bytes.truncate(100);
    scratch.put("snapshot.10", &bytes);
    assert_eq!(
        scratch.refusal(),
        "\"snapshot.10\" at byte 79: the file ends 47 bytes too early; put the file back as it was, \
         or go on with what can be read, without the changes that cannot (--trust-damaged-data, \
         trust_damaged_data)"
    );
    fs::remove_file(scratch.0.join("version-2/snapshot.10")).unwrap();
    assert_eq!(load(&mut scratch.open().unwrap()).counts().znodes, 8);
}

#[test]
fn directory_that_cannot_be_made_is_refused() {
    let scratch = Scratch::new("file");
    fs::write(&scratch.0, b"a file").unwrap();
    let error = scratch.open().unwrap_err();
    assert!(error.to_string().starts_with("cannot create "), "{error}");
    fs::remove_file(&scratch.0).unwrap();
}
