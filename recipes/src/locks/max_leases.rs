//! How many leases a semaphore has.
//!
//! Source: `docs/curator-recipes.md` section 6.5.

use std::{fmt, future::pending};

use crate::{
    client::ZooKeeper,
    error::ValueError,
    values::shared_count::{CountChanges, SharedCount},
};

/// How many leases a semaphore has. All who use it must agree on that, which nobody checks.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessSemaphoreV2, MaxLeases, SharedCount};
///
/// let max = SharedCount::start(client.clone(), "/limits/workers", 1).await?;
/// let workers = InterProcessSemaphoreV2::new(client, "/workers", MaxLeases::Shared(max.clone()))?;
/// let one = workers.acquire().await?;
/// max.set(2).await?;
/// let another = workers.acquire().await?;
/// # Ok(()) }
/// ```
#[non_exhaustive]
pub enum MaxLeases<C: ZooKeeper> {
    /// So many, for ever.
    Fixed(u32),
    /// What this count says; below zero is none. It may change while leases are held and waited
    /// for: nobody loses a lease by that.
    Shared(SharedCount<C>),
}

impl<C: ZooKeeper> Clone for MaxLeases<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Fixed(max) => Self::Fixed(*max),
            Self::Shared(count) => Self::Shared(count.clone()),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for MaxLeases<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(max) => max.fmt(f),
            Self::Shared(count) => count.fmt(f),
        }
    }
}

impl<C: ZooKeeper> From<u32> for MaxLeases<C> {
    fn from(max: u32) -> Self {
        Self::Fixed(max)
    }
}

impl<C: ZooKeeper> From<SharedCount<C>> for MaxLeases<C> {
    fn from(count: SharedCount<C>) -> Self {
        Self::Shared(count)
    }
}

impl<C: ZooKeeper> MaxLeases<C> {
    /// The maximum just now.
    pub(crate) async fn get(&self) -> Result<u32, ValueError> {
        match self {
            Self::Fixed(max) => Ok(*max),
            Self::Shared(count) => Ok(leases(count.get().await?.value)),
        }
    }

    /// The maximum as far as it is known: the last one, while there is no connection.
    pub(crate) fn current(&self) -> Result<u32, ValueError> {
        match self {
            Self::Fixed(max) => Ok(*max),
            Self::Shared(count) => Ok(leases(count.current()?.value)),
        }
    }

    pub(crate) fn changes(&self) -> MaxChanges<C> {
        match self {
            Self::Fixed(_) => MaxChanges(None),
            Self::Shared(count) => MaxChanges(Some(count.changes())),
        }
    }
}

fn leases(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

/// The changes of a maximum, for one who waits. It watches no longer than that (hazard H17).
pub(crate) struct MaxChanges<C: ZooKeeper>(Option<CountChanges<C>>);

impl<C: ZooKeeper> MaxChanges<C> {
    /// Resolves when it has changed. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<(), ValueError> {
        match &mut self.0 {
            None => pending().await,
            Some(changes) => changes.next().await.map(drop),
        }
    }
}
