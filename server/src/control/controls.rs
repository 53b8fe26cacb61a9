//! The objects that verbs act on: the server, its universes, snapshots taken over HTTP.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use bytes::BytesMut;
use minikeeper_core::{
    config::ControlConfig,
    limits::open_connections::Slot,
    state::{UniverseState, upgrade::Upgrade},
    stream::Stream,
};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::{
    control::{access::WrongTokens, answer_body::UnreadAnswers, error::ControlError, http, tail},
    sweep::remote::Sweeps,
    universe::{Snapshot, Universe},
};

/// The parts of the server that verbs use.
#[derive(Debug)]
pub(crate) struct Controls {
    own: Universe,
    pub(crate) snapshots: Snapshots,
    pub(crate) sweeps: Sweeps,
    pub(crate) wrong_tokens: WrongTokens,
    pub(crate) unread: Arc<UnreadAnswers>,
    /// A permit for each stream of the journal.
    pub(crate) streams: Arc<Semaphore>,
    /// A permit for each verb that runs on a thread.
    threads: Arc<Semaphore>,
    /// Becomes true when the server stops.
    stopped: watch::Sender<bool>,
}

/// The limit of the number of verbs that run on threads at a time. Others wait.
const THREADS_MAX: usize = 8;

impl Controls {
    pub(crate) fn new(own: Universe) -> Self {
        Self {
            own,
            snapshots: Snapshots::default(),
            sweeps: Sweeps::default(),
            wrong_tokens: WrongTokens::default(),
            unread: Arc::default(),
            streams: Arc::new(Semaphore::new(tail::STREAMS_MAX)),
            threads: Arc::new(Semaphore::new(THREADS_MAX)),
            stopped: watch::Sender::new(false),
        }
    }

    pub(crate) fn config(&self) -> &ControlConfig {
        &self.shared().config.control
    }

    pub(crate) fn shared(&self) -> &UniverseState {
        &self.own.shared
    }

    /// Stops listening and closes every connection; control remains.
    pub(crate) async fn go_down(&self) {
        self.own.go_down().await;
    }

    /// Returns the universe of a request; without a name the server's own.
    pub(crate) fn universe(&self, name: Option<&str>) -> Result<Universe, ControlError> {
        match name {
            None => Ok(self.own.clone()),
            Some(name) => {
                let found = self.own.universe_named(name).filter(|_| !name.is_empty());
                found.ok_or_else(|| ControlError::not_found(format!("no universe {name:?}")))
            }
        }
    }

    /// Runs work on a thread of its own, so that clients are served meanwhile, however much it is.
    ///
    /// # Errors
    /// When the runtime ends.
    ///
    /// # Cancel safety
    /// Work that has begun is finished.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ControlError> {
        // The semaphore is never closed. Work keeps its permit although the caller has gone.
        let permit = Arc::clone(&self.threads).acquire_owned().await;
        let work = move || {
            let _permit = permit;
            work()
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ControlError::cannot_now("the server is stopping")),
            },
        }
    }

    /// Closes every control connection once it has answered its request.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until the server stops.
    pub(crate) async fn stopped(&self) {
        // Fails only when the sender is dropped, which `self` makes impossible.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }
}

impl Upgrade for Controls {
    fn serve(self: Arc<Self>, stream: Stream, read: BytesMut, slot: Slot, peer: IpAddr) {
        tokio::spawn(http::serve(self, (stream, read, slot), peer));
    }
}

/// The limit of the number of snapshots, so that a test that never drops any gets an error.
const SNAPSHOTS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    inner: Mutex<SnapshotTable>,
}

#[derive(Debug, Default)]
struct SnapshotTable {
    by_id: BTreeMap<u64, KeptSnapshot>,
    /// The number of the newest snapshot.
    newest: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct KeptSnapshot {
    pub(crate) snapshot: Arc<Snapshot>,
    /// The time of day at which it was taken, by the universe's clock.
    pub(crate) wall_ms: i64,
}

impl Snapshots {
    /// Takes a snapshot of a universe. Returns its number.
    pub(crate) fn add(&self, universe: &Universe) -> Result<u64, ControlError> {
        let SnapshotTable { by_id, newest } = &mut *self.inner.lock();
        if by_id.len() >= SNAPSHOTS_MAX {
            let sentence =
                format!("too many snapshots: {SNAPSHOTS_MAX}; drop some with drop_snapshot");
            return Err(ControlError::cannot_now(sentence));
        }
        *newest += 1;
        let kept = KeptSnapshot {
            snapshot: Arc::new(universe.snapshot()),
            wall_ms: universe.shared.turns.clock().now().wall_ms,
        };
        by_id.insert(*newest, kept);
        Ok(*newest)
    }

    pub(crate) fn get(&self, id: u64) -> Result<Arc<Snapshot>, ControlError> {
        let inner = self.inner.lock();
        let found = inner.by_id.get(&id);
        found
            .map(|kept| Arc::clone(&kept.snapshot))
            .ok_or_else(|| missing(id))
    }

    /// Returns the snapshots of a universe with their numbers, oldest first.
    pub(crate) fn of(&self, universe: &Universe) -> Vec<(u64, KeptSnapshot)> {
        let inner = self.inner.lock();
        let all = inner.by_id.iter();
        all.filter(|(_, kept)| kept.snapshot.is_of(universe))
            .map(|(id, kept)| (*id, kept.clone()))
            .collect()
    }

    pub(crate) fn remove(&self, id: u64) -> Result<(), ControlError> {
        let removed = self.inner.lock().by_id.remove(&id);
        removed.map(drop).ok_or_else(|| missing(id))
    }

    /// Drops the snapshots of a universe that was dropped.
    pub(crate) fn forget(&self, universe: &Universe) {
        let mut inner = self.inner.lock();
        inner.by_id.retain(|_, kept| !kept.snapshot.is_of(universe));
    }
}

fn missing(id: u64) -> ControlError {
    ControlError::not_found(format!("no snapshot {id}"))
}
