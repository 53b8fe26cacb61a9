//! The watches of a session: which callers wait for what, and what the server has registered.
//!
//! The server keeps one watch for a connection, path and table, however many wait for it here; so
//! firing reaches all of them, and only the last one that leaves takes the server's watch away.
//!
//! Source: `docs/zookeeper-protocol.md` sections 12.1 to 12.9; `ZKWatchManager` of ZooKeeper's
//! client.

use std::{collections::BTreeMap, time::Duration};

use minikeeper_protocol::{EventKind, Request, Ustring, WatcherType, Zxid};
use smallvec::SmallVec;

use super::{
    backoff::{Chance, Pauses},
    outcome::Time,
};

/// A message that registers watches again holds no more than this, apart from a longer path, so
/// that it stays far below what servers take. Unit: bytes.
const AGAIN_BYTES_MAX: usize = 128 << 10;

/// The waits before a removal that the server refused is sent again.
const PAUSES: Pauses = Pauses {
    min: Duration::from_millis(20),
    max: Duration::from_secs(5),
};

/// What a watch looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum WatchKind {
    /// A znode that is there: its data, its deletion.
    Data,
    /// A znode that is not there: its creation.
    Exist,
    /// A znode's children, and its deletion.
    Child,
    /// Everything about a znode and its children, until removed.
    Persistent,
    /// Everything about a znode and all below it, until removed.
    PersistentRecursive,
}

impl WatchKind {
    pub(crate) const fn is_one_shot(self) -> bool {
        matches!(self, Self::Data | Self::Exist | Self::Child)
    }

    /// Under which name the server forgets it.
    pub(crate) const fn watcher_type(self) -> WatcherType {
        match self {
            Self::Data | Self::Exist => WatcherType::Data,
            Self::Child => WatcherType::Children,
            Self::Persistent => WatcherType::Persistent,
            Self::PersistentRecursive => WatcherType::PersistentRecursive,
        }
    }

    /// The kind that stands for all kinds that share one watch on the server.
    const fn table(self) -> Self {
        match self {
            Self::Exist => Self::Data,
            kind => kind,
        }
    }

    /// Whether a one-shot watch of this kind ends with such an event.
    const fn ends_with(self, event: EventKind) -> bool {
        matches!(
            (self, event),
            (
                Self::Data | Self::Exist,
                EventKind::Created | EventKind::Deleted | EventKind::DataChanged
            ) | (Self::Child, EventKind::ChildrenChanged | EventKind::Deleted)
        )
    }
}

/// The number the shell knows a watch by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct WatchToken(pub(crate) u32);

/// The watch of one path in one table of the server.
#[derive(Debug, Default)]
struct ServerWatch {
    waiters: SmallVec<[(WatchKind, WatchToken); 1]>,
    /// Registrations on their way.
    registering: u32,
    /// Whether the server may keep the watch: a registration has left it, and neither an event nor
    /// a removal has ended it since.
    is_kept: bool,
}

impl ServerWatch {
    fn is_wanted(&self) -> bool {
        !self.waiters.is_empty() || self.registering > 0
    }

    fn tokens(&self) -> impl Iterator<Item = WatchToken> {
        self.waiters.iter().map(|(_, token)| *token)
    }
}

/// Every watch of the session.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// By table and path. Ordered, so that what is sent after a reconnect is the same each time.
    watches: BTreeMap<(WatchKind, Ustring), ServerWatch>,
    persistent: usize,
    /// Removals that the server refused, to be sent again.
    refused: BTreeMap<(WatchKind, Ustring), Refused>,
}

/// A removal that the server refused.
#[derive(Clone, Copy, Debug)]
struct Refused {
    count: u32,
    /// When it is sent again; `None` while it is on its way.
    due: Option<Time>,
}

/// The watches that an event fires.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FiredWatches {
    /// One-shot watches that have ended with it.
    pub(crate) ended: Vec<WatchToken>,
    /// Persistent watches, which go on.
    pub(crate) going_on: Vec<WatchToken>,
}

