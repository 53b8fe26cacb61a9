//! The catalogue's tests of the multi-lock (`docs/curator-recipes.md` sections 15.1 and 15.3), and
//! the rules of section 8.

use std::{sync::Arc, time::Duration};

use minikeeper::{Fault, OpCode, Server};
use minikeeper_client::{AddWatchMode, Client, ErrorCode, EventKind, WatchEvent};
use minikeeper_recipes::{
    InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, LockError, LockOptions, MultiGuard, MultiMember, Owner, Released,
    Status,
};
use tokio::time::{sleep, timeout};

use crate::{
    clock,
    every_lock::{Contender, lock_tests},
    kit::{client, create, soon, spawn, start, until},
    link::Link,
};

pub(crate) const PATHS: [&str; 3] = ["/multi/a", "/multi/b", "/multi/c"];

const WITHIN: Duration = Duration::from_secs(5);

async fn contender(server: &Arc<Server>, seed: u64) -> Contender<InterProcessMultiLock> {
    Contender::new(server, seed, &LockOptions::default()).await
}

/// Returns the number of contenders for each member.
fn queues(server: &Server) -> [usize; 3] {
    PATHS.map(|path| server.children(path).unwrap_or_default().len())
}

fn mutex(client: &Client, path: &str) -> InterProcessMutex {
    InterProcessMutex::new(client.clone(), path).unwrap()
}

fn paths(guard: &MultiGuard) -> Vec<&str> {
    let path = |path: &'_ str| path.rfind('/').unwrap();
    let guards = guard.guards().iter();
    guards
        .map(|guard| &guard.path()[..path(guard.path())])
        .collect()
}

lock_tests! { InterProcessMultiLock:
    test_2_clients,
    test_killed_session,
    test_waiting_process_killed_server,
    test_container_cleanup,
    test_reentrant_2_threads,
    test_reentrant_single_lock,
    dropping_at_every_await_point_leaves_nothing,
    h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue,
}

#[tokio::test(start_paused = true)]
async fn test_locker() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let guard = one.lock.acquire().within(WITHIN).await.unwrap();
    assert_eq!(guard.status(), Status::Held);
    assert_eq!(paths(&guard), PATHS);
    // Members are acquired one after the other, each with its own token.
    assert!(guard.tokens().is_sorted_by(|a, b| a < b));
    drop(guard);
    until("nothing is left", || queues(&server) == [0; 3]).await;
}

