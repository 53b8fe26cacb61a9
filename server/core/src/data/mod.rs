//! The data directory: loads the newest state, saves it, logs changes.
//!
//! The layout is ZooKeeper's, so that either server can continue where the other stopped: `version-2`
//! holds the snapshots, named by the zxid of their newest change. A save writes a temporary file,
//! syncs it, renames it and syncs the folder; until then the previous snapshot remains the newest.
//!
//! [`DataDir`] is a directory in use: `lock` keeps other servers out and notes which zxids its files
//! must reach, `load` finds the newest state and refuses a damaged directory. File formats:
//! `snapshot_file` (with `snappy` for compressed ones), `log` and `log_writer` for transaction logs, `txn`
//! for one entry, `source` for checked reading. [`DataSource`] (`data_source`) reads the directory of
//! another server, [`SavedState`] holds a state in memory, `private_files` creates files that only their
//! owner can read, `error` lists the faults.
//! [`saving`](crate::state::saving) decides when to save, [`start`](crate::start::load) what to load.
//! Builds without the feature `data` use `no_data.rs` instead of this folder.
//!
//! Source: `docs/zookeeper-protocol.md` section 22; ZooKeeper's `FileTxnSnapLog`.

mod data_source;
mod error;
mod load;
mod lock;
mod log;
mod log_writer;
mod private_files;
mod snappy;
mod snapshot_file;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod txn;

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use minikeeper_engine::{Engine, Image, Settings};
use minikeeper_protocol::Zxid;
use tokio::sync::Notify;

pub use self::data_source::export;
pub use self::{
    data_source::DataSource,
    error::{DataDirError, ExportError, LoadError, SaveError, SnapshotFault},
    state::SavedState,
};
pub(crate) use self::{
    error::BeginError,
    log_writer::{LogSettings, LogWriter},
};
use self::{
    load::{FileKind, Files, Trust, list},
    lock::DirectoryLock,
};

/// The folder in the data directory that holds the files, named after the version of the format.
const FOLDER: &str = "version-2";

/// The temporary file that a save writes. ZooKeeper ignores this name.
const UNFINISHED: &str = "minikeeper.unfinished";

/// The prefix of files that could not be read. ZooKeeper ignores such names.
const UNREAD: &str = "unread";

/// How many of our own snapshots are kept.
const KEPT: usize = 3;

/// A server continues 2^`SKIPPED_BITS` above the zxid of a killed one, which cannot have made as many
/// changes.
const SKIPPED_BITS: u32 = 32;

/// The size of the buffers that read and write files. Unit: bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// A data directory in use.
#[derive(Debug)]
pub struct DataDir {
    folder: PathBuf,
    lock: Arc<DirectoryLock>,
    is_fresh: bool,
    /// The newest snapshot and its zxid; after `load`, the snapshot that was loaded.
    newest: Option<(Zxid, PathBuf)>,
    /// The newest change in the files.
    reached: Zxid,
    /// Whether changes are missing, because the settings trust damaged data.
    is_short: bool,
    /// The files that were then not read, or not to their end.
    unread: Vec<PathBuf>,
}

impl DataDir {
    /// Locks a directory, creates it if necessary, and lists its files.
    pub(crate) fn open(dir: &Path) -> Result<Self, DataDirError> {
        let folder = dir.join(FOLDER);
        private_files::create_private_dir(&folder).map_err(DataDirError::io("create", &folder))?;
        let lock = Arc::new(DirectoryLock::take(dir, &folder)?);
        let files = Files::find(&folder, &folder)?;
        Ok(Self {
            folder,
            lock,
            is_fresh: files.is_empty(),
            newest: files.newest_snapshot(),
            reached: Zxid(0),
            is_short: false,
            unread: Vec::new(),
        })
    }

    /// Whether nothing was ever saved here.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// The lowest zxid that a server may continue from, estimated before anything is loaded.
    pub(crate) fn zxid(&self) -> Zxid {
        let saved = self.newest.as_ref().map_or(Zxid(0), |(zxid, _)| *zxid);
        self.above_killed(saved)
    }

