//! The servers that minikeeper is compared with: found in Debian's folders, started on loopback on
//! free ports, each with its own data folder, which is removed when it stops.
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

/// What a server keeps of the data it has acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// The promises of its settings as shipped, on disk.
    AsShipped,
    /// Nothing: data in memory, nothing flushed. The setting with the best times.
    Memory,
}

impl Storage {
    /// Its name in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AsShipped => "as shipped",
            Self::Memory => "kindest",
        }
    }

    /// What survives a crash of the server.
    #[must_use]
    pub const fn durability(self) -> &'static str {
        match self {
            Self::AsShipped => "on disk before the reply",
            Self::Memory => "in memory only",
        }
    }

    /// Creates a folder for its data.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn folder(self, purpose: &str) -> Result<ScratchFolder, Error> {
        match self {
            Self::AsShipped => ScratchFolder::new(purpose),
            Self::Memory => ScratchFolder::in_memory(purpose),
        }
    }
}

/// A temporary folder; removed with its content when dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
}

impl ScratchFolder {
    /// Creates one in the temporary folder.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(purpose: &str) -> Result<Self, Error> {
        Self::below(&std::env::temp_dir(), purpose)
    }

    /// Creates one in memory if the machine has a file system there, so that writes need no disk.
    ///
    /// # Errors
    /// If it cannot be created.
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
        fs::create_dir(&path).context(|| format!("cannot create folder {:?}", path.display()))?;
        Ok(Self { path })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Files left in the temporary folder do no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A server that runs in its own folder; stopped when dropped, and its data removed.
#[derive(Debug)]
pub struct Running {
    // Before the folder: dropped first, as a server without its data would report errors.
    server: Server,
    version: String,
    _folder: ScratchFolder,
}

impl Running {
    /// Starts it, logging to its folder, and calls `version` every 20 ms until it returns one.
    ///
    /// # Errors
    /// The error of `version`; or if the server cannot be started, ends, or has no version within
    /// [`START_LIMIT`](crate::process::START_LIMIT). The text quotes its log.
    fn start(
        folder: ScratchFolder,
        mut command: Command,
        addr: SocketAddr,
        mut version: impl FnMut() -> Result<Option<String>, Error>,
    ) -> Result<Self, Error> {
        let log = folder.path().join("log");
        log_to(&log, &mut command)?;
        let mut found = None;
        let server = Server::start_when(command, addr, || {
            found = version()?;
            Ok(found.as_ref().map(|_| ()))
        })
        .map_err(|error| with_log(&error, &log))?;
        Ok(Self {
            server,
            version: found.unwrap_or_default(),
            _folder: folder,
        })
    }

    /// The address clients connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// The id of its running process.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.server.pid
    }

    /// The version it reports: `3.4.23`, `10.11.19-MariaDB-0+deb12u1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Redirects a program's output to a file.
///
/// # Errors
/// If the file cannot be created.
pub fn log_to(path: &Path, command: &mut Command) -> Result<(), Error> {
    let what = || format!("cannot create log file {:?}", path.display());
    let file = File::create(path).context(what)?;
    command.stderr(file.try_clone().context(what)?);
    command.stdout(Stdio::from(file));
    Ok(())
}

/// Adds lines from the log of the failed program to an error: the last lines that mention errors,
/// or simply the last lines.
#[must_use]
pub fn with_log(error: &Error, path: &Path) -> Error {
    let log = fs::read(path).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().filter(|line| !line.is_empty()).collect();
    let is_error = |line: &&&str| {
        let line = line.to_ascii_lowercase();
        line.contains("error") || line.contains("fatal")
    };
    let shown: Vec<_> = lines.iter().filter(is_error).copied().collect();
    let shown = if shown.is_empty() { lines } else { shown };
    let last = &shown[shown.len().saturating_sub(3)..];
    let text = format!("{}; its log: {}", error.chain(), last.join(" | "));
    Error::Setup(text)
}

/// Finds a program on the path, or in one of Debian's folders for servers.
///
/// # Errors
/// If there is none; the text says how to install it.
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
    fn error_quotes_the_log() {
        let folder = ScratchFolder::new("log-test").unwrap();
        let log = folder.path().join("log");
        let error = Error::Unexpected("it ended".into());
        fs::write(&log, "one\n[ERROR] no room\n\nask the maker\n").unwrap();
        let shown = with_log(&error, &log).to_string();
        assert_eq!(shown, "it ended; its log: [ERROR] no room");
        fs::write(&log, "1\n2\n3\n4\n").unwrap();
        let shown = with_log(&error, &log).to_string();
        assert_eq!(shown, "it ended; its log: 2 | 3 | 4");
    }
}
