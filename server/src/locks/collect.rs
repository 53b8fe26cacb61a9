//! Copies the contenders and what concerns them out of the engine.
//!
//! First a search for directories with contenders, and for what kind of lock each is, in slices, each
//! under the engine lock for a short time. Then the contenders, watches and sessions of those directories, all under one hold of the
//! lock, so that the report shows one instant. The rest of the work needs no lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use minikeeper_core::{
    order,
    turn::{core::LockedState, turns::Turns},
    work,
};
use minikeeper_engine::{Engine, Life, WatchKind};
use minikeeper_protocol::SessionId;

use crate::locks::{
    CONTENDERS_MAX, CONTENDERS_OF_A_LOCK_MAX, DATA_BYTES_MAX, LOCKS_MAX, Locks, analysis, history,
    naming::{self, INNER_LOCK, KAZOO_INNER_LOCK, LEASES, Role},
};

/// The number of slots of the tree that one slice of the search reads.
const SLICE: usize = 1_024;

/// The number of candidates whose kind is determined under one hold of the lock.
const KINDS_AT_ONCE: usize = 256;

/// The maximum number of directories that the search remembers.
const CANDIDATES_MAX: usize = 10 * LOCKS_MAX;

/// The maximum number of children read, whatever their names.
const VISITS_MAX: usize = 200_000;

/// The maximum number of ancestors read to find recursive watches: a tree may be thousands deep.
const ANCESTORS_MAX: usize = 200_000;

/// The maximum number of watches read.
const WATCHES_MAX: usize = 100_000;

/// The maximum total length of the paths that the search remembers, and of those in a report. Unit:
/// bytes.
const PATH_BYTES_MAX: usize = 16 << 20;

/// Everything that the analysis needs.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) groups: Vec<Group>,
    pub(super) sessions: BTreeMap<SessionId, SessionFacts>,
    pub(super) wall_ms: i64,
    pub(super) is_truncated: bool,
}

/// The directories of one lock.
#[derive(Debug)]
pub(super) enum Group {
    /// Contenders of any kind in one directory.
    Plain(Directory),
    Semaphore {
        path: String,
        /// Has the queue for the leases.
        inner: Directory,
        leases: Directory,
        is_kazoo: bool,
        max_leases: Option<u32>,
    },
}

/// A directory with contenders.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    pub(super) path: String,
    /// In queue order.
    pub(super) contenders: Vec<ContenderNode>,
    /// The number of contenders, omitted ones included.
    pub(super) total: usize,
    /// The sessions that watch the list of children.
    pub(super) watchers: BTreeSet<SessionId>,
    /// The sessions that watch everything below the directory.
    pub(super) watchers_below: BTreeSet<SessionId>,
}

/// The znode of a contender.
#[derive(Clone, Debug)]
pub(super) struct ContenderNode {
    pub(super) path: String,
    pub(super) role: Role,
    pub(super) family: Option<crate::locks::LockFamily>,
    pub(super) key: String,
    pub(super) session: Option<SessionId>,
    pub(super) czxid: i64,
    pub(super) since_ms: i64,
    pub(super) data: Option<Vec<u8>>,
    pub(super) data_length: usize,
    /// The sessions that watch it.
    pub(super) watchers: BTreeSet<SessionId>,
}

/// What a report says of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionFacts {
    pub(super) address: Option<SocketAddr>,
    pub(super) is_connected: bool,
    pub(super) is_silenced: bool,
    /// Whether more than two thirds of its timeout have passed since its last message.
    pub(super) is_late: bool,
}

/// Reports the locks of a universe; `silenced` are its silenced sessions.
pub(crate) fn locks(turns: &Turns, silenced: &BTreeSet<SessionId>) -> Locks {
    let (candidates, is_truncated) = candidates(turns);
    let groups = groups(turns, candidates);
    let (mut collected, journal) = turns.read(|locked| {
        let now = turns.clock().now();
        let collected = Collected {
            wall_ms: now.wall_ms,
            ..collect(&locked, now.elapsed_ms, &groups)
        };
        (collected, locked.journal.map(|journal| journal.copy(0)))
    });
    collected.is_truncated |= is_truncated;
    for (id, facts) in &mut collected.sessions {
        facts.is_silenced = silenced.contains(id);
    }
    let mut locks = analysis::analyse(collected);
    if let Some(journal) = journal {
        history::add(&mut locks, &journal);
    }
    locks
}

