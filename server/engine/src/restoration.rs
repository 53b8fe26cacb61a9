//! The way back from a saved state to an engine, with every invariant checked on the way: what
//! was saved may come from anywhere.
//!
//! Source: reference section 22.1; the original's `DataTree.deserialize`.

use std::{collections::BTreeMap, fmt};

use minikeeper_protocol::{AclList, PathError, SessionId, Zxid, path};

use crate::{
    image::{self, SessionImage, ZnodeImage},
    input::{Now, Settings},
    keys::{AclId, ZnodeId},
    state::State,
    tree::{Tree, ZNODE_BYTES},
    znode::{Owner, Znode},
};

/// The highest zxid that is believed: beyond it the numbers could run out.
pub(crate) const ZXID_MAX: i64 = i64::MAX - (1 << 40);

/// How far above the first id the ids of earlier sessions are looked at when the next one is
/// chosen. Nobody counts so far.
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
    state: State,
    access_lists: BTreeMap<i64, AclList>,
    /// The highest zxid of any znode.
    zxid: Zxid,
}

impl Restoration {
    /// Nothing yet: no session, no znode, not even the built-in ones.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut state = State::new(settings);
        state.tree = Tree::empty();
        Self {
            state,
            access_lists: BTreeMap::new(),
            zxid: Zxid(0),
        }
    }

    /// Adds a session. It is due a whole timeout after the start (reference section 14.7).
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
        let has_nulls = |list: &AclList| {
            list.entries()
                .any(|entry| entry.scheme.is_none() || entry.id.is_none())
        };
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
    /// When the path is invalid or taken, its parent is missing, ephemeral, or older than the
    /// znode says, the access list is unknown, or the tree would grow beyond its limit.
    pub fn znode(&mut self, image: &ZnodeImage<'_>) -> Result<(), ImageError> {
        path::validate(image.path).map_err(ImageError::Path)?;
        let parent = self.parent_of(image)?;
        for zxid in [image.czxid, image.mzxid, image.pzxid] {
            if zxid.0 > ZXID_MAX {
                return Err(ImageError::ZxidTooHigh { zxid });
            }
            self.zxid = self.zxid.max(zxid);
        }
        let data_bytes = image.data.map_or(0, <[u8]>::len);
        let bytes = self.state.tree.bytes() + image.path.len() + data_bytes + ZNODE_BYTES;
        let max = self.state.settings.tree_bytes_max;
        if bytes > max {
            return Err(ImageError::TreeBytesMax { max });
        }
        let acl = self.access(image)?;
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
        self.state.tree.insert(znode, parent);
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
        let znode = &tree[parent];
        if znode.owner.is_ephemeral() {
            return Err(ImageError::EphemeralParent { path: name() });
        }
        // Where the counter sticks at its maximum, the pzxid does too (reference section 11).
        if znode.pzxid() < image.czxid && znode.created_children() != i32::MAX {
            return Err(ImageError::YoungerThanParentKnows {
                path: name(),
                czxid: image.czxid,
                pzxid: znode.pzxid(),
            });
        }
        Ok(parent)
    }

    fn access(&mut self, image: &ZnodeImage<'_>) -> Result<AclId, ImageError> {
        if image.acl == image::WORLD_ALL {
            return Ok(AclId::WORLD_ALL);
        }
        match self.access_lists.get(&image.acl) {
            Some(list) => Ok(self.state.acls.acquire(list)),
            None => Err(ImageError::UnknownAccessList {
                path: String::from_utf8_lossy(image.path).into_owned(),
                id: image.acl,
            }),
        }
    }

    /// The state, its newest change being `zxid` or the newest that a znode knows of.
    ///
    /// Ephemerals whose session is unknown go as the original deletes them at its start: without
    /// a change of their own.
    pub(crate) fn finish(mut self, zxid: Zxid) -> Result<State, ImageError> {
        if self.state.tree.len() == 0 {
            return Err(ImageError::NoRoot);
        }
        if zxid.0 > ZXID_MAX {
            return Err(ImageError::ZxidTooHigh { zxid });
        }
        let state = &mut self.state;
        state.zxid = self.zxid.max(zxid);
        let all: Vec<ZnodeId> = state.tree.iter().map(|(id, _)| id).collect();
        let mut orphans = Vec::new();
        for id in all {
            if !adopt(state, id) {
                orphans.push(id);
            }
        }
        state.quotas.restore(&mut state.tree);
        for id in orphans {
            let acl = state.delete(id, state.zxid);
            state.forget_acl(acl);
        }
        state.schedule_cleanup(Now::default());
        Ok(self.state)
    }
}

/// Takes a znode that was saved into the books that are kept beside the tree. False if it must go:
/// an ephemeral whose session is not there; or one with a time to live where there are none, which
/// the original then takes for an ephemeral (reference section 5.6).
fn adopt(state: &mut State, id: ZnodeId) -> bool {
    state.remember_owner(id);
    let owner = state.tree[id].owner;
    if owner.is_ephemeral() {
        return state.sessions.find(SessionId(owner.0)).is_some();
    }
    owner.ttl_ms().is_none() || state.settings.extended_types
}

/// Why what was saved is no state.
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
    /// Two znodes have the same path.
    ZnodeTwice {
        /// The path.
        path: String,
    },
    /// A znode that its parent cannot know of yet.
    YoungerThanParentKnows {
        /// The znode.
        path: String,
        /// The change that created it.
        czxid: Zxid,
        /// The newest change to its parent's children.
        pzxid: Zxid,
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
            Self::ZnodeTwice { path } => write!(f, "znode {path:?} is there twice"),
            Self::YoungerThanParentKnows { path, czxid, pzxid } => write!(
                f,
                "znode {path:?}: czxid {czxid} exceeds pzxid {pzxid} of its parent"
            ),
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
