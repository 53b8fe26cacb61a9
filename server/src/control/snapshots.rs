//! Snapshots that were taken over HTTP, by number.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    control::fault::Fault,
    universe::{Snapshot, Universe},
};

/// How many there may be: whoever forgets to drop them should hear of it.
const SNAPSHOTS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_id: BTreeMap<u64, Arc<Snapshot>>,
    /// The number of the newest.
    newest: u64,
}

impl Snapshots {
    /// Takes one; gives its number.
    pub(crate) fn add(&self, universe: &Universe) -> Result<u64, Fault> {
        let Inner { by_id, newest } = &mut *self.inner.lock();
        if by_id.len() >= SNAPSHOTS_MAX {
            let sentence = format!("there are {SNAPSHOTS_MAX} snapshots; drop_snapshot some");
            return Err(Fault::cannot_now(sentence));
        }
        *newest += 1;
        by_id.insert(*newest, Arc::new(universe.snapshot()));
        Ok(*newest)
    }

    pub(crate) fn get(&self, id: u64) -> Result<Arc<Snapshot>, Fault> {
        let found = self.inner.lock().by_id.get(&id).cloned();
        found.ok_or_else(|| missing(id))
    }

    pub(crate) fn remove(&self, id: u64) -> Result<(), Fault> {
        let removed = self.inner.lock().by_id.remove(&id);
        removed.map(drop).ok_or_else(|| missing(id))
    }

    /// Drops those of a universe that is gone.
    pub(crate) fn forget(&self, universe: &Universe) {
        let mut inner = self.inner.lock();
        inner.by_id.retain(|_, snapshot| !snapshot.is_of(universe));
    }
}

fn missing(id: u64) -> Fault {
    Fault::not_found(format!("no snapshot {id}"))
}