/// What the search finds in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Candidate {
    contenders: usize,
    has_locks: bool,
    has_leases: bool,
    has_kazoo_leases: bool,
}

/// Finds the directories with contenders. Also returns whether there are too many.
fn candidates(turns: &Turns) -> (BTreeMap<String, Candidate>, bool) {
    let mut found = Candidates::default();
    let mut is_truncated = false;
    let mut slot = Some(0);
    while let Some(from) = slot {
        slot = turns.inspect(|engine| {
            engine.scan(from, SLICE, |znode| {
                work::count(1);
                let is_ephemeral = matches!(znode.life(), Life::Session(_));
                is_truncated |= !found.note(engine, znode.path, is_ephemeral);
            })
        });
    }
    (found.by_path, is_truncated)
}

#[derive(Debug, Default)]
struct Candidates {
    by_path: BTreeMap<String, Candidate>,
    path_bytes: usize,
}

impl Candidates {
    /// Adds a znode's parent if the znode is a contender. Returns false if there are too many.
    fn note(&mut self, engine: &Engine, path: &[u8], is_ephemeral: bool) -> bool {
        let name = minikeeper_protocol::path::name_of(path);
        let name = std::str::from_utf8(name).unwrap_or_default();
        let Some(role) = naming::parse(name, is_ephemeral).map(|name| name.role) else {
            return true;
        };
        let Ok(path) = std::str::from_utf8(path) else {
            return true;
        };
        let parent = match path.rfind('/') {
            None | Some(0) => "/",
            Some(slash) => &path[..slash],
        };
        if !self.by_path.contains_key(parent) {
            if role == Role::KazooLease && !exists(engine, parent, KAZOO_INNER_LOCK) {
                return true;
            }
            let path_bytes = self.path_bytes + parent.len();
            if self.by_path.len() >= CANDIDATES_MAX || path_bytes > PATH_BYTES_MAX {
                return false;
            }
            self.path_bytes = path_bytes;
        }
        let candidate = self.by_path.entry(parent.to_owned()).or_default();
        candidate.contenders += 1;
        match role {
            Role::Exclusive => candidate.has_locks = true,
            Role::Lease => candidate.has_leases = true,
            Role::KazooLease => candidate.has_kazoo_leases = true,
            _ => {}
        }
        true
    }
}

fn exists(engine: &Engine, path: &str, suffix: &str) -> bool {
    engine.get(&format!("{path}{suffix}")).is_some()
}

/// Returns the paths and kinds of the locks, those with several contenders first.
fn groups(turns: &Turns, candidates: BTreeMap<String, Candidate>) -> Vec<(String, CandidateKind)> {
    let mut candidates = candidates.into_iter().peekable();
    let mut found: BTreeMap<String, (CandidateKind, usize)> = BTreeMap::new();
    while candidates.peek().is_some() {
        let some: Vec<_> = candidates.by_ref().take(KINDS_AT_ONCE).collect();
        let kinds: Vec<_> = turns.inspect(|engine| {
            let kinds = some.iter().map(|(path, candidate)| {
                work::count(1);
                kind_of(engine, path, *candidate)
            });
            kinds.collect()
        });
        for ((path, kind), (_, candidate)) in kinds.into_iter().zip(some) {
            let (known, contenders) = found.entry(path).or_insert((kind, 0));
            *known = kind;
            *contenders += candidate.contenders;
        }
    }
    let mut groups: Vec<_> = found.into_iter().collect();
    order::sort_by_key(&mut groups, |(_, (_, contenders))| *contenders < 2);
    groups
        .into_iter()
        .map(|(path, (kind, _))| (path, kind))
        .collect()
}

/// Copies the first locks, as far as there is room.
fn collect(
    locked: &LockedState<'_>,
    elapsed_ms: u64,
    locks: &[(String, CandidateKind)],
) -> Collected {
    let mut reader = BoundedReader {
        locked,
        visits_left: VISITS_MAX,
        contenders_left: CONTENDERS_MAX,
        watches_left: WATCHES_MAX,
        path_bytes_left: PATH_BYTES_MAX,
        ancestors_left: ANCESTORS_MAX,
        is_truncated: locks.len() > LOCKS_MAX,
    };
    let mut groups: Vec<_> = locks
        .iter()
        .take(LOCKS_MAX)
        .map(|(path, kind)| reader.group(path, *kind))
        .collect();
    order::sort_by(&mut groups, |a, b| a.path().cmp(b.path()));
    Collected {
        sessions: reader.sessions(&groups, elapsed_ms),
        is_truncated: reader.is_truncated,
        groups,
        wall_ms: 0,
    }
}

