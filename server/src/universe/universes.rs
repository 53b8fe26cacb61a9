//! The universes behind one port, and which of them a connection belongs to.
//!
//! A client names its universe by its chroot, which no server hears of: every path it sends begins
//! with it, and nothing before the first path does. So a session begins in the server's own
//! universe, and moves, unused, when its first path is seen. When it comes back over another
//! connection, it is known by its id.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use minikeeper_protocol::SessionId;
use parking_lot::Mutex;
use tokio::{runtime::Handle, task::AbortHandle};

/// Those of one server, its own aside; `S` is what connections of one have in common.
#[derive(Debug)]
pub(crate) struct Universes<S> {
    /// Whether there has ever been one: while there has not, no connection looks any further.
    is_used: AtomicBool,
    /// Where their expiry runs; none where there cannot be any.
    runtime: Option<Handle>,
    inner: Mutex<Inner<S>>,
}

#[derive(Debug)]
struct Inner<S> {
    by_name: BTreeMap<String, Entry<S>>,
    /// Where the sessions are that have moved. What is gone is swept out now and then.
    moved: HashMap<SessionId, Weak<S>>,
    /// The number of `moved` at which it is swept next.
    sweep_at: usize,
    /// How many there have been.
    made: u64,
}

#[derive(Debug)]
struct Entry<S> {
    shared: Arc<S>,
    expiry: AbortHandle,
}

/// The first number of sessions worth a sweep.
const SWEEP_MIN: usize = 1_024;

impl<S> Universes<S> {
    /// None yet, and nowhere to run any.
    pub(crate) fn none() -> Self {
        Self {
            is_used: AtomicBool::new(false),
            runtime: None,
            inner: Mutex::new(Inner {
                by_name: BTreeMap::new(),
                moved: HashMap::new(),
                sweep_at: SWEEP_MIN,
                made: 0,
            }),
        }
    }

    /// For a server on the calling runtime.
    pub(crate) fn here() -> Self {
        Self {
            runtime: Some(Handle::current()),
            ..Self::none()
        }
    }

    pub(crate) const fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }

    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// A number that no other one had.
    pub(crate) fn next_number(&self) -> u64 {
        let made = &mut self.inner.lock().made;
        *made += 1;
        *made
    }

    /// Adds one; gives it back if the name is taken.
    pub(crate) fn add(&self, name: &str, shared: Arc<S>, expiry: AbortHandle) -> bool {
        let by_name = &mut self.inner.lock().by_name;
        if by_name.contains_key(name) {
            return false;
        }
        by_name.insert(name.to_owned(), Entry { shared, expiry });
        self.is_used.store(true, Ordering::Release);
        true
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<S>> {
        let inner = self.inner.lock();
        Some(Arc::clone(&inner.by_name.get(name)?.shared))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.inner.lock().by_name.keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<S>> {
        let inner = self.inner.lock();
        let entries = inner.by_name.values();
        entries.map(|entry| Arc::clone(&entry.shared)).collect()
    }

    /// Whether there is exactly one.
    pub(crate) fn is_one(&self) -> bool {
        self.inner.lock().by_name.len() == 1
    }

    /// Takes one out, which is to be stopped then.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<S>> {
        let entry = self.inner.lock().by_name.remove(name)?;
        entry.expiry.abort();
        Some(entry.shared)
    }

    /// Takes all of them out.
    pub(crate) fn remove_all(&self) -> Vec<Arc<S>> {
        let names = self.names();
        names.iter().filter_map(|name| self.remove(name)).collect()
    }

    /// The one whose name a path begins with.
    pub(crate) fn of_path(&self, path: &[u8]) -> Option<Arc<S>> {
        let name = path
            .strip_prefix(b"/")?
            .split(|byte| *byte == b'/')
            .next()?;
        self.get(std::str::from_utf8(name).ok()?)
    }

    /// The one a session has moved to.
    pub(crate) fn of_session(&self, session: SessionId) -> Option<Arc<S>> {
        self.inner.lock().moved.get(&session)?.upgrade()
    }

    /// A session has moved; `knows` says whether one still has a session.
    pub(crate) fn note_moved(
        &self,
        session: SessionId,
        to: &Arc<S>,
        knows: impl Fn(&S, SessionId) -> bool,
    ) {
        let Inner {
            moved, sweep_at, ..
        } = &mut *self.inner.lock();
        if moved.len() >= *sweep_at {
            moved.retain(|id, shared| shared.upgrade().is_some_and(|shared| knows(&shared, *id)));
            *sweep_at = SWEEP_MIN.max(2 * moved.len());
        }
        moved.insert(session, Arc::downgrade(to));
    }
}
