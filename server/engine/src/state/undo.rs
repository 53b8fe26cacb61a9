//! The undo list: undoes a failed multi, or every change since a mark.
//!
//! Changes are made in place, so later operations of a multi see them without a second tree; the
//! list makes that safe. Without a multi and without a mark nothing is recorded. Rewinding to a
//! mark takes time in proportion to the changes since, not to the size of the tree.
//!
//! Restored: znodes with their stats, counters and access lists; sessions that have ended since,
//! each without a connection and with its full timeout; the watches of connected sessions. Removed:
//! sessions opened since. Kept: the time, the zxid (a client that has seen a newer one would be
//! refused), used session ids, connections and their identities, and watches registered since: their
//! clients wait for them.

use std::collections::{BTreeMap, VecDeque};

use minikeeper_protocol::{AclList, SessionId, Zxid};

use crate::{
    effects::{CloseReason, Effects},
    input::{ConnId, Now},
    state::{
        State,
        java_listing::EMPTY_TABLE_BITS,
        keys::{AclId, SessionKey, WatcherId, ZnodeId},
        sessions::Session,
        watches::Modes,
        znode::Znode,
    },
    work,
};

/// The number of entries and watches that no mark needs any more that one input removes.
const SHED_AT_ONCE: usize = 1_000;

/// One change, with the data needed to undo it.
#[derive(Debug)]
pub(crate) enum Undo {
    /// A znode was created.
    Created { id: ZnodeId, parent: Before },
    /// A znode was deleted. The entry keeps its use of the access list.
    Deleted {
        id: ZnodeId,
        znode: Box<Znode>,
        parent: Before,
    },
    /// Data was set.
    DataSet {
        id: ZnodeId,
        data: Option<Box<[u8]>>,
        version: i32,
        mzxid: Zxid,
        mtime_ms: i64,
    },
    /// The access list was set. The entry keeps the use of the previous list.
    AclSet {
        id: ZnodeId,
        acl: AclId,
        aversion: i32,
    },
    /// The counts of a quota were written into their znode.
    StatsWritten {
        id: ZnodeId,
        data: Option<Box<[u8]>>,
    },
    /// The quota of a path was switched on or off.
    QuotaSwitched(Box<[u8]>),
    /// A session was opened.
    SessionOpened(SessionKey),
    /// A session ended, after its ephemerals and its connection were removed.
    SessionEnded {
        key: SessionKey,
        session: Box<Session>,
    },
    /// A session's watch on a path was registered, fired or removed.
    Watched {
        session: SessionId,
        path: Box<[u8]>,
        data: Modes,
        child: Modes,
    },
    /// A session's connection ended, and left its watches to this watcher.
    WatchesLeft {
        session: SessionId,
        watcher: WatcherId,
    },
}

impl Undo {
    /// Returns its size as counted against `undo_bytes_max`.
    fn bytes(&self) -> usize {
        let boxed = match self {
            Self::Created { .. } | Self::AclSet { .. } | Self::SessionOpened(_)
            // What is kept of the watches is counted when it is kept.
            | Self::WatchesLeft { .. } => 0,
            Self::Deleted { znode, .. } => size_of::<Znode>() + znode.body_bytes(),
            Self::DataSet { data, .. } | Self::StatsWritten { data, .. } => {
                data.as_ref().map_or(0, |data| data.len())
            }
            Self::QuotaSwitched(path) | Self::Watched { path, .. } => path.len(),
            Self::SessionEnded { .. } => size_of::<Session>(),
        };
        size_of::<Self>() + boxed
    }
}

impl Undo {
    /// Returns the access list that the entry uses, if any.
    pub(crate) fn kept_acl(&self) -> Option<AclId> {
        match self {
            Self::Deleted { znode, .. } => Some(znode.acl),
            Self::AclSet { acl, .. } => Some(*acl),
            _ => None,
        }
    }
}

/// The counters of a parent before its children changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) pzxid: Zxid,
    pub(crate) created_children: i32,
    pub(crate) table_bits: Option<u8>,
}

