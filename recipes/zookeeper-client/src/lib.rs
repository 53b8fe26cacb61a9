//! The recipes of [`minikeeper_recipes`] on the client crate [`zookeeper_client`] 0.11.
//!
//! Use it if your program already has a [`zookeeper_client::Client`].
//!
//! # Examples
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = minikeeper::Server::builder().start().await?;
//! # let address = server.connect_string();
//! use minikeeper_recipes::InterProcessMutex;
//! use minikeeper_recipes_zookeeper_client::Adapter;
//!
//! let client = zookeeper_client::Client::connect(&address).await?;
//! let lock = InterProcessMutex::new(Adapter::new(client), "/locks/tickets")?;
//! let guard = lock.acquire().await?;
//! println!("held, token {}", guard.token());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! # Differences from `minikeeper-client`
//!
//! Exclusion, order, tokens and clean-up are the same. These differ:
//!
//! | with [`minikeeper_client`] | with this adapter |
//! | --- | --- |
//! | After a lost session the client opens a new one. | Only with [`Adapter::renewing`], where calls wait for the new session. With [`Adapter::new`] every call fails from then on, as on a closed client. |
//! | The client never continues a session that it presumed lost. | This client does if the server still has the session; the adapter counts it as a new [epoch](minikeeper_client::Epoch). Locks of the earlier epoch stay lost, but exclude other contenders until their guards are dropped. |
//! | The session is safe for its timeout after the latest request with a reply, including pings. | The client does not report its pings, so the adapter reads the stat of `/` a quarter of the timeout after the latest reply. |
//! | An error says whether the request was sent. | Every failure other than a refusal is [`Error::OutcomeUnknown`], never [`Error::NotSent`]. |
//! | [`Error::TooLarge`] has the true size. | It has an estimate, a few hundred bytes too large. |
//! | A read-only server is reported as such. | Its sessions count as lost from the start. |
//! | Every change of state is reported. | Several short interruptions may be reported as one, with a delay. |
//! | The client detects a server that assigns another session without saying so. | The adapter detects it at the next ephemeral znode, whose owner differs. ZooKeeper never does this. |
//! | A session timeout that the server changes at a reconnect is used. | The first timeout is used; do not lower it on a server with connected clients. |
//! | After a reconnect every watch gets the events that it missed. | Not if the connection is lost again while more than 128 kB of watched paths are registered, which takes several messages. |
//! | Null data differs from empty data. | They are the same. |
//! | Replies carry their zxid. | They do not; the recipes do not need it. |
//! | Requests made together are sent in one segment. | Mostly: Nagle's algorithm is on, which sometimes costs a round trip. |
//! | `close` waits for the end of the session. | The session closes in the background when the last clone of adapter and client is dropped. |
//! | Timers and sockets are tokio's. | The client has its own timers and reactor thread, which a paused runtime does not control. |
//! | A call makes at most 3 small allocations. | A call makes more. |
//!
//! # Files
//!
//! `calls` sends requests and completes those whose future was dropped; `changes` has the requests
//! that write; `session` tracks how certain the session is, and `monitor` is the task that keeps
//! this current; `access` chooses access lists; `clean_up` deletes znodes in the background; `watch` has the watch and the stream
//! of states; `convert` converts between the types of the two crates.
//!
//! Source: `docs/curator-recipes.md` section 2.9.

mod access;
mod calls;
mod changes;
mod clean_up;
mod clock;
mod convert;
mod monitor;
mod session;
mod watch;

use std::{fmt, future::Future, sync::Arc};

use minikeeper_client::{
    AclProvider, CreateOptions, Created, Data, Epoch, Error, Multi, MultiResult, SessionId,
    Stamped, Stat,
};
use minikeeper_recipes::client::{Standing, ZooKeeper};
use tokio::task::JoinSet;
use uuid::Uuid;
use zookeeper_client as theirs;

pub use self::watch::{Standings, Watch};
use self::{
    access::Access,
    calls::{Boxed, Call, call},
    monitor::Connect,
    session::Shared,
};

/// A [`zookeeper_client::Client`] that recipes can use. Clones are cheap and share the session.
///
/// The client's chroot, identities and servers apply. Znodes that recipes create are open to all
/// clients, unless [`Adapter::with_acl_provider`] says otherwise.
#[derive(Clone)]
pub struct Adapter {
    shared: Arc<Shared>,
    access: Access,
    /// The monitor task, which ends with the last clone.
    _monitor: Arc<JoinSet<()>>,
}

impl Adapter {
    /// Wraps a client. When its session ends, every later call fails.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    #[must_use]
    pub fn new(client: theirs::Client) -> Self {
        Self::start(client, None)
    }

    /// Wraps a client and replaces it when its session ends, by calling `connect` until it
    /// succeeds. It also replaces a client that fails for another reason, such as a wrong password.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let address = server.connect_string();
    /// use minikeeper_recipes_zookeeper_client::Adapter;
    /// use zookeeper_client::Client;
    ///
    /// let client = Client::connect(&address).await?;
    /// let adapter = Adapter::renewing(client, move || {
    ///     let address = address.clone();
    ///     async move { Client::connect(&address).await }
    /// });
    /// # drop(adapter);
    /// # Ok(()) }
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
        let mut tasks = JoinSet::new();
        tasks.spawn(monitor);
        Self {
            shared,
            access: Access::default(),
            _monitor: Arc::new(tasks),
        }
    }

    /// Returns an adapter of the same client that asks this provider for the access list of each
    /// znode that recipes create.
    #[must_use]
    pub fn with_acl_provider(&self, provider: impl AclProvider) -> Self {
        Self {
            access: Access(Some(Arc::new(provider))),
            ..self.clone()
        }
    }

    /// Returns the client of the latest session, for requests outside the recipes.
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
        options: impl Into<CreateOptions>,
    ) -> impl Future<Output = Result<Stamped<Created>, Error>> + Send + 'static {
        let options = options.into();
        let acl = self.access.acl_for(path, &options);
        changes::create(&self.shared, path, data, &options, &acl)
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
        changes::multi(&self.shared, self.access.clone(), multi)
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
