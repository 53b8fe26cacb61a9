//! What has changed since a mark.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Engine, Life, Mark,
    state::{undo::Undo, znode::Znode},
};

/// A znode that differs from the one at a mark, or exists only then or now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZnodeChange<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// The znode at the mark.
    pub before: Option<ZnodeState<'a>>,
    /// The znode now.
    pub after: Option<ZnodeState<'a>>,
}

/// The properties of a znode that a [`ZnodeChange`] compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZnodeState<'a> {
    /// Its data.
    pub data: Option<&'a [u8]>,
    /// The id of its access list, as in [`Image::access_list`](crate::Image::access_list).
    pub acl: i64,
    /// Its lifetime.
    pub life: Life,
}

impl Engine {
    /// Returns whether a mark exists.
    #[must_use]
    pub fn has_mark(&self, mark: Mark) -> bool {
        self.state.undo.since(mark).is_some()
    }

    /// Returns the znodes that differ from those at a mark, by path; `None` if the mark does not
    /// exist. Counters, times and zxids are not compared. The cost grows with the changes since.
    #[must_use]
    pub fn changes_since(&self, mark: Mark) -> Option<Vec<ZnodeChange<'_>>> {
        let tree = &self.state.tree;
        // The znodes that were touched, as they were: the walk begins with what is there now and
        // undoes one change after the other.
        let mut touched = BTreeMap::new();
        let seen = |znode| Some((Znode::path(znode), state_of(znode)));
        for undo in self.state.undo.since(mark)?.rev() {
            match undo {
                Undo::Created { id, .. } => {
                    touched.insert(*id, None);
                }
                Undo::Deleted { id, znode, .. } => {
                    touched.insert(*id, seen(znode));
                }
                Undo::DataSet { id, data, .. } => {
                    if let Some((_, state)) = touched.entry(*id).or_insert_with(|| seen(&tree[*id]))
                    {
                        state.data = data.as_deref();
                    }
                }
                Undo::AclSet { id, acl, .. } => {
                    if let Some((_, state)) = touched.entry(*id).or_insert_with(|| seen(&tree[*id]))
                    {
                        state.acl = i64::from(acl.0);
                    }
                }
                Undo::StatsWritten { .. }
                | Undo::QuotaSwitched(_)
                | Undo::SessionOpened(_)
                | Undo::SessionEnded { .. }
                | Undo::Watched { .. }
                | Undo::WatchesLeft { .. } => {}
            }
        }
        let now = touched.keys().filter_map(|id| tree.slot(id.0 as usize));
        // Item by item: to collect them would compile a sort for each of the two.
        let (mut paths, mut before) = (BTreeSet::new(), BTreeMap::new());
        paths.extend(now.map(Znode::path));
        before.extend(touched.values().flatten().copied());
        paths.extend(before.keys());
        let changes = paths.into_iter().filter_map(|path| {
            let before = before.get(path).copied();
            let after = tree.find(path).map(|id| state_of(&tree[id]));
            (before != after).then_some(ZnodeChange {
                path,
                before,
                after,
            })
        });
        Some(changes.collect())
    }
}

fn state_of(znode: &Znode) -> ZnodeState<'_> {
    ZnodeState {
        data: znode.data(),
        acl: i64::from(znode.acl.0),
        life: znode.owner.life(),
    }
}
