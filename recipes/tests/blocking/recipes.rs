//! The other recipes, each with threads that wait for each other.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    time::Duration,
};

use minikeeper_client::{CreateMode, Error};
use minikeeper_recipes::{
    CacheError, CacheEvent, CacheOptions, ChildrenEvent, LatchError, Leadership, LockError,
    LockOptions, MultiMember, Owner, Released, SelectorOptions, Status, TreeEvent,
    blocking::{
        CacheChanges, CachedAtomicLong, ChildrenChanges, Client, CountChanges, CuratorCache,
        DistributedAtomicLong, DistributedBarrier, DistributedDoubleBarrier, GroupChanges,
        GroupMember, Guard, InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
        InterProcessSemaphoreMutex, InterProcessSemaphoreV2, Interrupt, LeaderLatch,
        LeaderSelector, LeaderTurn, LeadershipChanges, Lease, Member, MultiGuard, NodeCache,
        NodeChanges, PathChildrenCache, PersistentNode, PersistentTtlNode, SharedCount,
        SharedValue, TreeCache, TreeChanges, ValueChanges, WriteGuard,
    },
};

use crate::{PATH, PATIENCE, client, on_thread, server, soon};

const fn shared<T: Send + Sync>() {}

const _: () = {
    shared::<CachedAtomicLong>();
    shared::<CacheChanges>();
    shared::<ChildrenChanges>();
    shared::<Client>();
    shared::<CountChanges>();
    shared::<CuratorCache>();
    shared::<DistributedAtomicLong>();
    shared::<DistributedBarrier>();
    shared::<DistributedDoubleBarrier>();
    shared::<GroupChanges>();
    shared::<GroupMember>();
    shared::<Guard>();
    shared::<InterProcessMultiLock>();
    shared::<InterProcessMutex>();
    shared::<InterProcessReadWriteLock>();
    shared::<InterProcessSemaphoreMutex>();
    shared::<InterProcessSemaphoreV2>();
    shared::<Interrupt>();
    shared::<LeaderLatch>();
    shared::<LeaderSelector>();
    shared::<LeaderTurn>();
    shared::<LeadershipChanges>();
    shared::<Lease>();
    shared::<Member>();
    shared::<MultiGuard>();
    shared::<NodeCache>();
    shared::<NodeChanges>();
    shared::<PathChildrenCache>();
    shared::<PersistentNode>();
    shared::<PersistentTtlNode>();
    shared::<SharedCount>();
    shared::<SharedValue>();
    shared::<TreeCache>();
    shared::<TreeChanges>();
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

#[test]
fn ids_of_a_cached_counter_are_unique_among_threads() {
    let server = server();
    let client = client(&server);
    let counter = DistributedAtomicLong::new(&client, "/ids").unwrap();
    let ids = Arc::new(CachedAtomicLong::new(&counter, 10));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let ids = Arc::clone(&ids);
            on_thread(move || (0..25).map(|_| ids.next().unwrap().current).collect())
        })
        .collect();
    let mut all: Vec<i64> = threads.iter().flat_map(soon::<Vec<_>>).collect();
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(1..=100));
}

#[test]
fn ttl_node_and_group_live_without_calls() {
    let server = server();
    let here = client(&server);
    let ttl = Duration::from_secs(60);
    let job = PersistentTtlNode::start(&here, "/job", b"running", ttl).unwrap();
    job.created().unwrap();
    let refused = PersistentTtlNode::start(&here, "/job", b"", Duration::ZERO);
    assert!(matches!(refused, Err(Error::TimeToLive { .. })));

    let member = GroupMember::start(&here, "/group", "1", b"here").unwrap();
    member.joined().unwrap();
    let mut changes = member.changes();
    let there = client(&server);
    let other = GroupMember::start(&there, "/group", "2", b"there").unwrap();
    other.joined().unwrap();
    let mut changes = soon(&on_thread(move || {
        // It may see itself join first.
        while changes.next().unwrap().as_deref() != Some("2") {}
        changes
    }));
    assert_eq!(member.members().len(), 2);
    server.expire(there.session_id().unwrap()).unwrap();
    let back = on_thread(move || (changes.next().unwrap(), changes.next().unwrap()));
    let two = Some("2".to_owned());
    assert_eq!(soon(&back), (two.clone(), two), "it left and came back");
    other.close().unwrap();
    member.close().unwrap();
    assert_eq!(server.children("/group").unwrap().len(), 0);
}

