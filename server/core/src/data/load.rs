//! Lists the files of a data directory and loads the newest state from them.
//!
//! Loads the newest sound snapshot and replays the changes that the logs have after it. Skips a
//! damaged snapshot only if the logs reach as far, which is what a ZooKeeper leaves that is killed
//! while it writes a snapshot.
//!
//! Source: `docs/zookeeper-protocol.md` section 22; ZooKeeper's `FileTxnSnapLog.restore`,
//! `FileSnap.deserialize`.

use std::{
    fs,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use minikeeper_engine::{Engine, Restoration, Settings};
use minikeeper_protocol::Zxid;

use crate::{
    data::{
        BUFFER_BYTES,
        error::{DataDirError, SnapshotFault},
        log,
        snappy::Snappy,
        snapshot_file,
    },
    files, order,
};

/// What any compressed snapshot may decompress to. Unit: bytes.
const EXPANDED_BYTES: u64 = 256 << 20;

/// How many times its own size a compressed snapshot may decompress to beyond that. The snapshot of a
/// tree with much the same data everywhere decompresses to 50 times its size, a file that is made to
/// fill the memory to 1,000 times.
const EXPANDED_TIMES: u64 = 100;

/// ZooKeeper's files in a data directory.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Newest first.
    snapshots: Vec<(FileKind, Zxid, PathBuf)>,
    /// Oldest first.
    logs: Vec<(Zxid, PathBuf)>,
}

/// What may be missing when a directory is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Trust {
    /// The snapshot: logs alone are incomplete, unless they come from versions before 3.5.3, which
    /// wrote no snapshot when they first started.
    pub(crate) empty: bool,
    /// Damaged or missing changes, and every change after them.
    pub(crate) damaged: bool,
}

/// A loaded state and the files it came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    /// The snapshot that was loaded.
    pub(crate) snapshot: Option<(Zxid, PathBuf)>,
    /// Whether changes are missing, as `Trust` allows.
    pub(crate) is_short: bool,
    /// The files that were then not read, or not to their end.
    pub(crate) unread: Vec<PathBuf>,
}

impl Files {
    /// Lists the folder of the snapshots and the folder of the logs, which may be the same.
    pub(crate) fn find(folder: &Path, log_folder: &Path) -> Result<Self, DataDirError> {
        let list = |folder: &Path| list(folder).map_err(DataDirError::io("list", folder));
        let mut all = list(folder)?;
        let mut logs = if log_folder == folder {
            all.clone()
        } else {
            list(log_folder)?
        };
        all.retain(|(kind, ..)| *kind != FileKind::Log);
        logs.retain(|(kind, ..)| *kind == FileKind::Log);
        logs.reverse();
        Ok(Self {
            folder: folder.to_owned(),
            snapshots: all,
            logs: logs
                .into_iter()
                .map(|(_, zxid, path)| (zxid, path))
                .collect(),
        })
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.logs.is_empty()
    }

    /// Returns the snapshot with the highest zxid in its name.
    pub(crate) fn newest_snapshot(&self) -> Option<(Zxid, PathBuf)> {
        let (_, zxid, path) = self.snapshots.first()?;
        Some((*zxid, path.clone()))
    }

    /// Returns the highest zxid in the name of any file.
    pub(crate) fn highest(&self) -> Zxid {
        let snapshots = self.snapshots.iter().map(|(_, zxid, _)| *zxid);
        let logs = self.logs.iter().map(|(zxid, _)| *zxid);
        snapshots.chain(logs).max().unwrap_or_default()
    }

