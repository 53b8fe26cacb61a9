//! Futures dropped at every await point, and replies lost at every step, leave nothing behind.
//!
//! Source: `docs/curator-recipes.md` sections 4.6 and 15.9; hazards H20, H21 and H24.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use minikeeper_recipes::LockOptions;
use tokio::time::sleep;

use crate::{
    kit::{
        SESSION_TIMEOUT, both_ways, contender, contender_with, queue, soon, spawn, start, until,
    },
    link::Mode,
};

/// Polls a future N times.
pub(crate) struct Polls<F> {
    pub(crate) future: F,
    pub(crate) left: usize,
}

impl<F> Polls<F> {
    pub(crate) const fn new(future: F, left: usize) -> Self {
        Self { future, left }
    }
}

impl<F: Future + Unpin> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match Pin::new(&mut self.future).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Drops an acquire after N polls; false if it was ready before.
async fn drop_after(polls: usize, is_contended: bool, options: &LockOptions) -> bool {
    let server = start().await;
    let other = contender(&server, 1).await;
    let held = if is_contended {
        Some(other.lock.acquire().await.unwrap())
    } else {
        None
    };
    let dropper = contender_with(&server, 2, options.clone()).await;
    let limited = {
        let acquire = pin!(dropper.lock.acquire());
        let limited = Polls::new(acquire, polls);
        // A contended acquire waits without an end at its last await point.
        tokio::time::timeout(Duration::from_secs(1), limited).await
    };
    let is_dropped = match limited {
        Ok(None) => true,
        Err(_) => false,
        Ok(Some(guard)) => {
            drop(guard.unwrap());
            false
        }
    };
    let others = usize::from(is_contended);
    until("its znode is deleted", || queue(&server).len() == others).await;
    until("nothing is pending", || {
        dropper.client.clean_ups_pending() == 0
    })
    .await;
    // Both the next contender and the one that dropped can get the lock.
    drop(held);
    drop(soon(other.lock.acquire()).await.unwrap());
    drop(soon(dropper.lock.acquire()).await.unwrap());
    until("no watch is left", || !server.dump().contains("watch")).await;
    server.check().unwrap();
    is_dropped
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_await_point_leaves_nothing() {
    for options in both_ways() {
        for is_contended in [false, true] {
            let mut polls = 0;
            while drop_after(polls, is_contended, &options).await {
                polls += 1;
                assert!(polls < 100, "the loop does not end");
            }
            assert!(polls >= 2, "{polls} await points");
        }
    }
}

/// From the Nth write on, the link loses everything for a while: each step loses its reply or its
/// request once. The lock is still acquired, once, and nothing is left behind.
async fn lose_at(step: usize, mode: Mode, options: &LockOptions) {
    let server = start().await;
    let other = contender(&server, 1).await;
    let held = other.lock.acquire().await.unwrap();
    let victim = contender_with(&server, 2, options.clone()).await;
    let writes = std::sync::Arc::clone(&victim.link.writes);
    let begun = writes.load(std::sync::atomic::Ordering::Relaxed);
    let link = victim.link.clone();
    let saboteur = spawn(async move {
        until("the step", || {
            writes.load(std::sync::atomic::Ordering::Relaxed) - begun >= step
        })
        .await;
        link.set(mode);
        sleep(Duration::from_millis(200)).await;
        link.cut();
    });
    let waiting = spawn({
        let lock = victim.lock.clone();
        async move { lock.acquire().await }
    });
    sleep(Duration::from_secs(1)).await;
    saboteur.abort();
    victim.link.set(Mode::Pass);
    until("it waits", || queue(&server).len() == 2).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(queue(&server).len(), 2, "one znode each");
    assert!(!waiting.is_finished());
    drop(held);
    let guard = soon(waiting).await.unwrap().unwrap();
    assert_eq!(queue(&server), [&guard.path()["/locks/a/".len()..]]);
    guard.release().await.unwrap();
    until("nothing is pending", || {
        victim.client.clean_ups_pending() == 0
    })
    .await;
    assert!(queue(&server).is_empty());
}

#[tokio::test(start_paused = true)]
async fn h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue() {
    for options in both_ways() {
        for mode in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
            for step in 0..6 {
                lose_at(step, mode, &options).await;
            }
        }
    }
}

/// Expires the session at each step.
#[tokio::test(start_paused = true)]
async fn h5_expiring_at_every_step_grants_nothing_of_the_old_session() {
    for options in both_ways() {
        for delay_ms in 0..12 {
            let server = start().await;
            let other = contender(&server, 1).await;
            let held = other.lock.acquire().await.unwrap();
            let victim = contender_with(&server, 2, options.clone()).await;
            // Each reply takes a millisecond, so that each delay hits another step.
            victim.link.delay_replies(Duration::from_millis(1));
            let session = victim.client.session_id().unwrap();
            let waiting = spawn({
                let lock = victim.lock.clone();
                async move { lock.acquire().await }
            });
            sleep(Duration::from_millis(delay_ms)).await;
            server.expire(session).unwrap();
            drop(held);
            let guard = soon(waiting).await.unwrap().unwrap();
            let epoch = victim.client.epoch();
            assert_eq!(guard.epoch(), epoch, "after {delay_ms} ms");
            assert_eq!(queue(&server).len(), 1);
            assert!(
                tokio::time::timeout(3 * SESSION_TIMEOUT, guard.lost())
                    .await
                    .is_err()
            );
        }
    }
}
