//! Faults of contenders on this client: expiry, cuts, lost replies and dropped futures.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
    time::Duration,
};

use minikeeper_recipes::{
    InterProcessMutex, LockError, LockOptions, Loss, Released, Status,
    client::{Standing, ZooKeeper as _},
};
use minikeeper_recipes_zookeeper_client::Adapter;

use crate::{
    kit::{
        PATH, SESSION_TIMEOUT, adapter, adapter_at, cut, expire, join, queue, settle, soon, start,
        until,
    },
    link::{Link, Mode},
};

fn lock(client: &Adapter) -> InterProcessMutex<Adapter> {
    InterProcessMutex::new(client.clone(), PATH).unwrap()
}

#[tokio::test]
async fn h1_expiry_while_holding_is_reported_as_a_loss() {
    let server = start().await;
    let client = adapter(&server).await;
    let guard = soon(lock(&client).acquire()).await.unwrap();
    let (loss, ()) = tokio::join!(soon(guard.lost()), async {
        settle().await;
        expire(&server, &client);
    });
    // The server sends the deletion of the znode before it closes the connection.
    assert!(
        matches!(loss, Loss::NodeDeleted | Loss::SessionOver),
        "{loss:?}"
    );
    assert_eq!(guard.status(), Status::Lost(loss));
    assert_eq!(guard.deadline(), None);
    until(
        "there is a new session",
        || matches!(client.standing(), Standing::Connected { epoch, .. } if epoch > guard.epoch()),
    )
    .await;
    assert_eq!(guard.status(), Status::Lost(loss), "final");
    assert_eq!(guard.release().await.unwrap(), Released::AlreadyGone);
}

#[tokio::test]
async fn client_that_is_not_renewed_fails_with_its_session() {
    let server = start().await;
    let client = Adapter::new(join(&server.connect_string(), SESSION_TIMEOUT).await);
    let other = adapter(&server).await;
    let held = soon(lock(&other).acquire()).await.unwrap();
    let waiting = tokio::spawn({
        let lock = lock(&client);
        async move { lock.acquire().await }
    });
    until("it waits", || queue(&server).len() == 2).await;
    expire(&server, &client);
    let error = soon(waiting).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Client(_)), "{error}");
    let error = soon(lock(&client).acquire()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the client is closed"), "{text}");
    assert!(matches!(client.standing(), Standing::Lost { .. }));
    assert_eq!(client.session(), None);
    assert_eq!(held.release().await.unwrap(), Released::Done);
    assert!(queue(&server).is_empty());
}

#[tokio::test]
async fn holder_whose_session_is_not_renewed_notices_the_loss() {
    let server = start().await;
    let client = Adapter::new(join(&server.connect_string(), SESSION_TIMEOUT).await);
    let guard = soon(lock(&client).acquire()).await.unwrap();
    expire(&server, &client);
    soon(guard.lost()).await;
    assert!(matches!(guard.status(), Status::Lost(_)));
    soon(async { while guard.run(settle()).await.is_ok() {} }).await;
}

#[tokio::test]
async fn h5_waiter_whose_session_expires_queues_again_in_a_new_session() {
    for options in [LockOptions::default(), LockOptions::curator_exact()] {
        let server = start().await;
        let (holder, waiter) = (adapter(&server).await, adapter(&server).await);
        let held = soon(lock(&holder).acquire()).await.unwrap();
        let waiting = tokio::spawn({
            let lock = InterProcessMutex::with_options(waiter.clone(), PATH, options).unwrap();
            async move { lock.acquire().await }
        });
        until("it waits", || queue(&server).len() == 2).await;
        let before = queue(&server);
        expire(&server, &waiter);
        until("it queues again", || {
            queue(&server).len() == 2 && queue(&server) != before
        })
        .await;
        settle().await;
        assert!(!waiting.is_finished());
        held.release().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert_eq!(guard.status(), Status::Held);
        assert_eq!(queue(&server).len(), 1);
    }
}

#[tokio::test]
async fn h42_cut_while_waiting_keeps_the_place() {
    for options in [LockOptions::default(), LockOptions::curator_exact()] {
        let server = start().await;
        let (holder, waiter) = (adapter(&server).await, adapter(&server).await);
        let held = soon(lock(&holder).acquire()).await.unwrap();
        let waiting = tokio::spawn({
            let lock = InterProcessMutex::with_options(waiter.clone(), PATH, options).unwrap();
            async move { lock.acquire().await }
        });
        until("it waits", || queue(&server).len() == 2).await;
        let before = queue(&server);
        for _ in 0..3 {
            let connections = waiter.connections();
            cut(&server, &waiter);
            until("it is back", || {
                waiter.connections() > connections
                    && matches!(waiter.standing(), Standing::Connected { .. })
            })
            .await;
            assert_eq!(queue(&server), before);
        }
        // The lock is released while the connection is down, so the event is lost.
        cut(&server, &waiter);
        held.release().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(before.contains(&guard.path()[PATH.len() + 1..].to_owned()));
        assert_eq!(guard.status(), Status::Held);
    }
}

