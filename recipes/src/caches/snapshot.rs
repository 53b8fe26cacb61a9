//! The znodes of a cache at one moment.

use std::{fmt, sync::Arc};

use super::znode::{CachedZnode, key};

/// The largest number of znodes in one chunk. A change copies the pointers of one chunk, and those
/// to all chunks, if a reader or the published snapshot shares them.
const CHUNK_MAX: usize = 256;

type Chunk = Vec<Arc<CachedZnode>>;

/// All znodes of a cache at one moment.
///
/// Cloning costs nothing, and a snapshot never changes. Returned by
/// [`CuratorCache::snapshot`](crate::CuratorCache::snapshot).
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// use minikeeper_recipes::CuratorCache;
///
/// client.create("/workers", b"", CreateMode::Persistent).await?;
/// client.create("/workers/7", b"10.0.0.7", CreateMode::Persistent).await?;
/// let cache = CuratorCache::start(client, "/workers")?;
/// cache.initialized().await?;
/// let snapshot = cache.snapshot();
/// let names: Vec<_> = snapshot.children("/workers").map(|znode| znode.name()).collect();
/// assert_eq!((names, snapshot.len()), (vec!["7"], 2));
/// # Ok(()) });
/// ```
#[derive(Clone, Default)]
pub struct CacheSnapshot {
    /// The znodes in the order of [`key`]. No chunk is empty.
    chunks: Arc<Vec<Arc<Chunk>>>,
    len: usize,
    /// How many changes the cache had made.
    pub(crate) sequence: u64,
}

impl CacheSnapshot {
    /// Returns a znode.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Arc<CachedZnode>> {
        let (chunk, at) = self.position(path).ok()?;
        Some(&self.chunks[chunk][at])
    }

    /// Returns whether a znode is cached.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.position(path).is_ok()
    }

    /// Returns the children of a znode, sorted by name.
    pub fn children(&self, path: &str) -> impl Iterator<Item = &Arc<CachedZnode>> {
        let parent = path.trim_end_matches('/');
        let (chunk, at) = match self.search((parent, "")) {
            // Only the root has an empty name. It is no child of itself.
            Ok((chunk, at)) => (chunk, at + 1),
            Err(position) => position,
        };
        let rest = self.chunks.get(chunk..).unwrap_or_default();
        let behind = rest.iter().flat_map(|chunk| chunk.iter()).skip(at);
        behind.take_while(move |znode| key(znode.path()).0 == parent)
    }

    /// Returns all znodes, sorted by the paths of their parents and then by their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CachedZnode>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Returns a znode and all znodes below it, each before its children.
    pub fn subtree(&self, path: &str) -> impl Iterator<Item = &Arc<CachedZnode>> {
        let mut waiting: Vec<_> = self.get(path).into_iter().collect();
        std::iter::from_fn(move || {
            let next = waiting.pop()?;
            waiting.extend(self.children(next.path()));
            Some(next)
        })
    }

    /// Returns the number of znodes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no znodes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a snapshot without znodes after this number of changes.
    pub(crate) fn empty(sequence: u64) -> Self {
        Self {
            sequence,
            ..Self::default()
        }
    }

    /// Inserts a znode, or replaces the one of this path.
    pub(crate) fn insert(&mut self, znode: Arc<CachedZnode>) {
        let position = self.position(znode.path());
        let chunks = Arc::make_mut(&mut self.chunks);
        match position {
            Ok((chunk, at)) => Arc::make_mut(&mut chunks[chunk])[at] = znode,
            Err((chunk, at)) => {
                self.len += 1;
                let Some(home) = chunks.get_mut(chunk) else {
                    chunks.push(Arc::new(vec![znode]));
                    return;
                };
                let home = Arc::make_mut(home);
                home.insert(at, znode);
                if home.len() > CHUNK_MAX {
                    // Names often grow, so the first half stays full.
                    let is_last = at + 1 == home.len();
                    let split = if is_last { CHUNK_MAX } else { CHUNK_MAX / 2 };
                    let behind = home.split_off(split);
                    home.shrink_to_fit();
                    chunks.insert(chunk + 1, Arc::new(behind));
                }
            }
        }
    }

    /// Removes a znode and returns it.
    pub(crate) fn remove(&mut self, path: &str) -> Option<Arc<CachedZnode>> {
        let (chunk, at) = self.position(path).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let home = Arc::make_mut(&mut chunks[chunk]);
        let removed = home.remove(at);
        if home.is_empty() {
            chunks.remove(chunk);
        } else if home.len() < CHUNK_MAX / 8 && chunk > 0 {
            // Chunks that shrink are joined, or a cache that once was large would stay so.
            let small = chunks.remove(chunk);
            let home = Arc::make_mut(&mut chunks[chunk - 1]);
            home.extend(small.iter().cloned());
            if home.len() > CHUNK_MAX {
                let behind = home.split_off(CHUNK_MAX / 2);
                chunks.insert(chunk, Arc::new(behind));
            }
        }
        self.len -= 1;
        Some(removed)
    }

    fn position(&self, path: &str) -> Result<(usize, usize), (usize, usize)> {
        self.search(key(path))
    }

    /// Returns the chunk and the index of a znode, or where it belongs.
    fn search(&self, wanted: (&str, &str)) -> Result<(usize, usize), (usize, usize)> {
        let begins = |chunk: &Arc<Chunk>| key(chunk[0].path()) <= wanted;
        let chunk = self.chunks.partition_point(begins).saturating_sub(1);
        let Some(home) = self.chunks.get(chunk) else {
            return Err((0, 0));
        };
        match home.binary_search_by(|znode| key(znode.path()).cmp(&wanted)) {
            Ok(at) => Ok((chunk, at)),
            Err(at) => Err((chunk, at)),
        }
    }
}