#[test]
fn caches_and_their_views_follow_the_server() {
    let server = server();
    let client = client(&server);
    let cache = CuratorCache::start(&client, "/tree").unwrap();
    cache.initialized().unwrap();
    let children = PathChildrenCache::start(&client, "/tree").unwrap();
    let node = NodeCache::start(&client, "/tree").unwrap();
    let tree = TreeCache::start(&client, "/tree").unwrap();
    for view in [children.cache(), node.cache(), tree.cache()] {
        view.initialized().unwrap();
    }
    let (_, mut changes) = cache.subscribe();
    let (mut of_children, mut of_node, mut of_tree) =
        (children.changes(), node.changes(), tree.changes());
    client
        .create("/tree", b"1", CreateMode::Persistent)
        .unwrap();
    client
        .create("/tree/a", b"2", CreateMode::Persistent)
        .unwrap();
    assert!(matches!(
        changes.next().unwrap(),
        CacheEvent::Created { .. }
    ));
    assert!(matches!(
        of_children.next().unwrap(),
        ChildrenEvent::ChildAdded { .. }
    ));
    assert_eq!(of_node.next().unwrap().unwrap().data(), b"1");
    assert!(matches!(
        of_tree.next().unwrap(),
        TreeEvent::NodeAdded { .. }
    ));
    assert_eq!(children.current_data().len(), 1);
    cache.close().unwrap();
    let closed = soon(&on_thread(move || {
        while changes.next().is_ok() {}
        changes.next().unwrap_err()
    }));
    assert!(matches!(closed, CacheError::Closed { .. }), "{closed:?}");
    let small = CacheOptions::default().znodes_max(1);
    let small = CuratorCache::with_options(&client, "/", small).unwrap();
    let error = small.initialized().unwrap_err();
    assert!(
        matches!(error, CacheError::TooManyZnodes { .. }),
        "{error:?}"
    );
}

/// Starts a selector whose work sends each turn's token, and lasts until the turn has to end.
fn selector(
    client: &Client,
    id: &str,
    options: SelectorOptions,
) -> (LeaderSelector, Receiver<i64>) {
    let (begun, turns) = sync_channel(100);
    let work = move |turn: &LeaderTurn| {
        begun.send(turn.guard().token().czxid).unwrap();
        // It is watched in vain, until the turn has to end.
        let client = turn.client();
        let watching = async {
            let (_, changed) = client.get_data_and_watch("/").await?;
            changed.await;
            Ok::<(), Error>(())
        };
        let ended = client.wait(watching).unwrap_err();
        assert!(matches!(ended, Error::Interrupted { .. }), "{ended:?}");
        assert!(turn.is_over());
    };
    let selector = LeaderSelector::start(client, "/leaders", id, options, work).unwrap();
    (selector, turns)
}

#[test]
fn selectors_lead_in_turn_each_on_a_thread() {
    let server = server();
    let (one, other) = (client(&server), client(&server));
    let (first, turns) = selector(&one, "1", SelectorOptions::default());
    let token = turns.recv_timeout(PATIENCE).unwrap();
    assert!(first.has_leadership());
    let (second, other_turns) = selector(&other, "2", SelectorOptions::default());
    server.until_children("/leaders", 2, PATIENCE).unwrap();
    let ids = |selector: &LeaderSelector| -> Vec<String> {
        let participants = selector.participants().unwrap();
        participants
            .into_iter()
            .map(|participant| participant.id)
            .collect()
    };
    assert_eq!(ids(&second), ["1", "2"]);
    assert!(first.interrupt());
    first.done().unwrap();
    assert!(other_turns.recv_timeout(PATIENCE).unwrap() > token);
    assert_eq!(second.leader().unwrap().unwrap().id, "2");
    assert!(first.requeue());
    second.close().unwrap();
    turns.recv_timeout(PATIENCE).unwrap();
    first.close().unwrap();
    assert_eq!(server.children("/leaders").unwrap().len(), 0);
}

