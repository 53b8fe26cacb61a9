//! What the clients of a run did and were sent, and which clients of two runs are the same.

use std::collections::{BTreeMap, VecDeque};

use minikeeper_core::{
    faults::place::{Deed, FaultPlace, PathPattern},
    journal::entry::{JournalEntry, Occurrence},
    order,
};
use minikeeper_protocol::{OpCode, SessionId};

/// The maximum number of entries of a journal that are read.
pub(crate) const ENTRIES_MAX: usize = 100_000;

/// The name of the operation of an event.
pub(crate) const EVENT: &str = "event";

/// The number of requests by which clients are compared.
const COMPARED_MAX: usize = 16;

/// The maximum number of clients of which each is compared with each.
const CLIENTS_MAX: usize = 256;

/// How far apart in two runs requests may be that are compared.
const WINDOW: usize = 16;

/// A request of a client, or an event that it was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Act {
    /// Its place in the journal.
    pub(crate) at: usize,
    pub(crate) session: SessionId,
    /// The operation; `None` for an event.
    pub(crate) op: Option<OpCode>,
    /// Its name.
    pub(crate) name: &'static str,
    pub(crate) paths: Vec<String>,
    /// The error, or what else the reply said.
    pub(crate) result: String,
    /// The sequential znode that was created.
    pub(crate) created: Option<String>,
    /// The paths with which sequential znodes were asked for.
    pub(crate) sequential: Vec<String>,
}

impl Act {
    pub(crate) fn is_handshake(&self) -> bool {
        self.op == Some(OpCode::CreateSession)
    }

    pub(crate) fn path(&self) -> Option<&str> {
        self.paths.first().map(String::as_str)
    }

    fn deed<T>(&self, then: impl FnOnce(&Deed<'_>) -> T) -> T {
        then(&Deed {
            session: self.session,
            op: self.op,
            is_at: &|pattern| {
                matches!(pattern, PathPattern::Any)
                    || self
                        .paths
                        .iter()
                        .any(|path| pattern.matches(path.as_bytes()))
            },
        })
    }
}

/// Returns what the clients did in a run. What a fault acted on is left out: no other fault counts it.
pub(crate) fn acts_of(entries: &[JournalEntry]) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut faulted: Option<&JournalEntry> = None;
    for (at, entry) in entries.iter().take(ENTRIES_MAX).enumerate() {
        let mut act = Act {
            at,
            ..Act::default()
        };
        match &entry.what {
            Occurrence::Request(request) => {
                let Some(op) = OpCode::from_name(request.op).filter(|op| *op != OpCode::Ping)
                else {
                    continue;
                };
                (act.op, act.name) = (Some(op), op.name());
                act.paths.extend(request.path.clone());
                act.created.clone_from(&request.created);
                let is_sequential =
                    |mode: Option<&str>| mode.is_some_and(|mode| mode.contains("_SEQUENTIAL"));
                if is_sequential(request.mode) {
                    act.sequential.extend(request.path.clone());
                }
                for operation in &request.operations {
                    act.paths.push(operation.path.clone());
                    if is_sequential(operation.mode) {
                        act.sequential.push(operation.path.clone());
                    }
                }
            }
            Occurrence::Event { path, .. } => {
                act.name = EVENT;
                act.paths.push(path.clone());
            }
            Occurrence::Fault { .. } => {
                faulted = Some(entry);
                continue;
            }
            _ => continue,
        }
        let Some(session) = entry.session else {
            continue;
        };
        let is_same = |fault: &mut &JournalEntry| {
            fault.connection == entry.connection && fault.op() == entry.op()
        };
        if act.op.is_some() && faulted.take_if(is_same).is_some() {
            continue;
        }
        act.session = session;
        act.result = entry.result().unwrap_or_default().to_owned();
        acts.push(act);
    }
    acts
}

/// Returns the rank with which an act is at a place.
pub(crate) fn rank_at(mut place: FaultPlace, acts: &[Act], target: usize) -> Option<u64> {
    let mut rank = None;
    for act in acts
        .iter()
        .take(target + 1)
        .filter(|act| !act.is_handshake())
    {
        rank = act.deed(|deed| place.arrival(deed));
    }
    rank
}

