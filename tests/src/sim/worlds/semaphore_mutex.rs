//! The semaphore with one lease.

use std::sync::Arc;

use minikeeper_recipes::InterProcessSemaphoreMutex;

use crate::sim::{
    contender::{Contender, own},
    judge::Kind,
};

const PATH: &str = "/locks/semaphore-mutex";

pub(super) async fn contend(mut me: Contender) {
    let (client, options) = (me.client.clone(), me.options.clone());
    let lock = InterProcessSemaphoreMutex::with_options(client, PATH, options).unwrap();
    while me.next_round().await {
        let guard = me
            .get(|within| lock.acquire().within(within), || lock.acquire())
            .await;
        let Some(guard) = guard else { continue };
        let guard = Arc::new(guard);
        let hold = me.granted_guard("semaphore mutex", PATH, Kind::Exclusive, &guard);
        me.keep(guard.lost()).await;
        me.judge.ended(hold);
        me.give_back(own(guard), |guard| guard.release()).await;
    }
}
