//! The settings of a client, and how it starts.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{PathError, Ustring, ZnodePath, frame};
use tokio::time::{sleep, timeout};

use crate::{
    acl_provider::AclProvider,
    client::Client,
    core::{
        backoff::Backoff,
        hosts::{ConnectString, ConnectStringError},
        machine::Settings,
        sasl::SaslMechanism,
    },
    driver::Driver,
    error::Error,
    paths,
    shared::Shared,
    transport::{Tcp, Transport},
};

/// The default of [`ClientBuilder::call_timeout`]: the default session timeout.
pub const CALL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// The waits between attempts to create the client's root.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The longest [`ClientBuilder::call_timeout`]: a day.
pub const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of a client. Returned by [`Client::builder`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use std::time::Duration;
///
/// use minikeeper_client::Client;
///
/// let client = Client::builder(&address)?
///     .session_timeout(Duration::from_secs(10))
///     .connection_timeout(Duration::from_secs(5))
///     .connect()
///     .await?;
/// assert!(client.state().is_connected());
/// # Ok(()) });
/// ```
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    at: ConnectString,
    settings: Settings,
    transport: Box<dyn Transport>,
    identities: Vec<(String, Vec<u8>)>,
    creates_chroot: bool,
    namespace: Option<ZnodePath>,
    call_timeout: Duration,
    acl_provider: Option<Arc<dyn AclProvider>>,
    sasl: Option<Box<dyn SaslMechanism>>,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Identities are secrets.
        f.debug_struct("ClientBuilder")
            .field("at", &self.at)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn new(connect_string: &str) -> Result<Self, ConnectStringError> {
        let at: ConnectString = connect_string.parse()?;
        let settings = Settings {
            session_timeout: Duration::from_secs(60),
            hosts: at.hosts().to_vec(),
            connect_timeout: None,
            connection_timeout: Duration::from_secs(15),
            close_wait: Duration::from_secs(1),
            read_only: false,
            frame_bytes_max: frame::BYTES_MAX_DEFAULT,
            pending_bytes_max: 64 << 20,
            clean_ups_max: 1 << 16,
            seed: RandomState::new().hash_one(connect_string),
        };
        Ok(Self {
            at,
            settings,
            transport: Box::new(Tcp),
            identities: Vec::new(),
            creates_chroot: false,
            namespace: None,
            call_timeout: CALL_TIMEOUT_DEFAULT,
            acl_provider: None,
            sasl: None,
        })
    }

    /// Sets how long the session outlives its connection. The server may grant a different timeout.
    ///
    /// Unit: whole milliseconds. Default: 60 s, as in Curator. Range, by the server: 2 to 20 ticks.
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// Sets how long [`ClientBuilder::connect`] waits for the first session.
    ///
    /// It also limits how long an [`EnsembleTracker`](crate::EnsembleTracker) stays with servers of
    /// which none can be reached.
    ///
    /// Default: 15 s, as in Curator.
    pub const fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connection_timeout = timeout;
        self
    }

    /// Sets how long one server may take to accept the connection and reply to the handshake.
    ///
    /// Default: the session timeout (the granted one, once there is a session) or the
    /// [`connection_timeout`](Self::connection_timeout), whichever is shorter, divided by the
    /// number of servers. So the client tries every server before the time is over, even if none
    /// replies.
    pub const fn server_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = Some(timeout);
        self
    }

    /// Sets how long [`Client::close`] waits for pending clean-ups and for the server's reply. The
    /// clean-ups have at most half of that time: then the client ends the session, and with it its
    /// ephemeral znodes.
    ///
    /// Default: 1 s, as in Curator.
    pub const fn close_wait(mut self, wait: Duration) -> Self {
        self.settings.close_wait = wait;
        self
    }

    /// Sets whether the client may use a read-only server. Locks need a server that accepts
    /// changes.
    ///
    /// A read-only server keeps no session alive. While the client is connected to one,
    /// [`Client::safe_until`] does not advance, and the session is presumed lost when that time has
    /// passed. A session that a read-only server created holds no locks and ends with its
    /// connection; its `safe_until` is `None`. The state is [`ConnectionState::ReadOnly`] in both
    /// cases. With several servers, a client whose session other servers still know stays at a
    /// read-only one for a second at a time, and tries the next; otherwise it stays until the
    /// connection ends. Java's client asks the other servers meanwhile.
    ///
    /// Default: false.
    ///
    /// [`ConnectionState::ReadOnly`]: crate::ConnectionState::ReadOnly
    pub const fn allow_read_only(mut self, allow: bool) -> Self {
        self.settings.read_only = allow;
        self
    }

    /// Sets the largest message in both directions.
    ///
    /// Unit: bytes. Default: 1,048,575. Source: `jute.maxbuffer` of ZooKeeper.
    pub const fn frame_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.frame_bytes_max = bytes;
        self
    }

    /// Sets how much memory pending requests may take: their paths and data, and 256 bytes each.
    /// Beyond that a call fails at once with [`Cause::TooManyPending`](crate::Cause).
    ///
    /// Unit: bytes. Default: 67,108,864.
    pub const fn pending_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.pending_bytes_max = bytes;
        self
    }

    /// Sets how many clean-ups may be pending, see [`Client::clean_up`]. If there are more, the
    /// client gives up its session ([`LostReason::TooManyCleanUps`](crate::LostReason)), because a
    /// forgotten clean-up would leave a znode that blocks other contenders while the session lives.
    /// The limit also applies to watch removals that the server has refused; if more are pending,
    /// the client reconnects, which removes the watches on the server.
    ///
    /// Default: 65,536.
    pub const fn clean_ups_max(mut self, count: usize) -> Self {
        self.settings.clean_ups_max = count;
        self
    }

    /// Sets the seed for the order of servers, the jitter of waits and [`Client::random`], for runs
    /// that must repeat. Several clients may have the same seed. The names of contenders are no part of
    /// what it determines alone: they also depend on the session, so that no two are equal.
    ///
    /// Default: random.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets how the client connects to servers. Default: [`Tcp`].
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, _| {
    /// # let address = server.connect_string();
    /// # use minikeeper_client::{Client, Connecting};
    /// // A server in this process, without a socket.
    /// let transport = move |_host: &str| -> Connecting {
    ///     let (reader, writer) = tokio::io::split(server.local());
    ///     Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
    /// };
    /// let client = Client::builder("in-process")?.transport(transport).connect().await?;
    /// assert!(client.exists("/").await?.is_some());
    /// # Ok(()) });
    /// ```
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Box::new(transport);
        self
    }

    /// Adds an identity to send on every connection: scheme `digest` with `name:password`, or
    /// another scheme that the servers accept.
    pub fn identity(mut self, scheme: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        self.identities.push((scheme.into(), data.into()));
        self
    }

    /// Sets the provider of access lists for znodes that the client creates. Default: every znode is
    /// open to all clients.
    pub fn acl_provider(mut self, provider: impl AclProvider) -> Self {
        self.acl_provider = Some(Arc::new(provider));
        self
    }

    /// Sets whether the client creates the chroot of the connect string if it is missing. Default:
    /// false, as in ZooKeeper's clients; then requests fail with [`Error::NoRoot`].
    ///
    /// [`ClientBuilder::connect`] creates it, and recipes do when it is deleted later; otherwise
    /// call [`Client::create_root`].
    pub const fn create_chroot(mut self, creates: bool) -> Self {
        self.creates_chroot = creates;
        self
    }

    /// Sets the longest time that one call of a recipe on this client takes, such as a release, a
    /// close or a read of the participants, with all its requests and retries. Then it fails with
    /// [`Error::CallTimedOut`]. What waits for other contenders has limits of its own, or none:
    /// acquiring, waiting at barriers and for changes. Requests of the client itself have no limit
    /// unless [`Client::with_timeout`] sets one.
    ///
    /// Default: 60 s, [`CALL_TIMEOUT_DEFAULT`]. Range: 1 ms to 24 h; others are moved into it.
    pub const fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = in_range(timeout);
        self
    }

    /// Sets the namespace: the znode below the chroot that is the root of all paths, as Curator's
    /// builder does. Default: none. See [`Client::with_namespace`].
    ///
    /// [`ClientBuilder::connect`] creates it if it is missing.
    ///
    /// # Errors
    /// [`PathError`] if `/` followed by the namespace is not a valid path.
    pub fn namespace(mut self, namespace: &str) -> Result<Self, PathError> {
        self.namespace = paths::namespace(namespace)?;
        Ok(self)
    }

    /// Authenticates every connection with SASL, by this mechanism, before anything else is sent on
    /// it. In access lists the user is an id of the scheme `sasl`. If a server does not accept the client, the client ends with [`LostReason::Sasl`], and
    /// [`ClientBuilder::connect`] returns [`Error::AuthFailed`].
    ///
    /// Default: no SASL.
    ///
    /// [`LostReason::Sasl`]: crate::LostReason::Sasl
    pub fn sasl(mut self, mechanism: impl SaslMechanism) -> Self {
        self.sasl = Some(Box::new(mechanism));
        self
    }

    /// Authenticates every connection with SASL, mechanism DIGEST-MD5, as this user. See
    /// [`DigestMd5`](crate::DigestMd5) and [`ClientBuilder::sasl`].
    #[cfg(feature = "sasl")]
    pub fn sasl_digest_md5(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.sasl(crate::DigestMd5::new(user, password))
    }

    /// Starts the client on the current runtime and waits for its first session.
    ///
    /// # Errors
    /// [`Error::NotConnected`] when no server has replied within the
    /// [`connection_timeout`](Self::connection_timeout), [`Error::AuthFailed`] when one does not
    /// accept the client's identity; the client is then closed. Those of [`Client::create_root`], if
    /// the client creates its chroot or namespace: a lost reply counts only if no retry succeeds
    /// within the [`connection_timeout`](Self::connection_timeout).
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future closes the client.
    pub async fn connect(self) -> Result<Client, Error> {
        let within = self.settings.connection_timeout;
        let creates_root = self.creates_chroot || self.namespace.is_some();
        let (client, driver) = self.build();
        driver.spawn();
        if let Err(error) = client.connected(within).await {
            client.stop();
            return Err(error);
        }
        if creates_root {
            create_root(&client, within).await?;
        }
        Ok(client)
    }

    /// Returns the client and its [`Driver`], which the caller must poll.
    pub fn build(self) -> (Client, Driver) {
        let chroot = self.at.chroot().and_then(|path| ZnodePath::new(path).ok());
        let shared = Arc::new(Shared::new(self.settings, chroot, self.creates_chroot));
        if let Some(mechanism) = self.sasl {
            shared.look(|inner| inner.core.know_sasl(mechanism));
        }
        for (scheme, data) in self.identities {
            shared.look(|inner| {
                inner
                    .core
                    .register_identity(Ustring::from(scheme), Bytes::from(data));
            });
        }
        let driver = Driver::new(Arc::clone(&shared), self.transport);
        let client = Client::new(
            shared,
            self.namespace.as_ref(),
            self.acl_provider,
            self.call_timeout,
        );
        (client, driver)
    }
}

