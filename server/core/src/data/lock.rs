//! Allows one server per data directory, and notes how far its files must reach.
//!
//! Locks the directory itself while the server runs, so that deleting a file does not let a second
//! server in. Also locks the lock file, for file systems that do not lock directories.
//!
//! The file has one line, the note, with a checksum of each of its parts:
//!
//! - How the last server ended. A killed server may have answered clients with zxids above its last
//!   save, and a server rejects a client that has seen a higher zxid than its own
//!   (`docs/zookeeper-protocol.md` section 14.7). So the next server continues above every zxid that
//!   the killed one can have reached.
//! - How far the snapshots and logs reach. A file that was removed, or truncated between two entries,
//!   leaves no damage: only the zxid shows that changes are missing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use minikeeper_protocol::Zxid;
use parking_lot::Mutex;

use crate::{
    data::{error::DataDirError, private_files},
    files,
};

/// The name of the file, beside ZooKeeper's `version-2`.
const NAME: &str = "minikeeper.lock";

/// The limit of the number of servers killed in a row that a note may claim. Bounds how far the zxid
/// skips.
const KILLED_MAX: u32 = 1 << 20;

const SAVED: &str = "saved";
const RUNNING: &str = "running";

/// How much of the lock file is read: more than a note has. Unit: bytes.
const NOTE_BYTES_MAX: u64 = 256;

/// A zxid that a note without one stands for.
const NO_ZXID: &str = "0000000000000000";

/// The offset of the two zxids in a note, where they are overwritten in place. Unit: bytes.
const ZXIDS_AT: u64 = 24;

/// The content of the note.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Note {
    /// How many servers in a row ended without a final save.
    killed: u32,
    /// Every change up to this one is on the disk.
    durable: Zxid,
    /// Every change up to this one was written to the system, which keeps it unless the machine loses
    /// power or crashes.
    written: Zxid,
    /// The machine's boot id at that time; empty if the system does not report it.
    boot: String,
    /// Whether the note is damaged, so that nothing says how far the files must reach.
    is_damaged: bool,
}

impl Note {
    /// Reads the note in a data directory; an empty note if there is none.
    pub(crate) fn read(dir: &Path) -> Result<Self, DataDirError> {
        let path = dir.join(NAME);
        let file = match files::open_regular(&path) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Self::default());
            }
            opened => opened.map_err(DataDirError::io("open", &path))?,
        };
        let mut text = Vec::new();
        file.take(NOTE_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(DataDirError::io("read", &path))?;
        Ok(Self::parse(&String::from_utf8_lossy(&text)))
    }

    /// Parses a note. Counts one more killed server if the note says that the last one was running, or
    /// if it is damaged.
    fn parse(text: &str) -> Self {
        // A server that was killed before it wrote anything leaves an empty file.
        if text.is_empty() {
            return Self::default();
        }
        Self::parse_whole(text).unwrap_or_else(|| Self {
            killed: 1,
            is_damaged: true,
            ..Self::default()
        })
    }

    /// Parses a note; `None` if it is not exactly what a server writes.
    fn parse_whole(text: &str) -> Option<Self> {
        let words: Vec<_> = text.strip_suffix('\n')?.split_whitespace().collect();
        let killed = |state: &str, before: &str| {
            let before = before.parse::<u32>().ok()?.min(KILLED_MAX);
            match state {
                SAVED => Some(0),
                RUNNING => Some(before + 1),
                _ => None,
            }
        };
        let zxid = |hex: &str| {
            let is_hex = hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
            let zxid = i64::from_str_radix(hex, 16).ok();
            zxid.filter(|_| is_hex).map(Zxid)
        };
        let note = |state, before, durable, written, boot: &str| {
            Some(Self {
                killed: killed(state, before)?,
                durable: zxid(durable)?,
                written: zxid(written)?,
                boot: boot.to_owned(),
                is_damaged: false,
            })
        };
        match words[..] {
            [SAVED] => Some(Self::default()),
            // As it was before it had zxids, and checksums.
            [state, before] => note(state, before, NO_ZXID, NO_ZXID, ""),
            [
                state,
                before,
                "durable",
                durable,
                "written",
                written,
                ref rest @ ..,
            ] => {
                let (boot, has_sums) = match *rest {
                    ["boot"] => ("", false),
                    ["boot", boot] => (boot, false),
                    ["sum", _, "boot", "sum", _] => ("", true),
                    ["sum", _, "boot", boot, "sum", _] => (boot, true),
                    _ => return None,
                };
                let note = note(state, before, durable, written, boot)?;
                // The checksums are those of the text: a number can be written in several ways.
                let found = Self {
                    killed: before.parse().ok()?,
                    ..note.clone()
                };
                (!has_sums || found.line(state) == text).then_some(note)
            }
            _ => None,
        }
    }

    /// Returns an error if the note is damaged.
    ///
    /// # Errors
    /// [`DataDirError::DamagedNote`].
    pub(crate) fn check(&self, dir: &Path) -> Result<(), DataDirError> {
        if self.is_damaged {
            let path = dir.join(NAME);
            return Err(DataDirError::DamagedNote { path });
        }
        Ok(())
    }

    /// Returns the zxid that the files must reach.
    pub(crate) fn reach(&self) -> Zxid {
        let boot = boot();
        let has_lost_power = !self.boot.is_empty() && !boot.is_empty() && self.boot != boot;
        if has_lost_power {
            self.durable
        } else {
            self.durable.max(self.written)
        }
    }

    fn line(&self, state: &str) -> String {
        let Self { killed, boot, .. } = self;
        let zxids = self.zxids();
        let sum = sum(&format!("{state} {killed} {boot}"));
        format!("{state:<7} {killed:07} durable {zxids} boot {boot} sum {sum}\n")
    }

    /// The zxids and their checksum, which are overwritten together.
    fn zxids(&self) -> String {
        let zxids = format!("{:016x} written {:016x}", self.durable.0, self.written.0);
        let sum = sum(&zxids);
        format!("{zxids} sum {sum}")
    }
}

