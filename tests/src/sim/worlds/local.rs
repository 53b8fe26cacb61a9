//! A mutex that tasks of one process hand over to each other.

use std::sync::Arc;

use minikeeper_recipes::{InterProcessMutex, LocalHandOver};

use crate::sim::{
    chance::Chance,
    contender::{Contender, own},
    judge::Kind,
};

const PATH: &str = "/locks/passed-on";

/// The number of tasks that share one lock object.
const TASKS: u64 = 3;

pub(super) async fn contend(mut me: Contender) {
    let mut options = me.options.clone();
    options.local_hand_over = Some(LocalHandOver::default());
    let lock = InterProcessMutex::with_options(me.client.clone(), PATH, options).unwrap();
    let lock = Arc::new(lock);
    let mut tasks = Vec::new();
    for task in 1..TASKS {
        let colleague = Contender {
            // Each task has its own number in the history.
            who: me.who + 100 * usize::try_from(task).unwrap(),
            number: me.number,
            client: me.client.clone(),
            options: me.options.clone(),
            chance: Chance::from_seed(me.chance.below(u64::MAX)),
            judge: Arc::clone(&me.judge),
            end: me.end,
            is_last: false,
        };
        tasks.push(tokio::spawn(work(colleague, Arc::clone(&lock))));
    }
    tasks.push(tokio::spawn(work(me, lock)));
    for task in tasks {
        task.await.unwrap();
    }
}

async fn work(mut me: Contender, lock: Arc<InterProcessMutex>) {
    while me.next_round().await {
        let guard = me
            .get(|within| lock.acquire().within(within), || lock.acquire())
            .await;
        let Some(guard) = guard else { continue };
        let guard = Arc::new(guard);
        let hold = me.granted_guard("mutex passed on", PATH, Kind::Exclusive, &guard);
        if me.chance.once_in(4) {
            me.keep(guard.lost()).await;
        }
        me.judge.ended(hold);
        me.give_back(own(guard), |guard| guard.release()).await;
    }
}
