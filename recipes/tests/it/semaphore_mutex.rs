//! The catalogue's tests of the semaphore mutex (`docs/curator-recipes.md` sections 15.1 and 15.5),
//! with the savings and with Curator's requests.

use std::{pin::pin, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, CreateMode};
use minikeeper_recipes::{InterProcessSemaphoreMutex, LockError, LockOptions, Released, Status};
use tokio::time::{sleep, timeout};

use crate::{
    cancelling::Polls,
    kit::{both_ways, client, soon, spawn, start, until},
    link::{Link, Mode},
    semaphore::{PATH, leases, locks},
};

const WITHIN: Duration = Duration::from_secs(5);

struct Contender {
    client: Client,
    link: Link,
    lock: InterProcessSemaphoreMutex,
}

async fn contender(server: &Arc<Server>, seed: u64, options: LockOptions) -> Contender {
    let (client, link) = client(server, seed).await;
    let lock = InterProcessSemaphoreMutex::with_options(client.clone(), PATH, options).unwrap();
    Contender { client, link, lock }
}

#[tokio::test(start_paused = true)]
async fn test_locker() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, options).await;
        let guard = one.lock.acquire().within(WITHIN).await.unwrap();
        assert_eq!(guard.status(), Status::Held);
        drop(guard);
        until("nothing is left", || {
            leases(&server).is_empty() && locks(&server).is_empty()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_2_clients() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, options.clone()).await;
        let other = contender(&server, 2, options).await;
        let guard = one.lock.acquire().await.unwrap();
        assert!(other.lock.try_acquire().await.unwrap().is_none());
        let waiting = spawn({
            let lock = other.lock.clone();
            async move { lock.acquire().await }
        });
        sleep(Duration::from_secs(60)).await;
        assert!(!waiting.is_finished());
        let token = guard.token();
        // Any task may release it.
        let release = spawn(guard.release());
        assert_eq!(soon(release).await.unwrap().unwrap(), Released::Done);
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.token() > token);
    }
}

#[tokio::test(start_paused = true)]
async fn semaphore_mutex_is_not_reentrant() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, options).await;
        let guard = one.lock.acquire().await.unwrap();
        let error = one.lock.acquire().within(WITHIN).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        assert_eq!(guard.status(), Status::Held);
        drop(guard);
        drop(soon(one.lock.acquire()).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn h41_acquire_right_after_a_release_keeps_its_lease() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, options).await;
        let mut guard = one.lock.acquire().await.unwrap();
        for _ in 0..20 {
            let (released, next) = tokio::join!(guard.release(), soon(one.lock.acquire()));
            assert_eq!(released.unwrap(), Released::Done);
            guard = next.unwrap();
            sleep(Duration::from_millis(1)).await;
            assert_eq!(guard.status(), Status::Held);
            assert_eq!(leases(&server).len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_killed_session() {
    for options in both_ways() {
        let server = start().await;
        let shared = contender(&server, 1, options).await;
        let guard = shared.lock.acquire().await.unwrap();
        let waiting = spawn({
            let lock = shared.lock.clone();
            async move { lock.acquire().await }
        });
        until("it waits", || leases(&server).len() == 2).await;
        server.expire(shared.client.session_id().unwrap()).unwrap();
        let second = soon(waiting).await.unwrap().unwrap();
        assert!(matches!(guard.status(), Status::Lost(_)));
        assert_eq!(second.status(), Status::Held);
        assert!(second.token() > guard.token());
        assert_eq!(leases(&server).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn test_waiting_process_killed_server() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, options.clone()).await;
        let other = contender(&server, 2, options).await;
        let guard = one.lock.acquire().await.unwrap();
        let waiting = spawn({
            let lock = other.lock.clone();
            async move { lock.acquire().await }
        });
        until("it waits", || leases(&server).len() == 2).await;
        for link in [&one.link, &other.link] {
            link.set(Mode::Cut);
        }
        sleep(Duration::from_secs(1)).await;
        assert!(matches!(guard.status(), Status::Suspended { .. }));
        for link in [&one.link, &other.link] {
            link.set(Mode::Pass);
        }
        until("it is back", || guard.status() == Status::Held).await;
        assert_eq!(guard.release().await.unwrap(), Released::Done);
        drop(soon(waiting).await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn test_container_cleanup() {
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 0..10 {
        let one = contender(&server, seed, LockOptions::default()).await;
        tasks.push(spawn(async move {
            drop(one.lock.acquire().await.unwrap());
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    until("the directory is deleted", || server.get(PATH).is_none()).await;
    let one = contender(&server, 11, LockOptions::default()).await;
    drop(one.lock.acquire().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn test_with_namespace() {
    let server = start().await;
    let (root, _) = client(&server, 1).await;
    root.create("/ns", b"", CreateMode::Persistent)
        .await
        .unwrap();
    let builder = Client::builder("server/ns").unwrap();
    let below = builder
        .transport(Link::to(&server))
        .connect()
        .await
        .unwrap();
    let lock = InterProcessSemaphoreMutex::new(below, PATH).unwrap();
    let guard = lock.acquire().within(WITHIN).await.unwrap();
    assert!(guard.path().starts_with("/semaphores/a/leases/_c_"));
    assert_eq!(server.children("/ns/semaphores/a/leases").unwrap().len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_await_point_leaves_nothing() {
    for options in both_ways() {
        let mut is_done = false;
        let mut polls = 0;
        while !is_done {
            polls += 1;
            assert!(polls < 100, "the loop does not end");
            let server = start().await;
            let one = contender(&server, 1, options.clone()).await;
            let got = {
                let acquire = pin!(one.lock.acquire());
                timeout(WITHIN, Polls::new(acquire, polls)).await.unwrap()
            };
            is_done = got.is_some();
            drop(got);
            until("nothing is pending", || one.client.clean_ups_pending() == 0).await;
            until("nothing is left", || {
                leases(&server).is_empty() && locks(&server).is_empty()
            })
            .await;
            drop(soon(one.lock.acquire()).await.unwrap());
        }
        assert!(polls >= 3, "{polls} await points");
    }
}