/// What the watchers of a rewound state must learn.
#[derive(Debug, Default)]
pub(crate) struct Rewound {
    /// The paths that were touched, each with the znode that was there before the rewind. Empty if
    /// there were no watches.
    pub(crate) touched: BTreeMap<Box<[u8]>, Option<ZnodeBefore>>,
    /// The watches of the mark where they have changed since, to be registered again.
    watched: WatchesBefore,
}

/// In which modes, of data and of children, a session watched a path.
type WatchesBefore = BTreeMap<(SessionId, Box<[u8]>), (Modes, Modes)>;

/// A znode before a rewind.
#[derive(Debug)]
pub(crate) struct ZnodeBefore {
    pub(crate) czxid: Zxid,
    pub(crate) mzxid: Zxid,
    pub(crate) acl: AclList,
}

/// A state to rewind to, see [`crate::Engine::mark`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mark(pub(crate) u64);

/// A watch of a connection that has ended: its path and modes.
type LeftWatch = (Box<[u8]>, (Modes, Modes));

fn left_bytes(path: &[u8]) -> usize {
    size_of::<LeftWatch>() + path.len()
}

/// The recorded changes, with the positions of the running multi and of the marks.
#[derive(Debug, Default)]
pub(crate) struct UndoList {
    entries: VecDeque<Undo>,
    /// The number of entries that have been removed from the front. Places count from the first entry
    /// ever made, so that removing some changes no place.
    removed: usize,
    /// The watches of connections that have ended, as far as they have been removed from the table.
    left: BTreeMap<WatcherId, Vec<LeftWatch>>,
    /// Those that no entry needs any more.
    unneeded_left: Vec<Vec<LeftWatch>>,
    bytes: usize,
    /// The place at which the running multi began.
    multi_from: Option<usize>,
    /// The marks, oldest first, with the place of each.
    marks: Vec<(Mark, usize)>,
    marks_made: u64,
    /// Whether changes are recorded.
    is_on: bool,
}

