//! Checked by the compiler: every public type is `Send` and `Sync`, and every future is `Send`.

use std::time::Duration;

use minikeeper_client::{Client, CreateMode, Multi};
use minikeeper_recipes::{
    Acquire, AtomicError, AtomicOptions, AtomicValue, CacheChanges, CacheError, CacheEvent,
    CacheOptions, CacheSnapshot, CachedAtomicLong, CachedZnode, ChildrenChanges, ChildrenEvent,
    CloseMode, CountChanges, CuratorCache, Damage, DistributedAtomic, DistributedAtomicLong,
    DistributedBarrier, DistributedDoubleBarrier, ErrorPolicy, FencingToken, GroupChanges,
    GroupError, GroupMember, Guard, InterProcessMultiLock, InterProcessMutex,
    InterProcessReadWriteLock, InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LatchError,
    LatchOptions, LeaderLatch, LeaderSelector, Leadership, LeadershipChanges, Lease, LocalHandOver,
    LockError, LockOptions, Loss, MaxLeases, Member, MultiGuard, MultiMember, NodeCache,
    NodeChanges, Owner, Participant, PathChildrenCache, PersistentNode, PersistentTtlNode,
    Promotion, QueuePosition, Released, Revoker, SelectorOptions, SharedCount, SharedValue, Status,
    TokenCheck, TokenRefused, TreeCache, TreeChanges, TreeEvent, TtlNodeOptions, ValueChanges,
    ValueError, VersionedValue, Work, WriteGuard,
    order::{Ahead, Claim, Look},
};

const fn shared<T: Send + Sync>() {}

const fn sent<T: Send>() {}

#[cfg(feature = "discovery")]
const _: () = {
    use minikeeper_recipes::{
        DamagedInstance, DiscoveryError, DownInstancePolicy, InstanceError, RandomStrategy,
        RoundRobinStrategy, ServiceCache, ServiceChanges, ServiceDiscovery, ServiceInstance,
        ServiceInstances, ServiceProvider, ServiceProviderBuilder, ServiceType, StickyStrategy,
        UriPart, UriSpec, UriSpecError,
    };
    shared::<DamagedInstance>();
    shared::<DiscoveryError>();
    shared::<DownInstancePolicy>();
    shared::<InstanceError>();
    shared::<RandomStrategy>();
    shared::<RoundRobinStrategy>();
    shared::<ServiceCache>();
    shared::<ServiceChanges>();
    shared::<ServiceDiscovery>();
    shared::<ServiceInstance>();
    shared::<ServiceInstances>();
    shared::<ServiceProvider>();
    shared::<ServiceProviderBuilder>();
    shared::<ServiceType>();
    shared::<StickyStrategy<u64>>();
    shared::<UriPart>();
    shared::<UriSpec>();
    shared::<UriSpecError>();
};

const _: () = {
    shared::<AtomicError>();
    shared::<AtomicOptions>();
    shared::<AtomicValue>();
    shared::<CacheChanges>();
    shared::<CacheError>();
    shared::<CacheEvent>();
    shared::<CacheOptions>();
    shared::<CacheSnapshot>();
    shared::<CachedAtomicLong>();
    shared::<CachedZnode>();
    shared::<ChildrenChanges>();
    shared::<ChildrenEvent>();
    shared::<CloseMode>();
    shared::<CountChanges>();
    shared::<CuratorCache>();
    shared::<Damage>();
    shared::<DistributedAtomic<i32>>();
    shared::<DistributedAtomicLong>();
    shared::<DistributedBarrier>();
    shared::<DistributedDoubleBarrier>();
    shared::<ErrorPolicy>();
    shared::<FencingToken>();
    shared::<GroupChanges>();
    shared::<GroupError>();
    shared::<GroupMember>();
    shared::<Guard>();
    shared::<InterProcessMultiLock>();
    shared::<InterProcessMutex>();
    shared::<InterProcessReadWriteLock>();
    shared::<InterProcessSemaphoreMutex>();
    shared::<InterProcessSemaphoreV2>();
    shared::<LatchError>();
    shared::<LatchOptions>();
    shared::<LeaderLatch>();
    shared::<LeaderSelector>();
    shared::<Leadership>();
    shared::<LeadershipChanges>();
    shared::<Lease>();
    shared::<LocalHandOver>();
    shared::<LockError>();
    shared::<LockOptions>();
    shared::<Loss>();
    shared::<MaxLeases>();
    shared::<Member>();
    shared::<MultiGuard>();
    shared::<MultiMember>();
    shared::<NodeCache>();
    shared::<NodeChanges>();
    shared::<Owner>();
    shared::<Participant>();
    shared::<PathChildrenCache>();
    shared::<PersistentNode>();
    shared::<PersistentTtlNode>();
    shared::<Promotion>();
    shared::<QueuePosition>();
    shared::<Released>();
    shared::<Revoker>();
    shared::<SelectorOptions>();
    shared::<SharedCount>();
    shared::<SharedValue>();
    shared::<Status>();
    shared::<TokenCheck>();
    shared::<TokenRefused>();
    shared::<TreeCache>();
    shared::<TreeChanges>();
    shared::<TreeEvent>();
    shared::<TtlNodeOptions>();
    shared::<ValueChanges>();
    shared::<ValueError>();
    shared::<VersionedValue<i32>>();
    shared::<WriteGuard>();
    shared::<Ahead>();
    shared::<Claim>();
    shared::<Look>();
    // Futures, which one task polls at a time.
    sent::<Acquire<'static, &InterProcessMutex, Guard>>();
    sent::<Work<'static>>();
};

