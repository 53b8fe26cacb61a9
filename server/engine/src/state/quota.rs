//! Quotas: limits in znodes below `/zookeeper/quota`, and the usage counted against them.
//!
//! The quota of `/a` is the znode `/zookeeper/quota/a/zookeeper_limits`; the server counts the
//! usage in its sibling `zookeeper_stats`. For a path only the deepest quota at or above it counts.
//!
//! Source: `docs/zookeeper-protocol.md` section 16; ZooKeeper's `Quotas`, `StatsTrack`, `DataTree`,
//! `checkQuota`.

use std::collections::{BTreeMap, BTreeSet};

use minikeeper_protocol::{ErrorCode, path};

use crate::{
    report::inspect::Room,
    state::{
        keys::ZnodeId,
        tree::{QUOTA, Tree},
        undo::{Undo, UndoList},
    },
};

const LIMITS: &[u8] = b"zookeeper_limits";
const STATS: &[u8] = b"zookeeper_stats";

/// The paths that have a quota.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    limited: BTreeSet<Box<[u8]>>,
    /// During a multi, the quotas that it has changed, as they were when it began; `None` for those
    /// that were off. ZooKeeper checks all operations of a multi before it applies any.
    before: Option<BTreeMap<Box<[u8]>, Option<Quota>>>,
}

/// The parsed data of a quota's two znodes; `None` for a znode that does not exist.
#[derive(Clone, Debug)]
struct Quota {
    limits: Option<Result<Track, ErrorCode>>,
    stats: Option<Result<Track, ErrorCode>>,
}

impl Quota {
    fn of(tree: &Tree, subject: &[u8]) -> Self {
        let read = |name: &[u8]| {
            let id = tree.find(&[QUOTA, subject, b"/", name].concat())?;
            let data = tree[id].data().ok_or(ErrorCode::MarshallingError);
            Some(data.and_then(Track::parse))
        };
        Self {
            limits: read(LIMITS),
            stats: read(STATS),
        }
    }
}

/// The totals of the quotas in one part of the tree; -1 means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuotaTotals {
    /// The maximum number of znodes and of bytes of data; the hard limits where there are any.
    pub limits: Option<[i64; 2]>,
    /// The counted number of znodes and of bytes of data.
    pub usage: Option<[i64; 2]>,
}

/// How much a change adds to the usage; may be negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) znodes: i64,
    pub(crate) bytes: i64,
}

