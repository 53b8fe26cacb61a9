//! What the recipes need from a ZooKeeper client, as a trait.
//!
//! Small on purpose: whoever has another client writes an adapter in an afternoon. With
//! [`minikeeper_client::Client`], the client the recipes are made for, nothing has to be written.
//!
//! Requests are made when a method is called and not when its future is polled first: recipes
//! rely on that order, and on requests made one after the other leaving together. An adapter that
//! cannot do the latter is slower, not wrong.
//!
//! Source: curator-recipes reference section 2.9.

mod own;
mod standing;

pub use own::OwnStates;
pub use standing::{Standing, StateStream};

use std::future::Future;

use minikeeper_client::{
    CreateMode, Created, Data, Epoch, Error, Fired, MultiResult, Names, Stamped, Stat,
};
use uuid::Uuid;

/// The client's side of a lock.
///
/// Every future is `Send` and may be dropped at any time.
pub trait ZooKeeper: Clone + Send + Sync + 'static {
    /// A watch that fires once; dropping it takes it away.
    type Watch: Future<Output = Fired> + Send + Unpin + 'static;

    /// Every change of the connection's state.
    type States: StateStream;

    /// How sure the client is of its session just now.
    fn standing(&self) -> Standing;

    /// Every change of [`ZooKeeper::standing`] from here on.
    fn states(&self) -> Self::States;

    /// How many connections there were; see [`minikeeper_client::Client::connections`].
    fn connections(&self) -> u64;

    /// Creates a znode open to everybody. If `is_withdrawn`, dropping the future takes the znode
    /// away again, for certain; its name is then like no other.
    fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        is_withdrawn: bool,
    ) -> impl Future<Output = Result<Stamped<Created>, Error>> + Send + 'static;

    /// Deletes a znode, and goes on trying in this session if the answer gets lost.
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// The stat of a znode, if it is there.
    fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Option<Stat>>, Error>> + Send + 'static;

    /// The same, and a watch on it, which waits for the creation of a missing znode.
    fn watch_exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Stat>, Self::Watch), Error>> + Send + 'static;

    /// The data of a znode.
    fn data(&self, path: &str) -> impl Future<Output = Result<Data, Error>> + Send + 'static;

    /// The data of a znode, and a watch on it. A missing znode leaves no watch (hazard H10).
    fn watch_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Data, Self::Watch), Error>> + Send + 'static;

    /// Sets the data of a znode, if it has this version unless that is `None`.
    fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Error>> + Send + 'static;

    /// The names of a znode's children.
    fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Vec<String>>, Error>> + Send + 'static;

    /// The same, as cheap as can be: every contender in a queue asks for it twice, and it is as long
    /// as the queue.
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

    /// The same, and a watch on them.
    fn watch_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stamped<Vec<String>>, Self::Watch), Error>> + Send + 'static;

    /// Returns when the server knows every change that was made before.
    fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static;

    /// Makes several changes together or not at all.
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
