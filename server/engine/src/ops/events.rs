//! Who is told about a change, in which order: those who watch, and may read what they watch.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.4, 12.2, 12.3 and 12.6; the original's
//! `DataTree`, `WatchManager` and `NIOServerCnxn.process`.

use minikeeper_protocol::{EventKind, Perms, Zxid, path};

use crate::{
    effects::{Effects, Event},
    state::{
        State,
        keys::{AclId, WatchId},
        permission,
        watch_modes::{Modes, Table},
    },
    work,
};

/// An event on its way to the watchers.
struct News<'a> {
    event: Event<'a>,
    /// Who may read this may hear of it.
    acl: AclId,
}

/// A znode was created: its watchers, then the child watchers of its parent.
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
    fire_data(state, &News { event, acl }, effects);
    parent_changed(state, path, parent_acl, zxid, effects);
}

/// A znode was deleted: its watchers, each once, then the child watchers of its parent.
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
    let news = News {
        event: Event { kind, path, zxid },
        acl,
    };
    fire_data(state, &news, effects);
    // The same firing: whom the first table reached is not told again by the second, but its
    // one-shot watch is used up all the same.
    fire_ring(state, Table::Child, &news, effects);
    parent_changed(state, path, parent_acl, zxid, effects);
}

/// Data was set: the watchers of the znode.
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
    fire_data(state, &News { event, acl }, effects);
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
    fire_ring(state, Table::Child, &News { event, acl }, effects);
}

/// Fires the data table: watchers of the path, then recursive watchers of its ancestors.
fn fire_data(state: &mut State, news: &News<'_>, effects: &mut impl Effects) {
    state.watches.begin_firing();
    fire_ring(state, Table::Data, news, effects);
    if state.watches.recursive() == 0 {
        return;
    }
    let mut path = news.event.path;
    while path != b"/"
        && let Some(parent) = path::parent_of(path)
    {
        path = parent;
        fire_recursive(state, path, news, effects);
    }
}

/// Fires one table for exactly the event's path; one-shot watches are used up, even by an event
/// that is withheld.
fn fire_ring(state: &mut State, table: Table, news: &News<'_>, effects: &mut impl Effects) {
    let Some((mut next, last)) = state.watches.ends(&state.tree, news.event.path) else {
        return;
    };
    loop {
        work::visit();
        let id = next;
        let watch = state.watches.at(id);
        next = watch.path_next;
        let modes = watch.modes(table);
        if !modes.is_empty() {
            tell(state, id, news, effects);
        }
        if modes.has(Modes::STANDARD) {
            state.use_up_watch(id, table);
        }
        if id == last {
            return;
        }
    }
}

/// Fires the recursive watches on an ancestor of the event's path.
fn fire_recursive(state: &mut State, ancestor: &[u8], news: &News<'_>, effects: &mut impl Effects) {
    let Some((mut id, last)) = state.watches.ends(&state.tree, ancestor) else {
        return;
    };
    while id != WatchId::NONE {
        work::visit();
        let watch = state.watches.at(id);
        let (modes, next) = (watch.modes(Table::Data), watch.path_next);
        if modes.has(Modes::RECURSIVE) {
            tell(state, id, news, effects);
        }
        id = if id == last { WatchId::NONE } else { next };
    }
}

/// Sends an event to a watcher, unless this firing has reached it before or it may not read the
/// znode.
fn tell(state: &mut State, watch: WatchId, news: &News<'_>, effects: &mut impl Effects) {
    let conn = state.watches.at(watch).conn;
    if state.watches.reach(conn)
        && let Some(watcher) = state.conns.get(conn)
    {
        let State {
            acls, identities, ..
        } = &*state;
        let may_read =
            permission::allows(acls, identities, watcher.identities, news.acl, Perms::READ);
        #[cfg(feature = "planted")]
        let may_read = may_read || state.planted(crate::planted::Planted::EventsUnfiltered);
        if may_read {
            effects.event(conn, &news.event);
        }
    }
}
