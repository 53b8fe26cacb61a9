//! The task that lets time pass in a universe: does what is due, and moves frozen time ahead
//! whenever nobody has anything to do, if that is wished.

use std::{sync::Arc, time::Duration};

use crate::{turn::timers, universe::state::Shared};

/// How long the first word of a connection is waited for before time moves on without it.
const GREETING: Duration = Duration::from_secs(1);

/// Runs until dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    tokio::join!(timers::run(&shared), auto_advance(&shared));
}

async fn auto_advance(shared: &Shared) {
    let movers = &shared.movers;
    loop {
        match movers.quiet() {
            None => movers.changed().await,
            Some(quiet) => {
                tokio::select! {
                    biased;
                    () = movers.changed() => {}
                    () = advance_when_idle(shared, quiet) => {}
                }
            }
        }
    }
}

/// Waits until nobody has asked for anything for so long, moves on to the next deadline, and so
/// on, until dropped.
async fn advance_when_idle(shared: &Shared, quiet: Duration) {
    let waiting = shared.turns.heed.wait();
    loop {
        let turned = waiting.turned();
        tokio::select! {
            biased;
            () = turned => continue,
            () = tokio::time::sleep(quiet) => {}
        }
        // Who has just connected is about to ask for something.
        if shared.fresh.is_any() {
            let turned = waiting.turned();
            if tokio::time::timeout(GREETING, turned).await.is_ok() {
                continue;
            }
        }
        let (turned, clock) = (waiting.turned(), shared.turns.clock());
        let changed = clock.changed();
        if clock.is_frozen() {
            let _mover = shared.movers.enter();
            if timers::advance_to_next(shared) {
                continue;
            }
        }
        // Nothing to move on to, until something happens.
        tokio::select! {
            () = turned => {}
            () = changed => {}
        }
    }
}
