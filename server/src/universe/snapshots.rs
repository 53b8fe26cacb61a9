//! Takes snapshots of a universe and restores them.

use std::{error::Error, fmt, sync::Arc};

use minikeeper_engine::Mark;

use crate::universe::{Universe, state::UniverseState};

/// A state to go back to: [`Universe::snapshot`]. Its memory is freed when it is dropped.
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
    /// It went with a later one that was gone back from, or with the state it was made of, or
    /// more has changed since than is kept.
    Gone,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
Self::OtherUniverse => f.write_str("the snapshot is of another universe"),
Self::Gone => f.write_str("the snapshot is gone: an older one was restored, the server was restarted, or more than \
         256 MiB of changes have been made since"),
}
    }
}

impl Error for RestoreError {}

#[cfg(feature = "control")]
impl Snapshot {
    /// Whether it is one of this universe.
    pub(crate) fn is_of(&self, universe: &Universe) -> bool {
        Arc::ptr_eq(&self.shared, &universe.shared)
    }
}

impl Universe {
    /// Takes a snapshot of znodes, sessions and watches, which can be restored any number of times.
    ///
    /// Takes no time itself. From here on, until the snapshot is dropped, what changes is noted
    /// down, up to 256 MiB; so [restoring](Universe::restore) takes as long as the changes since
    /// took, however large the tree is.
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
    #[must_use = "a snapshot is forgotten when it is dropped"]
    pub fn snapshot(&self) -> Snapshot {
        let shared = Arc::clone(&self.shared);
        // What a broken server gives is never found again.
        let mark = shared.turns.alter(|engine, _, _| engine.mark());
        Snapshot {
            mark: mark.unwrap_or_default(),
            shared,
        }
    }

    /// Restores a snapshot and keeps it; drops the snapshots taken after it.
    ///
    /// Znodes are as they were, their stats included, and so are the watches of the sessions that
    /// are connected. Sessions that have ended since are there again, each with a whole timeout to
    /// be taken up; those opened since are gone, and their connections close. Time does not go back,
    /// nor does the zxid: clients that have seen a newer one would be turned away. No client is notified
    /// of what has changed by it.
    ///
    /// # Errors
    /// When the snapshot is gone, or of another universe; nothing has happened then.
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
