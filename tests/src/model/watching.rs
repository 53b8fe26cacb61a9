//! Watches of the model. Source: `docs/zookeeper-protocol.md` section 12.

use std::collections::BTreeSet;

use minikeeper_protocol::{AclList, AddWatchMode, EventKind, Ustring, WatcherType, Zxid};

use super::{Model, access, rules};

/// How a watch was registered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mode {
    Standard,
    Persistent,
    Recursive,
}

/// The modes of one connection on one path, in each of the two tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Modes {
    data: BTreeSet<Mode>,
    child: BTreeSet<Mode>,
}

impl Model {
    pub(super) fn watch(&mut self, conn: u32, path: &str, data: Option<Mode>, child: Option<Mode>) {
        let modes = self.watches.entry((conn, path.to_owned())).or_default();
        modes.data.extend(data);
        modes.child.extend(child);
    }

    pub(super) fn add_watch(&mut self, conn: u32, path: &str, mode: AddWatchMode) {
        match mode {
            AddWatchMode::Persistent => {
                self.watch(conn, path, Some(Mode::Persistent), Some(Mode::Persistent));
            }
            AddWatchMode::PersistentRecursive => {
                self.watch(conn, path, Some(Mode::Recursive), None);
            }
        }
    }

    /// Fires the data table; returns the connections that got an event.
    pub(super) fn fire_data(&mut self, kind: EventKind, path: &str, acl: &AclList) -> Vec<u32> {
        let mut notified = BTreeSet::new();
        for ((conn, watched), modes) in &mut self.watches {
            if watched == path && !modes.data.is_empty() {
                notified.insert(*conn);
                modes.data.remove(&Mode::Standard);
            }
            let is_above = watched == "/" || path.starts_with(&format!("{watched}/"));
            if watched != path
                && !watched.is_empty()
                && is_above
                && modes.data.contains(&Mode::Recursive)
            {
                notified.insert(*conn);
            }
        }
        self.send_event(notified, kind, path, acl)
    }

    /// Fires the child table, except for connections that the data table has notified.
    pub(super) fn fire_child(
        &mut self,
        kind: EventKind,
        path: &str,
        except: &[u32],
        acl: &AclList,
    ) {
        let mut notified = BTreeSet::new();
        for ((conn, watched), modes) in &mut self.watches {
            if watched == path && !modes.child.is_empty() {
                modes.child.remove(&Mode::Standard);
                if !except.contains(conn) {
                    notified.insert(*conn);
                }
            }
        }
        self.send_event(notified, kind, path, acl);
    }

    /// Sends the event to connections that may read the znode. Source: `docs/zookeeper-protocol.md`
    /// section 12.6.
    fn send_event(
        &mut self,
        notified: BTreeSet<u32>,
        kind: EventKind,
        path: &str,
        acl: &AclList,
    ) -> Vec<u32> {
        self.remove_empty();
        let notified: Vec<_> = notified.into_iter().collect();
        for conn in &notified {
            if !self.may(*conn, acl, access::READ) {
                continue;
            }
            self.event(*conn, kind, path, self.zxid);
        }
        notified
    }

    fn remove_empty(&mut self) {
        self.watches
            .retain(|_, modes| !modes.data.is_empty() || !modes.child.is_empty());
    }

    /// `docs/zookeeper-protocol.md` section 12.7.
    pub(super) fn is_watching(&self, conn: u32, path: &str, kind: WatcherType) -> bool {
        let Some(modes) = self.watches.get(&(conn, path.to_owned())) else {
            return false;
        };
        match kind {
            WatcherType::Children => modes.child.contains(&Mode::Standard),
            WatcherType::Data => modes.data.contains(&Mode::Standard),
            WatcherType::Persistent => modes.data.contains(&Mode::Persistent),
            WatcherType::PersistentRecursive => modes.data.contains(&Mode::Recursive),
            WatcherType::Any => true,
        }
    }

    /// Removes watches. Returns whether there were any. Source: `docs/zookeeper-protocol.md`
    /// section 12.7.
    pub(super) fn unwatch(&mut self, conn: u32, path: &str, kind: WatcherType) -> bool {
        if !self.is_watching(conn, path, kind) {
            return false;
        }
        let modes = self
            .watches
            .get_mut(&(conn, path.to_owned()))
            .expect("just found");
        match kind {
            WatcherType::Children => drop(modes.child.remove(&Mode::Standard)),
            WatcherType::Data => drop(modes.data.remove(&Mode::Standard)),
            WatcherType::Persistent => {
                modes.data.remove(&Mode::Persistent);
                modes.child.remove(&Mode::Persistent);
            }
            WatcherType::PersistentRecursive => drop(modes.data.remove(&Mode::Recursive)),
            WatcherType::Any => *modes = Modes::default(),
        }
        self.remove_empty();
        true
    }

    /// `docs/zookeeper-protocol.md` section 12.8.
    pub(super) fn set_watches(&mut self, conn: u32, since: Zxid, lists: &[&[Ustring]]) {
        let since = since.0;
        for (number, list) in lists.iter().enumerate() {
            for path in *list {
                let path = path.to_str_lossy().into_owned();
                let found = self.read_path(&path);
                let stat = found.map(|path| self.nodes[path].stat);
                let missed = match (number, stat) {
                    (0 | 2, None) => Some(EventKind::Deleted),
                    (0, Some(stat)) if stat.mzxid.0 > since => Some(EventKind::DataChanged),
                    (1, Some(_)) => Some(EventKind::Created),
                    (2, Some(stat)) if stat.pzxid.0 > since => Some(EventKind::ChildrenChanged),
                    _ => None,
                };
                match (missed, number) {
                    (Some(kind), _) => self.event(conn, kind, &path, -1),
                    (None, 0 | 1) => self.watch(conn, &path, Some(Mode::Standard), None),
                    (None, 2) => self.watch(conn, &path, None, Some(Mode::Standard)),
                    (None, 3) => self.add_watch(conn, &path, AddWatchMode::Persistent),
                    (None, _) => {
                        self.add_watch(conn, &path, AddWatchMode::PersistentRecursive);
                    }
                }
            }
        }
    }

    /// The znode that a read addresses. Source: `docs/zookeeper-protocol.md` section 5.5.
    pub(super) fn read_path<'a>(&self, path: &'a str) -> Option<&'a str> {
        let path = if path.is_empty() { "/" } else { path };
        self.nodes.contains_key(path).then_some(path)
    }

    pub(super) fn descendants(&self, path: &str) -> usize {
        let count = |other: &&String| {
            let mut at = other.as_str();
            while at != "/" {
                at = rules::parent(at);
                if at == path {
                    return true;
                }
            }
            false
        };
        self.nodes.keys().filter(count).count()
    }
}
