//! Passing a lock on within a process.
//!
//! Source: `docs/curator-recipes.md` section 14.5, S9.

use std::{sync::Arc, time::Duration};

use minikeeper_recipes::{LocalHandOver, LockOptions, Released};
use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::sleep};

use crate::kit::{Contender, contender, contender_with, queue, soon, spawn, start, until};

fn options(times_max: u32, time_max: Duration) -> LockOptions {
    let mut options = LockOptions::default();
    options.local_hand_over = Some(LocalHandOver {
        times_max,
        time_max,
    });
    options
}

type Log = Arc<Mutex<Vec<(&'static str, i64, u32)>>>;

/// Spawns a task that acquires the lock, logs that, holds it for 10 ms, and releases it.
fn visit(who: &'static str, contender: &Contender, log: &Log) -> JoinHandle<Released> {
    let (lock, log) = (contender.lock.clone(), Arc::clone(log));
    spawn(async move {
        let guard = lock.acquire().await.unwrap();
        let token = guard.token();
        log.lock().push((who, token.czxid, token.pass));
        sleep(Duration::from_millis(10)).await;
        guard.release().await.unwrap()
    })
}

/// Runs four tasks of one process and one of another. Returns the order of grants with their
/// passes, and the results of the releases.
async fn order(options: LockOptions) -> (Vec<(&'static str, u32)>, Vec<Released>) {
    let server = start().await;
    let here = contender_with(&server, 1, options).await;
    let there = contender(&server, 2).await;
    let log = Log::default();
    let mut tasks = vec![visit("a", &here, &log)];
    until("a has it", || !log.lock().is_empty()).await;
    for (who, contender) in [("x", &there), ("b", &here), ("c", &here), ("d", &here)] {
        tasks.push(visit(who, contender, &log));
        sleep(Duration::from_micros(100)).await;
    }
    let mut released = Vec::new();
    for task in tasks {
        released.push(soon(task).await.unwrap());
    }
    assert!(queue(&server).is_empty());
    let log = log.lock();
    assert!(
        log.is_sorted_by_key(|(_, czxid, pass)| (*czxid, *pass)),
        "{log:?}"
    );
    (
        log.iter().map(|(who, _, pass)| (*who, *pass)).collect(),
        released,
    )
}

#[tokio::test(start_paused = true)]
async fn s9_lock_is_passed_on_at_most_times_max_times() {
    let (order, released) = order(options(2, Duration::from_secs(1))).await;
    assert_eq!(order, [("a", 0), ("b", 1), ("c", 2), ("x", 0), ("d", 0)]);
    use Released::{Done, PassedOn};
    assert_eq!(released, [PassedOn, Done, PassedOn, Done, Done]);
}

#[tokio::test(start_paused = true)]
async fn s9_lock_is_passed_on_only_within_time_max() {
    let (order, _) = order(options(100, Duration::from_millis(15))).await;
    assert_eq!(order, [("a", 0), ("b", 1), ("x", 0), ("c", 0), ("d", 1)]);
}

#[tokio::test(start_paused = true)]
async fn s9_lock_is_not_passed_on_by_default() {
    let (order, released) = order(LockOptions::default()).await;
    let expected = ["a", "x", "b", "c", "d"].map(|who| (who, 0));
    assert_eq!(order, expected);
    assert_eq!(released, [Released::Done; 5]);
}

/// When the next task leaves, the lock goes to the task after it, or to another process.
#[tokio::test(start_paused = true)]
async fn s9_dropping_a_waiting_task_leaves_nothing() {
    for leaving in [1, 2] {
        for is_released_first in [false, true] {
            let server = start().await;
            let here = contender_with(&server, 1, options(9, Duration::from_secs(9))).await;
            let there = contender(&server, 2).await;
            let held = here.lock.acquire().await.unwrap();
            let waiting: Vec<_> = (0..2)
                .map(|_| {
                    let lock = here.lock.clone();
                    spawn(async move { lock.acquire().await.unwrap() })
                })
                .collect();
            sleep(Duration::from_millis(1)).await;
            if is_released_first {
                drop(held);
                waiting[..leaving].iter().for_each(JoinHandle::abort);
            } else {
                waiting[..leaving].iter().for_each(JoinHandle::abort);
                drop(held);
            }
            let mut rest = waiting.into_iter().skip(leaving);
            if let Some(rest) = rest.next() {
                assert_eq!(soon(rest).await.unwrap().token().pass, 1);
            }
            let other = soon(there.lock.acquire()).await.unwrap();
            assert_eq!(queue(&server).len(), 1);
            other.release().await.unwrap();
            assert!(queue(&server).is_empty());
        }
    }
}

/// A lost lock is not passed on.
#[tokio::test(start_paused = true)]
async fn s9_lost_lock_is_queued_for_again() {
    let server = start().await;
    let here = contender_with(&server, 1, options(9, Duration::from_secs(9))).await;
    let held = here.lock.acquire().await.unwrap();
    let lock = here.lock.clone();
    let waiting = spawn(async move { lock.acquire().await.unwrap() });
    sleep(Duration::from_millis(1)).await;
    server.expire(here.client.session_id().unwrap()).unwrap();
    let there = contender(&server, 2).await;
    let other = soon(there.lock.acquire()).await.unwrap();
    assert!(held.token() < other.token());
    drop(held);
    sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    drop(other);
    let guard = soon(waiting).await.unwrap();
    assert_eq!(guard.token().pass, 0);
    assert_eq!(guard.epoch(), here.client.epoch());
}

/// A deadline also limits the wait for tasks of the same process.
#[tokio::test(start_paused = true)]
async fn s9_try_does_not_wait_for_tasks_of_the_same_process() {
    let server = start().await;
    let here = contender_with(&server, 1, options(9, Duration::from_secs(9))).await;
    let held = here.lock.acquire().await.unwrap();
    assert!(here.lock.try_acquire().await.unwrap().is_none());
    let late = here.lock.acquire().within(Duration::from_secs(1)).await;
    assert!(late.is_err());
    held.release().await.unwrap();
    let again = here.lock.try_acquire().await.unwrap();
    assert_eq!(again.map(|guard| guard.token().pass), Some(0));
}
