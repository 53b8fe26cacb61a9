//! The known differences to ZooKeeper. Nothing else is excused.

pub use minikeeper_core::replay::version::Version;

pub use crate::scenario::KnownDifferences;

/// A deliberate difference, or one that the protocol leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Releases before this version differ; `None` means all.
    before: Option<Version>,
    /// What ZooKeeper does.
    what: &'static str,
    /// The sections of `docs/zookeeper-protocol.md` about it.
    section: &'static str,
    /// How the tester handles it.
    handled: Handled,
}

/// How the tester handles a difference.
#[derive(Clone, Copy, Debug)]
enum Handled {
    /// It normalises the frames of both servers.
    OneForm(&'static str),
    /// Random histories avoid it; scenario cases about it are marked `since` or `deviates`.
    LeftOut,
}

const V3_8_2: Option<Version> = Some(Version::new(3, 8, 2));
const V3_9_0: Option<Version> = Some(Version::new(3, 9, 0));
const V3_9_2: Option<Version> = Some(Version::new(3, 9, 2));
const V3_9_3: Option<Version> = Some(Version::new(3, 9, 3));
const V3_9_4: Option<Version> = Some(Version::new(3, 9, 4));

const fn one_form(
    before: Option<Version>,
    what: &'static str,
    section: &'static str,
    how: &'static str,
) -> Known {
    Known {
        before,
        what,
        section,
        handled: Handled::OneForm(how),
    }
}

const fn left_out(before: Option<Version>, what: &'static str, section: &'static str) -> Known {
    Known {
        before,
        what,
        section,
        handled: Handled::LeftOut,
    }
}

/// Every difference that is excused.
pub const KNOWN: &[Known] = &[
    one_form(
        None,
        "each server has its own session ids and passwords",
        "6.6, 6.7",
        "ids are numbered in order of appearance; a password becomes a fixed text unless it is all zeros",
    ),
    one_form(
        None,
        "identities and ephemerals come in any order",
        "10.21, 10.23",
        "sorted",
    ),
    one_form(
        None,
        "the identities that replace auth in an access list come in any order",
        "9.1, 9.5",
        "adjacent entries of scheme digest with equal permissions are sorted",
    ),
    one_form(
        None,
        "the ephemerals of a session are deleted in any order",
        "14.6",
        "events of that step are compared as a set",
    ),
    one_form(
        None,
        "sessions expire, and containers and TTL znodes are deleted, in any order at the same deadline",
        "14.5, 15",
        "events of that step are compared as a set, and its zxids count as one",
    ),
    one_form(
        None,
        "a connection whose session expires may lose the events of that time",
        "14.5",
        "only the end of such a connection is compared",
    ),
    left_out(
        None,
        "auth and sasl overtake requests pipelined before them",
        "9.8, 9.10",
    ),
    left_out(
        None,
        "requests pipelined after a setACL are checked against the old list or the new one",
        "9.3",
    ),
    left_out(
        None,
        "invalid data in zookeeper_limits or zookeeper_stats stops the server permanently",
        "16",
    ),
    left_out(
        None,
        "an enforced quota may or may not count pipelined requests",
        "16",
    ),
    left_out(
        None,
        "a client's deleteContainer deletes any childless znode",
        "26",
    ),
    left_out(
        None,
        "a client's createSession is answered with a handshake",
        "26",
    ),
    left_out(
        None,
        "a createTTL without TTL flag and with a negative ttl stops the server permanently",
        "26",
    ),
    left_out(None, "addWatch takes a null path", "26"),
    one_form(
        V3_9_0,
        "event headers have the zxid -1",
        "23",
        "zxids of events are not compared",
    ),
    one_form(
        V3_8_2,
        "a create2 inside a multi is answered as a create",
        "23",
        "the type and the stat of such a result are not compared",
    ),
    left_out(
        V3_8_2,
        "flags and access lists that make a multi undecodable are errors of their operation",
        "23",
    ),
    left_out(
        V3_8_2,
        "a createContainer inside a multi obeys its flags",
        "23",
    ),
    left_out(
        V3_9_0,
        "of several watch modes on one path only the last one registered has effect",
        "23",
    ),
    left_out(V3_9_0, "watcher types 4 and 5 are unknown", "23"),
    left_out(
        V3_9_0,
        "removeWatches of one-shot watches also removes a persistent one",
        "12.7",
    ),
    left_out(
        V3_9_0,
        "checkWatches and removeWatches of a null path are internal errors",
        "23",
    ),
    left_out(
        V3_9_0,
        "checkWatches also finds the watches of other connections",
        "10.19",
    ),
    left_out(V3_9_0, "a write that does not decode uses up a zxid", "7.3"),
    left_out(V3_9_2, "exists needs no READ", "10.6, 23"),
    left_out(V3_9_3, "check outside a multi is not answered", "23"),
    left_out(V3_9_4, "IPv6 access lists are refused", "23"),
];

impl Known {
    /// Whether this version shows the difference.
    #[must_use]
    pub fn concerns(&self, version: Version) -> bool {
        self.before.is_none_or(|before| version < before)
    }
}

/// Formats the differences as a Markdown table: those of one version, or all.
#[must_use]
pub fn table(version: Option<Version>) -> String {
    let mut out =
        "| ZooKeeper | differs in | section | handled |\n| --- | --- | --- | --- |\n".to_owned();
    for known in KNOWN {
        if version.is_some_and(|version| !known.concerns(version)) {
            continue;
        }
        let before = known
            .before
            .map_or_else(|| "all".to_owned(), |before| format!("before {before}"));
        let handled = match known.handled {
            Handled::OneForm(how) => how,
            Handled::LeftOut => "not generated; cases about it are marked",
        };
        let (what, section) = (known.what, known.section);
        out += &format!("| {before} | {what} | {section} | {handled} |\n");
    }
    out
}

/// What random histories avoid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Avoid {
    /// Access lists and identities.
    pub acls: bool,
    /// Quotas.
    pub quotas: bool,
    /// Advancing the clock.
    pub time: bool,
    /// exists in histories with access lists.
    pub exists_with_acls: bool,
    /// Watches of several modes on one path of one connection.
    pub mixed_watch_modes: bool,
    /// Types 4 and 5 of checkWatches and removeWatches.
    pub watcher_types_4_5: bool,
    /// checkWatches.
    pub check_watches: bool,
    /// check outside a multi.
    pub check_alone: bool,
    /// Flags and access lists inside a multi that make it undecodable.
    pub odd_flags_in_multi: bool,
    /// Writes with a truncated body.
    pub broken_writes: bool,
    /// Access lists with IPv6 addresses.
    pub ipv6: bool,
}

impl Avoid {
    /// Returns what to avoid because this version behaves differently.
    #[must_use]
    pub fn for_version(version: Version) -> Self {
        let version = Some(version);
        Self {
            acls: false,
            quotas: false,
            time: false,
            exists_with_acls: version < V3_9_2,
            mixed_watch_modes: version < V3_9_0,
            watcher_types_4_5: version < V3_9_0,
            check_watches: version < V3_9_0,
            check_alone: version < V3_9_3,
            odd_flags_in_multi: version < V3_8_2,
            broken_writes: version < V3_9_0,
            ipv6: version < V3_9_4,
        }
    }
}
