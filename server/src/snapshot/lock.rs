//! One server a data directory: a file that is locked while the server lives.
//!
//! The file also tells how the last server ended. One that was killed may have answered clients
//! with zxids above its last save, and a client is turned away by a server that is behind what it
//! has seen (reference section 14.7); so the next server goes on above anything the killed one
//! can have reached.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    path::Path,
};

use crate::snapshot::error::DataDirError;

/// The name of the file, beside the original's `version-2`.
const NAME: &str = "minikeeper.lock";

/// How many servers in a row are believed to have been killed. Bounds what is skipped.
const KILLED_MAX: u32 = 1 << 20;

const SAVED: &str = "saved";
const RUNNING: &str = "running";

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// How many servers in a row did not get to save when they ended.
    killed: u32,
}

impl Lock {
    pub(crate) fn take(dir: &Path) -> Result<Self, DataDirError> {
        let path = dir.join(NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(DataDirError::io("open", &path))?;
        if !try_lock(&file).map_err(DataDirError::io("lock", &path))? {
            return Err(DataDirError::Locked { lock: path });
        }
        let mut text = Vec::new();
        (&mut file)
            .take(64)
            .read_to_end(&mut text)
            .map_err(DataDirError::io("read", &path))?;
        let killed = killed(&String::from_utf8_lossy(&text));
        Ok(Self { file, killed })
    }

    /// How many servers in a row did not get to save when they ended.
    pub(crate) const fn killed(&self) -> u32 {
        self.killed
    }

    /// Notes that from here on clients may see more than is saved.
    pub(crate) fn note_running(&mut self) -> io::Result<()> {
        self.note(&format!("{RUNNING} {}\n", self.killed))
    }

    /// Notes that everything is saved.
    pub(crate) fn note_saved(&mut self) -> io::Result<()> {
        self.note(&format!("{SAVED}\n"))
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()
    }
}

/// One more than before if the last server was still running; something unknown, as half a note
/// would be, counts as that too.
fn killed(text: &str) -> u32 {
    match text.trim() {
        "" | SAVED => 0,
        text => {
            let before = text.strip_prefix(RUNNING).unwrap_or_default().trim();
            before.parse().unwrap_or(0).min(KILLED_MAX) + 1
        }
    }
}

#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<bool> {
    use rustix::{
        fs::{FlockOperation, flock},
        io::Errno,
    };
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn try_lock(_: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_did_not_save_counts_as_killed() {
        for (text, expected) in [
            ("", 0),
            ("saved\n", 0),
            ("running 0\n", 1),
            ("running 7\n", 8),
            ("running 99999999999\n", 1),
            ("running 4000000000\n", KILLED_MAX + 1),
            ("runn", 1),
            ("something else", 1),
        ] {
            assert_eq!(killed(text), expected, "{text:?}");
        }
    }
}
