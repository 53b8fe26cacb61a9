//! A shared count that all contenders increment, and whose changes they wait for.

use std::time::Duration;

use minikeeper_recipes::{SharedCount, ValueError};
use tokio::time::{sleep, timeout};

use crate::sim::contender::Contender;

const PATH: &str = "/counts/many";

pub(super) async fn contend(mut me: Contender) {
    let count = loop {
        let start = SharedCount::start(me.client.clone(), PATH, 0);
        if let Some(Ok(count)) = me.must("a count", start).await {
            break count;
        }
        if me.is_last {
            return;
        }
    };
    let mut changes = count.changes();
    while me.next_round().await {
        if me.chance.once_in(2) {
            // Another contender's change, at least at the end.
            let wait = me.chance.millis(2_000);
            if let Ok(Ok(_)) = timeout(wait, changes.next()).await {
                me.judge.event("saw a change");
            }
        }
        change(&me, &count).await;
        if me.is_last {
            // Every contender learns the newest value in the end.
            me.must("the newest count", newest(&me, &count)).await;
        }
    }
}

async fn change(me: &Contender, count: &SharedCount) {
    loop {
        let current = match me.must("the count", count.get()).await {
            Some(Ok(current)) => current,
            // The request was sent before the faults ended.
            Some(Err(ValueError::Client(error))) if error.is_retryable() => continue,
            Some(Err(error)) if me.is_last => {
                return me.failed(format!("{} cannot read the count: {error}", me.who));
            }
            _ => return,
        };
        let set = count.try_set(&current, current.value + 1);
        match me.must("a change of the count", set).await {
            Some(Ok(Some(new))) => {
                return me.judge.counted("shared count", PATH, i64::from(new.value));
            }
            // Another contender was faster.
            Some(Ok(None)) => tokio::task::yield_now().await,
            Some(Err(ValueError::Client(error))) if error.is_retryable() => {
                me.judge.event("change uncertain");
            }
            Some(Err(error)) if me.is_last => {
                return me.failed(format!("{} cannot change the count: {error}", me.who));
            }
            _ => return,
        }
    }
}

/// Waits, woken by watches alone, until the cached value is that of the znode.
async fn newest(me: &Contender, count: &SharedCount) {
    let mut changes = count.changes();
    loop {
        let Ok(there) = me.client.get_data(PATH).await else {
            // A server that came back older may never have it again.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let known = count.current().map(|current| current.mzxid);
        if known.is_ok_and(|known| known >= there.stat.mzxid) {
            return;
        }
        let _ = changes.next().await;
    }
}
