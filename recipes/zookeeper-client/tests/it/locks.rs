//! The catalogue's tests of locks and semaphores (`docs/curator-recipes.md` sections 15.1 to 15.5).

use std::{sync::Arc, time::Duration};

use minikeeper_recipes::{
    InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LockError, LockOptions, Owner, Released,
    Status,
};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::kit::{
    PATH, SESSION_TIMEOUT, adapter, adapter_at, cut, expire, names, queue, settle, soon, start,
    until,
};

/// The time limit for locks that are taken; it passes in real time.
const SHORT: Duration = Duration::from_millis(100);

/// The options with all savings, and those that repeat Curator's requests.
fn both_ways() -> [LockOptions; 2] {
    [LockOptions::default(), LockOptions::curator_exact()]
}

#[tokio::test]
async fn mutex_test_locker() {
    for options in both_ways() {
        let server = start().await;
        let lock = InterProcessMutex::with_options(adapter(&server).await, PATH, options).unwrap();
        let owner = Owner::new();
        let guard = soon(lock.acquire().as_owner(&owner)).await.unwrap();
        assert!(lock.is_held_by(&owner));
        assert_eq!(guard.status(), Status::Held);
        assert_eq!(lock.participants().await.unwrap(), [guard.path()]);
        drop(guard);
        assert!(!lock.is_held_by(&owner));
        until("the znode is deleted", || queue(&server).is_empty()).await;
    }
}

#[tokio::test]
async fn mutex_test_2_clients() {
    for options in both_ways() {
        let server = start().await;
        let lock = |client| InterProcessMutex::with_options(client, PATH, options.clone()).unwrap();
        let first = lock(adapter(&server).await);
        let second = lock(adapter(&server).await);
        let guard = soon(first.acquire()).await.unwrap();
        assert!(soon(second.try_acquire()).await.unwrap().is_none());
        let error = second.acquire().within(SHORT).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        until("its znode is deleted", || queue(&server).len() == 1).await;
        let waiting = tokio::spawn(async move { second.acquire().await });
        until("the second waits", || queue(&server).len() == 2).await;
        settle().await;
        assert!(!waiting.is_finished());
        let token = guard.token();
        assert_eq!(guard.release().await.unwrap(), Released::Done);
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.token() > token);
    }
}

#[tokio::test]
async fn mutex_test_reentrant() {
    let server = start().await;
    let lock = InterProcessMutex::new(adapter(&server).await, PATH).unwrap();
    let owner = Owner::new();
    let first = lock.acquire().as_owner(&owner).await.unwrap();
    let second = lock.acquire().as_owner(&owner).await.unwrap();
    assert_eq!(queue(&server).len(), 1);
    assert_eq!(second.token(), first.token());
    assert_eq!(first.release().await.unwrap(), Released::StillHeld);
    assert_eq!(second.release().await.unwrap(), Released::Done);
    assert!(queue(&server).is_empty());
}

#[tokio::test]
async fn mutex_test_killed_session() {
    // The common session of a holder and a waiter expires: the waiter, a second lock object,
    // acquires the lock.
    for options in both_ways() {
        let server = start().await;
        let client = adapter(&server).await;
        let lock = || InterProcessMutex::with_options(client.clone(), PATH, options.clone());
        let guard = soon(lock().unwrap().acquire()).await.unwrap();
        let waiting = tokio::spawn({
            let lock = lock().unwrap();
            async move { lock.acquire().await }
        });
        until("it waits", || queue(&server).len() == 2).await;
        expire(&server, &client);
        let second = soon(waiting).await.unwrap().unwrap();
        assert!(matches!(guard.status(), Status::Lost(_)));
        assert_eq!(second.status(), Status::Held);
        assert!(second.token() > guard.token());
        assert!(second.epoch() > guard.epoch());
        assert_eq!(queue(&server).len(), 1);
    }
}

