//! What the entries so far say of sessions, znodes and watches: what several rules need.

use std::{
    collections::BTreeMap,
    mem,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use minikeeper_protocol::{CreateMode, ErrorCode, EventKind, OpCode, SessionId};

use crate::advice::step::{ClientStep, EntryHead, Request, parent_of};

/// The maximum number of items in a table.
const ITEMS_MAX: usize = 1 << 16;

/// What is known of a session. Numbers are those of entries; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientFacts {
    pub(super) ip: Option<IpAddr>,
    pub(super) timeout: Duration,
    /// The entry that opened it.
    pub(super) opened: u64,
    pub(super) is_connected: bool,
    /// The entry at which its client left it without closing it, and when.
    pub(super) left: u64,
    pub(super) left_at: Duration,
    /// The number of requests, without pings and the end.
    pub(super) requests: u64,
    /// The last of them before the current one.
    pub(super) last: u64,
}

/// What is known of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathFacts {
    /// The session that owns it, if it is an ephemeral that is there.
    pub(super) owner: Option<SessionId>,
    pub(super) is_sequential_ephemeral: bool,
    /// The number of children that the journal proves.
    pub(super) children: u64,
    pub(super) has_had_ephemerals: bool,
    /// The last change of its data, or create or delete of it, and who did it.
    pub(super) changed: u64,
    pub(super) changed_by: Option<SessionId>,
    pub(super) children_changed: u64,
    /// Its last delete that no create has followed, and who did it.
    pub(super) deleted: u64,
    pub(super) deleted_by: Option<SessionId>,
    pub(super) deleted_at: Duration,
}

/// What a session knows of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UseFacts {
    /// Whether it has read the data.
    pub(super) has_read: bool,
    /// The first event whose change it has not read.
    pub(super) unread: u64,
    /// The one-shot watch that is set, and whether on nothing.
    pub(super) watch: u64,
    watches_nothing: bool,
    /// Its watches on children.
    pub(super) below: WatchCounts,
}

/// The watches of a session on the children of a path: all, those on nothing, and the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchCounts {
    pub(super) all: u64,
    pub(super) on_nothing: u64,
    pub(super) first: u64,
}

/// What the entries so far say.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The first entry.
    pub(super) first: u64,
    sessions: FactTable<ClientFacts>,
    /// The ephemerals that each session created.
    ephemerals: FactTable<Vec<String>>,
    paths: FactTable<PathFacts>,
    uses: FactTable<UseFacts>,
}

impl ClientFacts {
    pub(super) fn ip_text(&self) -> String {
        let ip = self.ip.map(|ip| ip.to_string());
        ip.unwrap_or_else(|| "this process".to_owned())
    }
}

impl UseFacts {
    /// Returns whether the session has read the data, and was notified of a change that it has not read.
    pub(super) const fn is_outdated(&self) -> bool {
        self.unread > 0 && self.has_read
    }
}

impl WatchCounts {
    fn remove(&mut self, is_on_nothing: bool) {
        self.all = self.all.saturating_sub(1);
        self.on_nothing = self.on_nothing.saturating_sub(u64::from(is_on_nothing));
    }
}

#[inline(never)]
pub(super) fn use_key(session: SessionId, path: &str) -> String {
    format!("{session} {path}")
}

impl Facts {
    pub(super) fn session(&self, session: SessionId) -> ClientFacts {
        let facts = self.sessions.find(&session.to_string());
        facts.copied().unwrap_or_default()
    }

    pub(super) fn path(&self, path: &str) -> PathFacts {
        self.paths.find(path).copied().unwrap_or_default()
    }

    /// Returns whether an entry is about this path.
    pub(super) fn knows(&self, path: &str) -> bool {
        self.paths.find(path).is_some()
    }

    pub(super) fn using(&self, session: SessionId, path: &str) -> UseFacts {
        let facts = self.uses.find(&use_key(session, path));
        facts.copied().unwrap_or_default()
    }

    #[inline(never)]
    pub(super) fn session_mut(&mut self, session: SessionId) -> &mut ClientFacts {
        self.sessions.of(&session.to_string())
    }

    #[inline(never)]
    fn using_mut(&mut self, session: SessionId, path: &str) -> &mut UseFacts {
        self.uses.of(&use_key(session, path))
    }

    /// Forgets the tree, with the watches on it.
    pub(super) fn forget_tree(&mut self) {
        self.paths.clear();
        self.uses.clear();
    }

    /// A session sent something, or its connection was accepted.
    pub(super) fn hear(
        &mut self,
        session: SessionId,
        address: Option<SocketAddr>,
    ) -> &mut ClientFacts {
        let facts = self.session_mut(session);
        facts.is_connected = true;
        facts.ip = address.map(|it| it.ip()).or(facts.ip);
        facts
    }

    /// A session ended. Returns the ephemerals that it created. Some may be gone.
    pub(super) fn end(&mut self, session: SessionId) -> Vec<String> {
        self.session_mut(session).is_connected = false;
        mem::take(self.ephemerals.of(&session.to_string()))
    }

