//! Background tasks (latch, selector, persistent node) continue after temporary refusals, work that
//! panics, and the loss of the server. If they cannot continue, they report why.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use minikeeper::Fault;
use minikeeper_client::{Client, CreateMode, Error, ErrorCode};
use minikeeper_recipes::{
    InterProcessMutex, LatchError, LeaderLatch, LeaderSelector, LockError, PersistentNode,
    SelectorOptions,
};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{PATH, SESSION_TIMEOUT, client, queue, soon, spawn, start, until},
    link::Mode,
};

/// Temporary errors: the server has not decided about the request, so it may be retried.
const PASSING: [ErrorCode; 5] = [
    ErrorCode::ConnectionLoss,
    ErrorCode::OperationTimeout,
    ErrorCode::SessionExpired,
    ErrorCode::SessionMoved,
    ErrorCode::ThrottledOp,
];

/// The number of requests of each recipe that are refused, one at a time.
const STEPS: u64 = 8;

/// More requests than one loop makes in [`REFUSING`] with pauses that double from 20 ms to 1 s.
const REQUESTS_MAX: u64 = 60;

const REFUSING: Duration = Duration::from_secs(20);

fn requeued() -> SelectorOptions {
    let mut options = SelectorOptions::default();
    options.is_requeued = true;
    options
}

/// Starts a selector that counts its turns.
fn counting(client: &Client, options: SelectorOptions) -> (LeaderSelector, Arc<AtomicU32>) {
    let turns = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let selector = LeaderSelector::start(client.clone(), PATH, "me", options, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(sleep(Duration::from_millis(10)))
    });
    (selector.unwrap(), turns)
}

/// A single refused creation ended a latch permanently.
#[tokio::test(start_paused = true)]
async fn latch_continues_after_every_temporary_refusal() {
    for code in PASSING {
        for step in 0..STEPS {
            let server = start().await;
            let (client, _) = client(&server, 1).await;
            let fault = Fault::error(code).at("/**").skip(step).once().optional();
            let fault = server.inject(fault).unwrap();
            let latch = LeaderLatch::start(client, PATH, "me").unwrap();
            let led = soon(latch.wait()).await;
            assert!(led.is_ok(), "{code:?} at {step}: {led:?}");
            drop(fault);
            soon(latch.close()).await.unwrap();
            until("nothing is left", || queue(&server).is_empty()).await;
        }
    }
}

