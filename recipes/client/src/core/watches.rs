//! The watches of a session: the callers that wait, and the watches that the server has registered.
//!
//! The server keeps one watch per connection, path and table, for any number of waiters here. So an
//! event reaches all of them, and only the last waiter that leaves removes the server's watch.
//!
//! Source: `docs/zookeeper-protocol.md` sections 12.1 to 12.9; `ZKWatchManager` of ZooKeeper's
//! client.

use std::{collections::BTreeMap, time::Duration};

use minikeeper_protocol::{EventKind, Request, Ustring, WatcherType, Zxid};
use smallvec::SmallVec;

use super::{
    backoff::{Chance, Pauses},
    outcome::Time,
    schedule::Schedule,
};

/// The largest message that registers watches again, except for a single longer path. It stays far
/// below the limit of servers. Unit: bytes.
const AGAIN_BYTES_MAX: usize = 128 << 10;

/// The waits before a refused removal is sent again.
const PAUSES: Pauses = Pauses {
    min: Duration::from_millis(20),
    max: Duration::from_secs(5),
};

/// The events to which a watch reacts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum WatchKind {
    /// Change of data and deletion of an existing znode.
    Data,
    /// Creation of a missing znode.
    Exist,
    /// Change of a znode's children, and its deletion.
    Child,
    /// All events of a znode, including changes of its list of children, until removed.
    Persistent,
    /// All events of a znode and those below it, until removed.
    PersistentRecursive,
}

impl WatchKind {
    pub(crate) const fn is_one_shot(self) -> bool {
        matches!(self, Self::Data | Self::Exist | Self::Child)
    }

    /// Returns the type under which the server removes the watch.
    pub(crate) const fn watcher_type(self) -> WatcherType {
        match self {
            Self::Data | Self::Exist => WatcherType::Data,
            Self::Child => WatcherType::Children,
            Self::Persistent => WatcherType::Persistent,
            Self::PersistentRecursive => WatcherType::PersistentRecursive,
        }
    }

    /// Returns the kind that represents all kinds that share one watch on the server.
    const fn table(self) -> Self {
        match self {
            Self::Exist => Self::Data,
            kind => kind,
        }
    }

    /// Returns whether this event ends a one-shot watch of this kind.
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

/// The number by which the rest of the client identifies a watch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct WatchToken(pub(crate) u32);

/// The watch of one path in one table of the server.
#[derive(Debug, Default)]
struct ServerWatch {
    waiters: SmallVec<[(WatchKind, WatchToken); 1]>,
    /// Pending registrations.
    registering: u32,
    /// Whether the server may keep the watch: a registration created it, and neither an event nor a
    /// removal has ended it since.
    is_kept: bool,
    /// The server's zxid when it last registered the watch; 0 on a later connection. An event of an
    /// older change, which arrives late, does not end the watch.
    registered_at: Zxid,
}

impl ServerWatch {
    fn is_wanted(&self) -> bool {
        !self.waiters.is_empty() || self.registering > 0
    }

    fn tokens(&self) -> impl Iterator<Item = WatchToken> {
        self.waiters.iter().map(|(_, token)| *token)
    }
}

/// All watches of the session.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// By table and path. Sorted, so that a reconnect sends the same messages each time.
    watches: BTreeMap<(WatchKind, Ustring), ServerWatch>,
    persistent: usize,
    /// Removals that the server refused, to be sent again, and how often it has refused each.
    refused: BTreeMap<(WatchKind, Ustring), u32>,
    /// When they are sent again. Those that are pending are absent.
    refused_due: Schedule<(WatchKind, Ustring)>,
    /// How many removals of each watch are pending.
    removing: BTreeMap<(WatchKind, Ustring), u32>,
}

/// The watches that an event fires.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FiredWatches {
    /// One-shot watches, which the event ends.
    pub(crate) ended: Vec<WatchToken>,
    /// Persistent watches, which continue.
    pub(crate) lasting: Vec<WatchToken>,
    /// The tables in which the server keeps a watch although nobody waits for it any more: it must be
    /// removed.
    pub(crate) kept: Vec<WatchKind>,
}

