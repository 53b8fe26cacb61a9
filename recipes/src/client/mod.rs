//! The trait that a ZooKeeper client implements to run the recipes.
//!
//! The trait is small, so that an adapter for another client is an afternoon's work. The recipes'
//! own [`minikeeper_client::Client`] implements it.
//!
//! A method makes its request when it is called, not when its future is first polled. The recipes
//! rely on that order. They also expect that consecutive requests leave together; an adapter that
//! cannot do that is slower, but correct.
//!
//! Source: `docs/curator-recipes.md` section 2.9.

mod native;

pub use self::native::ClientStates;

use std::{future::Future, time::Duration};

#[cfg(doc)]
use minikeeper_client::ErrorCode;
use minikeeper_client::{
    CALL_TIMEOUT_DEFAULT, CreateOptions, Created, Data, Epoch, Error, Fired, MultiResult, Names,
    Stamped, Stat,
};
use tokio::time::Instant;
use uuid::Uuid;

/// A ZooKeeper client as the recipes use it.
///
/// # Cancel safety
/// Recipes drop the futures of these methods at any time. That must not recall the request.
/// Dropping a future of [`create`](Self::create) with
/// [`withdrawn_if_dropped`](CreateOptions::withdrawn_if_dropped) deletes the znode, and
/// dropping one of [`delete`](Self::delete) does not stop the deletion. Dropping the future or the
/// [`Watch`](Self::Watch) that owns a watch removes it.
///
/// # Errors
/// Recipes rely on what an [`Error`] says, so an adapter must not guess: [`Error::Refused`] means
/// that a server replied, [`Error::NotSent`] that the request was certainly not carried out,
/// [`Error::OutcomeUnknown`] that it may have been. The methods name the refusals that recipes
/// expect; any other ends the recipe's call.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::Error;
/// use minikeeper_recipes::client::ZooKeeper;
///
/// /// Works with any client that has an adapter.
/// async fn is_there<C: ZooKeeper>(client: &C, path: &str) -> Result<bool, Error> {
///     Ok(client.exists(path).await?.value.is_some())
/// }
///
/// assert!(is_there(&client, "/").await?);
/// # Ok(()) }
/// ```
pub trait ZooKeeper: Clone + Send + Sync + 'static {
    /// A watch that fires once. Dropping it removes the watch.
    type Watch: Future<Output = Fired> + Send + Unpin + 'static;

    /// A stream of changes of [`ZooKeeper::standing`].
    type States: StateStream;

    /// Returns how certain the client is of its session.
    fn standing(&self) -> Standing;

    /// Returns a stream of the later changes of [`ZooKeeper::standing`].
    fn states(&self) -> Self::States;

    /// Returns the longest time that one call of a recipe takes, apart from waits for other
    /// contenders. Then it fails with [`Error::CallTimedOut`].
    ///
    /// Default: [`CALL_TIMEOUT_DEFAULT`], 60 s.
    fn call_timeout(&self) -> Duration {
        CALL_TIMEOUT_DEFAULT
    }

    /// Returns a handle whose requests have no limit of their own, for tasks in the background: they
    /// wait for the next connection, however long the requests of this handle may take.
    ///
    /// Default: this handle.
    #[must_use]
    fn unlimited(&self) -> Self {
        self.clone()
    }

    /// Returns the number of connections so far, in all sessions; see
    /// [`minikeeper_client::Client::connections`].
    fn connections(&self) -> u64;

    /// Creates a znode. Without an access list in the options the client chooses one, see
    /// [`minikeeper_client::AclProvider`]. With
    /// [`withdrawn_if_dropped`](CreateOptions::withdrawn_if_dropped), dropping the future is
    /// certain to delete the znode; the caller must give it a unique name.
    ///
    /// # Errors
    /// [`ErrorCode::NodeExists`], and [`ErrorCode::NoNode`] if the parent is missing.
    fn create(
        &self,
        path: &str,
        data: &[u8],
        options: impl Into<CreateOptions>,
    ) -> impl Future<Output = Result<Stamped<Created>, Error>> + Send + 'static;

    /// Creates the client's root if it is missing and the client may create it. A client whose root
    /// always exists has nothing to do.
    ///
    /// # Errors
    /// [`Error::NoRoot`], whose code is [`ErrorCode::NoNode`], if the client may not create it.
    fn create_root(&self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    /// Deletes a znode, and retries in the same session if the reply is lost or the future is
    /// dropped.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`] if it is already gone.
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// Reads the stat of a znode; `None` if it is missing.
    ///
    /// # Errors
    /// Recipes expect none: a missing znode is `None`.
    fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Option<Stat>>, Error>> + Send + 'static;

    /// Like [`ZooKeeper::exists`], with a watch, which also fires when a missing znode is created.
    ///
    /// # Errors
    /// Recipes expect none.
    fn watch_exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Stat>, Self::Watch), Error>> + Send + 'static;

    /// Reads the data of a znode.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    fn data(&self, path: &str) -> impl Future<Output = Result<Data, Error>> + Send + 'static;

    /// Like [`ZooKeeper::data`], with a watch. A missing znode leaves no watch (hazard H10).
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    fn watch_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Data, Self::Watch), Error>> + Send + 'static;

    /// Sets the data of a znode if it has this version; `None` matches any version.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`], [`ErrorCode::BadVersion`].
    fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Error>> + Send + 'static;

    /// Reads the names of a znode's children.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Vec<String>>, Error>> + Send + 'static;

    /// Like [`ZooKeeper::children`], as cheaply as possible: every contender in a queue reads the
    /// list twice, and it is as long as the queue.
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

    /// Like [`ZooKeeper::children`], with a watch.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    fn watch_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stamped<Vec<String>>, Self::Watch), Error>> + Send + 'static;

    /// Waits until the server has applied every earlier change.
    ///
    /// # Errors
    /// Recipes expect none.
    fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// Makes several changes, all or none.
    ///
    /// # Errors
    /// [`Error::MultiRefused`], with the index of the operation that was refused.
    fn multi(
        &self,
        multi: minikeeper_client::Multi,
    ) -> impl Future<Output = Result<Vec<MultiResult>, Error>> + Send + 'static;

    /// Deletes a znode that was created in this epoch, retrying in the background until it is gone.
    fn clean_up(&self, epoch: Epoch, path: &str);

    /// Like [`ZooKeeper::clean_up`], for a child of `parent` whose name begins with `prefix` and
    /// whose creation got no reply.
    fn clean_up_unanswered(&self, epoch: Epoch, parent: &str, prefix: &str);

    /// Returns the id of the session, which servers record as the owner of its ephemeral znodes.
    fn session(&self) -> Option<minikeeper_client::SessionId>;

    /// Returns a new id, unique among all contenders: also among those whose clients have the same
    /// seed.
    fn new_id(&self) -> Uuid;

    /// Returns a random number for the jitter of pauses and for choices that other clients do not see.
    /// It may be the same in two clients.
    ///
    /// Default: from [`ZooKeeper::new_id`].
    fn random(&self) -> u128 {
        self.new_id().as_u128()
    }
}

