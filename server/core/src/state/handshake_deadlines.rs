//! Closes connections that do not finish the handshake in time.
//!
//! Source: `docs/zookeeper-protocol.md` section 6.1.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::{
    outbox::{Close, Outbox},
    turn::turns::Turns,
};

/// The connections without a handshake yet, oldest first. All have the same time limit.
#[derive(Debug)]
pub(crate) struct HandshakeDeadlines {
    timeout_ms: u64,
    waiting: Mutex<PendingHandshake>,
}

#[derive(Debug)]
struct PendingHandshake {
    /// Deadline and connection.
    queue: VecDeque<(u64, Weak<Outbox>)>,
    /// The length at which the whole queue is swept for finished and closed connections.
    sweep_at: usize,
}

/// The smallest length worth a sweep.
const SWEEP_MIN: usize = 1_024;

impl HandshakeDeadlines {
    pub(crate) fn new(timeout_ms: u64) -> Self {
        Self {
            timeout_ms,
            waiting: Mutex::new(PendingHandshake {
                queue: VecDeque::new(),
                sweep_at: SWEEP_MIN,
            }),
        }
    }

    pub(crate) fn add(&self, outbox: &Arc<Outbox>, turns: &Turns) {
        let deadline_ms = turns.clock().elapsed_ms().saturating_add(self.timeout_ms);
        let mut waiting = self.waiting.lock();
        let PendingHandshake { queue, sweep_at } = &mut *waiting;
        // Finished and closed connections at the front are removed at once. The others must not
        // pile up behind a slow one either, because the clock may be frozen.
        while queue
            .front()
            .is_some_and(|(_, outbox)| !owes_handshake(outbox))
        {
            queue.pop_front();
        }
        if queue.len() >= *sweep_at {
            queue.retain(|(_, outbox)| owes_handshake(outbox));
            *sweep_at = SWEEP_MIN.max(2 * queue.len());
        }
        queue.push_back((deadline_ms, Arc::downgrade(outbox)));
        let is_first = queue.len() == 1;
        drop(waiting);
        if is_first {
            turns.alarm.rearm_for(Some(deadline_ms));
        }
    }

    /// Returns whether a connection has not finished its handshake.
    pub(crate) fn is_any(&self) -> bool {
        let queue = &self.waiting.lock().queue;
        queue.iter().any(|(_, outbox)| owes_handshake(outbox))
    }

    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.waiting
            .lock()
            .queue
            .front()
            .map(|(deadline_ms, _)| *deadline_ms)
    }

    /// Closes connections past their deadline. Returns how many.
    pub(crate) fn close_due(&self, elapsed_ms: u64) -> u64 {
        let mut closed = 0;
        let queue = &mut self.waiting.lock().queue;
        while let Some((deadline_ms, outbox)) = queue.front()
            && *deadline_ms <= elapsed_ms
        {
            if owes_handshake(outbox)
                && let Some(outbox) = outbox.upgrade()
            {
                closed += 1;
                if let Some(waker) = outbox.close(Close::HandshakeTimeout) {
                    waker.wake();
                }
            }
            queue.pop_front();
        }
        closed
    }
}

fn owes_handshake(outbox: &Weak<Outbox>) -> bool {
    outbox
        .upgrade()
        .is_some_and(|outbox| outbox.owes_handshake())
}