/// Returns the checksum of a part of a note.
fn sum(part: &str) -> String {
    // Adler's sums of short texts are small numbers that look alike.
    let hash = part.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

/// Returns the machine's boot id; empty if the system does not report it.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// The lock of a data directory, held until dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    path: PathBuf,
    folder: PathBuf,
    /// The directory, locked.
    _dir: File,
    /// The identity of `folder` when the lock was taken.
    place: Option<private_files::Identity>,
    /// Kept open, so that no other directory gets its inode number.
    _folder: File,
    /// The note of the last server.
    found: Note,
    held: Mutex<NoteFile>,
}

/// The lock file and its content.
#[derive(Debug)]
struct NoteFile {
    /// `None` until there is something to note: opening a directory changes nothing in it.
    file: Option<File>,
    note: Note,
    state: &'static str,
}

impl DirectoryLock {
    /// Locks the directory; `folder` is its subdirectory with the files.
    pub(crate) fn take(dir: &Path, folder: &Path) -> Result<Self, DataDirError> {
        let opened = private_files::open_dir(dir).map_err(DataDirError::io("open", dir))?;
        // Not every file system locks directories, and Windows never does. If this one does not, locks
        // the lock file below at once, and not only when there is something to note.
        let locked = private_files::try_lock(&opened);
        if let Ok(false) = locked {
            let dir = dir.to_owned();
            return Err(DataDirError::Locked { dir });
        }
        let found = Note::read(dir)?;
        let lock = Self {
            path: dir.join(NAME),
            folder: folder.to_owned(),
            _dir: opened,
            place: private_files::Identity::of(folder).ok(),
            _folder: private_files::open_dir(folder).map_err(DataDirError::io("open", folder))?,
            held: Mutex::new(NoteFile {
                file: None,
                note: found.clone(),
                state: SAVED,
            }),
            found,
        };
        if locked.is_err() || lock.path.exists() {
            lock.hold(&mut lock.held.lock())?;
        }
        Ok(lock)
    }

    /// Opens and locks the file.
    fn hold(&self, held: &mut NoteFile) -> Result<(), DataDirError> {
        let path = &self.path;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let options = private_files::private(&mut options);
        let locked = private_files::open_locked(options, path);
        let Some(file) = locked.map_err(DataDirError::io("lock", path))? else {
            let dir = path.parent().unwrap_or(path).to_owned();
            return Err(DataDirError::Locked { dir });
        };
        held.file = Some(file);
        Ok(())
    }

    /// Returns how many servers in a row ended without a final save.
    pub(crate) const fn killed(&self) -> u32 {
        self.found.killed
    }

    /// Returns the note of the last server.
    pub(crate) const fn found(&self) -> &Note {
        &self.found
    }

    /// Notes that from here on clients may see changes that are not saved. The files have every change
    /// up to `reached`, and a snapshot of `saved`.
    pub(crate) fn note_running(&self, saved: Zxid, reached: Zxid) -> Result<(), DataDirError> {
        let mut held = self.held.lock();
        if held.file.is_none() {
            self.hold(&mut held)?;
        }
        held.note = Note {
            killed: self.found.killed,
            durable: self.found.durable.max(saved).min(reached),
            written: reached,
            boot: boot(),
            is_damaged: false,
        };
        held.state = RUNNING;
        held.write().map_err(DataDirError::io("write", &self.path))
    }

    /// Notes that a snapshot of this state is on the disk.
    pub(crate) fn note_snapshot(&self, zxid: Zxid) -> io::Result<()> {
        let mut held = self.held.lock();
        held.note.durable = held.note.durable.max(zxid);
        held.note.written = held.note.written.max(zxid);
        // Without a file nothing has been noted that the snapshot could contradict.
        if held.file.is_some() {
            held.write()?;
        }
        Ok(())
    }

    /// Notes that every change up to this one is in the log, and whether the log is on the disk.
    pub(crate) fn note_logged(&self, zxid: Zxid, is_durable: bool) -> io::Result<()> {
        let mut held = self.held.lock();
        held.note.written = zxid;
        if is_durable {
            held.note.durable = zxid;
        }
        let zxids = held.note.zxids();
        match &held.file {
            Some(file) => private_files::write_at(file, zxids.as_bytes(), ZXIDS_AT),
            None => Ok(()),
        }
    }

