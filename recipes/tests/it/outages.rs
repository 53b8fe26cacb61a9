//! What recipes do while the connection is lost, and with handles that have a limit.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use minikeeper::{Fault, OpCode};
use minikeeper_client::{Cause, ConnectionState, CreateMode, Error, ErrorCode};
use minikeeper_recipes::{
    CuratorCache, InterProcessMutex, LeaderLatch, LeaderSelector, PersistentNode,
    PersistentTtlNode, SelectorOptions, Status,
};
use tokio::time::{advance, sleep, timeout};

use crate::{
    kit::{PATH, SESSION_TIMEOUT, client, queue, soon, spawn, start, until},
    link::Mode,
};

const TTL: Duration = Duration::from_secs(10);

/// A limit of a handle ended its background tasks in the first outage that was longer.
#[tokio::test(start_paused = true)]
async fn outage_beyond_the_limit_of_a_handle_ends_no_background_task() {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    let limited = client.with_timeout(Duration::from_millis(500));
    let latch = LeaderLatch::start(limited.clone(), "/latch", "").unwrap();
    let mut options = SelectorOptions::default();
    options.is_requeued = true;
    let selector = LeaderSelector::start(limited.clone(), "/selector", "", options, |_| {
        Box::pin(std::future::pending())
    })
    .unwrap();
    let mode = CreateMode::Ephemeral;
    let node = PersistentNode::start(limited.clone(), "/node", b"", mode).unwrap();
    let ttl = PersistentTtlNode::start(limited.clone(), "/ttl", b"", TTL).unwrap();
    let cache = CuratorCache::start(limited.clone(), "/node").unwrap();
    soon(latch.wait()).await.unwrap();
    soon(node.created()).await.unwrap();
    soon(ttl.created()).await.unwrap();
    soon(cache.initialized()).await.unwrap();
    for outage in [1, 10, 100] {
        link.set(Mode::Cut);
        sleep(outage * SESSION_TIMEOUT / 4).await;
        // The calls of the handle have its limit.
        assert!(timeout(SESSION_TIMEOUT, latch.participants()).await.is_ok());
        link.set(Mode::Pass);
        soon(latch.wait()).await.unwrap();
        until("the selector leads", || selector.has_leadership()).await;
        until("the node is there", || {
            node.path().is_some() && server.get("/node").is_some()
        })
        .await;
        until("the TTL node is there", || {
            ttl.is_present() && server.get("/ttl").is_some()
        })
        .await;
        until("it is cached", || cache.get("/node").is_some()).await;
        assert_eq!(cache.end(), None);
    }
}

/// It ended with `NOCHILDRENFOREPHEMERALS`, and stayed away when the other znode was gone.
#[tokio::test(start_paused = true)]
async fn persistent_ttl_node_waits_for_a_foreign_ephemeral_and_leaves_its_data() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let (other, _) = self::client(&server, 2).await;
    other
        .create("/ttl", b"other", CreateMode::Ephemeral)
        .await
        .unwrap();
    let ttl = PersistentTtlNode::start(client, "/ttl", b"mine", TTL).unwrap();
    sleep(3 * TTL).await;
    assert!(!ttl.is_present());
    assert_eq!(
        server.get("/ttl").unwrap().0.as_deref(),
        Some(&b"other"[..])
    );
    other.delete("/ttl", None).await.unwrap();
    soon(ttl.created()).await.unwrap();
    assert_eq!(server.get("/ttl").unwrap().0.as_deref(), Some(&b"mine"[..]));
    // The same once it has created its own.
    for path in ["/ttl/touch", "/ttl"] {
        other.delete(path, None).await.unwrap();
    }
    let _ = other.create("/ttl", b"other", CreateMode::Ephemeral).await;
    sleep(3 * TTL).await;
    let _ = other.delete("/ttl", None).await;
    sleep(TTL).await;
    soon(ttl.created()).await.unwrap();
}

/// The place was dropped, which deletes it, and then deleted: the second reply was missing when the
/// client was closed at once, so that an acknowledged deletion had an unknown outcome.
#[tokio::test(start_paused = true)]
async fn closing_a_latch_sends_one_delete() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    for is_leader in [true, false] {
        let (first, _) = self::client(&server, 2).await;
        let ahead = (!is_leader).then(|| LeaderLatch::start(first, PATH, "first").unwrap());
        if let Some(ahead) = &ahead {
            soon(ahead.wait()).await.unwrap();
        }
        let latch = LeaderLatch::start(client.clone(), PATH, "me").unwrap();
        until("it is in the queue", || latch.own_path().is_some()).await;
        sleep(Duration::from_millis(100)).await;
        let second = Fault::error(ErrorCode::ThrottledOp).on(OpCode::Delete);
        let second = second.of(client.session_id().unwrap()).skip(1).optional();
        let second = server.inject(second).unwrap();
        soon(latch.close()).await.unwrap();
        sleep(SESSION_TIMEOUT).await;
        assert_eq!(second.hits(), 0, "leader: {is_leader}");
        drop((second, ahead));
        until("nothing is left", || queue(&server).is_empty()).await;
    }
}

