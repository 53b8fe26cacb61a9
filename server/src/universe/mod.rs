//! A universe: one tree with its sessions and clock, and the API that tests use.
//!
//! [`Universe`] is a handle on a [`state`](minikeeper_core::state). Its methods are grouped by what they act on,
//! one file each: `time`, `sessions`, `waiting`, `faults`, `seeding` (the tree as a value),
//! `snapshots` (going back), `restarting`, `ensemble` (its servers), `import_export` (data
//! directories), `changes` (single changes by a test), `inspect`, `journal`, `recording`, `locks`,
//! `resources`, `story`, and `universes`, which creates, forks and drops universes.
//!
//! `panics` reports the story of a failed test, and `flush_wait` waits until events reach their
//! sockets.

pub(crate) mod changes;
pub(crate) mod ensemble;
pub(crate) mod faults;
mod flush_wait;
#[cfg(feature = "data")]
mod import_export;
pub(crate) mod inspect;
mod journal;
mod locks;
pub(crate) mod panics;
mod recording;
pub(crate) mod resources;
mod restarting;
pub(crate) mod seeding;
mod sessions;
mod snapshots;
mod story;
#[cfg(test)]
mod tests;
mod time;
mod universes;
mod waiting;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

pub use minikeeper_core::state::registry::UniverseError;

use minikeeper_core::{limits::LimitCounts, net::local::LocalStream, state::UniverseState};

pub use self::{
    journal::JournalTail,
    restarting::RestartError,
    seeding::Seeded,
    snapshots::{Change, Changes, RestoreError, Snapshot},
    universes::UniverseGuard,
    waiting::WaitError,
};

/// A tree with its own sessions and clock. A [`Server`](crate::Server) has one from the start.
///
/// A handle, cheap to clone.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = minikeeper::Server::builder().start().await?;
/// let universe = server.universe().clone();
/// assert_eq!(universe.sessions(), []);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Universe {
    pub(crate) shared: Arc<UniverseState>,
    /// The server's own universe, which may be this one.
    root: Arc<UniverseState>,
}

impl Universe {
    pub(crate) fn root(shared: Arc<UniverseState>) -> Self {
        Self {
            root: Arc::clone(&shared),
            shared,
        }
    }

    /// Returns the connection string for ZooKeeper clients: the address of each
    /// [server](crate::Config::servers), and the chroot that names the universe.
    #[must_use]
    pub fn connect_string(&self) -> String {
        let addresses = self.root.server.ensemble.client_addresses();
        let addresses: Vec<_> = addresses.map(|at| reachable(at).to_string()).collect();
        addresses.join(",") + self.shared.turns.prefix()
    }

    /// Returns the address that serves control over HTTP without TLS, if any: a port of its own, or
    /// the clients' port.
    #[cfg(feature = "control")]
    #[must_use]
    pub fn control_addr(&self) -> Option<SocketAddr> {
        let config = &self.root.config;
        let is_there = config.control.is_enabled && config.has_plain_port();
        let clients = is_there.then_some(config.listen);
        config.control.listen.or(clients).map(reachable)
    }

    /// Opens a connection inside the process: the same protocol as over TCP, without a socket.
    ///
    /// Requests are served as they are written, on the writing task. To use another universe than
    /// the server's own, begin paths with its name, as over TCP.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let mut connection = server.local();
    /// connection.write_all(b"ruok").await?;
    /// let mut answer = String::new();
    /// connection.read_to_string(&mut answer).await?;
    /// assert_eq!(answer, "imok");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn local(&self) -> LocalStream {
        LocalStream::new(&self.root)
    }

    /// Returns the number of open connections, in-process ones included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.turns.connections()
    }

    /// Returns how often each limit was reached, since the start or since the four-letter word
    /// `srst`.
    #[must_use]
    pub fn limit_counts(&self) -> LimitCounts {
        let hits = self.shared.turns.read(|locked| locked.counters.limit_hits);
        self.shared.limits.counts(hits)
    }
}

/// Returns an address at which clients reach a server that listens at this one.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => return listen,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}