impl Watches {
    /// Records that a request will register a watch. Its kind may turn out to be another one of the
    /// same table (`exists` finds the znode or does not).
    pub(crate) fn announce(&mut self, kind: WatchKind, path: &Ustring) {
        self.watch(kind, path).registering += 1;
    }

    /// Ends a registration: its request got its reply, or never will. `left` is the watch that it
    /// created, with its waiter if there still is one, and the zxid of the reply.
    ///
    /// Returns whether the server keeps a watch that no longer has a waiter and must be removed.
    #[must_use]
    pub(crate) fn settle(
        &mut self,
        announced: WatchKind,
        path: &Ustring,
        left: Option<(WatchKind, Option<WatchToken>, Zxid)>,
    ) -> bool {
        let watch = self.watch(announced, path);
        watch.registering = watch.registering.saturating_sub(1);
        if let Some((kind, token, zxid)) = left {
            watch.is_kept = true;
            watch.registered_at = zxid;
            if let Some(token) = token {
                watch.waiters.push((kind, token));
                self.persistent += usize::from(!kind.is_one_shot());
            }
        }
        self.release(announced, path)
    }

    /// Removes a waiter. Returns whether the server keeps a watch that must be removed, as
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

    /// Ends the one-shot watches that this event ends, and returns all watches that it fires. `zxid`
    /// is that of the change; not above 0 if it is not known.
    pub(crate) fn fire(&mut self, event: EventKind, path: &Ustring, zxid: Zxid) -> FiredWatches {
        let mut fired = FiredWatches::default();
        for kind in [WatchKind::Data, WatchKind::Child] {
            if kind.ends_with(event)
                && let Some(watch) = self.watches.get_mut(&(kind, path.clone()))
            {
                let waiters = watch.waiters.drain(..);
                fired.ended.extend(waiters.map(|(_, token)| token));
                watch.is_kept &= zxid.0 > 0 && watch.registered_at >= zxid;
                if self.release(kind, path) {
                    fired.kept.push(kind);
                }
            }
        }
        if self.persistent > 0 {
            self.fire_persistent(event, path, &mut fired);
        }
        fired
    }

    /// Handles a new connection, on which the server keeps only the watches that are registered
    /// again.
    pub(crate) fn reconnected(&mut self) {
        self.refused.clear();
        self.refused_due.clear();
        self.removing.clear();
        for watch in self.watches.values_mut() {
            watch.is_kept = !watch.waiters.is_empty();
            watch.registered_at = Zxid(0);
        }
    }

