//! A cached znode, and how its data is decompressed.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use minikeeper_client::Stat;

/// A znode as a cache has read it.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::CuratorCache;
///
/// client.create("/motd", b"hello", CreateMode::Persistent).await?;
/// let cache = CuratorCache::start(client, "/motd")?;
/// cache.initialized().await?;
/// let motd = cache.get("/motd").ok_or("it exists")?;
/// assert_eq!((motd.name(), motd.data(), motd.stat().version), ("motd", &b"hello"[..], 0));
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CachedZnode {
    path: Box<str>,
    data: Box<[u8]>,
    stat: Stat,
    damage: Option<Box<Damage>>,
}

impl CachedZnode {
    pub(crate) fn new(path: &str, data: &[u8], stat: Stat) -> Self {
        Self {
            path: path.into(),
            data: data.into(),
            stat,
            damage: None,
        }
    }

    /// Decompresses the data, which no data remains without. Damaged data stays as it is.
    pub(crate) fn decompressed(mut self, bytes_max: usize) -> Self {
        if !self.data.is_empty() {
            match inflate(&self.data, bytes_max) {
                Ok(data) => self.data = data,
                Err(damage) => self.damage = Some(Box::new(damage)),
            }
        }
        self
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the last component of the path; empty for `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        key(&self.path).1
    }

    /// Returns the data, decompressed if the cache decompresses. It is empty for null, and in a
    /// cache without data.
    #[must_use]
    pub const fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the stat that came with the data. Its counters of children (`cversion`, `pzxid`,
    /// `num_children`) and its `aversion` may be older than the cache: a server sends no event when
    /// only they change. [`CacheSnapshot::children`](crate::CacheSnapshot::children) is up to date.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Returns why the data could not be decompressed; [`CachedZnode::data`] is then what the server
    /// sent.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_deref()
    }

    /// Returns how much the znode counts towards
    /// [`CacheOptions::bytes_max`](crate::CacheOptions::bytes_max).
    pub(crate) const fn bytes(&self) -> usize {
        ZNODE_BYTES + self.path.len() + self.data.len()
    }
}

/// What a cached znode takes besides its path and its data, rounded up. Unit: bytes.
pub(crate) const ZNODE_BYTES: usize = 192;

/// Why the data of a znode could not be decompressed.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::{CacheOptions, CuratorCache, Damage};
///
/// client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let options = CacheOptions::default().compressed(true);
/// let cache = CuratorCache::with_options(client, "/a", options)?;
/// cache.initialized().await?;
/// let znode = cache.get("/a").ok_or("it exists")?;
/// assert!(matches!(znode.damage(), Some(Damage::NotGzip { .. })));
/// assert_eq!(znode.data(), b"hello");
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// It is not in the format of gzip. Write it compressed, or cache this tree without
    /// decompression.
    #[error("{bytes} bytes are not gzip: {fault}; write them compressed, as Curator does")]
    NotGzip {
        /// Its length.
        bytes: usize,
        /// What the decoder found.
        fault: String,
    },
    /// It is longer than the limit once it is decompressed.
    #[error(
        "{bytes} bytes exceed the limit of {bytes_max} bytes once decompressed; raise \
         inflated_bytes_max, or write less"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit, see
        /// [`CacheOptions::inflated_bytes_max`](crate::CacheOptions::inflated_bytes_max).
        bytes_max: usize,
    },
}

fn inflate(data: &[u8], bytes_max: usize) -> Result<Box<[u8]>, Damage> {
    let mut inflated = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut decoder = MultiGzDecoder::new(data).take(limit.saturating_add(1));
    let bytes = data.len();
    match decoder.read_to_end(&mut inflated) {
        Ok(length) if length > bytes_max => Err(Damage::TooLong { bytes, bytes_max }),
        Ok(_) => Ok(inflated.into()),
        Err(error) => {
            let fault = error.to_string();
            Err(Damage::NotGzip { bytes, fault })
        }
    }
}

/// Returns the parent's path, without a slash at its end, and the name: the order in which caches
/// keep znodes, so that the children of one znode are neighbours.
pub(crate) fn key(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the parent's path; `None` for `/`.
pub(crate) fn parent(path: &str) -> Option<&str> {
    match key(path) {
        ("", "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}

/// Returns whether `path` is below `root`, or is it.
pub(crate) fn is_within(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root)
        .is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Returns how many components `path` has more than `root`, below which it is.
pub(crate) fn depth(path: &str, root: &str) -> usize {
    let slashes = |path: &str| path.trim_end_matches('/').matches('/').count();
    slashes(path) - slashes(root)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn paths_are_split_and_compared() {
        assert_eq!((key("/"), parent("/")), (("", ""), None));
        assert_eq!((key("/a"), parent("/a")), (("", "a"), Some("/")));
        assert_eq!((key("/a/b"), parent("/a/b")), (("/a", "b"), Some("/a")));
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/a", "/"));
        assert!(is_within("/", "/") && !is_within("/ab", "/a") && !is_within("/", "/a"));
        assert_eq!(
            [("/a", "/a"), ("/a/b", "/a"), ("/a/b", "/"), ("/", "/")].map(|(a, b)| depth(a, b)),
            [0, 1, 2, 0]
        );
    }

    #[test]
    fn inflated_data_is_bounded() {
        let zeros = gzip(&[0; 100_000]);
        assert_eq!(inflate(&zeros, 100_000).unwrap().len(), 100_000);
        let bytes = zeros.len();
        let bytes_max = 99_999;
        assert_eq!(
            inflate(&zeros, bytes_max),
            Err(Damage::TooLong { bytes, bytes_max })
        );
    }

    #[test]
    fn every_damage_of_compressed_data_is_an_error() {
        let whole = gzip(b"hello, hello, hello");
        for length in 1..whole.len() {
            assert!(inflate(&whole[..length], 1000).is_err(), "{length}");
        }
        for at in (0..whole.len()).filter(|at| !(3..10).contains(at)) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let inflated = inflate(&damaged, 1000);
            assert!(inflated.is_err(), "{at}: {inflated:?}");
        }
    }
}
