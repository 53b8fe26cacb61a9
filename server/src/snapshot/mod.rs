//! The data directory: the newest snapshot is loaded, the state is saved as another one.
//!
//! Laid out as the original's, so that either can go on where the other stopped: snapshots lie in
//! `version-2`, named by the zxid of their newest change. A save is written beside, made durable,
//! renamed, and the rename made durable; until then the one before it is what there is.
//!
//! Source: reference section 22; the original's `FileTxnSnapLog`.

mod data_source;
mod decode;
mod encode;
mod error;
mod export;
mod format;
mod load;
mod lock;
mod log;
mod log_writer;
mod name;
mod snappy;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod txn;
mod txn_encode;

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use minikeeper_engine::{Engine, Image, Settings};
use minikeeper_protocol::Zxid;
use tokio::sync::Notify;

pub use self::data_source::DataSource;
pub use self::error::{DataDirError, ExportError, SaveError, SnapshotFault};
pub(crate) use self::export::export;
pub(crate) use self::log_writer::{LogSettings, LogWriter};
pub use self::state::State;
use self::{
    load::{Files, list},
    lock::Lock,
    name::Kind,
};

/// The folder of the format's version, in the data directory.
pub(crate) const FOLDER: &str = "version-2";

/// What a save is written to before it has its name. No name the original would look at.
const UNFINISHED: &str = "minikeeper.unfinished";

/// How many saves of ours are kept.
const KEPT: usize = 3;

/// How far a server goes on above a killed one: more than that one can have changed.
const SKIPPED_BITS: u32 = 32;

/// How much is read or written at once. Unit: bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// A data directory in use.
#[derive(Debug)]
pub(crate) struct DataDir {
    folder: PathBuf,
    lock: Lock,
    is_fresh: bool,
    /// The newest snapshot and its zxid: once loaded, the one that was.
    newest: Option<(Zxid, PathBuf)>,
}

impl DataDir {
    /// Takes a directory, makes it if there is none, and finds what to load.
    pub(crate) fn open(dir: &Path) -> Result<Self, DataDirError> {
        let folder = dir.join(FOLDER);
        fs::create_dir_all(&folder).map_err(DataDirError::io("create", &folder))?;
        let lock = Lock::take(dir)?;
        let files = Files::find(&folder, &folder)?;
        Ok(Self {
            folder,
            lock,
            is_fresh: files.is_empty(),
            newest: files.newest_snapshot(),
        })
    }

    /// Whether nothing was ever saved here.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// The zxid to go on from at least, before anything is loaded.
    pub(crate) fn zxid(&self) -> Zxid {
        let saved = self.newest.as_ref().map_or(Zxid(0), |(zxid, _)| *zxid);
        self.above_killed(saved)
    }

    fn above_killed(&self, zxid: Zxid) -> Zxid {
        let skipped = i64::from(self.lock.killed()) << SKIPPED_BITS;
        Zxid(zxid.0.saturating_add(skipped))
    }

    /// The state that was saved, or a fresh one.
    pub(crate) fn load(&mut self, settings: Settings) -> Result<Engine, DataDirError> {
        let files = Files::find(&self.folder, &self.folder)?;
        let loaded = files.load(settings, false)?;
        let mut engine = loaded.engine;
        self.newest = loaded.snapshot;
        if let Some((zxid, path)) = &self.newest {
            let counts = engine.counts();
            tracing::info!(
                path = %path.display(),
                %zxid,
                znodes = counts.znodes,
                sessions = counts.sessions,
                "loaded"
            );
        }
        // A zxid below zero has no name that could be found again.
        let zxid = engine.zxid().max(Zxid(0));
        engine.skip_to(self.above_killed(zxid));
        Ok(engine)
    }

    /// From here on clients may see more than is saved.
    pub(crate) fn note_running(&mut self) -> Result<(), DataDirError> {
        self.lock
            .note_running()
            .map_err(DataDirError::io("note the start in", &self.folder))
    }

    /// Everything is saved, and nothing will change any more.
    pub(crate) fn note_saved(&mut self) -> Result<(), SaveError> {
        self.lock.note_saved().map_err(|source| SaveError::Io {
            path: self.folder.clone(),
            source,
        })
    }

    /// The zxid of the newest snapshot.
    pub(crate) fn saved(&self) -> Option<Zxid> {
        self.newest.as_ref().map(|(zxid, _)| *zxid)
    }

    /// Saves what `write` writes as the state at this zxid. Says how many bytes that were.
    pub(crate) fn save(
        &mut self,
        zxid: Zxid,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<u64, SaveError> {
        let path = self.folder.join(name::of_snapshot(zxid));
        let bytes = self.write(&path, write).map_err(|source| {
            // It may be in the way of what is short, and means nothing.
            let _ = fs::remove_file(self.folder.join(UNFINISHED));
            let path = path.clone();
            SaveError::Io { path, source }
        })?;
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
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&unfinished)?);
        write(&mut out)?;
        out.flush()?;
        let file = out.get_ref();
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        fs::rename(&unfinished, path)?;
        sync_folder(&self.folder)?;
        Ok(bytes)
    }

    /// A log of what changes behind this state, which is saved.
    pub(crate) fn log(&self, from: Zxid, settings: LogSettings, is_long: Arc<Notify>) -> LogWriter {
        LogWriter::new(self.folder.clone(), from, settings, is_long)
    }

    /// Deletes saves of ours beyond those that are kept, and logs of ours that hold nothing behind
    /// the oldest of them; what an original wrote stays.
    fn delete_old(&self) {
        let Ok(files) = list(&self.folder) else {
            return;
        };
        let (logs, snapshots): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(|(kind, _, path)| matches!(kind, Kind::Snapshot | Kind::Log) && is_ours(path))
            .partition(|(kind, ..)| *kind == Kind::Log);
        let Some((_, oldest, _)) = snapshots.iter().take(KEPT).next_back().cloned() else {
            return;
        };
        // Newest first: the first that begins no later than behind the oldest save is the last
        // that is needed.
        let needed = logs.iter().take_while(|(_, zxid, _)| zxid.0 > oldest.0 + 1);
        let needed = needed.count() + 1;
        let old = snapshots.iter().skip(KEPT).chain(logs.iter().skip(needed));
        for (_, _, path) in old {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(path = %path.display(), %error, "an old save cannot be deleted");
            }
        }
    }
}

/// All of a state, ready to be saved without looking at it again.
pub(crate) fn copy(engine: &Engine) -> Vec<u8> {
    // A znode is counted with more than its record takes.
    let mut bytes = Vec::with_capacity(engine.counts().tree_bytes);
    write(engine.image(), &mut bytes).expect("writing to a vector cannot fail");
    bytes
}

/// Writes a state as it is looked at.
pub(crate) fn write(image: Image<'_>, out: &mut impl io::Write) -> io::Result<()> {
    encode::encode(image, out)
}

fn is_ours(path: &Path) -> bool {
    let mut header = [0; 16];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut header))
        .is_ok_and(|()| header.ends_with(&format::DB_ID))
}

/// A rename is durable once its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
