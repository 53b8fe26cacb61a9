//! Listings for administrators and tests: watches, deadlines, ephemerals, sessions.
//!
//! The order of every listing depends only on the state. A bounded listing copies no more rows and
//! text than requested, and counts the others.
//!
//! Source: `docs/zookeeper-protocol.md` sections 9.1, 12.1, 14, 18.7 and 18.8.

use std::collections::BTreeMap;

use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    Engine,
    auth::ip,
    input::ConnId,
    persist::image::{ZnodeImage, image_of},
    report::digest::Digests,
    state::{
        identities::Scheme,
        keys::{WatchId, ZnodeId},
        quota::QuotaTotals,
        tree::ZNODE_BYTES,
        watches::{Modes, Place, Watch, Watches},
    },
};

/// A heading with the rows below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group<H, R> {
    /// The value that the rows share.
    pub head: H,
    /// The number of rows in the group, omitted ones included.
    pub rows_total: usize,
    /// The rows, as far as the listing had room.
    pub rows: Vec<R>,
}

/// The maximum size of a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The number of headings and rows.
    pub rows: usize,
    /// The approximate length of their text. Unit: bytes.
    pub bytes: usize,
}

/// Groups of rows, no more than requested. A heading counts as a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing<H, R> {
    /// The groups, as far as there was room.
    pub groups: Vec<Group<H, R>>,
    /// The number of groups, omitted ones included.
    pub groups_total: usize,
    /// The number of headings and rows omitted for lack of room.
    pub left_out: usize,
    room: Room,
}

/// The estimated length of a line without its path. Unit: bytes.
const LINE_BYTES: usize = 64;

/// A heading or a row before it is copied.
trait Line<T> {
    /// Returns the maximum length of its text; the default is that of a number, a date or a
    /// session. Unit: bytes.
    fn bytes(&self) -> usize {
        LINE_BYTES
    }

    fn copy(self) -> T;
}

impl Line<Self> for SessionId {
    fn copy(self) -> Self {
        self
    }
}

impl Line<Self> for u64 {
    fn copy(self) -> Self {
        self
    }
}

impl Line<String> for &[u8] {
    fn bytes(&self) -> usize {
        self.len() + LINE_BYTES
    }

    fn copy(self) -> String {
        text(self)
    }
}

impl Listing<String, SessionId> {
    /// Adds a path with the sessions that watch it.
    pub fn add_path(&mut self, path: &[u8], sessions: impl Iterator<Item = SessionId>) {
        self.add(path, sessions);
    }
}

impl<H, R> Listing<H, R> {
    /// Returns an empty one.
    #[must_use]
    pub const fn new(room: Room) -> Self {
        Self {
            groups: Vec::new(),
            groups_total: 0,
            left_out: 0,
            room,
        }
    }

    /// Copies a line if there is room for it. After the first one that does not fit, there is no
    /// room left, so that the listing omits only its end.
    fn take<T>(&mut self, line: impl Line<T>) -> Option<T> {
        let left = self.room.bytes.checked_sub(line.bytes());
        let (Some(rows), Some(bytes)) = (self.room.rows.checked_sub(1), left) else {
            self.room.rows = 0;
            self.left_out += 1;
            return None;
        };
        self.room = Room { rows, bytes };
        Some(line.copy())
    }

    fn add(&mut self, head: impl Line<H>, rows: impl Iterator<Item = impl Line<R>>) {
        self.groups_total += 1;
        let Some(head) = self.take(head) else {
            self.left_out += rows.count();
            return;
        };
        let mut group = Group {
            head,
            rows_total: 0,
            rows: Vec::new(),
        };
        for row in rows {
            group.rows_total += 1;
            group.rows.extend(self.take(row));
        }
        self.groups.push(group);
    }

    /// Adds a group of so many rows, without reading those that there is no room for.
    fn add_counted(
        &mut self,
        head: impl Line<H>,
        rows: impl Iterator<Item = impl Line<R>>,
        rows_total: usize,
    ) {
        self.groups_total += 1;
        let Some(head) = self.take(head) else {
            self.left_out += rows_total;
            return;
        };
        let mut group = Group {
            head,
            rows_total,
            rows: Vec::new(),
        };
        for row in rows {
            let Some(row) = self.take(row) else {
                // It was counted as left out; so are those behind it.
                self.left_out += rows_total - group.rows.len() - 1;
                break;
            };
            group.rows.push(row);
        }
        self.groups.push(group);
    }
}

