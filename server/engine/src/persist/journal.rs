//! Tells each change as a transaction log has it, to whoever keeps one: decided, so that it can be
//! [made once more](crate::Restoration::replay) without a check.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; the original's
//! `PrepRequestProcessor.pRequest2Txn`.

use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    effects::Effects,
    input::Now,
    persist::change::{Change, ChangeHead},
    state::{
        Caller, State,
        keys::{SessionKey, ZnodeId},
        znode::Znode,
    },
};

impl ChangeHead {
    /// Of a change that a client asks for, or the server's own administrator.
    fn by(state: &State, caller: Caller, zxid: Zxid) -> Self {
        let session = if caller.session == SessionKey::NONE {
            SessionId::NONE
        } else {
            state.sessions[caller.session].id
        };
        Self {
            session,
            zxid,
            wall_ms: caller.now.wall_ms,
        }
    }
}

/// A znode was created.
#[inline]
pub(crate) fn created(
    state: &State,
    caller: Caller,
    zxid: Zxid,
    id: ZnodeId,
    effects: &mut impl Effects,
) {
    if !effects.keeps_changes() {
        return;
    }
    let znode = &state.tree[id];
    let change = Change::Create {
        path: znode.path(),
        data: znode.data(),
        acl: state.acls.get(znode.acl),
        life: znode.owner.life(),
        created_children: Some(state.tree[znode.parent].created_children()),
    };
    effects.changed(ChangeHead::by(state, caller, zxid), &change);
}

/// A znode is about to be deleted on somebody's wish.
#[inline]
pub(crate) fn deleting(
    state: &State,
    caller: Caller,
    zxid: Zxid,
    id: ZnodeId,
    effects: &mut impl Effects,
) {
    if effects.keeps_changes() {
        let path = state.tree[id].path();
        effects.changed(
            ChangeHead::by(state, caller, zxid),
            &Change::Delete { path },
        );
    }
}

/// A znode is about to be deleted in nobody's name.
pub(crate) fn collecting(
    state: &State,
    zxid: Zxid,
    id: ZnodeId,
    now: Now,
    effects: &mut impl Effects,
) {
    if effects.keeps_changes() {
        let head = ChangeHead {
            session: SessionId::NONE,
            zxid,
            wall_ms: now.wall_ms,
        };
        let path = state.tree[id].path();
        effects.changed(head, &Change::Delete { path });
    }
}

/// Data was set.
#[inline(always)]
#[expect(clippy::inline_always, reason = "one branch of a setData")]
pub(crate) fn data_set(
    state: &State,
    caller: Caller,
    zxid: Zxid,
    id: ZnodeId,
    effects: &mut impl Effects,
) {
    if effects.keeps_changes() {
        tell_data_set(
            ChangeHead::by(state, caller, zxid),
            &state.tree[id],
            effects,
        );
    }
}

#[cold]
fn tell_data_set(head: ChangeHead, znode: &Znode, effects: &mut impl Effects) {
    let change = Change::SetData {
        path: znode.path(),
        data: znode.data(),
        version: znode.version,
    };
    effects.changed(head, &change);
}

/// An access list was set.
pub(crate) fn acl_set(
    state: &State,
    caller: Caller,
    zxid: Zxid,
    id: ZnodeId,
    effects: &mut impl Effects,
) {
    if !effects.keeps_changes() {
        return;
    }
    let znode = &state.tree[id];
    let change = Change::SetAcl {
        path: znode.path(),
        acl: state.acls.get(znode.acl),
        aversion: znode.aversion,
    };
    effects.changed(ChangeHead::by(state, caller, zxid), &change);
}

/// A session was opened.
pub(crate) fn session_opened(head: ChangeHead, timeout_ms: u32, effects: &mut impl Effects) {
    if effects.keeps_changes() {
        let timeout_ms = timeout_ms.cast_signed();
        effects.changed(head, &Change::OpenSession { timeout_ms });
    }
}

/// A session is about to end, and its ephemerals are about to go with it.
pub(crate) fn session_ending(
    state: &State,
    head: ChangeHead,
    session: SessionKey,
    effects: &mut impl Effects,
) {
    if effects.keeps_changes() {
        let ephemerals = state.sessions[session].ephemerals.iter();
        let paths: Vec<_> = ephemerals.map(|(_, id)| state.tree[*id].path()).collect();
        effects.changed(head, &Change::CloseSession { paths: &paths });
    }
}
