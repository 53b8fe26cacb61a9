//! The persistent node. Tests that Curator's `TestPersistentNode` and `TestPersistentEphemeralNode`
//! also have keep their names.

use std::{sync::Arc, time::Duration};

use minikeeper::{Fault, Server};
use minikeeper_client::{Client, CreateMode, ErrorCode};
use minikeeper_recipes::{PersistentNode, naming};
use tokio::time::sleep;

use crate::{
    kit::{PATH, client, create, queue, soon, start, until},
    link::{Link, Mode},
};

const NODE: &str = "/locks/a/n";
const MODES: [CreateMode; 5] = [
    CreateMode::Persistent,
    CreateMode::PersistentSequential,
    CreateMode::Ephemeral,
    CreateMode::EphemeralSequential,
    CreateMode::Container,
];

fn data(server: &Server, path: &str) -> Vec<u8> {
    let (data, _) = server.get(path).unwrap();
    data.unwrap_or_default().to_vec()
}

#[tokio::test(start_paused = true)]
async fn data_that_is_set_again_replaces_that_of_another_client() {
    let server = start().await;
    let (kept, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let node = PersistentNode::start(kept, NODE, b"one", CreateMode::Ephemeral).unwrap();
    soon(node.created()).await.unwrap();
    other.set_data(NODE, b"other", None).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(data(&server, NODE), b"other");
    node.set_data(b"one");
    soon(node.updated()).await.unwrap();
    assert_eq!(data(&server, NODE), b"one");
}

#[tokio::test(start_paused = true)]
async fn test_deletion_recreates_node() {
    for mode in MODES {
        let server = start().await;
        let (kept, _) = client(&server, 1).await;
        let (other, _) = client(&server, 2).await;
        let node = PersistentNode::start(kept, NODE, b"one", mode).unwrap();
        let path = soon(node.created()).await.unwrap().unwrap();
        if mode.is_sequential() {
            let name = naming::name_of(&path);
            assert!(
                naming::is_protected(name) && name.ends_with("-n0000000000"),
                "{name}"
            );
        } else {
            assert_eq!(path, NODE);
        }
        for round in 0..5 {
            let before = server.get(&path).unwrap().1.czxid;
            other.delete(&path, None).await.unwrap();
            until("it is back", || {
                server
                    .get(&path)
                    .is_some_and(|(_, stat)| stat.czxid > before)
            })
            .await;
            assert_eq!(data(&server, &path), b"one", "{mode:?}, {round}");
            until("it is known", || node.path() == Some(path.clone())).await;
        }
        assert_eq!(queue(&server).len(), 1);
        node.set_data(b"two");
        until("it is set", || data(&server, &path) == b"two").await;
        other.delete(&path, None).await.unwrap();
        until("it is back", || server.get(&path).is_some()).await;
        assert_eq!(data(&server, &path), b"two");
        soon(node.close()).await.unwrap();
        assert!(queue(&server).is_empty());
        assert_eq!(node.created().await.unwrap(), None);
        soon(node.close()).await.unwrap();
        until("no watch is left", || !server.dump().contains("watch")).await;
    }
}

/// Starts a node whose client gets each reply a millisecond late, and waits, so that each delay is
/// another step.
async fn begin(mode: CreateMode, delay_ms: u64) -> (Arc<Server>, Client, Link, PersistentNode) {
    let server = start().await;
    let (kept, link) = client(&server, 1).await;
    link.delay_replies(Duration::from_millis(1));
    let node = PersistentNode::start(kept.clone(), NODE, b"one", mode).unwrap();
    sleep(Duration::from_millis(delay_ms)).await;
    (server, kept, link, node)
}

#[tokio::test(start_paused = true)]
async fn test_recreates_node_when_session_reconnects() {
    for mode in MODES {
        for delay_ms in 0..10 {
            let (server, kept, _, node) = begin(mode, delay_ms).await;
            let session = kept.session_id().unwrap();
            server.expire(session).unwrap();
            sleep(Duration::from_secs(10)).await;
            let path = soon(node.created()).await.unwrap().unwrap();
            assert_eq!(queue(&server), [naming::name_of(&path)]);
            let owner = server.get(&path).unwrap().1.ephemeral_owner;
            let is_ephemeral = matches!(
                mode,
                CreateMode::Ephemeral | CreateMode::EphemeralSequential
            );
            if is_ephemeral {
                assert_eq!(
                    Some(owner),
                    kept.session_id(),
                    "{mode:?} after {delay_ms} ms"
                );
            }
            soon(node.close()).await.unwrap();
            assert!(queue(&server).is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h20_losing_the_link_at_every_step_makes_no_second_znode() {
    for mode in MODES {
        for fault in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
            for delay_ms in 0..6 {
                let (server, _, link, node) = begin(mode, delay_ms).await;
                link.set(fault);
                sleep(Duration::from_millis(200)).await;
                link.set(Mode::Pass);
                link.cut();
                sleep(Duration::from_secs(10)).await;
                let path = soon(node.created()).await.unwrap().unwrap();
                assert_eq!(queue(&server), [naming::name_of(&path)]);
                // The znode stays the same over a reconnect.
                let before = server.get(&path).unwrap().1.czxid;
                link.cut();
                sleep(Duration::from_secs(10)).await;
                assert_eq!(server.get(&path).unwrap().1.czxid, before);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_step_leaves_nothing() {
    for mode in MODES {
        for fault in [Mode::Pass, Mode::SwallowReplies, Mode::Cut] {
            for delay_ms in 0..8 {
                let (server, _, link, node) = begin(mode, delay_ms).await;
                link.set(fault);
                drop(node);
                sleep(Duration::from_millis(200)).await;
                link.set(Mode::Pass);
                link.cut();
                sleep(Duration::from_secs(10)).await;
                assert!(queue(&server).is_empty(), "{mode:?} after {delay_ms} ms");
                until("no watch is left", || !server.dump().contains("watch")).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ephemeral_znode_of_another_client_is_waited_for_and_a_persistent_one_taken_over() {
    let server = start().await;
    let (other, _) = client(&server, 1).await;
    for path in ["/locks", PATH] {
        create(&other, path).await;
    }
    // The task waits until an ephemeral znode is deleted.
    other
        .create(NODE, b"other", CreateMode::Ephemeral)
        .await
        .unwrap();
    let (kept, _) = client(&server, 2).await;
    let node = PersistentNode::start(kept.clone(), NODE, b"own", CreateMode::Ephemeral).unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(node.path(), None);
    assert_eq!(data(&server, NODE), b"other");
    other.delete(NODE, None).await.unwrap();
    soon(node.created()).await.unwrap();
    assert_eq!(data(&server, NODE), b"own");
    // Data that other clients write stays.
    other.set_data(NODE, b"other", None).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(data(&server, NODE), b"other");
    // Closing does not delete another client's znode.
    node.close().await.unwrap();
    other
        .create(NODE, b"other", CreateMode::Ephemeral)
        .await
        .unwrap();
    let node = PersistentNode::start(kept.clone(), NODE, b"own", CreateMode::Ephemeral).unwrap();
    sleep(Duration::from_secs(1)).await;
    soon(node.close()).await.unwrap();
    assert_eq!(data(&server, NODE), b"other");
    other.delete(NODE, None).await.unwrap();
    // A persistent znode is taken over, and gets the data.
    other
        .create(NODE, b"other", CreateMode::Persistent)
        .await
        .unwrap();
    let node = PersistentNode::start(kept, NODE, b"own", CreateMode::Persistent).unwrap();
    soon(node.created()).await.unwrap();
    assert_eq!(data(&server, NODE), b"own");
}

#[tokio::test(start_paused = true)]
async fn closed_client_ends_the_task() {
    let server = start().await;
    let (kept, _) = client(&server, 1).await;
    let node = PersistentNode::start(kept.clone(), NODE, b"", CreateMode::Ephemeral).unwrap();
    soon(node.created()).await.unwrap();
    kept.close().await;
    until("the task notices", || node.path().is_none()).await;
    let error = soon(node.created()).await.unwrap_err();
    assert!(
        error.to_string().contains("the client is closed"),
        "{error}"
    );
    soon(node.close()).await.unwrap_err();
}

/// After the task had failed, the znode stayed as long as the session.
#[tokio::test(start_paused = true)]
async fn task_that_fails_deletes_its_ephemeral_znode() {
    for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
        for step in 0..8 {
            let server = start().await;
            let (client, _) = client(&server, 1).await;
            let fault = Fault::error(ErrorCode::SystemError).at("/**");
            let fault = server.inject(fault.skip(step).once().optional()).unwrap();
            let node = PersistentNode::start(client.clone(), NODE, b"", mode).unwrap();
            let created = soon(node.created()).await;
            if created.is_ok() && fault.hits() == 0 {
                break;
            }
            if created.is_err() {
                // The session is still alive.
                assert!(client.session_id().is_some());
                until("nothing is left", || queue(&server).is_empty()).await;
            }
        }
    }
}