/// The effect of creating or deleting a znode on the quotas themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role<'a> {
    /// It switches the quota of this path on or off.
    Limits(&'a [u8]),
    /// It holds the usage of this path.
    Stats(&'a [u8]),
    /// None.
    Other,
}

impl<'a> Role<'a> {
    /// Returns the role of the znode at a path.
    pub(crate) fn of(path: &'a [u8]) -> Self {
        let Some(below) = path.strip_prefix(QUOTA) else {
            return Self::Other;
        };
        let subject = path::parent_of(below).filter(|subject| subject.starts_with(b"/"));
        match (subject, path::name_of(below)) {
            // The root has no quota, but its usage is counted when its stats znode is created.
            (Some(subject), STATS) => Self::Stats(subject),
            (Some(subject), LIMITS) if subject.len() > 1 => Self::Limits(subject),
            _ => Self::Other,
        }
    }
}

impl Quotas {
    /// Returns whether there is nothing to count and nothing to check.
    pub(crate) fn is_empty(&self) -> bool {
        self.limited.is_empty()
    }

    /// Switches the quota of a path on. Returns whether it was off.
    pub(crate) fn switch_on(&mut self, subject: &[u8]) -> bool {
        self.limited.insert(subject.into())
    }

    /// Switches the quota of a path off. Returns whether it was on.
    pub(crate) fn switch_off(&mut self, subject: &[u8]) -> bool {
        self.limited.remove(subject)
    }

    /// Returns the paths that have a quota, in order.
    pub(crate) fn limited(&self) -> impl Iterator<Item = &[u8]> {
        self.limited.iter().map(AsRef::as_ref)
    }

    /// Returns the totals below each child of the root, as far as there is room.
    ///
    /// Source: ZooKeeper's `QuotaMetricsUtils`.
    pub(crate) fn totals(&self, tree: &Tree, room: Room) -> BTreeMap<String, QuotaTotals> {
        let mut totals: BTreeMap<String, QuotaTotals> = BTreeMap::new();
        let mut bytes = 0;
        for subject in self.limited() {
            let top = subject.split(|byte| *byte == b'/').nth(1);
            let top = String::from_utf8_lossy(top.unwrap_or_default());
            if !totals.contains_key(&*top) {
                bytes += top.len();
                if totals.len() >= room.rows || bytes > room.bytes {
                    break;
                }
            }
            let quota = Quota::of(tree, subject);
            let total = totals.entry(top.into_owned()).or_default();
            if let Some(Ok(limits)) = &quota.limits {
                let either = |hard, soft| {
                    Some(limits.get(hard))
                        .filter(|max| *max > -1)
                        .unwrap_or_else(|| limits.get(soft))
                };
                add(
                    &mut total.limits,
                    [either(COUNT_HARD, COUNT), either(BYTES_HARD, BYTES)],
                );
            }
            if let Some(Ok(stats)) = &quota.stats {
                add(&mut total.usage, [stats.get(COUNT), stats.get(BYTES)]);
            }
        }
        totals
    }

    /// Returns the deepest path with a quota at or above this path.
    pub(crate) fn over<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        ancestors(path).find(|path| self.limited.contains(*path))
    }

    /// Makes [`Quotas::check`] use the quotas as they are now, until [`Quotas::end_multi`].
    pub(crate) fn begin_multi(&mut self) {
        self.before = Some(BTreeMap::new());
    }

    pub(crate) fn end_multi(&mut self) {
        self.before = None;
    }

    /// Returns whether a multi runs, so that [`Quotas::keep`] must be called before changes.
    pub(crate) const fn are_kept(&self) -> bool {
        self.before.is_some()
    }

    /// Keeps the quota that a znode is part of, if any, before the znode changes.
    pub(crate) fn keep(&mut self, tree: &Tree, path: &[u8]) {
        if let Role::Limits(subject) | Role::Stats(subject) = Role::of(path) {
            self.keep_quota(tree, subject);
        }
    }

    fn keep_quota(&mut self, tree: &Tree, subject: &[u8]) {
        if let Some(before) = &mut self.before
            && !before.contains_key(subject)
        {
            let is_on = self.limited.contains(subject);
            before.insert(subject.into(), is_on.then(|| Quota::of(tree, subject)));
        }
    }

    /// Checks a change at a path against the hard limits.
    ///
    /// # Errors
    /// QUOTAEXCEEDED if it exceeds one. MARSHALLINGERROR if a quota's znode cannot be parsed,
    /// because ZooKeeper then replies with an internal error.
    pub(crate) fn check(&self, tree: &Tree, path: &[u8], growth: Growth) -> Result<(), ErrorCode> {
        let quota = ancestors(path).find_map(|subject| {
            let kept = self.before.as_ref().and_then(|before| before.get(subject));
            kept.cloned().unwrap_or_else(|| {
                let is_on = self.limited.contains(subject);
                is_on.then(|| Quota::of(tree, subject))
            })
        });
        let Some(Quota {
            limits: Some(limits),
            stats,
        }) = quota
        else {
            return Ok(());
        };
        let limits = limits?;
        let counts = growth.znodes != 0 && limits.limits_znodes();
        let sums = growth.bytes != 0 && limits.limits_bytes();
        let Some(stats) = stats.filter(|_| counts || sums) else {
            return Ok(());
        };
        let stats = stats?;
        let exceeds = |hard: i64, now: i64, more: i64| hard > -1 && now.saturating_add(more) > hard;
        if counts && exceeds(limits.get(COUNT_HARD), stats.get(COUNT), growth.znodes)
            || sums && exceeds(limits.get(BYTES_HARD), stats.get(BYTES), growth.bytes)
        {
            return Err(ErrorCode::QuotaExceeded);
        }
        Ok(())
    }
}

fn add(total: &mut Option<[i64; 2]>, more: [i64; 2]) {
    let [znodes, bytes] = total.unwrap_or_default();
    *total = Some([znodes.wrapping_add(more[0]), bytes.wrapping_add(more[1])]);
}