    /// Notes that everything is saved.
    pub(crate) fn note_saved(&self) -> io::Result<()> {
        let mut held = self.held.lock();
        held.state = SAVED;
        held.note.killed = 0;
        if held.file.is_some() {
            held.write()?;
        }
        Ok(())
    }

    /// Returns whether the folder is still the one that was locked. Creates the lock file again if it
    /// was deleted.
    pub(crate) fn is_in_place(&self) -> bool {
        let is_same = match (private_files::Identity::of(&self.folder), &self.place) {
            (Ok(now), Some(before)) => now == *before,
            (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
            (Ok(_), None) => true,
        };
        if !is_same {
            return false;
        }
        let mut held = self.held.lock();
        let Some(file) = &held.file else {
            return true;
        };
        if private_files::is_at(file, &self.path) {
            return true;
        }
        tracing::warn!(path = %self.path.display(), "the lock file was deleted; creates it again");
        let made = self.hold(&mut held).is_ok() && held.write().is_ok();
        if !made {
            tracing::warn!(path = %self.path.display(), "cannot create the lock file again");
        }
        true
    }
}

impl NoteFile {
    /// Overwrites the previous note, and truncates the file to the length of the new one.
    fn write(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let line = self.note.line(self.state);
        private_files::write_at(file, line.as_bytes(), 0)?;
        file.set_len(line.len() as u64)?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_without_a_final_save_count_as_killed() {
        for (text, expected) in [
            ("", 0),
            ("saved\n", 0),
            ("running 0\n", 1),
            ("running 7\n", 8),
            ("running 4000000000\n", KILLED_MAX + 1),
        ] {
            let note = Note::parse(text);
            assert_eq!(
                (note.killed, note.is_damaged),
                (expected, false),
                "{text:?}"
            );
        }
        for text in [
            "running 99999999999\n",
            "runn",
            "running 0",
            "something else\n",
            "\0\0\0\0",
        ] {
            let note = Note::parse(text);
            assert_eq!((note.killed, note.is_damaged), (1, true), "{text:?}");
        }
    }

    #[test]
    fn note_survives_its_text() {
        let note = Note {
            killed: 3,
            durable: Zxid(0x1a2b),
            written: Zxid(0x1a2c),
            boot: "an-id".to_owned(),
            is_damaged: false,
        };
        let line = note.line(RUNNING);
        let at = usize::try_from(ZXIDS_AT).unwrap();
        assert!(line[at..].starts_with(&note.zxids()), "{line}");
        let killed = Note {
            killed: 4,
            ..note.clone()
        };
        assert_eq!(Note::parse(&line), killed);
        assert_eq!(note.reach(), Zxid(0x1a2b), "the machine has rebooted since");
        let same = Note {
            boot: boot(),
            ..note
        };
        assert_eq!(same.reach(), Zxid(0x1a2c));
        assert_eq!(Note::parse(&same.line(SAVED)).killed, 0);
    }

    /// A note without checksums said that the files must reach a lower zxid, or none, when a byte of it was
    /// damaged; a truncated log beside it then lost changes in silence.
    #[test]
    fn no_damaged_byte_of_a_note_goes_unnoticed() {
        let note = Note {
            killed: 12,
            durable: Zxid(0x1_0000_0203),
            written: Zxid(0x1_0000_0a2c),
            boot: boot(),
            is_damaged: false,
        };
        for state in [SAVED, RUNNING] {
            let line = note.line(state);
            let whole = Note::parse(&line);
            assert!(!whole.is_damaged);
            let changed = |bytes: &[u8], what: &str| {
                let text = String::from_utf8_lossy(bytes);
                let damaged = Note::parse(&text);
                assert!(damaged.is_damaged, "{what}: {text:?}");
            };
            for at in 0..line.len() {
                let mut bytes = line.clone().into_bytes();
                for value in 0..=u8::MAX {
                    if value != line.as_bytes()[at] {
                        bytes[at] = value;
                        changed(&bytes, "changed byte");
                    }
                }
                let bytes = line.as_bytes();
                changed(&[&bytes[..at], &bytes[at + 1..]].concat(), "missing byte");
                changed(&[&bytes[..=at], &bytes[at..]].concat(), "doubled byte");
                if at > 0 {
                    changed(&bytes[..at], "truncated");
                }
            }
        }
    }

    /// Notes of earlier versions have no checksums.
    #[test]
    fn notes_without_checksums_are_read() {
        let old = "running 0000002 durable 0000000000001a2b written 0000000000001a2c boot an-id\n";
        let note = Note::parse(old);
        assert!(!note.is_damaged);
        assert_eq!(
            (note.killed, note.durable, note.written),
            (3, Zxid(0x1a2b), Zxid(0x1a2c))
        );
        assert_eq!(note.boot, "an-id");
    }
}