    /// A session read data, a list or a stat. Returns its watches below the parent if the read added one.
    pub(super) fn read(&mut self, at: EntryHead, request: &Request<'_>) -> Option<WatchCounts> {
        let path = request.path;
        let is_own = self.paths.of(path).owner == Some(at.session);
        let place = self.using_mut(at.session, path);
        if request.op == Some(OpCode::GetData) && request.error.is_none() {
            (place.has_read, place.unread) = (true, 0);
        }
        let is_missing = request.error == Some(ErrorCode::NoNode);
        // getData and getChildren leave no watch on what is missing.
        let is_set = request.error.is_none() || is_missing && request.op == Some(OpCode::Exists);
        // One's own znode ends with the session.
        if is_own || !request.watch || !is_set {
            return None;
        }
        // What is read again is in use.
        let (old, old_is_on_nothing) = (place.watch, place.watches_nothing);
        (place.watch, place.watches_nothing) = (at.number, is_missing);
        let below = &mut self.using_mut(at.session, parent_of(path)).below;
        if old > 0 {
            below.remove(old_is_on_nothing);
        }
        if below.all == 0 {
            below.first = at.number;
        }
        below.all += 1;
        below.on_nothing += u64::from(is_missing);
        Some(*below)
    }

    /// A watch fired.
    pub(super) fn fire(&mut self, at: EntryHead, kind: EventKind, path: &str) {
        let is_foreign = self.paths.of(path).changed_by != Some(at.session);
        let place = self.using_mut(at.session, path);
        let watch = mem::take(&mut place.watch);
        let is_on_nothing = place.watches_nothing;
        if kind == EventKind::DataChanged && is_foreign && place.unread == 0 {
            place.unread = at.number;
        }
        if watch > 0 {
            let above = self.using_mut(at.session, parent_of(path));
            above.below.remove(is_on_nothing);
        }
    }

    /// A create found the znode there.
    pub(super) fn find_there(&mut self, path: &str) {
        self.paths.of(path);
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, at: EntryHead, change: ClientStep<'_>) {
        let (number, by) = (at.number, Some(at.session));
        match change {
            ClientStep::SetData { path, .. } => {
                self.using_mut(at.session, path).unread = 0;
                self.change(number, by, path);
            }
            ClientStep::Delete { path, .. } => {
                self.remove(number, by, path);
                let facts = self.paths.of(path);
                (facts.deleted, facts.deleted_by, facts.deleted_at) = (number, by, at.time);
            }
            ClientStep::Create(path, mode) => {
                let above = self.paths.of(parent_of(path));
                above.children += 1;
                above.children_changed = number;
                above.has_had_ephemerals |= mode.is_ephemeral();
                let facts = self.change(number, by, path);
                facts.owner = by.filter(|_| mode.is_ephemeral());
                facts.is_sequential_ephemeral = mode == CreateMode::EphemeralSequential;
                facts.children = 0;
                if facts.deleted > 0 {
                    (facts.deleted, facts.has_had_ephemerals) = (0, false);
                }
                if mode.is_ephemeral() {
                    let ephemerals = self.ephemerals.of(&at.session.to_string());
                    ephemerals.push(path.to_owned());
                }
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn change(&mut self, number: u64, by: Option<SessionId>, path: &str) -> &mut PathFacts {
        let facts = self.paths.of(path);
        (facts.changed, facts.changed_by) = (number, by);
        facts
    }

    /// A znode is gone.
    #[inline(never)]
    pub(super) fn remove(&mut self, number: u64, by: Option<SessionId>, path: &str) {
        let facts = self.change(number, by, path);
        (facts.owner, facts.children) = (None, 0);
        let above = self.paths.of(parent_of(path));
        above.children = above.children.saturating_sub(1);
        above.children_changed = number;
    }

    /// Returns the size of the largest table.
    #[cfg(test)]
    pub(super) fn items(&self) -> usize {
        self.paths.items.len().max(self.uses.items.len())
    }
}

/// Facts by a key. One that is full forgets all: no rule needs a fact that is missing.
#[derive(Debug, Default)]
pub(super) struct FactTable<T> {
    places: BTreeMap<String, usize>,
    pub(super) items: Vec<T>,
}

impl<T: Default> FactTable<T> {
    /// Returns the facts of this key, if there are any.
    #[inline(never)]
    pub(super) fn find(&self, key: &str) -> Option<&T> {
        find(&self.places, key).map(|place| &self.items[place])
    }

    /// Returns the facts of this key.
    #[inline(never)]
    pub(super) fn of(&mut self, key: &str) -> &mut T {
        let place = find(&self.places, key).unwrap_or_else(|| {
            if self.items.len() >= ITEMS_MAX {
                self.clear();
            }
            self.items.push(T::default());
            let place = self.items.len() - 1;
            insert(&mut self.places, key, place);
            place
        });
        &mut self.items[place]
    }

    /// Forgets all.
    #[inline(never)]
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

// One copy of the map's code, whatever the facts are. Nothing here is in the way of a request: small rather than fast.
#[inline(never)]
fn find(places: &BTreeMap<String, usize>, key: &str) -> Option<usize> {
    places.get(key).copied()
}

#[inline(never)]
fn insert(places: &mut BTreeMap<String, usize>, key: &str, place: usize) {
    places.insert(key.to_owned(), place);
}
