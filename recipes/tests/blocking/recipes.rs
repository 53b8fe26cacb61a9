//! The other recipes, each with threads that wait for each other.

use std::time::Duration;

use minikeeper_client::CreateMode;
use minikeeper_recipes::{
    LatchError, Leadership, LockError, LockOptions, MultiMember, Owner, Released, Status,
    blocking::{
        Client, CountChanges, DistributedAtomicLong, DistributedBarrier, DistributedDoubleBarrier,
        Guard, InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
        InterProcessSemaphoreMutex, InterProcessSemaphoreV2, Interrupt, LeaderLatch,
        LeadershipChanges, Lease, Member, MultiGuard, PersistentNode, SharedCount, SharedValue,
        ValueChanges, WriteGuard,
    },
};

use crate::{PATH, PATIENCE, client, on_thread, server, soon};

const fn shared<T: Send + Sync>() {}

const _: () = {
    shared::<Client>();
    shared::<CountChanges>();
    shared::<DistributedAtomicLong>();
    shared::<DistributedBarrier>();
    shared::<DistributedDoubleBarrier>();
    shared::<Guard>();
    shared::<InterProcessMultiLock>();
    shared::<InterProcessMutex>();
    shared::<InterProcessReadWriteLock>();
    shared::<InterProcessSemaphoreMutex>();
    shared::<InterProcessSemaphoreV2>();
    shared::<Interrupt>();
    shared::<LeaderLatch>();
    shared::<LeadershipChanges>();
    shared::<Lease>();
    shared::<Member>();
    shared::<MultiGuard>();
    shared::<PersistentNode>();
    shared::<SharedCount>();
    shared::<SharedValue>();
    shared::<ValueChanges>();
    shared::<WriteGuard>();
};

#[test]
fn writer_waits_for_readers_and_becomes_one() {
    let server = server();
    let lock = InterProcessReadWriteLock::new(&client(&server), PATH).unwrap();
    let (one, other) = (lock.acquire_read().unwrap(), lock.acquire_read().unwrap());
    assert!(lock.try_acquire_write().unwrap().is_none());
    let late = lock.acquire_write_timeout(Duration::from_millis(10));
    assert!(matches!(late, Err(LockError::TimedOut { .. })), "{late:?}");
    // It leaves the queue in the background.
    server.until_children(PATH, 2, PATIENCE).unwrap();
    let writing = {
        let lock = lock.clone();
        on_thread(move || lock.acquire_write().unwrap())
    };
    server.until_children(PATH, 3, PATIENCE).unwrap();
    assert_eq!(lock.writers().unwrap().len(), 1);
    assert_eq!(one.release().unwrap(), Released::Done);
    drop(other);
    let writer = soon(&writing);
    assert_eq!(writer.status(), Status::Held);
    let reader = writer.downgrade().unwrap();
    lock.acquire_read_timeout(PATIENCE).unwrap();
    assert_eq!(reader.release().unwrap(), Released::Done);
}

#[test]
fn semaphore_with_a_shared_maximum_has_that_many_leases() {
    let server = server();
    let client = client(&server);
    let max = SharedCount::start(&client, "/max", 2).unwrap();
    let semaphore = InterProcessSemaphoreV2::new(&client, PATH, &max).unwrap();
    let mut both = semaphore.acquire_many(2).unwrap();
    assert_eq!(both[0].data().unwrap(), LockOptions::process_data());
    assert!(semaphore.try_acquire().unwrap().is_none());
    assert!(semaphore.try_acquire_many(2).unwrap().is_none());
    let waiter = InterProcessSemaphoreV2::new(&client, PATH, &max).unwrap();
    let waiting = on_thread(move || waiter.acquire().unwrap());
    let lease = both.pop().unwrap();
    assert_eq!(lease.release().unwrap(), Released::Done);
    let lease = soon(&waiting);
    assert_eq!(semaphore.available().unwrap(), 0);
    drop((lease, both));
    semaphore.acquire_many_timeout(2, PATIENCE).unwrap();
}

#[test]
fn multi_lock_holds_all_members_or_none() {
    let server = server();
    let client = client(&server);
    let first = InterProcessMutex::new(&client, PATH).unwrap();
    let second = InterProcessSemaphoreMutex::new(&client, "/locks/b").unwrap();
    let third = InterProcessReadWriteLock::new(&client, "/locks/c").unwrap();
    let write = MultiMember::Write(third.to_async());
    let all = InterProcessMultiLock::new(&client, [(&first).into(), (&second).into(), write]);

    let reader = third.acquire_read().unwrap();
    assert!(all.try_acquire().unwrap().is_none());
    first.acquire_timeout(PATIENCE).unwrap().release().unwrap();
    second.acquire_timeout(PATIENCE).unwrap().release().unwrap();
    reader.release().unwrap();
    let guard = all.acquire_timeout(PATIENCE).unwrap();
    assert!(first.try_acquire().unwrap().is_none());
    assert!(second.try_acquire().unwrap().is_none());
    assert_eq!(guard.release().unwrap(), Released::Done);
}

