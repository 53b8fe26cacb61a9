//! A TTL node that all contenders keep: it exists whenever one of them says so and is connected.

use std::time::Duration;

use minikeeper_recipes::PersistentTtlNode;
use tokio::time::sleep;

use crate::sim::contender::Contender;

const PATH: &str = "/kept/by-all";
const TTL: Duration = Duration::from_secs(2);

pub(super) async fn contend(mut me: Contender) {
    while me.next_round().await {
        let node = PersistentTtlNode::start(me.client.clone(), PATH, b"here", TTL).unwrap();
        if me.is_last {
            match me.must("a TTL node", node.created()).await {
                Some(Ok(())) => {
                    let read = me.client.get_data(PATH).await;
                    if read.is_ok_and(|data| data.as_bytes() != b"here") {
                        me.judge.violation(format!("{PATH} has other data"));
                    }
                }
                other => me.failed(format!("{PATH}: {other:?}")),
            }
            // Longer than its time to live: it is touched, or created again after the last fault.
            sleep(2 * TTL).await;
            match me.client.exists(PATH).await {
                Ok(None) => me.failed(format!("{PATH} has expired although it is kept")),
                _ => me.judge.gained("TTL node"),
            }
        } else {
            sleep(me.chance.millis(5_000)).await;
            if node.is_present() {
                me.judge.gained("TTL node");
            }
        }
    }
}
