//! The recipes on another client: the published crate `zookeeper-client` 0.11.
//!
//! For those who have a [`::zookeeper_client::Client`] already, or need what it has and
//! [`minikeeper_client`] has not: SASL, TLS. With the feature `zookeeper-client`.
//!
//! # Examples
//! ```
//! # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = minikeeper::Server::builder().start().await?;
//! # let address = server.connect_string();
//! use minikeeper_recipes::{InterProcessMutex, client::zookeeper_client::Adapter};
//!
//! let client = zookeeper_client::Client::connect(&address).await?;
//! let lock = InterProcessMutex::new(Adapter::new(client), "/locks/tickets")?;
//! let guard = lock.acquire().await?;
//! println!("held, token {}", guard.token());
//! guard.release().await?;
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(doc()).unwrap();
//! ```
//!
//! # What is different on this client
//!
//! Exclusion, order, tokens and clean-up are the same. The rest:
//!
//! | promise of [`minikeeper_client`] | here |
//! | --- | --- |
//! | a lost session is followed by a new one | only with [`Adapter::renewing`], where calls wait for it; with [`Adapter::new`] every call fails from then on, as on a closed client |
//! | a session that was presumed lost is not gone on with | the client does, if the server still has it; it is another [epoch](minikeeper_client::Epoch) here. Locks of the epoch before stay lost, but keep others out until their guards are dropped |
//! | the session is certain until its timeout after the newest answered request, pings among them | the client does not tell of its pings: the adapter asks for the stat of `/` a quarter of the timeout after the newest answer |
//! | it is told whether a request that failed was sent | whatever is no refusal is [`Error::OutcomeUnknown`], never [`Error::NotSent`] |
//! | a request larger than servers take is told with its true size | with an estimate, some hundred bytes too much |
//! | a read-only server is told of | its sessions count as lost from the beginning |
//! | every change of state is told | an interruption too short to be seen by the client's owner is told as one, late |
//! | a server that gives another session without a word is found out | at the next ephemeral znode, as its owner then differs; no ZooKeeper does that |
//! | a changed session timeout after a reconnect counts | the first one does; do not lower it in a server that clients are connected to |
//! | after a reconnect, everything is told that has happened to what is watched | not if the connection is cut again while more than 128 kB of watched paths are registered, which takes several messages |
//! | null data is not the same as empty | they are the same |
//! | the zxid of every reply | not told; recipes do not need it |
//! | requests made together leave in one segment | mostly; Nagle's algorithm is left on, which costs a round trip at times |
//! | `close` waits for the end of the session | the session is closed in the background when the last clone of adapter and client is dropped |
//! | time is tokio's, and so are sockets | the client has timers and a reactor thread of its own: a paused runtime does not govern it |
//! | nothing is allocated for a call | several small allocations a call |
//!
//! Source: `docs/curator-recipes.md` section 2.9.

mod asking;
mod calls;
mod changes;
mod clean_up;
mod convert;
mod monitor;
mod session;
mod watch;

use std::{fmt, future::Future, sync::Arc};

use ::zookeeper_client as theirs;
use minikeeper_client::{
    CreateMode, Created, Data, Epoch, Error, Multi, MultiResult, SessionId, Stamped, Stat,
};
use uuid::Uuid;

pub use self::watch::{Standings, Watch};
use self::{
    asking::{Call, call},
    calls::Boxed,
    monitor::Connect,
    session::Shared,
};
use super::{Standing, ZooKeeper};
use crate::leaders::task::Task;

/// A client of the crate `zookeeper-client` for recipes. Clones are cheap and share the session.
///
/// Chroots, identities and access to the servers are those of the client; znodes that recipes
/// create are open to everybody.
///
/// # Examples
/// ```
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_recipes::{InterProcessMutex, client::zookeeper_client::Adapter};
///
/// let client = zookeeper_client::Client::connect(&address).await?;
/// let adapter = Adapter::new(client);
/// let lock = InterProcessMutex::new(adapter.clone(), "/locks/a")?;
/// lock.acquire().await?.release().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(doc()).unwrap();
/// ```
#[derive(Clone)]
pub struct Adapter {
    shared: Arc<Shared>,
    /// Ends with the last clone.
    _monitor: Arc<Task>,
}

impl Adapter {
    /// Takes a client with the session it has. When that is over, so is the use of this.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let address = server.connect_string();
    /// use minikeeper_recipes::client::{ZooKeeper as _, zookeeper_client::Adapter};
    ///
    /// let client = zookeeper_client::Client::connect(&address).await?;
    /// let id = client.session_id().0;
    /// assert_eq!(Adapter::new(client).session().map(|own| own.0), Some(id));
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(doc()).unwrap();
    /// ```
    #[must_use]
    pub fn new(client: theirs::Client) -> Self {
        Self::start(client, None)
    }

