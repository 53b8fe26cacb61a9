//! Writes transaction logs in the format of ZooKeeper 3.9: each change after the newest snapshot.
//!
//! A file is created with its first change and named by it; each save begins a new file. Files are not
//! padded with zeros: ZooKeeper, too, takes a log to end at an incomplete entry.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; ZooKeeper's `FileTxnLog.append`.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
    sync::{Arc, Weak},
};

use minikeeper_engine::{Change, ChangeHead};
use minikeeper_protocol::{SessionId, Zxid, jute};
use tokio::sync::Notify;

use crate::data::{
    error::SaveError,
    load,
    lock::DirectoryLock,
    private_files,
    snapshot_file::{DB_ID, ENTRY_END, LOG_MAGIC, VERSION},
    txn::TxnEntry,
};

/// The capacity that the buffer keeps between writes; more is freed. Unit: bytes.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// How often the writer checks that the directory still exists: after this number of milliseconds,
/// or of writes if the clock is frozen.
const LOOK_INTERVAL_MS: u64 = 1_000;
const LOOK_WRITES: u32 = 256;

/// How changes are logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSettings {
    /// Whether the file is synced after each write.
    pub(crate) syncs: bool,
    /// The number of changes after which a save is due.
    pub(crate) changes_max: u64,
}

/// A transaction log that is being written.
#[derive(Debug)]
pub(crate) struct LogWriter {
    folder: PathBuf,
    /// The lock of the directory. Weak, so that the log does not keep the directory locked.
    lock: Weak<DirectoryLock>,
    settings: LogSettings,
    /// The time of the newest turn.
    wall_ms: i64,
    /// When the directory was last checked.
    looked_ms: i64,
    /// The number of writes since then.
    written: u32,
    /// Created with the first change.
    file: Option<(File, PathBuf)>,
    /// The changes of the newest zxid, which may get more.
    entry: TxnEntry,
    /// The complete entries to write.
    out: Vec<u8>,
    /// The zxid of the first of them.
    first: Option<Zxid>,
    /// The newest zxid with an entry, or that of the state from which the log continues.
    last: Zxid,
    /// The number of changes in the file.
    changes: u64,
    /// Notified when `changes` reaches the limit.
    is_long: Arc<Notify>,
    has_failed: bool,
    /// Why writing failed, until a caller takes it.
    failure: Option<SaveError>,
}

impl LogWriter {
    /// Writes to this folder the changes after the snapshot at `last`.
    pub(crate) fn new(
        folder: PathBuf,
        lock: Weak<DirectoryLock>,
        last: Zxid,
        settings: LogSettings,
        is_long: Arc<Notify>,
    ) -> Self {
        Self {
            folder,
            lock,
            settings,
            wall_ms: 0,
            looked_ms: 0,
            written: 0,
            file: None,
            entry: TxnEntry::default(),
            out: Vec::new(),
            first: None,
            last,
            changes: 0,
            is_long,
            has_failed: false,
            failure: None,
        }
    }

    fn fill(&mut self, before: Zxid, wall_ms: i64) {
        while self.last.0 + 1 < before.0 {
            let head = ChangeHead {
                session: SessionId::NONE,
                zxid: Zxid(self.last.0 + 1),
                wall_ms,
            };
            self.entry.add(head, &Change::Nothing);
            self.seal();
        }
    }

    fn seal(&mut self) {
        let Some(zxid) = self.entry.zxid() else {
            return;
        };
        self.first.get_or_insert(zxid);
        self.last = zxid;
        let start = self.out.len();
        // Room for the checksum and the length.
        self.out.extend_from_slice(&[0; 8 + 4]);
        let body = self.out.len();
        self.entry.put(&mut self.out);
        let checksum = adler2::adler32_slice(&self.out[body..]);
        let mut head = Vec::with_capacity(body - start);
        jute::put_long(&mut head, i64::from(checksum));
        jute::put_length(&mut head, self.out.len() - body);
        self.out[start..body].copy_from_slice(&head);
        self.out.push(ENTRY_END);
        self.entry.clear();
        self.changes += 1;
        if self.changes == self.settings.changes_max {
            self.is_long.notify_one();
        }
    }

