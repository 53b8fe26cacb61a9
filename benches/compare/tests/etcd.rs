//! etcd's lock against a live etcd, and the server itself.
//!
//! The tests share one server while any of them runs.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are not tests to the lint"
)]

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use etcd_client::{Client, GetOptions};
use minikeeper_bench::{
    peers::{Access, Belief, Contender, LockFailure, LockUnderTest, etcd::EtcdLock},
    process::Pin,
    relay::{Relay, Wire},
    servers::{Running, Storage, etcd},
};

mod live;

use live::{acquire, elapsed, is_got_within};

/// How long a test may wait for anything.
const LIMIT: Duration = Duration::from_secs(20);

static SERVER: Mutex<Weak<Running>> = Mutex::new(Weak::new());

/// The server of these tests. Without etcd it panics with a message that says how to install it.
fn server() -> Arc<Running> {
    let mut shared = SERVER.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let started = etcd::start(Storage::Memory, Pin::None).unwrap_or_else(|e| panic!("{e}"));
        let started = Arc::new(started);
        *shared = Arc::downgrade(&started);
        started
    })
}

fn lock(server: &Running, lease_ttl_s: u32) -> EtcdLock {
    EtcdLock {
        server: format!("etcd {}", server.version()),
        durability: "nothing",
        addr: server.addr(),
        lease_ttl_s,
    }
}

fn run(case: impl Future<Output = ()>) {
    live::run_within(LIMIT, case);
}

async fn contender(lock: &EtcdLock, resource: &str) -> Box<dyn Contender> {
    lock.contender(resource).await.unwrap()
}

async fn token(contender: &mut dyn Contender) -> u64 {
    acquire(contender).await.token.unwrap()
}

/// The number of keys of the lock: the holder's and those of waiting contenders.
async fn keys(addr: SocketAddr, resource: &str) -> usize {
    let mut client = Client::connect([addr.to_string()], None).await.unwrap();
    let below = GetOptions::new().with_prefix().with_count_only();
    let found = client.get(format!("bench/{resource}/"), Some(below));
    usize::try_from(found.await.unwrap().count()).unwrap()
}

async fn revoke(addr: SocketAddr, session: &str) {
    let id = i64::from_str_radix(session.trim_start_matches("0x"), 16).unwrap();
    let client = Client::connect([addr.to_string()], None).await.unwrap();
    client.lease_client().revoke(id).await.unwrap();
}

/// Polls until the condition holds.
async fn wait_for(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: not within 10 s");
}

