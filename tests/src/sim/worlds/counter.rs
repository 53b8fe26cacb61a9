//! A counter that all contenders increment.

use std::time::Duration;

use minikeeper_recipes::{AtomicError, AtomicOptions, DistributedAtomicLong, LockError, Promotion};

use crate::sim::contender::Contender;

const PATH: &str = "/counters/many";

const LOCK: &str = "/counters-locks/many";

pub(super) async fn contend(mut me: Contender) {
    let mut options = AtomicOptions::default();
    options.promotion = Some(Promotion {
        path: LOCK.to_owned(),
        within: Duration::from_secs(3_600),
    });
    let counter = DistributedAtomicLong::with_options(me.client.clone(), PATH, options).unwrap();
    while me.next_round().await {
        match me.must("counting", counter.add(1)).await {
            Some(Ok(value)) => me.judge.counted("counter", PATH, value.current),
            Some(Err(AtomicError::Contended { .. })) | None => me.judge.event("contended"),
            // The increment may have been executed.
            Some(Err(AtomicError::Failed(LockError::Client(error)))) if error.is_retryable() => {
                me.judge.event("count uncertain");
            }
            Some(Err(error)) => me.failed(format!("{} cannot count: {error}", me.who)),
        }
    }
}
