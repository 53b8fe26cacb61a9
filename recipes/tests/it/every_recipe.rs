//! Every recipe behind the same interface: a test waits for it, keeps it for a while, and releases
//! it.

use std::{error::Error, pin::Pin, time::Duration};

use minikeeper_client::{Client, CreateMode};
use minikeeper_recipes::{
    CuratorCache, DistributedAtomicLong, DistributedBarrier, DistributedDoubleBarrier, Guard,
    InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LatchOptions, LeaderLatch, LeaderSelector,
    Lease, LockOptions, Member, MultiGuard, PersistentNode, SelectorOptions, SharedCount, Status,
    WriteGuard,
};
use tokio::time::sleep;

use crate::kit::{PATH, spawn};

/// Passes every recipe to a macro, each with the name of a module for its tests.
macro_rules! every_recipe {
    ($macro:ident) => {
        $macro! {
            Mutex mutex,
            SemaphoreMutex semaphore_mutex,
            Read read,
            Write write,
            Downgrade downgrade,
            Semaphore semaphore,
            // Three leases together, or one after the other, by options.
            Leases leases,
            CountedSemaphore counted_semaphore,
            MultiLock multi_lock,
            CountStart count_start,
            CountSet count_set,
            CountChange count_change,
            Counter counter,
            Latch latch,
            Selector selector,
            Barrier barrier,
            Enter enter,
            Leave leave,
            EphemeralNode ephemeral_node,
            SequentialNode sequential_node,
            Cache cache,
        }
    };
}

pub(crate) use every_recipe;

macro_rules! recipes {
    ($($recipe:ident $module:ident,)+) => {
        /// A recipe to test.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Recipe {
            $($recipe,)+
        }

        impl Recipe {
            pub(crate) const ALL: &[Self] = &[$(Self::$recipe),+];
        }
    };
}

every_recipe!(recipes);

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

pub(crate) type Waiting = Pin<Box<dyn Future<Output = Result<Kept, Failure>> + Send>>;

/// The result of a wait.
pub(crate) enum Kept {
    Nothing,
    Guard(Guard),
    Writer(WriteGuard),
    Leases(Vec<Lease>),
    Locks(MultiGuard),
    Latch(LeaderLatch),
    Selector(LeaderSelector),
    Node(PersistentNode),
    Cache(CuratorCache),
    Member(Member),
}

impl Kept {
    /// Releases it and waits for the confirmation.
    pub(crate) async fn give_back(self) {
        // A release that was not confirmed still happens, which is checked later.
        match self {
            Self::Latch(latch) => drop(latch.close().await),
            Self::Selector(selector) => drop(selector.close().await),
            Self::Node(node) => drop(node.close().await),
            Self::Cache(cache) => cache.close().await,
            Self::Member(member) => drop(member.leave().await),
            Self::Guard(guard) => drop(guard.release().await),
            Self::Writer(guard) => drop(guard.release().await),
            Self::Locks(guard) => drop(guard.release().await),
            other => drop(other),
        }
    }

    /// Returns whether this still holds the lock, or leads.
    pub(crate) fn is_held(&self) -> bool {
        if let Self::Latch(latch) = self {
            return latch.has_leadership();
        }
        let status = match self {
            Self::Guard(guard) => guard.status(),
            Self::Writer(guard) => guard.status(),
            Self::Leases(leases) => leases[0].status(),
            Self::Locks(guard) => guard.status(),
            _ => return false,
        };
        status == Status::Held
    }
}

async fn give_back_after(delay: Duration, what: Kept) {
    sleep(delay).await;
    what.give_back().await;
}

const MULTI: [&str; 3] = ["/locks/a", "/locks/b", "/locks/c"];

/// Long enough for the contenders ahead to be in place.
const SETTLE: Duration = Duration::from_millis(100);

