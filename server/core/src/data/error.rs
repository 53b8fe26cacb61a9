//! Errors of loading, saving, importing and exporting.

use std::{io, path::PathBuf};

use minikeeper_engine::ImageError;
use minikeeper_protocol::{DecodeError, Zxid};

/// What the operator can do about damage.
const REMEDY: &str = "restore the file, or lose the changes that cannot be read \
                      (--trust-damaged-data, trust_damaged_data)";

/// Why a data directory cannot be used. Its files are unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// Another server uses it.
    #[error("{dir:?} is held by another server; stop that server, or use another directory")]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The newest snapshot is damaged.
    #[error("{path:?} at byte {offset}: {fault}; {REMEDY}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the wrong field starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        fault: SnapshotFault,
    },
    /// A transaction log is damaged.
    #[error("{path:?} at byte {offset}: {fault}; {REMEDY}")]
    DamagedLog {
        /// The file.
        path: PathBuf,
        /// Where the wrong field or entry starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        fault: SnapshotFault,
    },
    /// The changes between two entries of the logs are missing, or those after a snapshot.
    #[error(
        "{path:?} at byte {offset}: change {found} does not follow {last}, the last one in \
         {before:?}: a file is missing or truncated; {REMEDY}"
    )]
    LogGap {
        /// The log.
        path: PathBuf,
        /// Where its entry starts, in bytes from the start of the file.
        offset: u64,
        /// The change in that entry.
        found: Zxid,
        /// The last change found before it.
        last: Zxid,
        /// The file with that change.
        before: PathBuf,
    },
    /// The newest files are missing or truncated.
    #[error(
        "{path:?} ends with change {last}, but the last server logged or saved every change up to \
         {noted}: a file is missing or truncated; {REMEDY}"
    )]
    Behind {
        /// The newest log; the snapshot if there is none, or the folder if there is no file.
        path: PathBuf,
        /// The newest change in the files.
        last: Zxid,
        /// The newest change according to `minikeeper.lock`.
        noted: Zxid,
    },
    /// The note that says how far the files must reach is damaged.
    #[error(
        "{path:?} is damaged, so that nothing says whether the newest changes are missing; restore it, or \
         start from what the files have (--trust-damaged-data, trust_damaged_data)"
    )]
    DamagedNote {
        /// The note.
        path: PathBuf,
    },
    /// Each file is sound, but together they contradict the rules of the tree.
    #[error("{path:?} and the logs after it make no valid state: {fault}")]
    NoState {
        /// The snapshot, or the oldest log.
        path: PathBuf,
        /// What is wrong.
        fault: ImageError,
    },
    /// There are logs, but no snapshot that they continue from.
    #[error(
        "{log:?} has changes, but there is no snapshot, so the first changes may be missing; \
         ZooKeeper refuses this too: copy the snapshots to {folder:?}, or, if the logs are complete, \
         as versions before 3.5.3 left them, import them with --trust-empty-snapshot"
    )]
    NoSnapshot {
        /// The oldest log.
        log: PathBuf,
        /// Where snapshots are expected.
        folder: PathBuf,
    },
    /// There is nothing to start from.
    #[error("neither {dir:?} nor its version-2 has a snapshot or a transaction log")]
    Nothing {
        /// The directory.
        dir: PathBuf,
    },
    /// The system refused an operation.
    #[error("cannot {what} {path:?}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl DataDirError {
    /// Returns a closure for `map_err`.
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