    /// Loads the newest state; a fresh one if there are no files. Refuses a state that does not reach
    /// `noted`, unless `trust` allows it.
    pub(crate) fn load(
        &self,
        settings: Settings,
        noted: Zxid,
        trust: Trust,
    ) -> Result<Loaded, DataDirError> {
        let mut damaged = None;
        let mut passed_over = Vec::new();
        for (kind, zxid, path) in &self.snapshots {
            let begin = || read(*kind, *zxid, path, settings.clone());
            match begin() {
                Ok(begun) => {
                    let replayed = self.replay((*zxid, path), begun, begin, trust);
                    let mut loaded = match damaged {
                        None => replayed?,
                        Some((wanted, error)) => match replayed {
                            Ok(loaded) if loaded.engine.zxid() >= wanted => loaded,
                            Ok(loaded) if trust.damaged => Loaded {
                                is_short: true,
                                ..loaded
                            },
                            _ => return Err(error),
                        },
                    };
                    if loaded.engine.zxid() < noted {
                        if !trust.damaged {
                            return Err(self.behind(loaded.engine.zxid(), noted, path));
                        }
                        loaded.is_short = true;
                    }
                    if loaded.is_short {
                        loaded.unread.extend(passed_over);
                    }
                    return Ok(loaded);
                }
                Err(error @ DataDirError::Damaged { .. }) => {
                    tracing::warn!(err = %error, "snapshot passed over");
                    passed_over.push(path.clone());
                    damaged.get_or_insert((*zxid, error));
                }
                Err(error) => return Err(error),
            }
        }
        if let Some((_, error)) = damaged {
            return Err(error);
        }
        let Some((_, oldest)) = self.logs.first() else {
            let is_short = noted > Zxid(0);
            if is_short && !trust.damaged {
                return Err(self.behind(Zxid(0), noted, &self.folder));
            }
            return Ok(Loaded {
                engine: Engine::new(settings),
                snapshot: None,
                is_short,
                unread: Vec::new(),
            });
        };
        if !trust.empty {
            return Err(DataDirError::NoSnapshot {
                log: oldest.clone(),
                folder: self.folder.clone(),
            });
        }
        let begin = || Ok((Restoration::fresh(settings.clone()), Zxid(0)));
        let mut loaded = self.replay((Zxid(0), oldest), begin()?, begin, trust)?;
        loaded.snapshot = None;
        Ok(loaded)
    }

    fn behind(&self, last: Zxid, noted: Zxid, snapshot: &Path) -> DataDirError {
        let path = self.logs.last().map_or(snapshot, |(_, path)| path);
        DataDirError::Behind {
            path: path.to_owned(),
            last,
            noted,
        }
    }

    /// Replays the changes that the logs have after a snapshot. `begun` is the content of the snapshot
    /// and its newest change; `begin` reads them again.
    fn replay(
        &self,
        snapshot: (Zxid, &PathBuf),
        begun: (Restoration, Zxid),
        begin: impl Fn() -> Result<(Restoration, Zxid), DataDirError>,
        trust: Trust,
    ) -> Result<Loaded, DataDirError> {
        let at = (snapshot.0, snapshot.1.as_path());
        let (mut restoration, mut newest) = begun;
        let mut unread = Vec::new();
        let last = match log::replay(&self.logs, at, None, &mut restoration) {
            Ok(last) => last,
            Err(fault) if trust.damaged => {
                tracing::warn!(err = %fault.error, "omits the changes from there on");
                // A log passed over needs its successor, which the next start does not find.
                let lost = fault.passed_over.iter().copied();
                let lost = lost.chain(fault.from.log..self.logs.len());
                unread = lost.map(|log| self.logs[log].1.clone()).collect();
                // Starts again, since half a change may have been made.
                (restoration, newest) = begin()?;
                let replayed = log::replay(&self.logs, at, Some(fault.from), &mut restoration);
                replayed.map_err(|fault| fault.error)?
            }
            Err(fault) => return Err(fault.error),
        };
        let engine = Engine::restore(restoration, newest.max(last));
        Ok(Loaded {
            engine: engine.map_err(|fault| DataDirError::NoState {
                path: snapshot.1.clone(),
                fault,
            })?,
            snapshot: Some((snapshot.0, snapshot.1.clone())),
            is_short: !unread.is_empty(),
            unread,
        })
    }
}

fn read(
    kind: FileKind,
    zxid: Zxid,
    path: &Path,
    settings: Settings,
) -> Result<(Restoration, Zxid), DataDirError> {
    let file = files::open_regular(path).map_err(DataDirError::io("open", path))?;
    let size = file.metadata().map_err(DataDirError::io("read", path))?;
    let file = BufReader::with_capacity(BUFFER_BYTES, file);
    let bytes_max = EXPANDED_BYTES.saturating_add(size.len().saturating_mul(EXPANDED_TIMES));
    let input: Box<dyn Read> = match kind {
        FileKind::Gzip => {
            let input = Expanding::new(MultiGzDecoder::new(file), bytes_max);
            Box::new(BufReader::new(input))
        }
        FileKind::Snappy => {
            let input = Expanding::new(Snappy::new(file), bytes_max);
            Box::new(BufReader::new(input))
        }
        FileKind::Snapshot | FileKind::Log => Box::new(file),
    };
    snapshot_file::read(input, settings, Some(zxid)).map_err(|damage| match damage.fault {
        // Malformed compressed data is damage, a failing disk is not.
        SnapshotFault::Io(source) if !is_damage(&source) => DataDirError::Io {
            what: "read",
            path: path.to_owned(),
            source,
        },
        fault => DataDirError::Damaged {
            path: path.to_owned(),
            offset: damage.offset,
            fault,
        },
    })
}

