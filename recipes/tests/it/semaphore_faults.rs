//! Faults of a semaphore: dropped acquires, lost links, sessions and znodes
//! (`docs/curator-recipes.md` section 6.6).

use std::time::Duration;

use minikeeper::Server;
use minikeeper_client::{AddWatchMode, EventKind, WatchEvent};
use minikeeper_recipes::{InterProcessSemaphoreV2, LockOptions, Loss, SharedCount, Status};
use tokio::time::{sleep, timeout};

use crate::{
    every_lock::{
        dropping_at_every_await_point_leaves_nothing,
        h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue,
    },
    kit::{both_ways, client, soon, spawn, start, until},
    link::Mode,
    semaphore::{Contender, PATH, contender, leases, locks},
};

async fn clean(server: &Server, one: &Contender) {
    until("nothing is pending", || one.client.clean_ups_pending() == 0).await;
    until("nothing waits", || locks(server).is_empty()).await;
}

/// The acquire is dropped at every await point (hazards H21 and H24).
#[tokio::test(start_paused = true)]
async fn test_interrupt_acquire() {
    dropping_at_every_await_point_leaves_nothing::<InterProcessSemaphoreV2>().await;
}

#[tokio::test(start_paused = true)]
async fn h24_losing_the_link_at_every_step_leaves_no_lease() {
    h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue::<InterProcessSemaphoreV2>()
        .await;
}

#[tokio::test(start_paused = true)]
async fn dropped_acquire_releases_leases_before_the_inner_lock() {
    let server = start().await;
    let (looker, _) = client(&server, 9).await;
    let other = contender(&server, 1, 3, LockOptions::default()).await;
    let _held = other.lock.acquire().await.unwrap();
    let mut watch = looker
        .add_watch(PATH, AddWatchMode::PersistentRecursive)
        .await
        .unwrap();
    let dropper = contender(&server, 2, 3, LockOptions::default()).await;
    let acquire = dropper.lock.acquire_many(3);
    assert!(timeout(Duration::from_secs(1), acquire).await.is_err());
    let mut deleted = Vec::new();
    while deleted.len() < 4 {
        let event = soon(watch.next()).await;
        let WatchEvent::Event { kind, path, .. } = event else {
            panic!("{event:?}");
        };
        if kind == EventKind::Deleted && !path.ends_with("/locks") {
            deleted.push(path);
        }
    }
    // The last lease is deleted first, the inner lock last.
    let digits = |path: &String| path[path.len() - 10..].to_owned();
    assert!(
        deleted[..3].is_sorted_by(|a, b| digits(a) > digits(b)),
        "{deleted:?}"
    );
    assert!(
        deleted[3].starts_with("/semaphores/a/locks/"),
        "{deleted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn test_no_orphaned_nodes() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 1, options.clone()).await;
        let other = contender(&server, 2, 1, options).await;
        let held = one.lock.acquire().await.unwrap();
        let waiting = other.waiting_for_one();
        until("it waits", || leases(&server).len() == 2).await;
        let of_waiter = leases(&server)
            .into_iter()
            .find(|name| !held.path().ends_with(name))
            .unwrap();
        let path = format!("{PATH}/leases/{of_waiter}");
        one.client.delete(&path, None).await.unwrap();
        until("it starts over", || {
            leases(&server).len() == 2 && !leases(&server).contains(&of_waiter)
        })
        .await;
        drop(held);
        let lease = soon(waiting).await.unwrap().unwrap();
        assert_eq!(leases(&server), [lease.name()]);
        drop(lease);
        until("nothing is left", || leases(&server).is_empty()).await;
        clean(&server, &other).await;
    }
}

#[tokio::test(start_paused = true)]
async fn inner_lock_deleted_by_another_client_is_acquired_again() {
    let server = start().await;
    let one = contender(&server, 1, 1, LockOptions::default()).await;
    let other = contender(&server, 2, 1, LockOptions::default()).await;
    let held = one.lock.acquire().await.unwrap();
    let waiting = other.waiting_for_one();
    until("it waits", || leases(&server).len() == 2).await;
    sleep(Duration::from_secs(1)).await;
    let before = locks(&server);
    let path = format!("{PATH}/locks/{}", before[0]);
    one.client.delete(&path, None).await.unwrap();
    until("it starts over", || {
        locks(&server).len() == 1 && locks(&server) != before
    })
    .await;
    drop(held);
    drop(soon(waiting).await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn h15_lost_release_of_the_inner_lock_costs_no_lease() {
    // The link swallows the request that releases the inner lock: the lease is granted at once, and
    // the lock is released on the next connection.
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 2, options.clone()).await;
        let other = contender(&server, 2, 2, options).await;
        one.link.delay_replies(Duration::from_millis(5));
        let mut acquiring = one.waiting_for_one();
        until("the lease is created", || leases(&server).len() == 1).await;
        one.link.set(Mode::SwallowRequests);
        let at_once = timeout(Duration::from_millis(100), &mut acquiring).await;
        sleep(Duration::from_millis(200)).await;
        assert_eq!(locks(&server).len(), 1, "it is not released yet");
        one.link.cut();
        let lease = match at_once {
            Ok(lease) => lease,
            // With Curator's requests, the list has not been requested yet.
            Err(_) => soon(acquiring).await,
        };
        let lease = lease.unwrap().unwrap();
        let second = soon(other.lock.acquire()).await.unwrap();
        assert_eq!(leases(&server).len(), 2);
        assert_eq!(lease.status(), Status::Held);
        drop(second);
    }
}