#[derive(Clone, Copy, Debug)]
enum CandidateKind {
    Plain,
    Semaphore,
    KazooSemaphore,
}

/// Returns the path and kind of the lock that a directory belongs to.
fn kind_of(engine: &Engine, path: &str, candidate: Candidate) -> (String, CandidateKind) {
    if candidate.has_leases
        && let Some(base) = path.strip_suffix(LEASES)
    {
        return (base.to_owned(), CandidateKind::Semaphore);
    }
    if candidate.has_locks
        && let Some(base) = path.strip_suffix(INNER_LOCK)
        && exists(engine, base, LEASES)
    {
        return (base.to_owned(), CandidateKind::Semaphore);
    }
    if candidate.has_kazoo_leases {
        return (path.to_owned(), CandidateKind::KazooSemaphore);
    }
    if candidate.has_locks
        && let Some(base) = path.strip_suffix(KAZOO_INNER_LOCK)
        && exists(engine, base, "")
    {
        return (base.to_owned(), CandidateKind::KazooSemaphore);
    }
    (path.to_owned(), CandidateKind::Plain)
}

impl Group {
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Plain(directory) => &directory.path,
            Self::Semaphore { path, .. } => path,
        }
    }

    fn members(&self) -> impl Iterator<Item = &ContenderNode> {
        let (first, second) = match self {
            Self::Plain(directory) => (directory, None),
            Self::Semaphore { inner, leases, .. } => (inner, Some(leases)),
        };
        let second = second.into_iter().flat_map(|leases| &leases.contenders);
        first.contenders.iter().chain(second)
    }
}

/// Reads directories within the bounds.
struct BoundedReader<'a> {
    locked: &'a LockedState<'a>,
    visits_left: usize,
    contenders_left: usize,
    watches_left: usize,
    path_bytes_left: usize,
    ancestors_left: usize,
    is_truncated: bool,
}