#[tokio::test]
async fn mutex_test_waiting_process_killed_server() {
    // There are two contenders; while one holds the lock, all connections are lost and restored.
    for options in both_ways() {
        let server = start().await;
        let lock = |client| InterProcessMutex::with_options(client, PATH, options.clone()).unwrap();
        let (one, other) = (adapter(&server).await, adapter(&server).await);
        let (first, second) = (lock(one.clone()), lock(other.clone()));
        let guard = soon(first.acquire()).await.unwrap();
        let waiting = tokio::spawn(async move { second.acquire().await });
        until("it waits", || queue(&server).len() == 2).await;
        let before = queue(&server);
        let unsure = tokio::spawn(async move { (guard.unsure().await, guard) });
        settle().await;
        cut(&server, &one);
        cut(&server, &other);
        let (status, guard) = soon(unsure).await.unwrap();
        assert!(matches!(status, Status::Suspended { .. }), "{status:?}");
        until("it is back", || guard.status() == Status::Held).await;
        assert_eq!(
            queue(&server),
            before,
            "no znode was created again (hazard H42)"
        );
        assert_eq!(soon(guard.release()).await.unwrap(), Released::Done);
        drop(soon(waiting).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn mutex_test_container_cleanup() {
    let server = start().await;
    let mut tasks = Vec::new();
    for _ in 0..10 {
        let lock = InterProcessMutex::new(adapter(&server).await, PATH).unwrap();
        tasks.push(tokio::spawn(async move {
            drop(lock.acquire().await.unwrap());
            lock
        }));
    }
    let mut lock = None;
    for task in tasks {
        lock = Some(soon(task).await.unwrap());
    }
    until("no contender is left", || queue(&server).is_empty()).await;
    // The test does not use `advance`, which would also end the sessions, because they have been
    // silent for so long.
    assert!(server.get(PATH).is_some());
    drop(soon(lock.unwrap().acquire()).await.unwrap());
}

#[tokio::test]
async fn mutex_test_with_namespace() {
    let server = start().await;
    let root = adapter(&server).await.client();
    let options =
        zookeeper_client::CreateMode::Persistent.with_acls(zookeeper_client::Acls::anyone_all());
    root.create("/ns", b"", &options).await.unwrap();
    let address = format!("{}/ns", server.connect_string());
    let lock = InterProcessMutex::new(adapter_at(&address, SESSION_TIMEOUT).await, PATH).unwrap();
    let guard = soon(lock.acquire()).await.unwrap();
    assert!(guard.path().starts_with("/locks/a/_c_"), "{}", guard.path());
    assert_eq!(names(&server, "/ns/locks/a").len(), 1);
    assert_eq!(lock.participants().await.unwrap(), [guard.path()]);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mutex_contenders_are_served_in_order_of_arrival() {
    for options in both_ways() {
        let server = start().await;
        let lock = |client| InterProcessMutex::with_options(client, PATH, options.clone()).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let guard = soon(lock(adapter(&server).await).acquire()).await.unwrap();
        let mut tasks = Vec::new();
        for number in 1..=10 {
            let (lock, order) = (lock(adapter(&server).await), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let guard = lock.acquire().await.unwrap();
                order.lock().push((number, guard.token()));
                guard.release().await.unwrap();
            }));
            until("it waits", || queue(&server).len() == number + 1).await;
        }
        guard.release().await.unwrap();
        for task in tasks {
            soon(task).await.unwrap();
        }
        let order = order.lock();
        let numbers: Vec<_> = order.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
        assert!(order.is_sorted_by(|a, b| a.1 < b.1), "tokens grow");
    }
}

#[tokio::test]
async fn h7_guarded_write_happens_only_under_the_lock() {
    let server = start().await;
    let client = adapter(&server).await;
    let lock = InterProcessMutex::new(client.clone(), PATH).unwrap();
    let guard = soon(lock.acquire()).await.unwrap();
    let change = |multi: minikeeper_client::Multi| {
        let mode = minikeeper_client::CreateMode::Persistent;
        multi.create("/done", b"x", mode)
    };
    assert_eq!(guard.multi(change).await.unwrap().len(), 2);
    assert_eq!(server.get("/done").unwrap().0.as_deref(), Some(&b"x"[..]));
    // The znode already exists, so the server refuses the second operation, after the check.
    let error = guard.multi(change).await.unwrap_err();
    let refused = |index, path: &str, code| minikeeper_client::Error::MultiRefused {
        index,
        path: path.to_owned(),
        code,
    };
    let code = minikeeper_client::ErrorCode::NodeExists;
    assert_eq!(error, refused(1, "/done", code));
    expire(&server, &client);
    soon(guard.lost()).await;
    let change = |multi: minikeeper_client::Multi| multi.delete("/done", None);
    let refusal = async {
        loop {
            match guard.multi(change).await {
                Err(error) if error.is_retryable() => settle().await,
                other => return other.unwrap_err(),
            }
        }
    };
    let code = minikeeper_client::ErrorCode::NoNode;
    assert_eq!(soon(refusal).await, refused(0, guard.path(), code));
    assert!(server.get("/done").is_some());
}

#[tokio::test]
async fn semaphore_mutex_test_2_clients() {
    for options in both_ways() {
        let server = start().await;
        let lock = |client| {
            InterProcessSemaphoreMutex::with_options(client, "/semaphores/a", options.clone())
        };
        let one = lock(adapter(&server).await).unwrap();
        let other = lock(adapter(&server).await).unwrap();
        let guard = soon(one.acquire()).await.unwrap();
        assert_eq!(guard.status(), Status::Held);
        assert!(soon(other.try_acquire()).await.unwrap().is_none());
        let waiting = tokio::spawn(async move { other.acquire().await });
        until("it waits", || {
            names(&server, "/semaphores/a/leases").len() == 2
        })
        .await;
        settle().await;
        assert!(!waiting.is_finished());
        let token = guard.token();
        // Any task may release it.
        let release = tokio::spawn(guard.release());
        assert_eq!(soon(release).await.unwrap().unwrap(), Released::Done);
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.token() > token);
        drop(guard);
        until("nothing is left", || {
            names(&server, "/semaphores/a/leases").is_empty()
                && names(&server, "/semaphores/a/locks").is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn read_write_test_basic() {
    // A writer is alone, readers overlap.
    for options in both_ways() {
        let server = start().await;
        let state = Arc::new(Mutex::new((0_u32, 0_u32, 0_u32)));
        let mut tasks = Vec::new();
        for number in 0..5_u64 {
            let client = adapter(&server).await;
            let lock = InterProcessReadWriteLock::with_options(client, PATH, options.clone());
            let (lock, state) = (lock.unwrap(), Arc::clone(&state));
            tasks.push(tokio::spawn(async move {
                for round in 0..10 {
                    if (round + number) % 5 == 0 {
                        let guard = lock.acquire_write().await.unwrap();
                        {
                            let mut state = state.lock();
                            assert_eq!((state.0, state.1), (0, 0), "a writer is alone");
                            state.1 = 1;
                        }
                        sleep(Duration::from_millis(2)).await;
                        state.lock().1 = 0;
                        drop(guard);
                    } else {
                        let guard = lock.acquire_read().await.unwrap();
                        {
                            let mut state = state.lock();
                            assert_eq!(state.1, 0, "no reader beside a writer");
                            state.0 += 1;
                            state.2 = state.2.max(state.0);
                        }
                        sleep(Duration::from_millis(2)).await;
                        state.lock().0 -= 1;
                        drop(guard);
                    }
                }
            }));
        }
        for task in tasks {
            soon(task).await.unwrap();
        }
        assert!(state.lock().2 > 1, "readers overlap");
        until("nothing is left", || queue(&server).is_empty()).await;
    }
}

#[tokio::test]
async fn read_write_h9_test_contending_downgrading() {
    for options in both_ways() {
        let server = start().await;
        let lock = |client| InterProcessReadWriteLock::with_options(client, PATH, options.clone());
        let one = lock(adapter(&server).await).unwrap();
        let two = lock(adapter(&server).await).unwrap();
        let writer = soon(one.acquire_write()).await.unwrap();
        let waiting = tokio::spawn(async move { two.acquire_write().await.map(drop) });
        until("it waits", || queue(&server).len() == 2).await;
        let reader = soon(writer.downgrade()).await.unwrap();
        until("the writer's znode is deleted", || {
            queue(&server).len() == 2
        })
        .await;
        settle().await;
        assert!(!waiting.is_finished());
        drop(reader);
        soon(waiting).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn semaphore_test_simple2() {
    for options in both_ways() {
        let server = start().await;
        let client = adapter(&server).await;
        let semaphore =
            InterProcessSemaphoreV2::with_options(client, "/semaphores/a", 3, options).unwrap();
        let mut got = Vec::new();
        for _ in 0..3 {
            got.push(soon(semaphore.acquire()).await.unwrap());
        }
        assert!(semaphore.acquire().within(SHORT).await.is_err());
        assert_eq!(semaphore.available().await.unwrap(), 0);
        drop(got.pop());
        got.push(soon(semaphore.acquire()).await.unwrap());
        assert!(semaphore.try_acquire().await.unwrap().is_none());
        drop(got);
        drop(soon(semaphore.acquire_many(3)).await.unwrap());
        until("nothing is left", || {
            names(&server, "/semaphores/a/leases").is_empty()
                && names(&server, "/semaphores/a/locks").is_empty()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn semaphore_test_acquire_after_lost_server() {
    // There are more clients than leases, and connections are lost repeatedly.
    let server = start().await;
    let inside = Arc::new(Mutex::new((0_usize, 0_usize)));
    let (mut tasks, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let client = adapter(&server).await;
        clients.push(client.clone());
        let semaphore = InterProcessSemaphoreV2::new(client, "/semaphores/a", 2).unwrap();
        let inside = Arc::clone(&inside);
        tasks.push(tokio::spawn(async move {
            for _ in 0..4 {
                let lease = semaphore.acquire().await.unwrap();
                {
                    let mut inside = inside.lock();
                    inside.0 += 1;
                    inside.1 = inside.1.max(inside.0);
                }
                sleep(Duration::from_millis(5)).await;
                inside.lock().0 -= 1;
                drop(lease);
            }
        }));
    }
    for round in 0..10 {
        sleep(Duration::from_millis(7)).await;
        cut(&server, &clients[round % clients.len()]);
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert_eq!(*inside.lock(), (0, 2));
    until("nothing is left", || {
        names(&server, "/semaphores/a/leases").is_empty()
            && names(&server, "/semaphores/a/locks").is_empty()
    })
    .await;
}

#[tokio::test]
async fn multi_lock_test_2_clients() {
    const PATHS: [&str; 3] = ["/multi/a", "/multi/b", "/multi/c"];
    let server = start().await;
    let queues = || PATHS.map(|path| names(&server, path).len());
    let one = InterProcessMultiLock::from_paths(adapter(&server).await, PATHS).unwrap();
    let other = InterProcessMultiLock::from_paths(adapter(&server).await, PATHS).unwrap();
    let guard = soon(one.acquire()).await.unwrap();
    assert_eq!(guard.status(), Status::Held);
    assert!(soon(other.try_acquire()).await.unwrap().is_none());
    let waiting = tokio::spawn(async move { other.acquire().await });
    until("it waits", || queues() == [2, 1, 1]).await;
    settle().await;
    assert!(!waiting.is_finished());
    assert_eq!(guard.release().await.unwrap(), Released::Done);
    let guard = soon(waiting).await.unwrap().unwrap();
    // The loss of one member is the loss of the multi-lock.
    let session = server.get(guard.guards()[1].path()).unwrap().1;
    server.expire(session.ephemeral_owner).unwrap();
    soon(guard.lost()).await;
    assert!(matches!(guard.status(), Status::Lost(_)));
    drop(guard);
    until("nothing is left", || queues() == [0; 3]).await;
}
