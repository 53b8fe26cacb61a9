//! The blocking client.

use std::{future::Future, time::Duration};

use minikeeper_client::{
    AclList, Children, Client as AsyncClient, ClientBuilder, ConnectError, ConnectStringError,
    ConnectionState, CreateOptions, Created, Data, Error, Multi, MultiResult, Stat,
};

use crate::blocking::{Blocking, Interrupt, Session, waits};

/// A client of a ZooKeeper service whose calls block. Clones are cheap and share the session.
///
/// See the [module](super) about its thread and the end of its session. Other methods of the async
/// client return futures: pass them to [`Client::wait`].
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let address = server.connect_string();
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::blocking::Client;
///
/// let client = Client::connect(&address)?;
/// client.create("/greeting", b"hello", CreateMode::Persistent)?;
/// let (data, changed) = client.wait(client.get_data_and_watch("/greeting"))?;
/// assert_eq!(data.as_bytes(), b"hello");
/// client.set_data("/greeting", b"bye", None)?;
/// client.block_on(changed)?;
/// client.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Client = Blocking<AsyncClient>;

impl Client {
    /// Starts a client and waits for its first session.
    ///
    /// # Errors
    /// [`ConnectError::ConnectString`] if the connect string is invalid, otherwise those of
    /// [`Client::start`].
    pub fn connect(connect_string: &str) -> Result<Self, ConnectError> {
        Ok(Self::start(Self::builder(connect_string)?)?)
    }

    /// Returns a builder, for [`Client::start`].
    ///
    /// # Errors
    /// The connect string is invalid.
    pub fn builder(connect_string: &str) -> Result<ClientBuilder, ConnectStringError> {
        AsyncClient::builder(connect_string)
    }

    /// Starts a client with these settings and waits for its first session.
    ///
    /// # Errors
    /// Those of [`ClientBuilder::connect`], [`Error::InRuntime`], and [`Error::NoThread`] when the
    /// system starts no thread.
    ///
    /// # Examples
    /// ```
    /// # let server = minikeeper::blocking::Server::builder().start()?;
    /// # let address = server.connect_string();
    /// use std::time::Duration;
    ///
    /// use minikeeper_recipes::blocking::Client;
    ///
    /// let settings = Client::builder(&address)?.session_timeout(Duration::from_secs(10));
    /// let client = Client::start(settings)?;
    /// assert!(client.state().is_connected());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(builder: ClientBuilder) -> Result<Self, Error> {
        let (object, session) = Session::start(builder)?;
        Ok(Self { object, session })
    }

    /// Returns a handle that can be interrupted. So can the objects that are made with it.
    #[must_use]
    pub fn with_interrupt(&self, interrupt: &Interrupt) -> Self {
        let mut client = self.clone();
        client.session.interrupt = Some(interrupt.clone());
        client
    }

    /// Makes a blocking object of an async one of this client, which keeps the session open.
    ///
    /// # Examples
    /// ```
    /// # let server = minikeeper::blocking::Server::builder().start()?;
    /// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
    /// use minikeeper_recipes::InterProcessMutex;
    ///
    /// let lock = client.bind(InterProcessMutex::new(client.to_async(), "/locks/a")?);
    /// lock.acquire()?.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bind<T>(&self, object: T) -> Blocking<T> {
        self.with(object)
    }

    /// Waits for a call of an async type, or for any other future. A request of the async client is
    /// sent when its method is called, so also when this then fails; within `async { ... }` it is not.
    ///
    /// # Errors
    /// Those of the future, [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn wait<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.session.wait("Client::wait", work)
    }

    /// Waits for a future that cannot fail.
    ///
    /// # Errors
    /// [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let work = async { Ok(work.await) };
        self.session.wait("Client::block_on", work)
    }

    /// Ends the session after pending clean-ups and waits until it has ended, see
    /// [`minikeeper_client::Client::close`]. Calls that wait in other threads fail.
    ///
    /// # Errors
    /// [`Error::InRuntime`]. It cannot be interrupted.
    pub fn close(&self) -> Result<(), Error> {
        let close = async {
            self.object.close().await;
            Ok(())
        };
        self.session.finish("Client::close", close)
    }
}

waits! { Client of "minikeeper_client" {
    wait connected(within: Duration) -> ConnectionState, Error;
    wait create(path: &str, data: &[u8], options: impl Into<CreateOptions>) -> Created, Error;
    wait delete(path: &str, version: Option<i32>) -> (), Error;
    wait delete_for_certain(path: &str) -> (), Error;
    wait exists(path: &str) -> Option<Stat>, Error;
    wait get_data(path: &str) -> Data, Error;
    wait set_data(path: &str, data: &[u8], version: Option<i32>) -> Stat, Error;
    wait children(path: &str) -> Children, Error;
    wait get_acl(path: &str) -> (AclList, Stat), Error;
    wait set_acl(path: &str, acl: &AclList, version: Option<i32>) -> Stat, Error;
    wait add_identity(scheme: &str, data: &[u8]) -> (), Error;
    wait multi(multi: Multi) -> Vec<MultiResult>, Error;
    wait sync(path: &str) -> (), Error;
    wait ephemerals(prefix: &str) -> Vec<String>, Error;
} }