    fn above_killed(&self, zxid: Zxid) -> Zxid {
        let skipped = i64::from(self.lock.killed()) << SKIPPED_BITS;
        Zxid(zxid.0.saturating_add(skipped))
    }

    /// Loads the saved state, or a fresh one if nothing is saved. With `trusts_damaged`, omits the
    /// changes that cannot be read.
    pub(crate) fn load(
        &mut self,
        settings: Settings,
        trusts_damaged: bool,
    ) -> Result<Engine, DataDirError> {
        let files = Files::find(&self.folder, &self.folder)?;
        let found = self.lock.found();
        if let Err(error) = found.check(self.folder.parent().unwrap_or(&self.folder)) {
            if !trusts_damaged {
                return Err(error);
            }
            tracing::warn!(err = %error, "takes what the files have for the newest state");
        }
        let noted = found.reach();
        let trust = Trust {
            empty: false,
            damaged: trusts_damaged,
        };
        let loaded = files.load(settings, noted, trust)?;
        let mut engine = loaded.engine;
        self.newest = loaded.snapshot;
        self.is_short = loaded.is_short;
        self.unread = loaded.unread;
        if let Some((zxid, path)) = &self.newest {
            self.reached = engine.zxid();
            let counts = engine.counts();
            tracing::info!(
                path = %path.display(),
                %zxid,
                znodes = counts.znodes,
                sessions = counts.sessions,
                "loaded"
            );
        }
        // A file name with a negative zxid could not be parsed again.
        let mut zxid = engine.zxid().max(Zxid(0));
        if self.is_short {
            // Clients have seen the missing changes, and new files must sort after the old ones.
            let known = zxid.max(noted).max(files.highest());
            zxid = Zxid(known.0.saturating_add(1 << SKIPPED_BITS));
        }
        engine.skip_to(self.above_killed(zxid));
        Ok(engine)
    }