/// Counting. It writes the data of znodes, which changes no version or zxid and fires no watch, and
/// records that in the undo list.
impl Quotas {
    /// Counts a created or deleted znode, and updates the quotas if the znode is part of one.
    pub(crate) fn count(
        &mut self,
        tree: &mut Tree,
        undo: &mut UndoList,
        path: &[u8],
        growth: Growth,
    ) {
        match Role::of(path) {
            Role::Other => {}
            Role::Limits(subject) => {
                let has_moved = if growth.znodes > 0 {
                    self.switch_on(subject)
                } else {
                    self.switch_off(subject)
                };
                if has_moved {
                    undo.note(|| Undo::QuotaSwitched(subject.into()));
                }
            }
            Role::Stats(subject) => {
                if let Some(id) = tree.find(path) {
                    let track = Track::of(usage(tree, subject));
                    write(tree, undo, id, &track);
                }
            }
        }
        self.grow(tree, undo, path, growth);
    }

    /// Finds the quotas of a loaded tree, and counts their usage anew as ZooKeeper does at its
    /// start.
    pub(crate) fn restore(&mut self, tree: &mut Tree) {
        for (_, znode) in tree.iter() {
            if let Role::Limits(subject) = Role::of(znode.path()) {
                self.switch_on(subject);
            }
        }
        for subject in &self.limited {
            let stats = [QUOTA, subject, b"/", STATS].concat();
            if let Some(id) = tree.find(&stats) {
                let track = Track::of(usage(tree, subject));
                write(tree, &mut UndoList::default(), id, &track);
            }
        }
    }

    /// Adds to the usage of the deepest quota at or above a path.
    pub(crate) fn grow(
        &mut self,
        tree: &mut Tree,
        undo: &mut UndoList,
        path: &[u8],
        growth: Growth,
    ) {
        let Some(subject) = self.over(path) else {
            return;
        };
        self.keep_quota(tree, subject);
        let stats = [QUOTA, subject, b"/", STATS].concat();
        // Malformed data is left alone; ZooKeeper would stop on it.
        if let Some(id) = tree.find(&stats)
            && let Some(data) = tree[id].data()
            && let Ok(mut track) = Track::parse(data)
        {
            track.grow(growth);
            write(tree, undo, id, &track);
        }
    }
}

fn write(tree: &mut Tree, undo: &mut UndoList, id: ZnodeId, track: &Track) {
    undo.note(|| Undo::StatsWritten {
        id,
        data: tree[id].data().map(Into::into),
    });
    tree.set_data(id, Some(track.to_string().as_bytes()));
}

/// Returns the path and its ancestors, without the root, which has no quota.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| path::parent_of(path))
        .take_while(|path| path.len() > 1)
}

/// Counts the znodes and the bytes of data at and below a path.
pub(crate) fn usage(tree: &Tree, subject: &[u8]) -> Growth {
    let mut usage = Growth {
        znodes: 0,
        bytes: 0,
    };
    let mut waiting: Vec<ZnodeId> = tree.find(subject).into_iter().collect();
    while let Some(id) = waiting.pop() {
        usage.znodes += 1;
        usage.bytes += bytes_of(tree[id].data());
        waiting.extend(tree.children(id));
    }
    usage
}

/// Returns the length of data as counted.
pub(crate) fn bytes_of(data: Option<&[u8]>) -> i64 {
    counted(data.map_or(0, <[u8]>::len))
}

