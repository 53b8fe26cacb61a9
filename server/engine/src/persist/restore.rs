//! Builds a state from a saved image. Verifies every invariant, because the image may come from
//! anywhere.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.1; ZooKeeper's `DataTree.deserialize`.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use minikeeper_protocol::{AclList, PathError, SessionId, Zxid, path};

use crate::{
    input::{Now, Settings, ZXID_MAX},
    persist::image::{self, SessionImage, ZnodeImage},
    state::{
        State,
        keys::{AclId, ZnodeId},
        tree::{Tree, ZNODE_BYTES},
        znode::{Owner, TTL_MS_MAX, Znode},
    },
};

/// Ids of restored sessions influence the next id only if they are less than this far above the
/// first id. No server opens that many sessions.
const SESSION_IDS_AHEAD: i64 = 1 << 48;

/// Builds a state from its parts: first sessions and access lists, then znodes, parents before
/// their children. [`Engine::restore`](crate::Engine::restore) turns it into an engine.
///
/// # Examples
/// ```
/// use minikeeper_engine::{Engine, Restoration, Settings};
/// let saved = Engine::new(Settings::default());
/// let mut restoration = Restoration::new(Settings::default());
/// for session in saved.image().sessions() {
///     restoration.session(session)?;
/// }
/// for (id, list) in saved.image().access_lists() {
///     restoration.access_list(id, list)?;
/// }
/// for znode in saved.image().znodes() {
///     restoration.znode(&znode)?;
/// }
/// let engine = Engine::restore(restoration, saved.zxid())?;
/// assert_eq!(engine.dump(), saved.dump());
/// # Ok::<(), minikeeper_engine::ImageError>(())
/// ```
#[derive(Debug)]
pub struct Restoration {
    pub(crate) state: State,
    access_lists: BTreeMap<i64, AclList>,
    /// Znodes whose access list is not in the table, with its id: a snapshot taken while changes
    /// were made may lack lists that the log has.
    pub(crate) without_list: BTreeMap<ZnodeId, i64>,
    /// The ephemerals of each owner.
    pub(crate) ephemerals: BTreeMap<SessionId, BTreeSet<ZnodeId>>,
    /// The highest zxid of any znode or change.
    pub(crate) zxid: Zxid,
}

