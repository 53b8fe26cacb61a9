//! The catalogue's tests of the semaphore (`docs/curator-recipes.md` section 15.5), with the
//! savings and with Curator's requests, and its shared maximum.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::Zxid;
use minikeeper_recipes::{
    InterProcessSemaphoreV2, Lease, LockError, LockOptions, MaxLeases, Released, SharedCount,
    Status,
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    every_lock,
    kit::{both_ways, client, soon, spawn, start, until},
    link::Mode,
};

pub(crate) const PATH: &str = "/semaphores/a";

const WITHIN: Duration = Duration::from_secs(5);

/// The directories of leases and of contenders for the inner lock.
pub(crate) const DIRECTORIES: &[&str] = &["/semaphores/a/leases", "/semaphores/a/locks"];

pub(crate) type Contender = every_lock::Contender<InterProcessSemaphoreV2>;

impl Contender {
    /// Acquires one lease in a task.
    pub(crate) fn waiting_for_one(&self) -> JoinHandle<Result<Lease, LockError>> {
        let lock = self.lock.clone();
        spawn(async move { lock.acquire().await })
    }
}

pub(crate) async fn contender(
    server: &Arc<Server>,
    seed: u64,
    max: impl Into<MaxLeases>,
    options: LockOptions,
) -> Contender {
    let (client, link) = client(server, seed).await;
    let lock = InterProcessSemaphoreV2::with_options(client.clone(), PATH, max, options).unwrap();
    Contender { client, link, lock }
}

pub(crate) fn leases(server: &Server) -> Vec<String> {
    server.children(DIRECTORIES[0]).unwrap_or_default()
}

pub(crate) fn locks(server: &Server) -> Vec<String> {
    server.children(DIRECTORIES[1]).unwrap_or_default()
}

/// Counts the leases that are held, and their largest number.
#[derive(Default)]
struct Inside {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Inside {
    fn enter(&self, count: usize) {
        let now = self.now.fetch_add(count, Ordering::SeqCst) + count;
        self.peak.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self, count: usize) {
        self.now.fetch_sub(count, Ordering::SeqCst);
    }

