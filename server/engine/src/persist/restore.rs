//! Builds a state from a saved image. The image may come from anywhere, so every invariant is
//! verified.
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

/// How far above the first id the ids of earlier sessions are looked at when the next one is
/// chosen. No server opens that many.
const SESSION_IDS_AHEAD: i64 = 1 << 48;

/// Puts a state together from what was saved: sessions and access lists first, then the znodes,
/// parents before their children. [`Engine::restore`](crate::Engine::restore) makes it run.
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
    /// Znodes whose access list is not in the table, and its id: a snapshot that was taken while
    /// changes were made may lack lists that a log has.
    pub(crate) without_list: BTreeMap<ZnodeId, i64>,
    /// The ephemerals of each owner.
    pub(crate) ephemerals: BTreeMap<SessionId, BTreeSet<ZnodeId>>,
    /// The highest zxid of any znode or change.
    pub(crate) zxid: Zxid,
}

impl Restoration {
    /// Nothing yet: no session, no znode, not even the built-in ones.
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

    /// A fresh tree, for changes to be [replayed](Self::replay) on: what there is where a log goes
    /// back to the very first change.
    #[must_use]
    pub fn fresh(settings: Settings) -> Self {
        let mut restoration = Self::new(settings);
        let hash_seed = restoration.state.settings.hash_seed;
        restoration.state.tree = Tree::new(hash_seed);
        restoration.state.tree.java_listing_order = restoration.state.settings.java_listing_order;
        restoration
    }

    /// Adds a session. It is due a whole timeout after the start (`docs/zookeeper-protocol.md`
    /// section 14.7).
    ///
    /// # Errors
    /// When the id is taken or none of a session, the timeout is negative, or there are too many.
    pub fn session(&mut self, session: SessionImage) -> Result<(), ImageError> {
        let SessionImage { id, timeout_ms } = session;
        let settings = &self.state.settings;
        if self.state.sessions.len() >= settings.sessions_max {
            return Err(ImageError::SessionsMax {
                max: settings.sessions_max,
            });
        }
        // The id must not be read as anything else where it owns an ephemeral.
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

    /// Adds an access list, for the znodes to refer to.
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

    /// Adds a znode below its parent, behind its siblings.
    ///
    /// # Errors
    /// When the path is invalid or taken, its parent is missing or ephemeral, it is the root and
    /// has an owner, or the tree would grow beyond its limit.
    pub fn znode(&mut self, image: &ZnodeImage<'_>) -> Result<(), ImageError> {
        path::validate(image.path).map_err(ImageError::Path)?;
        let parent = self.parent_of(image)?;
        // The other built-in znodes may be missing, and clients create them as they like then.
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

    /// Notes down whose an ephemeral is.
    pub(crate) fn note_owner(&mut self, id: ZnodeId, owner: Owner) {
        if owner.is_ephemeral() {
            let owner = SessionId(owner.0);
            self.ephemerals.entry(owner).or_default().insert(id);
        }
    }

    /// Takes note of the zxid of something.
    ///
    /// # Errors
    /// When too few are left behind it.
    pub(crate) fn see(&mut self, zxid: Zxid) -> Result<(), ImageError> {
        if zxid.0 > ZXID_MAX {
            return Err(ImageError::ZxidTooHigh { zxid });
        }
        self.zxid = self.zxid.max(zxid);
        Ok(())
    }

    /// # Errors
    /// When the tree must not grow by that many bytes.
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

    /// The list with this id in the table; counts one more use.
    ///
    /// # Errors
    /// When the tree must not grow by it.
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

    /// The state, its newest change being `zxid` or the newest that a znode knows of.
    ///
    /// Ephemerals whose session is unknown go as ZooKeeper deletes them at its start: without
    /// a change of their own.
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
                // One with a time to live may have children, which cannot stay without it.
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
            // One may be below another.
            if deleted.insert(id) {
                let acl = state.delete(id, state.zxid);
                state.forget_acl(acl);
            }
        }
        state.schedule_cleanup(Now::default());
        Ok(self.state)
    }

    /// What may be wrong in a snapshot that was taken while changes were made, as long as a log
    /// puts it right.
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

    /// A znode cannot be younger than the newest change to its parent's children. Snapshots say
    /// otherwise where they were taken while changes were made and no log tells of these, and
    /// where some versions of ZooKeeper have counted wrong: then the parent's pzxid is raised.
    fn raise_pzxids(&mut self) {
        let tree = &mut self.state.tree;
        // Where the counter sticks at its maximum, the pzxid does too (`docs/zookeeper-protocol.md`
        // section 11).
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

/// Whether an entry lacks its scheme or id.
pub(crate) fn has_nulls(list: &AclList) -> bool {
    list.entries()
        .any(|entry| entry.scheme.is_none() || entry.id.is_none())
}

/// Takes a znode that was saved into the books that are kept beside the tree. False if it must go:
/// an ephemeral whose session is not there; or one with a time to live where there are none, which
/// ZooKeeper then takes for an ephemeral (`docs/zookeeper-protocol.md` section 5.6).
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
    /// An id that no session can have.
    NoSessionId {
        /// The id.
        id: SessionId,
    },
    /// Two sessions have the same id.
    SessionTwice {
        /// The id.
        id: SessionId,
    },
    /// A session with a negative timeout.
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
    /// An access list that is null, or an entry of it without scheme or id.
    IncompleteAccessList {
        /// The list.
        id: i64,
    },
    /// A znode whose access list is not there.
    UnknownAccessList {
        /// The znode.
        path: String,
        /// The list.
        id: i64,
    },
    /// A path that breaks a rule.
    Path(PathError),
    /// The first znode is not the root, or there is none.
    NoRoot,
    /// A znode without a parent before it.
    NoParent {
        /// The znode.
        path: String,
    },
    /// A znode below an ephemeral one.
    EphemeralParent {
        /// The znode.
        path: String,
    },
    /// The root would be deleted some time: with a session, or as a container.
    RootOwner {
        /// What is stored as its owner.
        owner: i64,
    },
    /// A time to live that there cannot be.
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
    /// A zxid behind which too few are left.
    ZxidTooHigh {
        /// The zxid.
        zxid: Zxid,
    },
    /// The tree takes more memory than allowed.
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
            Self::SessionTwice { id } => write!(f, "session {id} is there twice"),
            Self::NegativeTimeout { id, timeout_ms } => {
                write!(f, "session {id}: timeout of {timeout_ms} ms is negative")
            }
            Self::AccessListTwice { id } => write!(f, "access list {id} is there twice"),
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
                write!(f, "znode \"/\": owner {owner:#x}, but the root has none")
            }
            Self::TtlOutOfRange { path, ttl_ms } => {
                let max = TTL_MS_MAX;
                write!(f, "znode {path:?}: ttl of {ttl_ms} ms is not in 1 to {max}")
            }
            Self::ZnodeTwice { path } => write!(f, "znode {path:?} is there twice"),
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