/// Reads decompressed data up to a limit, so that a small file cannot fill the memory.
struct Expanding<R> {
    input: R,
    bytes_max: u64,
    read: u64,
}

impl<R: Read> Expanding<R> {
    const fn new(input: R, bytes_max: u64) -> Self {
        Self {
            input,
            bytes_max,
            read: 0,
        }
    }
}

impl<R: Read> Read for Expanding<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.read += read as u64;
        if self.read > self.bytes_max {
            let bytes_max = self.bytes_max;
            // Not a fault of the data: the next older snapshot must not take its place.
            return Err(io::Error::other(format!(
                "it decompresses to more than {bytes_max} bytes, which is {EXPANDED_TIMES} times its size and \
                 {} MiB; if the file is what it should be, decompress it before, and remove the compressed one",
                EXPANDED_BYTES >> 20
            )));
        }
        Ok(read)
    }
}

fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Lists ZooKeeper's files in a folder, newest first.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(FileKind, Zxid, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some((kind, zxid)) = entry.file_name().to_str().and_then(parse_name) {
            files.push((kind, zxid, entry.path()));
        }
    }
    order::sort_by(&mut files, |(_, a, a_path), (_, b, b_path)| {
        (b, b_path).cmp(&(a, a_path))
    });
    Ok(files)
}

/// The type of a file in ZooKeeper's data directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    Snapshot,
    /// A snapshot compressed with gzip.
    Gzip,
    /// A snapshot compressed with snappy.
    Snappy,
    Log,
}

/// Returns the type and zxid that a file name states; `None` if it is not one of ZooKeeper's names.
pub(crate) fn parse_name(name: &str) -> Option<(FileKind, Zxid)> {
    let (kind, rest) = name.split_once('.')?;
    let (zxid, kind) = match (kind, rest.split_once('.')) {
        ("snapshot", None) => (rest, FileKind::Snapshot),
        ("snapshot", Some((zxid, "gz"))) => (zxid, FileKind::Gzip),
        ("snapshot", Some((zxid, "snappy"))) => (zxid, FileKind::Snappy),
        ("log", None) => (rest, FileKind::Log),
        _ => return None,
    };
    if !zxid.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    i64::from_str_radix(zxid, 16)
        .ok()
        .map(|zxid| (kind, Zxid(zxid)))
}

/// Returns the name of a snapshot. A name with a negative zxid could not be parsed again.
pub(crate) fn snapshot_name(zxid: Zxid) -> String {
    format!("snapshot.{:x}", zxid.0)
}

/// Returns the name of the log that begins with this change.
pub(crate) fn log_name(zxid: Zxid) -> String {
    format!("log.{:x}", zxid.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zookeeper_file_names_are_recognized() {
        for (name, expected) in [
            ("snapshot.0", Some((FileKind::Snapshot, Zxid(0)))),
            ("snapshot.1a2B", Some((FileKind::Snapshot, Zxid(0x1a2b)))),
            ("snapshot.5.gz", Some((FileKind::Gzip, Zxid(5)))),
            ("snapshot.5.snappy", Some((FileKind::Snappy, Zxid(5)))),
            ("log.7", Some((FileKind::Log, Zxid(7)))),
            ("snapshot.", None),
            ("snapshot.+5", None),
            ("snapshot.-5", None),
            ("snapshot.5.new", None),
            ("snapshot.ffffffffffffffff", None),
            ("snapshot", None),
            ("log.7.gz", None),
            ("acceptedEpoch", None),
        ] {
            assert_eq!(parse_name(name), expected, "{name}");
        }
        assert_eq!(snapshot_name(Zxid(0x1a2b)), "snapshot.1a2b");
        assert_eq!(log_name(Zxid(0x1a2b)), "log.1a2b");
    }
}
