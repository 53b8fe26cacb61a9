//! The handle of a cache: snapshot reads and subscriptions.

use std::{fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use minikeeper_client::{AfterTimeout, Client, Error, ZnodePath};
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use super::{
    changes::{CacheChange, CacheChanges, CacheError, CacheEvent, UnreadEvents},
    loader::Loader,
    options::CacheOptions,
    snapshot::CacheSnapshot,
    znode::CachedZnode,
};
use crate::{call_limit::CallLimit, task::spawn};

/// A copy of a tree of znodes, or of one znode, that follows the server's. It works like Curator's
/// class of the same name.
///
/// - An entry goes back to an older state only if the server does, as when it is restored from a
///   snapshot. After a lost connection or session the cache reads again what may have changed and
///   reports exactly the differences.
/// - Reading never waits: neither for a request nor for a lock. [`CuratorCache::snapshot`] is the
///   whole tree at one moment.
/// - The root may be missing; the cache is then empty until it is created.
/// - A subscriber that is too slow gets the next snapshot instead of the changes that it missed.
///
/// A background task reads. It ends when the cache is closed or all its clones are dropped. It needs
/// persistent watches, which servers have since 3.6.
///
/// Cheap to clone. Clones are the same cache.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, CreateMode};
/// use minikeeper_recipes::{CacheEvent, CuratorCache};
///
/// let client = Client::connect(&address).await?;
/// let cache = CuratorCache::start(client.clone(), "/config")?;
/// cache.initialized().await?;
/// let (_, mut changes) = cache.subscribe();
/// client.create("/config", b"", CreateMode::Persistent).await?;
/// client.create("/config/limit", b"7", CreateMode::Persistent).await?;
/// while let event = changes.next().await? {
///     if matches!(event, CacheEvent::Created { znode } if znode.name() == "limit") {
///         break;
///     }
/// }
/// assert_eq!(cache.get("/config/limit").ok_or("it exists")?.data(), b"7");
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct CuratorCache {
    owner: Arc<CacheOwner>,
}

/// Ends the task when the last handle is dropped.
struct CacheOwner {
    shared: Arc<CacheShared>,
    is_closing: watch::Sender<bool>,
}

/// What the handles, the subscribers and the task of a cache share.
pub(crate) struct CacheShared {
    path: String,
    znodes: ArcSwap<CacheSnapshot>,
    pub(crate) changes: broadcast::Sender<CacheChange>,
    unread: Mutex<UnreadEvents>,
    unread_bytes_max: usize,
    stage: watch::Sender<CacheStage>,
    call_timeout: Duration,
}

#[derive(Clone, Default, Debug)]
struct CacheStage {
    is_initialized: bool,
    end: Option<CacheError>,
}

impl CuratorCache {
    /// Starts to cache a znode and all znodes below it.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid. [`Error::NoRuntime`] outside a tokio runtime.
    pub fn start(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, CacheOptions::default())
    }

    /// Starts a cache with options.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_recipes::{CacheOptions, CuratorCache};
    ///
    /// let options = CacheOptions::default().depth_max(Some(1)).with_data(false);
    /// let cache = CuratorCache::with_options(client, "/", options)?;
    /// cache.initialized().await?;
    /// assert!(cache.get("/zookeeper").is_some());
    /// # Ok(()) });
    /// ```
    pub fn with_options(client: Client, path: &str, options: CacheOptions) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let shared = Arc::new(CacheShared {
            path: path.to_owned(),
            znodes: ArcSwap::default(),
            changes: broadcast::Sender::new(options.changes_max.max(1)),
            unread: Mutex::default(),
            unread_bytes_max: options.changes_bytes_max,
            stage: watch::Sender::default(),
            call_timeout: client.call_timeout(),
        });
        let (is_closing, closing) = watch::channel(false);
        let clears = options.clears_on_close;
        // The limit of a handle is that of its calls, not of the task.
        let loader = Loader::new(client.without_timeout(), path, options, Arc::clone(&shared))?;
        let of_task = Arc::clone(&shared);
        let ended = move |error: Error| of_task.finish(error.into(), clears);
        drop(spawn(
            "cache",
            Box::pin(loader.run(closing)),
            Box::new(ended),
        )?);
        Ok(Self {
            owner: Arc::new(CacheOwner { shared, is_closing }),
        })
    }

    /// Returns the path of the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.owner.shared.path
    }

    /// Returns a znode as it is cached now.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Arc<CachedZnode>> {
        self.owner.shared.znodes.load().get(path).cloned()
    }

    /// Returns the cached children of a znode, sorted by name.
    #[must_use]
    pub fn children(&self, path: &str) -> Vec<Arc<CachedZnode>> {
        let znodes = self.owner.shared.znodes.load();
        znodes.children(path).cloned().collect()
    }

    /// Returns the number of cached znodes. Curator: `size`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owner.shared.znodes.load().len()
    }

    /// Returns whether no znode is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all cached znodes at this moment. Curator: `stream`.
    #[must_use]
    pub fn snapshot(&self) -> CacheSnapshot {
        self.owner.shared.snapshot()
    }

    /// Returns a snapshot and a stream of the changes after it.
    #[must_use]
    pub fn subscribe(&self) -> (CacheSnapshot, CacheChanges) {
        CacheChanges::new(&self.owner.shared)
    }

    /// Returns whether the cache has read the whole tree once.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.owner.shared.stage.borrow().is_initialized
    }

    /// Waits until the cache has read the whole tree once, at most for the client's
    /// [`call_timeout`](Client::call_timeout). Waits for a connection; the root may be missing.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// The reason why the cache has ended. [`CacheError::Client`] with [`Error::CallTimedOut`] after
    /// the limit: the cache still reads, so wait again.
    pub async fn initialized(&self) -> Result<(), CacheError> {
        let shared = &self.owner.shared;
        let mut stages = shared.stage.subscribe();
        let reached = stages.wait_for(|stage| stage.is_initialized || stage.end.is_some());
        let initialized = async {
            let end = reached.await.map(|stage| stage.end.clone());
            end.unwrap_or_else(|_| Some(shared.closed()))
                .map_or(Ok(()), Err)
        };
        let then = AfterTimeout::Continues;
        CallLimit::of(shared.call_timeout, "initialized", &shared.path, then)
            .run(initialized)
            .await
    }

    /// Returns why the cache has ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<CacheError> {
        self.owner.shared.end()
    }

    /// Ends the cache for all its clones, and waits until it has ended. It removes its watch.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    pub async fn close(&self) {
        self.owner.is_closing.send_replace(true);
        let mut stages = self.owner.shared.stage.subscribe();
        let _ = stages.wait_for(|stage| stage.end.is_some()).await;
    }
}

