//! Asking a holder to give its lock back. Nobody is forced.
//!
//! Source: `docs/curator-recipes.md` section 4.8; Curator's `Revoker`, `Revocable`.

use minikeeper_client::{Error, ErrorCode, Fired};

use crate::{
    client::{Standing, StateStream as _, ZooKeeper},
    locks::guard::Guard,
    queue::{
        contending::{in_session, no_session},
        pace::Pace,
    },
    status::{Loss, Status},
};

/// What a lock's znode holds once its holder is asked to give it back.
pub const REVOKE: &[u8] = b"__REVOKE__";

/// Asks holders of locks, Java's too if they listen, to give them back.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Revoker};
///
/// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
/// let guard = lock.acquire().await?;
/// // The holder, in a task of its own:
/// let holder = tokio::spawn(async move {
///     if guard.revocation_requested().await.is_ok() {
///         guard.release().await?;
///     }
///     Ok::<(), minikeeper_client::Error>(())
/// });
/// // Somebody who needs it more:
/// Revoker::attempt_revoke(&client, &lock.participants().await?[0]).await?;
/// lock.acquire().await?;
/// holder.await??;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Revoker;

impl Revoker {
    /// Asks the contender with this path: the first of a lock's participants is its holder. A
    /// contender that is gone needs not be asked.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::{InterProcessMutex, Revoker};
    ///
    /// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// let holder = &lock.participants().await?[0];
    /// Revoker::attempt_revoke(&client, holder).await?;
    /// guard.revocation_requested().await.unwrap();
    /// # Ok(()) }
    /// ```
    pub async fn attempt_revoke<C: ZooKeeper>(client: &C, path: &str) -> Result<(), Error> {
        let set = in_session(client, client.set_data(path, REVOKE, None)).await;
        match set.unwrap_or_else(|| Err(no_session("setData", path))) {
            Err(error) if !error.is(ErrorCode::NoNode) => Err(error),
            _ => Ok(()),
        }
    }
}

impl<C: ZooKeeper> Guard<C> {
    /// Resolves when somebody asks for the lock to be given back, be it before this was called. As
    /// long as a server refuses to tell, it is asked again, once a second at most.
    ///
    /// # Errors
    /// Why the lock was lost: then there is nothing to give back.
    pub async fn revocation_requested(&self) -> Result<(), Loss> {
        let client = &self.held.client;
        let mut states = client.states();
        let mut pace = Pace::of(client);
        loop {
            if let Status::Lost(loss) = self.status() {
                return Err(loss);
            }
            match client.watch_data(self.path()).await {
                Ok((data, watch)) => {
                    if data.as_bytes() == REVOKE {
                        return Ok(());
                    }
                    if watch.await == Fired::EpochOver {
                        return Err(self.lost().await);
                    }
                }
                Err(error) if error.is(ErrorCode::NoNode) => return Err(self.lost().await),
                // Refused, or not answered: asked again after a pause, in this session.
                Err(_) => {
                    let again = async {
                        pace.pause().await;
                        while !matches!(client.standing(), Standing::Connected { .. })
                            && states.next().await.is_some()
                        {}
                    };
                    tokio::select! {
                        biased;
                        () = self.held.session_over() => {}
                        () = again => {}
                    }
                }
            }
        }
    }
}