/// A stream of changes of a client's standing, in order.
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
    /// Waits for the next change; `None` once the client is closed.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    fn next(&mut self) -> impl Future<Output = Option<Standing>> + Send;
}

/// How certain a client is of its session.
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
///     Standing::Suspended { safe_until, .. } => println!("it cannot end before {safe_until:?}"),
///     other => println!("no session: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// There has been no session yet.
    Connecting,
    /// There is a connection.
    Connected {
        /// The number of the session.
        epoch: Epoch,
        /// The time until which no server can have ended the session.
        safe_until: Instant,
    },
    /// There is no connection, or one to a read-only server, which keeps no session alive.
    Suspended {
        /// The number of the session.
        epoch: Epoch,
        /// The time until which no server can have ended the session.
        safe_until: Instant,
    },
    /// This session and all earlier ones are over.
    Lost {
        /// The number of the session.
        epoch: Epoch,
    },
    /// The client is closed.
    Closed,
}

impl Standing {
    /// Returns the number of the session that the standing describes.
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

/// Waits until requests leave on another connection than that of this number, see
/// [`ZooKeeper::connections`].
///
/// A watch that lives on after a reconnect reports only changes with a later zxid than the client has
/// seen. A server whose state is older than that reports none, so what a recipe knows counts for one
/// connection, and is read again on the next one.
pub(crate) async fn reconnected<C: ZooKeeper>(client: &C, connections: u64) {
    let mut states = client.states();
    while client.connections() == connections
        || !matches!(client.standing(), Standing::Connected { .. })
    {
        if states.next().await.is_none() {
            // The client is closed: its watches end.
            std::future::pending::<()>().await;
        }
    }
}
