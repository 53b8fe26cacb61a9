//! Sends events to the watchers that may read the path, in ZooKeeper's order.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.4, 12.2, 12.3 and 12.6; ZooKeeper's `DataTree`,
//! `WatchManager` and `NIOServerCnxn.process`.

use minikeeper_protocol::{EventKind, Perms, Zxid, path};

use crate::{
    effects::{Effects, Event},
    input::ConnId,
    state::{
        State, acl,
        keys::{AclId, WatchId},
        undo::Rewound,
        watches::{Modes, Table},
    },
    work,
};

/// An event to send to watchers.
struct Firing<'a> {
    event: Event<'a>,
    /// Only connections that this list permits to read get the event.
    acl: AclId,
}

/// Notifies the watchers of a created znode, then the child watchers of its parent.
pub(crate) fn created(
    state: &mut State,
    path: &[u8],
    acl: AclId,
    parent_acl: AclId,
    zxid: Zxid,
    effects: &mut impl Effects,
) {
    if state.watches.is_empty() {
        return;
    }
    let kind = EventKind::Created;
    let event = Event { kind, path, zxid };
    fire_data(state, &Firing { event, acl }, effects);
    parent_changed(state, path, parent_acl, zxid, effects);
}

/// Notifies the watchers of a deleted znode, each once, then the child watchers of its parent.
pub(crate) fn deleted(
    state: &mut State,
    path: &[u8],
    acl: AclId,
    parent_acl: AclId,
    zxid: Zxid,
    effects: &mut impl Effects,
) {
    if state.watches.is_empty() {
        return;
    }
    let kind = EventKind::Deleted;
    let firing = Firing {
        event: Event { kind, path, zxid },
        acl,
    };
    fire_data(state, &firing, effects);
    // The same firing: a connection that the data table has reached gets no second event, but its
    // one-shot child watch is also removed.
    fire_ring(state, Table::Child, &firing, effects);
    parent_changed(state, path, parent_acl, zxid, effects);
}

/// Notifies the watchers of a znode whose data was set.
pub(crate) fn data_changed(
    state: &mut State,
    path: &[u8],
    acl: AclId,
    zxid: Zxid,
    effects: &mut impl Effects,
) {
    if state.watches.is_empty() {
        return;
    }
    let kind = EventKind::DataChanged;
    let event = Event { kind, path, zxid };
    fire_data(state, &Firing { event, acl }, effects);
}

/// Notifies the watchers of what differs after a rewind: first of what is gone, children before their
/// parents, then of what has changed or is there again.
pub(crate) fn rewound(state: &mut State, rewound: &Rewound, effects: &mut impl Effects) {
    let zxid = state.zxid;
    let czxid = |state: &State, path: &[u8]| state.tree.find(path).map(|id| state.tree[id].czxid);
    for (path, before) in rewound.touched.iter().rev() {
        let Some(before) = before else { continue };
        if czxid(state, path) == Some(before.czxid) {
            continue;
        }
        let acl = state.acls.acquire(&before.acl);
        let parent = path::parent_of(path).and_then(|parent| state.tree.find(parent));
        let parent_acl = parent.map_or(acl, |parent| state.tree[parent].acl);
        deleted(state, path, acl, parent_acl, zxid, effects);
        state.acls.release(acl);
    }
    for (path, before) in &rewound.touched {
        let Some(id) = state.tree.find(path) else {
            continue;
        };
        let (acl, parent_acl) = state.acls_at(id);
        let znode = &state.tree[id];
        match before {
            Some(before) if before.czxid == znode.czxid => {
                if before.mzxid != znode.mzxid {
                    data_changed(state, path, acl, zxid, effects);
                }
            }
            _ => created(state, path, acl, parent_acl, zxid, effects),
        }
    }
}

fn parent_changed(
    state: &mut State,
    path: &[u8],
    acl: AclId,
    zxid: Zxid,
    effects: &mut impl Effects,
) {
    let kind = EventKind::ChildrenChanged;
    let path = path::parent_of(path).expect("a znode's path has a slash");
    let event = Event { kind, path, zxid };
    state.watches.begin_firing();
    fire_ring(state, Table::Child, &Firing { event, acl }, effects);
}

/// Fires the data table: watchers of the path, then recursive watchers of its ancestors.
fn fire_data(state: &mut State, firing: &Firing<'_>, effects: &mut impl Effects) {
    state.watches.begin_firing();
    fire_ring(state, Table::Data, firing, effects);
    if state.watches.recursive() == 0 {
        return;
    }
    let mut path = firing.event.path;
    while path != b"/"
        && let Some(parent) = path::parent_of(path)
    {
        path = parent;
        fire_recursive(state, path, firing, effects);
    }
}

/// Fires one table for exactly the event's path. Removes one-shot watches, even if the event is
/// withheld.
fn fire_ring(state: &mut State, table: Table, firing: &Firing<'_>, effects: &mut impl Effects) {
    let Some((mut next, last)) = state.watches.ends(&state.tree, firing.event.path) else {
        return;
    };
    loop {
        work::visit();
        let id = next;
        let watch = state.watches.at(id);
        next = watch.path_next;
        let (modes, conn) = (watch.modes(table), state.watches.conn_of(watch));
        if let Some(conn) = conn.filter(|_| !modes.is_empty()) {
            send(state, (id, conn), firing, effects);
            if modes.has(Modes::STANDARD) {
                state.use_up_watch(id, table);
            }
        }
        if id == last {
            return;
        }
    }
}

/// Fires the recursive watches on an ancestor of the event's path.
fn fire_recursive(
    state: &mut State,
    ancestor: &[u8],
    firing: &Firing<'_>,
    effects: &mut impl Effects,
) {
    let Some((mut id, last)) = state.watches.ends(&state.tree, ancestor) else {
        return;
    };
    while id != WatchId::NONE {
        work::visit();
        let watch = state.watches.at(id);
        let (modes, next) = (watch.modes(Table::Data), watch.path_next);
        let conn = state.watches.conn_of(watch);
        if let Some(conn) = conn.filter(|_| modes.has(Modes::RECURSIVE)) {
            send(state, (id, conn), firing, effects);
        }
        id = if id == last { WatchId::NONE } else { next };
    }
}

/// Sends an event to a watcher, unless this firing has already reached it or it may not read the
/// znode.
fn send(
    state: &mut State,
    (watch, conn): (WatchId, ConnId),
    firing: &Firing<'_>,
    effects: &mut impl Effects,
) {
    let watcher = state.watches.at(watch).watcher;
    if state.watches.reach(watcher)
        && let Some(watcher) = state.conns.get(conn)
    {
        let State {
            acls, identities, ..
        } = &*state;
        let may_read = acl::allows(
            acls,
            identities,
            watcher.identities,
            firing.acl,
            Perms::READ,
        );
        if may_read {
            effects.event(conn, &firing.event);
        }
    }
}
