//! The undo list of a multi: every change made so far, to be taken back in reverse.
//!
//! Changes are made in place, so later operations of the multi see them without a second tree;
//! the list is what makes that safe. Outside a multi nothing is noted down.

use minikeeper_protocol::Zxid;

use crate::{
    state::State,
    znode::{Znode, ZnodeId},
};

/// One change, with what is needed to take it back.
#[derive(Debug)]
pub(crate) enum Undo {
    /// A znode was created.
    Created { id: ZnodeId, parent: Before },
    /// A znode was deleted.
    Deleted {
        id: ZnodeId,
        znode: Box<Znode>,
        parent: Before,
    },
    /// Data was set.
    DataSet {
        id: ZnodeId,
        data: Option<Box<[u8]>>,
        version: i32,
        mzxid: Zxid,
        mtime_ms: i64,
    },
}

/// The counters of a parent before its children changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) pzxid: Zxid,
    pub(crate) created_children: i32,
}

/// Takes everything back that is in the list, newest first, and ends the noting down.
pub(crate) fn roll_back(state: &mut State) {
    let list = state.undo.take().unwrap_or_default();
    for undo in list.into_iter().rev() {
        match undo {
            Undo::Created { id, parent } => {
                state.watches.orphan(&mut state.tree, id);
                let znode = state.tree.remove(id);
                state.forget_ephemeral(id, &znode);
                state.acls.release(znode.acl);
                restore_counters(state, znode.parent, parent);
            }
            Undo::Deleted { id, znode, parent } => {
                let parent_id = znode.parent;
                // The znode keeps its share of the access list while it waits here.
                let restored = state.tree.restore(*znode);
                assert_eq!(
                    restored, id,
                    "undone in reverse, a znode gets its place back"
                );
                state.remember_ephemeral(id);
                state.watches.adopt(&mut state.tree, id);
                restore_counters(state, parent_id, parent);
            }
            Undo::DataSet {
                id,
                data,
                version,
                mzxid,
                mtime_ms,
            } => {
                state.tree.set_data(id, data.as_deref());
                let znode = &mut state.tree[id];
                (znode.version, znode.mzxid, znode.mtime_ms) = (version, mzxid, mtime_ms);
            }
        }
    }
}

/// Keeps everything: the multi has succeeded.
pub(crate) fn commit(state: &mut State) {
    for undo in state.undo.take().unwrap_or_default() {
        if let Undo::Deleted { znode, .. } = undo {
            state.acls.release(znode.acl);
        }
    }
}

fn restore_counters(state: &mut State, parent: ZnodeId, before: Before) {
    let family = state.tree[parent].family_mut();
    family.pzxid = before.pzxid;
    family.created_children = before.created_children;
}
