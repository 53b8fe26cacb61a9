//! A barrier that one contender sets and removes, and at which the others wait.

use minikeeper_recipes::{DistributedBarrier, LockError};
use tokio::time::sleep;

use minikeeper_test_kit::clock;

use crate::sim::contender::Contender;

const PATH: &str = "/barriers/one";

pub(super) async fn contend(mut me: Contender) {
    let barrier = DistributedBarrier::new(me.client.clone(), PATH).unwrap();
    if me.who == 0 {
        set_and_remove(me, &barrier).await;
        return;
    }
    while me.next_round().await {
        let began = clock::now();
        let passed = me
            .get(|within| barrier.wait().within(within), || barrier.wait())
            .await;
        if passed.is_some() {
            me.judge.gained("barrier");
            if me.judge.is_set_since_before(began) {
                me.judge
                    .violation(format!("{} passes a barrier that is set", me.who));
            }
        }
    }
}

async fn set_and_remove(mut me: Contender, barrier: &DistributedBarrier) {
    while me.next_round().await {
        match me.must("setting a barrier", barrier.set()).await {
            Some(Ok(_)) => me.judge.barrier_is_set(),
            Some(Err(LockError::Client(_))) | None => {}
            Some(Err(error)) => me.failed(format!("not set: {error}")),
        }
        sleep(me.chance.millis(3_000)).await;
        me.judge.barrier_may_be_removed();
        loop {
            match me.must("removing a barrier", barrier.remove()).await {
                Some(Ok(_)) | None => break,
                Some(Err(error)) if me.is_last => {
                    me.failed(format!("not removed: {error}"));
                    break;
                }
                Some(Err(_)) => {}
            }
        }
        sleep(me.chance.millis(1_000)).await;
    }
}
