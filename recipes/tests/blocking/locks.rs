//! The mutex among threads and beside the async API; interrupts, loss, closing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use minikeeper_client::{Error, ErrorClass};
use minikeeper_recipes::{
    LockError, Loss, Released, Status,
    blocking::{InterProcessMutex, Interrupt},
};

use crate::{PATH, PATIENCE, client, on_thread, server, soon};

/// What one holder at a time may touch.
#[derive(Default)]
struct Resource {
    is_used: AtomicBool,
    uses: AtomicU32,
}

impl Resource {
    fn touch(&self) {
        assert!(!self.is_used.swap(true, SeqCst), "two holders at a time");
        thread::yield_now();
        self.uses.fetch_add(1, SeqCst);
        self.is_used.store(false, SeqCst);
    }
}

#[test]
fn threads_of_one_client_and_of_several_and_tasks_exclude_each_other() {
    const EACH: u32 = 5;
    let server = server();
    let resource = Arc::new(Resource::default());
    let shared = InterProcessMutex::new(&client(&server), PATH).unwrap();
    let own = || InterProcessMutex::new(&client(&server), PATH).unwrap();
    let locks = [shared.clone(), shared.clone(), shared, own(), own()];
    let mut contenders: Vec<_> = locks
        .into_iter()
        .map(|lock| {
            let resource = Arc::clone(&resource);
            on_thread(move || {
                for _ in 0..EACH {
                    let guard = lock.acquire().unwrap();
                    resource.touch();
                    guard.release().unwrap();
                }
            })
        })
        .collect();
    let (address, tasks) = (server.connect_string(), Arc::clone(&resource));
    contenders.push(on_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = minikeeper_client::Client::connect(&address).await.unwrap();
            let lock = minikeeper_recipes::InterProcessMutex::new(client, PATH).unwrap();
            for _ in 0..EACH {
                let guard = lock.acquire().await.unwrap();
                tasks.touch();
                guard.release().await.unwrap();
            }
        });
    }));
    for contender in &contenders {
        soon(contender);
    }
    assert_eq!(resource.uses.load(SeqCst), 6 * EACH);
}

#[test]
fn acquire_of_a_held_lock_ends_at_its_limit_and_leaves_the_queue() {
    let server = server();
    let lock = InterProcessMutex::new(&client(&server), PATH).unwrap();
    let guard = lock.acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    let late = lock.acquire_timeout(Duration::from_millis(20));
    assert!(matches!(late, Err(LockError::TimedOut { .. })), "{late:?}");
    server.until_children(PATH, 1, PATIENCE).unwrap();
    assert_eq!(guard.release().unwrap(), Released::Done);
    assert!(lock.try_acquire().unwrap().is_some());
}

#[test]
fn guard_moves_to_another_thread_whose_drop_releases_the_lock() {
    let server = server();
    let lock = InterProcessMutex::new(&client(&server), PATH).unwrap();
    let guard = lock.acquire().unwrap();
    let next = lock.clone();
    let waiting = on_thread(move || next.acquire().unwrap());
    server.until_children(PATH, 2, PATIENCE).unwrap();
    soon(&on_thread(move || drop(guard)));
    assert_eq!(soon(&waiting).status(), Status::Held);
}

#[test]
fn reentered_lock_is_released_with_the_last_guard() {
    let server = server();
    let lock = InterProcessMutex::new(&client(&server), PATH).unwrap();
    let outer = lock.acquire().unwrap();
    let inner = outer.reenter().unwrap();
    assert_eq!(outer.release().unwrap(), Released::StillHeld);
    assert_eq!(inner.release().unwrap(), Released::Done);
}

#[test]
fn guard_reports_a_lost_session() {
    let server = server();
    let client = client(&server);
    let guard = InterProcessMutex::new(&client, PATH)
        .unwrap()
        .acquire()
        .unwrap();
    let session = client.session_id().unwrap();
    let waiting = on_thread(move || {
        let loss = guard.lost().unwrap();
        (loss, guard.status())
    });
    server.expire(session).unwrap();
    let (loss, status) = soon(&waiting);
    assert!(matches!(loss, Loss::SessionOver | Loss::NodeDeleted));
    assert!(matches!(status, Status::Lost(_)));
}

#[test]
fn interrupted_acquire_leaves_the_queue_and_its_guards_can_be_released() {
    let server = server();
    let client = client(&server);
    let holder = InterProcessMutex::new(&client, PATH).unwrap();
    let interrupt = Interrupt::default();
    let lock = InterProcessMutex::new(&client.with_interrupt(&interrupt), PATH).unwrap();
    // A guard that was acquired before.
    let other = InterProcessMutex::new(&client.with_interrupt(&interrupt), "/locks/b").unwrap();
    let earlier = other.acquire().unwrap();

    let guard = holder.acquire().unwrap();
    let waiter = lock.clone();
    let waiting = on_thread(move || waiter.acquire());
    server.until_children(PATH, 2, PATIENCE).unwrap();
    interrupt.trigger();
    let error = soon(&waiting).expect_err("the lock is held");
    let LockError::Client(error @ Error::Interrupted { .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(
        (error.class(), error.is_outcome_unknown()),
        (ErrorClass::Refused, true)
    );
    server.until_children(PATH, 1, PATIENCE).unwrap();

    guard.release().unwrap();
    let later = lock.acquire();
    assert!(later.is_err(), "it stays triggered");
    assert_eq!(earlier.release().unwrap(), Released::Done);
    interrupt.reset();
    lock.acquire_timeout(PATIENCE).unwrap();
}

#[test]
fn closing_the_client_ends_the_waits_of_its_threads() {
    let server = server();
    let holder = InterProcessMutex::new(&client(&server), PATH).unwrap();
    let _guard = holder.acquire().unwrap();
    let client = client(&server);
    let lock = InterProcessMutex::new(&client, PATH).unwrap();
    let waiting = on_thread(move || lock.acquire());
    server.until_children(PATH, 2, PATIENCE).unwrap();
    client.close().unwrap();
    match soon(&waiting) {
        Err(LockError::Client(error)) => assert_eq!(error.class(), ErrorClass::Closed, "{error}"),
        other => panic!("the client was closed, but the acquire returned {other:?}"),
    }
    server.until_children(PATH, 1, PATIENCE).unwrap();
}