/// The number of watches in the data table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WatchSummary {
    /// The number of connections that have a data watch, or had one and have not removed their last
    /// watch.
    pub connections: usize,
    /// The number of paths with a data watch.
    pub paths: usize,
    /// The number of pairs of connection and path.
    pub watches: usize,
}

impl Engine {
    /// Returns the session of a connection, and its timeout in milliseconds.
    #[must_use]
    pub fn session_of(&self, conn: ConnId) -> Option<(SessionId, u32)> {
        let session = &self.state.sessions[self.state.session_of(conn)?];
        Some((session.id, session.timeout_ms))
    }

    /// Lists the sessions by deadline, in milliseconds since the start.
    #[must_use]
    pub fn expiries(&self, room: Room) -> Listing<u64, SessionId> {
        let sessions = &self.state.sessions;
        let mut listing = Listing::new(room);
        for (deadline_ms, keys) in sessions.expiry().by_deadline() {
            listing.add(deadline_ms, keys.into_iter().map(|key| sessions[key].id));
        }
        listing
    }

    /// Lists the paths of ephemerals, by session, oldest first; includes sessions that have none
    /// left.
    #[must_use]
    pub fn ephemerals(&self, room: Room) -> Listing<SessionId, String> {
        let tree = &self.state.tree;
        let mut listing = Listing::new(room);
        for (_, session) in self.state.sessions.iter() {
            if session.had_ephemerals {
                let paths = session.ephemerals.iter().map(|(_, id)| tree[*id].path());
                listing.add(session.id, paths);
            }
        }
        listing
    }

    /// Returns the total length of all paths and data. Unit: bytes.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        let tree = &self.state.tree;
        tree.bytes() - tree.len() * ZNODE_BYTES
    }

    /// Returns the totals of the quotas below each child of the root, as far as there is room.
    #[must_use]
    pub fn quota_totals(&self, room: Room) -> BTreeMap<String, QuotaTotals> {
        self.state.quotas.totals(&self.state.tree, room)
    }

    /// Returns the digests of the tree recorded so far, oldest first, each with the zxid of its
    /// state. Empty unless [`crate::Settings::digests`] is set.
    #[must_use]
    pub fn digests(&self) -> Vec<(Zxid, u64)> {
        let list = |digests: &Digests| digests.list(self.state.zxid, &self.state.tree);
        self.digests.as_ref().map(list).unwrap_or_default()
    }

    /// Returns the number of watches in the two tables together: one in both counts twice.
    #[must_use]
    pub fn watches_in_tables(&self) -> usize {
        let watches = &self.state.watches;
        watches.len() + watches.in_both()
    }

    /// Counts the connections and watches of the data table. The paths are counted by
    /// [`Engine::scan_watched_paths`].
    #[must_use]
    pub fn watch_summary(&self) -> WatchSummary {
        let mut summary = WatchSummary::default();
        for (_, count) in self.state.watches.data_watchers() {
            summary.connections += 1;
            summary.watches += count;
        }
        summary
    }

    /// Lists the watched paths of the data table by connection. Reads no more watches than there is
    /// room for, and those of the child table before them.
    #[must_use]
    pub fn watches_by_connection(&self, room: Room) -> Listing<SessionId, String> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let mut listing = Listing::new(room);
        for (conn, count) in watches.data_watchers() {
            let session = self.session_of(conn).map_or(SessionId::NONE, |(id, _)| id);
            let places = watches.conn_watches(conn).filter_map(|id| {
                let watch = watches.at(id);
                (!watch.data.is_empty()).then_some(watch.place)
            });
            let paths = places.map(|place| watches.path(tree, place));
            listing.add_counted(session, paths, count);
        }
        listing
    }

    /// Calls `visit` with each path that a watch of the data table in these slots is the first of,
    /// and with the sessions that watch it. Returns the slot to continue with, as
    /// [`Engine::scan`] does.
    pub fn scan_watched_paths(
        &self,
        from: usize,
        slots: usize,
        mut visit: impl FnMut(&[u8], &mut dyn Iterator<Item = SessionId>),
    ) -> Option<usize> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let end = watches.slots_end();
        let next = from.saturating_add(slots).min(end);
        for slot in from..next {
            let Some(watch) = watches.slot(slot) else {
                continue;
            };
            let id = WatchId(u32::try_from(slot).expect("ids are made from u32"));
            if watches.head(tree, watch.place) != id {
                continue;
            }
            let session = |conn| self.session_of(conn).map_or(SessionId::NONE, |(id, _)| id);
            let mut sessions = data_watchers_from(watches, id).map(session).peekable();
            if sessions.peek().is_some() {
                visit(watches.path(tree, watch.place), &mut sessions);
            }
        }
        (next < end).then_some(next)
    }
}

