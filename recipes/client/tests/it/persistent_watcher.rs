//! The watch that survives sessions: events, gaps, refusals, removal.

use std::time::Duration;

use minikeeper::Fault;
use minikeeper_client::{
    AddWatchMode, Cause, ConnectionState, CreateMode, ErrorCode, EventKind, GapCause, Notification,
    PersistentWatcher,
};
use tokio::time::timeout;

use crate::{
    kit::{self, PATIENCE, Scene, create, scene, until},
    link::Mode,
};

fn watcher(scene: &Scene) -> PersistentWatcher {
    let recursive = AddWatchMode::PersistentRecursive;
    PersistentWatcher::new(scene.client.clone(), "/", recursive).unwrap()
}

async fn next(watcher: &mut PersistentWatcher) -> Notification {
    let next = timeout(PATIENCE, watcher.next()).await;
    next.expect("notified in time").unwrap()
}

async fn cause(watcher: &mut PersistentWatcher) -> GapCause {
    match next(watcher).await {
        Notification::Gap { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

async fn event(watcher: &mut PersistentWatcher) -> (EventKind, String) {
    match next(watcher).await {
        Notification::Event { kind, path, .. } => (kind, path),
        other => panic!("{other:?}"),
    }
}

/// Returns a watcher that is registered.
async fn registered(scene: &Scene) -> PersistentWatcher {
    let mut watcher = watcher(scene);
    let first = next(&mut watcher).await;
    assert!(matches!(first, Notification::Registered { epoch } if epoch == scene.client.epoch()));
    watcher
}

#[tokio::test(start_paused = true)]
async fn h52_changes_missed_while_reconnecting_are_reported_as_a_gap() {
    let scene = scene().await;
    let mut watcher = registered(&scene).await;
    let other = scene.other().await;
    create(&other, "/a").await;
    let created = EventKind::Created;
    assert_eq!(event(&mut watcher).await, (created, "/a".to_owned()));
    let mut states = scene.client.states();
    scene.link.set(Mode::Cut);
    kit::state(&mut states, |state| !state.is_connected()).await;
    create(&other, "/missed").await;
    scene.link.set(Mode::Pass);
    assert_eq!(cause(&mut watcher).await, GapCause::Reconnected);
    assert!(scene.client.exists("/missed").await.unwrap().is_some());
    create(&other, "/b").await;
    assert_eq!(event(&mut watcher).await, (created, "/b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn watch_is_registered_again_in_the_next_session() {
    let scene = scene().await;
    let mut watcher = registered(&scene).await;
    for number in 2..5 {
        scene
            .server
            .expire(scene.client.session_id().unwrap())
            .unwrap();
        match next(&mut watcher).await {
            Notification::Gap { epoch, cause } => {
                assert_eq!((epoch.0, cause), (number, GapCause::NewSession));
            }
            other => panic!("{other:?}"),
        }
        let path = format!("/{number}");
        let created = scene.client.create(&path, b"", CreateMode::Persistent);
        created.await.unwrap();
        assert_eq!(event(&mut watcher).await, (EventKind::Created, path));
    }
}

#[tokio::test(start_paused = true)]
async fn events_before_a_gap_come_before_it_and_events_after_it_behind() {
    // The reader is slow: two events, a reconnect and an event wait for it.
    let scene = scene().await;
    let mut watcher = registered(&scene).await;
    let create = async |path| {
        let created = scene.client.create(path, b"", CreateMode::Persistent);
        created.await.unwrap();
    };
    create("/a").await;
    create("/b").await;
    let mut states = scene.client.states();
    scene.link.cut();
    kit::state(&mut states, ConnectionState::is_connected).await;
    create("/c").await;
    let created = |path: &str| (EventKind::Created, path.to_owned());
    assert_eq!(event(&mut watcher).await, created("/a"));
    assert_eq!(event(&mut watcher).await, created("/b"));
    assert_eq!(cause(&mut watcher).await, GapCause::Reconnected);
    assert_eq!(event(&mut watcher).await, created("/c"));
}

#[tokio::test(start_paused = true)]
async fn reader_that_never_reads_costs_a_bounded_queue_and_gets_a_gap() {
    let scene = scene().await;
    let mut watcher = registered(&scene).await;
    for _ in 0..20 * 1024 {
        scene.client.set_data("/", b"", None).await.unwrap();
    }
    for _ in 0..16 * 1024 {
        event(&mut watcher).await;
    }
    assert_eq!(cause(&mut watcher).await, GapCause::Overflowed);
    scene.client.set_data("/", b"", None).await.unwrap();
    event(&mut watcher).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_watcher_removes_its_watch() {
    let scene = scene().await;
    let watcher = registered(&scene).await;
    assert!(scene.server.dump().contains("watch"));
    drop(watcher);
    until("no watch is left", || {
        !scene.server.dump().contains("watch")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_of_next_loses_neither_registration_nor_events() {
    let scene = scene().await;
    let mut watcher = watcher(&scene);
    while timeout(Duration::from_millis(1), watcher.next())
        .await
        .is_err()
    {}
    for number in 0..20 {
        assert!(
            timeout(Duration::from_millis(1), watcher.next())
                .await
                .is_err()
        );
        let path = format!("/{number}");
        let created = scene.client.create(&path, b"", CreateMode::Persistent);
        created.await.unwrap();
        assert_eq!(event(&mut watcher).await, (EventKind::Created, path));
    }
}

#[tokio::test(start_paused = true)]
async fn closed_client_ends_the_watcher_with_an_error() {
    let scene = scene().await;
    let mut watcher = registered(&scene).await;
    scene.client.close().await;
    for _ in 0..2 {
        let error = watcher.next().await.unwrap_err();
        assert_eq!(error.cause(), Some(Cause::Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_path_is_refused_at_once() {
    let scene = scene().await;
    let mode = AddWatchMode::Persistent;
    assert!(PersistentWatcher::new(scene.client.clone(), "a", mode).is_err());
}

#[tokio::test(start_paused = true)]
async fn refused_registration_is_retried_or_reported() {
    let scene = scene().await;
    let mut watcher = watcher(&scene);
    let refuse = |code| {
        let fault = Fault::error(code).once();
        scene.server.inject(fault).unwrap()
    };
    // As a server before 3.6 does.
    let unknown = refuse(ErrorCode::Unimplemented);
    let refused = timeout(PATIENCE, watcher.next()).await.unwrap();
    assert!(refused.unwrap_err().is(ErrorCode::Unimplemented));
    let throttled = refuse(ErrorCode::ThrottledOp);
    let first = next(&mut watcher).await;
    assert!(
        matches!(first, Notification::Registered { .. }),
        "{first:?}"
    );
    drop((unknown, throttled));
}