impl Recipe {
    /// Returns whether its holder excludes all other contenders.
    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(
            self,
            Self::Mutex
                | Self::SemaphoreMutex
                | Self::Write
                | Self::Semaphore
                | Self::Leases
                | Self::CountedSemaphore
                | Self::MultiLock
        )
    }

    /// Returns whether it depends on [`LockOptions`].
    pub(crate) const fn has_options(self) -> bool {
        matches!(
            self,
            Self::Mutex
                | Self::SemaphoreMutex
                | Self::Read
                | Self::Write
                | Self::Downgrade
                | Self::Semaphore
                | Self::Leases
                | Self::CountedSemaphore
                | Self::Latch
                | Self::Selector
        )
    }

    /// Returns the persistent znodes that remain at the end, because they hold the shared value.
    pub(crate) const fn stays(self) -> &'static [&'static str] {
        match self {
            Self::CountedSemaphore
            | Self::CountStart
            | Self::CountSet
            | Self::CountChange
            | Self::Counter => &["/count"],
            _ => &[],
        }
    }

    /// Returns whether it may fail when the connection or the session is lost: the outcome is
    /// unknown, or a part of its work is lost.
    pub(crate) const fn may_fail(self) -> bool {
        matches!(
            self,
            Self::Downgrade
                | Self::MultiLock
                | Self::CountSet
                | Self::Counter
                | Self::CountStart
                | Self::CountedSemaphore
                | Self::CountChange
        )
    }

    /// Starts a recipe that runs in the background, and does not wait for anything.
    pub(crate) fn start(self, client: &Client, options: &LockOptions) -> Kept {
        let client = client.clone();
        match self {
            Self::Latch => {
                let mut latch = LatchOptions::default();
                latch.lock = options.clone();
                Kept::Latch(LeaderLatch::start_with(client, PATH, "id", latch).unwrap())
            }
            Self::Selector => {
                let mut selector = SelectorOptions::default();
                selector.lock = options.clone();
                let selector = LeaderSelector::start(client, PATH, "id", selector, |_| {
                    Box::pin(sleep(SETTLE))
                });
                Kept::Selector(selector.unwrap())
            }
            _ => {
                let mode = CreateMode::EphemeralSequential;
                Kept::Node(PersistentNode::start(client, "/locks/a/n", b"", mode).unwrap())
            }
        }
    }

    /// Waits for the recipe, from the beginning.
    pub(crate) fn enter(self, client: &Client, options: &LockOptions) -> Waiting {
        let (client, options) = (client.clone(), options.clone());
        Box::pin(self.run(client, options))
    }

    async fn run(self, client: Client, options: LockOptions) -> Result<Kept, Failure> {
        let rw = |client| InterProcessReadWriteLock::with_options(client, PATH, options.clone());
        Ok(match self {
            Self::Mutex => {
                let lock = InterProcessMutex::with_options(client, PATH, options)?;
                Kept::Guard(lock.acquire().await?)
            }
            Self::SemaphoreMutex => {
                let lock = InterProcessSemaphoreMutex::with_options(client, PATH, options)?;
                Kept::Guard(lock.acquire().await?)
            }
            Self::Read => Kept::Guard(rw(client)?.acquire_read().await?),
            Self::Write | Self::Downgrade => {
                let guard = rw(client)?.acquire_write().await?;
                if self == Self::Write {
                    return Ok(Kept::Writer(guard));
                }
                Kept::Guard(guard.downgrade().await?)
            }
            Self::Semaphore => {
                let one = InterProcessSemaphoreV2::with_options(client, PATH, 1, options)?;
                Kept::Leases(vec![one.acquire().await?])
            }
            Self::Leases => {
                let three = InterProcessSemaphoreV2::with_options(client, PATH, 3, options)?;
                Kept::Leases(three.acquire_many(3).await?)
            }
            Self::CountedSemaphore => {
                let count = SharedCount::start(client.clone(), "/count", 1).await?;
                let semaphore =
                    InterProcessSemaphoreV2::with_options(client, PATH, count, options)?;
                Kept::Leases(vec![semaphore.acquire().await?])
            }
            Self::MultiLock => {
                let lock = InterProcessMultiLock::from_paths(client, MULTI)?;
                Kept::Locks(lock.acquire().await?)
            }
            Self::CountStart => {
                SharedCount::start(client, "/count", 1).await?;
                Kept::Nothing
            }
            Self::CountSet => {
                let count = SharedCount::start(client, "/count", 1).await?;
                count.set(2).await?;
                Kept::Nothing
            }
            Self::CountChange => {
                let count = SharedCount::start(client, "/count", 1).await?;
                let mut changes = count.changes();
                let change = changes.next();
                count.set(3).await?;
                change.await?;
                Kept::Nothing
            }
            Self::Counter => {
                DistributedAtomicLong::new(client, "/count")?.add(1).await?;
                Kept::Nothing
            }
            Self::Latch => {
                let mut latch = LatchOptions::default();
                latch.lock = options;
                let latch = LeaderLatch::start_with(client, PATH, "id", latch)?;
                latch.wait().await?;
                Kept::Latch(latch)
            }
            Self::Selector => {
                let mut selector = SelectorOptions::default();
                selector.lock = options;
                let selector = LeaderSelector::start(client, PATH, "id", selector, |_| {
                    Box::pin(sleep(Duration::from_millis(2)))
                })?;
                selector.done().await?;
                Kept::Selector(selector)
            }
            Self::Barrier => {
                DistributedBarrier::new(client, PATH)?.wait().await?;
                Kept::Nothing
            }
            Self::Enter => {
                let barrier = DistributedDoubleBarrier::new(client, PATH, 1)?;
                Kept::Member(barrier.enter().await?)
            }
            Self::Leave => {
                let barrier = DistributedDoubleBarrier::new(client, PATH, 1)?;
                barrier.enter().await?.leave().await?;
                Kept::Nothing
            }
            Self::EphemeralNode | Self::SequentialNode => {
                let mode = match self {
                    Self::EphemeralNode => CreateMode::Ephemeral,
                    _ => CreateMode::EphemeralSequential,
                };
                let node = PersistentNode::start(client, "/locks/a/n", b"", mode)?;
                node.created().await?;
                Kept::Node(node)
            }
            Self::Cache => {
                let cache = CuratorCache::start(client, "/locks")?;
                cache.initialized().await?;
                Kept::Cache(cache)
            }
        })
    }

    /// Like [`Recipe::enter`], with another contender ahead, which leaves after `delay`.
    ///
    /// That contender is in place when this returns.
    pub(crate) async fn enter_contended(
        self,
        client: &Client,
        options: &LockOptions,
        other: &Client,
        delay: Duration,
    ) -> Waiting {
        let double = |client: &Client| DistributedDoubleBarrier::new(client.clone(), PATH, 2);
        let after = |what| give_back_after(delay, what);
        match self {
            Self::Read => {
                let lock = InterProcessReadWriteLock::new(other.clone(), PATH).unwrap();
                let guard = lock.acquire_write().await.unwrap();
                spawn(async move {
                    sleep(delay).await;
                    drop(guard);
                });
            }
            Self::Write => {
                let lock = InterProcessReadWriteLock::new(other.clone(), PATH).unwrap();
                spawn(after(Kept::Guard(lock.acquire_read().await.unwrap())));
            }
            // Another writer waits for this one.
            Self::Downgrade => {
                let lock =
                    InterProcessReadWriteLock::with_options(client.clone(), PATH, options.clone());
                let guard = lock.unwrap().acquire_write().await.unwrap();
                spawn(Self::Write.enter(other, options));
                sleep(SETTLE).await;
                return Box::pin(async move { Ok(Kept::Guard(guard.downgrade().await?)) });
            }
            Self::Leases => {
                let three = InterProcessSemaphoreV2::new(other.clone(), PATH, 3).unwrap();
                spawn(after(Kept::Leases(vec![three.acquire().await.unwrap()])));
            }
            Self::MultiLock => {
                let lock = InterProcessMutex::new(other.clone(), MULTI[1]).unwrap();
                spawn(after(Kept::Guard(lock.acquire().await.unwrap())));
            }
            Self::CountSet => {
                // Another client sets it in between.
                let count = SharedCount::start(client.clone(), "/count", 1).await;
                let (count, other) = (count.unwrap(), other.clone());
                spawn(async move {
                    let theirs = SharedCount::start(other, "/count", 1).await.unwrap();
                    theirs.set(7).await.unwrap();
                });
                return Box::pin(async move {
                    count.set(2).await?;
                    Ok(Kept::Nothing)
                });
            }
            Self::CountChange => {
                let count = SharedCount::start(client.clone(), "/count", 1).await;
                let (count, other) = (count.unwrap(), other.clone());
                spawn(async move {
                    let theirs = SharedCount::start(other, "/count", 1).await.unwrap();
                    sleep(delay).await;
                    theirs.set(7).await.unwrap();
                });
                return Box::pin(async move {
                    count.changes().next().await?;
                    Ok(Kept::Nothing)
                });
            }
            Self::Selector => {
                let lock = InterProcessMutex::new(other.clone(), PATH).unwrap();
                spawn(after(Kept::Guard(lock.acquire().await.unwrap())));
            }
            Self::Barrier => {
                let barrier = DistributedBarrier::new(other.clone(), PATH).unwrap();
                barrier.set().await.unwrap();
                spawn(async move {
                    sleep(delay).await;
                    barrier.remove().await.unwrap();
                });
            }
            Self::Enter => {
                let (one, other) = (double(client).unwrap(), double(other).unwrap());
                spawn(async move {
                    sleep(delay).await;
                    // The other member may be gone, or may have lost its session when all had
                    // entered: then it enters again, for the next round.
                    let within = Duration::from_secs(30);
                    for _ in 0..2 {
                        if let Ok(member) = other.enter().within(within).await {
                            let _ = member.leave().within(within).await;
                        }
                    }
                });
                return Box::pin(async move { Ok(Kept::Member(one.enter().await?)) });
            }
            Self::Leave => {
                let (one, other) = (double(client).unwrap(), double(other).unwrap());
                let (member, theirs) = tokio::join!(one.enter(), other.enter());
                let (member, theirs) = (member.unwrap(), theirs.unwrap());
                spawn(async move {
                    sleep(delay).await;
                    theirs.leave().await.unwrap();
                });
                return Box::pin(async move {
                    member.leave().await?;
                    Ok(Kept::Nothing)
                });
            }
            // It loads while a znode comes and goes.
            Self::Cache => {
                let other = Self::EphemeralNode.enter(other, options);
                spawn(after(other.await.unwrap()));
            }
            Self::SequentialNode | Self::Counter | Self::CountStart => {}
            _ => {
                let kept = self.enter(other, options).await.unwrap();
                spawn(after(kept));
            }
        }
        self.enter(client, options)
    }
}
