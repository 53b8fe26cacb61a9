//! The undo list: every change since a multi began or a mark was set, to be taken back in reverse.
//!
//! Changes are made in place, so later operations of a multi see them without a second tree;
//! the list is what makes that safe. While there is neither multi nor mark, nothing is noted down.
//! What takes the changes back is in `rewinding.rs`.

use minikeeper_protocol::{SessionId, Zxid};

use crate::state::{
    keys::{AclId, SessionKey, ZnodeId},
    sessions::Session,
    watch_modes::Modes,
    znode::Znode,
};

/// One change, with what is needed to take it back.
#[derive(Debug)]
pub(crate) enum Undo {
    /// A znode was created.
    Created { id: ZnodeId, parent: Before },
    /// A znode was deleted. The entry keeps its share of its access list.
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
    /// The access list was set. The entry keeps the share of the one before.
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
    /// A session ended; it has lost its ephemerals and its connection.
    SessionEnded {
        key: SessionKey,
        session: Box<Session>,
    },
    /// A session's watch on a path was registered, used up or taken back.
    Watched {
        session: SessionId,
        path: Box<[u8]>,
        data: Modes,
        child: Modes,
    },
}

impl Undo {
    /// What it is counted with against `undo_bytes_max`.
    fn bytes(&self) -> usize {
        let behind = match self {
            Self::Created { .. } | Self::AclSet { .. } | Self::SessionOpened(_) => 0,
            Self::Deleted { znode, .. } => size_of::<Znode>() + znode.body_bytes(),
            Self::DataSet { data, .. } | Self::StatsWritten { data, .. } => {
                data.as_ref().map_or(0, |data| data.len())
            }
            Self::QuotaSwitched(path) | Self::Watched { path, .. } => path.len(),
            Self::SessionEnded { .. } => size_of::<Session>(),
        };
        size_of::<Self>() + behind
    }
}

impl Undo {
    /// The access list that the entry has a share of.
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

/// A state that can be gone back to, see [`crate::Engine::mark`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mark(pub(crate) u64);

/// The changes, and from where on they are needed.
#[derive(Debug, Default)]
pub(crate) struct UndoList {
    entries: Vec<Undo>,
    bytes: usize,
    /// Where the running multi began.
    multi_from: Option<usize>,
    /// What can be gone back to, oldest first, and how many entries there were then.
    marks: Vec<(Mark, usize)>,
    marks_made: u64,
    /// Whether changes are noted down.
    is_on: bool,
}

impl UndoList {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one byte looked at on every change")]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) const fn is_in_multi(&self) -> bool {
        self.multi_from.is_some()
    }

    /// Whether there is nothing to be gone back to, and nothing left over of what there was.
    pub(crate) fn is_clear(&self) -> bool {
        self.marks.is_empty() && self.entries.is_empty() && self.bytes == 0 && !self.is_on
    }

    pub(crate) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a change down, if that is wanted.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one byte looked at on every change")]
    pub(crate) fn note(&mut self, undo: impl FnOnce() -> Undo) {
        if self.is_on {
            self.push(undo());
        }
    }

    #[inline(never)]
    fn push(&mut self, undo: Undo) {
        self.bytes += undo.bytes();
        self.entries.push(undo);
    }

    fn pop(&mut self) -> Option<Undo> {
        let undo = self.entries.pop()?;
        self.bytes -= undo.bytes();
        Some(undo)
    }

    /// Gives the newest changes, newest first, down to this length.
    pub(crate) fn pop_beyond(&mut self, length: usize) -> Option<Undo> {
        if self.entries.len() > length {
            self.pop()
        } else {
            None
        }
    }

    // A multi.

    pub(crate) const fn begin_multi(&mut self) {
        self.multi_from = Some(self.entries.len());
        self.is_on = true;
    }

    /// The multi is over; says where it began.
    pub(crate) fn end_multi(&mut self) -> usize {
        let from = self.multi_from.take().unwrap_or(self.entries.len());
        self.is_on = self.has_marks();
        from
    }

    // Marks.

    pub(crate) fn mark(&mut self) -> Mark {
        self.marks_made += 1;
        let mark = Mark(self.marks_made);
        self.marks.push((mark, self.entries.len()));
        self.is_on = true;
        mark
    }

    /// Forgets the marks behind this one; says how many entries there were when it was set.
    pub(crate) fn back_to(&mut self, mark: Mark) -> Option<usize> {
        let at = self.marks.iter().position(|(other, _)| *other == mark)?;
        self.marks.truncate(at + 1);
        Some(self.marks[at].1)
    }

    /// Forgets a mark; whether it was there.
    pub(crate) fn forget(&mut self, mark: Mark) -> bool {
        let before = self.marks.len();
        self.marks.retain(|(other, _)| *other != mark);
        self.marks.len() < before
    }

    pub(crate) fn forget_all(&mut self) {
        self.marks.clear();
    }

    /// Takes over from the list of another state: a mark of that one means nothing here.
    pub(crate) const fn go_on_from(&mut self, other: &Self) {
        self.marks_made = other.marks_made;
    }

    /// Gives up the entries that no mark needs any more.
    pub(crate) fn shed(&mut self) -> Vec<Undo> {
        self.is_on = self.has_marks() || self.is_in_multi();
        let Some(&(_, needed_from)) = self.marks.first() else {
            self.bytes = 0;
            return std::mem::take(&mut self.entries);
        };
        let unneeded: Vec<_> = self.entries.drain(..needed_from).collect();
        self.bytes -= unneeded.iter().map(Undo::bytes).sum::<usize>();
        for (_, at) in &mut self.marks {
            *at -= needed_from;
        }
        unneeded
    }

    /// The access lists that entries have a share of.
    pub(crate) fn acls(&self) -> impl Iterator<Item = AclId> + '_ {
        self.entries.iter().filter_map(Undo::kept_acl)
    }

    /// Notes nothing down while this is so: what takes changes back makes changes itself.
    pub(crate) const fn pause(&mut self, is_paused: bool) {
        self.is_on = !is_paused;
    }
}
