//! The whole state of a server, and every change it can undergo.
//!
//! [`State`] owns the tables below. A method that changes one of them keeps the others consistent
//! with it: [`State::delete`], for example, updates the tree, the owner's ephemerals, the places of
//! watches, quotas and the undo list. `ops` decides which changes are allowed and which connections
//! get an event.
//!
//! | file | table |
//! | --- | --- |
//! | [`tree`], [`znode`], [`java_listing`] | znodes by path; one znode; the order in which Java
//! lists children |
//! | [`watches`], [`absent_paths`] | watches by connection and path; watched paths without a znode
//! |
//! | [`sessions`], [`expiry_queue`] | sessions by id; sessions by deadline |
//! | [`acl`] | access lists, each stored once; what they grant |
//! | [`conns`], [`identities`] | connections by number; their identities, each set stored once |
//! | [`quota`] | quotas and the usage counted against them |
//! | [`undo`] | changes to take back when a multi fails or a caller returns to a mark |
//! | [`copying`] | a copy of the state, made in pieces |
//! | [`keys`] | the handles by which tables refer to each other |

pub(crate) mod absent_paths;
pub(crate) mod acl;
pub(crate) mod conns;
pub(crate) mod copying;
pub(crate) mod expiry_queue;
pub(crate) mod identities;
pub(crate) mod java_listing;
pub(crate) mod keys;
pub(crate) mod quota;
pub(crate) mod sessions;
pub(crate) mod tree;
pub(crate) mod undo;
pub(crate) mod watches;
pub(crate) mod znode;

use core::net::{IpAddr, Ipv4Addr};
use std::collections::{BTreeMap, BTreeSet};

use minikeeper_protocol::{AclList, ErrorCode, Perms, ReplyHeader, SessionId, WatcherType, Zxid};

use crate::{
    auth::sasl::Exchange,
    effects::Limit,
    input::{ConnId, Now, Settings},
    state::{
        acl::{AclTable, Refusal, Schemes},
        conns::{Conn, Conns},
        copying::StateCopy,
        identities::{IDS_BYTES_MAX, Identities, Identity, IdentityTable},
        keys::{AclId, IdentitiesId, SessionKey, WatchId, ZnodeId},
        quota::{Growth, Quotas},
        sessions::Sessions,
        tree::{QUOTA, Tree},
        undo::{Before, Undo, UndoList},
        watches::{Modes, Registration, Table, Watches},
        znode::{Owner, Znode},
    },
    work,
};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// The zxid of the last change.
    pub(crate) zxid: Zxid,
    pub(crate) tree: Tree,
    pub(crate) sessions: Sessions,
    pub(crate) watches: Watches,
    pub(crate) acls: AclTable,
    pub(crate) identities: IdentityTable,
    pub(crate) conns: Conns,
    pub(crate) quotas: Quotas,
    /// Containers and znodes with a time to live, which the server itself may have to delete.
    pub(crate) collectables: BTreeSet<ZnodeId>,
    /// When to look for collectables that are due, in milliseconds since the start; `None` while
    /// there are none.
    pub(crate) cleanup_ms: Option<u64>,
    /// Whether the next deadline has become earlier.
    pub(crate) deadline_moved: bool,
    /// Containers that the current multi has created with the flags of an ephemeral: ZooKeeper
    /// shows them as ephemerals to the multi's later operations.
    pub(crate) looks_ephemeral: Vec<ZnodeId>,
    /// The changes since the running multi began, and since marks were set.
    pub(crate) undo: UndoList,
    /// The limit that the current request has reached.
    pub(crate) limit_hit: Option<Limit>,
    /// SASL exchanges under way.
    pub(crate) exchanges: BTreeMap<ConnId, Exchange>,
    /// The number of nonces issued.
    pub(crate) nonces: u64,
    /// A buffer for final paths, kept to save an allocation per create.
    pub(crate) scratch: Vec<u8>,
    /// A copy that has begun; the tree has its znodes.
    pub(crate) copying: Option<Box<StateCopy>>,
}

