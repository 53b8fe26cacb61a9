//! The semaphore, with one or more leases at a time and a fixed or changing maximum.

use std::{sync::Arc, time::Duration};

use minikeeper_recipes::{InterProcessSemaphoreV2, Lease, MaxLeases, SharedCount, Status};
use tokio::time::{sleep, timeout};

use minikeeper_test_kit::clock;

use crate::sim::{
    contender::{Contender, PROGRESS, own},
    judge::Kind,
    worlds::World,
};

const PATH: &str = "/locks/semaphore";
const COUNT: &str = "/locks-max";

/// The maximum at the start and at the end.
const MAX: u32 = 3;

pub(super) async fn contend(seed: u64, mut me: Contender) {
    let is_shared = seed / World::ALL.len() as u64 % 2 == 1;
    if is_shared && me.who == 0 {
        change(me).await;
        return;
    }
    me.judge.maximum_may_be(MAX);
    let max = if is_shared {
        count(&mut me).await.into()
    } else {
        MaxLeases::from(MAX)
    };
    let (client, options) = (me.client.clone(), me.options.clone());
    let is_together = options.leases_together;
    let semaphore = InterProcessSemaphoreV2::with_options(client, PATH, max, options).unwrap();
    while me.next_round().await {
        let wanted = match me.chance.below(4) {
            // The maximum may be 1, and in the last round the contender must be served.
            _ if me.is_last => 1,
            0 => 2,
            _ => 1,
        };
        let leases = if wanted == 1 {
            let one = me
                .get(
                    |within| semaphore.acquire().within(within),
                    || semaphore.acquire(),
                )
                .await;
            one.map(|one| vec![one])
        } else if is_together {
            me.get(
                |within| semaphore.acquire_many(wanted).within(within),
                || semaphore.acquire_many(wanted),
            )
            .await
        } else {
            // Two contenders that each hold a part of their leases would wait for each other
            // forever (hazard H16).
            let within = me.chance.millis(5_000);
            semaphore.acquire_many(wanted).within(within).await.ok()
        };
        if let Some(leases) = leases {
            use_leases(&mut me, leases).await;
        }
    }
}

async fn use_leases(me: &mut Contender, leases: Vec<Lease>) {
    let count = u32::try_from(leases.len()).unwrap();
    let last = leases.iter().max_by_key(|lease| lease.czxid()).unwrap();
    let grant = (last.guard().token(), last.guard().epoch());
    let leases = Arc::new(leases);
    let held = Arc::clone(&leases);
    let hold = me.granted("semaphore", PATH, Kind::Leases(count), grant, move || {
        let is_lost = |lease: &Lease| matches!(lease.status(), Status::Lost(_));
        !held.iter().any(is_lost)
    });
    me.keep(leases[0].lost()).await;
    me.judge.ended(hold);
    for lease in own(leases) {
        me.give_back(lease, |lease| lease.release()).await;
    }
}

/// Starts the shared count of the maximum.
async fn count(me: &mut Contender) -> SharedCount {
    let seed = i32::try_from(MAX).unwrap();
    loop {
        let start = SharedCount::start(me.client.clone(), COUNT, seed);
        if let Some(Ok(count)) = me.must("the maximum", start).await {
            return count;
        }
    }
}

/// Changes the maximum from time to time, and restores it at the end.
async fn change(mut me: Contender) {
    me.judge.maximum_may_be(MAX);
    let count = count(&mut me).await;
    loop {
        let is_over = clock::now() >= me.end;
        let max = if is_over {
            MAX
        } else {
            1 + u32::try_from(me.chance.below(4)).unwrap()
        };
        me.judge.maximum_may_be(max);
        let set = count.set(i32::try_from(max).unwrap());
        match timeout(PROGRESS, set).await {
            Ok(Ok(_)) => {
                me.judge.maximum_is(max);
                me.judge.event("maximum changed");
                if is_over {
                    break;
                }
            }
            Ok(Err(_)) => {}
            Err(_) if is_over => {
                me.judge.violation("the maximum cannot be set".into());
                break;
            }
            Err(_) => {}
        }
        sleep(Duration::from_secs(1) + me.chance.millis(9_000)).await;
    }
}
