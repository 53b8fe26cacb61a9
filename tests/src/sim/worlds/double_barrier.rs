//! A double barrier that all contenders enter and leave in rounds.

use minikeeper_recipes::{DistributedDoubleBarrier, LockError};
use tokio::time::sleep;

use crate::sim::{
    CONTENDERS,
    contender::{Contender, PROGRESS},
};

const PATH: &str = "/barriers/double";

/// The path of the last round, which each contender enters exactly once.
const LAST_PATH: &str = "/barriers/double-last";

pub(super) async fn contend(mut me: Contender) {
    let client = me.client.clone();
    let barrier = DistributedDoubleBarrier::new(client.clone(), PATH, CONTENDERS).unwrap();
    let last = DistributedDoubleBarrier::new(client, LAST_PATH, CONTENDERS).unwrap();
    while me.next_round().await {
        let entered = if me.is_last && me.judge.expects_faults() {
            // Who loses its session between the last entry and its notice of it comes too late: the
            // others have passed, and left.
            Some(last.enter().within(PROGRESS).await)
        } else if me.is_last {
            me.must("entering", last.enter()).await
        } else {
            Some(barrier.enter().within(me.chance.millis(8_000)).await)
        };
        let member = match entered {
            Some(Ok(member)) => member,
            Some(Err(LockError::TimedOut { .. })) => {
                me.judge.event("too few in time");
                continue;
            }
            Some(Err(error)) if me.is_last => {
                me.failed(format!("{} cannot enter: {error}", me.who));
                continue;
            }
            _ => continue,
        };
        me.judge.gained("double barrier");
        sleep(me.chance.millis(300)).await;
        let left = if me.is_last {
            me.must("leaving", member.leave()).await
        } else {
            Some(member.leave().within(me.chance.millis(8_000)).await)
        };
        match left {
            Some(Ok(())) => me.judge.gained("double barrier, left"),
            Some(Err(LockError::TimedOut { .. })) => me.judge.event("others stay"),
            Some(Err(error)) if me.is_last => {
                me.failed(format!("{} cannot leave: {error}", me.who));
            }
            _ => {}
        }
    }
}
