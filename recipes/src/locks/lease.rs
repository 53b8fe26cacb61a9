//! What a semaphore gives.
//!
//! Source: `docs/curator-recipes.md` sections 6.4 and 10.2.

use std::{fmt, future::Future};

use minikeeper_client::{Bytes, Error, Zxid};

use crate::{
    client::ZooKeeper,
    error::Released,
    locks::guard::Guard,
    queue::{
        contending::{in_session, no_session},
        naming,
    },
    status::{Loss, Status},
};

/// A lease of a semaphore. Dropping it gives it back without waiting.
///
/// Made by the `acquire` methods of [`InterProcessSemaphoreV2`](crate::InterProcessSemaphoreV2).
/// It belongs to nobody: it may move to other tasks, and be given back anywhere.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessSemaphoreV2, Status};
///
/// let licences = InterProcessSemaphoreV2::new(client, "/licences", 3)?;
/// let lease = licences.acquire().await?;
/// assert_eq!(lease.status(), Status::Held);
/// lease.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "a lease that is dropped is given back"]
pub struct Lease<C: ZooKeeper> {
    pub(crate) guard: Guard<C>,
}

impl<C: ZooKeeper> Lease<C> {
    /// The number of this lease, unlike that of any other. Several are valid at once, so it is no
    /// fencing token: a resource must not refuse a smaller one.
    #[must_use]
    pub fn czxid(&self) -> Zxid {
        Zxid(self.guard.token().czxid)
    }

    /// The path of the lease's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        self.guard.path()
    }

    /// The name of the lease's znode.
    #[must_use]
    pub fn name(&self) -> &str {
        naming::name_of(self.path())
    }

    /// The data of the lease's znode, as a server has it.
    ///
    /// # Errors
    /// [`Error::Refused`] when a server refuses, as it does with
    /// [`NoNode`](minikeeper_client::ErrorCode::NoNode) when the lease is lost;
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed: ask again.
    pub async fn data(&self) -> Result<Bytes, Error> {
        let client = &self.guard.held.client;
        let data = in_session(client, client.data(self.path())).await;
        let data = data.unwrap_or_else(|| Err(no_session("getData", self.path())))?;
        Ok(data.data.unwrap_or_default())
    }

    /// Whether the lease is still held; see [`Guard::status`].
    #[must_use]
    pub fn status(&self) -> Status {
        self.guard.status()
    }

    /// Resolves when the lease is lost.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// Runs a future as long as the lease is held; drops it when the lease is lost.
    ///
    /// # Errors
    /// Why the lease was lost: the work is dropped, and what it did last may have happened without
    /// the lease.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        self.guard.run(work).await
    }

    /// Whatever else can be asked of what is held.
    pub const fn guard(&self) -> &Guard<C> {
        &self.guard
    }

    /// Gives the lease back and waits until that is certain; see [`Guard::release`].
    ///
    /// # Errors
    /// Those of [`Guard::release`].
    pub async fn release(self) -> Result<Released, Error> {
        self.guard.release().await
    }
}

impl<C: ZooKeeper> fmt::Debug for Lease<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("path", &self.path())
            .field("czxid", &self.czxid())
            .finish_non_exhaustive()
    }
}
