//! Settings: the table of all settings, the check that they are valid, JAAS files.
//!
//! [`settings`] declares each setting once. The program reads its options and its `zoo.cfg` from
//! the same table. `checks` says whether they are valid together, `engine` derives the engine's
//! settings, [`stories`] says when to report a failed test, and `jaas` reads SASL users from a file.

mod checks;
mod engine;
#[cfg(feature = "sasl")]
pub mod jaas;
pub mod settings;
pub mod stories;

use std::net::SocketAddr;

#[cfg(feature = "control")]
use minikeeper_engine::Secret;

use crate::ensemble::ServerAddresses;

pub use self::{checks::ConfigError, settings::Config};

/// The default limit of replies. Unit: bytes.
const REPLY_BYTES_MAX_DEFAULT: usize = 64 << 20;

impl Config {
    /// Returns the shortest session timeout that a client is granted: two ticks, if it is not set.
    pub fn timeout_min_ms(&self) -> u32 {
        self.session_timeout_min_ms
            .unwrap_or_else(|| self.tick_time_ms.saturating_mul(2))
    }

    /// Returns the longest session timeout that a client is granted: twenty ticks, if it is not set.
    pub fn timeout_max_ms(&self) -> u32 {
        self.session_timeout_max_ms
            .unwrap_or_else(|| self.tick_time_ms.saturating_mul(20))
    }

    /// Returns the addresses of each server: those after the first one have the ports after its ports.
    pub(crate) fn wanted_addresses(&self) -> Vec<ServerAddresses> {
        let nth =
            |first: SocketAddr, n: u16| SocketAddr::new(first.ip(), first.port().saturating_add(n));
        let servers = u16::try_from(self.servers).unwrap_or(u16::MAX);
        let secure = self.secure_address();
        let addresses = |n| ServerAddresses {
            plain: self.has_plain_port().then(|| nth(self.listen, n)),
            secure: secure.map(|first| nth(first, n)),
        };
        (0..servers).map(addresses).collect()
    }

    /// Returns whether clients are served without TLS.
    pub const fn has_plain_port(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.secure_only {
            return false;
        }
        true
    }

    /// Returns the address where clients connect: without TLS, unless there is no such port.
    pub fn client_addr(&self) -> SocketAddr {
        #[cfg(feature = "tls")]
        if let Some(address) = self.secure_listen.filter(|_| self.secure_only) {
            return address;
        }
        self.listen
    }

    /// Returns the address for clients over TLS.
    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_self, reason = "with `tls` it looks at the settings")
    )]
    pub(crate) const fn secure_address(&self) -> Option<SocketAddr> {
        #[cfg(feature = "tls")]
        return self.secure_listen;
        #[cfg(not(feature = "tls"))]
        None
    }

    /// Returns the limit of replies. Unit: bytes.
    pub fn reply_bytes_max(&self) -> usize {
        self.reply_bytes_max
            .unwrap_or_else(|| REPLY_BYTES_MAX_DEFAULT.max(self.reply_bytes_min()))
    }

    /// Returns the path of the saved state, and its size in bytes.
    pub fn data_place(&self) -> (String, u64) {
        #[cfg(feature = "data")]
        return crate::data::place(self.data_dir.as_deref());
        #[cfg(not(feature = "data"))]
        (String::new(), 0)
    }

    /// The size of a universe's journal if [`Config::journal_bytes`] is not set. Unit: bytes.
    pub const JOURNAL_BYTES: usize = 4 << 20;

    /// Returns the size of a universe's journal. Unit: bytes.
    pub fn journal_size(&self) -> usize {
        self.journal_bytes.unwrap_or(Self::JOURNAL_BYTES)
    }

    /// Returns the least limit of replies with which every change can be answered: the shortest
    /// operation of a multi, a setData of 22 bytes, has a result of 77 bytes. Unit: bytes.
    pub(crate) const fn reply_bytes_min(&self) -> usize {
        self.frame_bytes_max
            .saturating_mul(4)
            .saturating_add(1 << 10)
    }
}

/// Whether control over HTTP is on, and which clients may use it.
///
/// Without a token, serves only requests from this machine that name the server by an address or as
/// `localhost` and do not come from a web page. With a token, serves requests with that token, from
/// any machine.
#[cfg(feature = "control")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControlConfig {
    /// Whether the clients' port answers HTTP requests. Default: no; their bytes are then treated as
    /// the start of a frame that is too long.
    pub is_enabled: bool,
    /// A separate address that answers only HTTP, even while the server is
    /// [down](../minikeeper/struct.Universe.html#method.go_down). The clients' port may answer HTTP too. Port 0 takes a free
    /// port. Default: none. If a request then takes the server down, the server listens on a temporary
    /// port, at the address that the request came to, until it comes up.
    pub listen: Option<SocketAddr>,
    /// The token that requests must send as `Authorization: Bearer TOKEN`: one or more characters of
    /// printable ASCII without blanks. There is no other minimum, because a second allows at most
    /// [`WRONG_TOKENS_MAX`](Self::WRONG_TOKENS_MAX) attempts; 32 random characters are plenty.
    /// Default: none, and only this machine is served.
    pub token: Option<Secret>,
    /// Whether the verbs `export_data` and `import_data` may write and read directories of this
    /// machine. Default: yes. The program allows it only if the user asks for control.
    pub allows_directories: bool,
    /// The largest body accepted. Unit: bytes. Default: 64 MiB.
    pub body_bytes_max: usize,
}

#[cfg(feature = "control")]
impl ControlConfig {
    /// The limit of wrong tokens in a second, from all clients together. Beyond it every request with a
    /// token gets status 429 for the rest of the second, so that no client can guess the token.
    pub const WRONG_TOKENS_MAX: usize = 16;

    /// Returns whether any port answers control requests.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.is_enabled || self.listen.is_some()
    }
}

#[cfg(feature = "control")]
impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            is_enabled: false,
            listen: None,
            token: None,
            allows_directories: true,
            body_bytes_max: 64 << 20,
        }
    }
}

/// Which changes since the last save survive a crash.
#[cfg(feature = "data")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TxnLog {
    /// None: there is no log.
    #[default]
    Off,
    /// All changes with a reply, if the process is killed: each change is written to a log before
    /// any client sees it. If the machine loses power, the newest changes may be lost.
    Write,
    /// All changes with a reply, even if the machine loses power: each is synced to disk, as in
    /// ZooKeeper. The sync happens once for the requests that one connection has sent together, and no
    /// client is served meanwhile.
    Sync,
}
