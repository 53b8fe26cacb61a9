//! delete.
//!
//! Source: `docs/zookeeper-protocol.md` sections 8.2 and 10.4.

use minikeeper_protocol::{ErrorCode, Perms, Ustring, Zxid, path};

use crate::{
    effects::Effects,
    ops::{events, pending_reply::PendingReply},
    persist::change,
    state::{Caller, State, keys::ZnodeId, tree::SPECIAL},
};

pub(crate) fn delete(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    version: i32,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let zxid = state.next_zxid();
    let outcome = find(state, caller, path, version).map(|id| {
        change::deleting(state, caller, zxid, id, reply.effects);
        delete_and_notify(state, id, zxid, reply.effects);
    });
    reply.done(zxid, outcome);
}

/// Deletes a childless znode and sends events to its watchers.
pub(crate) fn delete_and_notify(
    state: &mut State,
    id: ZnodeId,
    zxid: Zxid,
    effects: &mut impl Effects,
) {
    if state.watches.is_empty() {
        let acl = state.delete(id, zxid);
        return state.forget_acl(acl);
    }
    let mut path = std::mem::take(&mut state.scratch);
    path.clear();
    path.extend_from_slice(state.tree[id].path());
    let (_, parent_acl) = state.acls_at(id);
    let acl = state.delete(id, zxid);
    events::deleted(state, &path, acl, parent_acl, zxid, effects);
    state.forget_acl(acl);
    state.scratch = path;
}

/// Returns the znode to delete, after all checks in ZooKeeper's order.
///
/// # Errors
/// The first check that fails.
pub(crate) fn find(
    state: &State,
    caller: Caller,
    path: Option<&Ustring>,
    version: i32,
) -> Result<ZnodeId, ErrorCode> {
    let path = path.ok_or(ErrorCode::MarshallingError)?.as_bytes();
    if SPECIAL.contains(&path) {
        return Err(ErrorCode::BadArguments);
    }
    // Every path in the tree is valid, so a found path needs no validation.
    let Some(id) = state.tree.find(path) else {
        return Err(why_missing(state, caller, path));
    };
    let znode = &state.tree[id];
    state.allow(caller, znode.parent, Perms::DELETE)?;
    let has_version = version == -1 || version == znode.version;
    let has_children = znode.num_children() > 0;
    if !has_version {
        return Err(ErrorCode::BadVersion);
    }
    if has_children {
        return Err(ErrorCode::NotEmpty);
    }
    Ok(id)
}

/// Returns the error for a path without a znode. In ZooKeeper's order the permission on the parent
/// comes first, so a client without it does not learn whether the znode exists.
fn why_missing(state: &State, caller: Caller, path: &[u8]) -> ErrorCode {
    if path.contains(&0) {
        return ErrorCode::BadArguments;
    }
    let Some(parent_path) = path::parent_of(path) else {
        return ErrorCode::BadArguments;
    };
    match state.tree.find(parent_path) {
        Some(parent) if state.allow(caller, parent, Perms::DELETE).is_err() => ErrorCode::NoAuth,
        _ => ErrorCode::NoNode,
    }
}
