//! Finds holders, waiters and warnings by the rules of each recipe.
//!
//! Source: `docs/curator-recipes.md` sections 4.2, 5.1, 5.3 and 6.2; kazoo's `recipe/lock.py`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use minikeeper_core::order;
use minikeeper_protocol::SessionId;

use crate::locks::{
    Contender, Deadlock, DeadlockStep, HERD_MIN, LockFamily, LockInfo, LockKind, LockWarning,
    LockWarningCode, Locks, WAITS_FOR_MAX,
    collect::{Collected, ContenderNode, Directory, Group, SessionFacts},
    deadlock::{self, Holder, Queue, Waiter},
    naming::Role,
};

/// Analyses what was collected. Takes time in proportion to it, and to sort it.
pub(super) fn analyse(collected: Collected) -> Locks {
    let mut found: Vec<_> = collected
        .groups
        .iter()
        .flat_map(|group| queues(group, &collected))
        .collect();
    order::sort_by(&mut found, |a, b| {
        (&a.info.path, a.info.kind).cmp(&(&b.info.path, b.info.kind))
    });
    let graph: Vec<_> = found.iter().map(|queue| queue.graph.clone()).collect();
    let address = |session| collected.facts(Some(session)).address;
    let deadlocks = deadlock::find(&graph).into_iter().map(|cycle| {
        let next = cycle.steps.iter().cycle().skip(1);
        let steps = cycle.steps.iter().zip(next);
        let step = |(step, next): (&deadlock::Step, &deadlock::Step)| {
            let info = &found[step.queue].info;
            DeadlockStep {
                session: step.session,
                address: address(step.session),
                lock: info.path.clone(),
                contender: info.waiters[step.contender].path.clone(),
                waits_for: next.session,
                is_held: step.is_held,
            }
        };
        Deadlock {
            cycle: steps.map(step).collect(),
            sessions: cycle.sessions,
        }
    });
    Locks {
        deadlocks: deadlocks.collect(),
        locks: found.into_iter().map(|queue| queue.info).collect(),
        is_truncated: collected.is_truncated,
    }
}

impl Collected {
    fn facts(&self, session: Option<SessionId>) -> SessionFacts {
        let facts = session.and_then(|id| self.sessions.get(&id));
        facts.copied().unwrap_or_default()
    }
}

/// A lock, and the same as part of the graph in which deadlocks are cycles.
struct Analysed {
    info: LockInfo,
    graph: Queue,
}

/// Returns the locks that use the directories of a group.
fn queues(group: &Group, collected: &Collected) -> Vec<Analysed> {
    match group {
        Group::Plain(directory) => {
            let is_reader = |member: &ContenderNode| member.role == Role::Reader;
            let kind = |role| match role {
                Role::Exclusive | Role::Reader | Role::Writer => LockKind::Mutex,
                Role::Latch => LockKind::LeaderLatch,
                Role::Election => LockKind::LeaderElection,
                Role::Lease | Role::KazooLease => LockKind::Semaphore,
            };
            let members = directory.contenders.iter();
            let kinds: BTreeSet<_> = order::collect(members.map(|member| kind(member.role)));
            let one = |wanted| {
                let is_meant = |member: &&ContenderNode| kind(member.role) == wanted;
                let members: Vec<_> = directory.contenders.iter().filter(is_meant).collect();
                let is_read_write = members
                    .iter()
                    .any(|member| is_reader(member) || member.role == Role::Writer);
                let kind = if is_read_write {
                    LockKind::ReadWrite
                } else {
                    wanted
                };
                let lock = if kind == LockKind::Semaphore {
                    Lock::without_queue(&directory.path, &members)
                } else {
                    Lock::queue(kind, directory, &members)
                };
                lock.finish(&[(directory, &members)], directory.total, collected)
            };
            kinds.into_iter().map(one).collect()
        }
        Group::Semaphore {
            path,
            inner,
            leases,
            is_kazoo,
            max_leases,
        } => {
            let (queue, held): (Vec<_>, Vec<_>) = (
                inner.contenders.iter().collect(),
                leases.contenders.iter().collect(),
            );
            if queue.is_empty() && held.is_empty() {
                return Vec::new();
            }
            let lock = Lock::semaphore(
                path,
                (inner, &queue),
                (leases, &held),
                *is_kazoo,
                *max_leases,
            );
            let total = inner.total + leases.total;
            vec![lock.finish(&[(inner, &queue), (leases, &held)], total, collected)]
        }
    }
}