#[test]
fn owner_of_the_async_lock_enters_it_again_through_the_client() {
    let server = server();
    let client = client(&server);
    let lock = InterProcessMutex::new(&client, PATH).unwrap();
    let owner = Owner::new();
    let own = || {
        let acquire = (*lock).acquire().as_owner(&owner);
        client.bind(client.wait(acquire).unwrap())
    };
    let (outer, inner) = (own(), own());
    assert_eq!(outer.release().unwrap(), Released::StillHeld);
    assert_eq!(inner.release().unwrap(), Released::Done);
}

#[test]
fn closed_latch_passes_leadership_to_the_thread_that_waits() {
    let server = server();
    let client = client(&server);
    let first = LeaderLatch::start(&client, PATH, "1").unwrap();
    first.wait().unwrap();
    let mut changes = first.changes();
    assert!(matches!(
        changes.next(),
        Ok(Some(Leadership::Leader { .. }))
    ));
    let second = LeaderLatch::start(&client, PATH, "2").unwrap();
    let none = second.wait_timeout(Duration::from_millis(10)).unwrap();
    assert_eq!(none, None);
    let waiting = on_thread(move || {
        second.wait().unwrap();
        second
    });
    assert_eq!(first.leader().unwrap().unwrap().id, "1");
    first.close().unwrap();
    assert_eq!(changes.next().unwrap(), Some(Leadership::Follower));
    assert_eq!(changes.next().unwrap(), None);
    assert!(matches!(first.wait(), Err(LatchError::Closed { .. })));
    let second = soon(&waiting);
    assert_eq!(second.participants().unwrap().len(), 1);
    // Dropped in a thread without a runtime.
    drop(second);
    server.until_children(PATH, 0, PATIENCE).unwrap();
}

#[test]
fn changes_of_shared_values_reach_threads_that_wait_until_the_client_closes() {
    let server = server();
    let writer = client(&server);
    let reader = client(&server);
    let value = SharedValue::start(&writer, "/value", b"a").unwrap();
    let seen = SharedValue::start(&reader, "/value", b"").unwrap();
    let mut changes = seen.changes();
    let waiting = on_thread(move || (changes.next().unwrap().value, changes));
    let old = value.current();
    value.set(b"b").unwrap();
    assert!(value.try_set(&old, b"c").unwrap().is_none());
    let (now, mut changes) = soon(&waiting);
    assert_eq!(now, "b");
    let waiting = on_thread(move || changes.next());
    reader.close().unwrap();
    assert!(soon(&waiting).is_err());
    assert!(seen.get().is_err(), "its client is closed");
}

#[test]
fn threads_add_to_a_counter_without_losing_one() {
    const THREADS: usize = 4;
    const EACH: usize = 10;
    let server = server();
    let counter = DistributedAtomicLong::new(&client(&server), "/counter").unwrap();
    let adding: Vec<_> = (0..THREADS)
        .map(|_| {
            let client = client(&server);
            on_thread(move || {
                let counter = DistributedAtomicLong::new(&client, "/counter").unwrap();
                // An attempt fails only if another thread's succeeds.
                let done = (0..1000).filter(|_| counter.add(1).is_ok());
                assert_eq!(done.take(EACH).count(), EACH);
            })
        })
        .collect();
    for thread in &adding {
        soon(thread);
    }
    assert_eq!(counter.get().unwrap(), 40);
    assert!(!counter.initialize(1).unwrap());
    assert!(counter.compare_and_set(1, 2).unwrap().is_none());
    assert_eq!(counter.set(7).unwrap().current, 7);
    assert_eq!(counter.update(|value| value * 2).unwrap().current, 14);
}

#[test]
fn barrier_holds_threads_until_it_is_removed() {
    let server = server();
    let client = client(&server);
    let barrier = DistributedBarrier::new(&client, PATH).unwrap();
    assert!(barrier.set().unwrap());
    let late = barrier.wait_timeout(Duration::from_millis(10));
    assert!(matches!(late, Err(LockError::TimedOut { .. })), "{late:?}");
    let waiter = DistributedBarrier::new(&client, PATH).unwrap();
    let waiting = on_thread(move || waiter.wait());
    server.until_watched(PATH, PATIENCE).unwrap();
    assert!(barrier.remove().unwrap());
    soon(&waiting).unwrap();
}

#[test]
fn double_barrier_is_entered_and_left_by_all_threads_together() {
    let server = server();
    let enter = || {
        let client = client(&server);
        on_thread(move || {
            let barrier = DistributedDoubleBarrier::new(&client, PATH, 2).unwrap();
            barrier.enter_timeout(PATIENCE).unwrap()
        })
    };
    let one = enter();
    server.until_exists(PATH, PATIENCE).unwrap();
    let other = enter();
    let (one, other) = (soon(&one), soon(&other));
    let leaving = on_thread(move || one.leave());
    other.leave_timeout(PATIENCE).unwrap();
    soon(&leaving).unwrap();
}

#[test]
fn persistent_node_comes_back_without_a_call() {
    let server = server();
    let client = client(&server);
    let node = PersistentNode::start(&client, "/here", b"7", CreateMode::Ephemeral).unwrap();
    node.created().unwrap();
    let session = client.session_id().unwrap();
    server.expire(session).unwrap();
    server.until_exists("/here", PATIENCE).unwrap();
    node.close().unwrap();
    assert!(server.get("/here").is_none());
}
