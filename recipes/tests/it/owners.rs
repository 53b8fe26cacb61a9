//! One owner in several tasks, and releases without a server.

use std::{sync::Arc, time::Duration};

use minikeeper_client::CreateMode;
use minikeeper_recipes::{
    InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2, LockError, LockOptions,
    Loss, Owner, Released, Status,
};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{
        PATH, SESSION_TIMEOUT, client, contender, contender_with, queue, soon, spawn, start, until,
    },
    link::Mode,
};

const SECOND: Duration = Duration::from_secs(1);

/// While one task of an owner waited, another task could not see what the owner held, and queued
/// behind it.
#[tokio::test(start_paused = true)]
async fn hold_of_an_owner_is_found_while_another_of_its_tasks_waits() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let lock = InterProcessReadWriteLock::new(client.clone(), PATH).unwrap();
    let owner = Owner::new();
    let writer = lock.acquire_write().as_owner(&owner).await.unwrap();
    // This task gets the same hold, and has not finished.
    let (task, of) = (lock.clone(), owner.clone());
    let again = spawn(async move { task.acquire_write().as_owner(&of).await });
    let reader = timeout(SECOND, lock.acquire_read().as_owner(&owner)).await;
    assert_eq!(
        reader
            .expect("a reader may read under its owner's write lock")
            .unwrap()
            .token(),
        writer.token()
    );
    drop(again.await.unwrap().unwrap());

    // The owner is about to write: its reader waits for that acquisition, not behind it in the
    // queue.
    let lock = InterProcessReadWriteLock::new(client.clone(), "/locks/b").unwrap();
    let other = lock.acquire_read().await.unwrap();
    let (task, of) = (lock.clone(), owner.clone());
    let writing = spawn(async move { task.acquire_write().as_owner(&of).await });
    until("it waits", || {
        server.children("/locks/b").unwrap().len() == 2
    })
    .await;
    let (task, of) = (lock.clone(), owner.clone());
    let reading = spawn(async move { task.acquire_read().as_owner(&of).await });
    sleep(SECOND).await;
    drop(other);
    let writer = soon(writing).await.unwrap().unwrap();
    let reader = timeout(SECOND, reading)
        .await
        .expect("the owner does not wait for itself");
    assert_eq!(reader.unwrap().unwrap().token(), writer.token());
}

/// `is_held_by` returned false whenever another task of the owner was acquiring.
#[tokio::test(start_paused = true)]
async fn is_held_by_does_not_depend_on_concurrent_calls() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let other = contender(&server, 2).await;
    let owner = Owner::new();
    let guard = one.lock.acquire().as_owner(&owner).await.unwrap();
    let (lock, of) = (one.lock.clone(), owner.clone());
    // Acquires and releases continuously.
    let asking = spawn(async move {
        loop {
            drop(lock.acquire().as_owner(&of).await);
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..100 {
        assert!(one.lock.is_held_by(&owner));
        tokio::task::yield_now().await;
    }
    asking.abort();
    let _ = asking.await;
    assert_eq!(guard.release().await, Ok(Released::Done));
    assert!(!one.lock.is_held_by(&owner));
    drop(soon(other.lock.acquire()).await.unwrap());
}

/// The place in the queue was given up with the first of an owner's tasks, although others waited
/// for it.
#[tokio::test(start_paused = true)]
async fn cancelling_the_first_of_several_callers_keeps_the_place() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let other = contender(&server, 2).await;
    let held = other.lock.acquire().await.unwrap();
    let owner = Owner::new();
    let ask = || {
        let (lock, owner) = (one.lock.clone(), owner.clone());
        spawn(async move { lock.acquire().as_owner(&owner).await })
    };
    let first = ask();
    until("it waits", || queue(&server).len() == 2).await;
    let second = ask();
    sleep(SECOND).await;
    let places = queue(&server);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    sleep(SECOND).await;
    assert_eq!(queue(&server), places);
    // The last task gives up the place.
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    until("the place is given up", || queue(&server).len() == 1).await;
    let third = ask();
    until("it waits", || queue(&server).len() == 2).await;
    drop(held);
    assert!(soon(third).await.unwrap().is_ok());
}

/// A caller's wait neither ends at another caller's deadline nor lasts longer because of it.
#[tokio::test(start_paused = true)]
async fn callers_of_one_owner_keep_their_own_deadlines() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let other = contender(&server, 2).await;
    let held = other.lock.acquire().await.unwrap();
    let owner = Owner::new();
    let ask = |within| {
        let (lock, owner) = (one.lock.clone(), owner.clone());
        spawn(async move { lock.acquire().as_owner(&owner).within(within).await })
    };
    let waits = [5, 2, 60].map(|seconds| ask(seconds * SECOND));
    let [first, shorter, longer] = waits;
    let late = timeout(3 * SECOND, shorter)
        .await
        .expect("its own deadline has passed")
        .unwrap();
    assert!(matches!(late, Err(LockError::TimedOut { within, .. }) if within == 2 * SECOND));
    let late = timeout(4 * SECOND, first)
        .await
        .expect("its own deadline has passed")
        .unwrap();
    assert!(matches!(late, Err(LockError::TimedOut { .. })));
    sleep(SECOND).await;
    drop(held);
    assert!(soon(longer).await.unwrap().is_ok());
}

