//! One-shot and persistent watches: firing, dropping, sharing.

use minikeeper_client::{AddWatchMode, ConnectionState, CreateMode, EventKind, Fired, WatchEvent};

use crate::kit::{self, Scene, create, scene, until};

/// Returns whether the server has no watch.
fn has_none(scene: &Scene) -> bool {
    !scene.server.dump().contains("watch")
}

#[tokio::test(start_paused = true)]
async fn one_shot_watches_fire_once() {
    let scene = scene().await;
    let client = &scene.client;
    let (stat, created) = client.exists_and_watch("/a").await.unwrap();
    assert_eq!(stat, None);
    let (_, listed) = client.children_and_watch("/").await.unwrap();
    let stat = client
        .create("/a", b"", CreateMode::Persistent)
        .await
        .unwrap()
        .stat;
    let fired = |kind, zxid| Fired::Event { kind, zxid };
    assert_eq!(created.await, fired(EventKind::Created, stat.czxid));
    assert_eq!(listed.await, fired(EventKind::ChildrenChanged, stat.czxid));
    let (_, changed) = client.get_data_and_watch("/a").await.unwrap();
    assert_eq!(changed.fired(), None);
    client.delete("/a", None).await.unwrap();
    assert!(changed.fired().unwrap().is_deleted());
    assert!(changed.await.is_deleted());
}

#[tokio::test(start_paused = true)]
async fn event_arrives_before_the_reply_that_shows_the_change() {
    let scene = scene().await;
    let client = &scene.client;
    let (_, watch) = client.get_data_and_watch("/").await.unwrap();
    let set = client.set_data("/", b"x", None);
    set.await.unwrap();
    assert!(watch.fired().is_some());
}

#[tokio::test(start_paused = true)]
async fn failed_reads_of_a_missing_znode_leave_no_watch() {
    let scene = scene().await;
    let client = &scene.client;
    client.get_data_and_watch("/a").await.unwrap_err();
    client.children_and_watch("/a").await.unwrap_err();
    assert!(has_none(&scene));
}

#[tokio::test(start_paused = true)]
async fn h45_dropped_watch_is_removed_from_the_server() {
    let scene = scene().await;
    let client = &scene.client;
    create(client, "/a").await;
    let (_, data) = client.get_data_and_watch("/a").await.unwrap();
    let (_, exist) = client.exists_and_watch("/b").await.unwrap();
    let (_, child) = client.children_and_watch("/a").await.unwrap();
    let persistent = client
        .add_watch("/a", AddWatchMode::Persistent)
        .await
        .unwrap();
    assert!(!has_none(&scene));
    drop((data, exist, child, persistent));
    until("no watch is left", || has_none(&scene)).await;
}

#[tokio::test(start_paused = true)]
async fn h40_dropping_one_of_two_watches_leaves_the_other() {
    let scene = scene().await;
    let client = &scene.client;
    let (_, first) = client.get_data_and_watch("/").await.unwrap();
    let (_, second) = client.get_data_and_watch("/").await.unwrap();
    drop(first);
    client.set_data("/", b"x", None).await.unwrap();
    second.await;
}

#[tokio::test(start_paused = true)]
async fn watch_whose_call_is_dropped_is_removed() {
    let scene = scene().await;
    let client = &scene.client;
    drop(client.get_data_and_watch("/"));
    client.sync("/").await.unwrap();
    until("no watch is left", || has_none(&scene)).await;
}

#[tokio::test(start_paused = true)]
async fn watches_end_with_their_session() {
    let scene = scene().await;
    let client = &scene.client;
    let (_, watch) = client.get_data_and_watch("/").await.unwrap();
    let mut persistent = client
        .add_watch("/", AddWatchMode::Persistent)
        .await
        .unwrap();
    scene.server.expire(client.session_id().unwrap()).unwrap();
    assert_eq!(watch.await, Fired::EpochOver);
    assert_eq!(persistent.next().await, WatchEvent::EpochOver);
}

#[tokio::test(start_paused = true)]
async fn many_watches_are_registered_again_in_several_requests() {
    let scene = scene().await;
    let client = &scene.client;
    let long = "x".repeat(200);
    let path = |number: usize| format!("/{long}{number}");
    let mut watches = Vec::new();
    for number in 0..2_000 {
        watches.push(client.exists_and_watch(&path(number)).await.unwrap().1);
    }
    let mut states = client.states();
    scene.link.cut();
    kit::state(&mut states, ConnectionState::is_connected).await;
    let other = scene.other().await;
    for number in [0, 999, 1_999] {
        other
            .create(&path(number), b"", CreateMode::Persistent)
            .await
            .unwrap();
    }
    let last = watches.pop().unwrap();
    last.await;
    watches.swap_remove(999).await;
    watches.swap_remove(0).await;
}

#[tokio::test(start_paused = true)]
async fn watch_events_has_each_event_once_and_in_order() {
    // Two watches fire for one event of the server; a shell prints it once.
    let scene = scene().await;
    let client = &scene.client;
    let mut events = client.watch_events();
    create(client, "/a").await;
    let (_, data) = client.get_data_and_watch("/a").await.unwrap();
    let (_, children) = client.children_and_watch("/a").await.unwrap();
    client.set_data("/a", b"x", None).await.unwrap();
    client.delete("/a", None).await.unwrap();
    assert!(data.fired().is_some() && children.fired().is_some());
    client.close().await;
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            WatchEvent::Event { kind, path, .. } => seen.push((kind, path)),
            other => panic!("{other:?}"),
        }
    }
    let at = |kind| (kind, "/a".to_owned());
    assert_eq!(seen, [at(EventKind::DataChanged), at(EventKind::Deleted)]);
}