/// Returns the connections with a data watch in the ring with this head.
fn data_watchers_from(watches: &Watches, head: WatchId) -> impl Iterator<Item = ConnId> {
    let mut next = Some(head);
    std::iter::from_fn(move || {
        loop {
            let watch = watches.at(next?);
            next = (watch.path_next != head).then_some(watch.path_next);
            if let Some(conn) = watches.conn_of(watch).filter(|_| !watch.data.is_empty()) {
                return Some(conn);
            }
        }
    })
}

/// Returns watches by path and kind. Those of one session and of all share this sort.
fn sorted<'a>(watches: impl Iterator<Item = (&'a Watch, &'a [u8])>) -> Vec<(&'a [u8], WatchKind)> {
    let mut list: Vec<_> = watches
        .flat_map(|(watch, path)| WatchKind::of(watch).map(move |kind| (path, kind)))
        .collect();
    list.sort_unstable();
    list
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// How a path is watched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum WatchKind {
    /// The znode, once: set by getData and exists.
    Data,
    /// The list of its children, once: set by getChildren.
    Children,
    /// Both, until removed.
    Persistent,
    /// The znode and everything below it, until removed.
    PersistentRecursive,
}

impl WatchKind {
    /// Returns its name in lower case, with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Children => "children",
            Self::Persistent => "persistent",
            Self::PersistentRecursive => "persistent_recursive",
        }
    }

    /// Returns the kinds as which a watch was registered.
    fn of(watch: &Watch) -> impl Iterator<Item = Self> + use<> {
        let Watch { data, child, .. } = *watch;
        let both = data.with(child);
        [
            (Self::Data, data.has(Modes::STANDARD)),
            (Self::Children, child.has(Modes::STANDARD)),
            (Self::Persistent, both.has(Modes::PERSISTENT)),
            (Self::PersistentRecursive, both.has(Modes::RECURSIVE)),
        ]
        .into_iter()
        .filter_map(|(kind, is_set)| is_set.then_some(kind))
    }
}

impl std::fmt::Display for WatchKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A session with everything that belongs to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionReport {
    /// Its id.
    pub id: SessionId,
    /// Its negotiated timeout. Unit: milliseconds.
    pub timeout_ms: u32,
    /// When it expires unless its client sends a message, in milliseconds since the start.
    pub deadline_ms: u64,
    /// Its current connection.
    pub conn: Option<ConnId>,
    /// The scheme and id of the connection's identities, as whoAmI shows them: without passwords.
    pub identities: Vec<(&'static str, String)>,
    /// The paths of its ephemerals, oldest first.
    pub ephemerals: Vec<String>,
    /// Its watches, by path.
    pub watches: Vec<(String, WatchKind)>,
}

impl Engine {
    /// Reports every session, in the order of the table.
    pub fn session_reports(&self) -> impl Iterator<Item = SessionReport> {
        let sessions = self.state.sessions.iter();
        self.session_heads()
            .zip(sessions)
            .map(|(head, (_, session))| {
                let ephemerals = session.ephemerals.iter();
                let ephemerals = ephemerals.map(|(_, id)| text(self.state.tree[*id].path()));
                let watches = session.conn.map(|conn| self.watches_of(conn));
                SessionReport {
                    ephemerals: ephemerals.collect(),
                    watches: watches.unwrap_or_default(),
                    ..head
                }
            })
    }