#[test]
fn server_as_shipped_reports_its_version_and_removes_its_data() {
    let server = etcd::start(Storage::AsShipped, Pin::None).unwrap_or_else(|e| panic!("{e}"));
    assert!(server.version().starts_with("3."), "{}", server.version());
    let pid = server.pid().unwrap();
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let command = String::from_utf8(command).unwrap();
    let words: Vec<_> = command.split('\0').collect();
    assert!(!words.contains(&"--unsafe-no-fsync"), "{words:?}");
    let at = words.iter().position(|word| *word == "--data-dir").unwrap();
    let data = words[at + 1].to_owned();
    assert!(std::path::Path::new(&data).join("member").is_dir());
    drop(server);
    assert!(!std::path::Path::new(&data).exists());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn etcds_lock_behaves_as_a_lock() {
    let server = server();
    let lock = lock(&server, 10);
    run(async {
        let expect_holders = async |holders| {
            assert_eq!(keys(server.addr(), "lock").await, holders);
        };
        live::behaves_as_a_lock(&lock, "lock", Belief::Held, expect_holders).await;
    });
}

/// The late deletion for an abandoned wait must not delete the next key. It is late if the server
/// is busy, so many contenders do this at once.
#[test]
fn lock_acquired_right_after_an_abandoned_wait_stays() {
    let server = server();
    let lock = lock(&server, 10);
    run(async {
        let mut all = Vec::new();
        for number in 0..16 {
            let name = format!("again-{number}");
            let mut holder = contender(&lock, &name).await;
            let mut second = contender(&lock, &name).await;
            all.push(tokio::spawn(async move {
                for wait_ms in 1..=30 {
                    let wait = Duration::from_millis(wait_ms);
                    token(&mut *holder).await;
                    let releasing = tokio::spawn(async move {
                        tokio::time::sleep(wait).await;
                        holder.release().await.unwrap();
                        holder
                    });
                    if !is_got_within(&mut *second, wait).await {
                        token(&mut *second).await;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    // Refused if the key is gone.
                    second.release().await.unwrap();
                    holder = releasing.await.unwrap();
                }
            }));
        }
        for one in all {
            one.await.unwrap();
        }
    });
}

/// The server's `Lock` call may grant nothing after this: etcd issue 13336.
#[test]
fn lock_is_granted_after_many_gave_up_waiting_at_once() {
    let server = server();
    let lock = lock(&server, 10);
    run(async {
        let mut holder = contender(&lock, "crowd").await;
        token(&mut *holder).await;
        let mut all = Vec::new();
        for _ in 0..64 {
            let mut waiter = contender(&lock, "crowd").await;
            all.push(tokio::spawn(async move {
                assert!(!is_got_within(&mut *waiter, Duration::from_millis(500)).await);
            }));
        }
        for one in all {
            one.await.unwrap();
        }
        assert_eq!(keys(server.addr(), "crowd").await, 1);
        let mut second = contender(&lock, "crowd").await;
        let waiting = tokio::spawn(async move { token(&mut *second).await });
        let addr = server.addr();
        wait_for("waiter's key", async || keys(addr, "crowd").await == 2).await;
        holder.release().await.unwrap();
        waiting.await.unwrap();
    });
}

#[test]
fn waiter_whose_connection_breaks_keeps_its_place() {
    let server = server();
    let relay = Relay::start(server.addr(), Wire::Other).unwrap();
    let direct = lock(&server, 10);
    let relayed = EtcdLock {
        addr: relay.addr,
        ..direct.clone()
    };
    run(async {
        let mut holder = contender(&direct, "broken").await;
        let mut waiter = contender(&relayed, "broken").await;
        token(&mut *holder).await;
        let waiting = tokio::spawn(async move { (token(&mut *waiter).await, waiter) });
        let addr = server.addr();
        wait_for("waiter's key", async || keys(addr, "broken").await == 2).await;
        relay.cut();
        // This one queues behind the contender without a connection.
        let mut third = contender(&direct, "broken").await;
        let mut last = tokio::spawn(async move { token(&mut *third).await });
        wait_for("third key", async || keys(addr, "broken").await == 3).await;
        holder.release().await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(300), &mut last).await;
        assert!(early.is_err(), "{early:?}");
        relay.open();
        let (second, mut waiter) = waiting.await.unwrap();
        waiter.release().await.unwrap();
        let third = last.await.unwrap();
        assert!(second < third, "{second} {third}");
    });
}

#[test]
fn lease_that_ends_during_a_wait_is_reported_and_grants_nothing() {
    let server = server();
    let lock = lock(&server, 10);
    run(async {
        let mut holder = contender(&lock, "ended").await;
        let mut waiter = contender(&lock, "ended").await;
        token(&mut *holder).await;
        let session = waiter.session();
        let waiting =
            tokio::spawn(async move { (waiter.acquire(Access::Exclusive).await, waiter) });
        let addr = server.addr();
        wait_for("waiter's key", async || keys(addr, "ended").await == 2).await;
        revoke(addr, &session).await;
        holder.release().await.unwrap();
        let (refused, mut waiter) = waiting.await.unwrap();
        let refused = refused.unwrap_err();
        assert!(matches!(refused, LockFailure::NotHeld(_)), "{refused}");
        assert_eq!(waiter.belief(), Belief::Lost);
        token(&mut *waiter).await;
        assert_ne!(waiter.session(), session);
    });
}

#[test]
fn dropped_acquire_leaves_no_key_for_the_next_one() {
    let server = server();
    let lock = lock(&server, 10);
    run(async {
        let mut holder = contender(&lock, "drop").await;
        let mut second = contender(&lock, "drop").await;
        token(&mut *holder).await;
        let waiting = second.acquire(Access::Exclusive);
        let dropped = tokio::time::timeout(Duration::from_millis(100), waiting).await;
        assert!(dropped.is_err());
        assert!(!is_got_within(&mut *second, Duration::from_millis(100)).await);
        holder.release().await.unwrap();
        assert_eq!(keys(server.addr(), "drop").await, 0);
        token(&mut *second).await;
        second.release().await.unwrap();
    });
}

#[test]
fn one_at_a_time_holds_it_and_tokens_rise() {
    let server = server();
    let lock = lock(&server, 10);
    run(async {
        let inside = Arc::new(AtomicU32::new(0));
        let largest = Arc::new(Mutex::new(0));
        let mut all = Vec::new();
        for _ in 0..5 {
            let mut contender = contender(&lock, "many").await;
            let (inside, largest) = (Arc::clone(&inside), Arc::clone(&largest));
            all.push(tokio::spawn(async move {
                for _ in 0..20 {
                    let token = token(&mut *contender).await;
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    let before = std::mem::replace(&mut *largest.lock().unwrap(), token);
                    assert!(before < token, "{before} {token}");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    contender.release().await.unwrap();
                }
            }));
        }
        for one in all {
            one.await.unwrap();
        }
    });
}

#[test]
fn lock_of_dead_holder_is_free_after_its_lease_and_not_before() {
    let server = server();
    let lock = lock(&server, 3);
    run(async {
        let mut holder = contender(&lock, "died").await;
        let mut second = contender(&lock, "died").await;
        token(&mut *holder).await;
        let (_, took) = elapsed(async {
            drop(holder);
            token(&mut *second).await
        })
        .await;
        // It was kept alive at most a third of its time ago.
        assert!(took >= Duration::from_secs(2), "{took:?}");
        assert!(took < Duration::from_secs(10), "{took:?}");
    });
}

#[test]
fn lease_is_kept_alive_while_the_lock_is_held() {
    let server = server();
    let lock = lock(&server, 2);
    run(async {
        let mut holder = contender(&lock, "alive").await;
        let mut second = contender(&lock, "alive").await;
        token(&mut *holder).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(holder.belief(), Belief::Held);
        assert!(!is_got_within(&mut *second, Duration::ZERO).await);
        holder.release().await.unwrap();
    });
}

#[test]
fn lost_lease_is_reported_and_the_next_acquire_has_a_new_one() {
    let server = server();
    let lock = lock(&server, 2);
    run(async {
        let mut holder = contender(&lock, "lost").await;
        token(&mut *holder).await;
        let session = holder.session();
        revoke(server.addr(), &session).await;
        wait_for("loss", async || holder.belief() == Belief::Lost).await;
        let refused = holder.release().await.unwrap_err();
        assert!(matches!(refused, LockFailure::NotHeld(_)), "{refused}");
        token(&mut *holder).await;
        assert_ne!(holder.session(), session);
        assert_eq!(holder.belief(), Belief::Held);
        holder.release().await.unwrap();
    });
}
