//! A change as a transaction log contains it: the outcome, so that a replay needs no checks.
//!
//! [`Change`] is the record. If the server writes a log, the functions report each change to
//! [`Effects::changed`]; [`Restoration::replay`](crate::Restoration::replay) applies them again.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; ZooKeeper's
//! `PrepRequestProcessor.pRequest2Txn`.

use minikeeper_protocol::{AclList, SessionId, Zxid};

use crate::{
    effects::Effects,
    input::Now,
    state::{
        Caller, State,
        keys::{SessionKey, ZnodeId},
        znode::Znode,
    },
};

/// The session that made a change, its zxid and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeHead {
    /// The session that requested the change, or that was opened or closed.
    pub session: SessionId,
    /// The zxid of the change; the parts of a multi share one.
    pub zxid: Zxid,
    /// When it was made, in milliseconds since 1970.
    pub wall_ms: i64,
}

/// One change as logged. It was already accepted, so a replay checks only that it is possible.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Change<'a> {
    /// Only the zxid: a request was refused.
    Nothing,
    /// A session was opened.
    OpenSession {
        /// Its timeout, in milliseconds.
        timeout_ms: i32,
    },
    /// A session ended, and its ephemerals with it.
    CloseSession {
        /// Their paths; logs of versions before 3.6 have none.
        paths: &'a [&'a [u8]],
    },
    /// A znode was created.
    Create {
        /// Its path, the number of a sequential one included.
        path: &'a [u8],
        /// Its data, which may be null.
        data: Option<&'a [u8]>,
        /// Its access list; null is `world:anyone` with all permissions.
        acl: &'a AclList,
        /// Its lifetime.
        life: Life,
        /// The number of children that its parent has ever had, this one included; `None` for one
        /// more than before, as in logs of version 3.3.
        created_children: Option<i32>,
    },
    /// A znode was deleted.
    Delete {
        /// Its path.
        path: &'a [u8],
    },
    /// Data was set.
    SetData {
        /// The path.
        path: &'a [u8],
        /// The data, which may be null.
        data: Option<&'a [u8]>,
        /// The new version.
        version: i32,
    },
    /// An access list was set.
    SetAcl {
        /// The path.
        path: &'a [u8],
        /// The list; null is `world:anyone` with all permissions.
        acl: &'a AclList,
        /// The new aversion.
        aversion: i32,
    },
}

/// The lifetime of a znode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Until it is deleted.
    Persistent,
    /// Until this session ends.
    Session(SessionId),
    /// Until some time after its last child is deleted.
    Container,
    /// Until it has had no child and no new data for this time.
    Ttl {
        /// The time, in milliseconds.
        ms: i64,
    },
}

impl ChangeHead {
    /// Returns the head of a change that a client or the server's administrator requests.
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

/// Reports that a znode was created.
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

/// Reports that a request is about to delete a znode.
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

/// Reports that cleanup is about to delete a znode, without a session.
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

/// Reports that data was set.
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
        report_data_set(
            ChangeHead::by(state, caller, zxid),
            &state.tree[id],
            effects,
        );
    }
}

#[cold]
fn report_data_set(head: ChangeHead, znode: &Znode, effects: &mut impl Effects) {
    let change = Change::SetData {
        path: znode.path(),
        data: znode.data(),
        version: znode.version,
    };
    effects.changed(head, &change);
}

/// Reports that an access list was set.
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

/// Reports that a session was opened.
pub(crate) fn session_opened(head: ChangeHead, timeout_ms: u32, effects: &mut impl Effects) {
    if effects.keeps_changes() {
        let timeout_ms = timeout_ms.cast_signed();
        effects.changed(head, &Change::OpenSession { timeout_ms });
    }
}

/// Reports that a session is about to end, with its ephemerals.
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
