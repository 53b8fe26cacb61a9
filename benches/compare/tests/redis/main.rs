//! The locks on Redis, against real servers: each test starts its own.
//!
//! | module | content |
//! | --- | --- |
//! | [`imitation`] | the broken lock: it has its defects |
//! | [`judged`] | the judge's verdicts |
//! | [`redis_set`] | `SET NX PX` |
//! | [`redisson`] | RLock |
//! | [`redlock`] | Redlock |
//! | [`server`] | the servers themselves |
//!
//! `tests/live` checks the behaviour that every lock must have. Times are the server's leases,
//! which a test cannot shift: a lower bound is exact up to the server's milliseconds; an upper
//! bound only distinguishes a message from the end of a long lease.

#![allow(
    clippy::unwrap_used,
    reason = "all of it is test code, its helpers included"
)]

use std::{net::SocketAddr, time::Duration};

use minikeeper_bench::{
    clock::Deadline,
    peers::{Belief, LockFailure, LockUnderTest},
    process::Pin,
    servers::redis::{Keeping, Redis},
};
use redis::AsyncCommands as _;

mod imitation;
mod judged;
#[path = "../live/mod.rs"]
mod live;
mod redis_set;
mod redisson;
mod redlock;
mod server;

use live::{SOON, acquire, elapsed, is_got_within, is_not_held};

const KEY: &str = "lock";
const REDISSON_CHANNEL: &str = "redisson_lock__channel:{lock}";

/// Longer than any test: whatever ends within a test ends for another reason.
const LONG: Duration = Duration::from_secs(60);
/// A lease that a test can wait for.
const SHORT: Duration = Duration::from_millis(600);
/// The server counts in whole milliseconds of its own clock.
const ROUNDING: Duration = Duration::from_millis(2);

fn run(test: impl Future<Output = ()>) {
    live::run_within(LONG, test);
}

fn started() -> Redis {
    many(1).remove(0)
}

fn many(count: usize) -> Vec<Redis> {
    Redis::start_many(count, Pin::None, Keeping::Nothing)
        .unwrap_or_else(|error| panic!("these tests need Redis: {}", error.chain()))
}

/// A connection with which the test observes the server.
async fn eye(addr: SocketAddr) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{addr}")).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn keys(server: &Redis) -> Vec<String> {
    eye(server.addr()).await.keys("*").await.unwrap()
}

async fn subscribers(addr: SocketAddr, channel: &str) -> u32 {
    let mut eye = eye(addr).await;
    let mut command = redis::cmd("PUBSUB");
    let reply: redis::RedisResult<(String, u32)> = command
        .arg("NUMSUB")
        .arg(channel)
        .query_async(&mut eye)
        .await;
    reply.unwrap().1
}

async fn until_subscribed(addr: SocketAddr, channel: &str, count: u32) {
    let deadline = Deadline::new(SOON, format!("{count} subscribers of {channel}"));
    while subscribers(addr, channel).await != count {
        deadline.check().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Checks the behaviour that every lock must have, on servers without other keys.
async fn behaves_as_a_lock(lock: &dyn LockUnderTest, held: Belief, servers: &[Redis]) {
    let expect_holders = async |holders| {
        for server in servers {
            assert_eq!(keys(server).await, vec![KEY; holders]);
            until_subscribed(server.addr(), REDISSON_CHANNEL, 0).await;
        }
    };
    live::behaves_as_a_lock(lock, KEY, held, expect_holders).await;
}

/// A dead holder's lock is free after its lease, and not before.
async fn outlives_its_holder_by_the_lease(lock: &dyn LockUnderTest, lease: Duration) {
    let mut one = lock.contender(KEY).await.unwrap();
    let mut two = lock.contender(KEY).await.unwrap();
    let ((), took) = elapsed(async {
        acquire(&mut *one).await;
        drop(one);
        assert!(is_got_within(&mut *two, SOON).await);
    })
    .await;
    assert!(took + ROUNDING >= lease, "{took:?}");
    assert!(took < SOON, "{took:?}");
    two.release().await.unwrap();
}
