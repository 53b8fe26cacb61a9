//! What a pass over a journal remembers of sessions, of paths, and of what a session did with a path.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use minikeeper_protocol::SessionId;

use crate::advice::held_locks::HeldLock;

/// The maximum number of items in a table.
const ITEMS_MAX: usize = 1 << 16;

/// Facts by a key. One that is full forgets all: no rule needs a fact that is missing.
#[derive(Debug)]
pub(super) struct FactTable<T> {
    places: BTreeMap<String, usize>,
    pub(super) items: Vec<T>,
}

impl<T: Default> FactTable<T> {
    pub(super) const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            items: Vec::new(),
        }
    }

    /// Returns the facts of this key, if there are any.
    #[inline(never)]
    pub(super) fn find(&mut self, key: &str) -> Option<&mut T> {
        find(&self.places, key).map(|place| &mut self.items[place])
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
        self.places = BTreeMap::new();
        self.items.clear();
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

/// What is known of a session. Numbers are those of entries; 0 for none.
#[derive(Debug, Default)]
pub(super) struct ClientFacts {
    pub(super) ip: Option<IpAddr>,
    pub(super) timeout: Duration,
    /// The entry that opened it.
    pub(super) opened: u64,
    pub(super) is_connected: bool,
    /// The entry at which its client left it without closing it, and when.
    pub(super) left: u64,
    pub(super) left_at: Duration,
    /// The request whose reply a fault loses.
    pub(super) reply_lost: u64,
    /// Whether a fault acted on it.
    pub(super) is_faulted: bool,
    pub(super) has_recursive_watch: bool,
    /// Whether it has set a watch.
    pub(super) has_watched: bool,
    /// The number of requests, without pings and the end.
    pub(super) requests: u64,
    /// The first of them: its entry, operation and path.
    pub(super) first: u64,
    pub(super) first_op: &'static str,
    pub(super) first_path: String,
    /// Its last request, its last change, its last sync.
    pub(super) last: u64,
    pub(super) wrote: u64,
    pub(super) synced: u64,
    /// The ephemerals that it created. Some may be gone.
    pub(super) ephemerals: Vec<String>,
    /// Whether it may hold locks that are not known, because the journal does not have all entries.
    pub(super) may_hold: bool,
    /// The number of those that the server deleted when the session ended.
    pub(super) removed: u64,
}

/// What is known of a path.
#[derive(Debug, Default)]
pub(super) struct PathFacts {
    /// The session that owns it, if it is an ephemeral that is there; the one that did so last.
    pub(super) owner: Option<SessionId>,
    pub(super) is_sequential_ephemeral: bool,
    /// The number of children that the journal proves.
    pub(super) children: u64,
    pub(super) has_had_ephemerals: bool,
    /// The last change of its data, or create or delete of it, and who did it.
    pub(super) changed: u64,
    pub(super) changed_by: Option<SessionId>,
    pub(super) children_changed: u64,
    /// Its last delete, and who did it.
    pub(super) deleted: u64,
    pub(super) deleted_by: Option<SessionId>,
    pub(super) deleted_at: Duration,
    /// How often it was created again, as a parent of ephemerals or as an ephemeral.
    pub(super) recreated: u64,
    /// Whether several sessions try to create it.
    pub(super) has_rivals: bool,
    /// The last session that read, then wrote it without a version; that saw it missing, then created it.
    pub(super) rewritten_by: Option<SessionId>,
    /// The locks that every session held which did so; `None` if none did.
    pub(super) rewritten_under: Option<Vec<String>>,
    pub(super) checked_by: Option<SessionId>,
    /// The last operation for which sessions were opened, and how many in a row.
    pub(super) short_op: &'static str,
    pub(super) short_sessions: u64,
    /// The change that sent events, the contenders that it woke, and the first event.
    pub(super) woken_zxid: i64,
    pub(super) woken: u64,
    pub(super) woken_first: u64,
}

/// What a session did with a path.
#[derive(Debug, Default)]
pub(super) struct UseFacts {
    /// The last getData that succeeded and was not followed by a write.
    pub(super) read: u64,
    /// The locks that it held at that time.
    pub(super) locks: Vec<HeldLock>,
    /// Whether it has read the data.
    pub(super) has_read: bool,
    /// The last exists that found nothing.
    pub(super) missing: u64,
    /// Whether it tried to create it and was late.
    pub(super) was_late: bool,
    /// The number of sequential ephemerals that it has below it, and whether those of a reader.
    pub(super) contends: u64,
    pub(super) is_reader: bool,
    /// Equal reads in a row: operation, result, number, first and last.
    pub(super) polled: &'static str,
    pub(super) polled_result: &'static str,
    pub(super) polls: u64,
    pub(super) poll_first: u64,
    pub(super) poll_last: u64,
    /// The one-shot watch that is set, and whether on nothing.
    pub(super) watch: u64,
    pub(super) watches_nothing: bool,
    /// The first event whose change it has not read, and how often it has set a watch with exists since.
    pub(super) unread: u64,
    pub(super) rewatched: u64,
    /// The znodes below it that it deleted one by one, and the first.
    pub(super) deleted: u64,
    pub(super) deleted_first: u64,
    /// The watches that it has on children, those on nothing, and the first.
    pub(super) watches: u64,
    pub(super) watches_on_nothing: u64,
    pub(super) watch_first: u64,
}