/// A single refused creation left a requeued selector idle.
#[tokio::test(start_paused = true)]
async fn requeued_selector_continues_after_every_temporary_refusal() {
    for code in PASSING {
        for step in 0..STEPS {
            let server = start().await;
            let (client, _) = client(&server, 1).await;
            let (selector, turns) = counting(&client, requeued());
            until("a turn", || turns.load(Ordering::Relaxed) > 0).await;
            let fault = Fault::error(code).at("/**").skip(step).once().optional();
            let fault = server.inject(fault).unwrap();
            let before = turns.load(Ordering::Relaxed);
            until("more turns", || turns.load(Ordering::Relaxed) > before + 5).await;
            drop(fault);
            let _ = soon(selector.close()).await;
            until("nothing is left", || queue(&server).is_empty()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn persistent_node_continues_after_every_temporary_refusal() {
    for code in PASSING {
        for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
            for step in 0..STEPS {
                let server = start().await;
                let (client, _) = client(&server, 1).await;
                let fault = Fault::error(code).at("/**").skip(step).once().optional();
                let fault = server.inject(fault).unwrap();
                let path = format!("{PATH}/n");
                let node = PersistentNode::start(client, &path, b"", mode).unwrap();
                let created = soon(node.created()).await;
                assert!(matches!(created, Ok(Some(_))), "{code:?}: {created:?}");
                drop(fault);
                soon(node.close()).await.unwrap();
                until("nothing is left", || queue(&server).is_empty()).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_refusals_are_errors() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let _fault = server
        .inject(Fault::error(ErrorCode::NoAuth).at("/**"))
        .unwrap();
    let is_no_auth = |error: &LockError| matches!(error, LockError::Client(error) if error.is(ErrorCode::NoAuth));
    let latch = LeaderLatch::start(client.clone(), PATH, "me").unwrap();
    let failed = soon(latch.wait()).await;
    assert!(matches!(&failed, Err(LatchError::Failed(error)) if is_no_auth(error)));
    assert_eq!(soon(latch.changes().next()).await, None);
    let (selector, _) = counting(&client, requeued());
    let failed = soon(selector.done()).await.unwrap_err();
    assert!(is_no_auth(&failed), "{failed}");
    assert_eq!(selector.last_error(), Some(failed));
    let node = PersistentNode::start(client, PATH, b"", CreateMode::Ephemeral).unwrap();
    let failed = soon(node.created()).await.unwrap_err();
    assert!(is_no_auth(&failed), "{failed}");
}

/// A leader whose reads are refused neither floods the server nor stays without a watch.
#[tokio::test(start_paused = true)]
async fn leader_whose_reads_are_refused_retries_at_a_bounded_rate_and_notices_its_deletion() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let (admin, _) = self::client(&server, 2).await;
    let latch = LeaderLatch::start(client.clone(), PATH, "me").unwrap();
    soon(latch.wait()).await.unwrap();
    let own = latch.own_path().unwrap();
    let session = client.session_id().unwrap();
    let fault = Fault::error(ErrorCode::ThrottledOp).of(session).at("/**");
    let fault = server.inject(fault).unwrap();
    admin.set_data(&own, b"else", None).await.unwrap();
    sleep(REFUSING).await;
    let hits = fault.hits();
    assert!((2..REQUESTS_MAX).contains(&hits), "{hits} requests");
    assert!(latch.has_leadership());
    drop(fault);
    sleep(Duration::from_secs(2)).await;
    admin.delete(&own, None).await.unwrap();
    until("another znode", || {
        latch.own_path().is_some_and(|path| path != own) && latch.has_leadership()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn refused_creations_are_retried_at_a_bounded_rate() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    for what in ["latch", "selector", "node", "sequential node"] {
        let fault = Fault::error(ErrorCode::ThrottledOp).at("/**");
        let fault = server.inject(fault).unwrap();
        let latch = (what == "latch").then(|| LeaderLatch::start(client.clone(), PATH, ""));
        let selector = (what == "selector").then(|| counting(&client, requeued()));
        let mode = match what {
            "node" => CreateMode::Ephemeral,
            _ => CreateMode::EphemeralSequential,
        };
        let node = what
            .ends_with("node")
            .then(|| PersistentNode::start(client.clone(), "/n/n", b"", mode));
        sleep(REFUSING).await;
        let hits = fault.hits();
        // After an unknown outcome the recipe also looks for the znode.
        assert!((10..3 * REQUESTS_MAX).contains(&hits), "{what}: {hits}");
        drop((latch, selector, node, fault));
        sleep(REFUSING).await;
    }
}

#[tokio::test(start_paused = true)]
async fn close_and_participants_return_without_a_server() {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    let latch = LeaderLatch::start(client.clone(), PATH, "me").unwrap();
    soon(latch.wait()).await.unwrap();
    let mode = CreateMode::Ephemeral;
    let node = PersistentNode::start(client.clone(), "/n", b"", mode).unwrap();
    soon(node.created()).await.unwrap();
    link.set(Mode::Cut);
    // They wait until the session is over and no new one has begun.
    let patience = 2 * SESSION_TIMEOUT + Duration::from_secs(10);
    let (asked, closed, removed) = timeout(patience, async {
        tokio::join!(latch.participants(), latch.close(), node.close())
    })
    .await
    .expect("they return in time");
    assert!(asked.is_err_and(|error| error.is_retryable()));
    assert!(closed.is_err_and(|error| error.is_retryable()));
    removed.unwrap();
    let again = timeout(patience, latch.participants()).await;
    assert!(again.expect("it returns in time").is_err());
    link.set(Mode::Pass);
    until("nothing is left", || queue(&server).is_empty()).await;
}

/// After its work panicked, a selector seemed to lead, and reported nothing.
#[tokio::test(start_paused = true)]
async fn work_that_panics_releases_the_lock_and_is_reported() {
    for is_at_once in [false, true] {
        let server = start().await;
        let (client, _) = client(&server, 1).await;
        let options = SelectorOptions::default();
        let selector = LeaderSelector::start(client.clone(), PATH, "", options, move |_| {
            assert!(!is_at_once, "no paper");
            Box::pin(async move {
                sleep(Duration::from_millis(10)).await;
                panic!("no paper");
            })
        })
        .unwrap();
        for _ in 0..3 {
            let error = soon(selector.done()).await.unwrap_err();
            assert!(
                matches!(&error, LockError::WorkPanicked { message, .. } if message == "no paper"),
                "{error}"
            );
            assert!(!selector.has_leadership() && !selector.interrupt());
            assert_eq!(selector.last_error(), Some(error));
            let lock = InterProcessMutex::new(client.clone(), PATH).unwrap();
            assert!(soon(lock.try_acquire()).await.unwrap().is_some());
            assert!(selector.requeue());
            sleep(Duration::from_millis(100)).await;
        }
        soon(selector.close()).await.unwrap();
        until("nothing is left", || queue(&server).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn requeued_selector_continues_after_panics_at_a_bounded_rate() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let turns = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let selector = LeaderSelector::start(client, PATH, "", requeued(), move |_| {
        let turn = counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            assert!(turn > 30, "no paper");
            sleep(Duration::from_millis(10)).await;
        })
    })
    .unwrap();
    sleep(Duration::from_secs(10)).await;
    let panics = turns.load(Ordering::Relaxed);
    assert!((5..25).contains(&panics), "{panics} turns in 10 s");
    until("it works", || turns.load(Ordering::Relaxed) > 40).await;
    assert!(matches!(
        selector.last_error(),
        Some(LockError::WorkPanicked { .. })
    ));
    soon(selector.close()).await.unwrap();
}

#[test]
fn starting_outside_a_runtime_is_an_error() {
    let (client, _driver) = Client::builder("nowhere").unwrap().build();
    let latch = LeaderLatch::start(client.clone(), PATH, "");
    assert!(matches!(latch, Err(Error::NoRuntime { .. })), "{latch:?}");
    let options = SelectorOptions::default();
    let selector = LeaderSelector::start(client.clone(), PATH, "", options, |_| {
        Box::pin(std::future::ready(()))
    });
    assert!(matches!(selector, Err(Error::NoRuntime { .. })));
    let error = PersistentNode::start(client, PATH, b"", CreateMode::Ephemeral).unwrap_err();
    assert_eq!(
        error.to_string(),
        "persistent node: no tokio runtime; call this within one"
    );
}

/// Two latches led at once until the server had answered `closeSession`.
#[tokio::test(start_paused = true)]
async fn closing_client_stops_leading_before_another_leads() {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    let (other, _) = self::client(&server, 2).await;
    let latch = LeaderLatch::start(client.clone(), PATH, "me").unwrap();
    soon(latch.wait()).await.unwrap();
    let next = LeaderLatch::start(other, PATH, "next").unwrap();
    until("both are there", || queue(&server).len() == 2).await;
    link.delay_replies(Duration::from_millis(500));
    let closing = spawn(async move { client.close().await });
    // Clean-ups after `closeSession` kept the client busy, so that the test's time did not pass.
    until("the next one leads", || next.has_leadership()).await;
    assert!(!latch.has_leadership(), "two lead");
    closing.await.unwrap();
}