impl Watches {
    /// Notes that a request was sent that will leave a watch. It may turn out to be another kind of
    /// the same server's watch (exists finds the znode or does not).
    pub(crate) fn announce(&mut self, kind: WatchKind, path: &Ustring) {
        self.watch(kind, path).registering += 1;
    }

    /// Ends a registration: its request was answered, or never will be. `left` is the watch that
    /// it has left, with its waiter if there still is one.
    ///
    /// Returns whether the server keeps a watch that has no waiter any more and is to be removed.
    #[must_use]
    pub(crate) fn settle(
        &mut self,
        announced: WatchKind,
        path: &Ustring,
        left: Option<(WatchKind, Option<WatchToken>)>,
    ) -> bool {
        let watch = self.watch(announced, path);
        watch.registering = watch.registering.saturating_sub(1);
        if let Some((kind, token)) = left {
            watch.is_kept = true;
            if let Some(token) = token {
                watch.waiters.push((kind, token));
                self.persistent += usize::from(!kind.is_one_shot());
            }
        }
        self.release(announced, path)
    }

    /// Takes a waiter away. Returns whether the server keeps the watch without need, as
    /// [`Watches::settle`] does.
    #[must_use]
    pub(crate) fn leave(&mut self, kind: WatchKind, path: &Ustring, token: WatchToken) -> bool {
        let Some(watch) = self.watches.get_mut(&(kind.table(), path.clone())) else {
            return false;
        };
        let before = watch.waiters.len();
        watch.waiters.retain(|(_, other)| *other != token);
        if watch.waiters.len() < before {
            self.persistent -= usize::from(!kind.is_one_shot());
        }
        self.release(kind, path)
    }

    /// Ends the one-shot watches that an event for this path ends, and says who hears of it.
    pub(crate) fn fire(&mut self, event: EventKind, path: &Ustring) -> FiredWatches {
        let mut fired = FiredWatches::default();
        for kind in [WatchKind::Data, WatchKind::Child] {
            if kind.ends_with(event)
                && let Some(watch) = self.watches.get_mut(&(kind, path.clone()))
            {
                let waiters = watch.waiters.drain(..);
                fired.ended.extend(waiters.map(|(_, token)| token));
                watch.is_kept = false;
                self.release(kind, path);
            }
        }
        if self.persistent > 0 {
            self.fire_persistent(event, path, &mut fired);
        }
        fired
    }

    /// Starts a new connection, on which the server keeps the watches that are registered again and
    /// no others.
    pub(crate) fn reconnected(&mut self) {
        self.refused.clear();
        for watch in self.watches.values_mut() {
            watch.is_kept = !watch.waiters.is_empty();
        }
    }

    /// Notes what became of the removal of a watch: the server has done it, or refused it with an
    /// error that may pass. One that is still without waiters is sent again after a pause.
    pub(crate) fn removal_answered(
        &mut self,
        now: Time,
        kind: WatchKind,
        path: &Ustring,
        is_refused: bool,
        chance: &mut Chance,
    ) {
        let key = (kind.table(), path.clone());
        if !is_refused {
            self.refused.remove(&key);
        } else if let Some(watch) = self.watches.get_mut(&key) {
            // It has waiters again, or will have: the last one who leaves removes it.
            watch.is_kept = true;
            self.refused.remove(&key);
        } else {
            let refused = self.refused.entry(key).or_insert(Refused {
                count: 0,
                due: None,
            });
            refused.due = Some(now + PAUSES.after(refused.count, chance));
            refused.count = refused.count.saturating_add(1);
        }
    }

    /// How many removals the server has refused, and not done since.
    pub(crate) fn removals_refused(&self) -> usize {
        self.refused.len()
    }

    /// When a refused removal is sent again.
    pub(crate) fn next_removal(&self) -> Option<Time> {
        self.refused
            .values()
            .filter_map(|refused| refused.due)
            .min()
    }

    /// The refused removals that are to be sent now.
    pub(crate) fn due_removals(&mut self, now: Time) -> Vec<(WatchKind, Ustring)> {
        let mut due = Vec::new();
        self.refused.retain(|key, refused| {
            if refused.due.is_none_or(|due| due > now) {
                return true;
            }
            refused.due = None;
            if let Some(watch) = self.watches.get_mut(key) {
                watch.is_kept = true;
                return false;
            }
            due.push(key.clone());
            true
        });
        due
    }

