//! Retries after temporary refusals, after reconnects and in later sessions.

use std::time::Duration;

use minikeeper::{Fault, OpCode};
use minikeeper_client::ErrorCode;
use minikeeper_recipes::{
    InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2, LockError, LockOptions,
    Revoker,
};
use tokio::time::{sleep, timeout};

use crate::{
    error_sweep::PASSING,
    every_recipe::Recipe,
    kit::{PATH, both_ways, client, contender, queue, soon, spawn, start, until},
    sweeps::{STEPS_STRIDE, cases, in_case, scene, steps},
    wire::{self, Wire},
};

const SECOND: Duration = Duration::from_secs(1);

/// A create that waited for a connection was sent in the session after the one in which it was
/// made, and its reply was lost: the contender looked for the znode only in the old session, the
/// znode stayed, and the contender waited behind it forever.
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
                            wire::Fault::ExpireAfter(session, expired),
                            wire::Fault::LoseReply(lost),
                        ]);
                        // This is shorter than a session timeout, so no session ends meanwhile.
                        let kept = timeout(3 * SECOND, future).await;
                        let kept = kept
                            .expect("the contender does not wait for itself")
                            .unwrap();
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

/// A server replaced a session and let the old one live: the contender's old znode blocked it until
/// the old session expired.
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
        assert_eq!(queue(&server).len(), 2, "the old znode was not deleted");
        drop(held);
        let guard = timeout(SECOND, waiting)
            .await
            .expect("the grant does not wait for the old session");
        assert_eq!(
            queue(&server),
            [&guard.unwrap().unwrap().path()[PATH.len() + 1..]]
        );
    }
}

/// A temporary refusal of a create made mutexes and semaphores fail.
#[tokio::test(start_paused = true)]
async fn temporary_refusals_of_a_create_are_retried() {
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

/// A throttled waiter sent 16,000 requests a second.
#[tokio::test(start_paused = true)]
async fn throttled_waiter_backs_off() {
    for op in [OpCode::GetChildren, OpCode::GetData, OpCode::Create] {
        for recipe in [Recipe::Mutex, Recipe::Semaphore] {
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
            // This allows four requests per longest pause, the client's pings, and the short pauses
            // at first.
            let requests = wire.requests();
            assert!(requests <= 400, "{recipe:?}, {op:?}: {requests} requests");
            drop(throttling);
            held.give_back().await;
            let kept = timeout(3 * SECOND, waiting).await;
            kept.expect("it is granted in time").unwrap().unwrap();
        }
    }
}

/// While the server refuses everything, a wait ends at its deadline.
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
                // A reply to a request made before the deadline may take a second longer.
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
                    let error = error
                        .expect("the wait ends in time")
                        .expect("the wait fails");
                    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
                }
            }
        }
    }
}

/// The event of a release was lost with the connection after the client had seen later changes: the
/// watch was registered again, and did not fire.
#[tokio::test(start_paused = true)]
async fn waiters_read_again_after_a_reconnect() {
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
            // A reply shows the client a later change than the one whose event is held back.
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
            kept.unwrap_or_else(|_| panic!("{recipe:?} does not wake up"))
                .unwrap()
                .unwrap();
        }
    }
}

/// When the server refused its reads, a holder that waited for its revocation sent requests without
/// a pause.
#[tokio::test(start_paused = true)]
async fn wait_for_revocation_backs_off_after_refusals() {
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
        assert_eq!(asked.expect("it is noticed in time").unwrap(), Ok(()));
    }
}
