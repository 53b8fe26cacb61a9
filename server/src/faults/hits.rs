//! Counts how often a fault has acted; waits for a count.

use std::{pin::pin, time::Duration};

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// The counters of one fault, shared with the callers that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    seen: Mutex<Seen>,
    /// Both are notified of every change: threads wait on the first, tasks on the second.
    changed: Condvar,
    notify: Notify,
}

/// The observed effects of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    /// The number of messages that it matched.
    pub(crate) matches: u64,
    /// The number of times it has acted.
    pub(crate) hits: u64,
    /// Whether it was removed.
    pub(crate) is_removed: bool,
}

impl Hits {
    pub(crate) fn seen(&self) -> Seen {
        *self.seen.lock()
    }

    pub(crate) fn matched(&self) {
        self.seen.lock().matches += 1;
    }

    /// Counts an action that is done, or that has begun if it takes time.
    pub(crate) fn hit(&self) {
        self.change(|seen| seen.hits += 1);
    }

    pub(crate) fn remove(&self) {
        self.change(|seen| seen.is_removed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock());
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// Waits until the fault has acted `hits` times, or is removed.
    pub(crate) async fn until(&self, hits: u64) -> Seen {
        loop {
            let mut changed = pin!(self.notify.notified());
            // Registered before reading the counts, so that no change in between is missed.
            changed.as_mut().enable();
            let seen = self.seen();
            if seen.hits >= hits || seen.is_removed {
                return seen;
            }
            changed.await;
        }
    }

    /// Does the same as [`Hits::until`], blocking the thread for at most `within`.
    pub(crate) fn until_blocking(&self, hits: u64, within: Duration) -> Seen {
        let mut seen = self.seen.lock();
        let waits = |seen: &mut Seen| seen.hits < hits && !seen.is_removed;
        self.changed.wait_while_for(&mut seen, waits, within);
        *seen
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn changes_wake_waiting_threads_and_tasks() {
        let hits = Arc::new(Hits::default());
        let counting = Arc::clone(&hits);
        let thread = std::thread::spawn(move || {
            for _ in 0..3 {
                counting.hit();
            }
        });
        let seen = hits.until_blocking(3, Duration::from_secs(10));
        assert_eq!(seen.hits, 3);
        thread.join().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let seen = runtime.block_on(async {
            let waiting = Arc::clone(&hits);
            let waiting = tokio::spawn(async move { waiting.until(4).await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            hits.remove();
            waiting.await.unwrap()
        });
        assert!(seen.is_removed);
    }
}