/// Work that does not return when it is asked to keeps the lock, and the next turn waits for it.
#[test]
fn lock_of_a_selector_is_released_after_its_work_has_returned() {
    let server = server();
    let client = client(&server);
    let (begun, turns) = sync_channel(100);
    let (may_end, end) = sync_channel::<()>(100);
    let (end, running) = (Mutex::new(end), Arc::new(AtomicUsize::new(0)));
    let most = Arc::new(AtomicUsize::new(0));
    let work = {
        let most = Arc::clone(&most);
        move |_: &LeaderTurn| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            begun.send(()).unwrap();
            end.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            running.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let mut options = SelectorOptions::default();
    options.is_requeued = true;
    let selector =
        Arc::new(LeaderSelector::start(&client, "/leaders", "1", options, work).unwrap());
    turns.recv_timeout(PATIENCE).unwrap();
    selector.interrupt();
    let lock = InterProcessMutex::new(&client, "/leaders").unwrap();
    let late = lock.acquire_timeout(Duration::from_millis(50));
    assert!(late.is_err(), "the work still runs");
    // Its session ends, and still no other turn begins.
    server.expire(client.session_id().unwrap()).unwrap();
    turns.recv_timeout(Duration::from_millis(200)).unwrap_err();
    may_end.send(()).unwrap();
    turns.recv_timeout(PATIENCE).unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let closing = on_thread({
        let selector = Arc::clone(&selector);
        move || selector.close()
    });
    closing.recv_timeout(Duration::from_millis(50)).unwrap_err();
    may_end.send(()).unwrap();
    soon(&closing).unwrap();
}

#[test]
fn work_that_panics_ends_its_turn_with_the_message() {
    let server = server();
    let client = client(&server);
    let options = SelectorOptions::default();
    let work = |turn: &LeaderTurn| panic!("no {}", turn.guard().path().len());
    let selector = LeaderSelector::start(&client, "/leaders", "1", options, work).unwrap();
    let error = selector.done().unwrap_err();
    let LockError::WorkPanicked { message, .. } = &error else {
        panic!("{error}")
    };
    assert!(message.starts_with("no "), "{message}");
}

#[test]
fn dropped_selector_and_client_end_when_the_work_returns() {
    let server = server();
    let client = client(&server);
    let (selector, turns) = selector(&client, "1", SelectorOptions::default());
    turns.recv_timeout(PATIENCE).unwrap();
    drop((selector, client));
    server.until_sessions(0, PATIENCE).unwrap();
    assert_eq!(server.children("/leaders").unwrap().len(), 0);
}

/// A selector that is not leading does not keep the session open.
#[test]
fn last_drop_of_a_waiting_selector_ends_the_session() {
    let server = server();
    let (holder, waiter) = (client(&server), client(&server));
    let (_selector, turns) = selector(&holder, "1", SelectorOptions::default());
    turns.recv_timeout(PATIENCE).unwrap();
    let (waiting, _turns) = selector(&waiter, "2", SelectorOptions::default());
    server.until_children("/leaders", 2, PATIENCE).unwrap();
    drop((waiting, waiter));
    assert_eq!(server.sessions().len(), 1);
    assert_eq!(server.children("/leaders").unwrap().len(), 1);
}

#[cfg(feature = "discovery")]
#[test]
fn services_are_registered_and_found() {
    use minikeeper_recipes::{
        ServiceInstance,
        blocking::{ServiceCache, ServiceChanges, ServiceDiscovery, ServiceProvider},
    };

    shared::<ServiceCache>();
    shared::<ServiceChanges>();
    shared::<ServiceDiscovery>();
    shared::<ServiceProvider>();
    let server = server();
    let (here, there) = (client(&server), client(&server));
    let discovery: ServiceDiscovery<String> = ServiceDiscovery::new(&here, "/services").unwrap();
    let finder: ServiceDiscovery<String> = ServiceDiscovery::new(&there, "/services").unwrap();
    let cache = finder.cache("print").unwrap();
    cache.initialized().unwrap();
    let mut changes = cache.changes();
    let instance = ServiceInstance::new("print").payload("idle".to_owned());
    let instance = discovery.register(instance).unwrap();
    let found = soon(&on_thread(move || changes.next().unwrap()));
    assert_eq!(found.instances.len(), 1);
    let provider = finder.start_provider(finder.provider("print")).unwrap();
    provider.initialized().unwrap();
    assert_eq!(provider.instance().unwrap().id, instance.id);
    assert_eq!(finder.query_for_names().unwrap(), ["print"]);
    assert_eq!(
        finder.query_for_instances("print").unwrap().instances.len(),
        1
    );
    let busy = ServiceInstance::clone(&instance).payload("busy".to_owned());
    discovery.update(busy).unwrap();
    let found = finder
        .query_for_instance("print", &instance.id)
        .unwrap()
        .unwrap();
    assert_eq!(found.payload.as_deref(), Some("busy"));
    discovery.unregister(&instance).unwrap();
    assert!(
        finder
            .query_for_instance("print", &instance.id)
            .unwrap()
            .is_none()
    );
    provider.close().unwrap();
    cache.close().unwrap();
    discovery.close().unwrap();
}
