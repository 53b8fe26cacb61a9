//! The servers of an ensemble: several addresses in front of one engine, so that tests can make
//! clients fail over.
//!
//! There is one state and no consensus: a change that one server has answered is visible on all, and
//! no quorum is needed to serve.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU8, Ordering},
};

/// What a server of the ensemble does for its clients.
///
/// # Examples
/// ```
/// use minikeeper::ServerMode;
/// assert_eq!(ServerMode::from_name("cut-off"), Some(ServerMode::CutOff));
/// assert_eq!(ServerMode::ReadOnly.name(), "read-only");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ServerMode {
    /// `up`: serves requests.
    Up,
    /// `down`: does not listen. Its clients are disconnected, and others are refused.
    Down,
    /// `cut-off`: reads nothing from its clients and sends them nothing, as behind a network that
    /// loses every packet. It accepts connections, which get no answer. Their sessions count as
    /// silent. Once it is up again, connections that are still open continue. Requests to control are
    /// served all the same.
    CutOff,
    /// `read-only`: serves reads, to clients that accept a read-only server (`canBeReadOnly`);
    /// others are disconnected. A change gets the error NOTREADONLY. What it serves is the current
    /// state, and sessions that begin here are sessions of the ensemble.
    ReadOnly,
}

impl ServerMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Up, Self::Down, Self::CutOff, Self::ReadOnly];

    /// Returns the name: `up`, `down`, `cut-off` or `read-only`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::CutOff => "cut-off",
            Self::ReadOnly => "read-only",
        }
    }

    /// Returns the mode with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Where one server of the ensemble listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerAddresses {
    /// For clients without TLS.
    pub plain: Option<SocketAddr>,
    /// For TLS.
    pub secure: Option<SocketAddr>,
}

impl ServerAddresses {
    /// Returns the address that clients connect to: without TLS, unless there is no such port.
    pub fn client(self) -> SocketAddr {
        self.plain
            .or(self.secure)
            .expect("every server has an address")
    }
}

/// The servers and their modes.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<EnsembleServer>,
    /// The server that was made the leader; 0 for none.
    appointed: AtomicU8,
    /// Held while a server changes its mode.
    pub changing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct EnsembleServer {
    addresses: ServerAddresses,
    /// The place of its mode in [`ServerMode::ALL`].
    mode: AtomicU8,
}

impl Ensemble {
    /// Creates an ensemble of servers that are up, numbered from 1.
    pub fn new(addresses: Vec<ServerAddresses>) -> Self {
        let server = |addresses| EnsembleServer {
            addresses,
            mode: AtomicU8::new(0),
        };
        Self {
            servers: addresses.into_iter().map(server).collect(),
            appointed: AtomicU8::new(0),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the numbers of the servers.
    pub fn ids(&self) -> impl Iterator<Item = u8> + use<> {
        (1..=u8::MAX).take(self.servers.len())
    }

    /// Returns the number of servers.
    pub const fn size(&self) -> usize {
        self.servers.len()
    }

    fn server(&self, id: u8) -> Option<&EnsembleServer> {
        self.servers.get(usize::from(id).checked_sub(1)?)
    }

    /// Returns the mode of a server; up for a number that no server has.
    pub fn mode(&self, id: u8) -> ServerMode {
        let place = self
            .server(id)
            .map_or(0, |server| server.mode.load(Ordering::Acquire));
        ServerMode::ALL[usize::from(place)]
    }

    /// Sets the mode of a server; does nothing for a number that no server has.
    pub fn set_mode(&self, id: u8, mode: ServerMode) {
        let place = ServerMode::ALL.iter().position(|other| *other == mode);
        if let (Some(server), Some(place)) = (self.server(id), place) {
            server.mode.store(place.to_le_bytes()[0], Ordering::Release);
        }
    }

    /// Returns the leader: the appointed server while it is up, otherwise the first that is.
    pub fn leader(&self) -> Option<u8> {
        let is_up = |id: &u8| self.mode(*id) == ServerMode::Up;
        let appointed = Some(self.appointed.load(Ordering::Acquire)).filter(|id| *id > 0);
        appointed.filter(is_up).or_else(|| self.ids().find(is_up))
    }

    /// Appoints the leader, which leads while it is up.
    pub fn appoint(&self, id: u8) {
        self.appointed.store(id, Ordering::Release);
    }

    /// Returns what a server says of its role, in ZooKeeper's words.
    pub fn role(&self, id: u8) -> &'static str {
        if self.mode(id) == ServerMode::ReadOnly {
            "read-only"
        } else if self.size() == 1 {
            "standalone"
        } else if self.leader() == Some(id) {
            "leader"
        } else {
            "follower"
        }
    }

    /// Returns the number that a server gives as its own: 0 for the only one, as ZooKeeper does.
    pub fn server_id(&self, id: u8) -> u8 {
        if self.size() == 1 { 0 } else { id }
    }

    /// Returns the server that listens at an address without TLS; the first for any other.
    #[cfg(feature = "control")]
    pub fn at(&self, address: SocketAddr) -> u8 {
        let is_there = |id: &u8| {
            let plain = self.addresses(*id).plain;
            plain.is_some_and(|plain| plain.port() == address.port())
        };
        self.ids().find(is_there).unwrap_or(1)
    }

    /// Returns where a server listens; nowhere for a number that no server has.
    pub fn addresses(&self, id: u8) -> ServerAddresses {
        self.server(id)
            .map_or_else(ServerAddresses::default, |server| server.addresses)
    }

    /// Returns the addresses that clients connect to, in the order of the servers.
    pub fn client_addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.servers.iter().map(|server| server.addresses.client())
    }
}
