//! The known mistakes: names and texts. `docs/advice.md` has a section for each.

use std::time::Duration;

/// A known mistake of clients.
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AdviceRule {
    /// Its name in lower case, with hyphens. Names do not change.
    pub name: &'static str,
    /// What the mistake is, in a phrase.
    pub title: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What to do instead.
    pub remedy: &'static str,
    /// The number of occurrences that make a finding, unless one of them did harm.
    pub(super) occurrences_min: u64,
}

impl AdviceRule {
    /// Every rule, in the order of reports.
    pub const ALL: &[Self] = &[
        Self {
            name: "unprotected-sequential",
            title: "sequential ephemeral whose name does not tell who created it",
            why: "if the reply is lost, the client does not know the number, and the znode blocks the queue until its \
                  session ends",
            remedy: "put a UUID into the name, and after a lost connection look for it among the children \
                     (Curator: withProtection)",
            occurrences_min: 1,
        },
        Self {
            name: "herd",
            title: "one release of a lock wakes several waiters",
            why: "all but one of them ask again in vain, so n waiters cost n requests for each release",
            remedy: "let each waiter watch only the znode before its own",
            occurrences_min: 1,
        },
        Self {
            name: "polling",
            title: "same read again and again, without a watch or a change",
            why: "it loads the server, and the client learns of a change late",
            remedy: "set a watch with the read, and read again when it fires",
            occurrences_min: 1,
        },
        Self {
            name: "large-list",
            title: "watched list of a znode with 1000 children or more",
            why: "each change of one child makes every watcher fetch the whole list, which must fit into a reply of 1 MB",
            remedy: "spread the children over several parents, or use one recursive watch (addWatch) and read what changed",
            occurrences_min: 1,
        },
        Self {
            name: "lost-update",
            title: "data read, then written without its version",
            why: "what another client wrote in between is lost",
            remedy: "pass the version of the read to setData, and start again after BADVERSION",
            occurrences_min: 5,
        },
        Self {
            name: "check-then-create",
            title: "exists, then create of what was missing",
            why: "another client can create it in between",
            remedy: "create at once, and take NODEEXISTS as the answer that it is there",
            occurrences_min: 1,
        },
        Self {
            name: "former-session",
            title: "ephemeral of a former session taken for one's own",
            why: "it disappears when that session expires, while the client believes to be registered",
            remedy: "after NODEEXISTS compare the znode's ephemeralOwner with the session: delete one's own old znode, or \
                     watch it and create again",
            occurrences_min: 1,
        },
        Self {
            name: "change-not-read",
            title: "told of a change that was never read",
            why: "a watch says that something changed, not what: the client works with old data",
            remedy: "read with getData and a watch when an event arrives, and use what that returns",
            occurrences_min: 1,
        },
        Self {
            name: "session-per-operation",
            title: "session opened for one operation",
            why: "opening and closing a session are two writes for the whole ensemble, besides the connection",
            remedy: "open one client per process and share it",
            occurrences_min: 1,
        },
        Self {
            name: "session-not-closed",
            title: "session left to expire",
            why: "its ephemerals, such as locks, stay until the timeout has passed",
            remedy: "close the client before the process ends",
            occurrences_min: 3,
        },
        Self {
            name: "watch-leak",
            title: "watches that never fire pile up in a session",
            why: "the server keeps each of them until the session ends, and the client sends all of them at a reconnect",
            remedy: "remove them with removeWatches, watch the parent, or use one recursive watch (addWatch)",
            occurrences_min: 1,
        },
        Self {
            name: "recreated-ephemeral",
            title: "ephemeral, or the parent of ephemerals, deleted and created again",
            why: "in between others see it gone: watches fire, locks are free, creates below it fail with NONODE",
            remedy: "change an ephemeral with setData; leave parents in place, or make them containers",
            occurrences_min: 1,
        },
        Self {
            name: "foreign-release",
            title: "ephemeral of another live session deleted",
            why: "its owner still believes to hold the lock, or to be registered",
            remedy: "delete only paths that one's own session created, and ask an owner to release",
            occurrences_min: 1,
        },
        Self {
            name: "large-data",
            title: "data of 512 KiB or more in a request",
            why: "servers and clients close the connection at 1 MB (jute.maxbuffer), and replicas copy and log all of it",
            remedy: "store large data elsewhere, and a reference in the znode",
            occurrences_min: 1,
        },
        Self {
            name: "recursive-delete",
            title: "tree deleted znode by znode",
            why: "others see it half deleted; a new child stops it with NOTEMPTY, and a crash leaves the rest",
            remedy: "delete it with one multi, in slices below 1 MB",
            occurrences_min: 1,
        },
    ];

    /// Returns the rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|rule| rule.name == name)
    }
}

/// The places of the rules in [`AdviceRule::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RuleId {
    UnprotectedSequential,
    Herd,
    Polling,
    LargeList,
    LostUpdate,
    CheckThenCreate,
    FormerSession,
    ChangeNotRead,
    SessionPerOperation,
    SessionNotClosed,
    WatchLeak,
    RecreatedEphemeral,
    ForeignRelease,
    LargeData,
    RecursiveDelete,
}

/// The number of contenders that a change must wake to be a herd; as in the report of locks.
pub(super) const WOKEN_MIN: u64 = 3;

/// The number of equal reads in a row that are polling.
pub(super) const POLLS_MIN: u64 = 10;

/// The number of children of a large list.
pub(super) const CHILDREN_MIN: u64 = 1_000;

/// The length of large data: half of ZooKeeper's default `jute.maxbuffer`. Unit: bytes.
pub(super) const DATA_BYTES_MIN: u64 = 512 << 10;

/// The most requests, besides opening and closing it, of a session that was opened for an operation.
pub(super) const OPERATION_REQUESTS_MAX: u64 = 3;

/// The number of sessions opened one after another for the same operation on the same path.
pub(super) const SHORT_SESSIONS_MIN: u64 = 10;

/// The numbers of watches of a session below one parent that are a leak: on znodes that are missing, on any.
pub(super) const MISSING_WATCHES_MIN: u64 = 100;
pub(super) const WATCHES_MIN: u64 = 1_000;

/// The numbers of times that a parent of ephemerals, and an ephemeral, is created again.
pub(super) const PARENTS_MIN: u64 = 3;
pub(super) const REFRESHES_MIN: u64 = 5;

/// The longest time from the delete of an ephemeral to its create that is a refresh. After more, a member left and came back.
pub(super) const AT_ONCE: Duration = Duration::from_millis(100);

/// The number of znodes that a recursive delete deletes one by one.
pub(super) const DELETES_MIN: u64 = 10;

/// The number of events of which a client reads none.
pub(super) const UNREAD_MIN: u64 = 2;
