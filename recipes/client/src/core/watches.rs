//! The watches of a session: who waits for what, what the server has to be told.
//!
//! The server keeps one watch for a connection, path and table, however many wait for it here; so
//! firing reaches all of them, and only the last one that leaves takes the server's watch away.
//!
//! Source: reference sections 12.1 to 12.9; `ZKWatchManager` of the original's client.

use std::collections::BTreeMap;

use minikeeper_protocol::{EventKind, Request, Ustring, WatcherType, Zxid};

/// A message that registers watches again holds no more than this, apart from a longer path, so
/// that it stays far below what servers take. Unit: bytes.
const AGAIN_BYTES_MAX: usize = 128 << 10;

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

    /// Whether it shares the server's watch with the other kind.
    const fn shares_with(self, other: Self) -> bool {
        self.watcher_type() as u8 == other.watcher_type() as u8
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

#[derive(Debug, Default)]
struct Place {
    waiters: Vec<WatchToken>,
    /// Requests on their way that will leave a watch here.
    registering: u32,
}

/// Every watch of the session.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// Ordered, so that what is sent after a reconnect is the same each time.
    places: BTreeMap<(WatchKind, Ustring), Place>,
    persistent: usize,
}

/// Who hears of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// One-shot watches that have ended with it.
    pub(crate) ended: Vec<WatchToken>,
    /// Persistent watches, which go on.
    pub(crate) going_on: Vec<WatchToken>,
}

impl Watches {
    /// A request that will leave a watch was sent. It may turn out to be another kind of the same
    /// server's watch (exists finds the znode or does not).
    pub(crate) fn announce(&mut self, kind: WatchKind, path: &Ustring) {
        self.place(kind, path).registering += 1;
    }

    /// The request came back, or never will; `left` is the watch it has left.
    ///
    /// Says whether the server now keeps a watch nobody here waits for.
    pub(crate) fn settle(
        &mut self,
        announced: WatchKind,
        path: &Ustring,
        left: Option<(WatchKind, Option<WatchToken>)>,
    ) -> bool {
        if let Some(place) = self.places.get_mut(&(announced, path.clone())) {
            place.registering -= 1;
        }
        if let Some((kind, Some(token))) = left {
            self.place(kind, path).waiters.push(token);
            self.persistent += usize::from(!kind.is_one_shot());
        }
        self.forget_if_empty(announced, path);
        matches!(left, Some((kind, None)) if !self.is_wanted(kind, path))
    }

    /// Nobody waits for this watch any more. Says whether the server can forget it.
    pub(crate) fn leave(&mut self, kind: WatchKind, path: &Ustring, token: WatchToken) -> bool {
        let Some(place) = self.places.get_mut(&(kind, path.clone())) else {
            return false;
        };
        let before = place.waiters.len();
        place.waiters.retain(|other| *other != token);
        let has_left = place.waiters.len() < before;
        if has_left {
            self.persistent -= usize::from(!kind.is_one_shot());
        }
        self.forget_if_empty(kind, path);
        has_left && !self.is_wanted(kind, path)
    }

    /// An event has come for this path.
    pub(crate) fn fire(&mut self, event: EventKind, path: &Ustring) -> Fired {
        let mut fired = Fired::default();
        for kind in [WatchKind::Data, WatchKind::Exist, WatchKind::Child] {
            if kind.ends_with(event)
                && let Some(place) = self.places.get_mut(&(kind, path.clone()))
            {
                fired.ended.append(&mut place.waiters);
                self.forget_if_empty(kind, path);
            }
        }
        if self.persistent > 0 {
            self.fire_persistent(event, path, &mut fired);
        }
        fired
    }

    fn fire_persistent(&self, event: EventKind, path: &Ustring, fired: &mut Fired) {
        if let Some(place) = self.places.get(&(WatchKind::Persistent, path.clone())) {
            fired.going_on.extend(&place.waiters);
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
            if let Some(place) = self.places.get(&(WatchKind::PersistentRecursive, ancestor)) {
                fired.going_on.extend(&place.waiters);
            }
        }
    }

    /// Every watch, for registering again.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WatchKind, &Ustring)> {
        self.places
            .iter()
            .filter(|(_, place)| !place.waiters.is_empty())
            .map(|((kind, path), _)| (*kind, path))
    }

    /// The session is over, and all its watches with it.
    pub(crate) fn end(&mut self) -> Vec<WatchToken> {
        self.persistent = 0;
        let mut ended = Vec::new();
        self.places.retain(|_, place| {
            ended.append(&mut place.waiters);
            place.registering > 0
        });
        ended
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn place(&mut self, kind: WatchKind, path: &Ustring) -> &mut Place {
        self.places.entry((kind, path.clone())).or_default()
    }

    /// Whether somebody waits for the server's watch, or soon will.
    fn is_wanted(&self, kind: WatchKind, path: &Ustring) -> bool {
        const KINDS: [WatchKind; 5] = [
            WatchKind::Data,
            WatchKind::Exist,
            WatchKind::Child,
            WatchKind::Persistent,
            WatchKind::PersistentRecursive,
        ];
        KINDS
            .into_iter()
            .filter(|other| other.shares_with(kind))
            .any(|other| self.places.contains_key(&(other, path.clone())))
    }

    fn forget_if_empty(&mut self, kind: WatchKind, path: &Ustring) {
        let key = (kind, path.clone());
        if let Some(place) = self.places.get(&key)
            && place.waiters.is_empty()
            && place.registering == 0
        {
            self.places.remove(&key);
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
        // Its future was dropped meanwhile: now nobody wants what the server keeps.
        let left = Some((WatchKind::Data, None));
        assert!(watches.settle(WatchKind::Data, &"/a".into(), left));
        assert!(watches.is_empty());
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