/// What is wrong with a snapshot or a transaction log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFault {
    /// The file ends inside a field.
    #[error("the file ends {missing} bytes too early")]
    Ends {
        /// How many bytes of the field are missing.
        missing: u64,
    },
    /// The file is not a snapshot.
    #[error("starts with {magic:#010x}, but a snapshot starts with 0x5a4b534e (\"ZKSN\")")]
    Magic {
        /// What it starts with.
        magic: u32,
    },
    /// A version of the format that no ZooKeeper has written yet.
    #[error("unknown format version {version}, expected 2")]
    Version {
        /// The version.
        version: i32,
    },
    /// A length or count is negative.
    #[error("{what} of {value} is negative")]
    Negative {
        /// Which length or count.
        what: &'static str,
        /// The value.
        value: i32,
    },
    /// The file is not a transaction log.
    #[error("starts with {magic:#010x}, but a transaction log starts with 0x5a4b4c47 (\"ZKLG\")")]
    LogMagic {
        /// What it starts with.
        magic: u32,
    },
    /// A type of change that no version of ZooKeeper makes.
    #[error("unknown transaction type {kind}")]
    TxnType {
        /// The type.
        kind: i32,
    },
    /// A log entry cannot be decoded.
    #[error("unreadable entry: {0}")]
    Txn(#[from] DecodeError),
    /// Null in place of a path.
    #[error("null instead of a path")]
    NullPath,
    /// A checksum does not match the bytes before it.
    #[error("checksum {found:#x} does not match {computed:#x} of the bytes before it: damaged")]
    Checksum {
        /// The checksum in the file.
        found: i64,
        /// The checksum of the bytes before it.
        computed: u32,
    },
    /// A checksum does not match the log entry after it.
    #[error("checksum {found:#x} does not match {computed:#x} of the entry after it: damaged")]
    EntryChecksum {
        /// The checksum in the file.
        found: i64,
        /// The checksum of the entry.
        computed: u32,
    },
    /// A log entry of zero bytes with more data after it.
    #[error("empty entry with more data after it: damaged")]
    EntryEmpty,
    /// A log entry ends with the wrong byte.
    #[error("the entry ends with {found:#04x} instead of 0x42 (\"B\"): damaged")]
    EntryEnd {
        /// The byte.
        found: u8,
    },
    /// Only the length of a log entry is wrong.
    #[error("wrong length of an entry of {bytes} bytes: damaged")]
    EntryLength {
        /// The real length of the entry.
        bytes: usize,
    },
    /// A log entry is unreadable, but a later one is readable.
    #[error("unreadable entry before a readable one at byte {at}: damaged")]
    EntryBeforeSound {
        /// Where the readable entry starts, in bytes from the start of the file.
        at: u64,
    },
    /// The name of a log differs from its first change.
    #[error("the first change is {zxid}, which differs from the file name")]
    LogName {
        /// Its first change.
        zxid: Zxid,
    },
    /// The name of a snapshot differs from its newest change.
    #[error("the newest change is {zxid}, which differs from the file name")]
    SnapshotName {
        /// Its newest change.
        zxid: Zxid,
    },
    /// The mark after a checksum is missing.
    #[error("no \"/\" after a checksum")]
    NoMark,
    /// There is data after the end of the snapshot.
    #[error("data after the end of the snapshot")]
    Surplus,
    /// The records make no valid state.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The system cannot read the file.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
}

/// Why the state could not be saved. The previous save is untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The system cannot write the file.
    #[error("cannot save the state to {path:?}; the previous save is untouched")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory was deleted or replaced.
    #[error(
        "cannot save the state to {path:?}, since the directory was deleted or replaced while the \
         server ran; restore it, or export the state to another directory"
    )]
    Gone {
        /// The directory.
        path: PathBuf,
    },
    /// A change could not be written to the transaction log. It was not acknowledged.
    #[error(
        "cannot write the transaction log {path:?}, so changes are no longer acknowledged; every \
         acknowledged change is saved"
    )]
    Log {
        /// The log.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The transaction log, or its directory, was deleted or replaced.
    #[error(
        "the transaction log {path:?} was deleted or replaced while the server ran, so changes are \
         no longer acknowledged"
    )]
    LogGone {
        /// The log, or the directory.
        path: PathBuf,
    },
    /// A bug has stopped the server and may have left half a change.
    #[error("the state is not saved after an internal error; the previous save is untouched")]
    Broken,
    /// The server's runtime is shutting down.
    #[error("the state is not saved, the runtime has ended; the previous save is untouched")]
    NoRuntime,
}

/// Why a server cannot load the state that it is to start with: given, saved or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The data directory cannot be used or loaded.
    #[error("cannot use data_dir {dir:?}")]
    DataDir {
        /// The directory.
        dir: PathBuf,
        /// The fault.
        source: DataDirError,
    },
    /// The initial state, from which a log would continue, could not be saved.
    #[error("cannot save the initial state")]
    Save(#[source] SaveError),
    /// The state to start with does not fit the settings.
    #[error("cannot start from the given state: {0}")]
    State(SnapshotFault),
    /// The directory to import cannot be read.
    #[error("cannot import {dir:?}")]
    Import {
        /// The directory.
        dir: PathBuf,
        /// The fault.
        source: DataDirError,
    },
    /// There is a directory to import, and the data directory has a state.
    #[error(
        "cannot import {import:?}, since data_dir {dir:?} already has a state; omit the import to \
         continue from that state, or use an empty data_dir"
    )]
    ImportToo {
        /// The directory to import.
        import: PathBuf,
        /// The data directory.
        dir: PathBuf,
    },
    /// There is both a state to start from and a directory to load one from.
    #[error("a state to start from and {setting} {dir:?} are both set; set one of them")]
    TwoStates {
        /// The setting that names the directory.
        setting: &'static str,
        /// The directory.
        dir: PathBuf,
    },
}

/// Why a server cannot continue in a data directory that it has loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    #[error(transparent)]
    Dir(#[from] DataDirError),
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// Why the state could not be written as a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The directory is not empty.
    #[error("{path:?} already exists; export to an empty directory")]
    NotEmpty {
        /// A file in it.
        path: PathBuf,
    },
    /// The system refused an operation.
    #[error("cannot {what} {path:?}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A bug has stopped the server and may have left half a change.
    #[error("the state is not exported after an internal error")]
    Broken,
}
