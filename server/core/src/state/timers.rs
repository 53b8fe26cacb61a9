//! Sleeps until something is due, then takes a turn: expired sessions, unfinished handshakes,
//! delayed requests.

use crate::{
    race::first_of,
    state::{UniverseState, fault_turn},
    turn::time::Jump,
};

/// Returns the next deadline if the clock jumps, in milliseconds since the start; `None` on a
/// server that is broken or down.
fn next_deadline_ms(shared: &UniverseState, jump: Jump) -> Option<u64> {
    let in_engine = shared.turns.next_deadline_ms(jump)?;
    let handshakes = shared.handshakes.next_deadline_ms();
    let delayed = shared.turns.faults.next_deadline_ms();
    [in_engine, handshakes, delayed].into_iter().flatten().min()
}

/// Returns when to check next for due work: at the next deadline or before.
fn next_tick_ms(shared: &UniverseState) -> Option<u64> {
    if shared.turns.is_broken() || shared.turns.is_stopped() {
        return None;
    }
    let in_engine = shared
        .turns
        .inspect(minikeeper_engine::Engine::next_tick_ms);
    let handshakes = shared.handshakes.next_deadline_ms();
    let delayed = shared.turns.faults.next_deadline_ms();
    [in_engine, handshakes, delayed].into_iter().flatten().min()
}

/// Handles everything that is due now.
fn tick(shared: &UniverseState) {
    shared.turns.tick();
    let closed = shared
        .handshakes
        .close_due(shared.turns.clock().elapsed_ms());
    shared.limits.expired(&shared.config, closed);
    shared
        .turns
        .faults
        .end_outages(shared.turns.clock().elapsed_ms());
    fault_turn::serve_due(shared);
    fault_turn::send_delayed_events(shared, None);
}

/// Advances the clock from deadline to deadline, and handles what is due at each.
pub fn advance(shared: &UniverseState, by_ms: u64, jump: Jump) {
    let mut left_ms = by_ms;
    while let Some(step_ms) = next_step_ms(shared, jump)
        && step_ms <= left_ms
    {
        left_ms -= step_ms;
        step(shared, step_ms, jump);
    }
    shared.turns.jump(left_ms, jump);
}

/// Advances the clock to the next deadline and handles what is due. Returns whether there was one.
pub fn advance_to_next(shared: &UniverseState) -> bool {
    let step_ms = next_step_ms(shared, Jump::Keeping);
    let step = |step_ms: &u64| step(shared, *step_ms, Jump::Keeping);
    step_ms.inspect(step).is_some()
}

/// Returns the time until the next deadline.
fn next_step_ms(shared: &UniverseState, jump: Jump) -> Option<u64> {
    let deadline_ms = next_deadline_ms(shared, jump)?;
    Some(deadline_ms.saturating_sub(shared.turns.clock().elapsed_ms()))
}

fn step(shared: &UniverseState, by_ms: u64, jump: Jump) {
    shared.turns.jump(by_ms, jump);
    tick(shared);
}

/// Handles everything as it falls due. Runs until dropped.
pub(crate) async fn run(shared: &UniverseState) {
    loop {
        // Armed for "never" first: a deadline set from here on is either seen by the next line or
        // wakes the wait.
        let rearm = shared.turns.alarm.arm(u64::MAX);
        let deadline_ms = next_tick_ms(shared).unwrap_or(u64::MAX);
        shared.turns.alarm.arm(deadline_ms);
        if deadline_ms == u64::MAX {
            rearm.notified().await;
            continue;
        }
        let due = async {
            shared.turns.clock().wait_until(deadline_ms).await;
            tick(shared);
        };
        first_of(rearm.notified(), due).await;
        // What is due may take many ticks, one after the other.
        tokio::task::yield_now().await;
    }
}