#[tokio::test(start_paused = true)]
async fn session_lost_while_waiting_starts_over() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 1, options.clone()).await;
        let other = contender(&server, 2, 1, options).await;
        let held = one.lock.acquire().await.unwrap();
        let waiting = other.waiting_for_one();
        until("it waits", || leases(&server).len() == 2).await;
        let session = other.client.session_id().unwrap();
        // The link is frozen for longer than the session timeout.
        other.link.set(Mode::Freeze);
        until("its session ends", || {
            server.sessions().iter().all(|info| info.id != session)
        })
        .await;
        other.link.cut();
        until("it waits again", || leases(&server).len() == 2).await;
        assert!(!waiting.is_finished());
        drop(held);
        let lease = soon(waiting).await.unwrap().unwrap();
        assert_eq!(leases(&server), [lease.name()]);
    }
}

#[tokio::test(start_paused = true)]
async fn link_cut_while_waiting_keeps_the_place() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 1, options.clone()).await;
        let other = contender(&server, 2, 1, options).await;
        let held = one.lock.acquire().await.unwrap();
        let waiting = other.waiting_for_one();
        until("it waits", || leases(&server).len() == 2).await;
        let before = (leases(&server), locks(&server));
        other.link.set(Mode::Cut);
        sleep(Duration::from_secs(1)).await;
        // The release while the link is cut is not missed.
        drop(held);
        other.link.set(Mode::Pass);
        let lease = soon(waiting).await.unwrap().unwrap();
        assert!(before.0.contains(&lease.name().to_owned()), "hazard H42");
        assert_eq!(before.1.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_lease_is_reported() {
    let server = start().await;
    let mut options = LockOptions::default();
    options.watch_own = true;
    let one = contender(&server, 1, 2, options).await;
    let leases = one.lock.acquire_many(2).await.unwrap();
    let (looker, _) = client(&server, 9).await;
    looker.delete(leases[0].path(), None).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(leases[0].status(), Status::Lost(Loss::NodeDeleted));
    assert_eq!(leases[1].status(), Status::Held);
    let (loss, _) = tokio::join!(soon(leases[1].lost()), async {
        sleep(Duration::from_secs(1)).await;
        server.expire(one.client.session_id().unwrap()).unwrap();
    });
    assert!(matches!(loss, Loss::NodeDeleted | Loss::SessionOver));
    assert!(leases[1].run(std::future::pending::<()>()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn unreadable_maximum_is_an_error() {
    let server = start().await;
    let (counting, _) = client(&server, 9).await;
    let count = SharedCount::start(counting.clone(), "/max", 1)
        .await
        .unwrap();
    let one = contender(&server, 1, count, LockOptions::default()).await;
    let _held = one.lock.acquire().await.unwrap();
    let (waited, _) = tokio::join!(soon(one.lock.acquire()), async {
        sleep(Duration::from_secs(1)).await;
        counting.set_data("/max", b"1", None).await.unwrap();
    });
    let error = waited.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        error.to_string(),
        "semaphore \"/semaphores/a\": cannot read its maximum"
    );
    assert_eq!(
        source,
        "shared count \"/max\": 1 bytes found, but a count has 4; set the count to repair it"
    );
    clean(&server, &one).await;
    until("its lease is deleted", || leases(&server).len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn maximum_lowered_during_the_wait_for_the_inner_lock_counts() {
    for options in both_ways() {
        let server = start().await;
        let (counting, _) = client(&server, 9).await;
        let count = SharedCount::start(counting, "/max", 2).await.unwrap();
        let mut waiting = Vec::new();
        let one = contender(&server, 1, 2, options.clone()).await;
        let mut held = one.lock.acquire_many(2).await.unwrap();
        for seed in 2..4 {
            // Each process has its own count object.
            let (client, _) = client(&server, seed).await;
            let count = SharedCount::start(client.clone(), "/max", 2).await.unwrap();
            let semaphore =
                InterProcessSemaphoreV2::with_options(client, PATH, count, options.clone());
            let semaphore = semaphore.unwrap();
            waiting.push(spawn(async move { semaphore.acquire().await }));
            let expected = usize::try_from(seed).unwrap() - 1;
            until("it queues", || locks(&server).len() == expected).await;
        }
        // The second contender waits only for the inner lock.
        until("the first contender waits for a lease", || {
            leases(&server).len() == 3
        })
        .await;
        count.set(1).await.unwrap();
        held.clear();
        let second = waiting.pop().unwrap();
        let first = soon(waiting.pop().unwrap()).await.unwrap().unwrap();
        sleep(Duration::from_secs(5)).await;
        assert!(!second.is_finished(), "two leases of one");
        drop(first);
        drop(soon(second).await.unwrap().unwrap());
    }
}
