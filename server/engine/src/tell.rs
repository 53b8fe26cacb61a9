//! Who is told about a change, in which order. Source: reference section 12.2.

use minikeeper_protocol::{EventKind, Zxid, path};

use crate::{
    effects::{Effects, Event},
    state::State,
};

/// A znode was created: its watchers, then the child watchers of its parent.
pub(crate) fn created(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    if state.watches.is_empty() {
        return;
    }
    let event = Event {
        kind: EventKind::Created,
        path,
        zxid,
    };
    state.watches.fire_data(&mut state.tree, &event, effects);
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
    state.watches.fire_deleted(&mut state.tree, &event, effects);
    parent_changed(state, path, zxid, effects);
}

/// Data was set: the watchers of the znode.
pub(crate) fn data_changed(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    if state.watches.is_empty() {
        return;
    }
    let event = Event {
        kind: EventKind::DataChanged,
        path,
        zxid,
    };
    state.watches.fire_data(&mut state.tree, &event, effects);
}

fn parent_changed(state: &mut State, path: &[u8], zxid: Zxid, effects: &mut impl Effects) {
    let parent = path::parent_of(path).expect("a znode's path has a slash");
    let event = Event {
        kind: EventKind::ChildrenChanged,
        path: parent,
        zxid,
    };
    state.watches.fire_child(&mut state.tree, &event, effects);
}