impl fmt::Debug for CacheSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.iter().map(|znode| znode.path());
        f.debug_set().entries(paths).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use minikeeper_client::Stat;
    use minikeeper_test_kit::random::Random;

    use super::*;

    #[test]
    fn agrees_with_a_map_and_snapshots_never_change() {
        let mut random = Random::new(1);
        let mut snapshot = CacheSnapshot::default();
        let mut model = BTreeMap::new();
        let mut before = Vec::new();
        for step in 0..40_000_u64 {
            let number = random.below(3_000);
            let path = match number % 4 {
                0 => format!("/{number}"),
                1 => format!("/a/{number}"),
                2 => format!("/a/b/{number}"),
                _ if number % 100 == 3 => "/".to_owned(),
                _ => format!("/a-/{number}"),
            };
            // It grows, shrinks, and grows again.
            let grows = (step / 10_000) % 2 == 0;
            if random.below(10) < if grows { 8 } else { 2 } {
                let data = step.to_be_bytes();
                let znode = Arc::new(CachedZnode::new(&path, &data, Stat::default()));
                snapshot.insert(Arc::clone(&znode));
                model.insert((key(&path).0.to_owned(), key(&path).1.to_owned()), znode);
            } else {
                let removed = snapshot.remove(&path);
                let expected = model.remove(&(key(&path).0.to_owned(), key(&path).1.to_owned()));
                assert_eq!(removed, expected);
            }
            assert_eq!(snapshot.len(), model.len());
            if step % 1_000 == 0 {
                before.push((snapshot.clone(), model.clone()));
            }
        }
        for (snapshot, model) in before {
            assert!(snapshot.iter().eq(model.values()));
            for parent in ["/", "/a", "/a/b", "/a-", "/none"] {
                let children = model.iter().filter(|((of, name), _)| {
                    of == parent.trim_end_matches('/') && !name.is_empty()
                });
                let children = children.map(|(_, znode)| znode);
                assert!(snapshot.children(parent).eq(children), "{parent}");
            }
            for znode in model.values() {
                assert_eq!(snapshot.get(znode.path()), Some(znode));
            }
        }
    }
}