pub(crate) fn counted(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

const COUNT: &str = "count";
const BYTES: &str = "bytes";
const COUNT_HARD: &str = "countHardLimit";
const BYTES_HARD: &str = "byteHardLimit";

/// The data of a quota's znodes: `count=4,bytes=5=;byteHardLimit=9;countHardLimit=10`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Track(BTreeMap<String, i64>);

impl Track {
    /// Returns the data for this usage.
    pub(crate) fn of(usage: Growth) -> Self {
        let entries = [(COUNT, usage.znodes), (BYTES, usage.bytes)];
        Self(entries.map(|(key, value)| (key.to_owned(), value)).into())
    }

    /// Parses the data.
    ///
    /// # Errors
    /// MARSHALLINGERROR if a part is not `key=number`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, ErrorCode> {
        let text = String::from_utf8_lossy(text);
        // A run of separators counts once, and Java drops trailing empty parts.
        let text = text.trim_end_matches([',', ';']);
        let mut entries = BTreeMap::new();
        for (index, part) in text.split([',', ';']).enumerate() {
            if part.is_empty() && (index > 0 || text.is_empty()) {
                continue;
            }
            let mut pair = part.trim_end_matches('=').split('=');
            let (key, value) = (pair.next().unwrap_or_default(), pair.next());
            // An empty value is -1, but only if something follows a second equals sign.
            let value = match value {
                Some("") => -1,
                Some(value) => value.parse().map_err(|_| ErrorCode::MarshallingError)?,
                None => return Err(ErrorCode::MarshallingError),
            };
            entries.insert(key.to_owned(), value);
        }
        Ok(Self(entries))
    }

    /// Returns a number; -1 if it is missing.
    fn get(&self, key: &str) -> i64 {
        self.0.get(key).copied().unwrap_or(-1)
    }

    fn limits_znodes(&self) -> bool {
        self.get(COUNT) > -1 || self.get(COUNT_HARD) > -1
    }

    fn limits_bytes(&self) -> bool {
        self.get(BYTES) > -1 || self.get(BYTES_HARD) > -1
    }

    /// Adds to the two counts.
    pub(crate) fn grow(&mut self, growth: Growth) {
        for (key, more) in [(COUNT, growth.znodes), (BYTES, growth.bytes)] {
            let grown = self.get(key).wrapping_add(more);
            self.0.insert(key.to_owned(), grown);
        }
    }
}

impl std::fmt::Display for Track {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "count={},bytes={}", self.get(COUNT), self.get(BYTES))?;
        let others = self
            .0
            .iter()
            .filter(|(key, _)| *key != COUNT && *key != BYTES);
        // The odd equals sign makes parsers before 3.7 stop at this point.
        let mut separator = "=;";
        for (key, value) in others {
            write!(f, "{separator}{key}={value}")?;
            separator = ";";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_parsed_and_printed_as_in_zookeeper() {
        // `docs/zookeeper-protocol.md` section 16, rule 2.
        for (text, printed) in [
            ("count=4,bytes=5", "count=4,bytes=5"),
            (
                "count=4,bytes=5=;countHardLimit=10;byteHardLimit=9",
                "count=4,bytes=5=;byteHardLimit=9;countHardLimit=10",
            ),
            ("bytes=5", "count=-1,bytes=5"),
            ("", "count=-1,bytes=-1"),
            ("count=1;;bytes=2,", "count=1,bytes=2"),
        ] {
            let track = Track::parse(text.as_bytes()).unwrap();
            assert_eq!(track.to_string(), printed, "{text}");
        }
        for text in ["x", "count=", "count=a", ",count=1"] {
            assert!(Track::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn role_depends_on_name_and_parent() {
        let path = b"/zookeeper/quota/a/b/zookeeper_limits";
        assert_eq!(Role::of(path), Role::Limits(b"/a/b"));
        for (path, subject) in [
            (&b"/zookeeper/quota/a/zookeeper_stats"[..], &b"/a"[..]),
            (b"/zookeeper/quota/zookeeper_stats", b"/"),
        ] {
            assert_eq!(Role::of(path), Role::Stats(subject));
        }
        for other in [
            &b"/zookeeper/quota/zookeeper_limits"[..],
            b"/zookeeper/quota/a",
            b"/zookeeper/quotas/a/zookeeper_limits",
            b"/a/zookeeper_limits",
            b"/zookeeper/quota",
        ] {
            assert_eq!(Role::of(other), Role::Other);
        }
    }

    #[test]
    fn deepest_quota_at_or_above_a_path_is_found() {
        let mut quotas = Quotas::default();
        for path in [&b"/a"[..], b"/a/b"] {
            quotas.switch_on(path);
        }
        for (path, over) in [
            (&b"/a/b/c"[..], Some(&b"/a/b"[..])),
            (b"/a/b", Some(b"/a/b")),
            (b"/a/bc", Some(b"/a")),
            (b"/ab", None),
            (b"/", None),
        ] {
            assert_eq!(quotas.over(path), over);
        }
    }
}