impl Restoration {
    /// Creates an empty state: no session and no znode, not even the built-in ones.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut state = State::new(settings);
        state.tree = Tree::empty(state.settings.hash_seed);
        state.tree.java_listing_order = state.settings.java_listing_order;
        Self {
            state,
            access_lists: BTreeMap::new(),
            without_list: BTreeMap::new(),
            ephemerals: BTreeMap::new(),
            zxid: Zxid(0),
        }
    }

    /// Creates the state of a new server, to [replay](Self::replay) a log on that begins with the
    /// very first change.
    #[must_use]
    pub fn fresh(settings: Settings) -> Self {
        let mut restoration = Self::new(settings);
        let hash_seed = restoration.state.settings.hash_seed;
        restoration.state.tree = Tree::new(hash_seed);
        restoration.state.tree.java_listing_order = restoration.state.settings.java_listing_order;
        restoration
    }

    /// Adds a session. It expires its full timeout after the start (`docs/zookeeper-protocol.md`
    /// section 14.7).
    ///
    /// # Errors
    /// When the id is taken or not valid for a session, the timeout is negative, or there are too
    /// many sessions.
    pub fn session(&mut self, session: SessionImage) -> Result<(), ImageError> {
        let SessionImage { id, timeout_ms } = session;
        let settings = &self.state.settings;
        if self.state.sessions.len() >= settings.sessions_max {
            return Err(ImageError::SessionsMax {
                max: settings.sessions_max,
            });
        }
        // As the owner of an ephemeral, the id must not mean anything else.
        if !Owner::session(id).is_ephemeral() {
            return Err(ImageError::NoSessionId { id });
        }
        if self.state.sessions.find(id).is_some() {
            return Err(ImageError::SessionTwice { id });
        }
        let Ok(timeout_ms) = u32::try_from(timeout_ms) else {
            return Err(ImageError::NegativeTimeout { id, timeout_ms });
        };
        self.state.sessions.adopt(id, timeout_ms);
        let first = settings.first_session_id;
        let next = &mut self.state.sessions.next_id;
        let ahead = id.0.checked_sub(first.0);
        if id >= *next && ahead.is_some_and(|ahead| ahead < SESSION_IDS_AHEAD) {
            *next = SessionId(id.0 + 1);
        }
        Ok(())
    }

    /// Adds an access list, to which znodes refer.
    ///
    /// # Errors
    /// When the id is taken, the list is null, or an entry lacks its scheme or id.
    pub fn access_list(&mut self, id: i64, list: &AclList) -> Result<(), ImageError> {
        if list.is_null() || has_nulls(list) {
            return Err(ImageError::IncompleteAccessList { id });
        }
        match self.access_lists.insert(id, list.detached()) {
            Some(_) => Err(ImageError::AccessListTwice { id }),
            None => Ok(()),
        }
    }

    /// Adds a znode to its parent, after its siblings.
    ///
    /// # Errors
    /// When the path is invalid or taken, its parent is missing or ephemeral, it is the root and
    /// has an owner, or the tree would exceed its limit.
    pub fn znode(&mut self, image: &ZnodeImage<'_>) -> Result<(), ImageError> {
        path::validate(image.path).map_err(ImageError::Path)?;
        let parent = self.parent_of(image)?;
        // The other built-in znodes may be missing; clients then create them with any owner.
        if image.owner != 0 && parent == ZnodeId::NONE {
            let owner = image.owner;
            return Err(ImageError::RootOwner { owner });
        }
        for zxid in [image.czxid, image.mzxid, image.pzxid] {
            self.see(zxid)?;
        }
        let data_bytes = image.data.map_or(0, <[u8]>::len);
        self.make_room(image.path.len() + data_bytes + ZNODE_BYTES)?;
        let known = self.access(image.acl)?;
        let acl = known.unwrap_or(AclId::WORLD_ALL);
        let owner = Owner(image.owner);
        let mut znode = Znode::new(
            image.path,
            image.data,
            owner,
            acl,
            image.czxid,
            image.ctime_ms,
        );
        znode.mzxid = image.mzxid;
        znode.mtime_ms = image.mtime_ms;
        znode.version = image.version;
        znode.aversion = image.aversion;
        if image.pzxid != image.czxid || image.created_children != 0 {
            let family = znode.family_mut();
            family.pzxid = image.pzxid;
            family.created_children = image.created_children;
        }
        let id = self.state.tree.insert(znode, parent);
        if known.is_none() {
            self.without_list.insert(id, image.acl);
        }
        self.note_owner(id, owner);
        Ok(())
    }

    /// Records the owner of an ephemeral.
    pub(crate) fn note_owner(&mut self, id: ZnodeId, owner: Owner) {
        if owner.is_ephemeral() {
            let owner = SessionId(owner.0);
            self.ephemerals.entry(owner).or_default().insert(id);
        }
    }

    /// Records a zxid.
    ///
    /// # Errors
    /// When too few are left after it.
    pub(crate) fn see(&mut self, zxid: Zxid) -> Result<(), ImageError> {
        if zxid.0 > ZXID_MAX {
            return Err(ImageError::ZxidTooHigh { zxid });
        }
        self.zxid = self.zxid.max(zxid);
        Ok(())
    }

    /// Checks that the tree may grow by this many bytes.
    ///
    /// # Errors
    /// When it would exceed its limit.
    pub(crate) fn make_room(&self, bytes: usize) -> Result<(), ImageError> {
        let max = self.state.settings.tree_bytes_max;
        if self.state.counted_bytes() + bytes > max {
            return Err(ImageError::TreeBytesMax { max });
        }
        Ok(())
    }

    fn parent_of(&self, image: &ZnodeImage<'_>) -> Result<ZnodeId, ImageError> {
        let tree = &self.state.tree;
        let name = || String::from_utf8_lossy(image.path).into_owned();
        if tree.len() == 0 {
            return if image.path == b"/" {
                Ok(ZnodeId::NONE)
            } else {
                Err(ImageError::NoRoot)
            };
        }
        if tree.find(image.path).is_some() {
            return Err(ImageError::ZnodeTwice { path: name() });
        }
        let found = path::parent_of(image.path).and_then(|parent| tree.find(parent));
        let Some(parent) = found else {
            return Err(ImageError::NoParent { path: name() });
        };
        if tree[parent].owner.is_ephemeral() {
            return Err(ImageError::EphemeralParent { path: name() });
        }
        Ok(parent)
    }

    /// Returns the access list with this id in the table, and counts a use of it.
    ///
    /// # Errors
    /// When the list would make the tree exceed its limit.
    fn access(&mut self, id: i64) -> Result<Option<AclId>, ImageError> {
        if id == image::WORLD_ALL {
            return Ok(Some(AclId::WORLD_ALL));
        }
        let Some(list) = self.access_lists.get(&id) else {
            return Ok(None);
        };
        self.make_room(self.state.acls.cost(list))?;
        Ok(Some(self.state.acls.acquire(list)))
    }

    /// Returns the state. Its last zxid is `zxid`, or the highest one recorded if that is higher.
    ///
    /// Deletes ephemerals whose session is unknown as ZooKeeper does at its start: without a change
    /// of their own.
    pub(crate) fn finish(mut self, zxid: Zxid) -> Result<State, ImageError> {
        if self.state.tree.len() == 0 {
            return Err(ImageError::NoRoot);
        }
        if zxid.0 > ZXID_MAX {
            return Err(ImageError::ZxidTooHigh { zxid });
        }
        self.check_parents_and_lists()?;
        self.raise_pzxids();
        let state = &mut self.state;
        state.zxid = self.zxid.max(zxid);
        let all: Vec<ZnodeId> = state.tree.iter().map(|(id, _)| id).collect();
        let mut orphans = Vec::new();
        for id in all {
            if !adopt(state, id) {
                // A znode with a time to live may have children, which must be deleted too.
                let mut below = vec![id];
                let mut next = 0;
                while let Some(&id) = below.get(next) {
                    below.extend(state.tree.children(id));
                    next += 1;
                }
                orphans.extend(below.into_iter().rev());
            }
        }
        state.quotas.restore(&mut state.tree);
        let mut deleted = BTreeSet::new();
        for id in orphans {
            // An orphan may also be a descendant of another one.
            if deleted.insert(id) {
                let acl = state.delete(id, state.zxid);
                state.forget_acl(acl);
            }
        }
        state.schedule_cleanup(Now::default());
        Ok(self.state)
    }

    /// Checks what may be wrong in a snapshot taken while changes were made, until a log is
    /// replayed that corrects it.
    fn check_parents_and_lists(&self) -> Result<(), ImageError> {
        let tree = &self.state.tree;
        let name = |id: ZnodeId| String::from_utf8_lossy(tree[id].path()).into_owned();
        if let Some((&znode, &id)) = self.without_list.iter().next() {
            let path = name(znode);
            return Err(ImageError::UnknownAccessList { path, id });
        }
        for (id, znode) in tree.iter() {
            if znode.parent == ZnodeId::NONE {
                continue;
            }
            if tree[znode.parent].owner.is_ephemeral() {
                return Err(ImageError::EphemeralParent { path: name(id) });
            }
        }
        Ok(())
    }

    /// Raises the pzxid of parents to the czxids of their children. It is lower in snapshots taken
    /// while changes were made, if no log contains those changes, and where some versions of
    /// ZooKeeper have counted wrong.
    fn raise_pzxids(&mut self) {
        let tree = &mut self.state.tree;
        // Once the counter is at its maximum, the pzxid no longer changes
        // (`docs/zookeeper-protocol.md` section 11).
        let is_too_low = |tree: &Tree, znode: &Znode| {
            let parent = &tree[znode.parent];
            parent.pzxid() < znode.czxid && parent.created_children() != i32::MAX
        };
        let younger: Vec<_> = tree
            .iter()
            .filter(|(_, znode)| znode.parent != ZnodeId::NONE && is_too_low(tree, znode))
            .map(|(_, znode)| (znode.parent, znode.czxid))
            .collect();
        for (parent, czxid) in younger {
            let family = tree[parent].family_mut();
            family.pzxid = family.pzxid.max(czxid);
        }
    }
}