    /// The same, but when the session is over another client is asked for, again and again until
    /// there is one. A client that fails for another reason than its session's end, as a wrong
    /// password, is replaced too.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let address = server.connect_string();
    /// use minikeeper_recipes::client::zookeeper_client::Adapter;
    /// use zookeeper_client::Client;
    ///
    /// let client = Client::connect(&address).await?;
    /// let adapter = Adapter::renewing(client, move || {
    ///     let address = address.clone();
    ///     async move { Client::connect(&address).await }
    /// });
    /// # drop(adapter);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(doc()).unwrap();
    /// ```
    #[must_use]
    pub fn renewing<F>(
        client: theirs::Client,
        connect: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<theirs::Client, theirs::Error>> + Send + 'static,
    {
        let connect = move || -> Boxed<_> { Box::pin(connect()) };
        Self::start(client, Some(Arc::new(connect)))
    }

    fn start(client: theirs::Client, connect: Option<Connect>) -> Self {
        let shared = Arc::new(Shared::new(client, connect.is_some()));
        let monitor = monitor::run(Arc::downgrade(&shared), connect);
        let monitor = Task::spawn("an adapter", monitor).expect("a tokio runtime, as documented");
        Self {
            shared,
            _monitor: Arc::new(monitor),
        }
    }

    /// The client of the newest session, for everything that is no recipe.
    ///
    /// # Examples
    /// ```
    /// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let address = server.connect_string();
    /// use minikeeper_recipes::client::zookeeper_client::Adapter;
    ///
    /// let adapter = Adapter::new(zookeeper_client::Client::connect(&address).await?);
    /// assert!(adapter.client().check_stat("/").await?.is_some());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(doc()).unwrap();
    /// ```
    #[must_use]
    pub fn client(&self) -> theirs::Client {
        (*self.shared.session().client).clone()
    }

    fn call<T, F>(
        &self,
        op: &'static str,
        path: &str,
        request: impl FnOnce(Arc<theirs::Client>, String) -> F + Send + 'static,
    ) -> Call<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, theirs::Error>> + Send + 'static,
    {
        call(&self.shared, op, path, request)
    }

    fn watch(&self, epoch: Epoch, watcher: theirs::OneshotWatcher) -> Watch {
        Watch::new(&self.shared, epoch, watcher)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter")
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}

impl ZooKeeper for Adapter {
    type States = Standings;
    type Watch = Watch;

    fn standing(&self) -> Standing {
        self.shared.standing()
    }

    fn states(&self) -> Standings {
        Standings {
            told: self.shared.subscribe(),
        }
    }

    fn connections(&self) -> u64 {
        self.shared.connections()
    }

    fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        is_withdrawn: bool,
    ) -> impl Future<Output = Result<Stamped<Created>, Error>> + Send + 'static {
        changes::create(&self.shared, path, data, mode, is_withdrawn)
    }

    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        changes::delete(&self.shared, path)
    }

    fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Option<Stat>>, Error>> + Send + 'static {
        let call = self.call("exists", path, |client, path| async move {
            let stat = client.check_stat(&path).await?;
            Ok(stat.as_ref().map(convert::stat))
        });
        call.answer()
    }

    fn watch_exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Stat>, Watch), Error>> + Send + 'static {
        let call = self.call("exists", path, |client, path| async move {
            client.check_and_watch_stat(&path).await
        });
        let adapter = self.clone();
        async move {
            let Stamped { value, epoch, .. } = call.answer().await?;
            let (stat, watcher) = value;
            let stat = stat.as_ref().map(convert::stat);
            Ok((stat, adapter.watch(epoch, watcher)))
        }
    }

    fn data(&self, path: &str) -> impl Future<Output = Result<Data, Error>> + Send + 'static {
        let call = self.call("getData", path, |client, path| async move {
            let (data, stat) = client.get_data(&path).await?;
            Ok(convert::data(data, &stat))
        });
        call.value()
    }

    fn watch_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Data, Watch), Error>> + Send + 'static {
        let call = self.call("getData", path, |client, path| async move {
            client.get_and_watch_data(&path).await
        });
        let adapter = self.clone();
        async move {
            let Stamped { value, epoch, .. } = call.answer().await?;
            let (data, stat, watcher) = value;
            Ok((convert::data(data, &stat), adapter.watch(epoch, watcher)))
        }
    }

    fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Error>> + Send + 'static {
        changes::set_data(&self.shared, path, data, version)
    }

    fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Vec<String>>, Error>> + Send + 'static {
        let call = self.call("getChildren", path, |client, path| async move {
            client.list_children(&path).await
        });
        call.answer()
    }

    fn watch_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stamped<Vec<String>>, Watch), Error>> + Send + 'static {
        let call = self.call("getChildren", path, |client, path| async move {
            client.list_and_watch_children(&path).await
        });
        let adapter = self.clone();
        async move {
            let Stamped { value, zxid, epoch } = call.answer().await?;
            let (value, watcher) = value;
            let watch = adapter.watch(epoch, watcher);
            Ok((Stamped { value, zxid, epoch }, watch))
        }
    }

    fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let call = self.call("sync", path, |client, path| async move {
            client.sync(&path).await
        });
        call.value()
    }

    fn multi(
        &self,
        multi: Multi,
    ) -> impl Future<Output = Result<Vec<MultiResult>, Error>> + Send + 'static {
        changes::multi(&self.shared, multi)
    }

    fn clean_up(&self, epoch: Epoch, path: &str) {
        clean_up::named(&self.shared, epoch, path);
    }

    fn clean_up_unanswered(&self, epoch: Epoch, parent: &str, prefix: &str) {
        clean_up::unanswered(&self.shared, epoch, parent, prefix);
    }

    fn session(&self) -> Option<SessionId> {
        self.shared.session_id()
    }

    fn new_id(&self) -> Uuid {
        Uuid::new_v4()
    }
}