    fn fire_persistent(&self, event: EventKind, path: &Ustring, fired: &mut FiredWatches) {
        if let Some(watch) = self.watches.get(&(WatchKind::Persistent, path.clone())) {
            fired.going_on.extend(watch.tokens());
        }
        // Recursive watches see creation, deletion and data below them, but no lists of children.
        if event == EventKind::ChildrenChanged {
            return;
        }
        let bytes = path.as_bytes();
        let ends = (0..bytes.len())
            .filter(|&at| bytes[at] == b'/')
            .map(|at| at.max(1));
        let mut last = 0;
        for end in ends.chain([bytes.len()]) {
            if end == last {
                continue;
            }
            last = end;
            let ancestor = Ustring::from(path.clone().into_bytes().slice(..end));
            if let Some(watch) = self
                .watches
                .get(&(WatchKind::PersistentRecursive, ancestor))
            {
                fired.going_on.extend(watch.tokens());
            }
        }
    }

    /// Every watch that has waiters, for registering again.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WatchKind, &Ustring)> {
        self.watches.iter().flat_map(|((table, path), watch)| {
            let kinds = match table {
                WatchKind::Data => &[WatchKind::Data, WatchKind::Exist][..],
                table => std::slice::from_ref(table),
            };
            let is_waited_for = |kind: &&WatchKind| watch.waiters.iter().any(|it| it.0 == **kind);
            let kinds = kinds.iter().filter(is_waited_for);
            kinds.map(move |kind| (*kind, path))
        })
    }

    /// Ends every watch, with its session.
    pub(crate) fn end(&mut self) -> Vec<WatchToken> {
        self.persistent = 0;
        self.refused.clear();
        let mut ended = Vec::new();
        self.watches.retain(|_, watch| {
            ended.extend(watch.waiters.drain(..).map(|(_, token)| token));
            watch.is_kept = false;
            watch.registering > 0
        });
        ended
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    fn watch(&mut self, kind: WatchKind, path: &Ustring) -> &mut ServerWatch {
        self.watches
            .entry((kind.table(), path.clone()))
            .or_default()
    }

    /// Forgets a watch that is not wanted any more. Returns whether the server keeps its watch.
    fn release(&mut self, kind: WatchKind, path: &Ustring) -> bool {
        let key = (kind.table(), path.clone());
        match self.watches.get(&key) {
            Some(watch) if !watch.is_wanted() => {
                let is_kept = watch.is_kept;
                self.watches.remove(&key);
                is_kept
            }
            _ => false,
        }
    }
}

/// The messages that register every watch on a new connection. The server fires at once what has
/// happened since `last_zxid`.
///
/// The older message is used where it can say everything: servers before 3.6 know no other.
pub(crate) fn register_again(watches: &Watches, last_zxid: Zxid) -> Vec<Request> {
    let mut messages = Vec::new();
    let mut lists: [Vec<Ustring>; 5] = Default::default();
    let mut bytes = 0;
    for (kind, path) in watches.iter() {
        if bytes > 0 && bytes + path.as_bytes().len() > AGAIN_BYTES_MAX {
            messages.push(message(std::mem::take(&mut lists), last_zxid));
            bytes = 0;
        }
        bytes += path.as_bytes().len();
        lists[kind as usize].push(path.clone());
    }
    if bytes > 0 {
        messages.push(message(lists, last_zxid));
    }
    messages
}

