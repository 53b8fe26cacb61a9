//! setData, setACL and check, which compare the version of one znode.
//!
//! Source: `docs/zookeeper-protocol.md` sections 8.2, 10.8, 10.10 and 13.2.

use bytes::Bytes;
use minikeeper_protocol::{AclList, ErrorCode, Perms, ReplyRef, Ustring, Zxid, path};

use crate::{
    effects::Effects,
    ops::{events, pending_reply::PendingReply},
    persist::change,
    state::{
        Caller, State,
        keys::ZnodeId,
        quota::{self, Growth},
    },
};

#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
pub(crate) fn set_data(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    data: Option<&Bytes>,
    version: i32,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let zxid = state.next_zxid();
    match change_data(state, caller, zxid, path, data, version) {
        Err(error) => reply.refuse(zxid, error),
        Ok((path, id)) => {
            change::data_set(state, caller, zxid, id, reply.effects);
            let acl = state.tree[id].acl;
            events::data_changed(state, path, acl, zxid, reply.effects);
            reply.send(zxid, ReplyRef::Stat(&state.tree[id].stat()));
        }
    }
}

/// Checks in ZooKeeper's order, then sets. Returns the path, for the event, and the znode.
///
/// # Errors
/// The first check that fails; nothing has changed then.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
pub(crate) fn change_data<'a>(
    state: &mut State,
    caller: Caller,
    zxid: Zxid,
    path: Option<&'a Ustring>,
    data: Option<&Bytes>,
    version: i32,
) -> Result<(&'a [u8], ZnodeId), ErrorCode> {
    let (path, id) = find_valid(state, path)?;
    state.allow(caller, id, Perms::WRITE)?;
    let znode = &state.tree[id];
    let found = znode.version;
    let (bytes, before) = (
        data.map_or(0, Bytes::len),
        znode.data().map_or(0, <[u8]>::len),
    );
    if state.settings.enforce_quota {
        let bytes = quota::counted(bytes) - quota::counted(before);
        state.check_quota(path, Growth { znodes: 0, bytes })?;
    }
    if bytes > before && !state.has_room(bytes - before) {
        return Err(ErrorCode::QuotaExceeded);
    }
    if version != -1 && version != found {
        return Err(ErrorCode::BadVersion);
    }
    state.set_data(id, data.map(AsRef::as_ref), zxid, caller.now);
    Ok((path, id))
}

/// Compares the version of a znode, and changes nothing.
///
/// # Errors
/// The first check that fails.
pub(crate) fn check(
    state: &State,
    caller: Caller,
    path: Option<&Ustring>,
    version: i32,
) -> Result<(), ErrorCode> {
    let (_, id) = find_valid(state, path)?;
    state.allow(caller, id, Perms::READ)?;
    if version != -1 && version != state.tree[id].version {
        return Err(ErrorCode::BadVersion);
    }
    Ok(())
}

pub(crate) fn set_acl(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    acl: &AclList,
    version: i32,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let zxid = state.next_zxid();
    match change_acl(state, caller, path, acl, version) {
        Err(error) => reply.refuse(zxid, error),
        Ok(id) => {
            change::acl_set(state, caller, zxid, id, reply.effects);
            reply.send(zxid, ReplyRef::Stat(&state.tree[id].stat()));
        }
    }
}

/// Checks in ZooKeeper's order, then sets the access list. Sends no event, and changes neither
/// mzxid nor version, only aversion.
///
/// # Errors
/// The first check that fails; nothing has changed then.
pub(crate) fn change_acl(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    acl: &AclList,
    version: i32,
) -> Result<ZnodeId, ErrorCode> {
    let path = path.ok_or(ErrorCode::BadArguments)?.as_bytes();
    if !path::is_valid(path) {
        return Err(ErrorCode::BadArguments);
    }
    let acl = state.fix_up(caller, acl)?;
    let id = state.tree.find(path).ok_or(ErrorCode::NoNode)?;
    state.allow(caller, id, Perms::ADMIN)?;
    if version != -1 && version != state.tree[id].aversion {
        return Err(ErrorCode::BadVersion);
    }
    if !state.has_room_for_list(&acl) {
        return Err(ErrorCode::QuotaExceeded);
    }
    let acl = state.acls.acquire(&acl);
    state.set_acl(id, acl);
    Ok(id)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
fn find_valid<'a>(
    state: &State,
    path: Option<&'a Ustring>,
) -> Result<(&'a [u8], ZnodeId), ErrorCode> {
    // ZooKeeper validates the path before anything else, and null breaks the first rule.
    let path = path.ok_or(ErrorCode::BadArguments)?.as_bytes();
    // Every path in the tree is valid, so a found path needs no validation.
    match state.tree.find(path) {
        Some(id) => Ok((path, id)),
        None if path::is_valid(path) => Err(ErrorCode::NoNode),
        None => Err(ErrorCode::BadArguments),
    }
}