impl fmt::Debug for CuratorCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuratorCache")
            .field("path", &self.path())
            .field("len", &self.len())
            .field("stage", &*self.owner.shared.stage.borrow())
            .finish()
    }
}

impl CacheShared {
    pub(crate) fn snapshot(&self) -> CacheSnapshot {
        CacheSnapshot::clone(&self.znodes.load())
    }

    pub(crate) fn end(&self) -> Option<CacheError> {
        self.stage.borrow().end.clone()
    }

    pub(crate) fn closed(&self) -> CacheError {
        CacheError::Closed {
            path: self.path.clone(),
        }
    }

    pub(crate) fn client_closed(&self) -> CacheError {
        CacheError::ClientClosed {
            path: self.path.clone(),
        }
    }

    /// Publishes a snapshot, then the changes that led to it.
    pub(crate) fn publish(&self, snapshot: CacheSnapshot, changes: Vec<(u64, CacheEvent)>) {
        self.znodes.store(Arc::new(snapshot));
        for (sequence, event) in changes {
            if matches!(event, CacheEvent::Initialized) {
                self.stage.send_modify(|stage| stage.is_initialized = true);
            }
            let event = self.unread.lock().push(event, self.unread_bytes_max);
            // It fails if there is no subscriber.
            let _ = self.changes.send(CacheChange::Numbered(sequence, event));
        }
    }

    /// Ends the cache.
    pub(crate) fn finish(&self, end: CacheError, clears: bool) {
        if clears {
            let sequence = self.znodes.load().sequence;
            self.znodes.store(Arc::new(CacheSnapshot::empty(sequence)));
        }
        let first = end.clone();
        self.stage.send_modify(|stage| stage.end = Some(first));
        let _ = self.changes.send(CacheChange::End(end));
    }
}
