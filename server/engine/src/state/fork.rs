//! A second state that begins as a copy of the first and shares nothing with it.

use std::collections::BTreeMap;

use minikeeper_protocol::SessionId;

use crate::{
    auth::identities::IdentityTable,
    state::{
        State,
        conns::Conns,
        keys::WatchId,
        undo::UndoList,
        watches::{Place, Watches},
    },
};

impl State {
    /// Znodes, quotas and sessions; nobody is connected, so nobody watches.
    pub(crate) fn fork(&self, next_session_id: SessionId) -> Self {
        let mut tree = self.tree.clone();
        for (_, watch, _) in self.watches.iter(&self.tree) {
            if let Place::Znode(id) = watch.place {
                tree[id].watched = WatchId::NONE;
            }
        }
        let mut acls = self.acls.clone();
        for acl in self.undo.acls() {
            acls.release(acl);
        }
        let mut sessions = self.sessions.clone();
        sessions.part_all();
        sessions.next_id = next_session_id;
        Self {
            settings: self.settings.clone(),
            zxid: self.zxid,
            tree,
            sessions,
            watches: Watches::new(self.settings.hash_seed),
            acls,
            identities: IdentityTable::new(self.settings.hash_seed),
            conns: Conns::default(),
            quotas: self.quotas.clone(),
            collectables: self.collectables.clone(),
            cleanup_ms: self.cleanup_ms,
            deadline_moved: true,
            looks_ephemeral: Vec::new(),
            undo: UndoList::default(),
            limit_hit: None,
            exchanges: BTreeMap::new(),
            nonces: self.nonces,
            scratch: Vec::new(),
        }
    }
}