/// Each of the two assumed that the other still held the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_concurrent_releases_releases_the_lock() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let owner = Owner::new();
    for round in 0..300 {
        let guards = [
            one.lock.acquire().as_owner(&owner).await.unwrap(),
            one.lock.acquire().as_owner(&owner).await.unwrap(),
        ];
        let barrier = Arc::new(tokio::sync::Barrier::new(2));
        let releases = guards.map(|guard| {
            let barrier = Arc::clone(&barrier);
            let (lock, owner) = (one.lock.clone(), owner.clone());
            spawn(async move {
                barrier.wait().await;
                // This check does not count as a hold.
                let _ = lock.is_held_by(&owner);
                guard.release().await
            })
        });
        let mut released = Vec::new();
        for release in releases {
            released.push(release.await.unwrap().unwrap());
        }
        assert!(
            released.contains(&Released::Done) && released.contains(&Released::StillHeld),
            "round {round}: {released:?}"
        );
    }
}

/// Without a server, a release waited for one without an end, although the outcome was known.
#[tokio::test(start_paused = true)]
async fn nothing_waits_for_a_server_longer_than_the_session_lasts() {
    let server = start().await;
    let mut peeking = LockOptions::default();
    peeking.peek = true;
    let one = contender_with(&server, 1, peeking.clone()).await;
    let path = "/locks/semaphore";
    let semaphore =
        InterProcessSemaphoreV2::with_options(one.client.clone(), path, 2, peeking).unwrap();
    let lease = semaphore.acquire().await.unwrap();
    let early = one.lock.acquire().await.unwrap();
    let other = InterProcessMutex::new(one.client.clone(), "/locks/b").unwrap();
    let late = other.acquire().await.unwrap();
    one.link.set(Mode::Cut);
    until("it is cut", || !one.client.state().is_connected()).await;
    // `try_acquire` makes one attempt.
    assert!(
        timeout(SECOND, one.lock.try_acquire())
            .await
            .expect("at once")
            .unwrap()
            .is_none()
    );
    assert!(
        timeout(SECOND, semaphore.try_acquire())
            .await
            .expect("at once")
            .unwrap()
            .is_none()
    );
    // The release of a held lock waits until the session is presumed lost.
    let released = timeout(2 * SESSION_TIMEOUT, early.release()).await;
    released.expect("not longer than the session").unwrap_err();
    // The release of a lost lock returns at once.
    assert!(matches!(late.status(), Status::Lost(_)));
    let released = timeout(SECOND, late.release()).await.expect("at once");
    assert_eq!(released, Ok(Released::AlreadyGone));
    let data = timeout(10 * SECOND, lease.data()).await;
    assert!(
        data.expect("it returns in time")
            .unwrap_err()
            .is_retryable()
    );
    let released = timeout(SECOND, lease.release()).await.expect("at once");
    assert_eq!(released, Ok(Released::AlreadyGone));
    let asked = timeout(10 * SECOND, one.lock.participants()).await;
    assert!(
        asked
            .expect("it returns in time")
            .unwrap_err()
            .is_retryable()
    );
    let asked = timeout(10 * SECOND, semaphore.available()).await;
    asked.expect("it returns in time").unwrap_err();
    // The released lock is free.
    one.link.set(Mode::Pass);
    until("it is deleted", || queue(&server).is_empty()).await;
    drop(soon(one.lock.acquire()).await.unwrap());
}

