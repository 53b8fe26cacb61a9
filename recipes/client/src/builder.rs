//! Settings of a client, and its start.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{Ustring, ZnodePath, frame};

use crate::{
    client::Client,
    core::{
        hosts::{ConnectString, ConnectStringError},
        input::Settings,
    },
    driver::Driver,
    error::Error,
    shared::Shared,
    transport::{Tcp, Transport},
};

/// Settings of a client. Made by [`Client::builder`].
#[must_use = "a builder does nothing before it connects"]
pub struct ClientBuilder {
    at: ConnectString,
    settings: Settings,
    connection_timeout: Duration,
    transport: Box<dyn Transport>,
    identities: Vec<(String, Vec<u8>)>,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Identities are secrets.
        f.debug_struct("ClientBuilder")
            .field("at", &self.at)
            .field("settings", &self.settings)
            .field("connection_timeout", &self.connection_timeout)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn new(connect_string: &str) -> Result<Self, ConnectStringError> {
        let at: ConnectString = connect_string.parse()?;
        let settings = Settings {
            session_timeout: Duration::from_secs(60),
            hosts: at.hosts().len(),
            connect_timeout: None,
            close_wait: Duration::from_secs(1),
            read_only: false,
            frame_bytes_max: frame::BYTES_MAX_DEFAULT,
            seed: RandomState::new().hash_one(connect_string),
        };
        Ok(Self {
            at,
            settings,
            connection_timeout: Duration::from_secs(15),
            transport: Box::new(Tcp),
            identities: Vec::new(),
        })
    }

    /// How long the session lives on without hearing from the client. The server may grant
    /// another.
    ///
    /// Unit: whole milliseconds. Default: 60 s, as in Curator. Range, by the server: 2 to 20 ticks.
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// How long [`ClientBuilder::connect`] waits for the first session.
    ///
    /// Default: 15 s, as in Curator.
    pub const fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.connection_timeout = timeout;
        self
    }

    /// How long one server may take to accept the connection and answer the handshake.
    ///
    /// Default: the session timeout divided by the number of servers.
    pub const fn server_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = Some(timeout);
        self
    }

    /// How long [`Client::close`] waits for pending clean-up and for the server's answer.
    ///
    /// Default: 1 s, as in Curator.
    pub const fn close_wait(mut self, wait: Duration) -> Self {
        self.settings.close_wait = wait;
        self
    }

    /// Whether a server will do that takes no changes. Locks need one that does.
    ///
    /// Default: false.
    pub const fn allow_read_only(mut self, allow: bool) -> Self {
        self.settings.read_only = allow;
        self
    }

    /// The largest message in both directions.
    ///
    /// Unit: bytes. Default: 1,048,575. Source: `jute.maxbuffer` of the original.
    pub const fn frame_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.frame_bytes_max = bytes;
        self
    }

    /// What the order of servers and the jitter of waits follow from, for runs that must repeat.
    ///
    /// Default: drawn by chance.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Another way to reach servers than TCP.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Box::new(transport);
        self
    }

    /// Says who this client is, on every connection: scheme `digest` with `name:password`, or
    /// another the servers know.
    pub fn identity(mut self, scheme: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        self.identities.push((scheme.into(), data.into()));
        self
    }

    /// Starts the client on the current runtime and waits for its first session.
    ///
    /// # Errors
    /// [`Error::NotConnected`] when no server has answered in time; the client is closed then.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(self) -> Result<Client, Error> {
        let within = self.connection_timeout;
        let (client, driver) = self.build();
        tokio::spawn(driver.run());
        if let Err(error) = client.connected(within).await {
            client.stop();
            return Err(error);
        }
        Ok(client)
    }

    /// Makes the client, and the future that drives it, for whoever wants to poll it himself.
    pub fn build(self) -> (Client, Driver) {
        let hosts = self.at.hosts().to_vec();
        let chroot = self.at.chroot().and_then(|path| ZnodePath::new(path).ok());
        let shared = Arc::new(Shared::new(self.settings, chroot, hosts.join(",")));
        for (scheme, data) in self.identities {
            shared.look(|inner| {
                inner
                    .core
                    .know_identity(Ustring::from(scheme), Bytes::from(data));
            });
        }
        let driver = Driver::new(Arc::clone(&shared), self.transport, hosts);
        (Client::new(shared), driver)
    }
}

impl Client {
    /// Connects with the default settings, see [`ClientBuilder::connect`].
    ///
    /// # Errors
    /// When the connect string makes no sense, or no server answers.
    pub async fn connect(connect_string: &str) -> Result<Self, ConnectError> {
        Ok(Self::builder(connect_string)?.connect().await?)
    }

    /// Starts to set up a client for `host:port,host:port/chroot`.
    ///
    /// # Errors
    /// When the connect string makes no sense.
    pub fn builder(connect_string: &str) -> Result<ClientBuilder, ConnectStringError> {
        ClientBuilder::new(connect_string)
    }
}

/// Why there is no client.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The connect string makes no sense.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// No server has answered.
    #[error(transparent)]
    Connect(#[from] Error),
}
