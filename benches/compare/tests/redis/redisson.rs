//! RLock.
//!
//! Source: `docs/curator-recipes.md` section 13.6.

use std::time::Duration;

use minikeeper_bench::{
    clock::Deadline,
    peers::{
        Access, Contender,
        redisson::{Lease, RLock, Redisson},
    },
    servers::redis::{Keeping, Redis},
};
use tokio::task::JoinHandle;

use super::*;

pub(super) fn redisson(server: &Redis, lease: Lease) -> Redisson {
    Redisson {
        server: "Redis".into(),
        durability: Keeping::Nothing.text(),
        addr: server.addr(),
        lease,
    }
}

async fn two_of(lock: &Redisson) -> [RLock; 2] {
    [lock.open(KEY).await.unwrap(), lock.open(KEY).await.unwrap()]
}

/// A task that waits for the lock and ends with it; when this returns, it has subscribed.
async fn waiting(server: &Redis, mut waiter: RLock) -> JoinHandle<RLock> {
    let waiting = tokio::spawn(async move {
        acquire(&mut waiter).await;
        waiter
    });
    until_subscribed(server.addr(), REDISSON_CHANNEL, 1).await;
    waiting
}

async fn until_unwatched(holder: &RLock) {
    let deadline = Deadline::new(SOON, "end of the watchdog");
    while holder.is_watched() {
        deadline.check().unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn redisson_behaves_as_a_lock() {
    run(async {
        let server = started();
        let lock = redisson(&server, Lease::Watched(LONG));
        behaves_as_a_lock(&lock, Belief::NoAnswer, &[server]).await;
    });
}

#[test]
fn redisson_hold_lasts_its_lease_without_its_holder() {
    run(async {
        let server = started();
        let lock = redisson(&server, Lease::Watched(SHORT));
        outlives_its_holder_by_the_lease(&lock, SHORT).await;
        let lock = redisson(&server, Lease::Fixed(SHORT));
        outlives_its_holder_by_the_lease(&lock, SHORT).await;
    });
}

#[test]
fn redisson_waiter_is_woken_by_the_message_and_unsubscribes() {
    run(async {
        let server = started();
        // No watchdog: only the message can end the wait within a minute.
        let [mut one, two] = two_of(&redisson(&server, Lease::Fixed(LONG))).await;
        acquire(&mut one).await;
        let waiting = waiting(&server, two).await;
        assert!(!waiting.is_finished());
        let (two, took) = elapsed(async {
            one.release().await.unwrap();
            waiting.await.unwrap()
        })
        .await;
        assert!(took < SOON, "{took:?}");
        until_subscribed(server.addr(), REDISSON_CHANNEL, 0).await;
        drop(two);
    });
}

#[test]
fn redisson_dropped_waiter_unsubscribes() {
    run(async {
        let server = started();
        let [mut one, mut two] = two_of(&redisson(&server, Lease::Fixed(LONG))).await;
        acquire(&mut one).await;
        let watched = tokio::spawn(until_subscribed(server.addr(), REDISSON_CHANNEL, 1));
        // The acquire is dropped while it waits.
        let waits = two.acquire(Access::Exclusive);
        let waited = tokio::time::timeout(Duration::from_secs(1), waits).await;
        watched.await.unwrap();
        assert!(waited.is_err());
        until_subscribed(server.addr(), REDISSON_CHANNEL, 0).await;
        assert_eq!(two.hold_count().await.unwrap(), 0);
        one.release().await.unwrap();
        assert!(is_got_within(&mut two, Duration::ZERO).await);
    });
}

#[test]
fn redisson_counts_holds_and_frees_with_the_last() {
    run(async {
        let server = started();
        let [mut one, mut two] = two_of(&redisson(&server, Lease::default())).await;
        assert_eq!(one.remaining_ms().await.unwrap(), -2);
        acquire(&mut one).await;
        assert!(one.acquire_again().await.unwrap());
        assert_eq!(one.hold_count().await.unwrap(), 2);
        assert!(!two.acquire_again().await.unwrap());
        assert_eq!(two.hold_count().await.unwrap(), 0);
        assert!(two.is_locked().await.unwrap());
        assert!(!two.is_held_by_me().await.unwrap());
        assert!((20_000..=30_000).contains(&two.remaining_ms().await.unwrap()));

        one.release().await.unwrap();
        assert!(one.is_held_by_me().await.unwrap() && one.is_watched());
        assert!(!is_got_within(&mut two, Duration::ZERO).await);
        one.release().await.unwrap();
        assert!(!one.is_locked().await.unwrap() && !one.is_watched());
        assert!(is_not_held(&one.release().await));
    });
}

#[test]
fn redisson_watchdog_keeps_the_lock_for_more_than_two_leases() {
    run(async {
        let server = started();
        let [mut one, mut two] = two_of(&redisson(&server, Lease::Watched(SHORT))).await;
        // Also a second hold of the same contender: the imitation fails here.
        acquire(&mut one).await;
        one.release().await.unwrap();
        acquire(&mut one).await;
        assert!(!is_got_within(&mut two, SHORT * 5 / 2).await);
        assert!(one.is_held_by_me().await.unwrap());
        one.release().await.unwrap();
    });
}

#[test]
fn redisson_forced_unlock_wakes_a_waiter() {
    run(async {
        let server = started();
        let [mut one, two] = two_of(&redisson(&server, Lease::Fixed(LONG))).await;
        acquire(&mut one).await;
        let waiting = waiting(&server, two).await;
        let (waited, took) = elapsed(async {
            assert!(one.force_unlock().await.unwrap());
            waiting.await
        })
        .await;
        waited.unwrap();
        assert!(took < SOON, "{took:?}");
    });
}

#[test]
fn redisson_forced_unlock_ends_the_watchdog() {
    run(async {
        let server = started();
        let lock = redisson(&server, Lease::Watched(SHORT));
        let [mut one, two] = two_of(&lock).await;
        let mut three = lock.open(KEY).await.unwrap();
        acquire(&mut one).await;
        let waiting = waiting(&server, two).await;
        assert!(three.force_unlock().await.unwrap());
        let mut two = waiting.await.unwrap();

        // The old holder's watchdog finds that another contender holds the lock, and leaves it
        // alone.
        until_unwatched(&one).await;
        assert!(is_not_held(&one.release().await));
        assert!(two.is_held_by_me().await.unwrap());

        assert!(two.force_unlock().await.unwrap());
        assert!(!two.is_watched());
        assert!(!two.force_unlock().await.unwrap());
    });
}

#[test]
fn redisson_watchdog_ends_with_the_first_error() {
    run(async {
        let mut server = started();
        let lock = redisson(&server, Lease::Watched(SHORT));
        let mut one = lock.open(KEY).await.unwrap();
        acquire(&mut one).await;
        assert!(one.is_watched());
        server.stop().unwrap();
        until_unwatched(&one).await;
        // The library does not notify the holder, so it does not know.
        assert_eq!(one.belief(), Belief::NoAnswer);
        let released = one.release().await;
        assert!(
            matches!(released, Err(LockFailure::Unknown(_))),
            "{released:?}"
        );
    });
}
