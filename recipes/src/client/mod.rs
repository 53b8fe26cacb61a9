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

mod native;

pub use self::native::ClientStates;

use std::future::Future;

#[cfg(doc)]
use minikeeper_client::ErrorCode;
use minikeeper_client::{
    CreateMode, Created, Data, Epoch, Error, Fired, MultiResult, Names, Stamped, Stat,
};
use tokio::time::Instant;
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
    fn connections(&self) -> u64;

    /// Creates a znode open to everybody. If `is_withdrawn`, dropping the future takes the znode
    /// away again, for certain; its name is then like no other.
    ///
    /// # Errors
    /// [`ErrorCode::NodeExists`], and [`ErrorCode::NoNode`] if the parent is missing.
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
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// The stat of a znode, if it is there.
    ///
    /// # Errors
    /// None that recipes expect: a missing znode is `None`.
    fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Option<Stat>>, Error>> + Send + 'static;

    /// The same, and a watch on it, which waits for the creation of a missing znode.
    ///
    /// # Errors
    /// None that recipes expect.
    fn watch_exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Stat>, Self::Watch), Error>> + Send + 'static;

    /// The data of a znode.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    fn data(&self, path: &str) -> impl Future<Output = Result<Data, Error>> + Send + 'static;

    /// The data of a znode, and a watch on it. A missing znode leaves no watch (hazard H10).
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    fn watch_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Data, Self::Watch), Error>> + Send + 'static;

    /// Sets the data of a znode, if it has this version unless that is `None`.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`], [`ErrorCode::BadVersion`].
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
    fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Vec<String>>, Error>> + Send + 'static;

    /// The same, as cheap as can be: every contender in a queue asks for it twice, and it is as long
    /// as the queue.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
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
    fn watch_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stamped<Vec<String>>, Self::Watch), Error>> + Send + 'static;

    /// Returns when the server knows every change that was made before.
    ///
    /// # Errors
    /// None that recipes expect.
    fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// Makes several changes together or not at all.
    ///
    /// # Errors
    /// [`Error::MultiRefused`], with the index of the operation that was refused.
    fn multi(
        &self,
        multi: minikeeper_client::Multi,
    ) -> impl Future<Output = Result<Vec<MultiResult>, Error>> + Send + 'static;

    /// Sees to it that a znode made in this epoch goes. Cannot fail and does not wait.
    fn clean_up(&self, epoch: Epoch, path: &str);

    /// The same for a child of `parent` whose name begins with `prefix`, and whose creation was
    /// not answered.
    fn clean_up_unanswered(&self, epoch: Epoch, parent: &str, prefix: &str);

    /// The id of the session, if there is one: what its ephemeral znodes are owned by.
    fn session(&self) -> Option<minikeeper_client::SessionId>;

    /// An id no other contender has.
    fn new_id(&self) -> Uuid;
}

/// Every change of a client's standing, in order.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::client::{StateStream, ZooKeeper};
///
/// let mut states = ZooKeeper::states(&client);
/// client.close().await;
/// while let Some(standing) = states.next().await {
///     println!("{standing:?}");
/// }
/// # Ok(()) }
/// ```
pub trait StateStream: Send + 'static {
    /// The next one; `None` once the client is closed. Cancel safe.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::client::{Standing, StateStream as _, ZooKeeper};
    /// let mut states = ZooKeeper::states(&client);
    /// client.close().await;
    /// let mut last = None;
    /// while let Some(standing) = states.next().await {
    ///     last = Some(standing);
    /// }
    /// assert_eq!(last, Some(Standing::Closed));
    /// # Ok(()) }
    /// ```
    fn next(&mut self) -> impl Future<Output = Option<Standing>> + Send;
}

/// How sure a client is of its session.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::client::{Standing, ZooKeeper};
///
/// match client.standing() {
///     Standing::Connected { epoch, .. } => println!("session {epoch} lives"),
///     Standing::Suspended { safe_until, .. } => println!("nobody can have ended it before {safe_until:?}"),
///     other => println!("no session: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// There was none yet.
    Connecting,
    /// There is a connection; without any further word the session is safe until then.
    Connected {
        /// The session's number.
        epoch: Epoch,
        /// Until when nobody can have ended the session.
        safe_until: Instant,
    },
    /// There is no connection, or one to a server that takes no changes and keeps no session alive.
    Suspended {
        /// The session's number.
        epoch: Epoch,
        /// Until when nobody can have ended the session.
        safe_until: Instant,
    },
    /// This session, and every one before it, is over.
    Lost {
        /// The session's number.
        epoch: Epoch,
    },
    /// The client is closed.
    Closed,
}

impl Standing {
    /// The session it is about.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Connected { epoch, .. }
            | Self::Suspended { epoch, .. }
            | Self::Lost { epoch } => Some(*epoch),
            Self::Connecting | Self::Closed => None,
        }
    }
}
