//! `SET NX PX`.
//!
//! Source: `docs/curator-recipes.md` section 13.5.

use std::time::Duration;

use minikeeper_bench::{
    peers::{
        LockUnderTest as _,
        redis_set::{POLLING_INTERVAL, RedisSet},
    },
    servers::redis::{Keeping, Redis},
};

use super::*;

pub(super) fn redis_set(server: &Redis, ttl: Duration) -> RedisSet {
    RedisSet {
        server: "Redis".into(),
        durability: Keeping::Nothing.text(),
        addr: server.addr(),
        ttl,
        interval: POLLING_INTERVAL,
    }
}

#[test]
fn set_behaves_as_a_lock() {
    run(async {
        let server = started();
        let lock = redis_set(&server, LONG);
        behaves_as_a_lock(&lock, Belief::NoAnswer, &[server]).await;
    });
}

#[test]
fn set_hold_lasts_its_time_and_does_not_delete_the_next_holders() {
    run(async {
        let server = started();
        outlives_its_holder_by_the_lease(&redis_set(&server, SHORT), SHORT).await;

        let lock = redis_set(&server, Duration::from_millis(100));
        let mut one = lock.contender(KEY).await.unwrap();
        let lock = redis_set(&server, LONG);
        let mut two = lock.contender(KEY).await.unwrap();
        acquire(&mut *one).await;
        acquire(&mut *two).await;
        assert!(is_not_held(&one.release().await));
        two.release().await.unwrap();
    });
}