/// From the Nth write on, the link loses everything and is cut: each step loses its reply or its
/// request once. The lock is still acquired, once, and nothing is left behind.
async fn lose_at(step: usize, mode: Mode, options: LockOptions) {
    let server = start().await;
    let other = adapter(&server).await;
    let held = soon(lock(&other).acquire()).await.unwrap();
    let link = Link::to(&server);
    let address = link.listen().await.unwrap();
    let victim = adapter_at(&address, SESSION_TIMEOUT).await;
    until("it is connected", || {
        matches!(victim.standing(), Standing::Connected { .. })
    })
    .await;
    let begun = link.writes.load(Ordering::Relaxed);
    let saboteur = tokio::spawn({
        let link = link.clone();
        async move {
            if step > 0 {
                until("the step", || {
                    link.writes.load(Ordering::Relaxed) - begun >= step
                })
                .await;
            }
            link.set(mode);
            settle().await;
            link.cut();
        }
    });
    let waiting = tokio::spawn({
        let lock = InterProcessMutex::with_options(victim.clone(), PATH, options).unwrap();
        async move { lock.acquire().await }
    });
    settle().await;
    settle().await;
    saboteur.abort();
    // Cut the link even if that step was not reached.
    link.cut();
    until("it waits", || queue(&server).len() == 2).await;
    settle().await;
    assert_eq!(queue(&server).len(), 2, "one znode each");
    assert!(!waiting.is_finished());
    drop(held);
    let guard = soon(waiting).await.unwrap().unwrap();
    until("the other's znode is deleted", || queue(&server).len() == 1).await;
    assert_eq!(queue(&server), [&guard.path()[PATH.len() + 1..]]);
    soon(guard.release()).await.unwrap();
    assert!(queue(&server).is_empty());
}

#[tokio::test]
async fn h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue() {
    for options in [LockOptions::default(), LockOptions::curator_exact()] {
        for mode in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
            for step in 0..4 {
                lose_at(step, mode, options.clone()).await;
            }
        }
    }
}

#[tokio::test]
async fn h21_dropped_acquire_deletes_its_znode() {
    // The reply to the create comes after the caller has stopped waiting, or never.
    let server = start().await;
    let link = Link::to(&server);
    let address = link.listen().await.unwrap();
    let client = adapter_at(&address, SESSION_TIMEOUT).await;
    drop(soon(lock(&client).acquire()).await.unwrap());
    until("it is free", || queue(&server).is_empty()).await;
    for mode in [Mode::Pass, Mode::SwallowReplies] {
        link.delay_replies(Duration::from_millis(100));
        link.set(mode);
        let acquire = lock(&client);
        let acquire = acquire.acquire();
        let limit = tokio::time::timeout(Duration::from_millis(50), acquire).await;
        assert!(limit.is_err(), "there is no reply");
        assert_eq!(queue(&server).len(), 1, "it was created");
        link.delay_replies(Duration::ZERO);
        if mode != Mode::Pass {
            link.cut();
        }
        until("its znode is deleted", || queue(&server).is_empty()).await;
    }
}

#[tokio::test]
async fn h11_dropped_guard_without_a_connection_frees_its_lock() {
    let server = start().await;
    let link = Link::to(&server);
    let address = link.listen().await.unwrap();
    let client = adapter_at(&address, SESSION_TIMEOUT).await;
    let guard = soon(lock(&client).acquire()).await.unwrap();
    // The deletion and its first retry are lost.
    link.set(Mode::SwallowRequests);
    drop(guard);
    settle().await;
    link.set(Mode::Cut);
    settle().await;
    assert_eq!(queue(&server).len(), 1);
    link.set(Mode::Pass);
    until("it is free", || queue(&server).is_empty()).await;
}

#[tokio::test]
async fn dropped_release_continues() {
    let server = start().await;
    let link = Link::to(&server);
    let address = link.listen().await.unwrap();
    let client = adapter_at(&address, SESSION_TIMEOUT).await;
    let guard = soon(lock(&client).acquire()).await.unwrap();
    link.set(Mode::SwallowRequests);
    let release = tokio::time::timeout(Duration::from_millis(20), guard.release());
    assert!(release.await.is_err(), "there is no reply");
    link.cut();
    until("it is free", || queue(&server).is_empty()).await;
}

/// Polls a future N times.
struct Polls<F> {
    future: F,
    left: usize,
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

#[tokio::test]
async fn h21_dropping_at_every_await_point_leaves_nothing() {
    for options in [LockOptions::default(), LockOptions::curator_exact()] {
        for is_contended in [false, true] {
            let server = start().await;
            let (other, dropper) = (adapter(&server).await, adapter(&server).await);
            for left in 0..12 {
                let held = match is_contended {
                    true => Some(soon(lock(&other).acquire()).await.unwrap()),
                    false => None,
                };
                let lock = InterProcessMutex::with_options(dropper.clone(), PATH, options.clone())
                    .unwrap();
                let polls = Polls {
                    future: Box::pin(lock.acquire()),
                    left,
                };
                let limited = tokio::time::timeout(Duration::from_millis(30), polls).await;
                if let Ok(Some(guard)) = limited {
                    drop(guard.unwrap());
                }
                let others = usize::from(is_contended);
                until("its znode is deleted", || queue(&server).len() == others).await;
                drop(held);
                until("no contender is left", || queue(&server).is_empty()).await;
            }
            until("no watch is left", || !server.dump().contains("watch")).await;
            server.check().unwrap();
        }
    }
}
