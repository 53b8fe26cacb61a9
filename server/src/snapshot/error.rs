//! What can be wrong with a data directory, and with a save.

use std::{io, path::PathBuf};

use minikeeper_engine::ImageError;
use minikeeper_protocol::DecodeError;

/// Why a data directory cannot be used. Nothing in it has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// Somebody else uses it.
    #[error("{lock:?} is held by another server; stop that one, or use another directory")]
    Locked {
        /// The file that is locked.
        lock: PathBuf,
    },
    /// The newest snapshot makes no sense.
    #[error(
        "{path:?} at byte {offset}: {fault}; \
         move the file away to start from the one before it, or from nothing"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the field starts that is wrong, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        fault: SnapshotFault,
    },
    /// A transaction log makes no sense.
    #[error(
        "{path:?} at byte {offset}: {fault}; let the original's zkTxnLogToolkit.sh --recover cut \
         the entry out, or move this log and those behind it away to go without their changes"
    )]
    DamagedLog {
        /// The file.
        path: PathBuf,
        /// Where the field or entry starts that is wrong, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        fault: SnapshotFault,
    },
    /// The files are sound, each for itself.
    #[error("{path:?} and the logs behind it make no state: {fault}")]
    NoState {
        /// The snapshot, or the oldest log.
        path: PathBuf,
        /// What is wrong.
        fault: ImageError,
    },
    /// There are logs, and no snapshot that they go on from.
    #[error(
        "{log:?} has changes, but there is no snapshot, so that the first ones may be missing; \
         the original refuses this too: put the snapshots into {folder:?}, or, if the logs are whole \
         as those of versions before 3.5.3 are, import them with --trust-empty-snapshot"
    )]
    NoSnapshot {
        /// The oldest log.
        log: PathBuf,
        /// Where snapshots are looked for.
        folder: PathBuf,
    },
    /// There is nothing to start from.
    #[error("{dir:?} has no snapshot and no transaction log, and neither has its version-2")]
    Nothing {
        /// Where they were looked for.
        dir: PathBuf,
    },
    /// The system refused.
    #[error("cannot {what} {path:?}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl DataDirError {
    /// For `map_err`.
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

/// What is wrong with a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFault {
    /// The file ends inside something.
    #[error("the file ends {missing} bytes too early")]
    Ends {
        /// How many bytes are missing of what was being read.
        missing: u64,
    },
    /// The file does not start as a snapshot does.
    #[error("starts with {magic:#010x}, a snapshot with 0x5a4b534e (\"ZKSN\")")]
    Magic {
        /// What it starts with.
        magic: u32,
    },
    /// A version of the format that nobody has written yet.
    #[error("version {version} of the format, 2 is the only one known")]
    Version {
        /// The version.
        version: i32,
    },
    /// A length or count below zero.
    #[error("{what} of {value} is negative")]
    Negative {
        /// Of what.
        what: &'static str,
        /// The value.
        value: i32,
    },
    /// A log does not start as one does.
    #[error("starts with {magic:#010x}, a transaction log with 0x5a4b4c47 (\"ZKLG\")")]
    LogMagic {
        /// What it starts with.
        magic: u32,
    },
    /// A kind of change that no version of the original makes.
    #[error("a change of type {kind}, which there is not")]
    TxnType {
        /// The type.
        kind: i32,
    },
    /// An entry of a log makes no sense.
    #[error("an entry that cannot be read: {0}")]
    Txn(#[from] DecodeError),
    /// Null where a path must be.
    #[error("null instead of a path")]
    NullPath,
    /// The checksum is that of other bytes.
    #[error("checksum {found:#x}, the bytes before it have {computed:#x}: they were damaged")]
    Checksum {
        /// The one in the file.
        found: i64,
        /// The one of the bytes in front of it.
        computed: u32,
    },
    /// The checksum in front of an entry is that of other bytes.
    #[error("checksum {found:#x}, the entry behind it has {computed:#x}: it was damaged")]
    EntryChecksum {
        /// The one in the file.
        found: i64,
        /// The one of the entry.
        computed: u32,
    },
    /// The mark behind a checksum is missing.
    #[error("no \"/\" behind a checksum")]
    NoMark,
    /// There is more than a snapshot has.
    #[error("more than a snapshot has")]
    Surplus,
    /// The records make no state.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The system refused.
    #[error("cannot read on: {0}")]
    Io(#[from] io::Error),
}

/// Why the state could not be saved. The save before it is untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The system refused.
    #[error("cannot save the state to {path:?}; the save before it is untouched")]
    Io {
        /// The file that was being written.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A change could not be written to the transaction log, and was not answered.
    #[error(
        "cannot write the transaction log {path:?}, so no change is answered any more; what was \
         answered is saved"
    )]
    Log {
        /// The file that was being written.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A bug has stopped the server, and half a change may have been made.
    #[error("the state is not saved after an internal error; the save before it is untouched")]
    Broken,
    /// The runtime that the server runs on is being shut down.
    #[error("the state is not saved, the runtime has ended; the save before it is untouched")]
    NoRuntime,
}

/// Why the state could not be written as a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// There is something already.
    #[error("{path:?} is there already; write to another directory, or move what is in it away")]
    NotEmpty {
        /// What is there.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {what} {path:?}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A bug has stopped the server, and half a change may have been made.
    #[error("the state is not written after an internal error")]
    Broken,
}
