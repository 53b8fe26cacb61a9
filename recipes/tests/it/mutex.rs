//! The catalogue's tests of the mutex (`docs/curator-recipes.md` sections 15.1, 15.2 and 15.6),
//! each with the savings and with Curator's requests.

use std::{sync::Arc, time::Duration};

use minikeeper_client::{Client, CreateMode, ErrorCode};
use minikeeper_recipes::{InterProcessMutex, LockError, LockOptions, Owner, Released, Status};
use tokio::time::{sleep, timeout};

use crate::{
    clock,
    every_lock::lock_tests,
    kit::{
        self, PATH, both_ways, contender, contender_with, create, queue, soon, spawn, start, until,
    },
    link::{Link, Mode},
};

lock_tests! { InterProcessMutex:
    test_2_clients,
    test_killed_session,
    test_waiting_process_killed_server,
    test_container_cleanup,
    test_reentrant_2_threads,
    test_reentrant_single_lock,
    dropping_at_every_await_point_leaves_nothing,
    h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue,
    h5_expiring_at_every_step_grants_nothing_of_the_old_session,
}

#[tokio::test(start_paused = true)]
async fn test_locker() {
    for options in both_ways() {
        let server = start().await;
        let holder = contender_with(&server, 1, options).await;
        let owner = Owner::new();
        let within = Duration::from_secs(1);
        let guard = holder
            .lock
            .acquire()
            .as_owner(&owner)
            .within(within)
            .await
            .unwrap();
        assert!(holder.lock.is_held_by(&owner));
        assert_eq!(guard.status(), Status::Held);
        drop(guard);
        assert!(!holder.lock.is_held_by(&owner));
        until("the znode is deleted", || queue(&server).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_reentrant() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let owner = Owner::new();
    let first = holder.lock.acquire().as_owner(&owner).await.unwrap();
    let second = holder.lock.acquire().as_owner(&owner).await.unwrap();
    let third = holder.lock.acquire().as_owner(&owner).await.unwrap();
    assert_eq!(queue(&server).len(), 1);
    assert_eq!(
        (second.token(), third.path()),
        (first.token(), first.path())
    );
    assert_eq!(first.release().await.unwrap(), Released::StillHeld);
    drop(third);
    assert!(holder.lock.is_held_by(&owner));
    assert_eq!(second.release().await.unwrap(), Released::Done);
    assert!(!holder.lock.is_held_by(&owner));
}

/// `docs/client.md` section 2, E9: dropping one of two guards of a hold does not release the lock.
#[tokio::test(start_paused = true)]
async fn e9_dropping_one_of_two_guards_keeps_the_lock() {
    let server = start().await;
    let contender = contender(&server, 1).await;
    let owner = Owner::new();
    let first = contender.lock.acquire().as_owner(&owner).await.unwrap();
    let second = contender.lock.acquire().as_owner(&owner).await.unwrap();
    drop(first);
    contender.client.sync("/").await.unwrap();
    assert_eq!(queue(&server).len(), 1);
    assert_eq!(second.status(), Status::Held);
    second.release().await.unwrap();
    assert!(queue(&server).is_empty());
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_of_one_owner_are_one_hold() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    let owner = Owner::new();
    let (first, second) = tokio::join!(
        holder.lock.acquire().as_owner(&owner),
        holder.lock.acquire().as_owner(&owner),
    );
    assert_eq!(first.unwrap().path(), second.unwrap().path());
}

#[tokio::test(start_paused = true)]
async fn test_with_namespace() {
    let server = start().await;
    let link = Link::to(&server);
    let (root, _) = kit::client(&server, 1).await;
    create(&root, "/ns").await;
    let builder = Client::builder("server/ns").unwrap().transport(link);
    let client = builder.connect().await.unwrap();
    let lock = InterProcessMutex::new(client, PATH).unwrap();
    let guard = lock.acquire().within(Duration::from_secs(5)).await.unwrap();
    assert!(guard.path().starts_with("/locks/a/_c_"), "{}", guard.path());
    assert_eq!(server.children("/ns/locks/a").unwrap().len(), 1);
    assert_eq!(lock.participants().await.unwrap(), [guard.path()]);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn test_interrupted_during_acquire() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    holder.link.delay_replies(Duration::from_millis(300));
    let owner = Owner::new();
    let acquire = holder.lock.acquire().as_owner(&owner);
    assert!(timeout(Duration::from_millis(100), acquire).await.is_err());
    assert!(!holder.lock.is_held_by(&owner));
    holder.link.delay_replies(Duration::ZERO);
    let guard = soon(holder.lock.acquire().as_owner(&owner)).await.unwrap();
    until("only this one is left", || queue(&server).len() == 1).await;
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn contenders_are_served_in_order_of_arrival() {
    for options in both_ways() {
        let server = start().await;
        let (mut tasks, mut contenders) = (Vec::new(), Vec::new());
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let first = contender_with(&server, 0, options.clone()).await;
        let guard = first.lock.acquire().await.unwrap();
        for number in 1..=20 {
            let contender = contender_with(&server, number, options.clone()).await;
            let (lock, order) = (contender.lock.clone(), Arc::clone(&order));
            tasks.push(spawn(async move {
                let guard = lock.acquire().await.unwrap();
                order.lock().push((number, guard.token()));
                sleep(Duration::from_millis(3)).await;
                guard.release().await.unwrap();
            }));
            let waiting = usize::try_from(number).unwrap() + 1;
            until("it waits", || queue(&server).len() == waiting).await;
            contenders.push(contender);
        }
        guard.release().await.unwrap();
        for task in tasks {
            soon(task).await.unwrap();
        }
        let order = order.lock();
        assert!(order.windows(2).all(|two| two[0] < two[1]), "{order:?}");
        assert_eq!(order.len(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn contender_that_leaves_the_middle_of_the_queue_grants_no_lock() {
    for options in both_ways() {
        let server = start().await;
        let holder = contender_with(&server, 0, options.clone()).await;
        let guard = holder.lock.acquire().await.unwrap();
        let mut waiting = Vec::new();
        let mut contenders = Vec::new();
        for number in 1..=4 {
            let contender = contender_with(&server, number, options.clone()).await;
            let lock = contender.lock.clone();
            waiting.push(spawn(async move { lock.acquire().await.unwrap() }));
            let count = usize::try_from(number).unwrap() + 1;
            until("it waits", || queue(&server).len() == count).await;
            contenders.push(contender);
        }
        // The second gives up; the third loses its session.
        waiting[1].abort();
        until("the second has left", || queue(&server).len() == 4).await;
        server
            .expire(contenders[2].client.session_id().unwrap())
            .unwrap();
        until("the third is at the end", || queue(&server).len() == 4).await;
        sleep(Duration::from_secs(1)).await;
        assert!(
            [0, 2, 3]
                .iter()
                .all(|at: &usize| !waiting[*at].is_finished())
        );
        drop(guard);
        for at in [0, 3, 2] {
            let guard = soon(&mut waiting[at]).await.unwrap();
            assert_eq!(queue(&server)[0], guard.path()[PATH.len() + 1..]);
            drop(guard);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h38_acquire_within_zero_is_one_attempt() {
    for options in both_ways() {
        let server = start().await;
        let first = contender_with(&server, 1, options.clone()).await;
        let second = contender_with(&server, 2, options).await;
        let guard = first.lock.acquire().within(Duration::ZERO).await.unwrap();
        let error = second
            .lock
            .acquire()
            .within(Duration::ZERO)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "lock \"/locks/a\": not free within 0 ms");
        until("its znode is deleted", || queue(&server).len() == 1).await;
        drop(guard);
    }
}

#[tokio::test(start_paused = true)]
async fn h27_deadline_is_not_overrun() {
    let server = start().await;
    let first = contender(&server, 1).await;
    let second = contender(&server, 2).await;
    let _guard = first.lock.acquire().await.unwrap();
    second.link.delay_replies(Duration::from_millis(40));
    let begun = clock::now();
    let within = Duration::from_millis(500);
    second.lock.acquire().within(within).await.unwrap_err();
    let took = begun.elapsed();
    assert!(
        (within..within + Duration::from_millis(40)).contains(&took),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn deadline_is_kept_without_a_connection() {
    let server = start().await;
    let holder = contender(&server, 1).await;
    holder.link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let begun = clock::now();
    let within = Duration::from_secs(2);
    let error = holder.lock.acquire().within(within).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn peek_writes_nothing() {
    let server = start().await;
    let first = contender(&server, 1).await;
    let _guard = first.lock.acquire().await.unwrap();
    let mut options = LockOptions::default();
    options.peek = true;
    let second = contender_with(&server, 2, options).await;
    let zxid = || server.get(PATH).unwrap().1.pzxid;
    let before = zxid();
    assert!(second.lock.try_acquire().await.unwrap().is_none());
    assert_eq!(zxid(), before);
}

#[tokio::test(start_paused = true)]
async fn h19_negative_sequence_number_blocks_all_contenders() {
    let server = start().await;
    let contender = contender(&server, 1).await;
    // The test cannot raise the counter that far; it creates a znode with such a name instead.
    let (client, _) = kit::client(&server, 2).await;
    for path in ["/locks", PATH] {
        create(&client, path).await;
    }
    let stray = format!("{PATH}/_c_0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-lock--000000001");
    client
        .create(&stray, b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    // The name sorts before all others, as in Java, and blocks them.
    assert!(contender.lock.try_acquire().await.unwrap().is_none());
    client.delete(&stray, None).await.unwrap();
    drop(contender.lock.acquire().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn ephemeral_parent_is_an_error() {
    let server = start().await;
    let contender = contender(&server, 1).await;
    let client = &contender.client;
    client
        .create("/locks", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    let error = contender.lock.acquire().await.unwrap_err();
    let LockError::Client(error) = error else {
        panic!("{error}");
    };
    assert!(error.is(ErrorCode::NoChildrenForEphemerals), "{error}");
}

#[tokio::test(start_paused = true)]
async fn h46_closing_the_client_is_reported_as_a_loss() {
    let server = start().await;
    let contender = contender(&server, 1).await;
    let waiter = kit::contender(&server, 2).await;
    let guard = contender.lock.acquire().await.unwrap();
    let waiting = waiter.waiting();
    until("it waits", || queue(&server).len() == 2).await;
    waiter.client.close().await;
    let error = soon(waiting).await.unwrap().unwrap_err();
    assert!(
        error.to_string().contains("the client is closed"),
        "{error}"
    );
    let error = waiter.lock.acquire().await.unwrap_err();
    assert!(
        error.to_string().contains("the client is closed"),
        "{error}"
    );
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn znodes_say_which_process_contends() {
    let server = start().await;
    let one = contender(&server, 1).await;
    let guard = one.lock.acquire().await.unwrap();
    let mut options = LockOptions::default();
    let own = String::from_utf8(options.data.clone()).unwrap();
    let pid = format!(" pid {} ", std::process::id());
    assert!(own.contains(&pid) && own.len() <= 255, "{own:?}");
    assert!(
        !own.contains(char::is_control) && own.trim() == own,
        "{own:?}"
    );
    options.data = b"other".to_vec();
    let two = contender_with(&server, 2, options).await;
    let waiting = spawn(async move { two.lock.acquire().await });
    until("both are in the queue", || queue(&server).len() == 2).await;
    let contenders = one.lock.participants_with_data().await.unwrap();
    assert_eq!(contenders[0], (guard.path().to_owned(), own.into_bytes()));
    assert_eq!(contenders[1].1, b"other");
    drop(guard);
    drop(soon(waiting).await.unwrap().unwrap());
    until("the queue is empty", || queue(&server).is_empty()).await;
    assert_eq!(one.lock.participants_with_data().await.unwrap(), []);
}
