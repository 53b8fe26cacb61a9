//! Who is told about a change, in which order.
//!
//! Source: reference sections 12.2 and 12.3; the original's `DataTree` and `WatchManager`.

use minikeeper_protocol::{EventKind, Zxid, path};

use crate::{
    effects::{Effects, Event},
    keys::WatchId,
    state::State,
    watch_modes::{Modes, Table},
};

/// A znode was created: its watchers, then the child watchers of its parent.
pub(crate) fn created(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    if state.watches.is_empty() {
        return;
    }
    fire_data(
        state,
        &Event {
            kind: EventKind::Created,
            path,
            zxid,
        },
        effects,
    );
    parent_changed(state, path, zxid, effects);
}

/// A znode was deleted: its watchers, each once, then the child watchers of its parent.
pub(crate) fn deleted(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    if state.watches.is_empty() {
        return;
    }
    let event = Event {
        kind: EventKind::Deleted,
        path,
        zxid,
    };
    fire_data(state, &event, effects);
    // The same firing: whom the first table reached is not told again by the second, but its
    // one-shot watch is used up all the same.
    fire_ring(state, Table::Child, &event, effects);
    parent_changed(state, path, zxid, effects);
}

/// Data was set: the watchers of the znode.
pub(crate) fn data_changed(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    if state.watches.is_empty() {
        return;
    }
    fire_data(
        state,
        &Event {
            kind: EventKind::DataChanged,
            path,
            zxid,
        },
        effects,
    );
}

fn parent_changed(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    let parent = path::parent_of(path).expect("a znode's path has a slash");
    let event = Event {
        kind: EventKind::ChildrenChanged,
        path: parent,
        zxid,
    };
    state.watches.begin_firing();
    fire_ring(state, Table::Child, &event, effects);
}

/// Fires the data table: watchers of the path, then recursive watchers of its ancestors.
fn fire_data(state: &mut State, event: &Event<'_>, effects: &mut impl Effects) {
    state.watches.begin_firing();
    fire_ring(state, Table::Data, event, effects);
    if state.watches.recursive() == 0 {
        return;
    }
    let mut path = event.path;
    while path != b"/"
        && let Some(parent) = path::parent_of(path)
    {
        path = parent;
        fire_recursive(state, path, event, effects);
    }
}

/// Fires one table for exactly the event's path; one-shot watches are used up.
fn fire_ring(state: &mut State, table: Table, event: &Event<'_>, effects: &mut impl Effects) {
    let State { watches, tree, .. } = state;
    let Some((mut next, last)) = watches.ends(tree, event.path) else {
        return;
    };
    loop {
        let id = next;
        let watch = watches.at(id);
        next = watch.path_next;
        let (conn, modes) = (watch.conn, watch.modes(table));
        if !modes.is_empty() && watches.reach(conn) {
            effects.event(conn, event);
        }
        if modes.has(Modes::STANDARD) {
            watches.use_up(tree, id, table);
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
    event: &Event<'_>,
    effects: &mut impl Effects,
) {
    let State { watches, tree, .. } = state;
    let Some((mut id, last)) = watches.ends(tree, ancestor) else {
        return;
    };
    while id != WatchId::NONE {
        let watch = watches.at(id);
        let (conn, modes, next) = (watch.conn, watch.modes(Table::Data), watch.path_next);
        if modes.has(Modes::RECURSIVE) && watches.reach(conn) {
            effects.event(conn, event);
        }
        id = if id == last { WatchId::NONE } else { next };
    }
}
