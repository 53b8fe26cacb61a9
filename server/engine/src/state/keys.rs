//! Handles by which the tables refer to each other: indexes into arenas. A handle is stable while
//! its object exists, and is reused afterwards.

/// A znode's index in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct ZnodeId(pub(crate) u32);

impl ZnodeId {
    /// The root never moves.
    pub(crate) const ROOT: Self = Self(0);
    /// No znode: the end of a list, the parent of the root.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// A watch's index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WatchId(pub(crate) u32);

impl WatchId {
    /// No watch: the end of a list, a path without watches.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// The index of what belongs to one connection's watches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct WatcherId(pub(crate) u32);

impl WatcherId {
    /// No watcher: a connection that has set no watch.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// A session's index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionKey(pub(crate) u32);

impl SessionKey {
    /// No session: the end of a list, a connection without a session.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// An access list's index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AclId(pub(crate) u32);

impl AclId {
    /// `world:anyone` with all permissions.
    pub(crate) const WORLD_ALL: Self = Self(0);
    /// `world:anyone` with READ.
    pub(crate) const WORLD_READ: Self = Self(1);
}

/// The index of a set of identities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct IdentitiesId(pub(crate) u32);

impl IdentitiesId {
    /// No identities: an unknown connection.
    pub(crate) const NONE: Self = Self(u32::MAX);
}
