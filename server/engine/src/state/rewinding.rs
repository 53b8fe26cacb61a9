//! Taking changes back: those of a multi that failed, and those since a mark.
//!
//! A mark costs nothing but the noting down of what changes after it, so going back to one costs
//! what has changed since, however large the tree is.
//!
//! What comes back: znodes, with their stats, counters and access lists; sessions that have ended
//! since, each waiting for its client with a whole timeout before it; the watches of sessions that
//! are connected. What goes: sessions opened since. What stays: time, the zxid (clients that have
//! seen a newer one would be turned away), session ids used up, connections and who they are.

use crate::{
    effects::{CloseReason, Effects},
    input::{ConnId, Now},
    state::{
        State,
        java_listing::EMPTY_TABLE_BITS,
        keys::{SessionKey, ZnodeId},
        undo::{Before, Mark, Undo},
    },
};

impl State {
    // A multi.

    /// From here on changes are noted down.
    pub(crate) fn begin(&mut self) {
        self.undo.begin_multi();
        if self.settings.enforce_quota {
            self.quotas.begin_multi();
        }
    }

    fn end(&mut self) -> usize {
        self.quotas.end_multi();
        self.looks_ephemeral.clear();
        self.undo.end_multi()
    }

    /// Takes back everything since the beginning.
    pub(crate) fn roll_back(&mut self) {
        let from = self.end();
        self.take_back(from, Now::default());
    }

    /// Keeps everything: the multi has succeeded.
    pub(crate) fn commit(&mut self) {
        self.end();
        if self.undo.has_marks() {
            self.bound_undo();
        } else {
            self.shed();
        }
    }

    // Marks.

    pub(crate) fn mark(&mut self) -> Mark {
        self.undo.mark()
    }

    /// Goes back to a mark; false if it is not there any more.
    pub(crate) fn rewind(&mut self, mark: Mark, now: Now, effects: &mut impl Effects) -> bool {
        let Some(length) = self.undo.back_to(mark) else {
            return false;
        };
        for conn in self.take_back(length, now) {
            effects.close(conn, CloseReason::Rewound);
        }
        // Another state than the one that had the last number, and saved under a name of its own.
        self.next_zxid();
        self.schedule_cleanup(now);
        self.deadline_moved = true;
        true
    }

    /// Forgets a mark; false if it was not there.
    pub(crate) fn forget_mark(&mut self, mark: Mark) -> bool {
        let was_there = self.undo.forget(mark);
        self.shed();
        was_there
    }

    pub(crate) fn forget_marks(&mut self) {
        self.undo.forget_all();
        self.shed();
    }

    /// Forgets every mark when too much has changed since: memory is bounded, the past is not.
    pub(crate) fn bound_undo(&mut self) {
        if self.undo.bytes() > self.settings.undo_bytes_max && !self.undo.is_in_multi() {
            self.forget_marks();
        }
    }

    fn shed(&mut self) {
        for undo in self.undo.shed() {
            if let Some(acl) = undo.kept_acl() {
                self.acls.release(acl);
            }
        }
    }

    /// Takes the newest changes back, newest first; gives the connections that have lost their
    /// session by it.
    fn take_back(&mut self, length: usize, now: Now) -> Vec<ConnId> {
        self.undo.pause(true);
        let mut parted = Vec::new();
        while let Some(undo) = self.undo.pop_beyond(length) {
            match undo {
                Undo::Created { id, parent } => self.uncreate(id, parent),
                Undo::Deleted { id, znode, parent } => {
                    let parent_id = znode.parent;
                    // The znode keeps its share of the access list while it waits here.
                    let restored = self.tree.restore(*znode);
                    assert_eq!(
                        restored, id,
                        "undone in reverse, a znode gets its place back"
                    );
                    self.remember_owner(id);
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
                    let znode = self.tree.set_data(id, data.as_deref());
                    (znode.version, znode.mzxid, znode.mtime_ms) = (version, mzxid, mtime_ms);
                }
                #[cfg(feature = "planted")]
                Undo::AclSet { acl, .. }
                    if self.planted(crate::planted::Planted::AclNotRewound) =>
                {
                    self.acls.release(acl);
                }
                Undo::AclSet { id, acl, aversion } => {
                    let znode = &mut self.tree[id];
                    znode.aversion = aversion;
                    let before = std::mem::replace(&mut znode.acl, acl);
                    self.acls.release(before);
                }
                Undo::StatsWritten { id, data } => {
                    self.tree.set_data(id, data.as_deref());
                }
                Undo::QuotaSwitched(subject) => {
                    if !self.quotas.switch_off(&subject) {
                        self.quotas.switch_on(&subject);
                    }
                }
                Undo::SessionOpened(key) => parted.extend(self.unopen(key)),
                Undo::SessionEnded { key, session } => {
                    let restored = self.sessions.restore(*session, now);
                    assert_eq!(
                        restored, key,
                        "undone in reverse, a session gets its place back"
                    );
                }
                Undo::Watched {
                    session,
                    path,
                    data,
                    child,
                } => {
                    // Who is not connected registers its watches when it comes back.
                    let session = self.sessions.find(session);
                    if let Some(conn) = session.and_then(|key| self.sessions[key].conn) {
                        self.watches.set(&mut self.tree, conn, &path, data, child);
                    }
                }
            }
        }
        self.undo.pause(!self.undo.has_marks());
        parted
    }

    fn uncreate(&mut self, id: ZnodeId, parent: Before) {
        self.watches.orphan(&mut self.tree, id);
        let znode = self.tree.remove(id);
        self.forget_owner(id, &znode);
        self.acls.release(znode.acl);
        self.restore_counters(znode.parent, parent);
    }

    fn unopen(&mut self, key: SessionKey) -> Option<ConnId> {
        let conn = self.sessions[key].conn;
        if let Some(conn) = conn {
            self.detach(conn);
        }
        self.sessions.close(key);
        conn
    }

    fn restore_counters(&mut self, parent: ZnodeId, before: Before) {
        let family = self.tree[parent].family_mut();
        family.pzxid = before.pzxid;
        family.created_children = before.created_children;
        family.table_bits = before.table_bits.unwrap_or(EMPTY_TABLE_BITS);
    }
}
