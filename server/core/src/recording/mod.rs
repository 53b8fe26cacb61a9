//! Recordings: everything that a universe was given, in order, and what followed.
//!
//! The engine is a function of its inputs, so a recording lists them: messages as they were served,
//! connections, moves of the clock, changes by the administrator, restarts. A fault needs no record
//! of its own for that: what it lost on the way was not served, what it delayed was served later, and
//! the connection that it cut closed.
//!
//! `format` has the records, and `recorder` writes them during turns. [`replay`](crate::replay) gives
//! them to an engine once more.

pub(crate) mod format;
#[expect(
    missing_docs,
    reason = "no user sees its items, and their names say enough"
)]
pub mod recorder;

use std::{error::Error, fmt};

use bytes::Bytes;
use minikeeper_protocol::{DecodeError, Reader};

use self::format::{MAGIC, RawRecord, kind};
pub use self::recorder::RecordingEnd;

/// A recording: see [`Universe::start_recording`](../minikeeper/struct.Universe.html#method.start_recording).
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper::{Recording, Server, replay};
/// use minikeeper_client::{Client, CreateMode};
/// let server = Server::builder().start().await?;
/// server.start_recording(1 << 20)?;
/// let client = Client::connect(&server.connect_string()).await?;
/// client.create("/a", b"x", CreateMode::Ephemeral).await?;
/// let recording = server.stop_recording()?;
/// let again = Recording::from_bytes(recording.to_bytes())?;
/// assert!(replay(&again)?.requests >= 1);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    bytes: Bytes,
    /// What is behind the last whole record. Unit: bytes.
    lacking: usize,
}

impl Recording {
    /// Reads a recording, up to its last whole record.
    ///
    /// # Errors
    /// When the bytes do not begin like a recording, or like one of another version.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, RecordingError> {
        let bytes = bytes.into();
        let (magic, version) = (&MAGIC[..7], MAGIC[7]);
        match bytes.get(..8) {
            Some(first) if first == MAGIC => {}
            Some(first) if first.starts_with(magic) => {
                let found = first[7];
                return Err(RecordingError::Version { found, version });
            }
            _ => return Err(RecordingError::NoRecording),
        }
        let mut rest = bytes.slice(8..);
        let mut is_first = true;
        while let Some(record) = format::next(&mut rest) {
            if is_first && record.kind != kind::START {
                return Err(RecordingError::NoRecording);
            }
            is_first = false;
        }
        if is_first {
            return Err(RecordingError::Empty);
        }
        let lacking = rest.len();
        Ok(Self {
            bytes: bytes.slice(..bytes.len() - lacking),
            lacking,
        })
    }

    /// Returns the bytes, to write them to a file.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Writes a file that only its owner can read, because a recording has passwords of sessions.
    /// Replaces a file of this name: a file that was only overwritten would keep its mode.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[cfg(feature = "control")]
    pub fn save(&self, file: &std::path::Path) -> std::io::Result<()> {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = std::fs::File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        std::io::Write::write_all(&mut options.open(file)?, &self.bytes)
    }

    /// Returns whether something is missing at the end: the bytes end within a record, or without the
    /// record that a stopped recording ends with.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.lacking > 0 || self.end().is_none()
    }

    /// Returns why it ended before it was stopped, such as that the limit was reached.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        let end = self.end()?;
        let why = format::text(&mut Reader::new(&end.body)).ok()?;
        (!why.is_empty()).then_some(why)
    }

    /// Returns the record of the end: without one, what followed from the last cause may be missing.
    fn end(&self) -> Option<RawRecord> {
        self.records().find(|record| record.kind == kind::END)
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = RawRecord> + use<> {
        let mut rest = self.bytes.slice(8..);
        std::iter::from_fn(move || format::next(&mut rest))
    }

    /// Returns each cause with what followed from it. In a recording that breaks off, something may be
    /// missing of what followed from the last one.
    pub(crate) fn steps(&self) -> impl Iterator<Item = RecordedStep> + use<> {
        let is_whole = self.end().is_some();
        let mut records = self
            .records()
            .filter(|record| record.kind < kind::NOTES)
            .peekable();
        std::iter::from_fn(move || {
            let cause = records.next()?;
            let mut effects = Vec::new();
            while let Some(effect) = records.next_if(|next| next.kind >= kind::EFFECTS) {
                effects.push(effect);
            }
            Some(RecordedStep {
                is_whole: is_whole || records.peek().is_some(),
                cause,
                effects,
            })
        })
    }
}

