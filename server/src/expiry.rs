//! Sleeps until something is due, then takes a turn: sessions that expire, handshakes that were
//! never finished, requests that a fault delays.

use std::sync::Arc;

use crate::{fault_turn, shared::Shared};

/// When something is due next, in milliseconds since the start; nothing is on a broken server.
pub(crate) fn next_deadline_ms(shared: &Shared) -> Option<u64> {
    if shared.turns.is_broken() {
        return None;
    }
    let sessions = shared
        .turns
        .inspect(minikeeper_engine::Engine::next_tick_ms);
    let handshakes = shared.fresh.next_deadline_ms();
    let delayed = shared.turns.faults.next_deadline_ms();
    [sessions, handshakes, delayed].into_iter().flatten().min()
}

/// Does everything that is due now.
pub(crate) fn tick(shared: &Shared) {
    shared.turns.tick();
    let closed = shared.fresh.close_due(shared.turns.clock().elapsed_ms());
    shared.limits.expired(&shared.config, closed);
    fault_turn::serve_due(shared);
}

/// Runs until dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        // Armed for "never" first: what becomes due from here on is either seen by the next
        // line or wakes the wait.
        let rearm = shared.turns.alarm.arm(u64::MAX);
        let deadline_ms = next_deadline_ms(&shared).unwrap_or(u64::MAX);
        shared.turns.alarm.arm(deadline_ms);
        if deadline_ms == u64::MAX {
            rearm.notified().await;
            continue;
        }
        tokio::select! {
            biased;
            () = rearm.notified() => {}
            () = shared.turns.clock().wait_until(deadline_ms) => tick(&shared),
        }
    }
}