impl BoundedReader<'_> {
    fn group(&mut self, path: &str, kind: CandidateKind) -> Group {
        let engine = self.locked.engine;
        let (inner, leases) = match kind {
            CandidateKind::Plain => {
                let is_meant = |role| role != Role::KazooLease;
                return Group::Plain(self.directory(path.to_owned(), &is_meant));
            }
            CandidateKind::Semaphore => (format!("{path}{INNER_LOCK}"), format!("{path}{LEASES}")),
            CandidateKind::KazooSemaphore => (format!("{path}{KAZOO_INNER_LOCK}"), path.to_owned()),
        };
        let is_kazoo = matches!(kind, CandidateKind::KazooSemaphore);
        // Kazoo stores the number of leases as text.
        let data = engine.get(path).and_then(|(data, _)| data);
        let max_leases = data.filter(|_| is_kazoo).and_then(|data| {
            let text = std::str::from_utf8(data).ok()?;
            text.trim().parse().ok()
        });
        let lease = if is_kazoo {
            Role::KazooLease
        } else {
            Role::Lease
        };
        Group::Semaphore {
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            inner: self.directory(inner, &|role| role == Role::Exclusive),
            leases: self.directory(leases, &|role| role == lease),
            is_kazoo,
            max_leases,
        }
    }

    fn directory(&mut self, path: String, is_meant: &dyn Fn(Role) -> bool) -> Directory {
        let engine = self.locked.engine;
        let mut names = Vec::new();
        self.path_bytes_left = self.path_bytes_left.saturating_sub(path.len());
        for name in engine.child_names(&path) {
            if self.visits_left == 0 {
                self.is_truncated = true;
                break;
            }
            work::count(1);
            self.visits_left -= 1;
            let name = std::str::from_utf8(name).unwrap_or_default();
            if let Some(parsed) = naming::parse(name, true).filter(|name| is_meant(name.role)) {
                names.push((parsed.key, name));
            }
        }
        // Stable, as the sorts of the recipes.
        order::sort_by_key(&mut names, |(key, _)| *key);
        let mut total = names.len();
        let room = CONTENDERS_OF_A_LOCK_MAX.min(self.contenders_left);
        self.is_truncated |= total > room;
        let mut contenders = Vec::new();
        for (_, name) in names.into_iter().take(room) {
            let slash = if path == "/" { "" } else { "/" };
            let bytes = path.len() + slash.len() + name.len();
            let Some(left) = self.path_bytes_left.checked_sub(bytes) else {
                self.is_truncated = true;
                break;
            };
            self.path_bytes_left = left;
            match self.member(format!("{path}{slash}{name}"), name) {
                Some(member) => contenders.push(member),
                None => total -= 1,
            }
        }
        let Some(watchers_below) = self.watchers_below(&path) else {
            // Without them, waiters would seem to have no watch. So the report ends here.
            self.contenders_left = 0;
            self.is_truncated = true;
            return Directory {
                path,
                ..Directory::default()
            };
        };
        self.contenders_left -= contenders.len();
        Directory {
            watchers: self.watchers(&path, |kind| {
                matches!(kind, WatchKind::Children | WatchKind::Persistent)
            }),
            watchers_below,
            path,
            contenders,
            total,
        }
    }

    /// Reads the znode of a contender. `None` if the name needs an ephemeral and it is none.
    fn member(&mut self, path: String, name: &str) -> Option<ContenderNode> {
        let (data, stat) = self.locked.engine.get(&path)?;
        let session = Some(stat.ephemeral_owner).filter(|owner| *owner != SessionId::NONE);
        let name = naming::parse(name, session.is_some())?;
        Some(ContenderNode {
            role: name.role,
            family: name.family,
            key: name.key.to_owned(),
            session,
            czxid: stat.czxid.0,
            since_ms: stat.ctime_ms,
            data: data.map(start),
            data_length: data.map_or(0, <[u8]>::len),
            watchers: self.watchers(&path, |_| true),
            path,
        })
    }

    fn watchers(
        &mut self,
        path: &str,
        is_meant: impl Fn(WatchKind) -> bool,
    ) -> BTreeSet<SessionId> {
        let mut sessions = BTreeSet::new();
        for (session, kind) in self.locked.engine.watchers(path) {
            if self.watches_left == 0 {
                self.is_truncated = true;
                break;
            }
            work::count(1);
            self.watches_left -= 1;
            if is_meant(kind) {
                sessions.insert(session);
            }
        }
        sessions
    }

    /// Returns the sessions that watch everything below this znode or an ancestor of it. `None` if
    /// there are too many ancestors.
    fn watchers_below(&mut self, path: &str) -> Option<BTreeSet<SessionId>> {
        let mut sessions = BTreeSet::new();
        if !self.locked.engine.has_recursive_watches() {
            return Some(sessions);
        }
        for watchers in self.locked.engine.recursive_watchers(path) {
            work::count(1);
            self.ancestors_left = self.ancestors_left.checked_sub(1)?;
            for session in watchers {
                work::count(1);
                self.watches_left = self.watches_left.checked_sub(1)?;
                sessions.insert(session);
            }
        }
        Some(sessions)
    }

    fn sessions(&self, groups: &[Group], elapsed_ms: u64) -> BTreeMap<SessionId, SessionFacts> {
        let members = groups.iter().flat_map(Group::members);
        let ids: BTreeSet<_> = order::collect(members.filter_map(|member| member.session));
        let facts = |id| {
            let lease = self.locked.engine.session_lease(id)?;
            let connection = lease
                .conn
                .and_then(|conn| self.locked.members.get(conn.0 as usize));
            let left_ms = lease.deadline_ms.saturating_sub(elapsed_ms);
            Some(SessionFacts {
                address: connection.and_then(|member| member.stats.peer.address()),
                is_connected: connection.is_some(),
                is_silenced: false,
                is_late: left_ms.saturating_mul(3) < u64::from(lease.timeout_ms),
            })
        };
        order::collect(
            ids.into_iter()
                .map(|id| (id, facts(id).unwrap_or_default())),
        )
    }
}

/// Copies the start of a contender's data, without cutting a character of a text in two.
fn start(data: &[u8]) -> Vec<u8> {
    let mut start = &data[..data.len().min(DATA_BYTES_MAX)];
    if start.len() < data.len()
        && let Err(error) = std::str::from_utf8(start)
        && error.error_len().is_none()
    {
        start = &start[..error.valid_up_to()];
    }
    start.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_of_data_keeps_whole_characters_and_all_other_bytes() {
        assert_eq!(start(b"short"), b"short");
        assert_eq!(start(&[b'x'; 300]), [b'x'; 256]);
        let text = format!("x{}", "é".repeat(200));
        assert_eq!(start(text.as_bytes()), &text.as_bytes()[..255]);
        assert_eq!(start(&[0xff; 300]), [0xff; 256]);
        // Cut by its author, not here.
        assert_eq!(start(b"x\xc3"), b"x\xc3");
    }
}
