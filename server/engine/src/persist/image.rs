//! The image of a state as saved: sessions, access lists and znodes.
//!
//! Watches and connections end with the process and are not part of it; clients register them
//! again. [`Restoration`](crate::Restoration) builds a state from an image.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.1; ZooKeeper's `DataTree.serialize`.

use minikeeper_protocol::{AclList, SessionId, Zxid};

use crate::{
    persist::change::Life,
    state::{
        State,
        keys::{AclId, ZnodeId},
        znode::{Owner, Znode},
    },
};

/// The id of `world:anyone` with all permissions, which is not in the table.
pub(crate) const WORLD_ALL: i64 = -1;

/// The whole state of an engine between two inputs, as saved.
///
/// Equal states give equal images, in the same order.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    state: &'a State,
}

/// One session of an [`Image`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionImage {
    /// Its id, from which the password is computed (`docs/zookeeper-protocol.md` section 6.7).
    pub id: SessionId,
    /// The timeout it was opened with. ZooKeeper saves this one, even if a later handshake
    /// negotiated another (`docs/zookeeper-protocol.md` section 6.4). Unit: milliseconds.
    pub timeout_ms: i32,
}

/// One znode of an [`Image`]: ZooKeeper's `DataNode` and `StatPersisted`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZnodeImage<'a> {
    /// The path; that of the root is `/`.
    pub path: &'a [u8],
    /// The data, which may be null.
    pub data: Option<&'a [u8]>,
    /// The id of the access list; -1 is `world:anyone` with all permissions, which is not in the
    /// table.
    pub acl: i64,
    /// The zxid of the change that created it.
    pub czxid: Zxid,
    /// The zxid of the change that last set its data.
    pub mzxid: Zxid,
    /// When it was created, in milliseconds since 1970.
    pub ctime_ms: i64,
    /// When its data was last set, in milliseconds since 1970.
    pub mtime_ms: i64,
    /// The number of times its data was set.
    pub version: i32,
    /// The number of children ever created, which is not the cversion that clients see
    /// (`docs/zookeeper-protocol.md` section 5.3).
    pub created_children: i32,
    /// The number of times its access list was set.
    pub aversion: i32,
    /// The owner as stored: 0, a session, or the mark of a container or of a TTL
    /// (`docs/zookeeper-protocol.md` section 5.6).
    pub owner: i64,
    /// The zxid of the change that last created or deleted a child.
    pub pzxid: Zxid,
}

impl ZnodeImage<'_> {
    /// Returns its lifetime, which the owner encodes.
    #[must_use]
    pub const fn life(&self) -> Life {
        Owner(self.owner).life()
    }
}

impl<'a> Image<'a> {
    pub(crate) const fn new(state: &'a State) -> Self {
        Self { state }
    }

    /// Returns the zxid of the last change.
    #[must_use]
    pub const fn zxid(&self) -> Zxid {
        self.state.zxid
    }

    /// Returns every session, by id.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionImage> {
        let mut sessions: Vec<_> = self
            .state
            .sessions
            .iter()
            .map(|(_, session)| SessionImage {
                id: session.id,
                timeout_ms: session.opened_timeout_ms.cast_signed(),
            })
            .collect();
        sessions.sort_unstable_by_key(|session| session.id);
        sessions
    }

    /// Returns every access list except the one with id -1, by id.
    #[must_use]
    pub fn access_lists(&self) -> Vec<(i64, &'a AclList)> {
        let acls = &self.state.acls;
        [AclId::WORLD_READ]
            .into_iter()
            .chain(acls.users().map(|(id, _)| id))
            .map(|id| (i64::from(id.0), acls.get(id)))
            .collect()
    }

    /// Returns the access list with this id; `None` if no znode has it.
    #[must_use]
    pub fn access_list(&self, id: i64) -> Option<&'a AclList> {
        let id = if id == WORLD_ALL { 0 } else { id };
        self.state.acls.find(AclId(u32::try_from(id).ok()?))
    }

    /// Returns the znode at this path.
    #[must_use]
    pub fn znode(&self, path: &str) -> Option<ZnodeImage<'a>> {
        let tree = &self.state.tree;
        tree.find(path.as_bytes()).map(|id| image_of(&tree[id]))
    }

    /// Returns every znode: parents before their children, siblings in order of creation.
    #[must_use]
    pub const fn znodes(&self) -> Znodes<'a> {
        self.subtree_at(ZnodeId::ROOT)
    }

    /// Returns the znode at this path and every one below it: parents before their children,
    /// siblings in order of creation.
    #[must_use]
    pub fn subtree(&self, path: &str) -> Option<Znodes<'a>> {
        let top = self.state.tree.find(path.as_bytes())?;
        Some(self.subtree_at(top))
    }

    const fn subtree_at(&self, top: ZnodeId) -> Znodes<'a> {
        Znodes {
            state: self.state,
            top,
            next: top,
        }
    }
}

/// Walks the znodes of an [`Image`] along their links, without allocating.
#[derive(Clone, Debug)]
pub struct Znodes<'a> {
    state: &'a State,
    /// Where the walk began.
    top: ZnodeId,
    next: ZnodeId,
}

impl<'a> Iterator for Znodes<'a> {
    type Item = ZnodeImage<'a>;

    fn next(&mut self) -> Option<ZnodeImage<'a>> {
        if self.next == ZnodeId::NONE {
            return None;
        }
        let id = self.next;
        let znode = &self.state.tree[id];
        self.next = self.after(id, znode);
        Some(image_of(znode))
    }
}

impl Znodes<'_> {
    /// Returns the first child; else the next sibling; else that of the nearest ancestor with one.
    fn after(&self, mut id: ZnodeId, znode: &Znode) -> ZnodeId {
        let first = znode.family.as_deref().map(|family| family.first);
        if let Some(first) = first.filter(|first| *first != ZnodeId::NONE) {
            return first;
        }
        while id != self.top {
            let znode = &self.state.tree[id];
            if znode.next != ZnodeId::NONE {
                return znode.next;
            }
            id = znode.parent;
        }
        ZnodeId::NONE
    }
}

pub(crate) fn image_of(znode: &Znode) -> ZnodeImage<'_> {
    ZnodeImage {
        path: znode.path(),
        data: znode.data(),
        acl: if znode.acl == AclId::WORLD_ALL {
            WORLD_ALL
        } else {
            i64::from(znode.acl.0)
        },
        czxid: znode.czxid,
        mzxid: znode.mzxid,
        ctime_ms: znode.ctime_ms,
        mtime_ms: znode.mtime_ms,
        version: znode.version,
        created_children: znode.created_children(),
        aversion: znode.aversion,
        owner: znode.owner.0,
        pzxid: znode.pzxid(),
    }
}