/// A lock whose contenders have their places.
struct Lock<'a> {
    path: &'a str,
    kind: LockKind,
    max_leases: Option<u32>,
    holders: Vec<&'a ContenderNode>,
    waiters: Vec<Waiting<'a>>,
}

/// A contender that waits.
struct Waiting<'a> {
    member: &'a ContenderNode,
    waits_for: Vec<&'a ContenderNode>,
    is_watching: bool,
    /// See [`Waiter`].
    ahead: Option<Option<SessionId>>,
    awaits_holders: bool,
}

impl<'a> Lock<'a> {
    /// A semaphore of which only the leases are known.
    fn without_queue(path: &'a str, leases: &[&'a ContenderNode]) -> Self {
        Self {
            path,
            kind: LockKind::Semaphore,
            max_leases: None,
            holders: leases.to_vec(),
            waiters: Vec::new(),
        }
    }

    /// A lock with one queue: a contender waits for the one directly ahead; a reader for the writers
    /// ahead.
    fn queue(kind: LockKind, directory: &'a Directory, members: &[&'a ContenderNode]) -> Self {
        let mut lock = Self {
            path: &directory.path,
            kind,
            max_leases: None,
            holders: Vec::new(),
            waiters: Vec::new(),
        };
        let watches = Watches::of(members);
        // The first writer, and the nearest one ahead.
        let (mut first, mut nearest): (Option<&ContenderNode>, Option<&ContenderNode>) =
            (None, None);
        for (at, member) in members.iter().enumerate() {
            let is_reader = member.role == Role::Reader;
            let target = match (is_reader, member.family) {
                (true, Some(LockFamily::Kazoo)) => nearest,
                (true, _) => first,
                (false, _) => at.checked_sub(1).map(|before| members[before]),
            };
            // The holder of a write lock that turns into a reader takes the digits of its writer.
            let is_downgrade = target.is_some_and(|target| {
                is_reader && target.key == member.key && target.session == member.session
            });
            match target {
                Some(target) if !is_downgrade => lock.waiters.push(Waiting {
                    member,
                    waits_for: vec![target],
                    is_watching: watches.wake(directory, member, target, at),
                    ahead: Some(target.session),
                    awaits_holders: true,
                }),
                _ => lock.holders.push(member),
            }
            if !is_reader {
                first = first.or(Some(member));
                nearest = Some(member);
            }
        }
        let holding: BTreeSet<_> =
            order::collect(lock.holders.iter().map(|holder| holder.path.as_str()));
        let is_held_by_readers = lock
            .holders
            .iter()
            .all(|holder| holder.role == Role::Reader);
        for waiter in &mut lock.waiters {
            // A reader that waits behind a waiting writer does not wait for the readers that hold.
            let is_reader = waiter.member.role == Role::Reader;
            waiter.awaits_holders = !(is_reader && is_held_by_readers);
            if holding.contains(waiter.waits_for[0].path.as_str()) {
                waiter.ahead = None;
            }
        }
        lock
    }

    /// A semaphore: contenders queue for an inner lock, and its holder waits for a lease.
    fn semaphore(
        path: &'a str,
        (inner, queue): (&'a Directory, &[&'a ContenderNode]),
        (leases, held): (&'a Directory, &[&'a ContenderNode]),
        is_kazoo: bool,
        max_leases: Option<u32>,
    ) -> Self {
        let head = queue.first().copied();
        // In Curator's recipe the head creates its lease first, and then waits until it counts.
        let is_pending = |lease: &&ContenderNode| {
            !is_kazoo
                && head
                    .is_some_and(|head| lease.session == head.session && lease.czxid > head.czxid)
        };
        let (pending, holders): (Vec<_>, Vec<_>) = held.iter().copied().partition(is_pending);
        let is_full = match is_kazoo {
            false => !pending.is_empty(),
            true => max_leases.is_none_or(|max| holders.len() >= max as usize),
        } && !holders.is_empty();
        let watches = Watches::of(queue);
        let mut waiters = Vec::new();
        for (at, member) in queue.iter().copied().enumerate() {
            let ahead = at.checked_sub(1).map(|before| queue[before]);
            waiters.push(match ahead {
                Some(ahead) => Waiting {
                    member,
                    waits_for: vec![ahead],
                    is_watching: watches.wake(inner, member, ahead, at),
                    ahead: Some(ahead.session),
                    awaits_holders: is_full,
                },
                None => Waiting {
                    member,
                    waits_for: match is_full {
                        true => holders.iter().copied().take(WAITS_FOR_MAX).collect(),
                        false => Vec::new(),
                    },
                    is_watching: leases.is_watched_by(member.session),
                    ahead: None,
                    awaits_holders: is_full,
                },
            });
        }
        Self {
            path,
            kind: LockKind::Semaphore,
            max_leases,
            holders,
            waiters,
        }
    }

    /// Adds what is known of the sessions, and the warnings.
    fn finish(
        self,
        directories: &[(&Directory, &[&ContenderNode])],
        total: usize,
        collected: &Collected,
    ) -> Analysed {
        let members = || directories.iter().flat_map(|(_, members)| members.iter());
        let mut families = members().map(|member| member.family);
        let family = families.next().flatten();
        let contender = |member: &ContenderNode| Contender::new(member, collected);
        let mut warnings = Vec::new();
        for member in &self.holders {
            warn_of_session(&mut warnings, member, collected);
        }
        for waiter in &self.waiters {
            warn_of_session(&mut warnings, waiter.member, collected);
            let can_watch = collected.facts(waiter.member.session).is_connected;
            if can_watch && !waiter.is_watching && !waiter.waits_for.is_empty() {
                let waits_for = &waiter.waits_for[0].path;
                warnings.push(LockWarning {
                    code: LockWarningCode::WaiterWithoutWatch,
                    path: waiter.member.path.clone(),
                    text: format!(
                        "{} waits for {waits_for:?}, but its session has no watch that will wake it",
                        named(waiter.member)
                    ),
                });
            }
        }
        for (directory, members) in directories {
            self.warn_of_herds(&mut warnings, directory, members);
        }
        let holders = self.holders.iter().map(|holder| Holder {
            session: holder.session,
            since: holder.czxid,
        });
        // A client is a candidate beside what else it does: latch and election call it back.
        let is_candidacy = matches!(self.kind, LockKind::LeaderLatch | LockKind::LeaderElection);
        let graph = Queue {
            holders: holders.collect(),
            is_one_enough: self.kind == LockKind::Semaphore,
            waiters: self
                .waiters
                .iter()
                .enumerate()
                .filter(|_| !is_candidacy)
                .filter_map(|(at, waiter)| {
                    Some(Waiter {
                        session: waiter.member.session?,
                        since: waiter.member.czxid,
                        contender: at,
                        ahead: waiter.ahead,
                        awaits_holders: waiter.awaits_holders,
                    })
                })
                .collect(),
        };
        let waiters = self.waiters.iter().map(|waiter| Contender {
            waits_for: waiter
                .waits_for
                .iter()
                .map(|member| member.path.clone())
                .collect(),
            is_watching: waiter.is_watching,
            ..contender(waiter.member)
        });
        Analysed {
            info: LockInfo {
                path: self.path.to_owned(),
                kind: self.kind,
                family: family.filter(|family| families.all(|other| other == Some(*family))),
                max_leases: self.max_leases,
                waiters: waiters.collect(),
                holders: self
                    .holders
                    .iter()
                    .map(|member| contender(member))
                    .collect(),
                contenders_total: total,
                warnings,
                history: None,
            },
            graph,
        }
    }

    /// Warns of znodes that too many contenders watch. Readers may all watch the same writer.
    fn warn_of_herds(
        &self,
        warnings: &mut Vec<LockWarning>,
        directory: &Directory,
        members: &[&ContenderNode],
    ) {
        let waiting = self
            .waiters
            .iter()
            .filter(|waiter| waiter.member.role != Role::Reader)
            .filter_map(|waiter| waiter.member.session);
        let waiting: BTreeSet<_> = order::collect(waiting);
        let mut warn =
            |path: &str, watchers: &BTreeSet<SessionId>, own: Option<SessionId>, what| {
                let herd = watchers
                    .iter()
                    .filter(|session| waiting.contains(session) && Some(**session) != own)
                    .count();
                if herd >= HERD_MIN {
                    warnings.push(LockWarning {
                        code: LockWarningCode::Herd,
                        path: path.to_owned(),
                        text: format!(
                            "{herd} contenders watch {what} {path:?}; one change wakes all of them"
                        ),
                    });
                }
            };
        warn(
            &directory.path,
            &directory.watchers,
            None,
            "the children of",
        );
        for member in members {
            warn(&member.path, &member.watchers, member.session, "the znode");
        }
    }
}

