//! Creates, forks and drops universes; finds the one that a path or session belongs to.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fmt,
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use minikeeper_engine::Engine;
use minikeeper_protocol::{SessionId, path};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::{
    clock::Clock,
    net::reachability::Phase,
    start,
    story::panics,
    turn::turns::Turns,
    universe::{Universe, state::UniverseState, time_control},
};

/// A universe that is dropped with this guard: its connections close and its state is deleted.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper_client::{Client, CreateMode};
/// let server = minikeeper::Server::builder().start().await?;
/// let mine = server.create_universe("mine")?;
/// // "127.0.0.1:<port>/mine": everything that its clients do stays in this universe.
/// let client = Client::connect(&mine.connect_string()).await?;
/// client.create("/a", b"", CreateMode::Persistent).await?;
/// assert!(mine.get("/a").is_some() && server.get("/a").is_none());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct UniverseGuard {
    universe: Universe,
    is_kept: bool,
}

impl UniverseGuard {
    /// Keeps the universe until [`drop_universe`](Universe::drop_universe) or the end of the
    /// server.
    #[must_use]
    pub fn keep(mut self) -> Universe {
        self.is_kept = true;
        self.universe.clone()
    }
}

impl Deref for UniverseGuard {
    type Target = Universe;

    fn deref(&self) -> &Universe {
        &self.universe
    }
}

impl Drop for UniverseGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            panics::tell(&self.universe);
            self.universe.drop_universe(&self.universe.name());
        }
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

impl Universe {
    /// Returns the universe's name; empty for the server's own.
    #[must_use]
    pub fn name(&self) -> String {
        let prefix = self.shared.turns.prefix();
        prefix.strip_prefix('/').unwrap_or(prefix).to_owned()
    }

    /// Creates a universe behind the server's port: an empty tree with its own zxid, sessions,
    /// clock, faults and limits, and the server's settings.
    ///
    /// Clients select it by their chroot, which is its name: see
    /// [`connect_string`](Universe::connect_string). A connection belongs to the universe whose
    /// name begins the first path that it sends.
    ///
    /// # Errors
    /// When the name is not a single path component, or is taken.
    pub fn create_universe(&self, name: &str) -> Result<UniverseGuard, UniverseError> {
        let clock = start::clock(&self.root.config);
        let settings = start::settings(&self.root.config, &clock);
        self.add(name, |_| (Engine::new(settings), clock))
    }

    /// Creates a universe as [`create_universe`](Universe::create_universe) does, with an unused
    /// name.
    ///
    /// # Errors
    /// When the server has stopped.
    pub fn new_universe(&self) -> Result<UniverseGuard, UniverseError> {
        loop {
            let name = format!("universe-{}", self.root.server.universes.next_number());
            match self.create_universe(&name) {
                Err(UniverseError::Taken { .. }) => {}
                outcome => return outcome,
            }
        }
    }

    /// Creates a universe as a copy of this one: znodes, zxid, clock and sessions. The sessions
    /// wait for their clients to reconnect under the name of the copy. From then on the two
    /// universes are independent.
    ///
    /// # Errors
    /// Those of [`create_universe`](Universe::create_universe).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/a", b"1", CreateMode::Persistent).await?;
    /// let copy = server.fork("copy")?;
    /// client.delete("/a", None).await?;
    /// assert!(copy.get("/a").is_some());
    /// # Ok(()) }
    /// ```
    pub fn fork(&self, name: &str) -> Result<UniverseGuard, UniverseError> {
        self.add(name, |first_session_id| {
            let turns = &self.shared.turns;
            let (copy, clock) = turns.copied(|_| turns.clock().fork());
            (copy.finish(first_session_id), clock)
        })
    }

