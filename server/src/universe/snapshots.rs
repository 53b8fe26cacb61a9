//! Takes snapshots of a universe and restores them.

use std::{error::Error, fmt, sync::Arc};

use minikeeper_core::{state::UniverseState, trees::Znode};
use minikeeper_engine::{Mark, ZnodeState};

use crate::universe::{Universe, seeding};

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

    /// Returns whether it can be restored.
    pub(crate) fn is_there(&self) -> bool {
        let mark = self.mark;
        self.shared.turns.inspect(|engine| engine.has_mark(mark))
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
        Snapshot {
            mark: shared.mark(),
            shared,
        }
    }

    /// Restores a snapshot and keeps it; drops the snapshots taken after it.
    ///
    /// Restores znodes with their stats, and the watches of connected sessions; those registered since
    /// stay. Sessions that have ended since exist again, each with its full timeout to reconnect.
    /// Sessions opened since end, and their connections close. The clock does not go back, nor does
    /// the zxid, because a client that has seen a newer one would be turned away.
    ///
    /// Watchers get an event for each znode that differs, as if a client had made the change. A client
    /// without a connection gets none for a znode that is older than what it has seen: programs that
    /// keep what they have read must read it again after a reconnect. The recipes do.
    ///
    /// # Errors
    /// When the snapshot no longer exists or belongs to another universe. Nothing has changed.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), RestoreError> {
        if !Arc::ptr_eq(&self.shared, &snapshot.shared) {
            return Err(RestoreError::OtherUniverse);
        }
        if self.shared.rewind(snapshot.mark) {
            Ok(())
        } else {
            Err(RestoreError::Gone)
        }
    }
}

/// The limit of the data and paths in [`Changes`]. Unit: bytes.
const CHANGES_BYTES_MAX: usize = 4 << 20;

/// What has changed since a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Changes {
    /// The znodes that differ, by path.
    pub changes: Vec<Change>,
    /// Whether there are more.
    pub is_truncated: bool,
}

/// A znode that differs from the one in a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Change {
    /// Its path.
    pub path: String,
    /// The znode in the snapshot; `None` if it has been created since.
    pub before: Option<Znode>,
    /// The znode now; `None` if it has been deleted since.
    pub after: Option<Znode>,
}

impl Universe {
    /// Compares the tree with a snapshot: data, lifetimes and access lists. Lists the first `max`
    /// differences by path, and at most 4 MiB of them. `/zookeeper` is included.
    ///
    /// # Errors
    /// When the snapshot no longer exists or belongs to another universe.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// let before = server.snapshot();
    /// server.seed(&tree! { "/a" => "x" })?;
    /// let changes = server.changes_since(&before, 10)?.changes;
    /// assert!(changes[0].path == "/a" && changes[0].before.is_none());
    /// # Ok(()) }
    /// ```
    pub fn changes_since(&self, snapshot: &Snapshot, max: usize) -> Result<Changes, RestoreError> {
        if !Arc::ptr_eq(&self.shared, &snapshot.shared) {
            return Err(RestoreError::OtherUniverse);
        }
        self.shared.turns.inspect(|engine| {
            let found = engine.changes_since(snapshot.mark);
            let found = found.ok_or(RestoreError::Gone)?;
            let (mut changes, mut bytes) = (Vec::new(), 0);
            for change in &found {
                let length = |state: Option<ZnodeState<'_>>| {
                    state.and_then(|state| state.data).map_or(0, <[u8]>::len)
                };
                bytes += change.path.len() + length(change.before) + length(change.after);
                if changes.len() == max || bytes > CHANGES_BYTES_MAX {
                    break;
                }
                let znode = |state| seeding::znode_of_state(engine, state);
                changes.push(Change {
                    path: String::from_utf8_lossy(change.path).into_owned(),
                    before: change.before.map(znode),
                    after: change.after.map(znode),
                });
            }
            let is_truncated = changes.len() < found.len();
            Ok(Changes {
                changes,
                is_truncated,
            })
        })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared.forget_mark(self.mark);
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.mark).finish()
    }
}