impl Directory {
    /// Returns whether a change of a child notifies the session.
    fn is_watched_by(&self, session: Option<SessionId>) -> bool {
        session.is_some_and(|session| {
            self.watchers.contains(&session) || self.watchers_below.contains(&session)
        })
    }
}

/// The watches of sessions on contenders of one queue.
struct Watches {
    /// The first contender and the first writer that a session watches, by position.
    first: BTreeMap<SessionId, (usize, Option<usize>)>,
    /// The number of places that a session has in the queue.
    places: BTreeMap<SessionId, usize>,
}

impl Watches {
    fn of(members: &[&ContenderNode]) -> Self {
        let (mut first, mut places) = (BTreeMap::new(), BTreeMap::new());
        for (at, member) in members.iter().enumerate() {
            for session in &member.watchers {
                let (_, writer) = first.entry(*session).or_insert((at, None));
                if member.role != Role::Reader {
                    writer.get_or_insert(at);
                }
            }
            if let Some(session) = member.session {
                *places.entry(session).or_default() += 1;
            }
        }
        Self { first, places }
    }

    /// Returns whether a watch will wake the contender at this position, which waits for `target`. A
    /// session with one place in the queue may watch any contender in its way; with several places,
    /// its watches could be for another of them.
    fn wake(
        &self,
        directory: &Directory,
        member: &ContenderNode,
        target: &ContenderNode,
        at: usize,
    ) -> bool {
        let Some(session) = member.session else {
            return false;
        };
        if target.watchers.contains(&session) || directory.is_watched_by(Some(session)) {
            return true;
        }
        let Some((first, writer)) = self.first.get(&session) else {
            return false;
        };
        match member.role {
            Role::Reader => writer.is_some_and(|writer| writer < at),
            _ => self.places.get(&session) == Some(&1) && *first < at,
        }
    }
}

