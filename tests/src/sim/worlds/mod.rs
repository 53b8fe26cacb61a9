//! The contenders' work, one recipe or family per file.

mod barrier;
mod cache;
mod count;
mod counter;
mod discovery;
mod double_barrier;
mod group;
mod latch;
mod local;
mod multi_lock;
mod mutex;
mod node;
mod read_write;
mod selector;
mod semaphore;
mod semaphore_mutex;
mod ttl_node;

use crate::sim::contender::Contender;

/// The recipe of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum World {
    Mutex,
    ReadWrite,
    Semaphore,
    SemaphoreMutex,
    MultiLock,
    Latch,
    Selector,
    LocalHandOver,
    Counter,
    SharedCount,
    PersistentNode,
    Barrier,
    DoubleBarrier,
    Cache,
    TtlNode,
    Group,
    Discovery,
}

impl World {
    pub const ALL: [Self; 17] = [
        Self::Mutex,
        Self::ReadWrite,
        Self::Semaphore,
        Self::SemaphoreMutex,
        Self::MultiLock,
        Self::Latch,
        Self::Selector,
        Self::LocalHandOver,
        Self::Counter,
        Self::SharedCount,
        Self::PersistentNode,
        Self::Barrier,
        Self::DoubleBarrier,
        Self::Cache,
        Self::TtlNode,
        Self::Group,
        Self::Discovery,
    ];

    /// Returns the world of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let at = usize::try_from(seed % Self::ALL.len() as u64).unwrap_or_default();
        Self::ALL[at]
    }

    /// Runs one contender until the faults have ended and it has been served once more.
    pub async fn contend(self, seed: u64, contender: Contender) {
        match self {
            Self::Mutex => mutex::contend(contender).await,
            Self::ReadWrite => read_write::contend(contender).await,
            Self::Semaphore => semaphore::contend(seed, contender).await,
            Self::SemaphoreMutex => semaphore_mutex::contend(contender).await,
            Self::MultiLock => multi_lock::contend(contender).await,
            Self::Latch => latch::contend(contender).await,
            Self::Selector => selector::contend(contender).await,
            Self::LocalHandOver => local::contend(contender).await,
            Self::Counter => counter::contend(contender).await,
            Self::SharedCount => count::contend(contender).await,
            Self::PersistentNode => node::contend(contender).await,
            Self::Barrier => barrier::contend(contender).await,
            Self::DoubleBarrier => double_barrier::contend(contender).await,
            Self::Cache => cache::contend(contender).await,
            Self::TtlNode => ttl_node::contend(contender).await,
            Self::Group => group::contend(contender).await,
            Self::Discovery => discovery::contend(contender).await,
        }
    }
}