/// Creates the client's root, and tries again when a reply is lost: creating it twice does no harm.
async fn create_root(client: &Client, within: Duration) -> Result<(), Error> {
    let client = client.with_timeout(within);
    let mut backoff = None;
    let mut last = None;
    let creating = async {
        loop {
            match client.create_root().await {
                Err(error) if error.is_retryable() => last = Some(error),
                result => return result,
            }
            let new = || Backoff::new(PAUSE_MIN, PAUSE_MAX, client.random());
            sleep(backoff.get_or_insert_with(new).next_pause()).await;
        }
    };
    let result = timeout(within, creating).await.ok();
    result.unwrap_or_else(|| {
        Err(last.unwrap_or_else(|| Error::NotConnected {
            hosts: client.servers(),
            within,
            last: client.last_failure(),
        }))
    })
}

/// Returns a limit for calls that is in its range.
pub(crate) const fn in_range(timeout: Duration) -> Duration {
    if timeout.as_millis() == 0 {
        Duration::from_millis(1)
    } else if timeout.as_millis() > CALL_TIMEOUT_MAX.as_millis() {
        CALL_TIMEOUT_MAX
    } else {
        timeout
    }
}

impl Client {
    /// Connects with the default settings, see [`ClientBuilder::connect`].
    ///
    /// # Errors
    /// [`ConnectError::ConnectString`] if the connect string is invalid, [`ConnectError::Connect`]
    /// if no server replies.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future closes the client.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, _| {
    /// # let address = server.connect_string();
    /// use minikeeper_client::Client;
    ///
    /// let client = Client::connect(&address).await?; // "127.0.0.1:2181"
    /// assert!(client.exists("/").await?.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn connect(connect_string: &str) -> Result<Self, ConnectError> {
        Ok(Self::builder(connect_string)?.connect().await?)
    }

    /// Returns a builder for a client of `host:port,host:port/chroot`.
    ///
    /// # Errors
    /// [`ConnectStringError`] if the connect string is invalid.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, _| {
    /// # let address = server.connect_string();
    /// use minikeeper_client::Client;
    ///
    /// let builder = Client::builder("zk1:2181,zk2:2181,zk3:2181/app")?;
    /// assert!(Client::builder("zk1:port").is_err());
    /// # Ok(()) });
    /// ```
    pub fn builder(connect_string: &str) -> Result<ClientBuilder, ConnectStringError> {
        ClientBuilder::new(connect_string)
    }
}

/// The reason why [`Client::connect`] failed.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, ConnectError};
///
/// match Client::connect("zk1:port").await {
///     Err(ConnectError::ConnectString(error)) => println!("correct the setting: {error}"),
///     Err(error) => println!("retry later: {error}"),
///     Ok(_) => println!("connected"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connect string is invalid. Retrying does not help.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// No server has replied. A later attempt may succeed.
    #[error(transparent)]
    Connect(#[from] Error),
}