fn send<F: Future + Send>(_: F) {}

/// Never called: it is enough that this compiles.
#[expect(dead_code, reason = "only the types matter")]
async fn futures_are_send(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    let path = "/a";
    let lock = InterProcessMutex::new(client.clone(), path)?;
    send(lock.acquire().within(Duration::ZERO));
    let position = QueuePosition::default();
    send(lock.acquire().report_to(&position));
    send(position.ahead());
    send(lock.try_acquire());
    send(lock.participants());
    let guard = lock.acquire().await?;
    send(guard.lost());
    send(guard.unsure());
    send(guard.run(async {}));
    send(guard.multi(|multi: Multi| multi));
    send(guard.revocation_requested());
    send(guard.release());
    send(Revoker::attempt_revoke(&client, path));

    let lock = InterProcessReadWriteLock::new(client.clone(), path)?;
    send(lock.acquire_read().as_owner(&Owner::new()));
    send(lock.acquire_write());
    send(lock.readers());
    send(lock.writers());
    let writer = lock.acquire_write().await?;
    send(writer.downgrade());
    send(lock.acquire_write().await?.release());

    let semaphore = InterProcessSemaphoreV2::new(client.clone(), path, 1)?;
    send(semaphore.acquire());
    send(semaphore.try_acquire());
    send(semaphore.acquire_many(2));
    send(semaphore.available());
    send(semaphore.participants());
    let lease = semaphore.acquire().await?;
    send(lease.data());
    send(lease.lost());
    send(lease.run(async {}));
    send(lease.release());

    let lock = InterProcessSemaphoreMutex::new(client.clone(), path)?;
    send(lock.acquire());
    send(lock.try_acquire());

    let lock = InterProcessMultiLock::from_paths(client.clone(), [path])?;
    send(lock.acquire());
    send(lock.try_acquire());
    let guard = lock.acquire().await?;
    send(guard.lost());
    send(guard.run(async {}));
    send(guard.release());

    let latch = LeaderLatch::start(client.clone(), path, "")?;
    send(latch.wait());
    send(latch.participants());
    send(latch.leader());
    send(latch.close());
    send(latch.changes().next());

    let options = SelectorOptions::default();
    let selector =
        LeaderSelector::start(client.clone(), path, "", options, |_| Box::pin(async {}))?;
    send(selector.done());
    send(selector.participants());
    send(selector.leader());
    send(selector.close());

    let barrier = DistributedBarrier::new(client.clone(), path)?;
    send(barrier.set());
    send(barrier.remove());
    send(barrier.wait());
    let barrier = DistributedDoubleBarrier::new(client.clone(), path, 1)?;
    send(barrier.enter());
    send(barrier.enter().await?.leave());

    let counter = DistributedAtomicLong::new(client.clone(), path)?;
    send(counter.get());
    send(counter.initialize(1));
    send(counter.set(1));
    send(counter.compare_and_set(1, 2));
    send(counter.add(1));
    send(counter.update(|value| value));

    send(SharedValue::start(client.clone(), path, b""));
    let value = SharedValue::start(client.clone(), path, b"").await?;
    send(value.get());
    send(value.set(b""));
    send(value.try_set(&value.current(), b""));
    send(value.changes().next());
    send(SharedCount::start(client.clone(), path, 1));
    let count = SharedCount::start(client.clone(), path, 1).await?;
    send(count.get());
    send(count.set(1));
    send(count.try_set(&count.current()?, 1));
    send(count.changes().next());

    let node = PersistentNode::start(client.clone(), path, b"", CreateMode::Ephemeral)?;
    send(node.created());
    send(node.close());
    send(client.states().next());
    Ok(())
}