impl UndoList {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "reads one byte on every change")]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) const fn is_in_multi(&self) -> bool {
        self.multi_from.is_some()
    }

    /// Returns whether there are no marks, and what is left of former ones is being removed.
    pub(crate) fn is_clear(&self) -> bool {
        let is_empty = self.entries.is_empty() && self.unneeded_left.is_empty();
        self.marks.is_empty()
            && !self.is_on
            && (!is_empty || self.left.is_empty() && self.bytes == 0)
    }

    pub(crate) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records a change, if changes are being recorded.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "reads one byte on every change")]
    pub(crate) fn note(&mut self, undo: impl FnOnce() -> Undo) {
        if self.is_on {
            self.push(undo());
        }
    }

    #[inline(never)]
    fn push(&mut self, undo: Undo) {
        self.bytes += undo.bytes();
        self.entries.push_back(undo);
    }

    fn pop(&mut self) -> Option<Undo> {
        let undo = self.entries.pop_back()?;
        self.bytes -= undo.bytes();
        Some(undo)
    }

    /// Returns the place of the next entry.
    fn end(&self) -> usize {
        self.removed + self.entries.len()
    }

    /// Removes and returns the newest change, unless it is before `place`.
    pub(crate) fn pop_beyond(&mut self, place: usize) -> Option<Undo> {
        if self.end() > place { self.pop() } else { None }
    }

    /// Keeps a watch of a connection that has ended, which is about to be removed from the table.
    pub(crate) fn keep_watch(&mut self, of: WatcherId, path: &[u8], modes: (Modes, Modes)) {
        self.bytes += left_bytes(path);
        self.left.entry(of).or_default().push((path.into(), modes));
    }

    /// Drops the watches that are kept of a connection that has ended, some at a time.
    fn drop_left(&mut self, watcher: WatcherId) {
        self.unneeded_left.extend(self.left.remove(&watcher));
    }

    // A multi.

    pub(crate) fn begin_multi(&mut self) {
        self.multi_from = Some(self.end());
        self.is_on = true;
    }

    /// Ends the multi. Returns the place at which it began.
    pub(crate) fn end_multi(&mut self) -> usize {
        let from = self.multi_from.take().unwrap_or_else(|| self.end());
        self.is_on = self.has_marks();
        from
    }

    // Marks.

    pub(crate) fn mark(&mut self) -> Mark {
        self.marks_made += 1;
        let mark = Mark(self.marks_made);
        self.marks.push((mark, self.end()));
        self.is_on = true;
        mark
    }

    /// Removes the marks after this one. Returns its place; `None` if it does not exist.
    pub(crate) fn back_to(&mut self, mark: Mark) -> Option<usize> {
        let at = self.marks.iter().position(|(other, _)| *other == mark)?;
        self.marks.truncate(at + 1);
        Some(self.marks[at].1)
    }

    /// Returns the changes since a mark, oldest first; `None` if it does not exist.
    pub(crate) fn since(&self, mark: Mark) -> Option<impl DoubleEndedIterator<Item = &Undo>> {
        let mut marks = self.marks.iter();
        let (_, at) = marks.find(|(other, _)| *other == mark)?;
        Some(self.entries.range(at - self.removed..))
    }

    /// Removes a mark. Returns whether it existed.
    pub(crate) fn forget(&mut self, mark: Mark) -> bool {
        let before = self.marks.len();
        self.marks.retain(|(other, _)| *other != mark);
        self.is_on = self.has_marks() || self.is_in_multi();
        self.marks.len() < before
    }

    pub(crate) fn forget_all(&mut self) {
        self.marks.clear();
        self.is_on = self.is_in_multi();
    }

    /// Continues the numbering of another state's list, so that its marks are not valid here.
    pub(crate) const fn go_on_from(&mut self, other: &Self) {
        self.marks_made = other.marks_made;
    }

    /// Returns whether there is something that no mark and no multi needs any more.
    pub(crate) fn has_unneeded(&self) -> bool {
        let first = self.marks.first().map(|(_, at)| *at);
        let needed_from = first.or(self.multi_from).unwrap_or_else(|| self.end());
        self.removed < needed_from || !self.unneeded_left.is_empty()
    }

    /// Removes and returns the oldest entry if it is not needed any more; else drops a watch that is
    /// not.
    fn pop_unneeded(&mut self) -> Option<Undo> {
        if let Some(left) = self.unneeded_left.last_mut() {
            match left.pop() {
                Some((path, _)) => self.bytes -= left_bytes(&path),
                None => drop(self.unneeded_left.pop()),
            }
            return None;
        }
        let undo = self.entries.pop_front()?;
        self.removed += 1;
        self.bytes -= undo.bytes();
        Some(undo)
    }

    /// Returns the access lists that entries use.
    pub(crate) fn acls(&self) -> impl Iterator<Item = AclId> + '_ {
        self.entries.iter().filter_map(Undo::kept_acl)
    }

    /// Pauses or resumes recording: undoing changes must not record changes.
    pub(crate) const fn pause(&mut self, is_paused: bool) {
        self.is_on = !is_paused;
    }
}

impl State {
    // A multi.

    /// Begins a multi: from here on changes are recorded.
    pub(crate) fn begin(&mut self) {
        self.undo.begin_multi();
        if self.settings.enforce_quota {
            self.quotas.begin_multi();
        }
    }

    fn end(&mut self) -> usize {
        self.quotas.end_multi();
        self.looks_ephemeral.clear();
        self.undo.end_multi()
    }

    /// Ends the multi, which has failed, and undoes its changes.
    pub(crate) fn roll_back(&mut self) {
        let from = self.end();
        self.take_back(from, Now::default(), None);
    }

    /// Ends the multi, which has succeeded, and keeps its changes.
    pub(crate) fn commit(&mut self) {
        let from = self.end();
        if self.undo.has_marks() {
            self.bound_undo();
            return;
        }
        while let Some(undo) = self.undo.pop_beyond(from) {
            self.release(&undo);
        }
    }

    // Marks.

    pub(crate) fn mark(&mut self) -> Mark {
        self.undo.mark()
    }

    /// Rewinds to a mark. `None` if the mark no longer exists. The caller sends the events, and then
    /// calls [`State::watch_again`].
    pub(crate) fn rewind(
        &mut self,
        mark: Mark,
        now: Now,
        effects: &mut impl Effects,
    ) -> Option<Rewound> {
        let length = self.undo.back_to(mark)?;
        let mut rewound = Rewound::default();
        for conn in self.take_back(length, now, Some(&mut rewound)) {
            effects.close(conn, CloseReason::Rewound);
        }
        // The state differs from the one with the last zxid, so its snapshot needs another name.
        self.next_zxid();
        self.schedule_cleanup(now);
        self.deadline_moved = true;
        Some(rewound)
    }

