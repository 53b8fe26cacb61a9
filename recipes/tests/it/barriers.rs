//! The barrier and the double barrier. Tests that Curator's `TestDistributedBarrier` and
//! `TestDistributedDoubleBarrier` also have keep their names.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::{DistributedBarrier, DistributedDoubleBarrier, LockError};
use tokio::time::{sleep, timeout};

use crate::{
    every_lock::Polls,
    kit::{PATH, client, queue, soon, spawn, start, until},
    link::{Link, Mode},
};

async fn barrier(server: &Arc<Server>, seed: u64) -> (DistributedBarrier, Client, Link) {
    let (client, link) = client(server, seed).await;
    let barrier = DistributedBarrier::new(client.clone(), PATH).unwrap();
    (barrier, client, link)
}

async fn double(
    server: &Arc<Server>,
    seed: u64,
    members: usize,
) -> (DistributedDoubleBarrier, Client, Link) {
    let (client, link) = client(server, seed).await;
    let barrier = DistributedDoubleBarrier::new(client.clone(), PATH, members).unwrap();
    (barrier, client, link)
}

async fn until_clean(server: &Server, clients: &[&Client]) {
    until("nothing is pending", || {
        clients.iter().all(|client| client.clean_ups_pending() == 0)
    })
    .await;
    until("no watch is left", || !server.dump().contains("watch")).await;
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    let server = start().await;
    let (barrier, _, _) = barrier(&server, 1).await;
    let (other, client, _) = self::barrier(&server, 2).await;
    assert!(barrier.set().await.unwrap());
    assert!(!other.set().await.unwrap());
    let waiting = spawn({
        let other = other.clone();
        async move { other.wait().await }
    });
    sleep(Duration::from_secs(60)).await;
    assert!(!waiting.is_finished());
    assert!(barrier.remove().await.unwrap());
    soon(waiting).await.unwrap().unwrap();
    assert!(!other.remove().await.unwrap());
    other.wait().within(Duration::ZERO).await.unwrap();
    until_clean(&server, &[&client]).await;
}

