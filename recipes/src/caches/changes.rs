//! The changes of a cache: the stream that subscribers read, and how it ends.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Weak},
};

use minikeeper_client::Error;
use parking_lot::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};

use super::{
    curator_cache::CacheShared,
    snapshot::CacheSnapshot,
    znode::{CachedZnode, ZNODE_BYTES},
};

/// A change of a cache.
///
/// Applied in order to the snapshot with which they begin, changes lead to the later snapshots. A
/// znode is created before its children and deleted after them.
///
/// # Examples
/// ```
/// use minikeeper_recipes::CacheEvent;
///
/// fn describe(event: &CacheEvent) -> String {
///     match event {
///         CacheEvent::Created { znode } => format!("{} appeared", znode.path()),
///         CacheEvent::Changed { old, new } => {
///             format!("{}: {:?} became {:?}", new.path(), old.data(), new.data())
///         }
///         CacheEvent::Deleted { znode } => format!("{} is gone", znode.path()),
///         CacheEvent::Initialized => "the whole tree is cached".to_owned(),
///         CacheEvent::Lagged { snapshot, .. } => format!("start again with {}", snapshot.len()),
///         other => format!("{other:?}"),
///     }
/// }
/// # assert_eq!(describe(&CacheEvent::Initialized), "the whole tree is cached");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CacheEvent {
    /// A znode was created, or found by the first load.
    Created {
        /// The znode.
        znode: Arc<CachedZnode>,
    },
    /// The data of a znode was set. Several changes in short order may be one.
    Changed {
        /// The znode as it was cached before.
        old: Arc<CachedZnode>,
        /// The znode now.
        new: Arc<CachedZnode>,
    },
    /// A znode was deleted.
    Deleted {
        /// The znode as it was cached last.
        znode: Arc<CachedZnode>,
    },
    /// The cache has read the whole tree, for the first time.
    Initialized,
    /// The client may not read a znode: it and those below it are left out until the znode changes
    /// or the connection is lost.
    Unreadable {
        /// The path of the znode.
        path: String,
        /// The refusal.
        error: Error,
    },
    /// The subscriber was too slow, and changes were dropped. Later ones follow on the snapshot.
    Lagged {
        /// How many changes the subscriber has missed.
        missed: u64,
        /// The cache after them.
        snapshot: CacheSnapshot,
    },
}

/// Why a cache has ended.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{CacheError, CacheOptions, CuratorCache};
///
/// let cache = CuratorCache::with_options(client, "/", CacheOptions::default().znodes_max(1))?;
/// match cache.initialized().await {
///     Err(CacheError::TooManyZnodes { znodes_max, .. }) => assert_eq!(znodes_max, 1),
///     other => panic!("a server has /zookeeper too, but the call returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The tree has more znodes than the limit. Raise it, or cache less with a depth or a filter.
    #[error(
        "cache {path:?}: more than {znodes_max} znodes; raise znodes_max, or cache less with \
         depth_max or filter"
    )]
    TooManyZnodes {
        /// The root of the cache.
        path: String,
        /// The limit, see [`CacheOptions::znodes_max`](crate::CacheOptions::znodes_max).
        znodes_max: usize,
    },
    /// The tree takes more memory than the limit. Raise it, or cache less with a depth, a filter, or
    /// without data.
    #[error(
        "cache {path:?}: more than {bytes_max} bytes; raise bytes_max, or cache less with \
         depth_max, filter or without data"
    )]
    TooManyBytes {
        /// The root of the cache.
        path: String,
        /// The limit, see [`CacheOptions::bytes_max`](crate::CacheOptions::bytes_max).
        bytes_max: usize,
    },
    /// The cache was closed, or all its handles were dropped.
    #[error("cache {path:?}: closed")]
    Closed {
        /// The root of the cache.
        path: String,
    },
    /// The client was closed. Start another cache, with another client.
    #[error("cache {path:?}: its client is closed; start another cache, with another client")]
    ClientClosed {
        /// The root of the cache.
        path: String,
    },
    /// A request failed: a server refused it for a reason that a retry does not change. Or the task of
    /// the cache has ended ([`Error::TaskEnded`]). Start another cache.
    #[error(transparent)]
    Client(#[from] Error),
}