    /// Registers the watches of the mark again. Those that were registered since, and have fired for the
    /// rewind, are gone.
    pub(crate) fn watch_again(&mut self, mark: Mark, mut rewound: Rewound) {
        let Some(length) = self.undo.back_to(mark) else {
            return;
        };
        self.undo.pause(true);
        // Events change nothing but watches.
        let mut fired = WatchesBefore::new();
        while let Some(undo) = self.undo.pop_beyond(length) {
            match undo {
                Undo::Watched {
                    session,
                    path,
                    data,
                    child,
                } => {
                    fired.insert((session, path), (data, child));
                }
                other => self.release(&other),
            }
        }
        // Watches that had not changed since the mark are of the mark.
        for (watch, modes) in fired {
            rewound.watched.entry(watch).or_insert(modes);
        }
        for ((session, path), (data, child)) in rewound.watched {
            // A disconnected client registers its watches again when it reconnects.
            let session = self.sessions.find(session);
            if let Some(conn) = session.and_then(|key| self.sessions[key].conn) {
                let (more_data, more_child) = self.watches.modes(&self.tree, conn, &path);
                let (data, child) = (data.with(more_data), child.with(more_child));
                self.watches.set(&mut self.tree, conn, &path, data, child);
            }
        }
        self.undo.pause(!self.undo.has_marks());
    }

    /// Records the znode at a path before anything there is undone.
    fn note_before(&self, rewound: &mut Rewound, path: &[u8]) {
        if !self.watches.is_empty() && !rewound.touched.contains_key(path) {
            let before = self.tree.find(path).map(|id| {
                let znode = &self.tree[id];
                ZnodeBefore {
                    czxid: znode.czxid,
                    mzxid: znode.mzxid,
                    acl: self.acls.get(znode.acl).clone(),
                }
            });
            rewound.touched.insert(path.into(), before);
        }
    }

    /// Removes a mark. Returns whether it existed.
    pub(crate) fn forget_mark(&mut self, mark: Mark) -> bool {
        let was_there = self.undo.forget(mark);
        self.shed_undo();
        was_there
    }

    pub(crate) fn forget_marks(&mut self) {
        self.undo.forget_all();
        self.shed_undo();
    }

    /// Removes all marks if too much has changed since, to bound the memory.
    pub(crate) fn bound_undo(&mut self) {
        let bytes_max = self.settings.undo_bytes_max;
        if self.undo.bytes() <= bytes_max || self.undo.is_in_multi() {
            return;
        }
        // What marks need counts once the remains of former ones are gone.
        self.shed_undo();
        if self.undo.bytes() > bytes_max && !self.undo.has_unneeded() {
            self.forget_marks();
        }
    }

    /// Removes some of the entries that no mark needs any more. Ticks remove the others.
    pub(crate) fn shed_undo(&mut self) {
        for _ in 0..SHED_AT_ONCE {
            if !self.undo.has_unneeded() {
                return;
            }
            work::visit();
            if let Some(undo) = self.undo.pop_unneeded() {
                self.release(&undo);
            }
        }
        self.deadline_moved |= self.undo.has_unneeded();
    }

    /// Releases what a removed entry has kept.
    fn release(&mut self, undo: &Undo) {
        if let Some(acl) = undo.kept_acl() {
            self.acls.release(acl);
        }
        if let Undo::WatchesLeft { watcher, .. } = undo {
            self.undo.drop_left(*watcher);
            self.watches.release(*watcher);
        }
    }

    /// Adds the watches of a connection that has ended to those of the mark.
    fn restore_left(&mut self, session: SessionId, watcher: WatcherId, rewound: &mut Rewound) {
        let watches = &self.watches;
        for id in watches.watches_of(watcher) {
            let watch = watches.at(id);
            let path = watches.path(&self.tree, watch.place);
            let modes = (watch.data, watch.child);
            rewound.watched.insert((session, path.into()), modes);
        }
        for (path, modes) in self.undo.left.remove(&watcher).unwrap_or_default() {
            self.undo.bytes -= left_bytes(&path);
            rewound.watched.insert((session, path), modes);
        }
        self.watches.release(watcher);
    }

