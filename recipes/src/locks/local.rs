//! Passing a lock on inside a process, without a word to the server (saving S9).
//!
//! Tasks that want one lock object wait for their turn here, in order; only the one whose turn it
//! is has a znode in the queue, or takes over the one the last holder leaves. There is one holder
//! under one live znode, so to others it looks like one that holds the lock for long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::Instant,
};

use crate::{
    client::{Standing, ZooKeeper},
    clock,
    queue::queue_node::QueueNode,
};

/// How long a lock may stay within a process while others wait for it.
///
/// # Examples
/// ```
/// use minikeeper_recipes::{LocalHandOver, LockOptions};
/// let mut options = LockOptions::default();
/// options.local_hand_over = Some(LocalHandOver::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalHandOver {
    /// How often the lock is passed on before its znode goes.
    ///
    /// Default: 16.
    pub times_max: u32,
    /// How long after it was granted the lock is still passed on.
    ///
    /// Default: 100 ms.
    pub time_max: Duration,
}

impl Default for LocalHandOver {
    fn default() -> Self {
        Self {
            times_max: 16,
            time_max: Duration::from_millis(100),
        }
    }
}

/// A znode that is passed on.
struct Kept<C: ZooKeeper> {
    place: QueueNode<C>,
    hold: LocalHold,
}

/// The time for which a process holds a lock, by whichever of its tasks.
#[derive(Clone, Copy, Debug)]
struct LocalHold {
    since: Instant,
    /// How often it was passed on.
    passes: u32,
}

impl LocalHold {
    fn begin() -> Self {
        Self {
            since: clock::now(),
            passes: 0,
        }
    }
}

/// The tasks of a process that want one lock object.
pub(crate) struct Local<C: ZooKeeper> {
    limit: LocalHandOver,
    turns: Arc<Mutex<Option<Kept<C>>>>,
    waiting: AtomicUsize,
}

impl<C: ZooKeeper> Local<C> {
    pub(crate) fn new(limit: LocalHandOver) -> Self {
        Self {
            limit,
            turns: Arc::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for the own turn.
    pub(crate) async fn turn(self: Arc<Self>) -> Turn<C> {
        let waiting = LocalWaiter::begin(&self);
        let turn = Arc::clone(&self.turns).lock_owned().await;
        drop(waiting);
        Turn {
            local: self,
            turn,
            hold: LocalHold::begin(),
        }
    }

    /// Lets a znode go that was kept for somebody who does not come. Both who keeps one and who
    /// leaves look here afterwards, so one of them sees what the other did.
    fn sweep(&self) {
        if self.waiting.load(Ordering::SeqCst) == 0
            && let Ok(mut kept) = self.turns.try_lock()
        {
            drop(kept.take());
        }
    }
}

/// Somebody who waits for a turn.
struct LocalWaiter<'a, C: ZooKeeper>(&'a Local<C>);

impl<'a, C: ZooKeeper> LocalWaiter<'a, C> {
    fn begin(local: &'a Local<C>) -> Self {
        local.waiting.fetch_add(1, Ordering::SeqCst);
        Self(local)
    }
}

impl<C: ZooKeeper> Drop for LocalWaiter<'_, C> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.sweep();
    }
}

/// The right to stand in the queue for this process, or to hold the lock.
pub(crate) struct Turn<C: ZooKeeper> {
    local: Arc<Local<C>>,
    turn: OwnedMutexGuard<Option<Kept<C>>>,
    hold: LocalHold,
}

impl<C: ZooKeeper> Turn<C> {
    /// The znode the last holder has left, if there is one that still stands for the lock.
    pub(crate) fn take_over(&mut self, client: &C) -> Option<QueueNode<C>> {
        let Kept { mut place, hold } = self.turn.take()?;
        self.hold = hold;
        // Whoever gets it did not see it being granted: it must be certain.
        let is_certain = matches!(
            client.standing(),
            Standing::Connected { epoch, safe_until }
                if epoch == place.epoch && clock::now() < safe_until
        );
        (is_certain && !place.is_seen_to_go()).then_some(place)
    }

    /// The lock was granted just now.
    pub(crate) fn begin(&mut self) {
        self.hold = LocalHold::begin();
    }

    /// How often the lock was passed on.
    pub(crate) const fn passes(&self) -> u32 {
        self.hold.passes
    }

    /// Whether the lock may be passed on, and somebody wants it.
    pub(crate) fn may_pass(&self) -> bool {
        self.local.waiting.load(Ordering::SeqCst) > 0
            && self.hold.passes < self.local.limit.times_max
            && clock::now() < self.hold.since + self.local.limit.time_max
    }

    /// Passes the lock on.
    pub(crate) fn pass(self, place: QueueNode<C>) {
        let Self {
            local,
            mut turn,
            hold,
        } = self;
        let passes = hold.passes + 1;
        *turn = Some(Kept {
            place,
            hold: LocalHold { passes, ..hold },
        });
        drop(turn);
        local.sweep();
    }
}
