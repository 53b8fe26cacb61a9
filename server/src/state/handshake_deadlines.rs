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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::Server;

    /// A word about a large state that waited for a thread was closed without an answer.
    #[tokio::test]
    async fn word_that_waits_for_a_thread_is_no_handshake() {
        let server = Server::builder().start().await.unwrap();
        let client = minikeeper_client::Client::connect(&server.connect_string())
            .await
            .unwrap();
        let mut watches = Vec::new();
        for number in 0..2_001 {
            let path = format!("/{number}");
            watches.push(client.exists_and_watch(&path).await.unwrap());
        }
        let threads = &server.shared.server.word_threads;
        let all = u32::try_from(threads.available_permits()).unwrap();
        let permits = threads.acquire_many(all).await.unwrap();
        let mut stream = tokio::net::TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(b"srvr").await.unwrap();
        let has_asked = || {
            let turns = &server.shared.turns;
            turns.read(|locked| {
                locked
                    .members
                    .iter()
                    .any(|(_, member)| member.stats.is_word)
            })
        };
        while !has_asked() {
            tokio::task::yield_now().await;
        }
        server.advance(server.shared.config.handshake_timeout + Duration::from_secs(1));
        drop(permits);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("Zookeeper version"), "{answer:?}");
        client.close().await;
    }
}
