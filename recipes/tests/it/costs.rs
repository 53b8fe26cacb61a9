//! The cost of waiting, and exact deadlines (`docs/curator-recipes.md` sections 14 and 15.9).

use std::time::Duration;

use minikeeper_recipes::{InterProcessMutex, LockError, LockOptions};
use tokio::time::sleep;

use crate::{
    clock,
    kit::{PATH, both_ways, contender, contender_with, queue, soon, spawn, start, until},
    wire::Wire,
};

/// The number of waiting contenders.
const WAITING: usize = 200;

/// Returns the cost of a hand-over in a queue of [`WAITING`] contenders: requests, and bytes
/// received.
async fn hand_over_costs(options: LockOptions) -> (usize, usize) {
    let server = start().await;
    let wire = Wire::to(&server);
    let lock = InterProcessMutex::with_options(wire.client(1).await, PATH, options).unwrap();
    let held = lock.acquire().await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..WAITING {
        let lock = lock.clone();
        waiting.push(spawn(async move {
            drop(lock.acquire().await.unwrap());
        }));
        until("it waits", || queue(&server).len() == number + 2).await;
    }
    sleep(Duration::from_millis(100)).await;
    wire.arm(None);
    drop(held);
    for waiter in waiting {
        soon(waiter).await.unwrap();
    }
    (wire.requests() / WAITING, wire.received() / WAITING)
}

#[tokio::test(start_paused = true)]
async fn hand_over_in_a_long_queue_costs_no_more_than_in_curator() {
    let [thrifty, exact] = both_ways();
    let thrifty = hand_over_costs(thrifty).await;
    let exact = hand_over_costs(exact).await;
    println!("requests and bytes of a hand-over: {thrifty:?}, as Curator {exact:?}");
    // This is a list of the remaining contenders, 59 bytes each: Curator reads it before the grant,
    // this crate earlier.
    let list = WAITING / 2 * 59;
    assert!((list..list + 1000).contains(&exact.1), "{exact:?}");
    assert!(thrifty.1 <= exact.1, "{thrifty:?}");
    assert!(
        thrifty.0 <= exact.0 && exact.0 <= 4,
        "{thrifty:?}, {exact:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn lock_released_before_the_deadline_is_granted_and_after_it_is_not() {
    let within = Duration::from_millis(500);
    let step = Duration::from_millis(1);
    for options in both_ways() {
        for (release_after, is_granted) in [
            (within - step, Some(true)),
            // Either outcome is right.
            (within, None),
            (within + step, Some(false)),
        ] {
            let server = start().await;
            let other = contender(&server, 1).await;
            let held = other.lock.acquire().await.unwrap();
            let one = contender_with(&server, 2, options.clone()).await;
            let begun = clock::now();
            let (result, held) = tokio::join!(one.lock.acquire().within(within), async {
                sleep(release_after).await;
                drop(held);
                clock::now()
            });
            let took = held.max(clock::now()) - begun;
            assert!(took <= within + 2 * step, "{took:?}");
            match result {
                Ok(guard) => {
                    assert_ne!(is_granted, Some(false));
                    until("one is left", || queue(&server).len() == 1).await;
                    drop(guard);
                }
                Err(LockError::TimedOut { .. }) => assert_ne!(is_granted, Some(true)),
                Err(error) => panic!("{error}"),
            }
            until("nothing is left", || queue(&server).is_empty()).await;
        }
    }
}
