//! Sleeps until something is due, then takes a turn: sessions that expire, handshakes that were
//! never finished.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::{
    outbox::Outbox,
    server::Shared,
    turn::{Close, Turns},
};

/// Connections that still owe their handshake, oldest first: all have the same time to do it.
#[derive(Debug)]
pub(crate) struct Fresh {
    timeout_ms: u64,
    waiting: Mutex<VecDeque<(u64, Weak<Outbox>)>>,
}

impl Fresh {
    pub(crate) fn new(timeout_ms: u64) -> Self {
        Self {
            timeout_ms,
            waiting: Mutex::default(),
        }
    }

    pub(crate) fn add(&self, outbox: &Arc<Outbox>, turns: &Turns) {
        let deadline_ms = turns
            .clock()
            .now()
            .elapsed_ms
            .saturating_add(self.timeout_ms);
        let mut waiting = self.waiting.lock();
        // Those at the front that are done or gone need not wait for their time.
        while waiting
            .front()
            .is_some_and(|(_, outbox)| !owes_handshake(outbox))
        {
            waiting.pop_front();
        }
        waiting.push_back((deadline_ms, Arc::downgrade(outbox)));
        let is_first = waiting.len() == 1;
        drop(waiting);
        if is_first {
            turns.rearm_for(Some(deadline_ms));
        }
    }

    fn next_deadline_ms(&self) -> Option<u64> {
        self.waiting
            .lock()
            .front()
            .map(|(deadline_ms, _)| *deadline_ms)
    }

    fn close_due(&self, elapsed_ms: u64) {
        let mut waiting = self.waiting.lock();
        while let Some((deadline_ms, outbox)) = waiting.front()
            && *deadline_ms <= elapsed_ms
        {
            if owes_handshake(outbox)
                && let Some(outbox) = outbox.upgrade()
                && let Some(waker) = outbox.close(Close::HandshakeTimeout)
            {
                waker.wake();
            }
            waiting.pop_front();
        }
    }
}

fn owes_handshake(outbox: &Weak<Outbox>) -> bool {
    outbox.upgrade().is_some_and(|outbox| !outbox.is_open())
}

/// When something is due next, in milliseconds since the start.
pub(crate) fn next_deadline_ms(shared: &Shared) -> Option<u64> {
    let sessions = shared
        .turns
        .inspect(minikeeper_engine::Engine::next_deadline_ms);
    let handshakes = shared.fresh.next_deadline_ms();
    sessions.into_iter().chain(handshakes).min()
}

/// Does everything that is due now.
pub(crate) fn tick(shared: &Shared) {
    shared.turns.tick();
    shared
        .fresh
        .close_due(shared.turns.clock().now().elapsed_ms);
}

/// Runs until dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        // Armed for "never" first: what becomes due from here on is either seen by the next
        // line or wakes the wait.
        let rearm = shared.turns.arm(u64::MAX);
        let deadline_ms = next_deadline_ms(&shared).unwrap_or(u64::MAX);
        shared.turns.arm(deadline_ms);
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