    fn add(
        &self,
        name: &str,
        make: impl FnOnce(SessionId) -> (Engine, Clock),
    ) -> Result<UniverseGuard, UniverseError> {
        let prefix = format!("/{name}");
        if name.contains('/') || !path::is_valid(prefix.as_bytes()) || prefix == "/" {
            return Err(UniverseError::InvalidName {
                name: name.to_owned(),
            });
        }
        let taken = || UniverseError::Taken {
            name: name.to_owned(),
        };
        let server = &self.root.server;
        if server.reachability.phase() == Phase::Stopped {
            return Err(UniverseError::Stopped);
        }
        let is_znode = |engine: &Engine| engine.get(&prefix).is_some();
        if self.root.turns.inspect(is_znode) || server.universes.get(name).is_some() {
            return Err(taken());
        }
        // Clients' sessions keep the id they got in the server's own universe, whose ids begin with
        // 1 in the top byte.
        let number = server.universes.next_number().cast_signed();
        let (engine, clock) = make(SessionId((2 << 56) | (number << 32)));
        let config = self.root.config.clone();
        let turns = Turns::new(engine, clock, &config, Arc::clone(&server.ensemble))
            .with_prefix(prefix.clone())
            .with_journal(config.journal_size());
        let shared = Arc::new(UniverseState::new(config, turns, Arc::clone(server)));
        let expiry = server
            .runtime
            .spawn(time_control::run(Arc::clone(&shared)))
            .abort_handle();
        let added = server
            .universes
            .add(name, Arc::clone(&shared), expiry.clone());
        added.inspect_err(|_| expiry.abort())?;
        Ok(UniverseGuard {
            universe: Self {
                shared,
                root: Arc::clone(&self.root),
            },
            is_kept: false,
        })
    }

    /// Finds a universe by name; the empty name is the server's own.
    #[must_use]
    pub fn universe_named(&self, name: &str) -> Option<Self> {
        let root = Arc::clone(&self.root);
        let shared = if name.is_empty() {
            Arc::clone(&root)
        } else {
            root.server.universes.get(name)?
        };
        Some(Self { shared, root })
    }

    /// Lists the names of all universes but the server's own, in order.
    #[must_use]
    pub fn universes(&self) -> Vec<String> {
        self.root.server.universes.names()
    }

    /// Returns whether the universe was dropped, or the server has stopped for ever.
    pub(crate) fn is_over(&self) -> bool {
        if self.root.server.reachability.phase() == Phase::Stopped {
            return true;
        }
        let is_own = Arc::ptr_eq(&self.shared, &self.root);
        let registered = || self.root.server.universes.get(&self.name());
        !is_own && !registered().is_some_and(|found| Arc::ptr_eq(&found, &self.shared))
    }

    /// Drops a universe: closes its connections and deletes its state. Returns whether it existed.
    pub fn drop_universe(&self, name: &str) -> bool {
        let dropped = self.root.server.universes.remove(name);
        if let Some(shared) = &dropped {
            shared.turns.stop();
        }
        dropped.is_some()
    }
}

/// The universes beside the server's own.
#[derive(Debug, Default)]
pub(crate) struct Registry {
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
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Returns a number that was never returned before.
    pub(crate) fn next_number(&self) -> u64 {
        let made = &mut self.inner.lock().made;
        *made += 1;
        *made
    }

    /// Adds a universe.
    ///
    /// # Errors
    /// When the name is taken, or the server has stopped.
    fn add(
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

    pub(crate) fn get(&self, name: &str) -> Option<Arc<UniverseState>> {
        let inner = self.inner.lock();
        Some(Arc::clone(&inner.by_name.get(name)?.shared))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.inner.lock().by_name.keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<UniverseState>> {
        let inner = self.inner.lock();
        let entries = inner.by_name.values();
        entries.map(|entry| Arc::clone(&entry.shared)).collect()
    }

    /// Returns whether there is exactly one.
    pub(crate) fn is_one(&self) -> bool {
        self.inner.lock().by_name.len() == 1
    }

    /// Removes a universe; the caller stops it.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<UniverseState>> {
        let entry = self.inner.lock().by_name.remove(name)?;
        entry.expiry.abort();
        Some(entry.shared)
    }

    /// Removes all of them, and refuses those that are added later.
    pub(crate) fn close(&self) -> Vec<Arc<UniverseState>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The server looked whether it was up, and added the universe after it had stopped all others: the
    /// universe went on, with its task, on a server that was gone.
    #[tokio::test]
    async fn universe_added_while_the_server_closes_is_refused() {
        let server = crate::Server::builder().start().await.unwrap();
        let before = server.create_universe("before").unwrap();
        // What the server does when it closes, behind the look of whoever adds a universe.
        let universes = &server.shared.server.universes;
        assert_eq!(universes.close().len(), 1);
        let late = server.create_universe("late");
        assert!(matches!(late, Err(UniverseError::Stopped)));
        assert_eq!(server.universes(), Vec::<String>::new());
        drop(before);
    }
}
