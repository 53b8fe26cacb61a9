//! Reads a data directory without changing it, and exports to a new one.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use minikeeper_engine::{Engine, Settings};
use minikeeper_protocol::Zxid;

use crate::data::{
    FOLDER, UNFINISHED,
    error::{DataDirError, ExportError},
    load::{self, Files, Trust, list},
    lock::Note,
    private_files,
    state::SavedState,
};

/// A data directory of ZooKeeper 3.4 to 3.9 to start from: its newest snapshot, compressed or not,
/// and the transaction logs after it. It is read once and never written to.
///
/// Stop the server that owns the directory, or read a copy: entries that a running server appends
/// during the read may be missed.
///
/// # Examples
/// ```
/// use minikeeper::DataSource;
/// let source = DataSource::new("/var/lib/zookeeper").log_dir("/var/log/zookeeper/txns");
/// # drop(source);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataSource {
    dir: PathBuf,
    log_dir: Option<PathBuf>,
    trust: Trust,
}

impl DataSource {
    /// The directory that ZooKeeper calls `dataDir`, or the `version-2` in it.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            log_dir: None,
            trust: Trust::default(),
        }
    }

    /// Looks for the logs in another directory, ZooKeeper's `dataLogDir`. Default: the directory of
    /// the snapshots.
    #[must_use]
    pub fn log_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.log_dir = Some(dir.into());
        self
    }

    /// Accepts logs without a snapshot, as versions before 3.5.3 left them, and replays them on an
    /// empty tree. By default such a directory is refused, since the first changes may be missing.
    /// Source: `zookeeper.snapshot.trust.empty` of ZooKeeper.
    #[must_use]
    pub const fn trust_empty_snapshot(mut self) -> Self {
        self.trust.empty = true;
        self
    }

    /// Accepts damaged or missing files, and omits the changes that cannot be read and those after
    /// them. By default such a directory is refused.
    #[must_use]
    pub const fn trust_damaged_data(mut self) -> Self {
        self.trust.damaged = true;
        self
    }

    /// Reads the state, for servers to [start with](../minikeeper/struct.Builder.html#method.state) or to
    /// [write](SavedState::export_data) as one snapshot.
    ///
    /// Omits ephemerals without a session, as every server does when it starts.
    ///
    /// # Errors
    /// When the directory cannot be read, or is damaged.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = std::env::temp_dir().join(format!("minikeeper-doc-read-{}", std::process::id()));
    /// # let _ = std::fs::remove_dir_all(&dir);
    /// use minikeeper::{DataSource, Server};
    /// let production = Server::builder().start().await?;
    /// let zxid = production.export_data(&dir)?;
    /// let state = DataSource::new(&dir).read()?;
    /// assert_eq!(state.zxid(), zxid);
    /// // Start one server per test; the files are read once.
    /// let first = Server::builder().state(state.clone()).start().await?;
    /// let second = Server::builder().state(state).start().await?;
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok(()) }
    /// ```
    pub fn read(&self) -> Result<SavedState, DataDirError> {
        let settings = Settings {
            sessions_max: usize::MAX,
            tree_bytes_max: usize::MAX,
            extended_types: true,
            hash_seed: crate::random::hash_seed(),
            ..Settings::default()
        };
        Ok(SavedState::of(&self.load(settings)?))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the directory into an engine.
    ///
    /// # Errors
    /// When a file of the directory cannot be read.
    pub fn load(&self, settings: Settings) -> Result<Engine, DataDirError> {
        let folder = folder_in(&self.dir);
        // Read first, so that entries that a running server adds later are not missed.
        let noted = match folder.parent() {
            Some(dir) => {
                let note = Note::read(dir)?;
                match note.check(dir) {
                    Err(error) if !self.trust.damaged => return Err(error),
                    Err(error) => tracing::warn!(err = %error, "takes what the files have"),
                    Ok(()) => {}
                }
                note.reach()
            }
            None => Zxid(0),
        };
        let log_folder = self.log_dir.as_deref().map(folder_in);
        let files = Files::find(&folder, log_folder.as_ref().unwrap_or(&folder))?;
        if files.is_empty() {
            let dir = self.dir.clone();
            return Err(DataDirError::Nothing { dir });
        }
        let loaded = files.load(settings, noted, self.trust)?;
        let counts = loaded.engine.counts();
        tracing::info!(
            path = %self.dir.display(),
            zxid = %loaded.engine.zxid(),
            znodes = counts.znodes,
            sessions = counts.sessions,
            "imported"
        );
        Ok(loaded.engine)
    }
}

/// Returns the folder with the files: users name either the data directory or its `version-2`.
fn folder_in(dir: &Path) -> PathBuf {
    let folder = dir.join(FOLDER);
    if !folder.is_dir() && list(dir).is_ok_and(|files| !files.is_empty()) {
        return dir.to_owned();
    }
    folder
}

impl<P: Into<PathBuf>> From<P> for DataSource {
    fn from(dir: P) -> Self {
        Self::new(dir)
    }
}

/// Writes a snapshot into an empty directory. Returns the zxid in its name.
///
/// # Errors
/// When the directory is not empty or cannot be written.
pub fn export(dir: &Path, zxid: Zxid, snapshot: &[u8]) -> Result<Zxid, ExportError> {
    let folder = dir.join(FOLDER);
    private_files::create_private_dir(&folder).map_err(refused("create", &folder))?;
    let mut entries = fs::read_dir(&folder).map_err(refused("list", &folder))?;
    if let Some(entry) = entries.next() {
        let path = entry.map_err(refused("list", &folder))?.path();
        return Err(ExportError::NotEmpty { path });
    }
    // A file name with a negative zxid could not be parsed again.
    let zxid = zxid.max(Zxid(0));
    let path = folder.join(load::snapshot_name(zxid));
    write(&folder, &path, snapshot).map_err(refused("write", &path))?;
    Ok(zxid)
}

fn write(folder: &Path, path: &Path, snapshot: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(UNFINISHED);
    let mut file = private_files::create_private(&unfinished)?;
    file.write_all(snapshot)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    private_files::sync_dir(folder)
}

fn refused(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.into();
    move |source| ExportError::Io { what, path, source }
}
