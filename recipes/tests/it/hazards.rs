//! Hazards of `docs/hazards.md` about acquiring a lock that have no test elsewhere.

use std::{pin::pin, sync::atomic::Ordering, time::Duration};

use minikeeper_client::{Cause, Client, CreateMode};
use minikeeper_recipes::{
    InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2, LockError, Loss, Owner,
    Released, SharedCount, Status, naming,
};
use tokio::time::{sleep, timeout};

use crate::{
    every_lock::Polls,
    kit::{
        self, PATH, SESSION_TIMEOUT, both_ways, client, contender, contender_with, queue, soon,
        spawn, start, until,
    },
    link::{Link, Mode},
    wire::{Fault, Wire},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn h4_waiters_of_one_object_do_not_block_events() {
    // Owners wait for each other within the object while the connection is lost and restored.
    for options in both_ways() {
        let server = start().await;
        let other = contender(&server, 1).await;
        let held = other.lock.acquire().await.unwrap();
        let one = contender_with(&server, 2, options).await;
        let owner = Owner::new();
        let mut tasks = Vec::new();
        for number in 0..10 {
            let (lock, owner) = (one.lock.clone(), owner.clone());
            tasks.push(spawn(async move {
                let owner = if number < 5 { owner } else { Owner::new() };
                drop(lock.acquire().as_owner(&owner).await.unwrap());
            }));
        }
        until("six places are taken", || queue(&server).len() == 7).await;
        for _ in 0..3 {
            one.link.cut();
            sleep(SECOND).await;
        }
        held.release().await.unwrap();
        for task in tasks {
            timeout(SECOND, task).await.unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h6_znode_of_a_dying_session_is_not_taken_over() {
    // Replies are lost until the client gives up its session; the server, which still hears the
    // client, ends it later.
    for options in both_ways() {
        let server = start().await;
        let one = contender_with(&server, 1, options).await;
        for path in ["/locks", PATH] {
            let made = one.client.create(path, b"", CreateMode::Persistent);
            made.await.unwrap();
        }
        one.link.set(Mode::SwallowReplies);
        let lock = one.lock.clone();
        let waiting = spawn(async move { lock.acquire().await });
        until("it is created", || queue(&server).len() == 1).await;
        let old = queue(&server).remove(0);
        until("the session is given up", || {
            one.client.session_id().is_none()
        })
        .await;
        one.link.cut();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert_ne!(naming::name_of(guard.path()), old);
        let stat = server.get(guard.path()).unwrap().1;
        assert_eq!(Some(stat.ephemeral_owner), one.client.session_id());
        sleep(2 * SESSION_TIMEOUT).await;
        assert_eq!(guard.status(), Status::Held);
        assert_eq!(queue(&server), [naming::name_of(guard.path())]);
    }
}

#[tokio::test(start_paused = true)]
async fn h8_each_attempt_has_its_own_prefix() {
    for options in both_ways() {
        let server = start().await;
        let other = contender(&server, 1).await;
        let held = other.lock.acquire().await.unwrap();
        let one = contender_with(&server, 2, options).await;
        let lock = one.lock.clone();
        let waiting = spawn(async move { lock.acquire().await });
        let mut prefixes = std::collections::BTreeSet::new();
        for _ in 0..5 {
            until("it waits", || queue(&server).len() == 2).await;
            let name = queue(&server).remove(1);
            assert!(prefixes.insert(name[..naming::PROTECTION_BYTES].to_owned()));
            server.expire(one.client.session_id().unwrap()).unwrap();
            until("its znode is deleted", || !queue(&server).contains(&name)).await;
        }
        drop(held);
        drop(soon(waiting).await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn h10_watches_on_znodes_already_gone_do_not_pile_up() {
    for options in both_ways() {
        let server = start().await;
        let other = contender(&server, 1).await;
        let one = contender_with(&server, 2, options).await;
        for _ in 0..20 {
            let held = other.lock.acquire().await.unwrap();
            one.link.delay_replies(Duration::from_millis(100));
            let lock = one.lock.clone();
            let waiting = spawn(async move { lock.acquire().await });
            // The znode is deleted before the list that shows it arrives.
            until("it is created", || queue(&server).len() == 2).await;
            held.release().await.unwrap();
            let guard = soon(waiting).await.unwrap().unwrap();
            let dump = server.dump();
            let watches = dump.lines().filter(|line| line.contains("watch"));
            assert!(watches.count() <= 1, "its own at most: {dump}");
            guard.release().await.unwrap();
        }
        until("no watch is left", || !server.dump().contains("watch")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn h11_failed_release_is_retried_in_the_same_session() {
    for options in both_ways() {
        let server = start().await;
        let one = contender_with(&server, 1, options).await;
        let owner = Owner::new();
        let guard = one.lock.acquire().as_owner(&owner).await.unwrap();
        one.link.set(Mode::SwallowRequests);
        let (released, ()) = tokio::join!(guard.release(), async {
            sleep(SECOND).await;
            one.link.cut();
        });
        let error = released.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error}");
        assert!(!one.lock.is_held_by(&owner));
        let session = one.client.session_id();
        // The other contender acquires it well before the session ends.
        let other = contender(&server, 2).await;
        let again = timeout(SECOND, other.lock.acquire()).await.unwrap();
        drop(again.unwrap());
        assert_eq!(one.client.session_id(), session);
        drop(soon(one.lock.acquire().as_owner(&owner)).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn h12_any_child_that_sorts_before_digits_blocks() {
    for options in both_ways() {
        let server = start().await;
        let one = contender_with(&server, 1, options).await;
        let (other, _) = client(&server, 2).await;
        drop(one.lock.acquire().await.unwrap());
        until("it is deleted", || queue(&server).is_empty()).await;
        let under = InterProcessMutex::new(other.clone(), "/locks/a/0").unwrap();
        let held = under.acquire().await.unwrap();
        let error = one.lock.acquire().within(SECOND).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        // A znode that sorts after the contenders blocks none.
        let behind = "/locks/a/unrelated";
        other
            .create(behind, b"", CreateMode::Ephemeral)
            .await
            .unwrap();
        held.release().await.unwrap();
        // The directory in the way is a container, and is deleted.
        drop(soon(one.lock.acquire()).await.unwrap());
    }
}

/// Deletes all children of a directory, then the directory.
async fn sweep_away(client: &Client, directory: &str) {
    if let Ok(children) = client.children(directory).await {
        let names: Vec<_> = children.names().map(std::borrow::Cow::into_owned).collect();
        for name in names {
            drop(client.delete(&naming::join(directory, &name), None).await);
        }
    }
    drop(client.delete(directory, None).await);
}

#[tokio::test(start_paused = true)]
async fn h13_directory_may_be_deleted_at_every_step() {
    for options in both_ways() {
        for step in 0..12 {
            let server = start().await;
            let (other, _) = client(&server, 1).await;
            let one = contender_with(&server, 2, options.clone()).await;
            one.link.delay_replies(Duration::from_millis(1));
            let lock = one.lock.clone();
            let waiting = spawn(async move { lock.acquire().await });
            sleep(Duration::from_millis(step)).await;
            sweep_away(&other, PATH).await;
            let guard = soon(waiting).await.unwrap().unwrap();
            if queue(&server).is_empty() {
                // The lock was granted before the deletion, or by a list from before it.
                assert_eq!(soon(guard.lost()).await, Loss::NodeDeleted);
            } else {
                assert_eq!(queue(&server), [naming::name_of(guard.path())]);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h14_directory_of_leases_may_be_deleted_repeatedly() {
    for options in both_ways() {
        for step in 0..8 {
            let server = start().await;
            let (other, _) = client(&server, 1).await;
            let (one, link) = client(&server, 2).await;
            let semaphore =
                InterProcessSemaphoreV2::with_options(one, PATH, 1, options.clone()).unwrap();
            drop(semaphore.acquire().await.unwrap());
            link.delay_replies(Duration::from_millis(1));
            let waiting = spawn(async move { semaphore.acquire().await });
            for _ in 0..4 {
                sleep(Duration::from_millis(step)).await;
                sweep_away(&other, "/locks/a/leases").await;
                sleep(Duration::from_micros(1500)).await;
                sweep_away(&other, "/locks/a/leases").await;
            }
            drop(soon(waiting).await.unwrap().unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h21_release_dropped_at_every_poll_releases_the_lock() {
    for is_late in [false, true] {
        for polls in 0..6 {
            let server = start().await;
            let one = contender(&server, 1).await;
            let guard = one.lock.acquire().await.unwrap();
            {
                let mut release = pin!(guard.release());
                drop(Polls::new(release.as_mut(), polls).await);
                if is_late {
                    sleep(SECOND).await;
                }
            }
            until("it is deleted", || queue(&server).is_empty()).await;
            let other = contender(&server, 2).await;
            drop(soon(other.lock.acquire()).await.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h22_retries_are_not_multiplied() {
    // Every connection is lost with its first reply, ten times.
    for options in both_ways() {
        let server = start().await;
        let wire = Wire::to(&server);
        let lock = InterProcessMutex::with_options(wire.client(1).await, PATH, options).unwrap();
        // The directory exists, and stays.
        let other = contender(&server, 2).await;
        let held = other.lock.acquire().await.unwrap();
        let waiting = spawn(async move { lock.acquire().await });
        let mut sent = 0;
        for _ in 0..10 {
            wire.arm(Some(Fault::LoseReply(1)));
            wire.cut();
            sleep(SECOND).await;
            sent += wire.requests();
        }
        // Each new connection sends the handshake, the watches or a recovery, and reads of the
        // watched znodes or the list.
        assert!(sent <= 10 * 9, "{sent} requests on 10 or 20 connections");
        assert_eq!(queue(&server).len(), 2);
        held.release().await.unwrap();
        drop(soon(waiting).await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn h23_many_clean_ups_neither_recurse_nor_repeat() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let mut guards = Vec::new();
    for number in 0..500 {
        let path = format!("/locks/many/{number}");
        let lock = InterProcessMutex::new(one.client.clone(), &path).unwrap();
        guards.push(lock.acquire().await.unwrap());
    }
    let (other, _) = client(&server, 2).await;
    // Half of the znodes are already gone, which also completes a clean-up.
    for guard in guards.iter().step_by(2) {
        other.delete(guard.path(), None).await.unwrap();
    }
    one.link.set(Mode::Cut);
    sleep(SECOND).await;
    drop(guards);
    assert_eq!(one.client.clean_ups_pending(), 500);
    one.link.set(Mode::Pass);
    until("it is done", || one.client.clean_ups_pending() == 0).await;
    let written = one.link.writes.load(Ordering::Relaxed);
    sleep(SESSION_TIMEOUT / 4).await;
    assert_eq!(one.link.writes.load(Ordering::Relaxed), written);
    assert_eq!(server.sessions().len(), 2, "in the same session");
}

#[tokio::test(start_paused = true)]
async fn h25_reader_whose_znode_is_missing_queues_again() {
    for options in both_ways() {
        let server = start().await;
        let (writing, _) = client(&server, 1).await;
        let writer = InterProcessReadWriteLock::new(writing.clone(), PATH).unwrap();
        let held = writer.acquire_write().await.unwrap();
        let (reading, _) = client(&server, 2).await;
        let reader = InterProcessReadWriteLock::with_options(reading, PATH, options).unwrap();
        let waiting = spawn(async move { reader.acquire_read().await });
        until("it waits", || queue(&server).len() == 2).await;
        sleep(SECOND).await;
        let own = naming::join(PATH, &queue(&server)[1]);
        writing.delete(&own, None).await.unwrap();
        sleep(SECOND).await;
        drop(held);
        let guard = soon(waiting).await.unwrap().unwrap();
        assert_eq!(queue(&server), [naming::name_of(guard.path())]);
    }
}

#[tokio::test(start_paused = true)]
async fn h26_raised_maximum_wakes_as_many_waiters_and_participants_are_leases() {
    for options in both_ways() {
        let server = start().await;
        let (counting, _) = client(&server, 9).await;
        let count = SharedCount::start(counting, "/max", 1).await.unwrap();
        let (one, _) = client(&server, 1).await;
        let semaphore =
            InterProcessSemaphoreV2::with_options(one, PATH, count.clone(), options).unwrap();
        let first = semaphore.acquire().await.unwrap();
        let wait = || {
            let semaphore = semaphore.clone();
            spawn(async move { semaphore.acquire().await })
        };
        let waiting = [wait(), wait(), wait()];
        sleep(10 * SECOND).await;
        assert!(waiting.iter().all(|one| !one.is_finished()));
        count.set(3).await.unwrap();
        sleep(SECOND).await;
        let got = waiting.iter().filter(|one| one.is_finished()).count();
        assert_eq!(got, 2);
        let participants = semaphore.participants().await.unwrap();
        assert!(
            participants
                .iter()
                .all(|path| path.starts_with("/locks/a/leases/_c_"))
        );
        assert_eq!(participants.len(), 4, "three hold leases, one waits");
        assert_eq!(participants[0], first.path());
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test(start_paused = true)]
async fn h36_list_beyond_the_limit_is_no_grant_and_leaves_nothing() {
    // A contender takes 59 bytes: the default limit allows more than 17,700 contenders, the limit
    // here seventy.
    let limit = 4096;
    let server = start().await;
    let (filler, _) = client(&server, 1).await;
    for path in ["/locks", PATH] {
        let made = filler.create(path, b"", CreateMode::Persistent);
        made.await.unwrap();
    }
    for number in 0..100 {
        // These sort after every contender.
        let path = format!("{PATH}/_c_{:036}-lock-x{number:09}", 0);
        let made = filler.create(&path, b"", CreateMode::Persistent);
        made.await.unwrap();
    }
    let contend = async |limit| {
        let link = Link::to(&server);
        let builder = kit::builder(&link, 2).frame_bytes_max(limit);
        InterProcessMutex::new(builder.connect().await.unwrap(), PATH).unwrap()
    };
    let error = contend(limit)
        .await
        .acquire()
        .within(SECOND)
        .await
        .unwrap_err();
    // The error comes at once: retries would end one connection after another.
    let LockError::Client(error) = error else {
        panic!("{error}");
    };
    let is_too_large = |cause| match cause {
        Cause::ReplyTooLarge { bytes, bytes_max } => bytes > limit && bytes_max == limit,
        _ => false,
    };
    assert!(error.cause().is_some_and(is_too_large), "{error}");
    until("its znode is deleted", || queue(&server).len() == 100).await;
    // A client with a larger limit acquires the lock.
    let lock = contend(4 * limit).await;
    let guard = timeout(SECOND, lock.acquire()).await.unwrap().unwrap();
    assert_eq!(guard.release().await.unwrap(), Released::Done);
}
