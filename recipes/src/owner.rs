//! Who may enter a lock again.
//!
//! Source: curator-recipes reference section 3.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{client::ZooKeeper, held::Held};

/// Whom a lock belongs to, for locks that one owner may take several times.
///
/// What a thread is to Curator. Tasks are no owners: they move between threads, and one task can
/// wait for two locks at once. So owners are named, or there is none: a lock that is taken without
/// an owner cannot be entered again.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Owner};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let owner = Owner::new();
/// let outer = lock.acquire_as(&owner).await?;
/// let inner = lock.acquire_as(&owner).await?;
/// drop(outer);
/// // The lock is held until the last of the owner's guards is gone.
/// assert!(lock.is_held_by(&owner));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner(u64);

impl Owner {
    /// An owner unlike any other in this process.
    ///
    /// # Examples
    /// ```
    /// use minikeeper_recipes::Owner;
    ///
    /// assert_ne!(Owner::new(), Owner::new());
    /// ```
    #[must_use]
    #[expect(clippy::new_without_default, reason = "every owner is another one")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One owner's hold of one lock, and who may ask for it just now.
pub(crate) type Hold<C> = Arc<tokio::sync::Mutex<Weak<Held<C>>>>;

/// The holds of a lock object, by owner.
#[derive(Debug)]
pub(crate) struct Holds<C: ZooKeeper> {
    by_owner: Mutex<HashMap<Owner, Hold<C>>>,
}

impl<C: ZooKeeper> Default for Holds<C> {
    fn default() -> Self {
        Self {
            by_owner: Mutex::default(),
        }
    }
}

impl<C: ZooKeeper> Holds<C> {
    /// The owner's hold. Whoever locks it first asks for the lock; the others wait for its result.
    pub(crate) fn of(&self, owner: &Owner) -> Hold<C> {
        let mut by_owner = self.by_owner.lock();
        // Holds nobody has or wants any more.
        if by_owner.len() > 64 {
            by_owner.retain(|_, hold| {
                Arc::strong_count(hold) > 1
                    || hold.try_lock().is_ok_and(|held| held.strong_count() > 0)
            });
        }
        Arc::clone(by_owner.entry(owner.clone()).or_default())
    }

    /// What the owner holds, if it does.
    pub(crate) fn held_by(&self, owner: &Owner) -> Option<Arc<Held<C>>> {
        let hold = self.by_owner.lock().get(owner).cloned()?;
        hold.try_lock().ok()?.upgrade()
    }
}