    /// Does the same without ephemerals and watches.
    pub fn session_heads(&self) -> impl Iterator<Item = SessionReport> {
        let sessions = &self.state.sessions;
        sessions.iter().map(|(key, session)| SessionReport {
            id: session.id,
            timeout_ms: session.timeout_ms,
            deadline_ms: sessions.deadline_ms(key),
            conn: session.conn,
            identities: session
                .conn
                .map(|conn| self.identities(conn))
                .unwrap_or_default(),
            ephemerals: Vec::new(),
            watches: Vec::new(),
        })
    }

    /// Returns the scheme and id of a connection's identities, as whoAmI shows them.
    #[must_use]
    pub fn identities(&self, conn: ConnId) -> Vec<(&'static str, String)> {
        let Some(conn) = self.state.conns.announced(conn) else {
            return Vec::new();
        };
        let who = self.state.identities.get(conn.identities);
        let mut identities = vec![(Scheme::Ip.name(), ip::ip_identity(who.address))];
        identities.extend(who.added().iter().map(|identity| {
            let id = text(identity.id.as_bytes());
            let shown = match identity.scheme {
                // After the colon is a hash of the password.
                Scheme::Digest => id.split(':').next().unwrap_or_default().to_owned(),
                Scheme::Super => String::new(),
                _ => id,
            };
            (identity.scheme.name(), shown)
        }));
        identities
    }

    fn watches_of(&self, conn: ConnId) -> Vec<(String, WatchKind)> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let list = watches.conn_watches(conn).map(|id| {
            let watch = watches.at(id);
            (watch, watches.path(tree, watch.place))
        });
        let list = sorted(list).into_iter();
        list.map(|(path, kind)| (text(path), kind)).collect()
    }

    /// Returns whether a change at this path would fire a watch: one on it, or a recursive one on
    /// an ancestor.
    #[must_use]
    pub fn is_watched(&self, path: &str) -> bool {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let is_recursive = |place| {
            let ring = watches.ring(tree, place).unwrap_or_default();
            ring.into_iter()
                .map(|id| watches.at(id))
                .any(|watch| watch.data.has(Modes::RECURSIVE) && watches.conn_of(watch).is_some())
        };
        let place = |path| watches.place(tree, path);
        let is_at = |place: Place| {
            let ring = watches.ring(tree, place).unwrap_or_default();
            ring.into_iter()
                .any(|id| watches.conn_of(watches.at(id)).is_some())
        };
        place(path.as_bytes()).is_some_and(is_at)
            || ancestors(path).any(|path| place(path.as_bytes()).is_some_and(is_recursive))
    }

    /// Returns the first `max` watched paths, each kind of watch once. Reads every watch.
    #[must_use]
    pub fn watched_paths(&self, max: usize) -> Vec<(String, WatchKind)> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let alive = watches.iter(tree).filter_map(|(_, watch, path)| {
            watches.conn_of(watch)?;
            Some((watch, path))
        });
        let mut list = sorted(alive);
        list.dedup();
        let rows = list.into_iter().take(max);
        rows.map(|(path, kind)| (text(path), kind)).collect()
    }
}

/// The lease of a session, and the connection that renews it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionLease {
    /// Its negotiated timeout. Unit: milliseconds.
    pub timeout_ms: u32,
    /// When it expires unless its client sends a message, in milliseconds since the start.
    pub deadline_ms: u64,
    /// Its current connection.
    pub conn: Option<ConnId>,
}

