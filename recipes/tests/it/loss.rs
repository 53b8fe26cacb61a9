//! Guards that lose their lock, and tokens that stop late writers (`docs/curator-recipes.md`
//! section 10).

use std::time::Duration;

use minikeeper_client::{CreateMode, Error, ErrorCode};
use minikeeper_recipes::{LockError, Loss, Owner, Released, Status};
use tokio::time::{sleep, timeout};

use crate::{
    clock,
    kit::{SESSION_TIMEOUT, contender, queue, soon, spawn, start, until},
    link::Mode,
};

#[tokio::test(start_paused = true)]
async fn h1_holder_notices_its_expired_session() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let guard = holder.lock.acquire().await.unwrap();
    let session = holder.client.session_id().unwrap();
    let (loss, _) = tokio::join!(soon(guard.lost()), async {
        sleep(Duration::from_secs(1)).await;
        server.expire(session).unwrap();
    });
    // The server sends the deletion of the znode before it closes the connection.
    assert!(
        matches!(loss, Loss::NodeDeleted | Loss::SessionOver),
        "{loss:?}"
    );
    assert_eq!(guard.status(), Status::Lost(loss));
    assert_eq!(guard.deadline(), None);
    // The loss is final.
    until("there is a new session", || holder.client.epoch().0 == 2).await;
    assert_eq!(guard.status(), Status::Lost(loss));
    assert_eq!(guard.release().await.unwrap(), Released::AlreadyGone);
}

#[tokio::test(start_paused = true)]
async fn h1_holder_notices_that_its_znode_was_deleted() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let other = contender(&server, 2).await;
    let guard = holder.lock.acquire().await.unwrap();
    let (loss, _) = tokio::join!(soon(guard.lost()), async {
        sleep(Duration::from_secs(1)).await;
        other.client.delete(guard.path(), None).await.unwrap();
    });
    assert_eq!(loss, Loss::NodeDeleted);
    assert_eq!(guard.status(), Status::Lost(Loss::NodeDeleted));
}

#[tokio::test(start_paused = true)]
async fn loss_is_known_before_the_next_grant() {
    // Freezes the holder's link, and compares the local loss with the next grant.
    let server = start().await;
    let holder = contender(&server, 1).await;
    let waiter = contender(&server, 2).await;
    let guard = holder.lock.acquire().await.unwrap();
    let waiting = spawn({
        let lock = waiter.lock.clone();
        async move {
            let guard = lock.acquire().await.unwrap();
            (clock::now(), guard)
        }
    });
    until("it waits", || queue(&server).len() == 2).await;
    holder.link.set(Mode::Freeze);
    let status = soon(guard.unsure()).await;
    assert!(matches!(status, Status::Suspended { .. }), "{status:?}");
    let loss = soon(guard.lost()).await;
    let lost_at = clock::now();
    assert_eq!(loss, Loss::Presumed);
    let (granted_at, next) = soon(waiting).await.unwrap();
    assert!(
        lost_at <= granted_at,
        "lost {:?} too late",
        lost_at - granted_at
    );
    assert!(next.token() > guard.token());
}

#[tokio::test(start_paused = true)]
async fn h2_paused_holder_sees_the_loss_in_its_first_call() {
    // No task or timer of the holder runs until it asks for the status.
    let server = start().await;
    let holder = contender(&server, 1).await;
    let guard = holder.lock.acquire().await.unwrap();
    holder.link.set(Mode::Freeze);
    tokio::time::advance(SESSION_TIMEOUT).await;
    assert!(
        matches!(guard.status(), Status::Lost(_)),
        "{:?}",
        guard.status()
    );
}

#[tokio::test(start_paused = true)]
async fn short_interruption_loses_no_lock() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let guard = holder.lock.acquire().await.unwrap();
    assert!(
        timeout(Duration::from_secs(30), guard.lost())
            .await
            .is_err()
    );
    holder.link.set(Mode::Cut);
    let status = soon(guard.unsure()).await;
    let Status::Suspended { until: deadline } = status else {
        panic!("{status:?}");
    };
    assert_eq!(guard.deadline(), Some(deadline));
    holder.link.set(Mode::Pass);
    until("it is held again", || guard.status() == Status::Held).await;
    assert!(
        timeout(Duration::from_secs(30), guard.lost())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_with_the_lock() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let guard = holder.lock.acquire().await.unwrap();
    assert_eq!(guard.run(async { 7 }).await, Ok(7));
    let session = holder.client.session_id().unwrap();
    let (result, _) = tokio::join!(soon(guard.run(std::future::pending::<()>())), async {
        sleep(Duration::from_secs(1)).await;
        server.expire(session).unwrap();
    });
    assert!(result.is_err());
}

#[tokio::test(start_paused = true)]
async fn h3_lost_hold_is_not_reentered() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let owner = Owner::new();
    let guard = holder.lock.acquire().as_owner(&owner).await.unwrap();
    server.expire(holder.client.session_id().unwrap()).unwrap();
    soon(guard.lost()).await;
    let error = holder.lock.acquire().as_owner(&owner).await.unwrap_err();
    assert!(matches!(error, LockError::HoldLost { .. }), "{error}");
    assert!(!holder.lock.is_held_by(&owner));
    drop(guard);
    drop(soon(holder.lock.acquire().as_owner(&owner)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn h7_guarded_write_happens_only_under_the_lock() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let guard = holder.lock.acquire().await.unwrap();
    let change =
        |multi: minikeeper_client::Multi| multi.create("/done", b"", CreateMode::Persistent);
    guard.multi(change).await.unwrap();
    holder.client.delete("/done", None).await.unwrap();
    server.expire(holder.client.session_id().unwrap()).unwrap();
    soon(guard.lost()).await;
    let error = guard.multi(change).await.unwrap_err();
    let expected = Error::MultiRefused {
        index: 0,
        path: guard.path().into(),
        code: ErrorCode::NoNode,
    };
    assert_eq!(error, expected);
    assert!(server.get("/done").is_none());
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_although_sequence_numbers_restart() {
    // The directory is deleted between two grants, so the second gets the same digits.
    let server = start().await;
    let holder = contender(&server, 1).await;
    let first = holder.lock.acquire().await.unwrap();
    let (path, token) = (first.path().to_owned(), first.token());
    first.release().await.unwrap();
    until("the directory is deleted", || {
        server.get("/locks/a").is_none()
    })
    .await;
    let second = holder.lock.acquire().await.unwrap();
    assert_eq!(
        path[path.len() - 10..],
        second.path()[second.path().len() - 10..]
    );
    assert!(second.token() > token);
}