    fn write_from(&mut self, first: Zxid) -> Result<(), SaveError> {
        self.check_place()?;
        let (file, path) = match &mut self.file {
            Some(open) => open,
            file => {
                let path = self.folder.join(load::log_name(first));
                let made = create(&path, self.settings.syncs.then_some(&self.folder));
                let made = made.map_err(|source| SaveError::Log {
                    path: path.clone(),
                    source,
                })?;
                file.insert((made, path))
            }
        };
        let failed = |source| SaveError::Log {
            path: path.clone(),
            source,
        };
        file.write_all(&self.out).map_err(failed)?;
        if self.settings.syncs {
            file.sync_data().map_err(failed)?;
        }
        if let Some(lock) = self.lock.upgrade() {
            let noted = lock.note_logged(self.last, self.settings.syncs);
            noted.map_err(failed)?;
        }
        Ok(())
    }

    /// Checks now and then that the log was not deleted: writes to a deleted file succeed.
    fn check_place(&mut self) -> Result<(), SaveError> {
        self.written += 1;
        let is_due = self.wall_ms.abs_diff(self.looked_ms) >= LOOK_INTERVAL_MS;
        if !is_due && self.written < LOOK_WRITES {
            return Ok(());
        }
        (self.looked_ms, self.written) = (self.wall_ms, 0);
        let is_in_place = self.lock.upgrade().is_none_or(|lock| lock.is_in_place());
        let is_there = |(file, path): &(File, PathBuf)| private_files::is_at(file, path);
        if is_in_place && self.file.as_ref().is_none_or(is_there) {
            return Ok(());
        }
        let path = self.file.as_ref().map_or(&self.folder, |(_, path)| path);
        Err(SaveError::LogGone { path: path.clone() })
    }
}

/// Logs the changes of turns before any client sees them.
impl LogWriter {
    /// Adds a change to be written.
    pub(crate) fn keep(&mut self, head: ChangeHead, change: &Change<'_>) {
        if self.entry.zxid() != Some(head.zxid) {
            self.seal();
            self.fill(head.zxid, head.wall_ms);
        }
        self.entry.add(head, change);
    }

    /// Discards the pending changes of the newest zxid.
    pub(crate) fn take_back(&mut self, zxid: Zxid) {
        if self.entry.zxid() == Some(zxid) {
            self.entry.clear();
        }
    }

    /// Records that refused requests have advanced the state to this zxid. They get entries too,
    /// because ZooKeeper does not start from a log with a gap.
    pub(crate) fn keep_up(&mut self, zxid: Zxid, wall_ms: i64) {
        self.wall_ms = wall_ms;
        self.seal();
        self.fill(Zxid(zxid.0 + 1), wall_ms);
    }

    /// Writes all pending changes, and makes them durable if so configured. Returns false if that
    /// fails, and from then on, because it is unknown how much the file contains.
    pub(crate) fn write(&mut self) -> bool {
        self.seal();
        if self.has_failed {
            return false;
        }
        let Some(first) = self.first.take() else {
            return true;
        };
        if let Err(error) = self.write_from(first) {
            self.has_failed = true;
            self.failure = Some(error);
            return false;
        }
        self.out.clear();
        self.out.shrink_to(BUFFER_BYTES_KEPT);
        true
    }

    /// Begins a new file with the next change: the saved state has every change up to this zxid.
    pub(crate) fn go_on_from(&mut self, zxid: Zxid) {
        self.file = None;
        self.changes = 0;
        self.last = zxid;
    }

    /// Takes the error that stopped the log, if any.
    pub(crate) fn take_failure(&mut self) -> Option<SaveError> {
        self.failure.take()
    }
}

/// Creates a log. Never overwrites one: it may have changes that no snapshot has.
fn create(path: &PathBuf, sync: Option<&PathBuf>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = private_files::private(&mut options).open(path)?;
    let mut header = LOG_MAGIC.to_be_bytes().to_vec();
    jute::put_int(&mut header, VERSION);
    header.extend_from_slice(&DB_ID);
    file.write_all(&header)?;
    if let Some(folder) = sync {
        private_files::sync_dir(folder)?;
    }
    Ok(file)
}