/// A cause with what followed from it.
pub(crate) struct RecordedStep {
    pub(crate) cause: RawRecord,
    pub(crate) effects: Vec<RawRecord>,
    /// Whether these are all effects.
    pub(crate) is_whole: bool,
}

/// Why a recording cannot be made or read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// The bytes are something else.
    NoRecording,
    /// The recording has another version.
    Version {
        /// Its version.
        found: u8,
        /// The version that this program reads.
        version: u8,
    },
    /// Not even the first record is whole.
    Empty,
    /// A record cannot be decoded.
    Damaged {
        /// The number of the record, the first being 1.
        record: u64,
        /// What is wrong with it.
        fault: String,
    },
    /// The server keeps no journal, which recording needs.
    NoJournal,
    /// The limit is too small for the first record, which has the state.
    Limit {
        /// What is needed at least. Unit: bytes.
        needed: usize,
        /// The limit. Unit: bytes.
        bytes_max: usize,
    },
    /// A recording is being made already.
    Running,
    /// No recording is being made in memory.
    NotRunning,
    /// The server has SASL users, whose passwords a recording does not contain.
    Sasl,
    /// The server has stopped.
    Stopped,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecording => f.write_str("not a recording of minikeeper"),
            Self::Version { found, version } => write!(
                f,
                "a recording of version {found}; this program reads version {version}"
            ),
            Self::Empty => f.write_str("the recording ends within its first record"),
            Self::Damaged { record, fault } => {
                write!(f, "record {record} of the recording is damaged: {fault}")
            }
            Self::NoJournal => f.write_str(
                "recording needs the journal, which is off; set journal_bytes (--journal-bytes)",
            ),
            Self::Limit { needed, bytes_max } => write!(
                f,
                "the state alone takes {needed} bytes, more than the limit of {bytes_max} bytes; raise \
                 the limit"
            ),
            Self::Running => f.write_str("a recording is being made; stop it first"),
            Self::NotRunning => f.write_str(
                "no recording is being made in memory; start one first (one in a file ends with its server)",
            ),
            Self::Sasl => f.write_str(
                "a server with SASL users cannot be recorded: a recording has no passwords of users",
            ),
            Self::Stopped => f.write_str("the server has stopped"),
        }
    }
}

impl Error for RecordingError {}

/// Makes an error of a record that cannot be decoded.
pub(crate) fn damaged(record: u64, fault: &dyn fmt::Display) -> RecordingError {
    RecordingError::Damaged {
        record,
        fault: fault.to_string(),
    }
}

pub(crate) const fn null(field: &'static str) -> DecodeError {
    DecodeError::Null { field }
}

#[cfg(all(test, unix, feature = "control"))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    /// A recording has passwords. The mode of a new file was private, that of an overwritten one
    /// stayed what it was.
    #[test]
    fn saved_recording_is_private_whatever_was_there() {
        let dir = std::env::temp_dir().join(format!("minikeeper-saved-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let recording = Recording {
            bytes: Bytes::from_static(&MAGIC),
            lacking: 0,
        };
        let (file, other, link) = (dir.join("a.rec"), dir.join("other"), dir.join("link.rec"));
        for path in [&file, &other] {
            std::fs::write(path, "before").unwrap();
            let open_to_all = std::fs::Permissions::from_mode(0o666);
            std::fs::set_permissions(path, open_to_all).unwrap();
        }
        std::os::unix::fs::symlink(&other, &link).unwrap();
        for path in [&file, &link, &dir.join("new.rec")] {
            recording.save(path).unwrap();
            let saved = std::fs::symlink_metadata(path).unwrap();
            assert!(saved.is_file(), "{path:?}");
            assert_eq!(saved.mode() & 0o777, 0o600, "{path:?}");
            assert_eq!(std::fs::read(path).unwrap(), MAGIC);
        }
        assert_eq!(std::fs::read(&other).unwrap(), b"before");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
