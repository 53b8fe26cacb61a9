//! Writes a data directory for somebody else.
//!
//! A snapshot is all that an original needs: it goes on with a log of its own.
//!
//! Source: `docs/zookeeper-protocol.md` section 22; the original's `FileTxnSnapLog.restore`.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use minikeeper_protocol::Zxid;

use crate::{
    data::{FOLDER, UNFINISHED, error::ExportError, name, sync_folder},
    files,
};

/// Writes a snapshot into a directory that has none. Gives the zxid in its name.
pub(crate) fn export(dir: &Path, zxid: Zxid, snapshot: &[u8]) -> Result<Zxid, ExportError> {
    let folder = dir.join(FOLDER);
    files::create_private_dir(&folder).map_err(refused("create", &folder))?;
    let mut entries = fs::read_dir(&folder).map_err(refused("list", &folder))?;
    if let Some(entry) = entries.next() {
        let path = entry.map_err(refused("list", &folder))?.path();
        return Err(ExportError::NotEmpty { path });
    }
    // A zxid below zero has no name that could be found again.
    let zxid = zxid.max(Zxid(0));
    let path = folder.join(name::of_snapshot(zxid));
    write(&folder, &path, snapshot).map_err(refused("write", &path))?;
    Ok(zxid)
}

fn write(folder: &Path, path: &Path, snapshot: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(UNFINISHED);
    let mut file = files::create_private(&unfinished)?;
    file.write_all(snapshot)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_folder(folder)
}

fn refused(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.into();
    move |source| ExportError::Io { what, path, source }
}
