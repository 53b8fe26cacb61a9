//! What can be wrong with a data directory, and with a save.

use std::{io, path::PathBuf};

use minikeeper_engine::ImageError;
use minikeeper_protocol::{DecodeError, Zxid};

/// What can be done about damage.
const REMEDY: &str = "put the file back as it was, or go on with what can be read, without the \
                      changes that cannot (--trust-damaged-data, trust_damaged_data)";

/// Why a data directory cannot be used. Nothing in it has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// Another server uses it.
    #[error("{dir:?} is held by another server; stop that one, or use another directory")]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The newest snapshot makes no sense.
    #[error("{path:?} at byte {offset}: {fault}; {REMEDY}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the field starts that is wrong, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        fault: SnapshotFault,
    },
    /// A transaction log makes no sense.
    #[error("{path:?} at byte {offset}: {fault}; {REMEDY}")]
    DamagedLog {
        /// The file.
        path: PathBuf,
        /// Where the field or entry starts that is wrong, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        fault: SnapshotFault,
    },
    /// The changes between two entries of the logs are missing, or those behind a snapshot.
    #[error(
        "{path:?} at byte {offset}: change {found} does not follow {last}, the last one in \
         {before:?}: a file is missing, or was cut off; {REMEDY}"
    )]
    LogGap {
        /// The log.
        path: PathBuf,
        /// Where its entry starts, in bytes from the start of the file.
        offset: u64,
        /// The change that the entry is about.
        found: Zxid,
        /// The last change before it that was found.
        last: Zxid,
        /// The file that has that one.
        before: PathBuf,
    },
    /// The newest files are missing, or were cut off.
    #[error(
        "{path:?} ends with change {last}, but the server that ran last had kept all up to \
         {noted}: a file is missing, or was cut off; {REMEDY}"
    )]
    Behind {
        /// The file that has the newest change.
        path: PathBuf,
        /// The newest change.
        last: Zxid,
        /// What `minikeeper.lock` says of the newest change.
        noted: Zxid,
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
         ZooKeeper refuses this too: put the snapshots into {folder:?}, or, if the logs are whole \
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
    /// A version of the format that no ZooKeeper has written yet.
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
    /// A kind of change that no version of ZooKeeper makes.
    #[error("unknown transaction type {kind}")]
    TxnType {
        /// The type.
        kind: i32,
    },
    /// An entry of a log makes no sense.
    #[error("unreadable entry: {0}")]
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
    /// An entry of a log without a byte.
    #[error("an entry without a byte, and more behind it: it was damaged")]
    EntryEmpty,
    /// The byte behind an entry is another one.
    #[error("the entry ends with {found:#04x} instead of 0x42 (\"B\"): it was damaged")]
    EntryEnd {
        /// The byte.
        found: u8,
    },
    /// The length of an entry is wrong, and nothing else.
    #[error("a wrong length of an entry that has {bytes} bytes: it was damaged")]
    EntryLength {
        /// Its real length.
        bytes: usize,
    },
    /// An entry that cannot be read stands before one that can.
    #[error("unreadable entry, though the one at byte {at} can: it was damaged")]
    EntryBeforeSound {
        /// Where that starts, in bytes from the start of the file.
        at: u64,
    },
    /// A log is named by another change than its first one.
    #[error("the first change is {zxid}, unlike the name of the file")]
    LogName {
        /// Its first change.
        zxid: Zxid,
    },
    /// A snapshot is named by another change than its newest one.
    #[error("the newest change is {zxid}, unlike the name of the file")]
    SnapshotName {
        /// Its newest change.
        zxid: Zxid,
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

/// Why the state could not be saved. The previous save is untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The system refused.
    #[error("cannot save the state to {path:?}; the previous save is untouched")]
    Io {
        /// The file that was being written.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The directory is not where it was.
    #[error(
        "cannot save the state to {path:?}, since the directory was deleted or replaced while the \
         server ran; put it back, or export the state to another one"
    )]
    Gone {
        /// The directory.
        path: PathBuf,
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
    /// The transaction log, or the directory that it is in, is not where it was.
    #[error(
        "the transaction log {path:?} was deleted or replaced while the server ran, so no change is \
         answered any more"
    )]
    LogGone {
        /// The log, or the directory.
        path: PathBuf,
    },
    /// A bug has stopped the server, and half a change may have been made.
    #[error("the state is not saved after an internal error; the previous save is untouched")]
    Broken,
    /// The runtime that the server runs on is being shut down.
    #[error("the state is not saved, the runtime has ended; the previous save is untouched")]
    NoRuntime,
}

/// Why a server cannot start from a state that it was given, saved or told to import.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The data directory cannot be used, or what is in it not be loaded.
    #[error("cannot use data_dir {dir:?}")]
    DataDir {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        source: DataDirError,
    },
    /// What is there at the start could not be saved, for a log to go on from.
    #[error("cannot save the initial state")]
    Save(#[source] SaveError),
    /// The state to start with does not fit the settings.
    #[error("cannot start from the given state: {0}")]
    State(SnapshotFault),
    /// The state to start with cannot be taken from where the settings say.
    #[error("cannot import {dir:?}")]
    Import {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        source: DataDirError,
    },
    /// Two states to start with.
    #[error(
        "cannot import {import:?}, since data_dir {dir:?} has a state already; leave the import \
         out to go on with that, or use an empty data_dir"
    )]
    ImportToo {
        /// What was to be imported.
        import: PathBuf,
        /// The directory that is in use.
        dir: PathBuf,
    },
    /// A state to start with was given, and a directory to load one from.
    #[error("a state to start from and data_dir {dir:?} are both set; set one of them")]
    TwoStates {
        /// The directory.
        dir: PathBuf,
    },
}

/// Why a server cannot go on in a data directory that it has loaded.
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
    /// There is something already.
    #[error("{path:?} already exists; export to an empty directory")]
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
