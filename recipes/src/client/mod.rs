//! What the recipes need from a ZooKeeper client, as a trait.
//!
//! Small on purpose: whoever has another client writes an adapter in an afternoon. With
//! [`minikeeper_client::Client`], the client the recipes are made for, nothing has to be written.
//!
//! Requests are made when a method is called and not when its future is polled first: recipes
//! rely on that order, and on requests made one after the other leaving together. An adapter that
//! cannot do the latter is slower, not wrong.
//!
//! Source: `docs/curator-recipes.md` section 2.9.

mod own;
mod standing;

pub use own::OwnStates;
pub use standing::{Standing, StateStream};

use std::future::Future;

#[cfg(doc)]
use minikeeper_client::ErrorCode;
use minikeeper_client::{
    CreateMode, Created, Data, Epoch, Error, Fired, MultiResult, Names, Stamped, Stat,
};
use uuid::Uuid;

/// The client's side of a lock.
///
/// Every future is `Send` and may be dropped at any time.
///
/// # Errors
/// Recipes go by what an [`Error`] says, so an adapter must not guess: [`Error::Refused`] is a
/// server's answer, [`Error::NotSent`] a request that was certainly not carried out,
/// [`Error::OutcomeUnknown`] one that may have been. The methods name the refusals that recipes
/// expect; others end the recipe's call.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::Error;
/// use minikeeper_recipes::client::ZooKeeper;
///
/// /// For any client with an adapter.
/// async fn is_there<C: ZooKeeper>(client: &C, path: &str) -> Result<bool, Error> {
///     Ok(client.exists(path).await?.value.is_some())
/// }
///
/// assert!(is_there(&client, "/").await?);
/// # Ok(()) }
/// ```
pub trait ZooKeeper: Clone + Send + Sync + 'static {
    /// A watch that fires once; dropping it takes it away.
    type Watch: Future<Output = Fired> + Send + Unpin + 'static;

    /// Every change of the connection's state.
    type States: StateStream;

    /// How sure the client is of its session just now.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::{Standing, ZooKeeper};
    /// assert!(matches!(client.standing(), Standing::Connected { .. }));
    /// # Ok(()) }
    /// ```
    fn standing(&self) -> Standing;

    /// Every change of [`ZooKeeper::standing`] from here on.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::{Standing, StateStream as _, ZooKeeper};
    /// let mut states = ZooKeeper::states(&client);
    /// client.close().await;
    /// while let Some(standing) = states.next().await {
    ///     println!("{standing:?}");
    /// }
    /// # Ok(()) }
    /// ```
    fn states(&self) -> Self::States;

    /// How many connections there were, with whatever session; see
    /// [`minikeeper_client::Client::connections`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// assert_eq!(ZooKeeper::connections(&client), 1);
    /// # Ok(()) }
    /// ```
    fn connections(&self) -> u64;

    /// Creates a znode open to everybody. If `is_withdrawn`, dropping the future takes the znode
    /// away again, for certain; its name is then like no other.
    ///
    /// # Errors
    /// [`ErrorCode::NodeExists`], and [`ErrorCode::NoNode`] if the parent is missing.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// let mode = CreateMode::EphemeralSequential;
    /// let created = ZooKeeper::create(&client, "/a-", b"", mode, false).await?;
    /// assert_eq!(created.value.path, "/a-0000000000");
    /// # Ok(()) }
    /// ```
    fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        is_withdrawn: bool,
    ) -> impl Future<Output = Result<Stamped<Created>, Error>> + Send + 'static;

    /// Deletes a znode, and goes on trying in this session if the answer gets lost.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`] if it is gone already.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// ZooKeeper::delete(&client, "/a").await?;
    /// let again = ZooKeeper::delete(&client, "/a").await;
    /// assert!(again.is_err_and(|error| error.is(minikeeper_client::ErrorCode::NoNode)));
    /// # Ok(()) }
    /// ```
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// The stat of a znode, if it is there.
    ///
    /// # Errors
    /// None that recipes expect: a missing znode is `None`.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// assert!(ZooKeeper::exists(&client, "/").await?.value.is_some());
    /// assert!(ZooKeeper::exists(&client, "/a").await?.value.is_none());
    /// # Ok(()) }
    /// ```
    fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Option<Stat>>, Error>> + Send + 'static;

    /// The same, and a watch on it, which waits for the creation of a missing znode.
    ///
    /// # Errors
    /// None that recipes expect.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// let (stat, created) = client.watch_exists("/a").await?;
    /// assert!(stat.is_none());
    /// ZooKeeper::create(&client, "/a", b"", CreateMode::Persistent, false).await?;
    /// created.await;
    /// # Ok(()) }
    /// ```
    fn watch_exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Stat>, Self::Watch), Error>> + Send + 'static;

    /// The data of a znode.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// assert_eq!(client.data("/a").await?.as_bytes(), b"hello");
    /// # Ok(()) }
    /// ```
    fn data(&self, path: &str) -> impl Future<Output = Result<Data, Error>> + Send + 'static;

    /// The data of a znode, and a watch on it. A missing znode leaves no watch (hazard H10).
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// let (data, changed) = client.watch_data("/a").await?;
    /// assert_eq!(data.as_bytes(), b"hello");
    /// ZooKeeper::delete(&client, "/a").await?;
    /// assert!(changed.await.is_deleted());
    /// # Ok(()) }
    /// ```
    fn watch_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Data, Self::Watch), Error>> + Send + 'static;

    /// Sets the data of a znode, if it has this version unless that is `None`.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`], [`ErrorCode::BadVersion`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// let stat = ZooKeeper::set_data(&client, "/a", b"bye", Some(0)).await?;
    /// assert_eq!(stat.version, 1);
    /// # Ok(()) }
    /// ```
    fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Error>> + Send + 'static;

    /// The names of a znode's children.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// let names = ZooKeeper::children(&client, "/").await?.value;
    /// assert!(names.contains(&"a".to_owned()));
    /// # Ok(()) }
    /// ```
    fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Vec<String>>, Error>> + Send + 'static;

    /// The same, as cheap as can be: every contender in a queue asks for it twice, and it is as long
    /// as the queue.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// let names = ZooKeeper::child_names(&client, "/").await?.value;
    /// assert!(names.iter().any(|name| name == "a"));
    /// # Ok(()) }
    /// ```
    fn child_names(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Names>, Error>> + Send + 'static {
        let children = self.children(path);
        async move {
            let Stamped { value, zxid, epoch } = children.await?;
            let value = value.into_iter().collect();
            Ok(Stamped { value, zxid, epoch })
        }
    }

    /// The names of a znode's children, and a watch on them.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// let (_, changed) = client.watch_children("/").await?;
    /// ZooKeeper::delete(&client, "/a").await?;
    /// changed.await;
    /// # Ok(()) }
    /// ```
    fn watch_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stamped<Vec<String>>, Self::Watch), Error>> + Send + 'static;

    /// Returns when the server knows every change that was made before.
    ///
    /// # Errors
    /// None that recipes expect.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// // What is read now is no older than the call.
    /// ZooKeeper::sync(&client, "/").await?;
    /// # Ok(()) }
    /// ```
    fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// Makes several changes together or not at all.
    ///
    /// # Errors
    /// [`Error::MultiRefused`], with the index of the operation that was refused.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// # ZooKeeper::create(&client, "/a", b"hello", CreateMode::Persistent, false).await?;
    /// use minikeeper_client::Multi;
    ///
    /// let both = Multi::new().check("/a", Some(0)).set_data("/a", b"bye", None);
    /// assert_eq!(ZooKeeper::multi(&client, both).await?.len(), 2);
    /// # Ok(()) }
    /// ```
    fn multi(
        &self,
        multi: minikeeper_client::Multi,
    ) -> impl Future<Output = Result<Vec<MultiResult>, Error>> + Send + 'static;

    /// Sees to it that a znode made in this epoch goes. Cannot fail and does not wait.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// let created = ZooKeeper::create(&client, "/a", b"", CreateMode::Ephemeral, false).await?;
    /// ZooKeeper::clean_up(&client, created.epoch, "/a");
    /// # // It says when it is done; others need not know.
    /// while client.clean_ups_pending() > 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert!(ZooKeeper::exists(&client, "/a").await?.value.is_none());
    /// # Ok(()) }
    /// ```
    fn clean_up(&self, epoch: Epoch, path: &str);

    /// The same for a child of `parent` whose name begins with `prefix`, and whose creation was
    /// not answered.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// let mode = CreateMode::EphemeralSequential;
    /// let created = ZooKeeper::create(&client, "/id7-lock-", b"", mode, false).await?;
    /// // As if the answer, and with it the number, had been lost:
    /// ZooKeeper::clean_up_unanswered(&client, created.epoch, "/", "id7-");
    /// while client.clean_ups_pending() > 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert!(ZooKeeper::exists(&client, "/id7-lock-0000000000").await?.value.is_none());
    /// # Ok(()) }
    /// ```
    fn clean_up_unanswered(&self, epoch: Epoch, parent: &str, prefix: &str);

    /// The id of the session, if there is one: what its ephemeral znodes are owned by.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// assert!(client.session().is_some());
    /// # Ok(()) }
    /// ```
    fn session(&self) -> Option<minikeeper_client::SessionId>;

    /// An id no other contender has.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::ZooKeeper;
    /// assert_ne!(client.new_id(), client.new_id());
    /// # Ok(()) }
    /// ```
    fn new_id(&self) -> Uuid;
}
