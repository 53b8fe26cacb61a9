//! The options of a cache.

use std::{fmt, sync::Arc};

/// Decides which paths a cache has.
type Filter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The options of a [`CuratorCache`](crate::CuratorCache).
///
/// # Examples
/// ```
/// use minikeeper_recipes::CacheOptions;
///
/// let options = CacheOptions::default()
///     .compressed(true)
///     .depth_max(Some(2))
///     .filter(|path| !path.ends_with("/locks"))
///     .znodes_max(10_000);
/// ```
#[derive(Clone)]
#[must_use]
pub struct CacheOptions {
    pub(crate) with_data: bool,
    pub(crate) compressed: bool,
    pub(crate) inflated_bytes_max: usize,
    pub(crate) depth_max: Option<usize>,
    pub(crate) filter: Option<Filter>,
    pub(crate) bytes_max: usize,
    pub(crate) znodes_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) changes_max: usize,
    pub(crate) changes_bytes_max: usize,
    pub(crate) clears_on_close: bool,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            with_data: true,
            compressed: false,
            inflated_bytes_max: 16 << 20,
            depth_max: None,
            filter: None,
            bytes_max: 1 << 30,
            znodes_max: 4_000_000,
            in_flight_max: 256,
            changes_max: 1024,
            changes_bytes_max: 64 << 20,
            clears_on_close: true,
        }
    }
}

impl CacheOptions {
    /// Returns the options for one znode, without those below it. Curator: `SINGLE_NODE_CACHE`.
    pub fn single_node() -> Self {
        Self::default().depth_max(Some(0))
    }

    /// Sets whether the cache reads data. Without, it has paths and stats. Default: `true`.
    pub const fn with_data(mut self, with_data: bool) -> Self {
        self.with_data = with_data;
        self
    }

    /// Sets whether all data is compressed in the format of gzip, as Curator writes it with
    /// `compressed()`. A znode whose data is damaged is cached with
    /// [`CachedZnode::damage`](crate::CachedZnode::damage). Curator: `COMPRESSED_DATA`. Default:
    /// `false`.
    pub const fn compressed(mut self, compressed: bool) -> Self {
        self.compressed = compressed;
        self
    }

    /// Sets how long the data of one znode may be once it is decompressed. Unit: bytes. Default:
    /// 16 MiB.
    pub const fn inflated_bytes_max(mut self, bytes: usize) -> Self {
        self.inflated_bytes_max = bytes;
        self
    }

    /// Sets how far below its root the cache goes: 0 is the root alone, 1 its children too, `None`
    /// everything. Default: `None`.
    pub const fn depth_max(mut self, depth: Option<usize>) -> Self {
        self.depth_max = depth;
        self
    }

    /// Leaves out the paths for which the function returns `false`, and all below them. The root is
    /// never left out. The function must always return the same for a path, and not block. Default:
    /// everything is cached.
    pub fn filter(mut self, filter: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Sets how much memory the cached znodes may take: paths, data, and 192 bytes for each. A larger
    /// tree ends the cache with [`CacheError::TooManyBytes`](crate::CacheError::TooManyBytes). Unit:
    /// bytes. Default: 1 GiB.
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets how many znodes the tree may have. A larger one ends the cache with
    /// [`CacheError::TooManyZnodes`](crate::CacheError::TooManyZnodes). Default: 4,000,000.
    pub const fn znodes_max(mut self, znodes: usize) -> Self {
        self.znodes_max = znodes;
        self
    }

    /// Sets how many requests may be waiting for a reply, at least 1. Default: 256.
    pub const fn in_flight_max(mut self, requests: usize) -> Self {
        self.in_flight_max = requests;
        self
    }

    /// Sets how many changes wait for a slow subscriber, at least 1, before it gets
    /// [`CacheEvent::Lagged`](crate::CacheEvent::Lagged) instead. Default: 1024.
    pub const fn changes_max(mut self, changes: usize) -> Self {
        self.changes_max = changes;
        self
    }

    /// Sets how much memory the changes may take that wait for slow subscribers: paths, data, and 192
    /// bytes for each znode; a change of data has two. Beyond that the oldest are dropped, and a
    /// subscriber that has not read them gets [`CacheEvent::Lagged`](crate::CacheEvent::Lagged) instead.
    /// Unit: bytes. Default: 64 MiB.
    pub const fn changes_bytes_max(mut self, bytes: usize) -> Self {
        self.changes_bytes_max = bytes;
        self
    }

    /// Sets whether the cache is empty once it is closed or has failed. Otherwise it stays as it
    /// was. Curator: `DO_NOT_CLEAR_ON_CLOSE`. Default: `true`.
    pub const fn clears_on_close(mut self, clears: bool) -> Self {
        self.clears_on_close = clears;
        self
    }
}

impl fmt::Debug for CacheOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheOptions")
            .field("with_data", &self.with_data)
            .field("compressed", &self.compressed)
            .field("depth_max", &self.depth_max)
            .field("bytes_max", &self.bytes_max)
            .field("znodes_max", &self.znodes_max)
            .finish_non_exhaustive()
    }
}
