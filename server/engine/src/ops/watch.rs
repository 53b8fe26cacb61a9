//! setWatches, setWatches2, addWatch, checkWatches, removeWatches.
//!
//! Source: `docs/zookeeper-protocol.md` sections 8.2, 10.17 to 10.20 and 12.8.

use std::borrow::Cow;

use minikeeper_protocol::{
    AddWatchMode, ErrorCode, EventKind, ReplyRef, Ustring, WatcherType, Zxid,
};

use crate::{
    effects::{Effects, Event},
    ops::pending_reply::PendingReply,
    state::{Caller, State, keys::ZnodeId, watches::Registration},
    work,
};

/// The lists that a client sends after it has reconnected, in the order in which they are served.
pub(crate) struct WatchLists<'a> {
    pub(crate) relative_zxid: Zxid,
    pub(crate) data: &'a [Ustring],
    pub(crate) exist: &'a [Ustring],
    pub(crate) child: &'a [Ustring],
    pub(crate) persistent: &'a [Ustring],
    pub(crate) persistent_recursive: &'a [Ustring],
}

/// Registers a client's watches again after it has reconnected, and sends the events it has missed.
pub(crate) fn set_watches(
    state: &mut State,
    caller: Caller,
    lists: &WatchLists<'_>,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let outcome = register_lists(state, caller, lists, reply.effects);
    reply.done(state.zxid, outcome);
}

fn register_lists(
    state: &mut State,
    caller: Caller,
    lists: &WatchLists<'_>,
    effects: &mut impl Effects,
) -> Result<(), ErrorCode> {
    let since = lists.relative_zxid;
    register(
        state,
        caller,
        lists.data,
        Registration::DATA,
        effects,
        |state, found| match found {
            None => Some(EventKind::Deleted),
            Some(id) => (state.tree[id].mzxid > since).then_some(EventKind::DataChanged),
        },
    )?;
    register(
        state,
        caller,
        lists.exist,
        Registration::DATA,
        effects,
        |_, found| found.map(|_| EventKind::Created),
    )?;
    register(
        state,
        caller,
        lists.child,
        Registration::CHILD,
        effects,
        |state, found| match found {
            None => Some(EventKind::Deleted),
            Some(id) => (state.tree[id].pzxid() > since).then_some(EventKind::ChildrenChanged),
        },
    )?;
    // Persistent watches get no events for missed changes.
    register(
        state,
        caller,
        lists.persistent,
        Registration::PERSISTENT,
        effects,
        |_, _| None,
    )?;
    register(
        state,
        caller,
        lists.persistent_recursive,
        Registration::RECURSIVE,
        effects,
        |_, _| None,
    )
}

/// For each path, sends the missed event or registers the watch.
fn register(
    state: &mut State,
    caller: Caller,
    paths: &[Ustring],
    what: Registration,
    effects: &mut impl Effects,
    missed: impl Fn(&State, Option<ZnodeId>) -> Option<EventKind>,
) -> Result<(), ErrorCode> {
    for path in paths {
        work::visit();
        let path = path.as_echoed();
        let found = state.tree.find_for_read(&path);
        match missed(state, found) {
            Some(kind) => {
                let event = Event {
                    kind,
                    path: &path,
                    zxid: Zxid::NONE,
                };
                effects.event(caller.conn, &event);
            }
            None => state.register_watch(caller.conn, &path, found, what)?,
        }
    }
    Ok(())
}

/// Registers a persistent watch. Checks neither the path nor its znode.
pub(crate) fn add_watch(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    mode: i32,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let what = match AddWatchMode::from_code(mode) {
        Some(AddWatchMode::Persistent) => Registration::PERSISTENT,
        Some(AddWatchMode::PersistentRecursive) => Registration::RECURSIVE,
        None => return reply.refuse(state.zxid, ErrorCode::MarshallingError),
    };
    // ZooKeeper registers a null path, but no client depends on that (`docs/zookeeper-protocol.md`
    // section 26).
    let Some(path) = path.map(Ustring::as_echoed) else {
        return reply.refuse(state.zxid, ErrorCode::MarshallingError);
    };
    let found = state.tree.find(&path);
    match state.register_watch(caller.conn, &path, found, what) {
        Ok(()) => reply.send(state.zxid, ReplyRef::WatchAdded),
        Err(error) => reply.refuse(state.zxid, error),
    }
}

pub(crate) fn check_watches(
    state: &State,
    caller: Caller,
    path: Option<&Ustring>,
    kind: i32,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let outcome = watcher_type(path, kind).and_then(|(path, kind)| {
        if state.watches.has(&state.tree, caller.conn, &path, kind) {
            Ok(())
        } else {
            Err(ErrorCode::NoWatcher)
        }
    });
    reply.done(state.zxid, outcome);
}

/// Removes watches of the connection, without sending an event.
pub(crate) fn remove_watches(
    state: &mut State,
    caller: Caller,
    path: Option<&Ustring>,
    kind: i32,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let outcome = watcher_type(path, kind).and_then(|(path, kind)| {
        if state.remove_watch(caller.conn, &path, kind) {
            Ok(())
        } else {
            Err(ErrorCode::NoWatcher)
        }
    });
    reply.done(state.zxid, outcome);
}

/// Decodes the kind of watch, and converts the path to the form in which watches store it.
fn watcher_type(
    path: Option<&Ustring>,
    kind: i32,
) -> Result<(Cow<'_, [u8]>, WatcherType), ErrorCode> {
    let kind = WatcherType::from_code(kind).ok_or(ErrorCode::MarshallingError)?;
    let path = path.ok_or(ErrorCode::NoWatcher)?;
    Ok((path.as_echoed(), kind))
}
