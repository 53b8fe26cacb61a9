//! Curator's three older caches, as views of a [`CuratorCache`] with their vocabulary.

use std::sync::Arc;

use minikeeper_client::{Client, Error};

use super::{
    changes::{CacheChanges, CacheError, CacheEvent},
    curator_cache::CuratorCache,
    options::CacheOptions,
    snapshot::CacheSnapshot,
    znode::CachedZnode,
};

/// The children of one znode. Curator's class of the same name: a [`CuratorCache`] of depth 1.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{ChildrenEvent, PathChildrenCache};
///
/// client.create("/workers", b"", CreateMode::Persistent).await?;
/// let workers = PathChildrenCache::start(client.clone(), "/workers")?;
/// workers.cache().initialized().await?;
/// let mut changes = workers.changes();
/// client.create("/workers/7", b"10.0.0.7", CreateMode::Persistent).await?;
/// match changes.next().await? {
///     ChildrenEvent::ChildAdded { child } => assert_eq!(child.data(), b"10.0.0.7"),
///     other => panic!("a child was created, but the cache says {other:?}"),
/// }
/// assert_eq!(workers.current_data().len(), 1);
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct PathChildrenCache {
    cache: CuratorCache,
}

/// A change of a [`PathChildrenCache`]. Curator: `PathChildrenCacheEvent`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChildrenEvent {
    /// A child was created, or found by the first load.
    ChildAdded {
        /// The child.
        child: Arc<CachedZnode>,
    },
    /// The data of a child was set.
    ChildUpdated {
        /// The child as it was cached before.
        old: Arc<CachedZnode>,
        /// The child now.
        child: Arc<CachedZnode>,
    },
    /// A child was deleted.
    ChildRemoved {
        /// The child as it was cached last.
        child: Arc<CachedZnode>,
    },
    /// All children were read, for the first time.
    Initialized,
    /// The subscriber was too slow, see [`CacheEvent::Lagged`].
    Lagged {
        /// The cache after the changes that were missed, with the parent.
        snapshot: CacheSnapshot,
    },
}

impl PathChildrenCache {
    /// Starts to cache the children of a znode, which may be missing.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    pub fn start(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, CacheOptions::default())
    }

    /// Starts a cache with options; its depth is 1, whatever they say.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    pub fn with_options(client: Client, path: &str, options: CacheOptions) -> Result<Self, Error> {
        let options = options.depth_max(Some(1));
        let cache = CuratorCache::with_options(client, path, options)?;
        Ok(Self { cache })
    }

    /// Returns the children, sorted by name. Curator: `getCurrentData()`.
    #[must_use]
    pub fn current_data(&self) -> Vec<Arc<CachedZnode>> {
        self.cache.children(self.cache.path())
    }

    /// Returns the child of this name. Curator: `getCurrentData(path)`.
    #[must_use]
    pub fn current_child(&self, name: &str) -> Option<Arc<CachedZnode>> {
        let directory = self.cache.path().trim_end_matches('/');
        self.cache.get(&format!("{directory}/{name}"))
    }

    /// Returns a stream of the later changes.
    #[must_use]
    pub fn changes(&self) -> ChildrenChanges {
        ChildrenChanges {
            root: self.cache.path().into(),
            changes: self.cache.subscribe().1,
        }
    }

    /// Returns the cache behind this view, with the parent.
    #[must_use]
    pub const fn cache(&self) -> &CuratorCache {
        &self.cache
    }
}

/// A stream of changes. Returned by [`PathChildrenCache::changes`].
#[derive(Debug)]
pub struct ChildrenChanges {
    root: Box<str>,
    changes: CacheChanges,
}

impl ChildrenChanges {
    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// The reason why the cache has ended.
    pub async fn next(&mut self) -> Result<ChildrenEvent, CacheError> {
        loop {
            let event = self.changes.next().await?;
            return Ok(match event {
                CacheEvent::Created { znode: child } if child.path() != &*self.root => {
                    ChildrenEvent::ChildAdded { child }
                }
                CacheEvent::Changed { old, new: child } if child.path() != &*self.root => {
                    ChildrenEvent::ChildUpdated { old, child }
                }
                CacheEvent::Deleted { znode: child } if child.path() != &*self.root => {
                    ChildrenEvent::ChildRemoved { child }
                }
                CacheEvent::Initialized => ChildrenEvent::Initialized,
                CacheEvent::Lagged { snapshot, .. } => ChildrenEvent::Lagged { snapshot },
                _ => continue,
            });
        }
    }
}

/// One znode, which may be missing. Curator's class of the same name: a [`CuratorCache`] of depth 0.
///
/// It creates nothing, unlike Curator's, which creates deleted parents again (CURATOR-319).
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::NodeCache;
///
/// let motd = NodeCache::start(client.clone(), "/motd")?;
/// motd.cache().initialized().await?;
/// assert!(motd.current_data().is_none());
/// let mut changes = motd.changes();
/// client.create("/motd", b"hello", CreateMode::Persistent).await?;
/// let now = changes.next().await?.ok_or("it was created")?;
/// assert_eq!(now.data(), b"hello");
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct NodeCache {
    cache: CuratorCache,
}