/// Reads of single znodes and of parts of the tree, for reports that bound their own work.
impl Engine {
    /// Calls `visit` with each znode in `slots` slots of the tree from slot `from` on. Returns the
    /// slot to continue with; `None` at the end.
    ///
    /// Slots are reused, but a znode keeps its slot. So repeated calls visit every znode that exists
    /// during all of them.
    pub fn scan(
        &self,
        from: usize,
        slots: usize,
        mut visit: impl FnMut(&ZnodeImage<'_>),
    ) -> Option<usize> {
        let tree = &self.state.tree;
        let end = tree.slots_end();
        let next = from.saturating_add(slots).min(end);
        for znode in (from..next).filter_map(|slot| tree.slot(slot)) {
            visit(&image_of(znode));
        }
        (next < end).then_some(next)
    }

    /// Does the same with watches: calls `visit` with the session, the path and the kind of each.
    pub fn scan_watches(
        &self,
        from: usize,
        slots: usize,
        mut visit: impl FnMut(SessionId, &[u8], WatchKind),
    ) -> Option<usize> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let end = watches.slots_end();
        let next = from.saturating_add(slots).min(end);
        for watch in (from..next).filter_map(|slot| watches.slot(slot)) {
            let Some(conn) = watches.conn_of(watch) else {
                continue;
            };
            if let Some((session, _)) = self.session_of(conn) {
                let path = watches.path(tree, watch.place);
                WatchKind::of(watch).for_each(|kind| visit(session, path, kind));
            }
        }
        (next < end).then_some(next)
    }

    /// Returns the names of a znode's children, oldest first, without copying them. Empty if there
    /// is no such znode.
    pub fn child_names(&self, path: &str) -> impl Iterator<Item = &[u8]> {
        let tree = &self.state.tree;
        let children = tree.find(path.as_bytes()).map(|id| tree.children(id));
        children.into_iter().flatten().map(|id| tree[id].name())
    }

    /// Returns the sessions that watch exactly this path, in the order of registration. A session
    /// with several kinds of watch is returned once for each.
    pub fn watchers(&self, path: &str) -> impl Iterator<Item = (SessionId, WatchKind)> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let place = watches.place(tree, path.as_bytes());
        let head = place.map_or(WatchId::NONE, |place| watches.head(tree, place));
        self.watchers_from(head)
            .flat_map(|(session, watch)| WatchKind::of(watch).map(move |kind| (session, kind)))
    }

    /// Returns the sessions and watches of the ring with this head.
    fn watchers_from(&self, head: WatchId) -> impl Iterator<Item = (SessionId, &Watch)> {
        let watches = &self.state.watches;
        let first = (head != WatchId::NONE).then_some(head);
        let ring = std::iter::successors(first, move |id| {
            let next = watches.at(*id).path_next;
            (next != head).then_some(next)
        });
        ring.filter_map(|id| {
            let watch = watches.at(id);
            let (session, _) = self.session_of(watches.conn_of(watch)?)?;
            Some((session, watch))
        })
    }

    /// Returns, for the znode at this path and each of its ancestors, the sessions that watch it and
    /// everything below it.
    pub fn recursive_watchers(
        &self,
        path: &str,
    ) -> impl Iterator<Item = impl Iterator<Item = SessionId>> {
        let tree = &self.state.tree;
        let up = std::iter::successors(tree.find(path.as_bytes()), |id| {
            Some(tree[*id].parent).filter(|parent| *parent != ZnodeId::NONE)
        });
        up.map(|id| {
            let watchers = self.watchers_from(tree[id].watched);
            watchers
                .filter_map(|(session, watch)| watch.data.has(Modes::RECURSIVE).then_some(session))
        })
    }

    /// Returns whether there is any watch on a znode and everything below it.
    #[must_use]
    pub const fn has_recursive_watches(&self) -> bool {
        self.state.watches.recursive() > 0
    }

    /// Returns the lease of a session, if the session exists.
    #[must_use]
    pub fn session_lease(&self, id: SessionId) -> Option<SessionLease> {
        let sessions = &self.state.sessions;
        let key = sessions.find(id)?;
        let session = &sessions[key];
        Some(SessionLease {
            timeout_ms: session.timeout_ms,
            deadline_ms: sessions.deadline_ms(key),
            conn: session.conn,
        })
    }
}

/// Returns the ancestors of a path, the root last.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match (path.rfind('/')?, path.len()) {
        (0, 1) => None,
        (0, _) => Some("/"),
        (end, _) => Some(&path[..end]),
    })
    .skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_lead_to_the_root() {
        for (path, above) in [
            ("/", &[][..]),
            ("/a", &["/"]),
            ("/a/b/c", &["/a/b", "/a", "/"]),
            ("no path", &[]),
        ] {
            assert_eq!(ancestors(path).collect::<Vec<_>>(), above, "{path}");
        }
    }
}