/// It returned at once with an unknown outcome, although the session lived and the next connection was
/// there soon.
#[tokio::test(start_paused = true)]
async fn closing_a_latch_outlasts_a_lost_reply() {
    for mode in [Mode::SwallowReplies, Mode::SwallowRequests] {
        let server = start().await;
        let (client, link) = client(&server, 1).await;
        let latch = LeaderLatch::start(client.clone(), PATH, "me").unwrap();
        soon(latch.wait()).await.unwrap();
        link.set(mode);
        let closing = spawn(async move { latch.close().await });
        sleep(Duration::from_millis(100)).await;
        link.cut();
        assert_eq!(soon(closing).await.unwrap(), Ok(()), "{mode:?}");
        assert!(queue(&server).is_empty());
    }
}

/// The documentation did not tell the two cases apart.
#[tokio::test(start_paused = true)]
async fn release_without_a_connection_waits_for_the_session_and_with_a_lost_reply_does_not() {
    for is_sent in [false, true] {
        let server = start().await;
        let (client, link) = client(&server, 1).await;
        let lock = InterProcessMutex::new(client.clone(), "/lock").unwrap();
        let guard = soon(lock.acquire().into_future()).await.unwrap();
        if is_sent {
            link.set(Mode::SwallowRequests);
        } else {
            link.set(Mode::Cut);
            until("the loss is noticed", || guard.status() != Status::Held).await;
        }
        let releasing = spawn(async move { guard.release().await });
        sleep(Duration::from_millis(100)).await;
        link.set(Mode::Cut);
        let released = soon(releasing).await.unwrap();
        let expected = match is_sent {
            true => Cause::ConnectionLost,
            false => Cause::SessionLost,
        };
        let Err(Error::OutcomeUnknown { cause, .. }) = released else {
            panic!("{released:?}");
        };
        assert_eq!(cause, expected);
        let is_suspended = matches!(client.state(), ConnectionState::Suspended { .. });
        assert_eq!(is_suspended, is_sent);
        link.set(Mode::Pass);
        until("it is released", || {
            server.children("/lock").unwrap_or_default().is_empty()
        })
        .await;
    }
}

/// A process that was paused polled the work once more before the timer of the loss.
#[tokio::test(start_paused = true)]
async fn guard_does_not_poll_its_work_once_the_loss_is_known() {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    let lock = InterProcessMutex::new(client, "/lock").unwrap();
    let guard = Arc::new(soon(lock.acquire().into_future()).await.unwrap());
    let polls = Arc::new(AtomicUsize::new(0));
    let wake = Arc::new(tokio::sync::Notify::new());
    let running = {
        let (guard, polls, wake) = (Arc::clone(&guard), Arc::clone(&polls), Arc::clone(&wake));
        let status = Arc::clone(&guard);
        async move {
            let work = async {
                loop {
                    let mut woken = std::pin::pin!(wake.notified());
                    poll_fn(|cx| {
                        assert!(
                            !matches!(status.status(), Status::Lost(_)),
                            "the lock is lost"
                        );
                        polls.fetch_add(1, Ordering::Relaxed);
                        match woken.as_mut().poll(cx) {
                            Poll::Ready(()) => Poll::Ready(()),
                            Poll::Pending => Poll::Pending,
                        }
                    })
                    .await;
                }
            };
            guard
                .run(async {
                    work.await;
                })
                .await
        }
    };
    let mut running = Box::pin(running);
    assert!(
        timeout(Duration::from_millis(10), running.as_mut())
            .await
            .is_err()
    );
    assert!(polls.load(Ordering::Relaxed) > 0);
    link.set(Mode::Freeze);
    // The clock moves, and no timer fires and no other task runs before the work is woken.
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut advancing = Box::pin(advance(2 * SESSION_TIMEOUT));
    assert!(advancing.as_mut().poll(&mut cx).is_pending());
    wake.notify_one();
    assert!(running.as_mut().poll(&mut cx).is_ready());
}