#[tokio::test(start_paused = true)]
async fn test_multi_client() {
    // One client sets the barrier and leaves; many wait; another one removes it.
    let server = start().await;
    let (setter, setting, _) = barrier(&server, 1).await;
    setter.set().await.unwrap();
    setting.close().await;
    let mut waiting = Vec::new();
    for seed in 2..12 {
        let (barrier, _, _) = barrier(&server, seed).await;
        waiting.push(spawn(async move { barrier.wait().await }));
    }
    sleep(Duration::from_secs(60)).await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    let (remover, _, _) = barrier(&server, 20).await;
    assert!(remover.remove().await.unwrap());
    for task in waiting {
        soon(task).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn test_no_barrier() {
    let server = start().await;
    let (barrier, client, _) = barrier(&server, 1).await;
    soon(barrier.wait()).await.unwrap();
    until_clean(&server, &[&client]).await;
}

#[tokio::test(start_paused = true)]
async fn curator_654_watches_do_not_pile_up() {
    // Some waits time out, others wait for a barrier that does not exist.
    let server = start().await;
    let (barrier, client, _) = barrier(&server, 1).await;
    for _ in 0..10 {
        barrier.wait().await.unwrap();
    }
    until_clean(&server, &[&client]).await;
    barrier.set().await.unwrap();
    for _ in 0..10 {
        let within = Duration::from_millis(100);
        let error = barrier.wait().within(within).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    }
    until_clean(&server, &[&client]).await;
}

#[tokio::test(start_paused = true)]
async fn wait_survives_lost_connections_and_sessions() {
    let server = start().await;
    let (barrier, client, link) = barrier(&server, 1).await;
    let (other, changer, _) = self::barrier(&server, 2).await;
    barrier.set().await.unwrap();
    let waiting = spawn({
        let barrier = barrier.clone();
        async move { barrier.wait().await }
    });
    sleep(Duration::from_secs(1)).await;
    changer.set_data(PATH, b"new", None).await.unwrap();
    link.cut();
    sleep(Duration::from_secs(1)).await;
    server.expire(client.session_id().unwrap()).unwrap();
    sleep(Duration::from_secs(10)).await;
    assert!(!waiting.is_finished());
    // The barrier is removed while the connection is down, so the event is lost.
    link.set(Mode::Cut);
    sleep(Duration::from_secs(1)).await;
    other.remove().await.unwrap();
    link.set(Mode::Pass);
    soon(waiting).await.unwrap().unwrap();
    // `set` and `remove` wait for a connection.
    link.set(Mode::Cut);
    sleep(Duration::from_millis(100)).await;
    let (set, ()) = tokio::join!(soon(barrier.set()), async {
        sleep(Duration::from_secs(1)).await;
        link.set(Mode::Pass);
    });
    assert!(set.unwrap());
}

#[tokio::test(start_paused = true)]
async fn test_double_basic() {
    let server = start().await;
    let members = 5;
    let all_inside = Arc::new(AtomicUsize::new(0));
    let all_left = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    let mut clients = Vec::new();
    for seed in 1..=5 {
        let (barrier, client, _) = double(&server, seed, members).await;
        clients.push(client);
        let (inside, left) = (Arc::clone(&all_inside), Arc::clone(&all_left));
        tasks.push(spawn(async move {
            sleep(Duration::from_secs(seed)).await;
            let member = barrier.enter().await.unwrap();
            inside.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(10 * seed)).await;
            assert_eq!(inside.load(Ordering::SeqCst), members);
            left.fetch_add(1, Ordering::SeqCst);
            member.leave().await.unwrap();
            assert_eq!(left.load(Ordering::SeqCst), members);
        }));
        sleep(Duration::from_millis(100)).await;
        assert_eq!(all_inside.load(Ordering::SeqCst), 0);
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert!(queue(&server).is_empty(), "{:?}", queue(&server));
    until_clean(&server, &clients.iter().collect::<Vec<_>>()).await;
}

#[tokio::test(start_paused = true)]
async fn test_over_subscribed() {
    // More members come than are needed: they may begin too, and all end together.
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 1..=7 {
        let (barrier, _, _) = double(&server, seed, 4).await;
        tasks.push(spawn(async move {
            let member = barrier.enter().await.unwrap();
            sleep(Duration::from_secs(seed)).await;
            member.leave().await.unwrap();
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert!(queue(&server).is_empty(), "{:?}", queue(&server));
}

#[tokio::test(start_paused = true)]
async fn barrier_is_usable_in_rounds() {
    let server = start().await;
    let (one, _, _) = double(&server, 1, 2).await;
    let (other, _, _) = double(&server, 2, 2).await;
    for _ in 0..5 {
        let (first, second) = soon(async { tokio::join!(one.enter(), other.enter()) }).await;
        let (first, second) = (first.unwrap(), second.unwrap());
        let (first, second) = soon(async { tokio::join!(first.leave(), second.leave()) }).await;
        first.unwrap();
        second.unwrap();
        assert!(queue(&server).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn member_that_timed_out_does_not_count() {
    let server = start().await;
    let (one, client, _) = double(&server, 1, 2).await;
    let within = Duration::from_secs(1);
    let error = one.enter().within(within).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    until("its znode is deleted", || queue(&server).is_empty()).await;
    until_clean(&server, &[&client]).await;
    let (other, _, _) = double(&server, 2, 2).await;
    assert!(timeout(within, other.enter()).await.is_err());
    // `leave` can time out too.
    let (first, second) = soon(async { tokio::join!(one.enter(), other.enter()) }).await;
    let error = first.unwrap().leave().within(within).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    soon(second.unwrap().leave()).await.unwrap();
    until("it is empty", || queue(&server).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn sessions_expire_and_links_are_cut_in_every_phase() {
    // Each reply takes a millisecond, so that each delay hits another step.
    for is_expired in [false, true] {
        for delay_ms in 0..12 {
            let server = start().await;
            let (one, client, link) = double(&server, 1, 2).await;
            link.delay_replies(Duration::from_millis(1));
            let (other, _, _) = double(&server, 2, 2).await;
            let fault = async || {
                sleep(Duration::from_millis(delay_ms)).await;
                if is_expired {
                    server.expire(client.session_id().unwrap()).unwrap();
                } else {
                    link.cut();
                }
            };
            let (first, second, ()) = soon(async {
                let second = async {
                    sleep(Duration::from_secs(20)).await;
                    other.enter().await
                };
                tokio::join!(one.enter(), second, fault())
            })
            .await;
            let (first, second) = (first.unwrap(), second.unwrap());
            assert_eq!(queue(&server).len(), 3, "two and ready");
            let (first, second, ()) = soon(async {
                let second = async {
                    sleep(Duration::from_secs(20)).await;
                    second.leave().await
                };
                tokio::join!(first.leave(), second, fault())
            })
            .await;
            first.unwrap();
            second.unwrap();
            until("it is empty", || queue(&server).is_empty()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_await_point_leaves_no_member() {
    let mut polls = 0;
    loop {
        let server = start().await;
        let (one, client, _) = double(&server, 1, 2).await;
        let limited = {
            let enter = pin!(one.enter());
            let limited = Polls {
                future: enter,
                left: polls,
            };
            timeout(Duration::from_secs(1), limited).await
        };
        until("its znode is deleted", || queue(&server).is_empty()).await;
        until_clean(&server, &[&client]).await;
        // Drop at the same points while leaving.
        let (other, second, _) = double(&server, 2, 2).await;
        let (leaver, stayer) = soon(async { tokio::join!(one.enter(), other.enter()) }).await;
        let (leaver, stayer) = (leaver.unwrap(), stayer.unwrap());
        {
            let leave = pin!(leaver.leave());
            let limited = Polls {
                future: leave,
                left: polls,
            };
            drop(timeout(Duration::from_secs(1), limited).await);
        }
        until("one is left", || queue(&server).len() == 2).await;
        soon(stayer.leave()).await.unwrap();
        assert!(queue(&server).is_empty());
        until_clean(&server, &[&client, &second]).await;
        if limited.is_err() {
            break;
        }
        polls += 1;
    }
    assert!(polls >= 2, "{polls} await points");
}

/// A member that had left waited for a member of the next round, which waited for it.
#[tokio::test(start_paused = true)]
async fn slow_member_does_not_wait_for_the_next_round() {
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 1..=4 {
        let (barrier, _, link) = double(&server, seed, 4).await;
        tasks.push(spawn(async move {
            for round in 0..12 {
                let member = barrier.enter().await.unwrap();
                // In each round another member is slow.
                link.delay_replies(Duration::from_millis((seed + round) % 4 * 7));
                member.leave().await.unwrap();
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert!(queue(&server).is_empty(), "{:?}", queue(&server));
}

/// A member that had lost its session waited for the next round when it left.
#[tokio::test(start_paused = true)]
async fn member_without_a_session_does_not_wait_for_the_next_round() {
    let server = start().await;
    let (one, client, _) = double(&server, 1, 2).await;
    let (other, _, _) = double(&server, 2, 2).await;
    for _ in 0..3 {
        let (lost, member) = soon(async { tokio::join!(one.enter(), other.enter()) }).await;
        server.expire(client.session_id().unwrap()).unwrap();
        soon(member.unwrap().leave()).await.unwrap();
        // It enters again before the other one has left.
        let again = spawn({
            let other = other.clone();
            async move { other.enter().await }
        });
        sleep(Duration::from_secs(1)).await;
        soon(lost.unwrap().leave()).await.unwrap();
        let (member, again) = soon(async { tokio::join!(one.enter(), again) }).await;
        let (member, again) = (member.unwrap(), again.unwrap().unwrap());
        let (first, second) = soon(async { tokio::join!(member.leave(), again.leave()) }).await;
        first.unwrap();
        second.unwrap();
    }
    assert!(queue(&server).is_empty(), "{:?}", queue(&server));
}

#[tokio::test(start_paused = true)]
async fn ready_of_a_round_whose_members_died_does_not_open_the_barrier() {
    let server = start().await;
    let (one, client, _) = double(&server, 1, 2).await;
    let (other, second, _) = double(&server, 2, 2).await;
    let (first, both) = soon(async { tokio::join!(one.enter(), other.enter()) }).await;
    // All members end without leaving.
    server.expire(client.session_id().unwrap()).unwrap();
    server.expire(second.session_id().unwrap()).unwrap();
    drop((first, both));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(queue(&server), ["ready"]);
    let alone = one.enter().within(Duration::from_secs(5)).await;
    assert!(
        matches!(alone, Err(LockError::TimedOut { .. })),
        "{alone:?}"
    );
    let (first, both) = soon(async { tokio::join!(one.enter(), other.enter()) }).await;
    let (first, both) = (first.unwrap(), both.unwrap());
    let (first, both) = soon(async { tokio::join!(first.leave(), both.leave()) }).await;
    first.unwrap();
    both.unwrap();
}
