//! The universes of a server: by name, by path, and by session.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use minikeeper_protocol::SessionId;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::state::UniverseState;

/// The universes beside the server's own.
#[derive(Debug, Default)]
pub struct Registry {
    /// Whether there has ever been one. Until then, connections skip the search for their universe.
    is_used: AtomicBool,
    inner: Mutex<RegistryState>,
}

#[derive(Debug)]
struct RegistryState {
    by_name: BTreeMap<String, RegisteredUniverse>,
    /// The universe of each session that has moved. Ended ones are swept out now and then.
    moved: HashMap<SessionId, Weak<UniverseState>>,
    /// The length of `moved` at which it is swept next.
    sweep_at: usize,
    /// The last number given to a universe.
    made: u64,
    /// Whether the server has stopped: it would not stop a universe that is added now.
    is_closed: bool,
}

#[derive(Debug)]
struct RegisteredUniverse {
    shared: Arc<UniverseState>,
    expiry: AbortHandle,
}

/// The smallest number of sessions worth a sweep.
const SWEEP_MIN: usize = 1_024;

impl Default for RegistryState {
    fn default() -> Self {
        Self {
            by_name: BTreeMap::new(),
            moved: HashMap::new(),
            sweep_at: SWEEP_MIN,
            made: 0,
            is_closed: false,
        }
    }
}

impl Registry {
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Returns a number that was never returned before.
    pub fn next_number(&self) -> u64 {
        let made = &mut self.inner.lock().made;
        *made += 1;
        *made
    }

    /// Adds a universe.
    ///
    /// # Errors
    /// When the name is taken, or the server has stopped.
    pub fn add(
        &self,
        name: &str,
        shared: Arc<UniverseState>,
        expiry: AbortHandle,
    ) -> Result<(), UniverseError> {
        let inner = &mut *self.inner.lock();
        if inner.is_closed {
            return Err(UniverseError::Stopped);
        }
        let name = name.to_owned();
        if inner.by_name.contains_key(&name) {
            return Err(UniverseError::Taken { name });
        }
        let universe = RegisteredUniverse { shared, expiry };
        inner.by_name.insert(name, universe);
        self.is_used.store(true, Ordering::Release);
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<Arc<UniverseState>> {
        let inner = self.inner.lock();
        Some(Arc::clone(&inner.by_name.get(name)?.shared))
    }

    pub fn names(&self) -> Vec<String> {
        self.inner.lock().by_name.keys().cloned().collect()
    }

    pub fn all(&self) -> Vec<Arc<UniverseState>> {
        let inner = self.inner.lock();
        let entries = inner.by_name.values();
        entries.map(|entry| Arc::clone(&entry.shared)).collect()
    }

    /// Returns whether there is exactly one.
    pub fn is_one(&self) -> bool {
        self.inner.lock().by_name.len() == 1
    }

    /// Removes a universe; the caller stops it.
    pub fn remove(&self, name: &str) -> Option<Arc<UniverseState>> {
        let entry = self.inner.lock().by_name.remove(name)?;
        entry.expiry.abort();
        Some(entry.shared)
    }

    /// Removes all of them, and refuses those that are added later.
    pub fn close(&self) -> Vec<Arc<UniverseState>> {
        let universes = {
            let inner = &mut *self.inner.lock();
            inner.is_closed = true;
            std::mem::take(&mut inner.by_name)
        };
        let removed = universes.into_values().map(|universe| {
            universe.expiry.abort();
            universe.shared
        });
        removed.collect()
    }

    /// Returns the universe whose name begins a path.
    pub(crate) fn of_path(&self, path: &[u8]) -> Option<Arc<UniverseState>> {
        let name = path
            .strip_prefix(b"/")?
            .split(|byte| *byte == b'/')
            .next()?;
        self.get(std::str::from_utf8(name).ok()?)
    }

    /// Returns the universe that a session has moved to.
    pub(crate) fn of_session(&self, session: SessionId) -> Option<Arc<UniverseState>> {
        self.inner.lock().moved.get(&session)?.upgrade()
    }

    /// Records that a session has moved. `knows` says whether a universe still has a session.
    pub(crate) fn note_moved(
        &self,
        session: SessionId,
        to: &Arc<UniverseState>,
        knows: impl Fn(&UniverseState, SessionId) -> bool,
    ) {
        let RegistryState {
            moved, sweep_at, ..
        } = &mut *self.inner.lock();
        if moved.len() >= *sweep_at {
            moved.retain(|id, shared| shared.upgrade().is_some_and(|shared| knows(&shared, *id)));
            *sweep_at = SWEEP_MIN.max(2 * moved.len());
        }
        moved.insert(session, Arc::downgrade(to));
    }
}

/// Why a universe cannot be created.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UniverseError {
    /// The name cannot be the first name in a path.
    InvalidName {
        /// The name.
        name: String,
    },
    /// A universe has this name, or a znode does, whose clients would end up in the universe.
    Taken {
        /// The name.
        name: String,
    },
    /// The server has stopped.
    Stopped,
}

impl fmt::Display for UniverseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName { name } => write!(
                f,
                "{name:?} cannot name a universe; use a single path component, such as \"test-1\""
            ),
            Self::Taken { name } => write!(
                f,
                "the name {name:?} is taken by a universe or a znode; drop that or use another name"
            ),
            Self::Stopped => f.write_str("the server has stopped"),
        }
    }
}

impl Error for UniverseError {}