impl NodeCache {
    /// Starts to cache a znode.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    pub fn start(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, CacheOptions::default().changes_max(64))
    }

    /// Starts a cache with options; its depth is 0, whatever they say.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    pub fn with_options(client: Client, path: &str, options: CacheOptions) -> Result<Self, Error> {
        let options = options.depth_max(Some(0));
        let cache = CuratorCache::with_options(client, path, options)?;
        Ok(Self { cache })
    }

    /// Returns the znode; `None` if it does not exist. Curator: `getCurrentData`.
    #[must_use]
    pub fn current_data(&self) -> Option<Arc<CachedZnode>> {
        self.cache.get(self.cache.path())
    }

    /// Returns a stream of the later states. Curator: `nodeChanged`.
    #[must_use]
    pub fn changes(&self) -> NodeChanges {
        NodeChanges {
            changes: self.cache.subscribe().1,
        }
    }

    /// Returns the cache behind this view.
    #[must_use]
    pub const fn cache(&self) -> &CuratorCache {
        &self.cache
    }
}

/// A stream of states. Returned by [`NodeCache::changes`].
#[derive(Debug)]
pub struct NodeChanges {
    changes: CacheChanges,
}

impl NodeChanges {
    /// Waits until the znode has changed, and returns it; `None` if it was deleted.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// The reason why the cache has ended.
    pub async fn next(&mut self) -> Result<Option<Arc<CachedZnode>>, CacheError> {
        loop {
            match self.changes.next().await? {
                CacheEvent::Created { znode: new } | CacheEvent::Changed { new, .. } => {
                    return Ok(Some(new));
                }
                CacheEvent::Deleted { .. } => return Ok(None),
                CacheEvent::Lagged { snapshot, .. } => return Ok(snapshot.iter().next().cloned()),
                _ => {}
            }
        }
    }
}

/// A znode and all below it. Curator's class of the same name: a [`CuratorCache`] with other names.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{TreeCache, TreeEvent};
///
/// let tree = TreeCache::start(client.clone(), "/app")?;
/// tree.cache().initialized().await?;
/// assert!(tree.current_children("/app").is_none());
/// let mut changes = tree.changes();
/// client.create("/app", b"", CreateMode::Persistent).await?;
/// assert!(matches!(changes.next().await?, TreeEvent::NodeAdded { .. }));
/// assert!(tree.current_children("/app").is_some_and(|children| children.is_empty()));
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct TreeCache {
    cache: CuratorCache,
}

/// A change of a [`TreeCache`]. Curator: `TreeCacheEvent`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TreeEvent {
    /// A znode was created, or found by the first load.
    NodeAdded {
        /// The znode.
        znode: Arc<CachedZnode>,
    },
    /// The data of a znode was set.
    NodeUpdated {
        /// The znode as it was cached before.
        old: Arc<CachedZnode>,
        /// The znode now.
        znode: Arc<CachedZnode>,
    },
    /// A znode was deleted.
    NodeRemoved {
        /// The znode as it was cached last.
        znode: Arc<CachedZnode>,
    },
    /// The whole tree was read, for the first time.
    Initialized,
    /// The subscriber was too slow, see [`CacheEvent::Lagged`].
    Lagged {
        /// The cache after the changes that were missed.
        snapshot: CacheSnapshot,
    },
}

impl TreeCache {
    /// Starts to cache a tree, whose root may be missing.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    pub fn start(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, CacheOptions::default())
    }

    /// Starts a cache with options.
    ///
    /// # Errors
    /// Those of [`CuratorCache::start`].
    pub fn with_options(client: Client, path: &str, options: CacheOptions) -> Result<Self, Error> {
        let cache = CuratorCache::with_options(client, path, options)?;
        Ok(Self { cache })
    }

    /// Returns a znode; `None` if it does not exist. Curator: `getCurrentData`.
    #[must_use]
    pub fn current_data(&self, path: &str) -> Option<Arc<CachedZnode>> {
        self.cache.get(path)
    }

    /// Returns the children of a znode, sorted by name; `None` if it does not exist. Curator:
    /// `getCurrentChildren`.
    #[must_use]
    pub fn current_children(&self, path: &str) -> Option<Vec<Arc<CachedZnode>>> {
        let snapshot = self.cache.snapshot();
        let children = || snapshot.children(path).cloned().collect();
        snapshot.contains(path).then(children)
    }

    /// Returns a stream of the later changes.
    #[must_use]
    pub fn changes(&self) -> TreeChanges {
        TreeChanges {
            changes: self.cache.subscribe().1,
        }
    }

    /// Returns the cache behind this view.
    #[must_use]
    pub const fn cache(&self) -> &CuratorCache {
        &self.cache
    }
}

/// A stream of changes. Returned by [`TreeCache::changes`].
#[derive(Debug)]
pub struct TreeChanges {
    changes: CacheChanges,
}

impl TreeChanges {
    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// The reason why the cache has ended.
    pub async fn next(&mut self) -> Result<TreeEvent, CacheError> {
        loop {
            return Ok(match self.changes.next().await? {
                CacheEvent::Created { znode } => TreeEvent::NodeAdded { znode },
                CacheEvent::Changed { old, new: znode } => TreeEvent::NodeUpdated { old, znode },
                CacheEvent::Deleted { znode } => TreeEvent::NodeRemoved { znode },
                CacheEvent::Initialized => TreeEvent::Initialized,
                CacheEvent::Lagged { snapshot, .. } => TreeEvent::Lagged { snapshot },
                CacheEvent::Unreadable { .. } => continue,
            });
        }
    }
}