/// Returns which entry of a run's journal shows that a fault has acted.
pub(crate) fn fault_in(entries: &[JournalEntry]) -> Option<usize> {
    entries.iter().position(|entry| match entry.what {
        Occurrence::Fault { .. } => true,
        // A fault on an event has no entry of its own.
        Occurrence::Event { is_held, .. } => is_held,
        _ => false,
    })
}

/// Returns whether a place is reached in a run.
pub(crate) fn reaches(mut place: FaultPlace, acts: &[Act]) -> bool {
    let mut acts = acts.iter().filter(|act| !act.is_handshake());
    acts.any(|act| act.deed(|deed| place.is_reached(deed)))
}

/// A client of a run: a session that sends requests.
#[derive(Clone, Debug)]
pub(crate) struct SweepClient {
    pub(crate) session: SessionId,
    /// Which acts are its requests.
    pub(crate) requests: Vec<usize>,
    /// Which acts are events that it was sent.
    pub(crate) events: Vec<usize>,
}

/// Returns the clients of a run, in the order of their first requests.
pub(crate) fn clients_of(acts: &[Act]) -> Vec<SweepClient> {
    let mut clients: Vec<SweepClient> = Vec::new();
    let mut places: BTreeMap<SessionId, usize> = BTreeMap::new();
    for (index, act) in acts
        .iter()
        .enumerate()
        .filter(|(_, act)| !act.is_handshake())
    {
        let known = places.get(&act.session).copied();
        let place = match (known, act.op) {
            (Some(place), _) => place,
            (None, None) => continue,
            (None, Some(_)) => {
                clients.push(SweepClient {
                    session: act.session,
                    requests: Vec::new(),
                    events: Vec::new(),
                });
                places.insert(act.session, clients.len() - 1);
                clients.len() - 1
            }
        };
        match act.op {
            Some(_) => clients[place].requests.push(index),
            None => clients[place].events.push(index),
        }
    }
    clients
}

/// A run with its clients.
#[derive(Clone, Copy)]
pub(crate) struct RunSeen<'a> {
    pub(crate) acts: &'a [Act],
    pub(crate) clients: &'a [SweepClient],
}

