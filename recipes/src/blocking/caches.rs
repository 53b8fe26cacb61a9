//! The blocking caches.

use std::sync::Arc;

use minikeeper_client::Error;

use crate::{
    CacheError, CacheEvent, CacheOptions, CacheSnapshot, CachedZnode, ChildrenEvent, TreeEvent,
    blocking::{Blocking, Client, changes, errors, waits},
};

/// A copy of a tree or of one znode that follows the server's; see
/// [`CuratorCache`](crate::CuratorCache).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{CacheEvent, blocking::CuratorCache};
///
/// let cache = CuratorCache::start(&client, "/config")?;
/// cache.initialized()?;
/// let (before, mut changes) = cache.subscribe();
/// assert!(before.is_empty());
/// client.create("/config", b"", CreateMode::Persistent)?;
/// assert!(matches!(changes.next()?, CacheEvent::Created { .. }));
/// assert!(cache.get("/config").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CuratorCache = Blocking<crate::CuratorCache>;

/// A cache of the children of a znode; see [`PathChildrenCache`](crate::PathChildrenCache).
pub type PathChildrenCache = Blocking<crate::PathChildrenCache>;

/// A cache of one znode; see [`NodeCache`](crate::NodeCache).
pub type NodeCache = Blocking<crate::NodeCache>;

/// A cache of a tree; see [`TreeCache`](crate::TreeCache).
pub type TreeCache = Blocking<crate::TreeCache>;

/// A stream of the changes of a cache. Returned by [`CuratorCache::subscribe`].
pub type CacheChanges = Blocking<crate::CacheChanges>;

/// A stream of changes. Returned by [`PathChildrenCache::changes`].
pub type ChildrenChanges = Blocking<crate::ChildrenChanges>;

/// A stream of changes. Returned by [`NodeCache::changes`].
pub type NodeChanges = Blocking<crate::NodeChanges>;

/// A stream of changes. Returned by [`TreeCache::changes`].
pub type TreeChanges = Blocking<crate::TreeChanges>;

/// Defines what caches have.
macro_rules! caches {
    ($($kind:ident),*) => {
        $(
            impl $kind {
                /// Starts a cache at this path, which the cache reads in the background.
                ///
                /// # Errors
                /// [`Error::Path`] if the path is invalid, [`Error::InRuntime`],
                /// [`Error::Interrupted`].
                pub fn start(client: &Client, path: &str) -> Result<Self, Error> {
                    Self::with_options(client, path, CacheOptions::default())
                }

                /// Like [`Self::start`], with these options.
                ///
                /// # Errors
                /// Those of [`Self::start`].
                pub fn with_options(
                    client: &Client,
                    path: &str,
                    options: CacheOptions,
                ) -> Result<Self, Error> {
                    let start =
                        async { crate::$kind::with_options(client.to_async(), path, options) };
                    let what = concat!(stringify!($kind), "::start");
                    Ok(client.bind(client.session.wait(what, start)?))
                }
            }
        )*
    };
}

caches!(CuratorCache, PathChildrenCache, NodeCache, TreeCache);

waits! { CuratorCache of "crate" {
    wait initialized() -> (), CacheError;
} }

impl CuratorCache {
    /// Returns the znodes, and a stream of all later changes.
    #[must_use]
    pub fn subscribe(&self) -> (CacheSnapshot, CacheChanges) {
        let (snapshot, changes) = self.object.subscribe();
        (snapshot, self.with(changes))
    }

    /// Like [`CuratorCache::close`](crate::CuratorCache::close), and waits.
    ///
    /// # Errors
    #[doc = errors!(finish)]
    pub fn close(&self) -> Result<(), Error> {
        let close = async {
            self.object.close().await;
            Ok(())
        };
        self.session.finish("CuratorCache::close", close)
    }
}

/// Defines what views of a cache have.
macro_rules! views {
    ($($kind:ident, $changes:ident;)*) => {
        $(
            impl $kind {
                /// Returns a stream of changes, from the current state on.
                #[must_use]
                pub fn changes(&self) -> $changes {
                    self.with(self.object.changes())
                }

                /// Returns the cache behind this view.
                #[must_use]
                pub fn cache(&self) -> CuratorCache {
                    self.with(self.object.cache().clone())
                }
            }
        )*
    };
}

views! {
    PathChildrenCache, ChildrenChanges;
    NodeCache, NodeChanges;
    TreeCache, TreeChanges;
}

changes! { CacheChanges: CacheEvent, CacheError }
changes! { ChildrenChanges: ChildrenEvent, CacheError }
changes! { NodeChanges: Option<Arc<CachedZnode>>, CacheError }
changes! { TreeChanges: TreeEvent, CacheError }
