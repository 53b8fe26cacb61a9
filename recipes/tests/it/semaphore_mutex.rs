//! The catalogue's tests of the semaphore mutex (`docs/curator-recipes.md` sections 15.1 and 15.5),
//! with the savings and with Curator's requests.

use std::time::Duration;

use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessSemaphoreMutex, LockError, Released, Status};
use tokio::time::sleep;

use crate::{
    every_lock::{self, lock_tests},
    kit::{both_ways, client, create, soon, spawn, start, until},
    link::Link,
    semaphore::{PATH, leases, locks},
};

const WITHIN: Duration = Duration::from_secs(5);

type Contender = every_lock::Contender<InterProcessSemaphoreMutex>;

lock_tests! { InterProcessSemaphoreMutex:
    test_2_clients,
    test_killed_session,
    test_waiting_process_killed_server,
    test_container_cleanup,
    dropping_at_every_await_point_leaves_nothing,
    h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue,
    h5_expiring_at_every_step_grants_nothing_of_the_old_session,
}

#[tokio::test(start_paused = true)]
async fn test_locker() {
    for options in both_ways() {
        let server = start().await;
        let one = Contender::new(&server, 1, &options).await;
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
async fn any_task_may_release_it() {
    for options in both_ways() {
        let server = start().await;
        let one = Contender::new(&server, 1, &options).await;
        let guard = one.lock.acquire().await.unwrap();
        let release = spawn(guard.release());
        assert_eq!(soon(release).await.unwrap().unwrap(), Released::Done);
        drop(soon(one.lock.acquire()).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn semaphore_mutex_is_not_reentrant() {
    for options in both_ways() {
        let server = start().await;
        let one = Contender::new(&server, 1, &options).await;
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
        let one = Contender::new(&server, 1, &options).await;
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
    let lock = InterProcessSemaphoreMutex::new(below, PATH).unwrap();
    let guard = lock.acquire().within(WITHIN).await.unwrap();
    assert!(guard.path().starts_with("/semaphores/a/leases/_c_"));
    assert_eq!(server.children("/ns/semaphores/a/leases").unwrap().len(), 1);
    guard.release().await.unwrap();
}
