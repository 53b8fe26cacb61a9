//! Every recipe that takes a time limit, with the shortest and the longest: none panics.

use std::time::Duration;

use minikeeper_client::{CreateMode, Error};
use minikeeper_recipes::{
    AtomicOptions, DistributedAtomicLong, DistributedBarrier, DistributedDoubleBarrier,
    InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LocalHandOver, LockOptions,
    PersistentTtlNode, Promotion,
};

use crate::kit::{PATH, client, start};

#[tokio::test(start_paused = true)]
async fn shortest_and_longest_limits_are_limits() {
    for within in [Duration::ZERO, Duration::MAX] {
        let server = start().await;
        let (client, _) = client(&server, 1).await;
        let client = client.with_call_timeout(within);
        let is_long = within == Duration::MAX;
        let mut options = LockOptions::default();
        options.hold_warn_after = Some(within);
        let hand_over = LocalHandOver {
            time_max: within,
            ..LocalHandOver::default()
        };
        options.local_hand_over = Some(hand_over);
        let mutex = InterProcessMutex::with_options(client.clone(), PATH, options).unwrap();
        // A limit of zero means one attempt, which a free lock passes.
        let guard = mutex.acquire().within(within).await.unwrap();
        assert!(mutex.acquire().within(Duration::ZERO).await.is_err());
        drop(guard.release().await);
        drop(mutex.acquire().within(within).await.unwrap());

        let rw = InterProcessReadWriteLock::new(client.clone(), "/rw").unwrap();
        let read = rw.acquire_read().within(within).await.unwrap();
        drop(read.release().await);
        let write = rw.acquire_write().within(within).await.unwrap();
        drop(write.release().await);

        let one = InterProcessSemaphoreMutex::new(client.clone(), "/sm").unwrap();
        drop(one.acquire().within(within).await.unwrap());
        let three = InterProcessSemaphoreV2::new(client.clone(), "/three", 3).unwrap();
        drop(three.acquire().within(within).await.unwrap());
        drop(three.acquire_many(2).within(within).await);
        let locks = InterProcessMultiLock::from_paths(client.clone(), ["/m1", "/m2"]).unwrap();
        drop(locks.acquire().within(within).await.unwrap());

        let barrier = DistributedBarrier::new(client.clone(), "/barrier").unwrap();
        barrier.wait().within(within).await.unwrap();
        let double = DistributedDoubleBarrier::new(client.clone(), "/double", 1).unwrap();
        if let Ok(member) = double.enter().within(within).await {
            drop(member.leave().within(within).await);
        } else {
            assert!(!is_long);
        }

        let mut atomic = AtomicOptions::default();
        atomic.backoff = within;
        atomic.promotion = Some(Promotion {
            path: "/promotion".to_owned(),
            within,
        });
        let count = DistributedAtomicLong::with_options(client.clone(), "/count", atomic);
        drop(count.unwrap().add(1).await);

        let ttl = PersistentTtlNode::start(client.clone(), "/ttl", b"", within);
        assert!(matches!(ttl, Err(Error::TimeToLive { .. })));
        let created = client.create("/last", b"", CreateMode::Persistent).await;
        created.unwrap();
    }
}
