//! create, create2, createContainer, createTTL.
//!
//! Source: `docs/zookeeper-protocol.md` sections 7.4, 8.2, 10.1 to 10.3, 11 and 15.9.

use minikeeper_protocol::{
    AclList, Create, CreateMode, CreateOp, ErrorCode, Perms, ReplyRef, Stat, Zxid, path,
};

use crate::{
    effects::Effects,
    ops::{events, pending_reply::PendingReply},
    persist::change,
    state::{
        Caller, State,
        keys::ZnodeId,
        quota::{self, Growth},
        tree::ZNODE_BYTES,
        znode::{Owner, TTL_MS_MAX},
    },
};

pub(crate) fn create(
    state: &mut State,
    caller: Caller,
    request: &Create,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let zxid = state.next_zxid();
    match change(state, caller, zxid, request) {
        Err(error) => reply.refuse(zxid, error),
        Ok(id) => {
            change::created(state, caller, zxid, id, reply.effects);
            let mut path = std::mem::take(&mut state.scratch);
            path.clear();
            path.extend_from_slice(state.tree[id].path());
            if !state.watches.is_empty() {
                let (acl, parent_acl) = state.acls_at(id);
                events::created(state, &path, acl, parent_acl, zxid, reply.effects);
            }
            match request.op {
                CreateOp::Create => reply.send(zxid, ReplyRef::Path(Some(&path))),
                _ => reply.send(zxid, ReplyRef::PathStat(&path, &stat(state, id, request))),
            }
            state.scratch = path;
        }
    }
}

/// Returns the stat of a new znode for the reply. If the znode holds the counts of a quota,
/// ZooKeeper writes them only after it has read the stat.
pub(crate) fn stat(state: &State, id: ZnodeId, request: &Create) -> Stat {
    let length = request.data.as_ref().map_or(0, bytes::Bytes::len);
    Stat {
        data_length: i32::try_from(length).unwrap_or(i32::MAX),
        ..state.tree[id].stat()
    }
}

/// Checks in ZooKeeper's order, then creates.
///
/// # Errors
/// The first check that fails; nothing has changed then.
pub(crate) fn change(
    state: &mut State,
    caller: Caller,
    zxid: Zxid,
    request: &Create,
) -> Result<ZnodeId, ErrorCode> {
    let mode = CreateMode::from_flags(request.flags).ok_or(ErrorCode::BadArguments)?;
    if mode.has_ttl() && !state.settings.extended_types {
        return Err(ErrorCode::Unimplemented);
    }
    // Only createTTL has a time to live, and no other operation may have a mode with one. A
    // negative one with another mode stops ZooKeeper (`docs/zookeeper-protocol.md` section 26).
    let is_ttl = request.op == CreateOp::Ttl;
    if is_ttl != mode.has_ttl() || is_ttl && !(1..=TTL_MS_MAX).contains(&request.ttl_ms) {
        return Err(ErrorCode::BadArguments);
    }
    let path = request
        .path
        .as_ref()
        .ok_or(ErrorCode::MarshallingError)?
        .as_bytes();
    // The suffix may make the path valid, so other faults are checked later.
    let is_valid = path::is_valid(path);
    if !is_valid && (!path.contains(&b'/') || path.contains(&0)) {
        return Err(ErrorCode::BadArguments);
    }
    let acl = state.fix_up(caller, &request.acl)?;
    let parent_path = path::parent_of(path).ok_or(ErrorCode::BadArguments)?;
    let parent = state.tree.find(parent_path).ok_or(ErrorCode::NoNode)?;
    state.allow(caller, parent, Perms::CREATE)?;
    if !mode.is_sequential() {
        if !is_valid {
            return Err(ErrorCode::BadArguments);
        }
        return create_at(state, caller, zxid, request, mode, parent, path, &acl);
    }
    let mut final_path = std::mem::take(&mut state.scratch);
    final_path.clear();
    final_path.extend_from_slice(path);
    push_suffix(&mut final_path, state.tree[parent].created_children());
    let created = if is_valid || path::is_valid(&final_path) {
        create_at(
            state,
            caller,
            zxid,
            request,
            mode,
            parent,
            &final_path,
            &acl,
        )
    } else {
        Err(ErrorCode::BadArguments)
    };
    state.scratch = final_path;
    created
}

/// Makes the remaining checks and the change, for a valid path.
#[expect(clippy::too_many_arguments, reason = "the second half of one function")]
fn create_at(
    state: &mut State,
    caller: Caller,
    zxid: Zxid,
    request: &Create,
    mode: CreateMode,
    parent: ZnodeId,
    path: &[u8],
    acl: &AclList,
) -> Result<ZnodeId, ErrorCode> {
    if state.tree.find(path).is_some() {
        return Err(ErrorCode::NodeExists);
    }
    if state.tree[parent].owner.is_ephemeral() || state.looks_ephemeral.contains(&parent) {
        return Err(ErrorCode::NoChildrenForEphemerals);
    }
    let data = request.data.as_deref();
    let bytes = quota::bytes_of(data);
    state.check_quota(path, Growth { znodes: 1, bytes })?;
    let bytes = path.len() + data.map_or(0, <[u8]>::len) + ZNODE_BYTES + state.acls.cost(acl);
    if !state.has_room(bytes) {
        return Err(ErrorCode::QuotaExceeded);
    }
    // The operation, not the flags, makes a container: a plain create with the container flag makes
    // a persistent znode (`docs/zookeeper-protocol.md` section 10.2).
    let owner = match request.op {
        CreateOp::Container => Owner::CONTAINER,
        CreateOp::Ttl => Owner::ttl(request.ttl_ms),
        _ if mode.is_ephemeral() => Owner::session(state.sessions[caller.session].id),
        _ => Owner::PERSISTENT,
    };
    let acl = state.acls.acquire(acl);
    let id = state.create(parent, path, data, owner, acl, zxid, caller.now);
    if owner == Owner::CONTAINER && mode.is_ephemeral() && state.undo.is_in_multi() {
        state.looks_ephemeral.push(id);
    }
    Ok(id)
}

/// Appends the number as Java's `%010d` does: at least ten characters, the sign included.
pub(crate) fn push_suffix(path: &mut Vec<u8>, number: i32) {
    use std::io::Write as _;
    write!(path, "{number:010}").expect("writing to a vector cannot fail");
}

#[cfg(test)]
mod tests {
    #[test]
    fn suffix_has_ten_characters() {
        for (number, suffix) in [
            (0, "0000000000"),
            (42, "0000000042"),
            (i32::MAX, "2147483647"),
            (-5, "-000000005"),
            (i32::MIN, "-2147483648"),
        ] {
            let mut path = Vec::new();
            super::push_suffix(&mut path, number);
            assert_eq!(String::from_utf8(path).unwrap(), suffix);
        }
    }
}
