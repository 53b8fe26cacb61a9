//! The hand-written locks (`docs/curator-recipes.md` sections 13.1 to 13.3).

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper_client::Client;
use minikeeper_recipes::{
    Guard, LockError,
    simple::{HerdLock, PollingLock, SequentialLock},
};
use tokio::time::{sleep, timeout};

use crate::{
    cancelling::Polls,
    kit::{PATH, client, queue, soon, spawn, start, until},
};

type Acquire = Pin<Box<dyn Future<Output = Result<Guard<Client>, LockError>> + Send>>;

/// Acquires one of the locks within a time limit.
fn acquire(kind: usize, client: &Client, within: Duration) -> Acquire {
    let client = client.clone();
    Box::pin(async move {
        match kind {
            0 => {
                let interval = Duration::from_millis(100);
                let lock = PollingLock::new(client, PATH, interval).unwrap();
                lock.acquire().within(within).await
            }
            1 => {
                HerdLock::new(client, PATH)
                    .unwrap()
                    .acquire()
                    .within(within)
                    .await
            }
            _ => {
                SequentialLock::new(client, PATH)
                    .unwrap()
                    .acquire()
                    .within(within)
                    .await
            }
        }
    })
}

const LONG: Duration = Duration::from_secs(500);

#[tokio::test(start_paused = true)]
async fn lock_has_one_holder_at_a_time() {
    for kind in 0..3 {
        let server = start().await;
        let inside = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for seed in 1..=8 {
            let (client, _) = client(&server, seed).await;
            let inside = Arc::clone(&inside);
            tasks.push(spawn(async move {
                for _ in 0..5 {
                    let guard = acquire(kind, &client, LONG).await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    sleep(Duration::from_millis(3)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            }));
        }
        for task in tasks {
            soon(task).await.unwrap();
        }
        until("no watch is left", || !server.dump().contains("watch")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lock_times_out_and_is_acquired_when_the_holders_session_ends() {
    for kind in 0..3 {
        let server = start().await;
        let (holder, _) = client(&server, 1).await;
        let (other, link) = client(&server, 2).await;
        let guard = acquire(kind, &holder, LONG).await.unwrap();
        for within in [Duration::ZERO, Duration::from_secs(1)] {
            let error = acquire(kind, &other, within).await.unwrap_err();
            assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        }
        let waiting = spawn(acquire(kind, &other, LONG));
        sleep(Duration::from_secs(1)).await;
        link.cut();
        sleep(Duration::from_secs(1)).await;
        server.expire(holder.session_id().unwrap()).unwrap();
        let next = soon(waiting).await.unwrap().unwrap();
        assert!(next.token() > guard.token());
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_await_point_leaves_nothing() {
    for kind in 0..3 {
        for is_contended in [false, true] {
            for polls in 0..8 {
                let server = start().await;
                let (holder, _) = client(&server, 1).await;
                let (dropper, _) = client(&server, 2).await;
                let held = if is_contended {
                    Some(acquire(kind, &holder, LONG).await.unwrap())
                } else {
                    None
                };
                {
                    let future = pin!(acquire(kind, &dropper, LONG));
                    let limited = Polls {
                        future,
                        left: polls,
                    };
                    drop(timeout(Duration::from_secs(1), limited).await);
                }
                drop(held);
                until("nothing is left", || {
                    queue(&server).is_empty()
                        && server
                            .get(PATH)
                            .is_none_or(|(_, stat)| stat.ephemeral_owner.0 == 0)
                })
                .await;
                until("no watch is left", || !server.dump().contains("watch")).await;
                drop(soon(acquire(kind, &holder, LONG)).await.unwrap());
            }
        }
    }
}
