//! Writes a transaction log, as ZooKeeper's of version 3.9 are: change for change, behind the
//! newest snapshot.
//!
//! A file is named by its first change and made with it; each save begins another one. Nothing is
//! filled with zeros ahead: where an entry is not whole the file ends, for ZooKeeper too.
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

use crate::{
    data::{
        error::SaveError,
        load,
        lock::Lock,
        private_files,
        snapshot_file::{DB_ID, ENTRY_END, LOG_MAGIC, VERSION},
        sync_folder,
        txn::TxnEntry,
    },
    turn::change_log::ChangeLog,
};

/// The capacity of the buffer that is kept; more is freed. Unit: bytes.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// How often the writer checks that the directory still exists: after this number of milliseconds,
/// or of writes if time stands still.
const LOOK_INTERVAL_MS: u64 = 1_000;
const LOOK_WRITES: u32 = 256;

/// How changes are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSettings {
    /// Whether they are made durable, and not just given to the system.
    pub(crate) syncs: bool,
    /// After how many a save is due.
    pub(crate) changes_max: u64,
}

/// A transaction log that is being written.
#[derive(Debug)]
pub(crate) struct LogWriter {
    folder: PathBuf,
    /// The directory is ours as long as this is there.
    lock: Weak<Lock>,
    settings: LogSettings,
    /// The time, when the directory was last looked at, and how often has been written since.
    wall_ms: i64,
    looked_ms: i64,
    written: u32,
    /// Made with the first change.
    file: Option<(File, PathBuf)>,
    /// The changes of the newest zxid, of which there may be more.
    entry: TxnEntry,
    /// The whole entries to be written.
    out: Vec<u8>,
    /// The first of them.
    first: Option<Zxid>,
    /// The newest number that has an entry, or that the state had from which the log continues.
    last: Zxid,
    /// How many changes the file has.
    changes: u64,
    /// Told when it has too many.
    is_long: Arc<Notify>,
    has_failed: bool,
    /// The reason, until a caller takes it.
    failure: Option<SaveError>,
}

impl LogWriter {
    /// Writes into this folder, behind the snapshot of this state.
    pub(crate) fn new(
        folder: PathBuf,
        lock: Weak<Lock>,
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
        // The checksum and the length, once they are known.
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
        self.look_after_place()?;
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

    /// Now and then, whether what is written can still be found: files that were deleted can be
    /// written to as well as others.
    fn look_after_place(&mut self) -> Result<(), SaveError> {
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

impl ChangeLog for LogWriter {
    fn keep(&mut self, head: ChangeHead, change: &Change<'_>) {
        if self.entry.zxid() != Some(head.zxid) {
            self.seal();
            self.fill(head.zxid, head.wall_ms);
        }
        self.entry.add(head, change);
    }

    fn take_back(&mut self, zxid: Zxid) {
        if self.entry.zxid() == Some(zxid) {
            self.entry.clear();
        }
    }

    fn keep_up(&mut self, zxid: Zxid, wall_ms: i64) {
        self.wall_ms = wall_ms;
        self.seal();
        self.fill(Zxid(zxid.0 + 1), wall_ms);
    }

    fn write(&mut self) -> bool {
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

    fn go_on_from(&mut self, zxid: Zxid) {
        self.file = None;
        self.changes = 0;
        self.last = zxid;
    }

    fn take_failure(&mut self) -> Option<SaveError> {
        self.failure.take()
    }
}

/// A log that is there is never written over: it may have what no snapshot has.
fn create(path: &PathBuf, sync: Option<&PathBuf>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = private_files::private(&mut options).open(path)?;
    let mut header = LOG_MAGIC.to_be_bytes().to_vec();
    jute::put_int(&mut header, VERSION);
    header.extend_from_slice(&DB_ID);
    file.write_all(&header)?;
    if let Some(folder) = sync {
        sync_folder(folder)?;
    }
    Ok(file)
}
