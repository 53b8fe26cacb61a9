//! Takes snapshots of a universe and restores them.

use std::{error::Error, fmt, sync::Arc};

use minikeeper_engine::Mark;

use crate::universe::{Universe, state::UniverseState};

/// A state to restore: see [`Universe::snapshot`]. Dropping it frees its memory.
pub struct Snapshot {
    mark: Mark,
    shared: Arc<UniverseState>,
}

/// Why a snapshot cannot be restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// It belongs to another universe.
    OtherUniverse,
    /// It no longer exists: an older one was restored, the state was replaced (by a restart, for
    /// example), or more than 256 MiB of changes were made since.
    Gone,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherUniverse => f.write_str("the snapshot belongs to another universe"),
            Self::Gone => f.write_str(
                "the snapshot no longer exists: an older one was restored, the \
                 server was restarted, or more than 256 MiB of changes were made \
                 since",
            ),
        }
    }
}

impl Error for RestoreError {}

#[cfg(feature = "control")]
impl Snapshot {
    /// Returns whether it belongs to this universe.
    pub(crate) fn is_of(&self, universe: &Universe) -> bool {
        Arc::ptr_eq(&self.shared, &universe.shared)
    }
}

impl Universe {
    /// Takes a snapshot of znodes, sessions and watches. It can be restored any number of times.
    ///
    /// This copies nothing. Until the snapshot is dropped, the server records how to undo every
    /// change, up to 256 MiB. [Restoring](Universe::restore) therefore takes time in proportion to
    /// the changes made since, not to the size of the tree.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// let before = server.snapshot();
    /// client.create("/a", b"", minikeeper_client::CreateMode::Persistent).await?;
    /// server.restore(&before)?;
    /// assert_eq!(server.get("/a"), None);
    /// # Ok(()) }
    /// ```
    #[must_use = "a dropped snapshot cannot be restored"]
    pub fn snapshot(&self) -> Snapshot {
        let shared = Arc::clone(&self.shared);
        // A broken server takes none: restoring the default mark fails.
        let mark = shared.turns.alter(|engine, _, _| engine.mark());
        Snapshot {
            mark: mark.unwrap_or_default(),
            shared,
        }
    }

    /// Restores a snapshot and keeps it; drops the snapshots taken after it.
    ///
    /// Restores znodes with their stats, and the watches of connected sessions. Sessions that have
    /// ended since exist again, each with its full timeout to reconnect. Sessions opened since end,
    /// and their connections close. The clock does not go back, nor does the zxid, because a client
    /// that has seen a newer one would be turned away. No events are sent for the changes.
    ///
    /// # Errors
    /// When the snapshot no longer exists or belongs to another universe. Nothing has changed.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), RestoreError> {
        if !Arc::ptr_eq(&self.shared, &snapshot.shared) {
            return Err(RestoreError::OtherUniverse);
        }
        let mark = snapshot.mark;
        let restored = self.shared.anew(|turns, anew| {
            turns.alter(|engine, now, effects| {
                let is_there = engine.rewind(mark, now, effects);
                anew.save(engine);
                effects.note_anew(engine.zxid());
                is_there
            })
        });
        match restored {
            Some(true) => Ok(()),
            Some(false) | None => Err(RestoreError::Gone),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mark = self.mark;
        let turns = &self.shared.turns;
        turns.alter(|engine, _, _| engine.forget_mark(mark));
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.mark).finish()
    }
}