/// The connection and session that a request comes from, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) conn: ConnId,
    pub(crate) session: SessionKey,
    pub(crate) identities: IdentitiesId,
    pub(crate) now: Now,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let sessions = Sessions::new(
            settings.rounding_ms(),
            settings.first_session_id,
            settings.hash_seed,
        );
        let schemes = Schemes::of(&settings);
        let mut tree = Tree::new(settings.hash_seed);
        tree.java_listing_order = settings.java_listing_order;
        Self {
            zxid: settings.zxid,
            tree,
            sessions,
            watches: Watches::new(settings.hash_seed),
            acls: AclTable::new(schemes, settings.hash_seed),
            identities: IdentityTable::new(settings.hash_seed),
            settings,
            conns: Conns::default(),
            quotas: Quotas::default(),
            collectables: BTreeSet::new(),
            cleanup_ms: None,
            deadline_moved: false,
            looks_ephemeral: Vec::new(),
            undo: UndoList::default(),
            limit_hit: None,
            exchanges: BTreeMap::new(),
            nonces: 0,
            scratch: Vec::new(),
            copying: None,
        }
    }

    /// Takes the zxid of the next change (`docs/zookeeper-protocol.md` section 1.6).
    pub(crate) const fn next_zxid(&mut self) -> Zxid {
        self.zxid = Zxid(self.zxid.0 + 1);
        self.zxid
    }

    // Connections.

    pub(crate) fn session_of(&self, conn: ConnId) -> Option<SessionKey> {
        self.conns.get(conn).map(|conn| conn.session)
    }

    /// Registers a connection from this address.
    pub(crate) fn open(&mut self, conn: ConnId, address: IpAddr) {
        self.detach(conn);
        let entry = Conn {
            session: SessionKey::NONE,
            identities: self.identities.acquire(Identities::of(address)),
        };
        self.conns.set(conn, entry);
    }

    pub(crate) fn attach(&mut self, conn: ConnId, session: SessionKey) {
        let mut entry = self.conns.take(conn);
        if entry.identities == IdentitiesId::NONE {
            let local = Identities::of(Ipv4Addr::LOCALHOST.into());
            entry.identities = self.identities.acquire(local);
        }
        entry.session = session;
        self.conns.set(conn, entry);
        self.sessions[session].conn = Some(conn);
    }

    /// Detaches a connection from its session and drops its watches and identities.
    pub(crate) fn detach(&mut self, conn: ConnId) {
        let session = self.session_of(conn).filter(|_| self.undo.is_on());
        let watcher = self.watches.end_conn(conn, session.is_some());
        if let (Some(session), Some(watcher)) = (session, watcher) {
            let session = self.sessions[session].id;
            self.undo.note(|| Undo::WatchesLeft { session, watcher });
        }
        self.clean_watches();
        self.deadline_moved |= self.watches.has_ended();
        let entry = self.conns.take(conn);
        if entry.session != SessionKey::NONE {
            self.sessions[entry.session].conn = None;
        }
        if entry.identities != IdentitiesId::NONE {
            self.identities.release(entry.identities);
            self.exchanges.remove(&conn);
        }
    }

    /// Opens a session for a handshake.
    pub(crate) fn open_session(&mut self, conn: ConnId, timeout_ms: u32, now: Now) -> SessionKey {
        let key = self.sessions.open(now, timeout_ms, conn);
        self.undo.note(|| Undo::SessionOpened(key));
        key
    }

    /// Removes a session, whose ephemerals and connection are already removed.
    pub(crate) fn close_session(&mut self, key: SessionKey) -> SessionId {
        let session = self.sessions.close(key);
        let id = session.id;
        self.undo.note(|| Undo::SessionEnded {
            key,
            session: Box::new(session),
        });
        id
    }

    // Identities and permissions.

    /// Adds identities as which the connection has authenticated, within the limits.
    ///
    /// # Errors
    /// When there are too many: none of them is added.
    pub(crate) fn prove(&mut self, conn: ConnId, proven: Vec<Identity>) -> Result<(), Limit> {
        let Some(entry) = self.conns.announced(conn) else {
            return Ok(());
        };
        let mut set = self.identities.get(entry.identities).clone();
        let before = set.ids_bytes();
        proven.iter().for_each(|identity| set.add(identity.clone()));
        let bytes = set.ids_bytes();
        if set.added().len() > self.settings.identities_max || bytes > IDS_BYTES_MAX {
            return Err(Limit::Identities);
        }
        // The whole set, since other connections may share the one before.
        if bytes > before && !self.fits(set.counted_bytes()) {
            return Err(Limit::TreeBytes);
        }
        for identity in proven {
            self.add_identity(conn, identity);
        }
        Ok(())
    }

    /// Adds an identity as which the connection has authenticated.
    pub(crate) fn add_identity(&mut self, conn: ConnId, identity: Identity) {
        let Some(entry) = self.conns.announced(conn) else {
            return;
        };
        let mut set = self.identities.get(entry.identities).clone();
        set.add(identity);
        let identities = self.identities.acquire(set);
        self.identities.release(entry.identities);
        self.conns.set(
            conn,
            Conn {
                identities,
                ..entry
            },
        );
    }

    /// Returns whether the caller has one of the given permissions on a znode.
    ///
    /// # Errors
    /// NOAUTH if not.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub(crate) fn allow(
        &self,
        caller: Caller,
        id: ZnodeId,
        wanted: Perms,
    ) -> Result<(), ErrorCode> {
        let acl = self.tree[id].acl;
        acl::allows(&self.acls, &self.identities, caller.identities, acl, wanted)
            .then_some(())
            .ok_or(ErrorCode::NoAuth)
    }

    /// Returns the access lists of a znode and of its parent; for the root, its own twice.
    pub(crate) fn acls_at(&self, id: ZnodeId) -> (AclId, AclId) {
        let Znode { acl, parent, .. } = self.tree[id];
        if parent == ZnodeId::NONE {
            return (acl, acl);
        }
        (acl, self.tree[parent].acl)
    }

    /// Returns an access list in the form to store: see [`acl::fix_up`].
    #[inline]
    pub(crate) fn fix_up(&mut self, caller: Caller, list: &AclList) -> Result<AclList, ErrorCode> {
        let who = self.identities.get(caller.identities);
        let entries_max = self.settings.acl_entries_max;
        acl::fix_up(list, &self.acls, who, entries_max).map_err(|refusal| match refusal {
            Refusal::Invalid(error) => error,
            Refusal::TooLong => {
                self.limit_hit = Some(Limit::AclEntries);
                ErrorCode::InvalidAcl
            }
        })
    }

    // Znodes that the server deletes: ephemerals, containers, znodes with a TTL.

    #[inline]
    pub(crate) fn remember_owner(&mut self, id: ZnodeId) {
        let znode = &self.tree[id];
        if znode.owner == Owner::PERSISTENT {
            return;
        }
        if znode.owner.is_ephemeral()
            && let Some(session) = self.sessions.find(SessionId(znode.owner.0))
        {
            let czxid = znode.czxid;
            let session = &mut self.sessions[session];
            session.ephemerals.insert((czxid, id));
            session.had_ephemerals = true;
        } else if znode.owner.is_collectable() {
            self.collectables.insert(id);
        }
    }

    #[inline]
    pub(crate) fn forget_owner(&mut self, id: ZnodeId, znode: &Znode) {
        if znode.owner == Owner::PERSISTENT {
            return;
        }
        if znode.owner.is_ephemeral()
            && let Some(session) = self.sessions.find(SessionId(znode.owner.0))
        {
            self.sessions[session].ephemerals.remove(&(znode.czxid, id));
        } else if znode.owner.is_collectable() {
            self.collectables.remove(&id);
        }
    }

    /// Schedules the check of collectables, from the next full interval on.
    pub(crate) fn schedule_cleanup(&mut self, now: Now) {
        let interval_ms = u64::from(self.settings.container_check_interval_ms);
        if self.collectables.is_empty() || interval_ms == 0 {
            self.cleanup_ms = None;
        } else if self.cleanup_ms.is_none() {
            self.cleanup_ms = Some((now.elapsed_ms / interval_ms + 1) * interval_ms);
            self.deadline_moved = true;
        }
    }

    /// Checks the size of a reply's body against its limit, before a read registers a watch or
    /// copies anything.
    ///
    /// # Errors
    /// MARSHALLINGERROR, with which ZooKeeper replies when it cannot serialize a reply.
    #[inline]
    pub(crate) fn check_reply_bytes(&mut self, body_bytes: usize) -> Result<(), ErrorCode> {
        if body_bytes.saturating_add(ReplyHeader::BYTES) > self.settings.reply_bytes_max {
            self.limit_hit = Some(Limit::ReplyBytes);
            return Err(ErrorCode::MarshallingError);
        }
        Ok(())
    }

    // Watches.

    /// Registers a watch, unless a limit is reached.
    pub(crate) fn register_watch(
        &mut self,
        conn: ConnId,
        path: &[u8],
        found: Option<ZnodeId>,
        what: Registration,
    ) -> Result<(), ErrorCode> {
        if self.watches.stored() >= self.settings.watches_max {
            self.clean_watches();
        }
        if self.watches.len() >= self.settings.watches_max {
            self.limit_hit = Some(Limit::Watches);
            return Err(ErrorCode::QuotaExceeded);
        }
        // The empty path reads the root, but a watch on it is keyed by the empty path and never
        // fires.
        let found = found.filter(|_| !path.is_empty());
        // A path without a znode is stored only for the watch, however long it is.
        if found.is_none() && !self.has_room(path.len()) {
            return Err(ErrorCode::QuotaExceeded);
        }
        if self.undo.is_on() {
            let before = self.watches.modes(&self.tree, conn, path);
            self.note_watch(conn, path, before);
        }
        self.watches.add(&mut self.tree, conn, path, found, what);
        Ok(())
    }

    /// Removes the one-shot modes of a watch that has fired in one of the tables.
    pub(crate) fn use_up_watch(&mut self, id: WatchId, table: Table) {
        if self.undo.is_on() {
            self.note_watch_of(id);
        }
        self.watches.use_up(&mut self.tree, id, table);
    }

    /// Removes the connection's watches of this kind on exactly this path. Returns whether there
    /// were any.
    pub(crate) fn remove_watch(&mut self, conn: ConnId, path: &[u8], kind: WatcherType) -> bool {
        if self.undo.is_on() {
            let before = self.watches.modes(&self.tree, conn, path);
            self.note_watch(conn, path, before);
        }
        self.watches.remove(&mut self.tree, conn, path, kind)
    }

    /// Removes some watches of ended connections.
    pub(crate) fn clean_watches(&mut self) {
        let undo = &mut self.undo;
        self.watches.clean(&mut self.tree, |watcher, path, modes| {
            undo.keep_watch(watcher, path, modes);
        });
    }

    #[inline(never)]
    fn note_watch_of(&mut self, id: WatchId) {
        let watch = self.watches.at(id);
        let before = (watch.data, watch.child);
        let Some(conn) = self.watches.conn_of(watch) else {
            return;
        };
        let path = self.watches.path(&self.tree, watch.place).to_vec();
        self.note_watch(conn, &path, before);
    }

    /// Records in which modes a connection has watched a path so far.
    fn note_watch(&mut self, conn: ConnId, path: &[u8], (data, child): (Modes, Modes)) {
        let Some(session) = self.session_of(conn) else {
            return;
        };
        work::visit();
        let session = self.sessions[session].id;
        self.undo.note(|| Undo::Watched {
            session,
            path: path.into(),
            data,
            child,
        });
    }

    // Changes.

    /// Returns whether the tree may grow by this many bytes; if not, records the limit.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.fits(bytes);
        if !has_room {
            self.limit_hit = Some(Limit::TreeBytes);
        }
        has_room
    }

    /// Returns whether an access list is already stored, or there is room for it.
    pub(crate) fn has_room_for_list(&mut self, list: &AclList) -> bool {
        let bytes = self.acls.cost(list);
        bytes == 0 || self.has_room(bytes)
    }

    /// Returns whether this many bytes more are within the limit. At the limit, first removes watches of
    /// ended connections, whose paths count.
    fn fits(&mut self, bytes: usize) -> bool {
        let bytes_max = self.settings.tree_bytes_max;
        if self.counted_bytes() + bytes > bytes_max {
            self.clean_watches();
        }
        self.counted_bytes() + bytes <= bytes_max
    }

    /// Returns the size of everything that counts against `tree_bytes_max`.
    pub(crate) const fn counted_bytes(&self) -> usize {
        self.tree.bytes()
            + self.watches.absent_bytes()
            + self.acls.bytes()
            + self.identities.bytes()
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
        if self.quotas.are_kept() {
            self.quotas.keep(&self.tree, path);
        }
        let before = self.before(parent);
        let znode = Znode::new(path, data, owner, acl, zxid, now.wall_ms);
        let id = self.tree.insert(znode, parent);
        let family = self.tree[parent].family_mut();
        // At its maximum the counter stays, and so does the parent's pzxid: ZooKeeper updates both
        // only if the counter grows (`docs/zookeeper-protocol.md` section 11).
        if family.created_children < i32::MAX {
            family.created_children += 1;
            family.pzxid = zxid;
        }
        self.remember_owner(id);
        self.watches.adopt(&mut self.tree, id);
        self.undo.note(|| Undo::Created { id, parent: before });
        if owner.is_collectable() {
            self.schedule_cleanup(now);
        }
        let bytes = quota::bytes_of(data);
        self.count(path, Growth { znodes: 1, bytes });
        id
    }

    /// Deletes a childless znode.
    ///
    /// The caller takes over the znode's use of its access list: it must first send events, then
    /// call [`State::forget_acl`]. If changes are recorded, the undo list keeps the use instead.
    pub(crate) fn delete(&mut self, id: ZnodeId, zxid: Zxid) -> AclId {
        let parent = self.tree[id].parent;
        if self.quotas.are_kept() {
            self.quotas.keep(&self.tree, self.tree[id].path());
        }
        let before = self.before(parent);
        self.watches.orphan(&mut self.tree, id);
        let znode = self.tree.remove(id);
        self.forget_owner(id, &znode);
        let family = self.tree[parent].family_mut();
        family.pzxid = zxid;
        let acl = znode.acl;
        let growth = Growth {
            znodes: -1,
            bytes: -quota::bytes_of(znode.data()),
        };
        self.count(znode.path(), growth);
        self.undo.note(|| Undo::Deleted {
            id,
            znode: Box::new(znode),
            parent: before,
        });
        acl
    }

    /// Ends the use of an access list by a deleted znode, unless the undo list keeps it.
    pub(crate) fn forget_acl(&mut self, acl: AclId) {
        if !self.undo.is_on() {
            self.acls.release(acl);
        }
    }

    /// Sets the data of a znode.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub(crate) fn set_data(&mut self, id: ZnodeId, data: Option<&[u8]>, zxid: Zxid, now: Now) {
        let znode = &self.tree[id];
        self.undo.note(|| Undo::DataSet {
            id,
            data: znode.data().map(Into::into),
            version: znode.version,
            mzxid: znode.mzxid,
            mtime_ms: znode.mtime_ms,
        });
        if !self.quotas.is_empty() {
            let path = self.tree[id].path().to_vec();
            self.quotas.keep(&self.tree, &path);
            let bytes = quota::bytes_of(data) - quota::bytes_of(self.tree[id].data());
            let growth = Growth { znodes: 0, bytes };
            self.quotas
                .grow(&mut self.tree, &mut self.undo, &path, growth);
        }
        let znode = self.tree.set_data(id, data);
        znode.version = znode.version.wrapping_add(1);
        znode.mzxid = zxid;
        znode.mtime_ms = now.wall_ms;
    }

    /// Sets the access list of a znode, which takes over the caller's use of it.
    pub(crate) fn set_acl(&mut self, id: ZnodeId, acl: AclId) {
        let znode = &mut self.tree[id];
        let aversion = znode.aversion;
        znode.aversion = aversion.wrapping_add(1);
        let before = std::mem::replace(&mut znode.acl, acl);
        if self.undo.is_on() {
            let acl = before;
            self.undo.note(|| Undo::AclSet { id, acl, aversion });
        } else {
            self.acls.release(before);
        }
    }

    // Quotas.

    /// Checks a change against the hard limits of quotas.
    #[inline]
    pub(crate) fn check_quota(&self, path: &[u8], growth: Growth) -> Result<(), ErrorCode> {
        if !self.settings.enforce_quota {
            return Ok(());
        }
        self.quotas.check(&self.tree, path, growth)
    }

    /// Counts a created or deleted znode.
    #[inline]
    fn count(&mut self, path: &[u8], growth: Growth) {
        if !self.quotas.is_empty() || path.starts_with(QUOTA) {
            self.quotas
                .count(&mut self.tree, &mut self.undo, path, growth);
        }
    }

    fn before(&self, parent: ZnodeId) -> Before {
        let parent = &self.tree[parent];
        Before {
            pzxid: parent.pzxid(),
            created_children: parent.created_children(),
            table_bits: parent.family.as_ref().map(|family| family.table_bits),
        }
    }
}

