//! Hazards of `docs/hazards.md` about many contenders, many events, and mistakes of users.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use minikeeper_client::Client;
use minikeeper_recipes::{
    InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex,
    InterProcessSemaphoreV2, LockError, Owner, Status, naming,
};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{PATH, both_ways, client, contender, contender_with, queue, soon, spawn, start, until},
    wire::Wire,
};

const SECOND: Duration = Duration::from_secs(1);

async fn poll_once(future: impl Future) {
    let mut future = pin!(future);
    let is_pending = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    assert!(is_pending);
}

#[tokio::test(start_paused = true)]
async fn h28_hand_over_costs_the_same_for_any_number_of_waiters() {
    // Every hand-over costs a few requests, for any number of waiters.
    for options in both_ways() {
        let server = start().await;
        let wire = Wire::to(&server);
        let client = wire.client(1).await;
        let lock = InterProcessMutex::with_options(client, PATH, options).unwrap();
        let held = lock.acquire().await.unwrap();
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let lock = lock.clone();
                spawn(async move {
                    let guard = lock.acquire().within(60 * SECOND).await.unwrap();
                    guard.release().await.unwrap();
                })
            })
            .collect();
        until("they wait", || queue(&server).len() == 101).await;
        sleep(SECOND).await;
        wire.arm(None);
        held.release().await.unwrap();
        for waiter in waiting {
            soon(waiter).await.unwrap();
        }
        let requests = wire.requests();
        assert!(requests <= 101 * 5, "{requests} requests");
    }
}

#[tokio::test(start_paused = true)]
async fn h30_loss_is_not_missed_among_many_unread_changes() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let guard = one.lock.acquire().await.unwrap();
    let mut lost = pin!(guard.lost());
    poll_once(lost.as_mut()).await;
    for _ in 0..100 {
        one.link.cut();
        sleep(Duration::from_millis(100)).await;
    }
    server.expire(one.client.session_id().unwrap()).unwrap();
    until("there is a new session", || one.client.epoch().0 == 2).await;
    for _ in 0..100 {
        one.link.cut();
        sleep(Duration::from_millis(100)).await;
    }
    let loss = timeout(SECOND, lost).await.unwrap();
    assert_eq!(guard.status(), Status::Lost(loss));
}

#[tokio::test(start_paused = true)]
async fn h32_no_wake_up_is_lost_between_the_list_and_the_watch() {
    for options in both_ways() {
        for delay_ms in 0..12 {
            let server = start().await;
            let other = contender(&server, 1).await;
            let held = other.lock.acquire().await.unwrap();
            let one = contender_with(&server, 2, options.clone()).await;
            one.link.delay_replies(Duration::from_millis(1));
            let lock = one.lock.clone();
            let waiting = spawn(async move { lock.acquire().await });
            sleep(Duration::from_millis(delay_ms)).await;
            held.release().await.unwrap();
            let guard = timeout(Duration::from_millis(100), waiting).await;
            drop(guard.unwrap().unwrap().unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h35_znodes_of_locks_end_with_their_session() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let session = one.session_id().unwrap();
    let mutex = InterProcessMutex::new(one.clone(), "/l/a").unwrap();
    let rw = InterProcessReadWriteLock::new(one.clone(), "/l/b").unwrap();
    let semaphore = InterProcessSemaphoreMutex::new(one.clone(), "/l/c").unwrap();
    let guards = (
        mutex.acquire().await.unwrap(),
        rw.acquire_write().await.unwrap().downgrade().await.unwrap(),
        semaphore.acquire().await.unwrap(),
    );
    for path in [guards.0.path(), guards.1.path(), guards.2.path()] {
        assert_eq!(
            server.get(path).unwrap().1.ephemeral_owner,
            session,
            "{path}"
        );
    }
    server.expire(session).unwrap();
    for path in ["/l/a", "/l/b", "/l/c/leases", "/l/c/locks"] {
        assert!(
            server.children(path).unwrap_or_default().is_empty(),
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn h37_silently_replaced_session_is_a_loss() {
    let server = start().await;
    let wire = Wire::to(&server);
    let client = wire.client(1).await;
    let lock = InterProcessMutex::new(client.clone(), PATH).unwrap();
    let guard = lock.acquire().await.unwrap();
    let first = client.session_id().unwrap();
    wire.forget_sessions();
    wire.cut();
    let loss = timeout(SECOND, guard.lost()).await.unwrap();
    assert_eq!(guard.status(), Status::Lost(loss));
    until("there is a session", || client.session_id().is_some()).await;
    assert_ne!(client.session_id(), Some(first));
    // The old znode still exists, and no contender of this process owns it.
    assert_eq!(queue(&server).len(), 1);
    drop(guard);
    let next = soon(lock.acquire()).await.unwrap();
    assert_eq!(queue(&server), [naming::name_of(next.path())]);
}

#[tokio::test(start_paused = true)]
async fn h42_znode_is_kept_over_a_storm_of_reconnects() {
    for options in both_ways() {
        let server = start().await;
        let other = contender(&server, 1).await;
        let held = other.lock.acquire().await.unwrap();
        let one = contender_with(&server, 2, options.clone()).await;
        let last = contender_with(&server, 3, options).await;
        let wait = |lock: &InterProcessMutex| {
            let lock = lock.clone();
            spawn(async move { lock.acquire().await })
        };
        let first = wait(&one.lock);
        until("it waits", || queue(&server).len() == 2).await;
        let second = wait(&last.lock);
        until("both wait", || queue(&server).len() == 3).await;
        let before = queue(&server);
        for round in 0..30 {
            for link in [&other.link, &one.link, &last.link] {
                link.cut();
            }
            sleep(Duration::from_millis(round * 7)).await;
        }
        sleep(SECOND).await;
        assert_eq!(queue(&server), before);
        held.release().await.unwrap();
        let guard = soon(first).await.unwrap().unwrap();
        assert_eq!(naming::name_of(guard.path()), before[1]);
        assert!(!second.is_finished());
        drop(guard);
        drop(soon(second).await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn h43_two_kinds_on_one_path_do_not_see_each_other() {
    // The documentation warns of this misuse; the test records its effect.
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let mutex = InterProcessMutex::new(one.clone(), PATH).unwrap();
    let semaphore = |client: &Client, max: u32| {
        InterProcessSemaphoreV2::new(client.clone(), PATH, max).unwrap()
    };
    let guard = mutex.acquire().await.unwrap();
    let lease = semaphore(&other, 1).acquire().within(SECOND).await.unwrap();
    drop((guard, lease));
    // Each contender uses its own maximum.
    let (three, one) = (semaphore(&one, 3), semaphore(&other, 1));
    let held = three.acquire_many(2).await.unwrap();
    assert!(one.acquire().within(SECOND).await.is_err());
    drop(soon(three.acquire().within(SECOND)).await.unwrap());
    drop(held);
    drop(soon(one.acquire()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn h44_two_objects_on_one_path_do_not_share_owners() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let again = InterProcessMutex::new(one.client.clone(), PATH).unwrap();
    let owner = Owner::new();
    let _held = one.lock.acquire().as_owner(&owner).await.unwrap();
    drop(one.lock.acquire().as_owner(&owner).await.unwrap());
    let error = again
        .acquire()
        .as_owner(&owner)
        .within(SECOND)
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    // A clone is the same object.
    drop(one.lock.clone().acquire().as_owner(&owner).await.unwrap());
}