/// Returns whether an entry lacks its scheme or id.
pub(crate) fn has_nulls(list: &AclList) -> bool {
    list.entries()
        .any(|entry| entry.scheme.is_none() || entry.id.is_none())
}

/// Registers a restored znode with its session or for cleanup. Returns false if it must be deleted:
/// an ephemeral whose session does not exist; or a znode with a time to live if those are off,
/// which ZooKeeper then takes for an ephemeral (`docs/zookeeper-protocol.md` section 5.6).
fn adopt(state: &mut State, id: ZnodeId) -> bool {
    state.remember_owner(id);
    let owner = state.tree[id].owner;
    if owner.is_ephemeral() {
        return state.sessions.find(SessionId(owner.0)).is_some();
    }
    owner.ttl_ms().is_none() || state.settings.extended_types
}

/// Why an image is not a valid state.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ImageError {
    /// There are more sessions than allowed.
    SessionsMax {
        /// The limit.
        max: usize,
    },
    /// A session has an id that no session can have.
    NoSessionId {
        /// The id.
        id: SessionId,
    },
    /// Two sessions have the same id.
    SessionTwice {
        /// The id.
        id: SessionId,
    },
    /// A session has a negative timeout.
    NegativeTimeout {
        /// The session.
        id: SessionId,
        /// Its timeout, in milliseconds.
        timeout_ms: i32,
    },
    /// Two access lists have the same id.
    AccessListTwice {
        /// The id.
        id: i64,
    },
    /// An access list is null, or an entry lacks its scheme or id.
    IncompleteAccessList {
        /// The list.
        id: i64,
    },
    /// A znode's access list is missing.
    UnknownAccessList {
        /// The znode.
        path: String,
        /// The list.
        id: i64,
    },
    /// A path is invalid.
    Path(PathError),
    /// The first znode is not the root, or there is none.
    NoRoot,
    /// A znode's parent does not come before it.
    NoParent {
        /// The znode.
        path: String,
    },
    /// A znode's parent is an ephemeral.
    EphemeralParent {
        /// The znode.
        path: String,
    },
    /// The root has an owner, so that it would be deleted some time: with a session, or as a
    /// container.
    RootOwner {
        /// The stored owner.
        owner: i64,
    },
    /// A time to live is out of range.
    TtlOutOfRange {
        /// The znode.
        path: String,
        /// Its time to live, in milliseconds.
        ttl_ms: i64,
    },
    /// Two znodes have the same path.
    ZnodeTwice {
        /// The path.
        path: String,
    },
    /// A zxid is too high: too few are left after it.
    ZxidTooHigh {
        /// The zxid.
        zxid: Zxid,
    },
    /// The tree exceeds its memory limit.
    TreeBytesMax {
        /// The limit, in bytes.
        max: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionsMax { max } => write!(f, "more sessions than sessions_max of {max}"),
            Self::NoSessionId { id } => write!(f, "session {id}: no session can have this id"),
            Self::SessionTwice { id } => write!(f, "duplicate session {id}"),
            Self::NegativeTimeout { id, timeout_ms } => {
                write!(f, "session {id}: timeout of {timeout_ms} ms is negative")
            }
            Self::AccessListTwice { id } => write!(f, "duplicate access list {id}"),
            Self::IncompleteAccessList { id } => {
                write!(
                    f,
                    "access list {id}: null, or an entry without scheme or id"
                )
            }
            Self::UnknownAccessList { path, id } => {
                write!(f, "znode {path:?}: access list {id} is not in the table")
            }
            Self::Path(error) => error.fmt(f),
            Self::NoRoot => f.write_str("the first znode is not the root"),
            Self::NoParent { path } => write!(f, "znode {path:?}: no parent comes before it"),
            Self::EphemeralParent { path } => write!(f, "znode {path:?}: its parent is ephemeral"),
            Self::RootOwner { owner } => {
                write!(f, "znode \"/\": owner {owner:#x}; the root cannot have one")
            }
            Self::TtlOutOfRange { path, ttl_ms } => {
                let max = TTL_MS_MAX;
                write!(
                    f,
                    "znode {path:?}: ttl of {ttl_ms} ms is outside the range of 1 ms to {max} ms"
                )
            }
            Self::ZnodeTwice { path } => write!(f, "duplicate znode {path:?}"),
            Self::ZxidTooHigh { zxid } => {
                write!(f, "zxid {zxid} exceeds the limit of {}", Zxid(ZXID_MAX))
            }
            Self::TreeBytesMax { max } => {
                write!(f, "the tree exceeds tree_bytes_max of {max} bytes")
            }
        }
    }
}

impl std::error::Error for ImageError {}
