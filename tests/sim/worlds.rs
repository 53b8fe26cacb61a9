//! What there is to contend for, one recipe or family a file.

mod latch;
mod multi_lock;
mod mutex;
mod read_write;
mod selector;
mod semaphore;
mod semaphore_mutex;

use crate::contender::Contender;

/// What a run is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum World {
    Mutex,
    ReadWrite,
    Semaphore,
    SemaphoreMutex,
    MultiLock,
    Latch,
    Selector,
}

impl World {
    pub(crate) const ALL: [Self; 7] = [
        Self::Mutex,
        Self::ReadWrite,
        Self::Semaphore,
        Self::SemaphoreMutex,
        Self::MultiLock,
        Self::Latch,
        Self::Selector,
    ];

    /// That of a seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let at = usize::try_from(seed % Self::ALL.len() as u64).unwrap_or_default();
        Self::ALL[at]
    }

    /// One contender's part, until all is well and it has been served once more.
    pub(crate) async fn contend(self, seed: u64, contender: Contender) {
        match self {
            Self::Mutex => mutex::contend(contender).await,
            Self::ReadWrite => read_write::contend(contender).await,
            Self::Semaphore => semaphore::contend(seed, contender).await,
            Self::SemaphoreMutex => semaphore_mutex::contend(contender).await,
            Self::MultiLock => multi_lock::contend(contender).await,
            Self::Latch => latch::contend(contender).await,
            Self::Selector => selector::contend(contender).await,
        }
    }
}