    /// Handles the reply to the removal of a watch: the server has removed it, or refused
    /// temporarily. If the watch still has no waiters, the removal is sent again after a pause.
    pub(crate) fn removal_answered(
        &mut self,
        now: Time,
        kind: WatchKind,
        path: &Ustring,
        is_refused: bool,
        chance: &mut Chance,
    ) {
        let key = (kind.table(), path.clone());
        if let Some(count) = self.removing.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.removing.remove(&key);
            }
        }
        let watch = self.watches.get_mut(&key).filter(|_| is_refused);
        if is_refused && watch.is_none() {
            let count = self.refused.entry(key.clone()).or_default();
            self.refused_due
                .set(key, now + PAUSES.after(*count, chance));
            *count = count.saturating_add(1);
            return;
        }
        if let Some(watch) = watch {
            // It has waiters again, or will have: the last one that leaves removes it.
            watch.is_kept = true;
        }
        self.refused.remove(&key);
        self.refused_due.remove(&key);
    }

    /// Records that the removal of a watch was sent.
    pub(crate) fn removal_sent(&mut self, kind: WatchKind, path: &Ustring) {
        let key = (kind.table(), path.clone());
        *self.removing.entry(key).or_default() += 1;
    }

    /// Returns whether the server may have a watch that this event fires.
    pub(crate) fn expects(&self, event: EventKind, path: &Ustring) -> bool {
        let has = |kind: WatchKind, path: &Ustring| {
            let key = (kind, path.clone());
            self.watches.contains_key(&key)
                || self.removing.contains_key(&key)
                || self.refused.contains_key(&key)
        };
        let one_shot = [WatchKind::Data, WatchKind::Child];
        one_shot
            .into_iter()
            .any(|kind| kind.ends_with(event) && has(kind, path))
            || has(WatchKind::Persistent, path)
            || ancestors(path).any(|path| has(WatchKind::PersistentRecursive, &path))
    }

    /// Returns how many removals the server has refused and not done since.
    pub(crate) fn removals_refused(&self) -> usize {
        self.refused.len()
    }

    /// Returns when the next refused removal is due.
    pub(crate) fn next_removal(&self) -> Option<Time> {
        self.refused_due.next()
    }

    /// Returns the refused removals to send now.
    pub(crate) fn due_removals(&mut self, now: Time) -> Vec<(WatchKind, Ustring)> {
        let mut due = self.refused_due.take_due(now);
        due.retain(|key| {
            let Some(watch) = self.watches.get_mut(key) else {
                return true;
            };
            watch.is_kept = true;
            self.refused.remove(key);
            false
        });
        due
    }

    fn fire_persistent(&self, event: EventKind, path: &Ustring, fired: &mut FiredWatches) {
        if let Some(watch) = self.watches.get(&(WatchKind::Persistent, path.clone())) {
            fired.lasting.extend(watch.tokens());
        }
        // Recursive watches get creation, deletion and data events below them, but no child events.
        if event == EventKind::ChildrenChanged {
            return;
        }
        for ancestor in ancestors(path) {
            if let Some(watch) = self
                .watches
                .get(&(WatchKind::PersistentRecursive, ancestor))
            {
                fired.lasting.extend(watch.tokens());
            }
        }
    }

    /// Returns the persistent watches that have waiters.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = WatchToken> {
        let is_lasting =
            |((table, _), _): &(&(WatchKind, Ustring), &ServerWatch)| !table.is_one_shot();
        let lasting = self.watches.iter().filter(is_lasting);
        lasting.flat_map(|(_, watch)| watch.tokens())
    }

    /// Returns all watches that have waiters, to register them again.
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

    /// Ends all watches, with their session.
    pub(crate) fn end(&mut self) -> Vec<WatchToken> {
        self.persistent = 0;
        self.refused.clear();
        self.refused_due.clear();
        self.removing.clear();
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

    /// Drops a watch that is no longer wanted. Returns whether the server keeps its watch.
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

/// Returns the root, the znodes between it and this path, and the path.
fn ancestors(path: &Ustring) -> impl Iterator<Item = Ustring> {
    let bytes = path.clone().into_bytes();
    (1..=bytes.len()).filter_map(move |end| {
        let is_end = end == 1 || bytes.get(end).is_none_or(|byte| *byte == b'/');
        is_end.then(|| Ustring::from(bytes.slice(..end)))
    })
}

/// Returns the messages that register all watches on a new connection. The server at once fires
/// those whose znodes have changed since `last_zxid`.
///
/// Uses the older message where it suffices: servers before 3.6 know only that one.
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
        assert!(!watches.settle(kind, &path, Some((kind, Some(token), Zxid(1)))));
    }

    #[test]
    fn event_ends_every_one_shot_watch_of_its_table() {
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        registered(&mut watches, WatchKind::Data, "/a", B);
        registered(&mut watches, WatchKind::Child, "/a", WatchToken(3));
        let fired = watches.fire(EventKind::DataChanged, &"/a".into(), Zxid(2));
        assert_eq!(fired.ended, [A, B]);
        let fired = watches.fire(EventKind::Deleted, &"/a".into(), Zxid(2));
        assert_eq!(fired.ended, [WatchToken(3)]);
        assert!(watches.is_empty());
    }

    #[test]
    fn late_event_leaves_the_watch_that_was_registered_after_its_change() {
        let path = Ustring::from("/a");
        for (zxid, kept) in [(9, true), (10, true), (11, false), (0, false), (-1, false)] {
            let mut watches = Watches::default();
            watches.announce(WatchKind::Exist, &path);
            let left = Some((WatchKind::Exist, Some(A), Zxid(10)));
            assert!(!watches.settle(WatchKind::Exist, &path, left));
            let fired = watches.fire(EventKind::Created, &path, Zxid(zxid));
            assert_eq!(fired.ended, [A], "zxid {zxid}");
            assert_eq!(fired.kept == [WatchKind::Data], kept, "zxid {zxid}");
            assert!(watches.is_empty());
        }
        // On the next connection the server registers it again, from the zxid that the client saw.
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        watches.reconnected();
        let fired = watches.fire(EventKind::DataChanged, &path, Zxid(1));
        assert_eq!((fired.ended, fired.kept), (vec![A], vec![]));
    }

    #[test]
    fn only_the_last_waiter_that_leaves_removes_the_servers_watch() {
        // Hazard H40: one removal on the wire removes the watch of two waiters.
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        registered(&mut watches, WatchKind::Exist, "/a", B);
        assert!(!watches.leave(WatchKind::Data, &"/a".into(), A));
        assert!(watches.leave(WatchKind::Exist, &"/a".into(), B));
        assert!(!watches.leave(WatchKind::Exist, &"/a".into(), B));
    }

    #[test]
    fn watch_is_not_removed_during_another_registration() {
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        watches.announce(WatchKind::Data, &"/a".into());
        assert!(!watches.leave(WatchKind::Data, &"/a".into(), A));
        // The future was dropped meanwhile: the server's watch is no longer needed.
        let left = Some((WatchKind::Data, None, Zxid(1)));
        assert!(watches.settle(WatchKind::Data, &"/a".into(), left));
        assert!(watches.is_empty());
    }

    #[test]
    fn failed_registration_removes_the_watch_that_was_kept_for_it() {
        // The last waiter left during another registration, so the watch was kept; then that
        // registration was refused, and nothing removed the watch.
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::Data, "/a", A);
        watches.announce(WatchKind::Data, &"/a".into());
        assert!(!watches.leave(WatchKind::Data, &"/a".into(), A));
        assert!(watches.settle(WatchKind::Data, &"/a".into(), None));
        assert!(watches.is_empty());
    }

    #[test]
    fn refused_removal_is_retried_unless_the_watch_is_wanted_again() {
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
            assert_eq!(watches.next_removal(), None, "it is pending");
        }
        watches.removal_answered(now, WatchKind::Exist, &path, true, &mut chance);
        let due = watches.next_removal().unwrap();
        watches.announce(WatchKind::Data, &path);
        assert_eq!(watches.due_removals(due), []);
        assert_eq!(watches.next_removal(), None);
        assert!(
            watches.settle(WatchKind::Data, &path, None),
            "the server still keeps it"
        );
    }

    #[test]
    fn recursive_watch_gets_all_events_below_except_child_events() {
        let mut watches = Watches::default();
        registered(&mut watches, WatchKind::PersistentRecursive, "/", A);
        registered(&mut watches, WatchKind::PersistentRecursive, "/a", B);
        registered(&mut watches, WatchKind::Persistent, "/a/b", WatchToken(3));
        let fired = watches.fire(EventKind::Created, &"/a/b".into(), Zxid(2));
        assert_eq!(fired.lasting, [WatchToken(3), A, B]);
        let fired = watches.fire(EventKind::ChildrenChanged, &"/a/b".into(), Zxid(2));
        assert_eq!(fired.lasting, [WatchToken(3)]);
        let fired = watches.fire(EventKind::Created, &"/ab".into(), Zxid(2));
        assert_eq!(fired.lasting, [A]);
        let fired = watches.fire(EventKind::DataChanged, &"/".into(), Zxid(2));
        assert_eq!(fired.lasting, [A]);
    }
}
