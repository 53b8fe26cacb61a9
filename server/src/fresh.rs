//! Connections that still owe their handshake, and when they have to have made it.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::{
    outbox::{Close, Outbox},
    turn::Turns,
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

    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.waiting
            .lock()
            .front()
            .map(|(deadline_ms, _)| *deadline_ms)
    }

    pub(crate) fn close_due(&self, elapsed_ms: u64) {
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
