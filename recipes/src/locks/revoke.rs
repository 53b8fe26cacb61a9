//! Asking a holder to release its lock. The holder decides.
//!
//! Source: `docs/curator-recipes.md` section 4.8; Curator's `Revoker`, `Revocable`.

use minikeeper_client::{Client, Error, ErrorCode};

use crate::{
    call_limit::CallLimit,
    client::{Standing, Standings},
    locks::guard::Guard,
    queue::{
        contending::{in_session, no_session},
        pace::Pace,
    },
    status::{Loss, Status},
};

/// The data of a lock's znode after its holder was asked to release it.
pub const REVOKE: &[u8] = b"__REVOKE__";

/// Asks the holders of locks to release them, including Java holders that listen for it.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMutex, Revoker};
///
/// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
/// let guard = lock.acquire().await?;
/// // The holder, in its own task:
/// let holder = tokio::spawn(async move {
///     if guard.revocation_requested().await.is_ok() {
///         guard.release().await?;
///     }
///     Ok::<(), minikeeper_client::Error>(())
/// });
/// // A contender that needs the lock more urgently:
/// Revoker::attempt_revoke(&client, &lock.participants().await?[0]).await?;
/// lock.acquire().await?;
/// holder.await??;
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Revoker;

impl Revoker {
    /// Asks the contender with this znode to release its lock. The first of a lock's participants
    /// is its holder. Succeeds if the znode is already gone.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall the request: the contender may have been asked.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. Asking twice does no harm, so retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn attempt_revoke(client: &Client, path: &str) -> Result<(), Error> {
        let set = in_session(client, client.set_data(path, REVOKE, None));
        let limit = CallLimit::change(client, "attempt_revoke", path);
        let set = limit
            .run(async {
                set.await
                    .unwrap_or_else(|| Err(no_session("setData", path)))
            })
            .await;
        match set {
            Err(error) if !error.is(ErrorCode::NoNode) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Guard {
    /// Waits until a contender asks the holder to release the lock. A request made before this call
    /// counts. If a server refuses to read the znode, this retries at growing intervals of up to a
    /// second.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// The [`Loss`] if the lock was lost: there is nothing to release.
    pub async fn revocation_requested(&self) -> Result<(), Loss> {
        let client = &self.held.client;
        let mut states = Standings::of(client);
        let mut pace = Pace::of(client);
        loop {
            if let Status::Lost(loss) = self.status() {
                return Err(loss);
            }
            let revocation = async {
                match client.get_data_and_watch(self.path()).await {
                    Ok((data, _)) if data.as_bytes() == REVOKE => return Some(Ok(())),
                    Ok((_, watch)) => drop(watch.await),
                    Err(error) if error.is(ErrorCode::NoNode) => {
                        return Some(Err(self.lost().await));
                    }
                    // Refused or not answered: retry after a pause, in this session.
                    Err(_) => {
                        pace.pause().await;
                        while !matches!(Standing::of(client), Standing::Connected { .. })
                            && states.next().await.is_some()
                        {}
                    }
                }
                None
            };
            tokio::select! {
                biased;
                () = self.held.session_over() => {}
                revocation = revocation => if let Some(revocation) = revocation {
                    return revocation;
                },
            }
        }
    }
}
