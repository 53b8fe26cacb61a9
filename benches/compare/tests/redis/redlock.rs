//! Redlock.
//!
//! Source: `docs/curator-recipes.md` section 13.8.

use std::time::Duration;

use minikeeper_bench::{
    peers::{
        Belief, Contender, LockFailure, LockUnderTest,
        redlock::{Holder, Redlock},
    },
    servers::redis::{Keeping, Redis},
};
use redis::AsyncCommands as _;

use super::*;

fn redlock(servers: &[Redis], ttl: Duration) -> Redlock {
    Redlock {
        server: "5 x Redis".into(),
        durability: Keeping::Nothing.text(),
        addrs: servers.iter().map(Redis::addr).collect(),
        ttl,
        // Longer than usual: on a slow machine an instance has not failed.
        instance_limit: Duration::from_millis(500),
        extensions_max: 2,
        seed: 1,
    }
}

#[test]
fn redlock_behaves_as_a_lock() {
    run(async {
        let servers = many(5);
        let lock = redlock(&servers, LONG);
        behaves_as_a_lock(&lock, Belief::Held, &servers).await;
    });
}

#[test]
fn redlock_hold_lasts_its_time() {
    run(async {
        let servers = many(5);
        let lock = redlock(&servers, SHORT);
        outlives_its_holder_by_the_lease(&lock, SHORT).await;

        let mut one: Holder = lock.open(KEY);
        acquire(&mut one).await;
        assert_eq!(one.belief(), Belief::Held);
        assert!(one.validity_left() < SHORT);
        // Its validity ends earlier, by the drift.
        let mut two = lock.open(KEY);
        assert!(is_got_within(&mut two, SOON).await);
        assert_eq!(one.belief(), Belief::Lost);
        assert!(is_not_held(&one.release().await));
        assert!(is_not_held(&one.extend().await));
        two.release().await.unwrap();
    });
}

#[test]
fn redlock_is_extended_by_a_majority_up_to_its_limit() {
    run(async {
        let mut servers = many(5);
        let lock = redlock(&servers, LONG);
        let mut one = lock.open(KEY);
        acquire(&mut one).await;
        for server in &servers {
            let mut eye = eye(server.addr()).await;
            let _: () = eye.pexpire(KEY, 30_000).await.unwrap();
        }
        assert!(one.extend().await.unwrap());
        for server in &servers {
            let left_ms: i64 = eye(server.addr()).await.pttl(KEY).await.unwrap();
            assert!(left_ms > 30_000, "{left_ms}");
        }
        for server in &mut servers[..3] {
            server.stop().unwrap();
        }
        // No majority: the hold continues unchanged.
        assert!(!one.extend().await.unwrap());
        assert_eq!(one.belief(), Belief::Held);
        // It is unknown whether the three stopped instances deleted it.
        let released = one.release().await;
        assert!(
            matches!(released, Err(LockFailure::Unknown(_))),
            "{released:?}"
        );
        assert_eq!(one.belief(), Belief::Lost);

        let servers = many(5);
        let mut two = redlock(&servers, LONG).open(KEY);
        acquire(&mut two).await;
        assert!(two.extend().await.unwrap());
        assert!(two.extend().await.unwrap());
        assert!(!two.extend().await.unwrap(), "extended once too often");
    });
}

#[test]
fn redlock_without_a_majority_fails_and_leaves_nothing_behind() {
    run(async {
        let mut servers = many(5);
        let lock = redlock(&servers, LONG);
        let mut one = lock.contender(KEY).await.unwrap();
        for server in &mut servers[..2] {
            server.stop().unwrap();
        }
        assert!(is_got_within(&mut *one, Duration::ZERO).await);
        one.release().await.unwrap();

        servers[2].stop().unwrap();
        assert!(!is_got_within(&mut *one, Duration::ZERO).await);
        for server in &servers[3..] {
            assert!(keys(server).await.is_empty());
        }
        // Nor does a contender that never reached them.
        let mut two = lock.contender(KEY).await.unwrap();
        assert!(!is_got_within(&mut *two, Duration::ZERO).await);
        assert_eq!(two.belief(), Belief::Lost);
    });
}

#[test]
fn redlock_is_acquired_despite_a_taken_minority_which_is_left_alone() {
    run(async {
        let servers = many(5);
        for server in &servers[..2] {
            let mut eye = eye(server.addr()).await;
            let _: () = eye.set(KEY, "somebody").await.unwrap();
        }
        let mut one = redlock(&servers, LONG).contender(KEY).await.unwrap();
        assert!(is_got_within(&mut *one, Duration::ZERO).await);
        one.release().await.unwrap();
        for server in &servers[..2] {
            assert_eq!(keys(server).await, [KEY]);
        }
        for server in &servers[2..] {
            assert!(keys(server).await.is_empty());
        }
    });
}
