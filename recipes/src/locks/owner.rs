//! Owners, which may acquire a lock again.
//!
//! Source: `docs/curator-recipes.md` section 3.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{
    error::LockError,
    locks::{guard::Guard, held::Held},
    queue::{
        contending::{Queue, Wait},
        order::Claim,
    },
    status::Status,
};

/// The owner of a lock that may be acquired several times, see
/// [`Acquire::as_owner`](crate::Acquire::as_owner).
///
/// In Curator the owner is the thread. Tasks cannot be owners: they move between threads, and one
/// task can wait for two locks at once. So the caller names the owner. A lock that was acquired
/// without an owner cannot be acquired again.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{InterProcessMutex, Owner};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let owner = Owner::new();
/// let outer = lock.acquire().as_owner(&owner).await?;
/// let inner = lock.acquire().as_owner(&owner).await?;
/// drop(outer);
/// // The lock is held until the last of the owner's guards is dropped.
/// assert!(lock.is_held_by(&owner));
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner(u64);

impl Owner {
    /// Creates an owner that differs from every other owner in this process.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "each call returns a different owner"
    )]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// An acquisition that has begun. Any task that waits for it polls it: as long as another task
/// waits, it outlives the caller that began it and keeps the place in the queue.
pub(crate) type Acquiring = Pin<Box<dyn Future<Output = Result<Guard, LockError>> + Send>>;

/// The one acquisition of an owner that is under way, and its claim.
type Flight = tokio::sync::Mutex<Option<(Claim, Acquiring)>>;

/// The hold and the acquisition of one owner at one lock object.
#[derive(Default)]
struct OwnedHold {
    /// The hold as a reader, and the hold as anything else. Reading them does not wait for an
    /// acquisition.
    held: [Weak<Held>; 2],
    /// Kept alive by the tasks that wait for it.
    flight: Weak<Flight>,
}

impl OwnedHold {
    fn is_of_use(&self) -> bool {
        self.flight.strong_count() > 0 || self.held.iter().any(|held| held.strong_count() > 0)
    }
}

/// The holds of a lock object, by owner.
#[derive(Default)]
pub(crate) struct Holds {
    by_owner: Mutex<HashMap<Owner, OwnedHold>>,
}

impl Holds {
    /// Acquires the lock for an owner: at once if the owner holds it, otherwise through the
    /// acquisition that is under way, or a new one.
    ///
    /// An owner has one acquisition at a time. So a reader finds the owner's write lock, under
    /// which it may read, and a writer finds the owner's read lock, which forbids it to write, even
    /// if another task of the owner is still acquiring that lock.
    pub(crate) async fn take(
        &self,
        queue: &Queue,
        owner: &Owner,
        claim: Claim,
        wait: Wait,
        begin: impl Fn() -> Result<Acquiring, LockError>,
    ) -> Result<Guard, LockError> {
        loop {
            if let Some(guard) = self.again(queue, owner, claim)? {
                return Ok(guard);
            }
            let flight = self.flight(owner);
            let mut flight = queue.in_time(wait, flight.lock()).await?;
            if let Some(guard) = self.again(queue, owner, claim)? {
                return Ok(guard);
            }
            // No task waits any longer for this acquisition with another claim: give it up.
            if flight.as_ref().is_some_and(|(other, _)| *other != claim) {
                *flight = None;
            }
            let Some((_, under_way)) = &mut *flight else {
                let (_, own) = flight.insert((claim, begin()?));
                let result = own.await;
                *flight = None;
                let guard = result?;
                self.remember(owner, claim, &guard);
                return Ok(guard);
            };
            // Another task has begun it, with its own deadline.
            match queue.in_time(wait, under_way).await? {
                Err(LockError::TimedOut { .. }) => *flight = None,
                result => {
                    *flight = None;
                    let guard = result?;
                    self.remember(owner, claim, &guard);
                    return Ok(guard);
                }
            }
        }
    }

    /// Returns another guard of the owner's hold; `None` if there is none.
    fn again(
        &self,
        queue: &Queue,
        owner: &Owner,
        claim: Claim,
    ) -> Result<Option<Guard>, LockError> {
        let Some(guard) = self.held_by(owner, claim) else {
            return Ok(None);
        };
        match guard.status() {
            Status::Lost(_) => Err(LockError::HoldLost {
                path: queue.path.to_string(),
            }),
            Status::Held | Status::Suspended { .. } => Ok(Some(guard)),
        }
    }

    fn flight(&self, owner: &Owner) -> Arc<Flight> {
        let mut by_owner = self.by_owner.lock();
        if by_owner.len() > OWNERS_KEPT {
            by_owner.retain(|_, hold| hold.is_of_use());
        }
        let hold = by_owner.entry(owner.clone()).or_default();
        hold.flight.upgrade().unwrap_or_else(|| {
            let flight = Arc::default();
            hold.flight = Arc::downgrade(&flight);
            flight
        })
    }

    fn remember(&self, owner: &Owner, claim: Claim, guard: &Guard) {
        let mut by_owner = self.by_owner.lock();
        let hold = by_owner.entry(owner.clone()).or_default();
        hold.held[at(claim)] = Arc::downgrade(&guard.held);
    }

    /// Returns another guard of the owner's hold, without waiting for an acquisition.
    pub(crate) fn held_by(&self, owner: &Owner, claim: Claim) -> Option<Guard> {
        let held = self.by_owner.lock().get(owner)?.held[at(claim)].upgrade()?;
        Guard::another(held)
    }

    /// Returns whether the owner holds the lock. Unlike [`Holds::held_by`] it creates no guard,
    /// which would keep a concurrent release from being the last one.
    pub(crate) fn is_held_by(&self, owner: &Owner, claim: Claim) -> bool {
        let by_owner = self.by_owner.lock();
        let held = by_owner
            .get(owner)
            .and_then(|hold| hold.held[at(claim)].upgrade());
        drop(by_owner);
        held.is_some_and(|held| held.is_kept() && !matches!(held.status(), Status::Lost(_)))
    }
}

/// How many owners are kept before those without a hold are removed.
const OWNERS_KEPT: usize = 64;

fn at(claim: Claim) -> usize {
    usize::from(claim != Claim::Read)
}
