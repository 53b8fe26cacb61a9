//! Curator's tests of guaranteed deletions (`docs/curator-recipes.md`
//! sections 2.5 and 15.7).

use std::time::Duration;

use minikeeper_client::{Client, CreateMode, ErrorCode};
use tokio::time::sleep;

use crate::{
    kit::{Scene, builder, scene, until},
    link::Mode,
};

const PATH: &str = "/one/two";

/// Returns the client of the scene, or one with the chroot `/ns`.
async fn client(scene: &Scene, has_chroot: bool) -> Client {
    if !has_chroot {
        return scene.client.clone();
    }
    let ns = scene.client.create("/ns", b"", CreateMode::Persistent);
    ns.await.unwrap();
    let builder = Client::builder("server/ns").unwrap();
    let builder = builder.session_timeout(crate::kit::SESSION_TIMEOUT);
    builder
        .transport(scene.link.clone())
        .connect()
        .await
        .unwrap()
}

/// Checks that a deletion which does not reach the server is carried out later, in this session or
/// the next.
async fn fail_and_recover(has_chroot: bool, is_expired: bool) {
    let scene = scene().await;
    let client = client(&scene, has_chroot).await;
    for path in ["/one", PATH] {
        let made = client.create(path, b"", CreateMode::Persistent);
        made.await.unwrap();
    }
    let full = if has_chroot { "/ns/one/two" } else { PATH };
    let session = client.session_id().unwrap();
    scene.link.set(Mode::SwallowRequests);
    let delete = client.delete_for_certain(PATH);
    drop(tokio::time::timeout(Duration::from_secs(1), delete).await);
    if is_expired {
        scene.server.expire(session).unwrap();
    }
    assert!(scene.server.get(full).is_some());
    scene.link.cut();
    until("the znode is deleted", || scene.server.get(full).is_none()).await;
    until("nothing is pending", || client.clean_ups_pending() == 0).await;
    assert_eq!(client.session_id() == Some(session), !is_expired);
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    fail_and_recover(false, false).await;
}

#[tokio::test(start_paused = true)]
async fn test_basic_with_namespace() {
    fail_and_recover(true, false).await;
}

#[tokio::test(start_paused = true)]
async fn test_lost_session() {
    fail_and_recover(false, true).await;
}

#[tokio::test(start_paused = true)]
async fn test_with_namespace_and_lost_session() {
    fail_and_recover(true, true).await;
}

#[tokio::test(start_paused = true)]
async fn test_guaranteed_delete_on_non_existent_node_in_foreground() {
    let scene = scene().await;
    let error = scene.client.delete_for_certain("/none").await.unwrap_err();
    assert!(error.is(ErrorCode::NoNode), "{error}");
    assert_eq!(scene.client.clean_ups_pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn test_guaranteed_delete_on_non_existent_node_in_background() {
    let scene = scene().await;
    let Scene { client, link, .. } = &scene;
    client.delete_for_certain("/none").detach();
    drop(client.delete_for_certain("/none"));
    client.clean_up(client.epoch(), "/none").unwrap();
    until("the clean-up is done", || client.clean_ups_pending() == 0).await;
    let written = link.writes.load(std::sync::atomic::Ordering::Relaxed);
    sleep(Duration::from_millis(500)).await;
    let later = link.writes.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(later, written, "no retry");
    drop(builder(link));
}
