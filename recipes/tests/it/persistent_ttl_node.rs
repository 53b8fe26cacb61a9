//! The persistent TTL node. Tests that Curator's `TestPersistentTtlNode` also has keep their names.

use std::time::Duration;

use minikeeper::{Fault, OpCode, Server};
use minikeeper_client::{CreateMode, CreateOptions, Error, ErrorCode};
use minikeeper_recipes::{PersistentTtlNode, TtlNodeOptions};
use tokio::time::sleep;

use crate::{
    kit::{client, create, soon, start, until},
    link::Mode,
};

const NODE: &str = "/keep/me";
const TTL: Duration = Duration::from_secs(10);

fn data(server: &Server) -> Vec<u8> {
    let (data, _) = server.get(NODE).unwrap();
    data.unwrap_or_default().to_vec()
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let node = PersistentTtlNode::start(client, NODE, b"one", TTL).unwrap();
    soon(node.created()).await.unwrap();
    assert!(node.is_present());
    for _ in 0..100 {
        sleep(TTL / 5).await;
        assert_eq!(data(&server), b"one");
        assert_eq!(server.children(NODE).unwrap(), ["touch"]);
    }
    drop(node);
    // It outlives its process by the time to live, and no longer.
    sleep(TTL / 2 - Duration::from_millis(100)).await;
    assert_eq!(data(&server), b"one");
    sleep(TTL).await;
    until("it has expired", || server.get("/keep").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn test_options() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let mut options = TtlNodeOptions::default();
    options.child_name = "alive".to_owned();
    options.touches_per_ttl = 5;
    let node = PersistentTtlNode::start_with(client.clone(), NODE, b"", TTL, options).unwrap();
    soon(node.created()).await.unwrap();
    let alive = format!("{NODE}/alive");
    let version = || server.get(&alive).unwrap().1.version;
    let before = version();
    sleep(TTL + TTL / 10).await;
    assert_eq!(version() - before, 5);
    let mut wrong = TtlNodeOptions::default();
    wrong.child_name = "..".to_owned();
    assert!(PersistentTtlNode::start_with(client, NODE, b"", TTL, wrong).is_err());
}

#[tokio::test(start_paused = true)]
async fn test_data_is_set_and_replaced() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    create(&other, "/keep").await;
    other
        .create(NODE, b"old", CreateMode::Container)
        .await
        .unwrap();
    let node = PersistentTtlNode::start(one, NODE, b"one", TTL).unwrap();
    soon(node.created()).await.unwrap();
    assert_eq!(data(&server), b"one");
    node.set_data(b"two");
    until("the data is set", || data(&server) == b"two").await;
    // What another client writes stays, until the data is set again.
    other.set_data(NODE, b"three", None).await.unwrap();
    sleep(3 * TTL).await;
    assert_eq!(data(&server), b"three");
    node.set_data(b"two");
    until("the data is set", || data(&server) == b"two").await;
}

/// Hazard H71.
#[tokio::test(start_paused = true)]
async fn tasks_with_different_data_leave_each_other_alone() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let first = PersistentTtlNode::start(one, NODE, b"one", TTL).unwrap();
    soon(first.created()).await.unwrap();
    let second = PersistentTtlNode::start(other, NODE, b"two", TTL).unwrap();
    soon(second.created()).await.unwrap();
    let changes = || server.get(NODE).unwrap().1.version;
    let touches = || server.get(&format!("{NODE}/touch")).unwrap().1.version;
    let (changes_before, touches_before) = (changes(), touches());
    sleep(10 * TTL).await;
    // Two tasks, each of which touches twice in a time to live.
    assert_eq!(changes() - changes_before, 0);
    assert!(
        (36..=44).contains(&(touches() - touches_before)),
        "{} touches",
        touches() - touches_before
    );
    // Another client that sets the data often does not make them touch it more often.
    let before = touches();
    let (third, _) = client(&server, 3).await;
    for _ in 0..100 {
        third.set_data(NODE, b"three", None).await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    assert!(touches() - before <= 2);
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_refused_at_the_start() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    for ttl in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        let node = PersistentTtlNode::start(client.clone(), NODE, b"", ttl);
        assert!(matches!(node, Err(Error::TimeToLive { .. })), "{node:?}");
    }
    for ttl in [CreateOptions::TTL_MIN, CreateOptions::TTL_MAX] {
        let node = PersistentTtlNode::start(client.clone(), "/ttl", b"", ttl).unwrap();
        soon(node.created()).await.unwrap();
    }
    for name in ["a/b", "/", "", ".."] {
        let mut options = TtlNodeOptions::default();
        options.child_name = name.to_owned();
        let node = PersistentTtlNode::start_with(client.clone(), NODE, b"", TTL, options);
        assert!(matches!(node, Err(Error::Path(_))), "{name:?}: {node:?}");
    }
    assert!(server.get(NODE).is_none());
}

#[tokio::test(start_paused = true)]
async fn deleted_znode_is_created_again() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let node = PersistentTtlNode::start(one, NODE, b"one", TTL).unwrap();
    soon(node.created()).await.unwrap();
    for _ in 0..5 {
        other.delete(&format!("{NODE}/touch"), None).await.unwrap();
        let deleted = other.delete(NODE, None).await;
        // The touch may have come in between.
        assert!(deleted.is_ok_and(|()| true));
        until("it is back", || server.get(NODE).is_some()).await;
        until("it is kept", || {
            node.is_present() && !server.children(NODE).unwrap().is_empty()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_sessions_and_connections_do_not_end_it() {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    let node = PersistentTtlNode::start(client.clone(), NODE, b"one", TTL).unwrap();
    soon(node.created()).await.unwrap();
    let czxid = server.get(NODE).unwrap().1.czxid;
    for round in 0..10 {
        match round % 2 {
            0 => link.cut(),
            _ => drop(server.expire(client.session_id().unwrap())),
        }
        sleep(TTL / 2).await;
        let (_, stat) = server.get(NODE).unwrap();
        assert_eq!((stat.czxid, stat.ephemeral_owner.0), (czxid, 0));
    }
    // An outage that is longer than the time to live.
    link.set(Mode::SwallowRequests);
    sleep(2 * TTL).await;
    until("it has expired", || server.get(NODE).is_none()).await;
    link.set(Mode::Pass);
    link.cut();
    until("it is back", || server.get(NODE).is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn passing_refusals_are_retried_and_others_end_it() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    for op in [
        OpCode::CreateContainer,
        OpCode::SetData,
        OpCode::GetData,
        OpCode::Exists,
    ] {
        let fault = Fault::error(ErrorCode::ThrottledOp).on(op).times(3);
        let _guard = server.inject(fault).unwrap();
        let node = PersistentTtlNode::start(client.clone(), NODE, b"one", TTL).unwrap();
        soon(node.created()).await.unwrap();
    }
    let fault = Fault::error(ErrorCode::NoAuth).on(OpCode::CreateContainer);
    let _guard = server.inject(fault).unwrap();
    let node = PersistentTtlNode::start(client.clone(), "/other", b"", TTL).unwrap();
    let error = soon(node.created()).await.unwrap_err().to_string();
    assert!(error.contains("NOAUTH"), "{error}");
    assert!(!node.is_present());
}
