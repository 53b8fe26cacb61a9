//! Passes a lock on within a process, without requests (saving S9).
//!
//! Tasks that acquire one lock object wait for their turn here, in order. Only the task whose turn
//! it is has a znode in the queue, or takes over the znode of the last holder. One live znode has
//! one holder, so to other processes the tasks look like one contender that holds the lock for a
//! long time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper_client::Client;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::Instant,
};

use crate::{client::Standing, clock, queue::queue_node::QueueNode};

/// Limits how long a lock stays within a process while other processes wait for it.
///
/// # Examples
/// ```
/// use minikeeper_recipes::{LocalHandOver, LockOptions};
/// let mut options = LockOptions::default();
/// options.local_hand_over = Some(LocalHandOver::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalHandOver {
    /// How often the lock is passed on before its znode is deleted.
    ///
    /// Default: 16.
    pub times_max: u32,
    /// How long after the grant the lock is still passed on.
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

/// A znode that is passed on to the next task.
struct Kept {
    place: QueueNode,
    hold: LocalHold,
}

/// The hold of a lock by this process, over all tasks it was passed to.
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

/// The tasks of a process that acquire one lock object.
pub(crate) struct Local {
    limit: LocalHandOver,
    turns: Arc<Mutex<Option<Kept>>>,
    waiting: AtomicUsize,
}

impl Local {
    pub(crate) fn new(limit: LocalHandOver) -> Self {
        Self {
            limit,
            turns: Arc::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for the caller's turn.
    pub(crate) async fn turn(self: Arc<Self>) -> Turn {
        let waiting = LocalWaiter::begin(&self);
        let turn = Arc::clone(&self.turns).lock_owned().await;
        drop(waiting);
        Turn {
            local: self,
            turn,
            hold: LocalHold::begin(),
        }
    }

    /// Deletes a znode that was kept for a task that has given up. Both the task that keeps a znode
    /// and the task that gives up call this afterwards, so one of them sees what the other did.
    fn sweep(&self) {
        if self.waiting.load(Ordering::SeqCst) == 0
            && let Ok(mut kept) = self.turns.try_lock()
        {
            drop(kept.take());
        }
    }
}

/// A task that waits for its turn.
struct LocalWaiter<'a>(&'a Local);

impl<'a> LocalWaiter<'a> {
    fn begin(local: &'a Local) -> Self {
        local.waiting.fetch_add(1, Ordering::SeqCst);
        Self(local)
    }
}

impl Drop for LocalWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.sweep();
    }
}

/// The right to queue for this process, or to hold the lock.
pub(crate) struct Turn {
    local: Arc<Local>,
    turn: OwnedMutexGuard<Option<Kept>>,
    hold: LocalHold,
}

impl Turn {
    /// Returns the znode that the last holder has passed on, if it certainly still holds the lock.
    pub(crate) fn take_over(&mut self, client: &Client) -> Option<QueueNode> {
        let Kept { mut place, hold } = self.turn.take()?;
        self.hold = hold;
        // The caller did not see the grant, so it must be certain.
        let is_certain = matches!(
            Standing::of(client),
            Standing::Connected { epoch, safe_until }
                if epoch == place.epoch && clock::now() < safe_until
        );
        (is_certain && !place.is_reported_deleted()).then_some(place)
    }

    /// Starts the time and the count of a new grant.
    pub(crate) fn begin(&mut self) {
        self.hold = LocalHold::begin();
    }

    /// Returns how often the lock was passed on.
    pub(crate) const fn passes(&self) -> u32 {
        self.hold.passes
    }

    /// Returns whether the lock may be passed on and a task waits for it.
    pub(crate) fn may_pass(&self) -> bool {
        self.local.waiting.load(Ordering::SeqCst) > 0
            && self.hold.passes < self.local.limit.times_max
            && clock::now() < self.hold.since + self.local.limit.time_max
    }

    /// Passes the lock on.
    pub(crate) fn pass(self, place: QueueNode) {
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