    /// Notes that a server is running: from here on clients may see changes that are not saved.
    ///
    /// If changes are missing, first saves the loaded state and renames the files that were not read,
    /// because new changes do not continue from theirs.
    pub(crate) fn begin(&mut self, engine: &Engine) -> Result<(), BeginError> {
        if self.is_short {
            let zxid = engine.zxid();
            self.save(zxid, |out| write(engine.image(), out))?;
            self.reached = zxid;
            for path in std::mem::take(&mut self.unread) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let to = self.folder.join(format!("{UNREAD}.{name}"));
                tracing::warn!(path = %path.display(), to = %to.display(), "renames an unread file");
                fs::rename(&path, &to).map_err(DataDirError::io("rename", &path))?;
            }
            private_files::sync_dir(&self.folder)
                .map_err(DataDirError::io("write", &self.folder))?;
        }
        let saved = self.saved().unwrap_or_default();
        Ok(self.lock.note_running(saved, self.reached)?)
    }

    /// Notes that everything is saved and that no more changes will come.
    pub(crate) fn note_saved(&self) -> Result<(), SaveError> {
        self.lock.note_saved().map_err(|source| SaveError::Io {
            path: self.folder.clone(),
            source,
        })
    }

    /// The zxid of the newest snapshot.
    pub(crate) fn saved(&self) -> Option<Zxid> {
        self.newest.as_ref().map(|(zxid, _)| *zxid)
    }

    /// Saves what `write` writes as the state at this zxid. Returns the size in bytes.
    pub(crate) fn save(
        &mut self,
        zxid: Zxid,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<u64, SaveError> {
        self.check_place()?;
        let path = self.folder.join(load::snapshot_name(zxid));
        let failed = |source| SaveError::Io {
            path: path.clone(),
            source,
        };
        let bytes = self.write(&path, write).map_err(|source| {
            // Half a file is useless, and the disk may be full.
            let _ = fs::remove_file(self.folder.join(UNFINISHED));
            failed(source)
        })?;
        self.lock.note_snapshot(zxid).map_err(failed)?;
        self.newest = Some((zxid, path));
        self.delete_old();
        Ok(bytes)
    }

    fn write(
        &self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<u64> {
        let unfinished = self.folder.join(UNFINISHED);
        let mut out =
            BufWriter::with_capacity(BUFFER_BYTES, private_files::create_private(&unfinished)?);
        write(&mut out)?;
        out.flush()?;
        let file = out.get_ref();
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        fs::rename(&unfinished, path)?;
        private_files::sync_dir(&self.folder)?;
        Ok(bytes)
    }

    /// Returns a log for the changes after this state, which is saved.
    pub(crate) fn log(&self, from: Zxid, settings: LogSettings, is_long: Arc<Notify>) -> LogWriter {
        let lock = Arc::downgrade(&self.lock);
        LogWriter::new(self.folder.clone(), lock, from, settings, is_long)
    }

    /// Checks that the directory was not deleted or replaced since the server started.
    pub(crate) fn check_place(&self) -> Result<(), SaveError> {
        if self.lock.is_in_place() {
            return Ok(());
        }
        let path = self.folder.clone();
        Err(SaveError::Gone { path })
    }

    /// Deletes all but our newest `KEPT` snapshots, and our logs that hold no change after the oldest
    /// of those. Keeps ZooKeeper's files, and any log that cannot be read to its end: it may be the
    /// only file with its changes.
    fn delete_old(&self) {
        let Ok(files) = list(&self.folder) else {
            return;
        };
        let (logs, snapshots): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(|(kind, _, path)| {
                matches!(kind, FileKind::Snapshot | FileKind::Log) && log::is_ours(path)
            })
            .partition(|(kind, ..)| *kind == FileKind::Log);
        let Some((_, oldest, _)) = snapshots.iter().take(KEPT).next_back().cloned() else {
            return;
        };
        // Newest first: the first log that begins no later than right after the oldest snapshot is
        // the last one needed.
        let needed = logs.iter().take_while(|(_, zxid, _)| zxid.0 > oldest.0 + 1);
        let needed = needed.count() + 1;
        let logs = logs.iter().skip(needed);
        let logs = logs.filter(|(_, _, path)| log::is_whole(path));
        let old = snapshots.iter().skip(KEPT).chain(logs);
        for (_, _, path) in old {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(path = %path.display(), %error, "cannot delete an old snapshot or log");
            }
        }
    }
}

/// Returns the absolute path of a server's snapshots, and the size of snapshots and logs in bytes.
pub(crate) fn place(dir: Option<&Path>) -> (String, u64) {
    let Some(dir) = dir else {
        return (String::new(), 0);
    };
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let folder = dir.join(FOLDER);
    let files = fs::read_dir(&folder).into_iter().flatten().flatten();
    let bytes = files
        .filter_map(|file| file.metadata().ok())
        .map(|file| file.len())
        .sum();
    (folder.display().to_string(), bytes)
}

/// Returns the zxid of the newest snapshot in a server's data directory, and when it was written.
#[cfg(feature = "control")]
pub fn newest_snapshot(dir: Option<&Path>) -> Option<(Zxid, std::time::SystemTime)> {
    let files = list(&dir?.join(FOLDER)).ok()?;
    let mut snapshots = files.iter().filter(|(kind, ..)| *kind != FileKind::Log);
    let (_, zxid, path) = snapshots.next()?;
    let written_at = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    Some((*zxid, written_at))
}

/// Encodes the whole state as a snapshot, which can be saved without the engine.
pub fn copy(engine: &Engine) -> Vec<u8> {
    // The count of a znode is larger than its record.
    let mut bytes = Vec::with_capacity(engine.counts().tree_bytes);
    write(engine.image(), &mut bytes).expect("writing to a vector cannot fail");
    bytes
}

/// Writes a view of the state as a snapshot.
pub(crate) fn write(image: Image<'_>, out: &mut impl io::Write) -> io::Result<()> {
    snapshot_file::encode(image, out)
}
