//! The broken lock: it has its defects, with their numbers in the source.
//!
//! Source: `docs/curator-recipes.md` section 13.7.

use std::time::Duration;

use minikeeper_bench::{
    peers::{Belief, LockUnderTest as _, jedis_imitation::JedisImitation, redisson::Lease},
    servers::redis::{Keeping, Redis},
};
use redis::AsyncCommands as _;

use super::{redisson::redisson, *};

pub(super) fn imitation(server: &Redis, lease: Duration) -> JedisImitation {
    JedisImitation {
        server: "Redis".into(),
        durability: Keeping::Nothing.text(),
        addr: server.addr(),
        lease,
    }
}

#[test]
fn redisson_waits_for_a_message_when_a_hold_has_no_end_and_the_imitation_is_busy() {
    run(async {
        let server = started();
        let mut eye = eye(server.addr()).await;
        let _: () = eye.hset(KEY, "somebody", 1).await.unwrap();
        let mut good = redisson(&server, Lease::default()).open(KEY).await.unwrap();
        let mut bad = imitation(&server, LONG).contender(KEY).await.unwrap();
        let limit = Duration::from_millis(300);

        let before = scripts_run(&server).await;
        assert!(!is_got_within(&mut good, limit).await);
        let between = scripts_run(&server).await;
        assert!(!is_got_within(&mut *bad, limit).await);
        let after = scripts_run(&server).await;
        assert_eq!(between - before, 2);
        // Defect 6.
        assert!(after - between > 10, "{} scripts", after - between);
    });
}

async fn scripts_run(server: &Redis) -> u64 {
    let mut eye = eye(server.addr()).await;
    let mut command = redis::cmd("INFO");
    let text: String = command
        .arg("commandstats")
        .query_async(&mut eye)
        .await
        .unwrap();
    let counts = text
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let count = counts.and_then(|counts| counts.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn imitation_excludes_while_its_first_hold_lasts() {
    run(async {
        let server = started();
        let lock = imitation(&server, SHORT);
        let mut one = lock.contender(KEY).await.unwrap();
        let mut two = lock.contender(KEY).await.unwrap();
        acquire(&mut *one).await;
        assert!(!is_got_within(&mut *two, SHORT * 5 / 2).await);
        one.release().await.unwrap();
        assert!(is_got_within(&mut *two, Duration::ZERO).await);
    });
}

#[test]
fn imitation_loses_its_second_hold_too_early() {
    run(async {
        let server = started();
        let lock = imitation(&server, SHORT);
        let mut one = lock.contender(KEY).await.unwrap();
        let mut two = lock.contender(KEY).await.unwrap();
        acquire(&mut *one).await;
        one.release().await.unwrap();
        acquire(&mut *one).await;
        // Defect 1: both hold it.
        assert!(is_got_within(&mut *two, SOON).await);
        assert_ne!(one.belief(), Belief::Lost);
        assert_ne!(two.belief(), Belief::Lost);
        assert!(is_not_held(&one.release().await));
    });
}
