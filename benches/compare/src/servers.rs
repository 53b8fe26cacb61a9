//! The servers that are measured beside minikeeper: found where Debian puts them, started on
//! loopback on free ports with a data folder of their own that goes when they stop.
//!
//! | module | server |
//! | --- | --- |
//! | [`etcd`] | etcd, one member |
//! | [`mariadb`] | MariaDB |
//! | [`redis`] | Redis, one or several |
//! | [`zookeeper`] | Apache ZooKeeper, as shipped or with the kindest settings |
//!
//! `benches/compare/install-peers` installs them.

use std::{
    fs,
    fs::File,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{Error, IoContext as _, process::Server};

pub mod etcd;
pub mod mariadb;
pub mod redis;
pub mod zookeeper;

/// What a server keeps of what it has acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// What its settings as shipped promise, on disk.
    AsShipped,
    /// Nothing: data in memory, nothing flushed. The kindest setting to its times.
    Memory,
}

impl Storage {
    /// As tables say it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AsShipped => "as shipped",
            Self::Memory => "kindest",
        }
    }

    /// What is kept through a crash of the server.
    #[must_use]
    pub const fn durability(self) -> &'static str {
        match self {
            Self::AsShipped => "on disk before the answer",
            Self::Memory => "in memory only",
        }
    }

    /// A new folder for its data.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(self, purpose: &str) -> Result<ScratchFolder, Error> {
        match self {
            Self::AsShipped => ScratchFolder::new(purpose),
            Self::Memory => ScratchFolder::in_memory(purpose),
        }
    }
}

/// A folder of our own; removed with all that is in it when dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
}

impl ScratchFolder {
    /// A new one in the temporary folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(purpose: &str) -> Result<Self, Error> {
        Self::below(&std::env::temp_dir(), purpose)
    }

    /// A new one in memory, where the machine has such a place: writes there cost no disk.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn in_memory(purpose: &str) -> Result<Self, Error> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            Self::below(memory, purpose)
        } else {
            Self::new(purpose)
        }
    }

    fn below(parent: &Path, purpose: &str) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("minikeeper-{purpose}-{}-{number}", std::process::id());
        let path = parent.join(name);
        fs::create_dir(&path).context(|| format!("cannot make folder {:?}", path.display()))?;
        Ok(Self { path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Files left behind in the temporary folder do no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A server that runs in a folder of its own; stopped when dropped, and its data removed.
#[derive(Debug)]
pub struct Running {
    // Before the folder: a server whose data goes first complains.
    server: Server,
    version: String,
    _folder: ScratchFolder,
}

impl Running {
    /// Starts it, logging to its folder, and asks `version` every 20 ms until that has one.
    ///
    /// # Errors
    /// The error of `version`; when it cannot be started, ends, or has no version within
    /// [`START_LIMIT`](crate::process::START_LIMIT); the text has what its log says of it.
    fn start(
        folder: ScratchFolder,
        mut command: Command,
        addr: SocketAddr,
        mut version: impl FnMut() -> Result<Option<String>, Error>,
    ) -> Result<Self, Error> {
        let log = folder.path().join("log");
        log_to(&log, &mut command)?;
        let mut said = None;
        let server = Server::start_when(command, addr, || {
            said = version()?;
            Ok(said.as_ref().map(|_| ()))
        })
        .map_err(|error| with_log(&error, &log))?;
        Ok(Self {
            server,
            version: said.unwrap_or_default(),
            _folder: folder,
        })
    }

    /// Where clients reach it.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Its process; it is running.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.server.pid
    }

    /// What it says that it is: `3.4.23`, `10.11.19-MariaDB-0+deb12u1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Sends what a program prints to a file.
///
/// # Errors
/// When the file cannot be made.
pub fn log_to(path: &Path, command: &mut Command) -> Result<(), Error> {
    let what = || format!("cannot make log file {:?}", path.display());
    let file = File::create(path).context(what)?;
    command.stderr(file.try_clone().context(what)?);
    command.stdout(Stdio::from(file));
    Ok(())
}

/// An error with what the log of who failed says of it: its last lines that speak of errors, or
/// just its last.
#[must_use]
pub fn with_log(error: &Error, path: &Path) -> Error {
    let log = fs::read(path).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().filter(|line| !line.is_empty()).collect();
    let is_told = |line: &&&str| {
        let line = line.to_ascii_lowercase();
        line.contains("error") || line.contains("fatal")
    };
    let told: Vec<_> = lines.iter().filter(is_told).copied().collect();
    let shown = if told.is_empty() { lines } else { told };
    let last = &shown[shown.len().saturating_sub(3)..];
    let text = format!("{}; its log says: {}", error.chain(), last.join(" | "));
    Error::Setup(text)
}

/// A program of this name on the path, or in one of the folders where Debian puts servers.
///
/// # Errors
/// When there is none; the text says how to install it.
pub fn program(name: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(more)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            Error::Setup(format!(
                "{name} is not installed; install it with: benches/compare/install-peers"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_what_the_log_says_of_it() {
        let folder = ScratchFolder::new("log-test").unwrap();
        let log = folder.path().join("log");
        let error = Error::Unexpected("it ended".into());
        fs::write(&log, "one\n[ERROR] no room\n\nask the maker\n").unwrap();
        let told = with_log(&error, &log).to_string();
        assert_eq!(told, "it ended; its log says: [ERROR] no room");
        fs::write(&log, "1\n2\n3\n4\n").unwrap();
        let told = with_log(&error, &log).to_string();
        assert_eq!(told, "it ended; its log says: 2 | 3 | 4");
    }
}
