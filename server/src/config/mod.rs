//! Settings: the table of all of them, the check whether they make sense, JAAS files.
//!
//! [`settings`] declares each setting once. The program reads its options and its `zoo.cfg` from
//! the same table.

mod checks;
#[cfg(feature = "sasl")]
pub(crate) mod jaas;
pub mod settings;

use std::net::SocketAddr;

#[cfg(feature = "control")]
use minikeeper_engine::Secret;

pub use self::{checks::ConfigError, settings::Config};

/// Unit: bytes.
const REPLY_BYTES_MAX_DEFAULT: usize = 64 << 20;

impl Config {
    pub(crate) fn timeout_min_ms(&self) -> u32 {
        self.session_timeout_min_ms
            .unwrap_or_else(|| self.tick_time_ms.saturating_mul(2))
    }

    pub(crate) fn timeout_max_ms(&self) -> u32 {
        self.session_timeout_max_ms
            .unwrap_or_else(|| self.tick_time_ms.saturating_mul(20))
    }

    /// Whether clients are served without TLS.
    pub(crate) const fn has_plain_port(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.secure_only {
            return false;
        }
        true
    }

    /// Where clients connect: without TLS, unless there is no such port.
    pub(crate) fn client_addr(&self) -> SocketAddr {
        #[cfg(feature = "tls")]
        if let Some(address) = self.secure_listen.filter(|_| self.secure_only) {
            return address;
        }
        self.listen
    }

    /// The port for clients without TLS, as ZooKeeper names it: -1 for none.
    pub(crate) fn plain_port(&self) -> i32 {
        if self.has_plain_port() {
            self.listen.port().into()
        } else {
            -1
        }
    }

    /// The longest reply. Unit: bytes.
    pub(crate) fn reply_bytes_max(&self) -> usize {
        self.reply_bytes_max
            .unwrap_or_else(|| REPLY_BYTES_MAX_DEFAULT.max(self.reply_bytes_min()))
    }

    /// A limit of replies under which every change can be answered: from the shortest operation of
    /// a multi, 22 bytes of setData, follows a result of 77. Unit: bytes.
    pub(crate) const fn reply_bytes_min(&self) -> usize {
        self.frame_bytes_max
            .saturating_mul(4)
            .saturating_add(1 << 10)
    }

    /// The port for clients over TLS, as ZooKeeper names it: -1 for none.
    pub(crate) fn secure_port(&self) -> i32 {
        #[cfg(feature = "tls")]
        if let Some(address) = self.secure_listen {
            return address.port().into();
        }
        -1
    }
}

/// Whether control over HTTP is on, and which clients may use it.
///
/// A request is served only from this machine, and only if it names the server by an address or
/// as `localhost` and comes from no web page; with a token set, only if it shows the token, and
/// then from anywhere.
#[cfg(feature = "control")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControlConfig {
    /// Whether HTTP requests on the clients' port are answered. Default: no, their bytes are what
    /// they always were: the start of a frame that is too long.
    pub is_enabled: bool,
    /// An address of control's own, where HTTP alone is answered, also while the server is
    /// [down](crate::Universe::go_down); the clients' port may answer too. Port 0 takes a free one.
    /// Default: none. A server that a request takes down opens one then, at the address the request
    /// came to, until it comes up.
    pub listen: Option<SocketAddr>,
    /// What a request has to show as `Authorization: Bearer TOKEN`: printable ASCII without blanks,
    /// at least one character. No minimum beyond that, because at most
    /// [`WRONG_TOKENS_MAX`](Self::WRONG_TOKENS_MAX) can be tried in a second; 32 random characters
    /// are plenty. Default: nothing, only this machine is served.
    pub token: Option<Secret>,
    /// The largest body accepted. Unit: bytes. Default: 64 MiB.
    pub body_bytes_max: usize,
}

#[cfg(feature = "control")]
impl ControlConfig {
    /// How many wrong tokens are looked at in a second, of all clients together. Beyond that every
    /// request with a token is answered with status 429 until the second is over, so that no
    /// client finds a token by trying.
    pub const WRONG_TOKENS_MAX: usize = 16;
}

#[cfg(feature = "control")]
impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            is_enabled: false,
            listen: None,
            token: None,
            body_bytes_max: 64 << 20,
        }
    }
}

/// What a crash keeps of the changes since the last save.
#[cfg(feature = "data")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TxnLog {
    /// Nothing: there is no log.
    #[default]
    Off,
    /// All that were answered, if the process is killed: each change is written to a log before
    /// any client hears of it. A machine that loses its power may lose the newest ones.
    Write,
    /// All changes with a reply, even then: each is synced to disk, as in ZooKeeper. That takes the
    /// time of the disk, once for the requests that one connection has sent together, and no client
    /// is served in that time.
    Sync,
}
