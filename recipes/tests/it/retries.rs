//! What is asked again: after refusals that pass, after reconnects, in later sessions.

use std::time::Duration;

use minikeeper::{Fault, OpCode};
use minikeeper_client::ErrorCode;
use minikeeper_recipes::{
    InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2, LockError, LockOptions,
    Revoker,
};
use tokio::time::{sleep, timeout};

use crate::{
    every::Recipe,
    kit::{PATH, both_ways, client, contender, queue, soon, spawn, start, until},
    sweeps::{STEPS_STRIDE, cases, in_case, scene, steps},
    wire::{self, Wire},
};

const SECOND: Duration = Duration::from_secs(1);

/// Those after which a request is made again.
const PASSING: [ErrorCode; 6] = [
    ErrorCode::ConnectionLoss,
    ErrorCode::OperationTimeout,
    ErrorCode::RequestTimeout,
    ErrorCode::SessionExpired,
    ErrorCode::SessionMoved,
    ErrorCode::ThrottledOp,
];

/// A create that waited for a connection went out in the session after the one it was made in, and
/// its reply was lost: the znode was looked for in the old session alone, stayed, and its maker
/// waited behind it for ever.
#[tokio::test(start_paused = true)]
async fn reply_lost_after_a_change_of_session_leaves_no_orphan() {
    for recipe in [
        Recipe::Mutex,
        Recipe::Read,
        Recipe::Write,
        Recipe::Semaphore,
        Recipe::Leases,
        Recipe::SemaphoreMutex,
    ] {
        for case in cases(recipe) {
            for expired in 0..4 {
                for lost in steps(STEPS_STRIDE / 4).take_while(|&step| step < 8) {
                    let lost = expired + 1 + lost;
                    let run = async {
                        let scene = scene(&case).await;
                        let session = scene.client.session_id().unwrap();
                        let future = scene.begin().await;
                        scene.wire.arm([
                            wire::Fault::ExpireBehind(session, expired),
                            wire::Fault::LoseReply(lost),
                        ]);
                        // Shorter than a session: no session ends in between.
                        let kept = timeout(3 * SECOND, future).await;
                        let kept = kept.expect("it does not wait for itself").unwrap();
                        soon(kept.give_back()).await;
                        scene.wire.arm(None);
                        scene.check().await;
                    };
                    in_case(&case, ("expiring", expired), lost, run).await;
                }
            }
        }
    }
}

/// A server gives another session and lets the old one live: the znode made in that was in its
/// maker's way until it expired.
#[tokio::test(start_paused = true)]
async fn own_znode_of_an_earlier_session_is_not_waited_for() {
    for options in both_ways() {
        let server = start().await;
        let other = contender(&server, 1).await;
        let held = other.lock.acquire().await.unwrap();
        let wire = Wire::to(&server);
        let lock = InterProcessMutex::with_options(wire.client(2).await, PATH, options).unwrap();
        let waiting = spawn(async move { lock.acquire().await });
        until("it waits", || queue(&server).len() == 2).await;
        wire.forget_sessions();
        wire.cut();
        until("it waits in another session", || {
            server.sessions().len() == 3
        })
        .await;
        sleep(Duration::from_millis(100)).await;
        assert_eq!(queue(&server).len(), 2, "the old znode is deleted");
        drop(held);
        let guard = timeout(SECOND, waiting)
            .await
            .expect("the old session lives");
        assert_eq!(
            queue(&server),
            [&guard.unwrap().unwrap().path()[PATH.len() + 1..]]
        );
    }
}

/// These as the answer to a create made mutexes and semaphores fail.
#[tokio::test(start_paused = true)]
async fn refusals_that_pass_are_waited_out() {
    for code in PASSING {
        for recipe in [
            Recipe::Mutex,
            Recipe::Semaphore,
            Recipe::Write,
            Recipe::Read,
        ] {
            for options in both_ways() {
                let server = start().await;
                let (client, _) = client(&server, 1).await;
                let fault = Fault::error(code)
                    .on(OpCode::Create)
                    .at("/locks/a/**")
                    .once();
                let refusing = server.inject(fault).unwrap();
                let kept = soon(recipe.enter(&client, &options)).await;
                assert!(kept.is_ok(), "{recipe:?}, {code}: {:?}", kept.err());
                assert_eq!(refusing.hits(), 1, "{recipe:?}, {code}");
            }
        }
    }
}

