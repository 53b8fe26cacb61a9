//! Leader latches: contenders start them, lead, and close them.

use std::sync::Arc;

use minikeeper_recipes::{LatchOptions, LeaderLatch, Leadership};
use tokio::time::{Instant, timeout_at};

use minikeeper_test_kit::clock;

use crate::sim::{
    contender::{Contender, PROGRESS},
    judge::{HoldId, Kind},
};

const PATH: &str = "/leaders/latch";

pub(super) async fn contend(mut me: Contender) {
    while me.next_round().await {
        let mut options = LatchOptions::default();
        options.lock = me.options.clone();
        options.error_policy = me.chance.error_policy();
        let latch = LeaderLatch::start_with(me.client.clone(), PATH, "me", options).unwrap();
        let latch = Arc::new(latch);
        let until = if me.is_last {
            clock::now() + PROGRESS
        } else {
            clock::now() + me.chance.millis(8_000)
        };
        let has_led = lead(&mut me, &latch, until).await;
        if me.is_last && !has_led {
            me.judge.violation(format!("{} never leads", me.who));
        }
        if me.chance.once_in(3) && !me.is_last {
            drop(latch);
        } else {
            match me.must("closing", latch.close()).await {
                Some(Err(error)) if me.is_last => {
                    me.failed(format!("not closed: {error}"));
                }
                _ => {}
            }
        }
    }
}

/// Reports changes of leadership to the judge until `until`; in the last round, until the contender
/// has led for a while. Returns whether it has led.
async fn lead(me: &mut Contender, latch: &Arc<LeaderLatch>, mut until: Instant) -> bool {
    let mut changes = latch.changes();
    let mut hold: Option<HoldId> = None;
    let mut has_led = false;
    while let Ok(change) = timeout_at(until, changes.next()).await {
        if let Some(hold) = hold.take() {
            me.judge.ended(hold);
        }
        match change {
            Some(Leadership::Leader { token }) => {
                has_led = true;
                let leader = Arc::clone(latch);
                let grant = (token, me.client.epoch());
                let is_believed = move || leader.leadership() == Leadership::Leader { token };
                hold = Some(me.granted("leader latch", PATH, Kind::Leader, grant, is_believed));
                if me.is_last {
                    until = clock::now() + me.chance.millis(1_000);
                }
            }
            Some(Leadership::Follower) => me.judge.event("no longer leads"),
            None => {
                me.judge.violation("a latch no longer contends".into());
                break;
            }
        }
    }
    if let Some(hold) = hold {
        me.judge.ended(hold);
    }
    has_led
}