/// A writer's znode was deleted by hand, and another contender wrote: the first could still turn
/// into a reader that seemed to be held.
#[tokio::test(start_paused = true)]
async fn writer_whose_znode_was_deleted_cannot_become_a_reader() {
    for options in crate::kit::both_ways() {
        let server = start().await;
        let (one, _) = client(&server, 1).await;
        let (two, _) = client(&server, 2).await;
        let lock = InterProcessReadWriteLock::with_options(one.clone(), PATH, options.clone());
        let lock = lock.unwrap();
        let theirs = InterProcessReadWriteLock::with_options(two.clone(), PATH, options).unwrap();
        let owner = Owner::new();
        let writer = lock.acquire_write().as_owner(&owner).await.unwrap();
        two.delete(writer.path(), None).await.unwrap();
        let other = theirs.acquire_write().await.unwrap();
        let reader = lock.acquire_read().as_owner(&owner).await;
        assert!(
            matches!(reader, Err(LockError::HoldLost { .. })),
            "{reader:?}"
        );
        assert_eq!(writer.status(), Status::Lost(Loss::NodeDeleted));
        let reader = writer.downgrade().await;
        assert!(
            matches!(reader, Err(LockError::HoldLost { .. })),
            "{reader:?}"
        );
        until("its znode is deleted", || queue(&server).len() == 1).await;
        assert_eq!(other.status(), Status::Held);
    }
}

/// A lock was passed on to another task although the session that held it had been presumed lost.
#[tokio::test(start_paused = true)]
async fn lost_lock_is_not_passed_on() {
    let server = start().await;
    let mut options = LockOptions::default();
    options.local_hand_over = Some(minikeeper_recipes::LocalHandOver {
        times_max: 16,
        time_max: Duration::from_secs(3600),
    });
    let one = contender_with(&server, 1, options).await;
    let guard = one.lock.acquire().await.unwrap();
    // The task whose turn is next is not polled until the session is lost.
    let lock = one.lock.clone();
    let mut next = Box::pin(async move { lock.acquire().await });
    let waiting = timeout(Duration::from_millis(1), next.as_mut()).await;
    assert!(waiting.is_err());
    assert_eq!(guard.release().await, Ok(Released::PassedOn));
    one.link.set(Mode::Cut);
    until("it is lost", || {
        matches!(
            one.client.state(),
            minikeeper_client::ConnectionState::Lost { .. }
        )
    })
    .await;
    let granted = timeout(SECOND, next.as_mut()).await;
    assert!(granted.is_err(), "the lock is lost: {granted:?}");
    one.link.set(Mode::Pass);
    let granted = soon(next).await.unwrap();
    assert_eq!(granted.epoch(), one.client.epoch());
    // No znode of the earlier session is left.
    let mode = CreateMode::Persistent;
    one.client.create("/there", b"", mode).await.unwrap();
    assert_eq!(queue(&server).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reentered_guards_share_the_hold() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let outer = one.lock.acquire().await.unwrap();
    let inner = outer.reenter().unwrap();
    assert_eq!((inner.path(), inner.token()), (outer.path(), outer.token()));
    assert_eq!(queue(&server).len(), 1);
    assert_eq!(outer.release().await.unwrap(), Released::StillHeld);
    assert_eq!(inner.status(), Status::Held);
    server.expire(one.client.session_id().unwrap()).unwrap();
    soon(inner.lost()).await;
    assert!(inner.reenter().is_err(), "a lost lock is not entered again");
}

#[tokio::test(start_paused = true)]
async fn with_lock_releases_however_the_work_ends() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let seen = one.lock.acquire().with_lock(async |guard| {
        sleep(SECOND).await;
        (guard.status(), queue(&server).len())
    });
    assert_eq!(soon(seen).await.unwrap(), (Status::Held, 1));
    assert_eq!(queue(&server).len(), 0);
    // The lock is held by another contender.
    let two = contender(&server, 2).await;
    let held = two.lock.acquire().await.unwrap();
    let late = one.lock.acquire().within(SECOND).with_lock(async |_| ());
    assert!(matches!(soon(late).await, Err(LockError::TimedOut { .. })));
    drop(held);
    // The future is dropped during the work.
    let work = one
        .lock
        .acquire()
        .with_lock(async |_| sleep(3600 * SECOND).await);
    assert!(timeout(SECOND, work).await.is_err());
    until("the lock is free", || queue(&server).is_empty()).await;
    // The lock is lost during the work.
    let session = one.client.session_id().unwrap();
    let work = one.lock.acquire().with_lock(async |_| {
        server.expire(session).unwrap();
        sleep(3600 * SECOND).await;
    });
    let lost = soon(work).await.unwrap_err();
    assert!(matches!(lost, LockError::WorkDropped { .. }), "{lost}");
    until("the lock is free", || queue(&server).is_empty()).await;
}