    fn both(&self) -> (usize, usize) {
        (
            self.now.load(Ordering::SeqCst),
            self.peak.load(Ordering::SeqCst),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn test_simple() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 1, options).await;
        let lease = one.lock.acquire().within(WITHIN).await.unwrap();
        assert!(lease.path().starts_with("/semaphores/a/leases/_c_"));
        assert!(lease.name()[40..].starts_with("lease-00000"));
        assert_eq!(lease.status(), Status::Held);
        let error = one.lock.acquire().within(WITHIN).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "lock \"/semaphores/a\": not free within 5000 ms"
        );
        assert_eq!(lease.release().await.unwrap(), Released::Done);
        until("nothing is left", || {
            leases(&server).is_empty() && locks(&server).is_empty()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_simple2() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 3, options).await;
        let mut got = Vec::new();
        for _ in 0..3 {
            got.push(one.lock.acquire().within(WITHIN).await.unwrap());
        }
        // Several leases are valid at once, each with its own czxid.
        let ids: Vec<Zxid> = got.iter().map(|lease| lease.czxid()).collect();
        assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");
        assert!(one.lock.acquire().within(WITHIN).await.is_err());
        assert_eq!(one.lock.available().await.unwrap(), 0);
        drop(got.pop());
        got.push(one.lock.acquire().within(WITHIN).await.unwrap());
        assert!(one.lock.try_acquire().await.unwrap().is_none());
        drop(got);
        assert!(one.lock.acquire_many(3).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn test_acquire_after_lost_server() {
    // Ten clients share one lease; connections are lost repeatedly, at different steps of the
    // clients.
    for options in both_ways() {
        let server = start().await;
        let inside = Arc::new(Inside::default());
        let (mut tasks, mut links) = (Vec::new(), Vec::new());
        for seed in 0..10 {
            let one = contender(&server, seed, 1, options.clone()).await;
            links.push(one.link.clone());
            let inside = Arc::clone(&inside);
            tasks.push(spawn(async move {
                for _ in 0..3 {
                    let lease = one.lock.acquire().await.unwrap();
                    inside.enter(1);
                    sleep(Duration::from_millis(7)).await;
                    inside.leave(1);
                    drop(lease);
                }
                one.client.close().await;
            }));
        }
        for round in 0..20 {
            sleep(Duration::from_millis(5)).await;
            links[round % links.len()].cut();
            links[(round * 7 + 3) % links.len()].cut();
        }
        for task in tasks {
            soon(task).await.unwrap();
        }
        assert_eq!(inside.both(), (0, 1));
        until("nothing is left", || leases(&server).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_threaded_lease_increase() {
    for options in both_ways() {
        let server = start().await;
        let (counting, _) = client(&server, 9).await;
        let count = SharedCount::start(counting, "/max", 1).await.unwrap();
        let one = contender(&server, 1, count.clone(), options).await;
        let first = one.lock.acquire().await.unwrap();
        let waiting = spawn({
            let semaphore = one.lock.clone();
            async move { semaphore.acquire().within(Duration::from_secs(3600)).await }
        });
        until("it waits", || leases(&server).len() == 2).await;
        sleep(Duration::from_secs(10)).await;
        assert!(!waiting.is_finished());
        count.set(2).await.unwrap();
        let second = soon(waiting).await.unwrap().unwrap();
        drop((first, second));
    }
}

#[tokio::test(start_paused = true)]
async fn lowered_maximum_takes_no_lease_away() {
    for options in both_ways() {
        let server = start().await;
        let (counting, _) = client(&server, 9).await;
        let count = SharedCount::start(counting, "/max", 3).await.unwrap();
        let one = contender(&server, 1, count.clone(), options).await;
        let mut held = one.lock.acquire_many(3).await.unwrap();
        count.set(1).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(held.iter().all(|lease| lease.status() == Status::Held));
        // The number of leases must first fall below the new maximum.
        for _ in 0..2 {
            assert!(one.lock.try_acquire().await.unwrap().is_none());
            drop(held.pop());
        }
        assert!(one.lock.try_acquire().await.unwrap().is_none());
        drop(held.pop());
        let last = one.lock.acquire().await.unwrap();
        // With a maximum of zero or less, no contender gets a lease.
        drop(last);
        for max in [0, -5] {
            count.set(max).await.unwrap();
            assert!(one.lock.acquire().within(WITHIN).await.is_err());
        }
        let waiting = spawn({
            let semaphore = one.lock.clone();
            async move { semaphore.acquire_many(4).await }
        });
        sleep(Duration::from_secs(1)).await;
        count.set(3).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        count.set(4).await.unwrap();
        assert_eq!(soon(waiting).await.unwrap().unwrap().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn h17_semaphores_of_a_count_leave_no_watch() {
    let server = start().await;
    let (counting, _) = client(&server, 9).await;
    let count = SharedCount::start(counting, "/max", 1).await.unwrap();
    let one = contender(&server, 1, count.clone(), LockOptions::default()).await;
    let held = one.lock.acquire().await.unwrap();
    for _ in 0..20 {
        let (client, count) = (one.client.clone(), count.clone());
        let another = InterProcessSemaphoreV2::new(client, PATH, count).unwrap();
        let waiting = another.acquire().within(Duration::from_millis(20));
        assert!(waiting.await.is_err());
    }
    drop((held, one, count));
    until("no watch is left", || !server.dump().contains("watch")).await;
}

#[tokio::test(start_paused = true)]
async fn test_client_close() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 1, options.clone()).await;
        let other = contender(&server, 2, 1, options).await;
        let lease = one.lock.acquire().await.unwrap();
        assert!(other.lock.try_acquire().await.unwrap().is_none());
        one.client.close().await;
        drop(soon(other.lock.acquire()).await.unwrap());
        assert!(matches!(lease.status(), Status::Lost(_)));
        // Hazard H46.
        let error = one.lock.acquire().await.unwrap_err().to_string();
        assert!(error.contains("the client is closed"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn test_max_per_session() {
    for options in both_ways() {
        let server = start().await;
        let inside = Arc::new(Inside::default());
        let together = options.leases_together;
        let mut tasks = Vec::new();
        for seed in 0..10_u32 {
            // With Curator's requests, two contenders that each want several leases can deadlock
            // (hazard H16), so they give up after a while.
            let one = contender(&server, seed.into(), 5, options.clone()).await;
            let inside = Arc::clone(&inside);
            tasks.push(spawn(async move {
                for round in 0..30_u32 {
                    let wanted = 1 + (seed * 13 + round * 7) % 5;
                    let got = one.lock.acquire_many(wanted).within(WITHIN).await;
                    if !together && got.is_err() {
                        continue;
                    }
                    let got = got.unwrap();
                    assert_eq!(got.len(), wanted as usize);
                    inside.enter(got.len());
                    sleep(Duration::from_millis(u64::from(round % 4))).await;
                    inside.leave(got.len());
                }
            }));
        }
        for task in tasks {
            soon(task).await.unwrap();
        }
        let (now, peak) = inside.both();
        assert_eq!(now, 0);
        assert!(peak <= 5 && (!together || peak == 5), "{peak}");
        until("nothing is left", || leases(&server).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_release_1_at_a_time() {
    for options in both_ways() {
        let server = start().await;
        let inside = Arc::new(Inside::default());
        let mut tasks = Vec::new();
        for seed in 0..10 {
            let one = contender(&server, seed, 5, options.clone()).await;
            let inside = Arc::clone(&inside);
            tasks.push(spawn(async move {
                let lease = one.lock.acquire().await.unwrap();
                inside.enter(1);
                sleep(Duration::from_secs(1)).await;
                inside.leave(1);
                lease.release().await.unwrap();
            }));
        }
        for task in tasks {
            soon(task).await.unwrap();
        }
        assert_eq!(inside.both(), (0, 5));
    }
}

#[tokio::test(start_paused = true)]
async fn test_release_in_chunks() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 11, options).await;
        let inside = Arc::new(Inside::default());
        let (give, mut given) = tokio::sync::mpsc::channel(100);
        for _ in 0..100 {
            let (semaphore, give) = (one.lock.clone(), give.clone());
            let inside = Arc::clone(&inside);
            spawn(async move {
                let lease = semaphore.acquire().await.unwrap();
                inside.enter(1);
                give.send(lease).await.unwrap();
            });
        }
        let mut returned = 0;
        let mut chunk = Vec::new();
        while returned < 100 {
            // Another task releases them, in groups.
            sleep(Duration::from_millis(10)).await;
            while let Ok(lease) = timeout(Duration::from_millis(100), given.recv()).await {
                chunk.push(lease.unwrap());
                if chunk.len() > returned % 7 {
                    break;
                }
            }
            inside.leave(chunk.len());
            returned += chunk.len();
            chunk.clear();
        }
        assert_eq!(inside.both(), (0, 11));
        until("nothing is left", || leases(&server).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_threads() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 1, options).await;
        let inside = Arc::new(Inside::default());
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let (semaphore, inside) = (one.lock.clone(), Arc::clone(&inside));
                spawn(async move {
                    let within = Duration::from_secs(10);
                    let lease = semaphore.acquire().within(within).await.unwrap();
                    inside.enter(1);
                    sleep(Duration::from_millis(100)).await;
                    inside.leave(1);
                    drop(lease);
                })
            })
            .collect();
        for task in tasks {
            soon(task).await.unwrap();
        }
        assert_eq!(inside.both(), (0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn test_get_participant_nodes() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 10, options.with_data("me")).await;
        assert!(one.lock.participants().await.unwrap().is_empty());
        let got = one.lock.acquire_many(6).await.unwrap();
        let paths: Vec<_> = got.iter().map(|lease| lease.path().to_owned()).collect();
        assert_eq!(one.lock.participants().await.unwrap(), paths);
        assert_eq!(one.lock.available().await.unwrap(), 4);
        assert_eq!(&got[0].data().await.unwrap()[..], b"me");
    }
}

#[tokio::test(start_paused = true)]
async fn several_leases_take_one_hold_of_the_inner_lock() {
    let server = start().await;
    let one = contender(&server, 1, 5, LockOptions::default()).await;
    drop(one.lock.acquire().await.unwrap());
    until("nothing is left", || leases(&server).is_empty()).await;
    let writes = || one.link.writes.load(Ordering::Relaxed);
    let before = writes();
    let held = one.lock.acquire_many(5).await.unwrap();
    // One write is for the inner lock, one for the leases.
    assert_eq!(writes() - before, 2);
    let created = server.get("/semaphores/a/locks");
    assert!(created.is_none_or(|(_, stat)| stat.cversion <= 3));
    assert_eq!(held.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn h16_two_contenders_that_want_all_leases_do_not_deadlock() {
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 0..2 {
        let one = contender(&server, seed, 3, LockOptions::default()).await;
        tasks.push(spawn(async move {
            for _ in 0..20 {
                let all = one.lock.acquire_many(3).await.unwrap();
                assert_eq!(all.len(), 3);
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn impossible_number_of_leases_is_an_error() {
    let server = start().await;
    let one = contender(&server, 1, 3, LockOptions::default()).await;
    let error = one.lock.acquire_many(4).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "semaphore \"/semaphores/a\": 4 leases wanted, 3 exist"
    );
    let error = one.lock.acquire_many(0).await.unwrap_err();
    assert!(matches!(error, LockError::NothingWanted { .. }), "{error}");
    assert!(server.get("/semaphores").is_none());
    // With Curator's requests, all leases are acquired and released.
    let two = contender(&server, 2, 3, LockOptions::curator_exact()).await;
    let error = two.lock.acquire_many(4).within(WITHIN).await;
    assert!(matches!(error, Err(LockError::TimedOut { .. })));
    assert_eq!(soon(one.lock.acquire_many(3)).await.unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn large_request_ahead_delays_small_ones_behind() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, 3, options).await;
        let held = one.lock.acquire().await.unwrap();
        let spawn = |wanted| {
            let semaphore = one.lock.clone();
            spawn(async move { semaphore.acquire_many(wanted).await.unwrap() })
        };
        let large = spawn(3);
        until("it waits", || leases(&server).len() > 3).await;
        let small = spawn(1);
        sleep(Duration::from_secs(1)).await;
        assert!(!small.is_finished());
        drop(held);
        let large = soon(large).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(!small.is_finished());
        drop(large);
        soon(small).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn peek_writes_nothing() {
    let server = start().await;
    let one = contender(&server, 1, 1, LockOptions::default()).await;
    let _held = one.lock.acquire().await.unwrap();
    let mut options = LockOptions::default();
    options.peek = true;
    let other = contender(&server, 2, 1, options).await;
    let before = server.get("/semaphores/a/leases").unwrap().1.pzxid;
    assert!(other.lock.try_acquire().await.unwrap().is_none());
    assert_eq!(server.get("/semaphores/a/leases").unwrap().1.pzxid, before);
}

#[tokio::test(start_paused = true)]
async fn h27_deadline_is_kept_without_a_connection() {
    let server = start().await;
    let one = contender(&server, 1, 1, LockOptions::default()).await;
    one.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let begun = crate::clock::now();
    let error = one.lock.acquire().within(WITHIN).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    assert_eq!(begun.elapsed().as_secs(), WITHIN.as_secs());
}
