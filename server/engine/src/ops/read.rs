//! exists, getData, getACL, getChildren, getChildren2, sync, getEphemerals and
//! getAllChildrenNumber: operations that change nothing, but may register a watch.
//!
//! Source: `docs/zookeeper-protocol.md` sections 5.5, 7.5, 8.2, 10.6 to 10.12, 10.21, 10.22 and
//! 12.3.

use minikeeper_protocol::{ErrorCode, Perms, ReplyHeader, ReplyRef, Stat, Ustring};

use crate::{
    effects::{Effects, Limit},
    ops::pending_reply::PendingReply,
    state::{Caller, State, acl, keys::ZnodeId, watches::Registration, znode::Znode},
    work,
};

pub(crate) fn exists(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    watch: bool,
    mut reply: PendingReply<'_, impl Effects>,
) {
    // A watch on a missing znode stores the path in the form in which ZooKeeper would.
    let Some(path) = path.map(Ustring::as_echoed) else {
        return reply.refuse(state.zxid, ErrorCode::MarshallingError);
    };
    if path.contains(&0) {
        return reply.refuse(state.zxid, ErrorCode::BadArguments);
    }
    let found = state.tree.find_for_read(&path);
    if let Some(id) = found
        && let Err(error) = state.allow(caller, id, Perms::READ)
    {
        return reply.refuse(state.zxid, error);
    }
    // Unlike the other reads, exists registers its watch on a missing znode too.
    if watch && let Err(error) = state.register_watch(caller.conn, &path, found, Registration::DATA)
    {
        return reply.refuse(state.zxid, error);
    }
    match found {
        Some(id) => reply.send(state.zxid, ReplyRef::Stat(&state.tree[id].stat())),
        None => reply.refuse(state.zxid, ErrorCode::NoNode),
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
pub(crate) fn get_data(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    watch: bool,
    mut reply: PendingReply<'_, impl Effects>,
) {
    match find(
        state,
        caller,
        path,
        Perms::READ,
        watch.then_some((Registration::DATA, |znode| {
            4 + znode.data_bytes() + Stat::BYTES
        })),
    ) {
        Err(error) => reply.refuse(state.zxid, error),
        Ok(id) => {
            let znode = &state.tree[id];
            reply.send(state.zxid, ReplyRef::Data(znode.data(), &znode.stat()));
        }
    }
}

/// Serves getChildren, and getChildren2 if the stat is requested.
pub(crate) fn get_children(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    watch: bool,
    with_stat: bool,
    mut reply: PendingReply<'_, impl Effects>,
) {
    match find(
        state,
        caller,
        path,
        Perms::READ,
        watch.then_some((Registration::CHILD, |znode| {
            let (names, bytes) = (znode.num_children() as usize, znode.names_bytes());
            4 + 4 * names + bytes + Stat::BYTES
        })),
    ) {
        Err(error) => reply.refuse(state.zxid, error),
        Ok(id) => {
            let tree = &state.tree;
            let stat = with_stat.then(|| tree[id].stat());
            let mut names = tree.listing(id).map(|child| tree[child].name());
            reply.send(state.zxid, ReplyRef::Children(&mut names, stat.as_ref()));
        }
    }
}

pub(crate) fn get_acl(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    mut reply: PendingReply<'_, impl Effects>,
) {
    // Either permission is enough.
    let wanted = Perms(Perms::READ.0 | Perms::ADMIN.0);
    match find(state, caller, path, wanted, None) {
        Err(error) => reply.refuse(state.zxid, error),
        Ok(id) => {
            let znode = &state.tree[id];
            let list = state.acls.get(znode.acl);
            if state.allow(caller, id, Perms::ADMIN).is_ok() {
                reply.send(state.zxid, ReplyRef::Acl(list, &znode.stat()));
            } else {
                let masked = acl::masked(list);
                reply.send(state.zxid, ReplyRef::Acl(&masked, &znode.stat()));
            }
        }
    }
}

pub(crate) fn get_all_children_number(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    mut reply: PendingReply<'_, impl Effects>,
) {
    match find(state, caller, path, Perms::READ, None) {
        Err(error) => reply.refuse(state.zxid, error),
        Ok(id) => {
            // Under its alias, the empty path, the root counts among its own descendants (observed
            // on a live 3.9.5, which stores the root twice).
            let is_alias = path.is_some_and(|path| path.as_bytes().is_empty());
            let count = state.tree.count_descendants(id) + usize::from(is_alias);
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            reply.send(state.zxid, ReplyRef::Count(count));
        }
    }
}

/// Lists the requesting session's ephemerals whose path starts with the prefix, compared as text.
pub(crate) fn get_ephemerals(
    state: &mut State,
    caller: Caller,
    prefix: Option<&Ustring>,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let prefix = prefix.map(Ustring::as_bytes).unwrap_or_default();
    let prefix = if prefix.trim_ascii().is_empty() {
        b"/"
    } else {
        prefix
    };
    let paths: Vec<_> = state.sessions[caller.session]
        .ephemerals
        .iter()
        .inspect(|_| work::visit())
        .map(|&(_, id)| state.tree[id].path())
        .filter(|path| path.starts_with(prefix))
        .collect();
    let bytes: usize = paths.iter().map(|path| 4 + path.len()).sum();
    if 4 + bytes + ReplyHeader::BYTES > state.settings.reply_bytes_max {
        state.limit_hit = Some(Limit::ReplyBytes);
        return reply.refuse(state.zxid, ErrorCode::MarshallingError);
    }
    reply.send(state.zxid, ReplyRef::Ephemerals(&mut paths.into_iter()));
}

/// Echoes the path, any string: there is no other server to wait for.
pub(crate) fn sync(
    state: &State,
    path: Option<&Ustring>,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let echo = path.map(|path| path.as_echoed());
    reply.send(state.zxid, ReplyRef::Path(echo.as_deref()));
}

/// The watch that a read requests, and a function that returns the length of its reply's body in
/// bytes.
type ReadWatch = (Registration, fn(&Znode) -> usize);

/// Finds the znode to read. Registers the watch only if the znode exists, the caller may read it,
/// and the reply is not too long.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
fn find(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    wanted: Perms,
    watch: Option<ReadWatch>,
) -> Result<ZnodeId, ErrorCode> {
    let path = path.ok_or(ErrorCode::MarshallingError)?.as_bytes();
    let id = state.tree.find_for_read(path).ok_or(ErrorCode::NoNode)?;
    state.allow(caller, id, wanted)?;
    // Encoding measures every reply, but the watch must be refused before it is registered.
    if let Some((what, body_bytes)) = watch {
        state.check_reply_bytes(body_bytes(&state.tree[id]))?;
        state.register_watch(caller.conn, path, Some(id), what)?;
    }
    Ok(id)
}