fn message(
    [data, exist, child, persistent, persistent_recursive]: [Vec<Ustring>; 5],
    relative_zxid: Zxid,
) -> Request {
    if persistent.is_empty() && persistent_recursive.is_empty() {
        return Request::SetWatches {
            relative_zxid,
            data,
            exist,
            child,
        };
    }
    Request::SetWatches2 {
        relative_zxid,
        data,
        exist,
        child,
        persistent,
        persistent_recursive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WatchToken = WatchToken(1);
    const B: WatchToken = WatchToken(2);

    fn registered(watches: &mut Watches, kind: WatchKind, path: &str, token: WatchToken) {
        let path = Ustring::from(path);
        watches.announce(kind, &path);
        assert!(!watches.settle(kind, &path, Some((kind, Some(token)))));
    }

    #[test]
    fn event_ends_every_one_shot_watch_of_its_table() {
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        registered(&mut watches, WatchKind::Data, "/a", B);
        registered(&mut watches, WatchKind::Child, "/a", WatchToken(3));
        let fired = watches.fire(EventKind::DataChanged, &"/a".into());
        assert_eq!(fired.ended, [A, B]);
        let fired = watches.fire(EventKind::Deleted, &"/a".into());
        assert_eq!(fired.ended, [WatchToken(3)]);
        assert!(watches.is_empty());
    }

    #[test]
    fn last_one_who_leaves_takes_the_servers_watch_away() {
        // Hazard H40: one removal on the wire takes away what two wait for.
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        registered(&mut watches, WatchKind::Exist, "/a", B);
        assert!(!watches.leave(WatchKind::Data, &"/a".into(), A));
        assert!(watches.leave(WatchKind::Exist, &"/a".into(), B));
        assert!(!watches.leave(WatchKind::Exist, &"/a".into(), B));
    }

    #[test]
    fn watch_is_not_taken_away_under_a_registration_on_its_way() {
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        watches.announce(WatchKind::Data, &"/a".into());
        assert!(!watches.leave(WatchKind::Data, &"/a".into(), A));
        // The future was dropped in between: the server's watch is no longer needed.
        let left = Some((WatchKind::Data, None));
        assert!(watches.settle(WatchKind::Data, &"/a".into(), left));
        assert!(watches.is_empty());
    }

    #[test]
    fn failed_registration_does_not_leave_the_watch_it_was_kept_for() {
        // The last waiter left while another registration was on its way, so the watch stayed; then
        // that registration was refused, and no client removed the watch.
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        watches.announce(WatchKind::Data, &"/a".into());
        assert!(!watches.leave(WatchKind::Data, &"/a".into(), A));
        assert!(watches.settle(WatchKind::Data, &"/a".into(), None));
        assert!(watches.is_empty());
    }

    #[test]
    fn refused_removal_is_due_again_unless_the_watch_is_wanted_again() {
        let mut watches = Watches::default();
        let mut chance = Chance::new(1);
        let now = Duration::from_secs(1);
        let path = Ustring::from("/a");
        for _ in 0..20 {
            watches.removal_answered(now, WatchKind::Exist, &path, true, &mut chance);
            let due = watches.next_removal().unwrap();
            assert!((PAUSES.min / 2..=PAUSES.max).contains(&(due - now)));
            assert_eq!(watches.due_removals(now), []);
            assert_eq!(watches.due_removals(due), [(WatchKind::Data, path.clone())]);
            assert_eq!(watches.next_removal(), None, "it is on its way");
        }
        watches.removal_answered(now, WatchKind::Exist, &path, true, &mut chance);
        let due = watches.next_removal().unwrap();
        watches.announce(WatchKind::Data, &path);
        assert_eq!(watches.due_removals(due), []);
        assert_eq!(watches.next_removal(), None);
        assert!(
            watches.settle(WatchKind::Data, &path, None),
            "it is still kept"
        );
    }

    #[test]
    fn recursive_watch_hears_of_everything_below_but_no_lists() {
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::PersistentRecursive, "/", A);
        registered(&mut watches, WatchKind::PersistentRecursive, "/a", B);
        registered(&mut watches, WatchKind::Persistent, "/a/b", WatchToken(3));
        let fired = watches.fire(EventKind::Created, &"/a/b".into());
        assert_eq!(fired.going_on, [WatchToken(3), A, B]);
        let fired = watches.fire(EventKind::ChildrenChanged, &"/a/b".into());
        assert_eq!(fired.going_on, [WatchToken(3)]);
        let fired = watches.fire(EventKind::Created, &"/ab".into());
        assert_eq!(fired.going_on, [A]);
        let fired = watches.fire(EventKind::DataChanged, &"/".into());
        assert_eq!(fired.going_on, [A]);
    }
}
