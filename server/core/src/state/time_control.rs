//! Controls who advances the clock: callers, one at a time, and the server itself while all clients
//! are idle.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::timeout};

use crate::{
    race::first_of,
    state::{UniverseState, timers},
};

#[derive(Debug, Default)]
pub struct TimeControl {
    moving: Mutex<()>,
    /// How long all clients must be idle, in real time, before the server advances its frozen
    /// clock; `None` for never.
    quiet: Mutex<Option<Duration>>,
    changed: Notify,
}

impl TimeControl {
    /// Locks the clock for a caller that advances it from deadline to deadline.
    pub fn enter(&self) -> MutexGuard<'_, ()> {
        self.moving.lock()
    }

    pub fn set_quiet(&self, quiet: Option<Duration>) {
        *self.quiet.lock() = quiet;
        self.changed.notify_one();
    }

    pub(crate) fn quiet(&self) -> Option<Duration> {
        *self.quiet.lock()
    }

    /// Waits until [`TimeControl::set_quiet`] is called. One task may do so.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// How long an idle clock waits for the handshake of a new connection before it advances.
const GREETING: Duration = Duration::from_secs(1);

/// Handles everything that falls due, and advances an idle clock. Runs until dropped.
pub async fn run(shared: Arc<UniverseState>) {
    // Neither ends.
    first_of(timers::run(&shared), auto_advance(&shared)).await;
}

async fn auto_advance(shared: &UniverseState) {
    let movers = &shared.time_control;
    loop {
        match movers.quiet() {
            None => movers.changed().await,
            Some(quiet) => first_of(movers.changed(), advance_when_idle(shared, quiet)).await,
        }
    }
}

/// Advances the clock to the next deadline whenever no client has sent a request for `quiet`. Runs
/// until dropped.
async fn advance_when_idle(shared: &UniverseState, quiet: Duration) {
    let waiting = shared.turns.activity.wait();
    loop {
        let turned = waiting.turned();
        if timeout(quiet, turned).await.is_ok() {
            continue;
        }
        // A client that has just connected is about to send a request.
        if shared.handshakes.is_any() {
            let turned = waiting.turned();
            if timeout(GREETING, turned).await.is_ok() {
                continue;
            }
        }
        let (turned, clock) = (waiting.turned(), shared.turns.clock());
        let changed = clock.changed();
        if clock.is_frozen() {
            let _mover = shared.time_control.enter();
            if timers::advance_to_next(shared) {
                continue;
            }
        }
        // Nothing is due until the next activity.
        first_of(turned, changed).await;
    }
}