impl State {
    /// Drops all connections, and restarts every session with the timeout it was opened with.
    pub(crate) fn restart_sessions(&mut self, now: Now) {
        self.forget_marks();
        let conns: Vec<_> = self.conns.iter().map(|(conn, _)| conn).collect();
        for conn in conns {
            self.detach(conn);
        }
        self.exchanges.clear();
        let sessions: Vec<_> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in sessions {
            let timeout_ms = self.sessions[key].opened_timeout_ms;
            self.sessions.resume(key, now, timeout_ms);
            let session = &mut self.sessions[key];
            session.had_ephemerals = !session.ephemerals.is_empty();
        }
        self.cleanup_ms = None;
        self.schedule_cleanup(now);
        self.deadline_moved = true;
    }

    /// Ends every session, oldest first, all under one zxid.
    pub(crate) fn end_all_sessions(&mut self) {
        self.forget_marks();
        let zxid = self.next_zxid();
        let mut sessions: Vec<(SessionId, SessionKey)> = self
            .sessions
            .iter()
            .map(|(key, session)| (session.id, key))
            .collect();
        sessions.sort_unstable_by_key(|(id, _)| *id);
        for (_, key) in sessions {
            if let Some(conn) = self.sessions[key].conn {
                self.detach(conn);
            }
            for (_, id) in std::mem::take(&mut self.sessions[key].ephemerals) {
                let acl = self.delete(id, zxid);
                self.forget_acl(acl);
            }
            self.sessions.close(key);
        }
    }
}
