//! The instances of one service, from a cache.
//!
//! Source: Curator's `ServiceCacheImpl`.

use std::{collections::BTreeMap, fmt, sync::Arc};

use minikeeper_client::{Client, Error};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::instance::{InstanceError, ServiceInstance};
use crate::caches::{
    CacheChanges, CacheError, CacheEvent, CacheOptions, CacheSnapshot, CachedZnode, CuratorCache,
};

/// The instances of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServiceInstances<P = Value> {
    /// The instances, sorted by the names of their znodes.
    pub instances: Vec<Arc<ServiceInstance<P>>>,
    /// The znodes that hold something other than an instance.
    pub damaged: Vec<DamagedInstance>,
}

/// A znode whose data is no instance.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DamagedInstance {
    /// The path of the znode.
    pub path: String,
    /// What is wrong with its data.
    pub error: InstanceError,
}

type Decoded<P> = Result<Arc<ServiceInstance<P>>, InstanceError>;

impl<P> ServiceInstances<P> {
    pub(crate) fn push(&mut self, path: &str, read: Decoded<P>) {
        match read {
            Ok(instance) => self.instances.push(instance),
            Err(error) => self.damaged.push(DamagedInstance {
                path: path.to_owned(),
                error,
            }),
        }
    }
}

impl<P> Default for ServiceInstances<P> {
    fn default() -> Self {
        Self {
            instances: Vec::new(),
            damaged: Vec::new(),
        }
    }
}

/// The instances of a service in memory, which follow the server's. Curator's class of the same name.
///
/// While there is no connection it keeps the last known instances. A damaged instance hides no other,
/// unlike in Curator. Its background task ends when the cache is closed or all its clones are
/// dropped.
///
/// Cheap to clone. Clones are the same cache.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{ServiceDiscovery, ServiceInstance};
///
/// let discovery: ServiceDiscovery = ServiceDiscovery::new(client, "/services")?;
/// let printers = discovery.cache("print")?;
/// printers.initialized().await?;
/// let mut changes = printers.changes();
/// let here = discovery.register(ServiceInstance::new("print")).await?;
/// while changes.next().await?.instances != [here.clone()] {}
/// assert_eq!(printers.instances().instances, [here]);
/// # Ok(()) });
/// ```
pub struct ServiceCache<P = Value> {
    cache: CuratorCache,
    read: Arc<Mutex<ReadInstances<P>>>,
}

/// What was read of the latest snapshot.
struct ReadInstances<P> {
    /// The number of changes in that snapshot.
    sequence: Option<u64>,
    /// By path, with the znode that was decoded.
    decoded: BTreeMap<Box<str>, (Arc<CachedZnode>, Decoded<P>)>,
    instances: Arc<ServiceInstances<P>>,
}

impl<P: DeserializeOwned> ServiceCache<P> {
    pub(crate) fn start(client: Client, directory: &str) -> Result<Self, Error> {
        let options = CacheOptions::default()
            .depth_max(Some(1))
            .clears_on_close(false);
        let read = ReadInstances {
            sequence: None,
            decoded: BTreeMap::new(),
            instances: Arc::default(),
        };
        Ok(Self {
            cache: CuratorCache::with_options(client, directory, options)?,
            read: Arc::new(Mutex::new(read)),
        })
    }

    /// Returns the instances now. Waits for nothing; the JSON of each is read once.
    #[must_use]
    pub fn instances(&self) -> Arc<ServiceInstances<P>> {
        self.read(&self.cache.snapshot())
    }

    fn read(&self, snapshot: &CacheSnapshot) -> Arc<ServiceInstances<P>> {
        let mut read = self.read.lock();
        // Another caller may have read a later snapshot.
        if read
            .sequence
            .is_none_or(|sequence| sequence < snapshot.sequence)
        {
            let mut before = std::mem::take(&mut read.decoded);
            let mut instances = ServiceInstances::default();
            for znode in snapshot.children(self.cache.path()) {
                let known = before.remove(znode.path());
                let known = known.filter(|(known, _)| known.data() == znode.data());
                let (_, decoded) = known.unwrap_or_else(|| {
                    let decoded = ServiceInstance::from_json(znode.data());
                    (Arc::clone(znode), decoded.map(Arc::new))
                });
                instances.push(znode.path(), decoded.clone());
                let entry = (Arc::clone(znode), decoded);
                read.decoded.insert(znode.path().into(), entry);
            }
            read.sequence = Some(snapshot.sequence);
            read.instances = Arc::new(instances);
        }
        Arc::clone(&read.instances)
    }

    /// Returns a stream of the later changes.
    #[must_use]
    pub fn changes(&self) -> ServiceChanges<P> {
        ServiceChanges {
            changes: self.cache.subscribe().1,
            cache: self.clone(),
        }
    }
}

impl<P> ServiceCache<P> {
    /// Waits until the cache has read all instances once. Waits for a connection; the service may be
    /// missing.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// The reason why the cache has ended.
    pub async fn initialized(&self) -> Result<(), CacheError> {
        self.cache.initialized().await
    }

    /// Ends the cache for all its clones. It keeps the last known instances.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    pub async fn close(&self) {
        self.cache.close().await;
    }

    /// Returns the cache of the znodes behind this one.
    #[must_use]
    pub const fn znodes(&self) -> &CuratorCache {
        &self.cache
    }
}

impl<P> Clone for ServiceCache<P> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            read: Arc::clone(&self.read),
        }
    }
}

impl<P> fmt::Debug for ServiceCache<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceCache")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// A stream of changes. Returned by [`ServiceCache::changes`].
pub struct ServiceChanges<P = Value> {
    changes: CacheChanges,
    cache: ServiceCache<P>,
}

impl<P: DeserializeOwned> ServiceChanges<P> {
    /// Waits until an instance was added, changed or removed, and returns all instances as they are
    /// now, which may include later changes.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// The reason why the cache has ended.
    pub async fn next(&mut self) -> Result<Arc<ServiceInstances<P>>, CacheError> {
        let directory = self.cache.cache.path();
        loop {
            let is_instance = match self.changes.next().await? {
                CacheEvent::Created { znode }
                | CacheEvent::Changed { new: znode, .. }
                | CacheEvent::Deleted { znode } => znode.path() != directory,
                CacheEvent::Lagged { .. } => true,
                _ => false,
            };
            if is_instance {
                return Ok(self.cache.instances());
            }
        }
    }
}

impl<P> fmt::Debug for ServiceChanges<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceChanges")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}
