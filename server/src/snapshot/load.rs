//! Finds what a data directory holds, and makes the newest state of it.
//!
//! The newest snapshot that is sound is taken, and what the logs say behind it is done once more.
//! A newer snapshot that is not sound is passed over only if the logs reach as far: an original
//! that is killed while it writes one leaves exactly that.
//!
//! Source: reference section 22; the original's `FileTxnSnapLog.restore`, `FileSnap.deserialize`.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use minikeeper_engine::{Engine, Restoration, Settings};
use minikeeper_protocol::Zxid;

use crate::snapshot::{
    BUFFER_BYTES, decode,
    error::{DataDirError, SnapshotFault},
    log,
    name::{self, Kind},
    snappy::Snappy,
};

/// The original's files in a data directory.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Newest first.
    snapshots: Vec<(Kind, Zxid, PathBuf)>,
    /// Oldest first.
    logs: Vec<(Zxid, PathBuf)>,
}

/// A state, and what it was made from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    /// The snapshot.
    pub(crate) snapshot: Option<(Zxid, PathBuf)>,
}

impl Files {
    /// Looks into the folder of the snapshots, and into that of the logs if it is another one.
    pub(crate) fn find(folder: &Path, log_folder: &Path) -> Result<Self, DataDirError> {
        let list = |folder: &Path| list(folder).map_err(DataDirError::io("list", folder));
        let mut all = list(folder)?;
        let mut logs = if log_folder == folder {
            all.clone()
        } else {
            list(log_folder)?
        };
        all.retain(|(kind, ..)| *kind != Kind::Log);
        logs.retain(|(kind, ..)| *kind == Kind::Log);
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

    /// The newest snapshot by its name.
    pub(crate) fn newest_snapshot(&self) -> Option<(Zxid, PathBuf)> {
        let (_, zxid, path) = self.snapshots.first()?;
        Some((*zxid, path.clone()))
    }

    /// The newest state; a fresh one if there is nothing.
    ///
    /// Logs without a snapshot mean that something is missing, unless they come from the first
    /// versions, which wrote none at their start: then `trusts_empty` starts them from nothing.
    pub(crate) fn load(
        &self,
        settings: Settings,
        trusts_empty: bool,
    ) -> Result<Loaded, DataDirError> {
        let mut damaged = None;
        for (kind, zxid, path) in &self.snapshots {
            match read(*kind, *zxid, path, settings.clone()) {
                Ok((restoration, newest)) => {
                    let logged = self.finish(restoration, *zxid, newest, path);
                    return match damaged {
                        Some((wanted, error)) if !reaches(&logged, wanted) => Err(error),
                        _ => Ok(Loaded {
                            engine: logged?,
                            snapshot: Some((*zxid, path.clone())),
                        }),
                    };
                }
                Err(error @ DataDirError::Damaged { .. }) => {
                    tracing::warn!(err = %error, "snapshot passed over");
                    damaged.get_or_insert((*zxid, error));
                }
                Err(error) => return Err(error),
            }
        }
        if let Some((_, error)) = damaged {
            return Err(error);
        }
        let Some((_, oldest)) = self.logs.first() else {
            return Ok(Loaded {
                engine: Engine::new(settings),
                snapshot: None,
            });
        };
        if !trusts_empty {
            return Err(DataDirError::NoSnapshot {
                log: oldest.clone(),
                folder: self.folder.clone(),
            });
        }
        let fresh = Restoration::fresh(settings);
        Ok(Loaded {
            engine: self.finish(fresh, Zxid(0), Zxid(0), oldest)?,
            snapshot: None,
        })
    }

    /// Does what the logs say behind a snapshot; `newest` is what that says of its newest change.
    fn finish(
        &self,
        mut restoration: Restoration,
        snapshot: Zxid,
        newest: Zxid,
        path: &Path,
    ) -> Result<Engine, DataDirError> {
        let logged = log::replay(&self.logs, Zxid(snapshot.0 + 1), &mut restoration)?;
        let newest = newest.max(logged.unwrap_or(newest));
        Engine::restore(restoration, newest).map_err(|fault| DataDirError::NoState {
            path: path.to_owned(),
            fault,
        })
    }
}

fn reaches(engine: &Result<Engine, DataDirError>, wanted: Zxid) -> bool {
    match engine {
        Ok(engine) => engine.zxid() >= wanted,
        Err(_) => true,
    }
}

fn read(
    kind: Kind,
    zxid: Zxid,
    path: &Path,
    settings: Settings,
) -> Result<(Restoration, Zxid), DataDirError> {
    let file = File::open(path).map_err(DataDirError::io("open", path))?;
    let file = BufReader::with_capacity(BUFFER_BYTES, file);
    let input: Box<dyn Read> = match kind {
        Kind::Gzip => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        Kind::Snappy => Box::new(BufReader::new(Snappy::new(file))),
        Kind::Snapshot | Kind::Log => Box::new(file),
    };
    decode::read(input, settings, zxid).map_err(|damage| match damage.fault {
        // Compressed bytes that make no sense are damage, a disk that fails is not.
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

fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// The original's files in a folder, newest first.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(Kind, Zxid, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some((kind, zxid)) = entry.file_name().to_str().and_then(name::parse) {
            files.push((kind, zxid, entry.path()));
        }
    }
    files.sort_by(|(_, a, a_path), (_, b, b_path)| (b, b_path).cmp(&(a, a_path)));
    Ok(files)
}