impl Contender {
    fn new(member: &ContenderNode, collected: &Collected) -> Self {
        let facts = collected.facts(member.session);
        let age_ms = collected.wall_ms.saturating_sub(member.since_ms);
        Self {
            path: member.path.clone(),
            is_reader: member.role == Role::Reader,
            session: member.session,
            address: facts.address,
            is_connected: facts.is_connected,
            is_silenced: facts.is_silenced,
            since_ms: member.since_ms,
            age: Duration::from_millis(u64::try_from(age_ms).unwrap_or(0)),
            data: member.data.clone(),
            data_length: member.data_length,
            waits_for: Vec::new(),
            is_watching: false,
        }
    }
}

fn warn_of_session(warnings: &mut Vec<LockWarning>, member: &ContenderNode, collected: &Collected) {
    let facts = collected.facts(member.session);
    let contender = named(member);
    let (code, text) = match member.session {
        None => (
            LockWarningCode::Orphan,
            format!(
                "no session owns {:?}: it stays until a client deletes it",
                member.path
            ),
        ),
        Some(_) if !facts.is_connected => (
            LockWarningCode::NoConnection,
            format!("{contender} has no connection; it expires unless its client reconnects"),
        ),
        Some(_) if facts.is_silenced => (
            LockWarningCode::SilentSession,
            format!("{contender} is silenced; it expires unless that ends"),
        ),
        Some(_) if facts.is_late => (
            LockWarningCode::SilentSession,
            format!("{contender} has sent nothing for more than two thirds of its timeout"),
        ),
        Some(_) => return,
    };
    warnings.push(LockWarning {
        code,
        path: member.path.clone(),
        text,
    });
}

/// Names a contender in a sentence.
fn named(member: &ContenderNode) -> String {
    let name = minikeeper_protocol::path::name_of(member.path.as_bytes());
    let name = String::from_utf8_lossy(name);
    match member.session {
        Some(session) => format!("session {session} of {name:?}"),
        None => format!("{name:?}"),
    }
}