    /// Undoes changes, newest first, down to this length. Returns the connections whose session
    /// this has removed.
    fn take_back(
        &mut self,
        length: usize,
        now: Now,
        mut rewound: Option<&mut Rewound>,
    ) -> Vec<ConnId> {
        self.undo.pause(true);
        let mut unopened = Vec::new();
        while let Some(undo) = self.undo.pop_beyond(length) {
            if let Some(rewound) = rewound.as_deref_mut() {
                match &undo {
                    Undo::Created { id, .. } | Undo::DataSet { id, .. } => {
                        self.note_before(rewound, self.tree[*id].path());
                    }
                    Undo::Deleted { znode, .. } => self.note_before(rewound, znode.path()),
                    _ => {}
                }
            }
            match undo {
                Undo::Created { id, parent } => self.uncreate(id, parent),
                Undo::Deleted { id, znode, parent } => {
                    let parent_id = znode.parent;
                    // The undo list has kept the znode's use of its access list.
                    let restored = self.tree.restore(*znode);
                    assert_eq!(
                        restored, id,
                        "undone in reverse order, a znode gets its index back"
                    );
                    self.remember_owner(id);
                    self.watches.adopt(&mut self.tree, id);
                    self.restore_counters(parent_id, parent);
                }
                Undo::DataSet {
                    id,
                    data,
                    version,
                    mzxid,
                    mtime_ms,
                } => {
                    let znode = self.tree.set_data(id, data.as_deref());
                    (znode.version, znode.mzxid, znode.mtime_ms) = (version, mzxid, mtime_ms);
                }
                Undo::AclSet { id, acl, aversion } => {
                    let znode = &mut self.tree[id];
                    znode.aversion = aversion;
                    let before = std::mem::replace(&mut znode.acl, acl);
                    self.acls.release(before);
                }
                Undo::StatsWritten { id, data } => {
                    self.tree.set_data(id, data.as_deref());
                }
                Undo::QuotaSwitched(subject) => {
                    if !self.quotas.switch_off(&subject) {
                        self.quotas.switch_on(&subject);
                    }
                }
                Undo::SessionOpened(key) => unopened.extend(self.unopen(key)),
                Undo::SessionEnded { key, session } => {
                    let restored = self.sessions.restore(*session, now);
                    assert_eq!(
                        restored, key,
                        "undone in reverse order, a session gets its index back"
                    );
                }
                Undo::Watched {
                    session,
                    path,
                    data,
                    child,
                } => {
                    // Not before the events are sent, and of several changes only the oldest. No multi
                    // changes watches.
                    if let Some(rewound) = rewound.as_deref_mut() {
                        rewound.watched.insert((session, path), (data, child));
                    }
                }
                Undo::WatchesLeft { session, watcher } => {
                    // Unused by a multi, which ends no connection.
                    let mut unused = Rewound::default();
                    let rewound = rewound.as_deref_mut().unwrap_or(&mut unused);
                    self.restore_left(session, watcher, rewound);
                }
            }
        }
        self.undo.pause(!self.undo.has_marks());
        unopened
    }

    fn uncreate(&mut self, id: ZnodeId, parent: Before) {
        self.watches.orphan(&mut self.tree, id);
        let znode = self.tree.remove(id);
        self.forget_owner(id, &znode);
        self.acls.release(znode.acl);
        self.restore_counters(znode.parent, parent);
    }

    fn unopen(&mut self, key: SessionKey) -> Option<ConnId> {
        let conn = self.sessions[key].conn;
        if let Some(conn) = conn {
            self.detach(conn);
        }
        self.sessions.close(key);
        conn
    }

    fn restore_counters(&mut self, parent: ZnodeId, before: Before) {
        let family = self.tree[parent].family_mut();
        family.pzxid = before.pzxid;
        family.created_children = before.created_children;
        family.table_bits = before.table_bits.unwrap_or(EMPTY_TABLE_BITS);
    }
}
