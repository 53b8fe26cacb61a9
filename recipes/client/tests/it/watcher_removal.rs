//! Curator's tests of removed watches (`docs/curator-recipes.md` sections 2.6 and 15.7): once no
//! caller waits, neither the client nor the server keeps a watch.

use std::time::Duration;

use minikeeper::Fault;
use minikeeper_client::{Client, CreateMode, EventKind, Fired};
use tokio::time::sleep;

use crate::{
    kit::{SESSION_TIMEOUT, Scene, scene, until},
    link::Mode,
};

/// Returns the number of watches on the server.
fn kept(scene: &Scene) -> usize {
    let dump = scene.server.dump();
    dump.lines()
        .filter(|line| line.starts_with("watch "))
        .count()
}

async fn until_none(scene: &Scene) {
    until("no watch is left", || kept(scene) == 0).await;
}

/// Registers and drops watches of each kind, on an existing and a missing znode.
async fn watch_all(scene: &Scene, client: &Client) {
    let made = client.create("/a", b"", CreateMode::Persistent);
    made.await.unwrap();
    let (_, data) = client.get_data_and_watch("/a").await.unwrap();
    let (_, children) = client.children_and_watch("/a").await.unwrap();
    let (_, there) = client.exists_and_watch("/a").await.unwrap();
    let (_, missing) = client.exists_and_watch("/b").await.unwrap();
    assert_eq!(kept(scene), 2, "one for each path");
    drop((data, children));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(kept(scene), 2);
    drop((there, missing));
    until_none(scene).await;
}

async fn below(scene: &Scene, namespace: &str) -> Client {
    let mut path = String::new();
    for name in namespace.split('/') {
        path = format!("{path}/{name}");
        drop(
            scene
                .client
                .create(&path, b"", CreateMode::Persistent)
                .await,
        );
    }
    let builder = Client::builder(&format!("server/{namespace}")).unwrap();
    let builder = builder.session_timeout(SESSION_TIMEOUT);
    builder
        .transport(scene.link.clone())
        .connect()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    let scene = scene().await;
    watch_all(&scene, &scene.client).await;
}

#[tokio::test(start_paused = true)]
async fn test_basic_namespace1() {
    let scene = scene().await;
    let client = below(&scene, "foo").await;
    watch_all(&scene, &client).await;
}

#[tokio::test(start_paused = true)]
async fn test_basic_namespace2() {
    let scene = scene().await;
    let client = below(&scene, "foo/bar").await;
    watch_all(&scene, &client).await;
}

#[tokio::test(start_paused = true)]
async fn test_basic_namespace3() {
    // A client with a chroot and one without, side by side.
    let scene = scene().await;
    let client = below(&scene, "foo").await;
    let (_, own) = client.exists_and_watch("/x").await.unwrap();
    let (_, same) = scene.client.exists_and_watch("/foo/x").await.unwrap();
    assert_eq!(kept(&scene), 2);
    drop(own);
    until("one is left", || kept(&scene) == 1).await;
    drop(same);
    until_none(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn test_same_watcher() {
    // Two callers watch the same path: the server removes the watch with the second.
    let scene = scene().await;
    let (_, one) = scene.client.exists_and_watch("/a").await.unwrap();
    let (_, other) = scene.client.exists_and_watch("/a").await.unwrap();
    assert_eq!(kept(&scene), 1);
    drop(one);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(kept(&scene), 1);
    drop(other);
    until_none(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn test_missing_node() {
    let scene = scene().await;
    scene.client.get_data_and_watch("/a").await.unwrap_err();
    scene.client.children_and_watch("/a").await.unwrap_err();
    assert_eq!(kept(&scene), 0);
    let (_, watch) = scene.client.exists_and_watch("/a").await.unwrap();
    assert_eq!(kept(&scene), 1);
    drop(watch);
    until_none(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn test_triggered() {
    let scene = scene().await;
    let (_, watch) = scene.client.exists_and_watch("/a").await.unwrap();
    let (_, unfired) = scene.client.exists_and_watch("/b").await.unwrap();
    let made = scene.client.create("/a", b"", CreateMode::Persistent);
    let zxid = made.await.unwrap().stat.czxid;
    let kind = EventKind::Created;
    assert_eq!(watch.await, Fired::Event { kind, zxid });
    assert_eq!(kept(&scene), 1, "the fired watch is gone");
    drop(unfired);
    until_none(&scene).await;
}

/// An event that arrives after the path is watched again ended the new watch here, but not on the
/// server, which kept it for as long as the connection.
#[tokio::test(start_paused = true)]
async fn late_event_leaves_no_watch_that_was_registered_after_its_change() {
    let scene = scene().await;
    let late = Fault::delay_events(Duration::from_secs(1)).once();
    let late = scene.server.inject(late).unwrap();
    let (_, first) = scene.client.exists_and_watch("/a").await.unwrap();
    let builder = Client::builder("server").unwrap();
    let other = builder.transport(scene.link.clone()).connect().await;
    let other = other.unwrap();
    let made = other.create("/a", b"", CreateMode::Persistent);
    let zxid = made.await.unwrap().stat.czxid;
    assert_eq!(late.hits(), 1);
    let (_, second) = scene.client.get_data_and_watch("/a").await.unwrap();
    scene.client.exists("/b").await.unwrap();
    let kind = EventKind::Created;
    for watch in [first, second] {
        assert_eq!(watch.await, Fired::Event { kind, zxid });
    }
    until_none(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn test_with_retry() {
    // One watch is registered again after a reconnect, one is dropped while disconnected.
    let scene = scene().await;
    let (_, watch) = scene.client.exists_and_watch("/a").await.unwrap();
    let (_, dropped) = scene.client.exists_and_watch("/b").await.unwrap();
    scene.link.set(Mode::Cut);
    sleep(Duration::from_secs(1)).await;
    drop(dropped);
    scene.link.set(Mode::Pass);
    until("it is registered again", || kept(&scene) == 1).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(kept(&scene), 1);
    drop(watch);
    until_none(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn test_reset_from_watcher() {
    // A notified caller watches again at once.
    let scene = scene().await;
    let made = scene.client.create("/a", b"", CreateMode::Persistent);
    made.await.unwrap();
    let (_, mut watch) = scene.client.get_data_and_watch("/a").await.unwrap();
    for _ in 0..5 {
        scene.client.set_data("/a", b"x", None).await.unwrap();
        watch.await;
        watch = scene.client.get_data_and_watch("/a").await.unwrap().1;
        assert_eq!(kept(&scene), 1);
    }
    drop(watch);
    until_none(&scene).await;
}