/// A stream of the changes of a cache. Returned by
/// [`CuratorCache::subscribe`](crate::CuratorCache::subscribe).
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{CacheEvent, CuratorCache};
///
/// let cache = CuratorCache::start(client.clone(), "/workers")?;
/// cache.initialized().await?;
/// let (before, mut changes) = cache.subscribe();
/// assert!(before.is_empty());
/// client.create("/workers", b"", CreateMode::Persistent).await?;
/// match changes.next().await? {
///     CacheEvent::Created { znode } => assert_eq!(znode.path(), "/workers"),
///     other => panic!("it was created, but the cache says {other:?}"),
/// }
/// # Ok(()) });
/// ```
pub struct CacheChanges {
    receiver: broadcast::Receiver<CacheChange>,
    shared: Arc<CacheShared>,
    /// The number of the last change that was returned or is in a snapshot.
    sequence: u64,
    end: Option<CacheError>,
}

/// What the subscribers of a cache receive.
#[derive(Clone, Debug)]
pub(crate) enum CacheChange {
    Numbered(u64, Arc<SharedEvent>),
    End(CacheError),
}

/// An event that all subscribers share; `None` once it was dropped, because too many bytes are unread.
type SharedEvent = Mutex<Option<CacheEvent>>;

/// The events that some subscriber has not read, oldest first, with their sizes in bytes.
#[derive(Debug, Default)]
pub(crate) struct UnreadEvents {
    events: VecDeque<(Weak<SharedEvent>, usize)>,
    bytes: usize,
}

impl UnreadEvents {
    /// Adds an event, and drops the oldest ones if they take more than `bytes_max`.
    pub(crate) fn push(&mut self, event: CacheEvent, bytes_max: usize) -> Arc<SharedEvent> {
        let bytes = event.bytes();
        let shared = Arc::new(Mutex::new(Some(event)));
        self.events.push_back((Arc::downgrade(&shared), bytes));
        self.bytes += bytes;
        while let Some((oldest, bytes)) = self.events.front() {
            // All subscribers have read it, or have lagged behind it, if there is no reference.
            let unread = oldest.upgrade();
            if unread.is_some() && self.bytes <= bytes_max {
                break;
            }
            if let Some(unread) = unread {
                unread.lock().take();
            }
            self.bytes -= bytes;
            self.events.pop_front();
        }
        shared
    }
}

impl CacheEvent {
    /// Returns how much the event counts towards
    /// [`CacheOptions::changes_bytes_max`](crate::CacheOptions::changes_bytes_max).
    fn bytes(&self) -> usize {
        match self {
            Self::Created { znode } | Self::Deleted { znode } => znode.bytes(),
            Self::Changed { old, new } => old.bytes() + new.bytes(),
            Self::Unreadable { path, .. } => ZNODE_BYTES + path.len(),
            Self::Initialized | Self::Lagged { .. } => size_of::<Self>(),
        }
    }
}

impl CacheChanges {
    /// Subscribes, and returns the snapshot with which the changes begin.
    pub(crate) fn new(shared: &Arc<CacheShared>) -> (CacheSnapshot, Self) {
        // In this order: a change that is in neither would be lost.
        let receiver = shared.changes.subscribe();
        let end = shared.end();
        let snapshot = shared.snapshot();
        let changes = Self {
            receiver,
            shared: Arc::clone(shared),
            sequence: snapshot.sequence,
            end,
        };
        (snapshot, changes)
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// The reason why the cache has ended, after all changes, and again in each further call.
    pub async fn next(&mut self) -> Result<CacheEvent, CacheError> {
        loop {
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            match self.receiver.recv().await {
                Ok(CacheChange::Numbered(sequence, event)) => {
                    if sequence > self.sequence {
                        let event = event.lock().clone();
                        if event.is_some() {
                            self.sequence = sequence;
                        }
                        if let Some(event) = event.or_else(|| self.lagged()) {
                            return Ok(event);
                        }
                    }
                }
                Ok(CacheChange::End(end)) => self.end = Some(end),
                Err(RecvError::Lagged(_)) => {
                    if let Some(event) = self.lagged() {
                        return Ok(event);
                    }
                }
                // Does not happen: `shared` has the sender.
                Err(RecvError::Closed) => self.end = Some(self.shared.closed()),
            }
        }
    }

    /// Goes on to the current snapshot; `None` if no change is missed.
    fn lagged(&mut self) -> Option<CacheEvent> {
        let snapshot = self.shared.snapshot();
        let missed = snapshot.sequence.saturating_sub(self.sequence);
        (missed > 0).then(|| {
            self.sequence = snapshot.sequence;
            CacheEvent::Lagged { missed, snapshot }
        })
    }
}

impl fmt::Debug for CacheChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheChanges")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