impl RunSeen<'_> {
    /// Finds for each client the one of the other run that does the same, most alike first.
    pub(crate) fn match_clients(self, other: RunSeen<'_>) -> Vec<Option<usize>> {
        let mut found = vec![None; self.clients.len()];
        if self.clients.len().max(other.clients.len()) > CLIENTS_MAX {
            for (place, found) in found.iter_mut().enumerate() {
                *found = (place < other.clients.len()).then_some(place);
            }
            return found;
        }
        let mut pairs = Vec::new();
        for (own, client) in self.clients.iter().enumerate() {
            for (others, candidate) in other.clients.iter().enumerate() {
                let alike = self.likeness(client, other, candidate);
                pairs.push((alike, own, others));
            }
        }
        order::sort_by_key(&mut pairs, |(alike, own, others)| {
            (std::cmp::Reverse(*alike), own.abs_diff(*others), *own)
        });
        let mut is_taken = vec![false; other.clients.len()];
        for (alike, own, others) in pairs {
            if alike > 0 && found[own].is_none() && !is_taken[others] {
                found[own] = Some(others);
                is_taken[others] = true;
            }
        }
        found
    }

    /// Returns how much two clients do the same at first.
    fn likeness(self, client: &SweepClient, other: RunSeen<'_>, candidate: &SweepClient) -> usize {
        let pairs = client.requests.iter().zip(&candidate.requests);
        let pairs = pairs.take(COMPARED_MAX);
        let alike = pairs.map(|(own, others)| likeness(&self.acts[*own], &other.acts[*others]));
        alike.sum()
    }

    /// Finds the acts of two clients that are at the same place.
    pub(crate) fn pair_up(
        self,
        own: &SweepClient,
        other: RunSeen<'_>,
        others: &SweepClient,
    ) -> Pairing {
        let mut pairing = Pairing::default();
        self.pair_up_of((&own.requests, &others.requests), other, &mut pairing);
        // An event of one run may be left out in another, and tells nothing else.
        let mut of_events = Pairing::default();
        self.pair_up_of((&own.events, &others.events), other, &mut of_events);
        pairing.pairs.append(&mut of_events.pairs);
        pairing
    }

    fn pair_up_of(
        self,
        (own, others): (&[usize], &[usize]),
        other: RunSeen<'_>,
        pairing: &mut Pairing,
    ) {
        // What is equal first: several threads of one client send requests in any order.
        let mut equal: BTreeMap<(&str, &[String]), VecDeque<usize>> = BTreeMap::new();
        for (place, index) in others.iter().enumerate() {
            let act = &other.acts[*index];
            let same = equal.entry((act.name, &act.paths)).or_default();
            same.push_back(place);
        }
        let mut is_taken = vec![false; others.len()];
        let mut left = Vec::new();
        for (place, index) in own.iter().enumerate() {
            let act = &self.acts[*index];
            let same = equal.get_mut(&(act.name, &act.paths[..]));
            match same.and_then(VecDeque::pop_front) {
                Some(found) => is_taken[found] = true,
                None => left.push((place, *index)),
            }
        }
        let mut groups: BTreeMap<Shape<'_>, VecDeque<(usize, usize)>> = BTreeMap::new();
        for (place, index) in others.iter().enumerate() {
            if !is_taken[place] {
                let group = groups.entry(shape(&other.acts[*index])).or_default();
                group.push_back((place, *index));
            }
        }
        for (_, index) in left {
            let act = &self.acts[index];
            let group = groups.get_mut(&shape(act));
            let best = group.and_then(|group| {
                let candidates = group.iter().take(WINDOW).enumerate();
                // The first of the best.
                let (at, _) = candidates
                    .map(|(at, (_, others))| (at, likeness(act, &other.acts[*others])))
                    .rev_max()?;
                group.remove(at)
            });
            match best {
                Some((_, others)) => pairing.pairs.push((index, others)),
                None => pairing.left.push(index),
            }
        }
        let left = groups.into_values().flatten().map(|(_, index)| index);
        pairing.others_left.extend(left);
    }
}

/// The acts of a client in two runs.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// Those at the same place whose paths differ.
    pub(crate) pairs: Vec<(usize, usize)>,
    /// The requests that the other run has not, and those that only the other run has.
    pub(crate) left: Vec<usize>,
    pub(crate) others_left: Vec<usize>,
}

trait RevMax: Iterator<Item = (usize, usize)> + Sized {
    /// Returns the first item with the greatest second field.
    fn rev_max(self) -> Option<(usize, usize)> {
        self.fold(None, |best, item| match best {
            Some((_, most)) if most >= item.1 => best,
            _ => Some(item),
        })
    }
}

impl<I: Iterator<Item = (usize, usize)>> RevMax for I {}

/// An operation and the depths of its paths.
type Shape<'a> = (&'a str, Vec<usize>);

fn shape(act: &Act) -> Shape<'_> {
    let depths = act.paths.iter().map(|path| path.split('/').count());
    (act.name, depths.collect())
}

/// Returns how alike two acts are; 0 if their operations differ.
fn likeness(one: &Act, other: &Act) -> usize {
    if one.name != other.name {
        return 0;
    }
    let of_paths = one.paths.iter().zip(&other.paths).map(|(one, other)| {
        let (own, others) = (one.split('/'), other.split('/'));
        let is_as_deep = own.clone().count() == others.clone().count();
        let names = own.zip(others).map(|(one, other)| {
            let same = one.bytes().zip(other.bytes());
            let same = same.take_while(|(one, other)| one == other).count();
            // A whole name counts more than the beginning of another.
            if one == other { 64 } else { same.min(32) }
        });
        names.sum::<usize>() + if is_as_deep { 64 } else { 0 }
    });
    256 + of_paths.sum::<usize>()
}
