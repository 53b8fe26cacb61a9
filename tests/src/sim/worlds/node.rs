//! Persistent nodes, which are created again after they were deleted. One for each contender.

use minikeeper_client::CreateMode;
use minikeeper_recipes::PersistentNode;
use tokio::time::{sleep, timeout};

use crate::sim::contender::Contender;

const DIRECTORY: &str = "/members";

pub(super) async fn contend(mut me: Contender) {
    let path = format!("{DIRECTORY}/{}", me.who);
    while me.next_round().await {
        let mode = if me.chance.once_in(2) {
            CreateMode::Ephemeral
        } else {
            CreateMode::EphemeralSequential
        };
        let node = PersistentNode::start(me.client.clone(), &path, b"here", mode).unwrap();
        if me.is_last {
            match me.must("a znode", node.created()).await {
                Some(Ok(Some(path))) => {
                    if me.client.exists(&path).await.is_ok_and(|at| at.is_none()) {
                        me.failed(format!("{path} is reported but does not exist"));
                    }
                }
                other => me.judge.violation(format!("{path}: {other:?}")),
            }
        } else {
            let wait = me.chance.millis(8_000);
            match timeout(wait, node.created()).await {
                Ok(Ok(Some(_))) => me.judge.gained("persistent node"),
                Ok(ended) => me.judge.violation(format!("{path} has ended: {ended:?}")),
                Err(_) => me.judge.event("no znode yet"),
            }
            node.set_data(b"and changed");
            sleep(me.chance.millis(3_000)).await;
        }
        if me.chance.once_in(3) && !me.is_last {
            drop(node);
        } else {
            match me.must("closing a znode", node.close()).await {
                Some(Err(error)) if me.is_last => {
                    me.failed(format!("{path} is not closed: {error}"));
                }
                _ => {}
            }
        }
    }
}