/// A throttled waiter asked 16,000 times a second.
#[tokio::test(start_paused = true)]
async fn throttled_waiter_asks_ever_more_seldom() {
    for op in [OpCode::GetChildren, OpCode::GetData, OpCode::Create] {
        for recipe in [
            Recipe::Mutex,
            Recipe::Semaphore,
            Recipe::Polling,
            Recipe::Herd,
        ] {
            let server = start().await;
            let (other, _) = client(&server, 1).await;
            let options = LockOptions::default();
            let held = recipe.enter(&other, &options).await.unwrap();
            let wire = Wire::to(&server);
            let throttled = wire.client(2).await;
            let session = throttled.session_id().unwrap();
            let fault = Fault::error(ErrorCode::ThrottledOp)
                .on(op)
                .of(session)
                .optional();
            let throttling = server.inject(fault).unwrap();
            let waiting = spawn(recipe.enter(&throttled, &options));
            wire.arm(None);
            sleep(60 * SECOND).await;
            // Four at a time with the longest pause in between, the client's pings, and the short
            // pauses first; a polling lock asks ten times a second.
            let most = if recipe == Recipe::Polling { 700 } else { 400 };
            let requests = wire.requests();
            assert!(requests <= most, "{recipe:?}, {op:?}: {requests} requests");
            drop(throttling);
            held.give_back().await;
            let kept = timeout(3 * SECOND, waiting).await;
            kept.expect("it is heard soon").unwrap().unwrap();
        }
    }
}

/// What ends a wait with a deadline while nothing is answered is the deadline.
#[tokio::test(start_paused = true)]
async fn throttled_wait_ends_at_its_deadline() {
    for code in [ErrorCode::ThrottledOp, ErrorCode::ConnectionLoss] {
        for within in [Duration::ZERO, 3 * SECOND] {
            for options in both_ways() {
                let server = start().await;
                let one = contender(&server, 1).await;
                let path = "/locks/semaphore";
                let semaphore = InterProcessSemaphoreV2::with_options(
                    one.client.clone(),
                    path,
                    1,
                    options.clone(),
                )
                .unwrap();
                let _refusing = server.inject(Fault::error(code)).unwrap();
                let mutex =
                    InterProcessMutex::with_options(one.client.clone(), PATH, options.clone());
                let lock = InterProcessReadWriteLock::with_options(
                    one.client.clone(),
                    "/locks/rw",
                    options,
                );
                let (mutex, lock) = (mutex.unwrap(), lock.unwrap());
                // An answer that was asked for in time is waited for a second longer.
                let most = within + 2 * SECOND;
                let errors = [
                    timeout(most, mutex.acquire().within(within))
                        .await
                        .map(Result::err),
                    timeout(most, semaphore.acquire().within(within))
                        .await
                        .map(Result::err),
                    timeout(most, lock.acquire_read().within(within))
                        .await
                        .map(Result::err),
                    timeout(most, lock.acquire_write().within(within))
                        .await
                        .map(Result::err),
                ];
                for error in errors {
                    let error = error.expect("it does not overrun").expect("it is refused");
                    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
                }
            }
        }
    }
}

/// The event that says that a lease is free gets lost with the connection, and the client has seen
/// later changes: the watch is set again as if nothing had happened.
#[tokio::test(start_paused = true)]
async fn waiters_look_again_after_a_reconnect() {
    for recipe in [
        Recipe::Mutex,
        Recipe::Semaphore,
        Recipe::Write,
        Recipe::SemaphoreMutex,
    ] {
        for options in both_ways() {
            let server = start().await;
            let (other, _) = client(&server, 1).await;
            let held = recipe.enter(&other, &options).await.unwrap();
            let wire = Wire::to(&server);
            let waiter = wire.client(2).await;
            let waiting = spawn(recipe.enter(&waiter, &options));
            sleep(SECOND).await;
            let losing = server.inject(Fault::hold_events()).unwrap();
            held.give_back().await;
            // A reply tells the client of a later change than the one it has not been told of.
            other
                .create("/later", b"", minikeeper_client::CreateMode::Persistent)
                .await
                .unwrap();
            waiter.exists("/later").await.unwrap();
            let connections = waiter.connections();
            wire.cut();
            until("it is connected again", || {
                waiter.connections() > connections
            })
            .await;
            drop(losing);
            let kept = timeout(SECOND, waiting).await;
            kept.unwrap_or_else(|_| panic!("{recipe:?} sleeps on"))
                .unwrap()
                .unwrap();
        }
    }
}

/// A holder that waited for its revocation asked without a pause when it was refused.
#[tokio::test(start_paused = true)]
async fn waiting_for_revocation_is_patient_with_refusals() {
    for code in [ErrorCode::ThrottledOp, ErrorCode::NoAuth] {
        let server = start().await;
        let wire = Wire::to(&server);
        let holder = wire.client(1).await;
        let lock = InterProcessMutex::new(holder, PATH).unwrap();
        let guard = lock.acquire().await.unwrap();
        let (other, _) = client(&server, 2).await;
        let fault = Fault::error(code).on(OpCode::GetData);
        let refusing = server.inject(fault).unwrap();
        let path = guard.path().to_owned();
        let asked = spawn(async move { guard.revocation_requested().await });
        wire.arm(None);
        sleep(60 * SECOND).await;
        let requests = wire.requests();
        assert!(requests <= 200, "{code}: {requests} requests");
        Revoker::attempt_revoke(&other, &path).await.unwrap();
        drop(refusing);
        let asked = timeout(2 * SECOND, asked).await;
        assert_eq!(asked.expect("it is heard soon").unwrap(), Ok(()));
    }
}
