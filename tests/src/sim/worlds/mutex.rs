//! The mutex, sometimes reentered.

use std::sync::Arc;

use minikeeper_recipes::{InterProcessMutex, LockError, Owner};

use crate::sim::{
    contender::{Contender, own},
    judge::Kind,
};

const PATH: &str = "/locks/mutex";

pub(super) async fn contend(mut me: Contender) {
    let lock =
        InterProcessMutex::with_options(me.client.clone(), PATH, me.options.clone()).unwrap();
    let owner = Owner::new();
    while me.next_round().await {
        let is_owned = me.chance.once_in(3);
        let guard = if is_owned {
            me.get(
                |within| lock.acquire().as_owner(&owner).within(within),
                || lock.acquire().as_owner(&owner),
            )
            .await
        } else {
            me.get(|within| lock.acquire().within(within), || lock.acquire())
                .await
        };
        let Some(guard) = guard else { continue };
        let guard = Arc::new(guard);
        let hold = me.granted_guard("mutex", PATH, Kind::Exclusive, &guard);
        if is_owned {
            // Reentering succeeds at once, unless the hold is lost.
            match me.must("reentering", lock.acquire().as_owner(&owner)).await {
                Some(Ok(again)) if again.token() == guard.token() => me.judge.event("reentered"),
                Some(Err(LockError::HoldLost { .. })) | None => {}
                Some(other) => me.failed(format!("reentering: {other:?}")),
            }
        }
        me.keep(guard.lost()).await;
        me.judge.ended(hold);
        me.give_back(own(guard), |guard| guard.release()).await;
    }
}