#[tokio::test(start_paused = true)]
async fn test_reentrant() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let (owner, stranger) = (Owner::new(), Owner::new());
    let first = one.lock.acquire().as_owner(&owner).await.unwrap();
    let second = one
        .lock
        .acquire()
        .as_owner(&owner)
        .within(WITHIN)
        .await
        .unwrap();
    assert_eq!(queues(&server), [1; 3]);
    let refused = one.lock.acquire().as_owner(&stranger).within(WITHIN).await;
    assert!(matches!(refused, Err(LockError::TimedOut { .. })));
    assert_eq!(first.release().await.unwrap(), Released::StillHeld);
    assert_eq!(second.status(), Status::Held);
    assert_eq!(second.release().await.unwrap(), Released::Done);
    drop(one.lock.acquire().as_owner(&stranger).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn test_with_namespace() {
    let server = start().await;
    let (root, _) = client(&server, 1).await;
    create(&root, "/ns").await;
    let builder = Client::builder("server/ns").unwrap();
    let below = builder
        .transport(Link::to(&server))
        .connect()
        .await
        .unwrap();
    let lock = InterProcessMultiLock::from_paths(below, PATHS).unwrap();
    let guard = lock.acquire().within(WITHIN).await.unwrap();
    assert_eq!(paths(&guard), PATHS);
    assert_eq!(server.children("/ns/multi/c").unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn test_some_releases_fail() {
    // The server refuses to delete one member's znode: the others are released, and that one is
    // released in the background.
    let server = start().await;
    let one = contender(&server, 1).await;
    let lock = InterProcessMultiLock::from_paths(one.client.clone(), PATHS).unwrap();
    let guard = lock.acquire().await.unwrap();
    let refusal = Fault::error(ErrorCode::SystemError).on(OpCode::Delete);
    let _refusal = server
        .inject(refusal.at(format!("{}/*", PATHS[1])).once())
        .unwrap();
    let error = guard.release().await.unwrap_err();
    assert!(error.is(ErrorCode::SystemError), "{error}");
    assert_eq!(queues(&server), [0, 1, 0]);
    until("it is released in the end", || queues(&server) == [0; 3]).await;
}

#[tokio::test(start_paused = true)]
async fn release_says_that_a_member_was_lost() {
    // The members belong to two clients, one of which is closed: the members of the other are
    // released.
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let lock = InterProcessMultiLock::new([
        mutex(&one, PATHS[0]),
        mutex(&other, PATHS[1]),
        mutex(&one, PATHS[2]),
    ]);
    let guard = lock.acquire().await.unwrap();
    other.close().await;
    assert!(matches!(guard.status(), Status::Lost(_)));
    assert_eq!(guard.release().await, Ok(Released::AlreadyGone));
    assert_eq!(queues(&server), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn test_some_locks_fail_to_lock() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    other.close().await;
    let lock = InterProcessMultiLock::new([
        mutex(&one, PATHS[0]),
        mutex(&other, PATHS[1]),
        mutex(&one, PATHS[2]),
    ]);
    let error = lock.acquire().await.unwrap_err();
    assert!(
        error.to_string().contains("the client is closed"),
        "{error}"
    );
    until("the member before it is released", || {
        queues(&server) == [0; 3]
    })
    .await;
    // Hazard H18: the member after it was not requested.
    assert!(server.get(PATHS[2]).is_none());
}

#[tokio::test(start_paused = true)]
async fn h18_all_members_have_one_deadline() {
    let server = start().await;
    let (blocker, _) = client(&server, 1).await;
    let one = contender(&server, 2).await;
    let first = mutex(&blocker, PATHS[0]).acquire().await.unwrap();
    let _last = mutex(&blocker, PATHS[2]).acquire().await.unwrap();
    let begun = clock::now();
    let (waited, ()) = tokio::join!(one.lock.acquire().within(WITHIN), async {
        // The first member takes most of the time.
        sleep(Duration::from_secs(4)).await;
        drop(first);
    });
    assert_eq!(begun.elapsed().as_secs(), WITHIN.as_secs());
    // The error names the member, and the time limit for all.
    assert_eq!(
        waited.unwrap_err().to_string(),
        "lock \"/multi/c\": not free within 5000 ms"
    );
    until("the members before it are released", || {
        queues(&server) == [0, 0, 1]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn partial_acquire_is_released_in_reverse_order() {
    let server = start().await;
    let (looker, _) = client(&server, 9).await;
    let (blocker, _) = client(&server, 1).await;
    let one = contender(&server, 2).await;
    let last = mutex(&blocker, PATHS[2]).acquire().await.unwrap();
    let recursive = AddWatchMode::PersistentRecursive;
    let mut watch = looker.add_watch("/multi", recursive).await.unwrap();
    let mut deleted = async |count: usize| {
        let mut deleted = Vec::new();
        while deleted.len() < count {
            match soon(watch.next()).await {
                WatchEvent::Event { kind, path, .. } => {
                    // The directories do not count; they are deleted later.
                    if kind == EventKind::Deleted && path.contains("lock-") {
                        deleted.push(path["/multi/".len()..][..1].to_owned());
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        deleted.concat()
    };
    // The acquire is dropped while it waits for the last member.
    let dropped = timeout(Duration::from_secs(1), one.lock.acquire()).await;
    assert!(dropped.is_err());
    assert_eq!(deleted(3).await, "cba");
    // The acquire times out.
    assert!(one.lock.try_acquire().await.unwrap().is_none());
    assert_eq!(deleted(3).await, "cba");
    // The lock is held, then dropped or released.
    drop(last);
    assert_eq!(deleted(1).await, "c");
    drop(one.lock.acquire().await.unwrap());
    assert_eq!(deleted(3).await, "cba");
    one.lock.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(deleted(3).await, "cba");
}

#[tokio::test(start_paused = true)]
async fn sorted_paths_are_acquired_in_one_order_without_duplicates() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let given = ["/multi/c", "/multi/a", "/multi/c", "/multi/b", "/multi/a"];
    let sorted = InterProcessMultiLock::from_paths_sorted(one.clone(), given).unwrap();
    let guard = soon(sorted.acquire()).await.unwrap();
    assert_eq!(paths(&guard), PATHS);
    drop(guard);
    let unsorted = InterProcessMultiLock::from_paths(one.clone(), ["/multi/b", "/multi/a"]);
    let guard = soon(unsorted.unwrap().acquire()).await.unwrap();
    assert_eq!(paths(&guard), ["/multi/b", "/multi/a"]);
    assert!(InterProcessMultiLock::from_paths(one, ["/multi/a", "multi"]).is_err());
}

#[tokio::test(start_paused = true)]
async fn overlapping_sorted_sets_do_not_deadlock() {
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 0..3 {
        let (one, _) = client(&server, seed as u64).await;
        // Each leaves another path out, and names the other two in circular order.
        let two = [PATHS[(seed + 2) % 3], PATHS[seed]];
        let lock = InterProcessMultiLock::from_paths_sorted(one, two).unwrap();
        tasks.push(spawn(async move {
            for _ in 0..30 {
                lock.acquire().await.unwrap().release().await.unwrap();
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn locks_of_any_kind_are_members() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let shelf = InterProcessReadWriteLock::new(one.clone(), "/multi/shelf").unwrap();
    let book = InterProcessReadWriteLock::new(one.clone(), "/multi/book").unwrap();
    let desk = InterProcessSemaphoreMutex::new(one.clone(), "/multi/desk").unwrap();
    let members: [MultiMember; 4] = [
        MultiMember::Read(shelf.clone()),
        MultiMember::Write(book.clone()),
        desk.clone().into(),
        mutex(&one, PATHS[0]).into(),
    ];
    let lock = InterProcessMultiLock::new(members);
    let guard = lock.acquire().within(WITHIN).await.unwrap();
    assert_eq!(guard.guards().len(), 4);
    drop(shelf.acquire_read().await.unwrap());
    let now = Duration::ZERO;
    assert!(shelf.acquire_write().within(now).await.is_err());
    assert!(book.acquire_read().within(now).await.is_err());
    assert!(desk.acquire().within(now).await.is_err());
    assert_eq!(guard.release().await.unwrap(), Released::Done);
    drop(soon(book.acquire_read()).await.unwrap());
    let owner = Owner::new();
    let guard = soon(lock.acquire().as_owner(&owner)).await.unwrap();
    assert_eq!(guard.status(), Status::Held);
    drop(soon(book.acquire_write().as_owner(&owner)).await.unwrap());
    drop(guard);
    // A multi-lock without members is always held.
    let none = InterProcessMultiLock::new([] as [MultiMember; 0]);
    let guard = none.acquire().await.unwrap();
    assert_eq!(guard.status(), Status::Held);
    assert!(timeout(WITHIN, guard.lost()).await.is_err());
    assert_eq!(guard.run(async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn loss_of_one_member_is_the_loss_of_the_multi_lock() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let guard = one.lock.acquire().await.unwrap();
    let (looker, _) = client(&server, 2).await;
    let (run, ()) = tokio::join!(soon(guard.run(std::future::pending::<()>())), async {
        sleep(Duration::from_secs(1)).await;
        let path = guard.guards()[1].path();
        looker.delete(path, None).await.unwrap();
    });
    let loss = run.unwrap_err();
    assert_eq!(guard.status(), Status::Lost(loss));
    assert_eq!(guard.guards()[0].status(), Status::Held);
    assert_eq!(guard.release().await.unwrap(), Released::AlreadyGone);
    assert_eq!(queues(&server), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn h5_session_lost_between_members_is_no_grant() {
    // The member that waits acquires its lock in the new session; the member before it is lost.
    let server = start().await;
    let (blocker, _) = client(&server, 1).await;
    let one = contender(&server, 2).await;
    let held = mutex(&blocker, PATHS[1]).acquire().await.unwrap();
    let waiting = one.waiting();
    until("it waits", || queues(&server) == [1, 2, 0]).await;
    server.expire(one.client.session_id().unwrap()).unwrap();
    until("it waits again", || queues(&server) == [0, 2, 0]).await;
    drop(held);
    let error = soon(waiting).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    until("nothing is left", || queues(&server) == [0; 3]).await;
    drop(soon(one.lock.acquire()).await.unwrap());
}
