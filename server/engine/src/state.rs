//! The whole state, and the changes it can see. Each change is made whole here: tree, owner,
//! watches' places and undo list; what is allowed and who is told is decided in `ops`.

use minikeeper_protocol::{ErrorCode, SessionId, Zxid};

use crate::{
    acl::AclTable,
    effects::Limit,
    input::{ConnId, Now, Settings},
    keys::{AclId, SessionKey, ZnodeId},
    sessions::Sessions,
    tree::Tree,
    undo::{Before, Undo},
    watch_modes::Registration,
    watches::Watches,
    znode::{Owner, Znode},
};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// The newest change.
    pub(crate) zxid: Zxid,
    pub(crate) tree: Tree,
    pub(crate) sessions: Sessions,
    pub(crate) watches: Watches,
    pub(crate) acls: AclTable,
    /// The session of each connection that has one, by connection number.
    conns: Vec<Option<SessionKey>>,
    /// Filled only inside a multi.
    pub(crate) undo: Option<Vec<Undo>>,
    /// The limit the current request ran into.
    pub(crate) limit_hit: Option<Limit>,
    /// Where final paths are put together; kept to spare an allocation a create.
    pub(crate) scratch: Vec<u8>,
}

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) conn: ConnId,
    pub(crate) session: SessionKey,
    pub(crate) now: Now,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let sessions = Sessions::new(settings.tick_ms, settings.first_session_id);
        #[allow(unused_mut, reason = "planted builds change it")]
        let mut watches = Watches::new();
        #[cfg(feature = "planted")]
        {
            watches.planted_fires_twice =
                settings.planted == Some(crate::planted::Planted::WatchFiredTwice);
        }
        Self {
            zxid: settings.zxid,
            settings,
            tree: Tree::new(),
            sessions,
            watches,
            acls: AclTable::new(),
            conns: Vec::new(),
            undo: None,
            limit_hit: None,
            scratch: Vec::new(),
        }
    }

    #[cfg(feature = "planted")]
    pub(crate) fn planted(&self, bug: crate::planted::Planted) -> bool {
        self.settings.planted == Some(bug)
    }

    /// The number of the next change.
    pub(crate) const fn next_zxid(&mut self) -> Zxid {
        self.zxid = Zxid(self.zxid.0 + 1);
        self.zxid
    }

    // Connections.

    pub(crate) fn session_of(&self, conn: ConnId) -> Option<SessionKey> {
        self.conns.get(conn.0 as usize).copied().flatten()
    }

    pub(crate) fn attach(&mut self, conn: ConnId, session: SessionKey) {
        let index = conn.0 as usize;
        if index >= self.conns.len() {
            self.conns.resize(index + 1, None);
        }
        self.conns[index] = Some(session);
        self.sessions[session].conn = Some(conn);
    }

    /// Parts a connection from its session and forgets its watches.
    pub(crate) fn detach(&mut self, conn: ConnId) {
        self.watches.drop_conn(&mut self.tree, conn);
        if let Some(slot) = self.conns.get_mut(conn.0 as usize)
            && let Some(session) = slot.take()
        {
            self.sessions[session].conn = None;
        }
    }

    /// The sessions that have a connection, for the check of the whole state.
    pub(crate) fn conns(&self) -> impl Iterator<Item = (ConnId, SessionKey)> + '_ {
        self.conns
            .iter()
            .enumerate()
            .filter_map(|(index, session)| {
                session.map(|session| {
                    (
                        ConnId(u32::try_from(index).expect("made from u32")),
                        session,
                    )
                })
            })
    }

    // Ephemerals.

    pub(crate) fn remember_ephemeral(&mut self, id: ZnodeId) {
        let znode = &self.tree[id];
        if znode.owner.is_ephemeral()
            && let Some(session) = self.sessions.find(SessionId(znode.owner.0))
        {
            let czxid = znode.czxid;
            self.sessions[session].ephemerals.insert((czxid, id));
        }
    }

    pub(crate) fn forget_ephemeral(&mut self, id: ZnodeId, znode: &Znode) {
        if znode.owner.is_ephemeral()
            && let Some(session) = self.sessions.find(SessionId(znode.owner.0))
        {
            self.sessions[session].ephemerals.remove(&(znode.czxid, id));
        }
    }

    // Watches.

    /// Registers a watch, unless there are too many.
    pub(crate) fn leave_watch(
        &mut self,
        conn: ConnId,
        path: &[u8],
        found: Option<ZnodeId>,
        what: Registration,
    ) -> Result<(), ErrorCode> {
        if self.watches.len() >= self.settings.watches_max {
            self.limit_hit = Some(Limit::Watches);
            return Err(ErrorCode::QuotaExceeded);
        }
        // The empty path reads the root, but a watch on it is keyed by it and never fires.
        let found = found.filter(|_| !path.is_empty());
        // A path nobody has created is kept for the watch alone, however long it is.
        if found.is_none() && !self.has_room(path.len()) {
            return Err(ErrorCode::QuotaExceeded);
        }
        self.watches.add(&mut self.tree, conn, path, found, what);
        Ok(())
    }

    // Changes.

    /// Whether the tree may grow by so many bytes; if not, notes down the limit.
    pub(crate) const fn has_room(&mut self, bytes: usize) -> bool {
        let used = self.tree.bytes() + self.watches.absent_bytes();
        let has_room = used + bytes <= self.settings.tree_bytes_max;
        if !has_room {
            self.limit_hit = Some(Limit::TreeBytes);
        }
        has_room
    }

    /// Creates a znode below its parent.
    #[expect(clippy::too_many_arguments, reason = "they are the znode")]
    pub(crate) fn create(
        &mut self,
        parent: ZnodeId,
        path: &[u8],
        data: Option<&[u8]>,
        owner: Owner,
        acl: AclId,
        zxid: Zxid,
        now: Now,
    ) -> ZnodeId {
        let before = self.before(parent);
        let znode = Znode::new(path, data, owner, acl, zxid, now.wall_ms);
        let id = self.tree.insert(znode, parent);
        let family = self.tree[parent].family_mut();
        // The counter sticks at its maximum, and then the parent's pzxid does too: the original
        // takes over both only together with a larger counter (reference section 11).
        if family.created_children < i32::MAX {
            family.created_children += 1;
            family.pzxid = zxid;
        }
        self.remember_ephemeral(id);
        self.watches.adopt(&mut self.tree, id);
        if let Some(undo) = &mut self.undo {
            undo.push(Undo::Created { id, parent: before });
        }
        id
    }

    /// Deletes a childless znode.
    pub(crate) fn delete(&mut self, id: ZnodeId, zxid: Zxid) {
        let parent = self.tree[id].parent;
        let before = self.before(parent);
        self.watches.orphan(&mut self.tree, id);
        let znode = self.tree.remove(id);
        self.forget_ephemeral(id, &znode);
        let family = self.tree[parent].family_mut();
        family.pzxid = zxid;
        #[cfg(feature = "planted")]
        if self.planted(crate::planted::Planted::SequenceReused) {
            self.tree[parent].family_mut().created_children -= 1;
        }
        match &mut self.undo {
            Some(undo) => {
                undo.push(Undo::Deleted {
                    id,
                    znode: Box::new(znode),
                    parent: before,
                });
            }
            None => self.acls.release(znode.acl),
        }
    }

    /// Sets the data of a znode.
    pub(crate) fn set_data(&mut self, id: ZnodeId, data: Option<&[u8]>, zxid: Zxid, now: Now) {
        let znode = &self.tree[id];
        if let Some(undo) = &mut self.undo {
            undo.push(Undo::DataSet {
                id,
                data: znode.data().map(Into::into),
                version: znode.version,
                mzxid: znode.mzxid,
                mtime_ms: znode.mtime_ms,
            });
        }
        self.tree.set_data(id, data);
        let znode = &mut self.tree[id];
        znode.version = znode.version.wrapping_add(1);
        znode.mzxid = zxid;
        znode.mtime_ms = now.wall_ms;
    }

    fn before(&self, parent: ZnodeId) -> Before {
        let parent = &self.tree[parent];
        Before {
            pzxid: parent.pzxid(),
            created_children: parent.created_children(),
        }
    }

    // The undo list of a multi.

    /// From here on changes are noted down.
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Takes everything back that is in the list, newest first, and ends the noting down.
    pub(crate) fn roll_back(&mut self) {
        let list = self.undo.take().unwrap_or_default();
        for undo in list.into_iter().rev() {
            match undo {
                Undo::Created { id, parent } => {
                    self.watches.orphan(&mut self.tree, id);
                    let znode = self.tree.remove(id);
                    self.forget_ephemeral(id, &znode);
                    self.acls.release(znode.acl);
                    self.restore_counters(znode.parent, parent);
                }
                Undo::Deleted { id, znode, parent } => {
                    let parent_id = znode.parent;
                    // The znode keeps its share of the access list while it waits here.
                    let restored = self.tree.restore(*znode);
                    assert_eq!(
                        restored, id,
                        "undone in reverse, a znode gets its place back"
                    );
                    self.remember_ephemeral(id);
                    self.watches.adopt(&mut self.tree, id);
                    self.restore_counters(parent_id, parent);
                }
                Undo::DataSet {
                    id,
                    data,
                    version,
                    mzxid,
                    mtime_ms,
                } => {
                    self.tree.set_data(id, data.as_deref());
                    let znode = &mut self.tree[id];
                    (znode.version, znode.mzxid, znode.mtime_ms) = (version, mzxid, mtime_ms);
                }
            }
        }
    }

    /// Keeps everything: the multi has succeeded.
    pub(crate) fn commit(&mut self) {
        for undo in self.undo.take().unwrap_or_default() {
            if let Undo::Deleted { znode, .. } = undo {
                self.acls.release(znode.acl);
            }
        }
    }

    fn restore_counters(&mut self, parent: ZnodeId, before: Before) {
        let family = self.tree[parent].family_mut();
        family.pzxid = before.pzxid;
        family.created_children = before.created_children;
    }
}
