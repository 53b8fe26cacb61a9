//! The locks on Redis, against real servers: each test starts its own.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | [`imitation`] | the broken lock: that its defects are there |
//! | [`judged`] | what the judge says of them |
//! | [`redis_set`] | `SET NX PX` |
//! | [`redisson`] | RLock |
//! | [`redlock`] | Redlock |
//! | [`server`] | the servers themselves |
//!
//! What every lock must do is in this file. Times are the server's leases, which nobody can move: a
//! lower bound is exact up to the server's milliseconds; an upper bound only tells a message from
//! the end of a long lease.

#![allow(
    clippy::unwrap_used,
    reason = "all of it is test code, its helpers included"
)]

use std::{net::SocketAddr, time::Duration};

use minikeeper_benches::{
    clock::{Deadline, now_ns},
    peers::{Access, Belief, Contender, LockFailure, LockUnderTest},
    process::Pin,
    servers::redis::{Keeping, Redis},
};
use redis::AsyncCommands as _;

mod imitation;
mod judged;
mod redis_set;
mod redisson;
mod redlock;
mod server;

const KEY: &str = "lock";
const REDISSON_CHANNEL: &str = "redisson_lock__channel:{lock}";

/// Longer than any test: what ends within the test does not end by it.
const LONG: Duration = Duration::from_secs(60);
/// A lease that a test can wait for.
const SHORT: Duration = Duration::from_millis(600);
/// For what must happen soon, on a slow machine too.
const SOON: Duration = Duration::from_secs(10);
/// The server counts in whole milliseconds of its own clock.
const ROUNDING: Duration = Duration::from_millis(2);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, test).await.unwrap() });
}

fn started() -> Redis {
    many(1).remove(0)
}

fn many(count: usize) -> Vec<Redis> {
    Redis::start_many(count, Pin::None, Keeping::Nothing)
        .unwrap_or_else(|error| panic!("these tests need Redis: {}", error.chain()))
}

/// A connection to look with.
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
    let answer: redis::RedisResult<(String, u32)> = command
        .arg("NUMSUB")
        .arg(channel)
        .query_async(&mut eye)
        .await;
    answer.unwrap().1
}

async fn until_subscribed(addr: SocketAddr, channel: &str, count: u32) {
    let deadline = Deadline::new(SOON, format!("{count} subscribers of {channel}"));
    while subscribers(addr, channel).await != count {
        deadline.check().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn acquire(contender: &mut dyn Contender) {
    contender.acquire(Access::Exclusive).await.unwrap();
}

async fn is_got_within(contender: &mut dyn Contender, limit: Duration) -> bool {
    let got = contender.acquire_within(Access::Exclusive, limit).await;
    got.unwrap().is_some()
}

async fn elapsed<T>(doing: impl Future<Output = T>) -> (T, Duration) {
    let began_ns = now_ns();
    let done = doing.await;
    (done, Duration::from_nanos(now_ns() - began_ns))
}

fn is_not_held<T>(done: &Result<T, LockFailure>) -> bool {
    matches!(done, Err(LockFailure::NotHeld(_)))
}

/// What every lock must do, on servers where nothing else is.
async fn behaves_as_a_lock(lock: &dyn LockUnderTest, servers: &[Redis]) {
    let mut one = lock.contender(KEY).await.unwrap();
    let mut two = lock.contender(KEY).await.unwrap();
    assert_ne!(one.session(), two.session());
    assert_eq!(one.belief(), Belief::Lost);

    acquire(&mut *one).await;
    assert_ne!(one.belief(), Belief::Lost);

    // Try says no at once.
    let (got, took) = elapsed(is_got_within(&mut *two, Duration::ZERO)).await;
    assert!(!got);
    assert!(took < SOON, "{took:?}");

    // Timed gives up, not before its time.
    let limit = Duration::from_millis(300);
    let (got, took) = elapsed(is_got_within(&mut *two, limit)).await;
    assert!(!got);
    assert!((limit..SOON).contains(&took), "{took:?}");
    assert_eq!(two.belief(), Belief::Lost);

    // Whoever does not hold it cannot give it back, and nothing of the tries is left.
    assert!(is_not_held(&two.release().await));
    for server in servers {
        assert_eq!(keys(server).await, [KEY]);
        until_subscribed(server.addr(), REDISSON_CHANNEL, 0).await;
    }
    assert!(!is_got_within(&mut *two, Duration::ZERO).await);

    one.release().await.unwrap();
    assert_eq!(one.belief(), Belief::Lost);
    for server in servers {
        assert!(keys(server).await.is_empty());
    }
    assert!(is_not_held(&one.release().await));
    assert!(is_got_within(&mut *two, Duration::ZERO).await);

    // A waiter gets it long before the lease ends.
    let waiting = tokio::spawn(async move {
        acquire(&mut *one).await;
        one
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    let (mut one, took) = elapsed(async {
        two.release().await.unwrap();
        waiting.await.unwrap()
    })
    .await;
    assert!(took < SOON, "{took:?}");
    one.release().await.unwrap();
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
