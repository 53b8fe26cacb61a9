//! The position of an acquisition in its queue.

use std::time::Duration;

use minikeeper::{Fault, OpCode};
use minikeeper_client::ErrorCode;
use minikeeper_recipes::{
    InterProcessReadWriteLock, InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LocalHandOver,
    LockOptions, Owner, QueuePosition,
};
use tokio::time::sleep;

use crate::kit::{PATH, both_ways, client, contender_with, queue, soon, spawn, start, until};

/// Waits until this position is reached.
async fn until_ahead(position: &QueuePosition, ahead: impl Into<Option<usize>>) {
    let ahead = ahead.into();
    let reached = async {
        while position.ahead().await.unwrap() != ahead {
            sleep(Duration::from_millis(10)).await;
        }
    };
    soon(reached).await;
}

/// Begins to acquire a lock in a task, and returns its position once that is in the queue.
macro_rules! waiting {
    ($lock:expr, |$of:ident| $acquire:expr, $ahead:expr) => {{
        let ($of, position) = ($lock.clone(), QueuePosition::default());
        let task = spawn({
            let position = position.clone();
            async move { $acquire.report_to(&position).await.unwrap() }
        });
        until_ahead(&position, $ahead).await;
        (position, task)
    }};
}

#[tokio::test(start_paused = true)]
async fn those_ahead_become_fewer() {
    for options in both_ways() {
        let server = start().await;
        let lock = contender_with(&server, 1, options).await.lock;
        let guard = lock.acquire().await.unwrap();
        let (first, first_task) = waiting!(lock, |lock| lock.acquire(), 1);
        let (second, second_task) = waiting!(lock, |lock| lock.acquire(), 2);
        let (third, third_task) = waiting!(lock, |lock| lock.acquire(), 3);
        // One in between gives up: it is in no queue, and those behind it move up.
        second_task.abort();
        until_ahead(&second, None).await;
        until_ahead(&third, 2).await;
        assert_eq!(first.ahead().await.unwrap(), Some(1));
        guard.release().await.unwrap();
        let guard = soon(first_task).await.unwrap();
        assert_eq!(first.ahead().await.unwrap(), None, "it holds the lock");
        until_ahead(&third, 1).await;
        drop(guard);
        drop(soon(third_task).await.unwrap());
        assert_eq!(third.ahead().await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn contender_without_its_session_queues_at_the_end() {
    let server = start().await;
    let holder = contender_with(&server, 1, LockOptions::default()).await;
    let unlucky = contender_with(&server, 2, LockOptions::default()).await;
    let _guard = holder.lock.acquire().await.unwrap();
    let (position, _task) = waiting!(unlucky.lock, |lock| lock.acquire(), 1);
    let (behind, _other) = waiting!(holder.lock, |lock| lock.acquire(), 2);
    server.expire(unlucky.client.session_id().unwrap()).unwrap();
    until_ahead(&behind, 1).await;
    until_ahead(&position, 2).await;
}

#[tokio::test(start_paused = true)]
async fn reader_counts_writers_alone() {
    let server = start().await;
    let (client, _link) = client(&server, 1).await;
    let lock = InterProcessReadWriteLock::new(client, PATH).unwrap();
    let readers = [
        lock.acquire_read().await.unwrap(),
        lock.acquire_read().await.unwrap(),
    ];
    let (writer, writing) = waiting!(lock, |lock| lock.acquire_write(), 2);
    let (reader, reading) = waiting!(lock, |lock| lock.acquire_read(), 1);
    let (last, last_writing) = waiting!(lock, |lock| lock.acquire_write(), 4);
    drop(readers);
    let writing = soon(writing).await.unwrap();
    assert_eq!(writer.ahead().await.unwrap(), None);
    until_ahead(&reader, 1).await;
    until_ahead(&last, 2).await;
    drop(writing);
    drop(soon(reading).await.unwrap());
    drop(soon(last_writing).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn contender_of_a_semaphore_counts_those_who_wait_before_it() {
    let server = start().await;
    let (client, _link) = client(&server, 1).await;
    let licences = InterProcessSemaphoreV2::new(client.clone(), PATH, 2).unwrap();
    let leases = licences.acquire_many(2).await.unwrap();
    let (next, next_task) = waiting!(licences, |of| of.acquire(), 0);
    let (second, second_task) = waiting!(licences, |of| of.acquire_many(2), 1);
    drop(leases);
    let lease = soon(next_task).await.unwrap();
    assert_eq!(next.ahead().await.unwrap(), None);
    until_ahead(&second, 0).await;
    drop(lease);
    drop(soon(second_task).await.unwrap());
    assert_eq!(second.ahead().await.unwrap(), None);

    let mutex = InterProcessSemaphoreMutex::new(client, "/mutex").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let (next, next_task) = waiting!(mutex, |of| of.acquire(), 0);
    drop(guard);
    drop(soon(next_task).await.unwrap());
    assert_eq!(next.ahead().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn owner_and_tasks_of_one_process_have_one_place() {
    let server = start().await;
    let mut options = LockOptions::default();
    options.local_hand_over = Some(LocalHandOver::default());
    let holder = contender_with(&server, 1, LockOptions::default())
        .await
        .lock;
    let lock = contender_with(&server, 2, options).await.lock;
    let guard = holder.acquire().await.unwrap();
    let owner = Owner::new();
    let (as_owner, first) = waiting!(lock, |of| of.acquire().as_owner(&owner), 1);
    // It waits for its turn in the process.
    let (behind, second) = waiting!(lock, |of| of.acquire(), None);
    assert_eq!(queue(&server).len(), 2);
    drop(guard);
    drop(soon(first).await.unwrap());
    drop(soon(second).await.unwrap());
    assert_eq!(as_owner.ahead().await.unwrap(), None);
    assert_eq!(behind.ahead().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn later_acquisition_takes_the_position_over() {
    let server = start().await;
    let lock = contender_with(&server, 1, LockOptions::default())
        .await
        .lock;
    let _guard = lock.acquire().await.unwrap();
    let (first, first_task) = waiting!(lock, |of| of.acquire(), 1);
    let position = first.clone();
    let second = lock.clone();
    let _second_task = spawn(async move { second.acquire().report_to(&position).await });
    until_ahead(&first, 2).await;
    first_task.abort();
    until("the first has left", || queue(&server).len() == 2).await;
    assert_eq!(first.ahead().await.unwrap(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_errors_and_a_deleted_directory_is_no_queue() {
    let server = start().await;
    let lock = contender_with(&server, 1, LockOptions::default())
        .await
        .lock;
    let _guard = lock.acquire().await.unwrap();
    let (position, _task) = waiting!(lock, |of| of.acquire(), 1);
    let refusal = Fault::error(ErrorCode::NoAuth).on(OpCode::GetChildren2);
    let refusing = server.inject(refusal).unwrap();
    assert!(position.ahead().await.unwrap_err().is(ErrorCode::NoAuth));
    drop(refusing);
    assert_eq!(position.ahead().await.unwrap(), Some(1));
    let absent = Fault::error(ErrorCode::NoNode).on(OpCode::GetChildren2);
    let _absent = server.inject(absent.once()).unwrap();
    assert_eq!(position.ahead().await.unwrap(), None);
}
