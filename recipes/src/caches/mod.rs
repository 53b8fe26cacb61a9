//! Caches: copies of znodes that follow the server's.
//!
//! | file | contents |
//! | --- | --- |
//! | `curator_cache.rs` | the handle: snapshot reads and subscriptions |
//! | `state.rs` | what is cached, what must be read, what has changed: no I/O |
//! | `loader.rs` | the task that watches and reads |
//! | `snapshot.rs`, `znode.rs` | the znodes at one moment; one znode, decompression |
//! | `changes.rs`, `options.rs` | the stream of changes, errors; settings |
//! | `views.rs` | Curator's older caches, as views |

pub(crate) mod changes;
pub(crate) mod curator_cache;
mod loader;
pub(crate) mod options;
pub(crate) mod snapshot;
mod state;
pub(crate) mod views;
pub(crate) mod znode;

pub use self::{
    changes::{CacheChanges, CacheError, CacheEvent},
    curator_cache::CuratorCache,
    options::CacheOptions,
    snapshot::CacheSnapshot,
    views::{
        ChildrenChanges, ChildrenEvent, NodeCache, NodeChanges, PathChildrenCache, TreeCache,
        TreeChanges, TreeEvent,
    },
    znode::{CachedZnode, Damage},
};
