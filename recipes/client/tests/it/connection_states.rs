//! Curator's tests of connection states and retries, as far as they apply to this client
//! (`docs/curator-recipes.md` section 15.7).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper_client::{Client, Connecting, ConnectionState, CreateMode, Epoch, LostReason};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{PATIENCE, SESSION_TIMEOUT, scene, state, until},
    link::Mode,
};

#[tokio::test(start_paused = true)]
async fn test_connection_state_recovers_from_unexpected_expired_connection() {
    // The session expires while the connection is down.
    let scene = scene().await;
    let mut states = scene.client.states();
    let session = scene.client.session_id().unwrap();
    scene.link.set(Mode::Cut);
    let suspended = states.next().await.unwrap();
    assert!(matches!(suspended, ConnectionState::Suspended { .. }));
    scene.server.expire(session).unwrap();
    scene.link.set(Mode::Pass);
    let (epoch, reason) = (Epoch(1), LostReason::Expired);
    let lost = states.next().await.unwrap();
    assert_eq!(lost, ConnectionState::Lost { epoch, reason });
    let again = states.next().await.unwrap();
    assert!(
        matches!(
            again,
            ConnectionState::Reconnected {
                epoch: Epoch(2),
                ..
            }
        ),
        "{again:?}"
    );
    scene.client.exists("/").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn test_validate_connection_event_races() {
    // The link recovers at about the time when the client gives up the session. Whichever comes
    // first, the last state is connected, with the session of that connection.
    for early_ms in 0..20 {
        let scene = scene().await;
        let mut states = scene.client.states();
        scene.link.set(Mode::Freeze);
        sleep(SESSION_TIMEOUT - Duration::from_millis(10) + Duration::from_millis(early_ms)).await;
        scene.link.set(Mode::Pass);
        scene.link.cut();
        let is_up = |state: &ConnectionState| matches!(state, ConnectionState::Reconnected { .. });
        state(&mut states, is_up).await;
        let rest = timeout(2 * SESSION_TIMEOUT, state(&mut states, |_| true)).await;
        assert!(rest.is_err(), "{rest:?} after {early_ms} ms");
        let ConnectionState::Reconnected { epoch, .. } = scene.client.state() else {
            panic!("{:?}", scene.client.state());
        };
        assert_eq!(epoch, scene.client.epoch());
    }
}

#[tokio::test(start_paused = true)]
async fn test_retry() {
    // Curator retries internally. Here the caller gets an error that says whether the request may
    // have been carried out.
    let scene = scene().await;
    scene.link.set(Mode::SwallowRequests);
    let create = scene.client.create("/a", b"", CreateMode::Persistent);
    let (error, ()) = tokio::join!(create, async {
        sleep(Duration::from_secs(1)).await;
        scene.link.cut();
    });
    let error = error.unwrap_err();
    assert!(
        error.is_retryable() && error.is_outcome_unknown(),
        "{error}"
    );
    let again = scene.client.create("/a", b"", CreateMode::Persistent);
    again.await.unwrap();
}

/// Runs a client whose servers refuse every connection. Returns the number of attempts.
async fn attempts_within(wait: Duration) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let attempts = Arc::clone(&count);
    let transport = move |_: &str| -> Connecting {
        attempts.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    };
    let builder = Client::builder("a,b,c").unwrap().transport(transport);
    let (client, driver) = builder.seed(1).build();
    let driver = tokio::spawn(driver.run());
    assert!(timeout(wait, client.exists("/")).await.is_err());
    driver.abort();
    count.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn test_retry_forever() {
    let (early, late) = (
        attempts_within(PATIENCE).await,
        attempts_within(2 * PATIENCE).await,
    );
    assert!(late > early + 10, "{late} after {early}");
}

#[tokio::test(start_paused = true)]
async fn test_exponential_backoff_retry_limit() {
    // Pauses between rounds over all servers grow to a short bound: a session survives only if the
    // client reconnects in time.
    let hour = attempts_within(Duration::from_secs(3600)).await;
    assert!((3 * 3600..=6 * 3600).contains(&hour), "{hour} attempts");
}

#[tokio::test(start_paused = true)]
async fn test_lost_by_percentage_is_not_offered() {
    // Curator can give up a session early, by a percentage. This client gives it up when it may have
    // expired, and not before.
    let scene = scene().await;
    let until_lost = scene.client.safe_until().unwrap();
    scene.link.set(Mode::Freeze);
    tokio::time::sleep_until(until_lost - Duration::from_millis(1)).await;
    assert!(scene.client.session_id().is_some());
    until("the session is given up", || {
        scene.client.session_id().is_none()
    })
    .await;
}
