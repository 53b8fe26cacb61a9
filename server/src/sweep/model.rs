//! What a test does without faults, learned from its runs: the places, and how to find each again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use minikeeper_core::{
    faults::{
        op::FaultOp,
        place::{FaultPlace, PathPattern, PlaceBy, PlaceStep, SimilarPath},
    },
    glob::Glob,
    journal::entry::JournalEntry,
    order,
};
use minikeeper_protocol::{OpCode, SessionId};

use crate::{
    orders::fault::SweepFault,
    sweep::{
        acts::{self, Act, EVENT, RunSeen, SweepClient, acts_of, clients_of},
        coverage::Queues,
        names::RunNames,
        point::FaultPoint,
    },
};

/// The maximum number of runs that are kept to see how a place is found again.
const SAMPLES_MAX: usize = 4;

/// Everything learned of a test.
#[derive(Debug)]
pub(crate) struct Model {
    /// The first run. Its requests and events are the places.
    first: Vec<Act>,
    clients: Vec<SweepClient>,
    names: RunNames,
    /// The numbers of the clients.
    numbers: BTreeMap<SessionId, u32>,
    places: Vec<SweepPlace>,
    /// The requests of each client of the first run.
    histories: Vec<Arc<Vec<PlaceStep>>>,
    /// Other runs without faults, or in which no fault acted.
    samples: Vec<Sample>,
}

/// A run that shows how a place is found again.
#[derive(Debug)]
struct Sample {
    acts: Vec<Act>,
    names: Arc<BTreeSet<String>>,
}

/// A place of a run.
#[derive(Clone, Debug)]
pub(crate) struct SweepPlace {
    /// Which act it is.
    act: usize,
    /// Where it is in the journal.
    pub(crate) at: usize,
    client: u32,
    op: &'static str,
    path: String,
    nth: u64,
    /// The number of clients that have come to it so far, itself included.
    rank: u64,
    /// In which state of a lock the client is.
    lock: &'static str,
    /// What the client did here and before; places with the same context are equivalent.
    context: String,
}

/// How to find a place again that only a run with a fault shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PlaceBehind {
    /// The requests of its client, with patterns; places of the run share them.
    requests: Arc<Vec<(OpCode, String)>>,
    /// How many of them lie before the place or are the place.
    length: usize,
    /// The rank of the client among those that have done the same so far.
    rank: u64,
    /// Its rank among all clients that have come to the place so far.
    rank_of_any: u64,
    /// Its part of the memory of the requests. Unit: bytes.
    pub(crate) bytes: usize,
}

impl PlaceBehind {
    /// The number of ways to find a place.
    pub(crate) const WAYS: usize = 2;

    /// Says how to find the place of a point. `attempt` counts from 0 the runs that did not.
    pub(crate) fn aim(&self, point: &FaultPoint, attempt: usize) -> FaultPlace {
        let steps = self.requests.iter().map(|(op, path)| PlaceStep {
            op: *op,
            path: PathPattern::new(path),
        });
        let history = (Arc::new(steps.collect()), self.length);
        let op = point.op.parse::<FaultOp>().ok();
        let (by, rank) = match (op, attempt % Self::WAYS) {
            (Some(_), 0) => (PlaceBy::History, self.rank),
            (None, 0) => (PlaceBy::Start, self.rank),
            _ => (PlaceBy::Anyone, self.rank_of_any),
        };
        let what = (op, PathPattern::new(&point.path), point.nth);
        FaultPlace::new(by, history, what).with_rank(rank)
    }
}

/// The ordinals of the requests or events that match an operation and a pattern.
struct Ordinals {
    op: Option<FaultOp>,
    text: String,
    path: PathPattern,
    counts: BTreeMap<SessionId, u64>,
    /// By ordinal: how many clients have come so far.
    arrivals: BTreeMap<u64, u64>,
}

impl Model {
    /// Begins with the first run without faults.
    pub(crate) fn new(entries: &[JournalEntry]) -> Self {
        let first = acts_of(entries);
        let mut model = Self {
            clients: clients_of(&first),
            names: RunNames::new(&first),
            first,
            numbers: BTreeMap::new(),
            places: Vec::new(),
            histories: Vec::new(),
            samples: Vec::new(),
        };
        model.number();
        model.find_places();
        model
    }

    /// Returns what is equal for equivalent points.
    pub(crate) fn key_of(&self, fault: SweepFault, place: usize) -> String {
        let context = self.places.get(place).map_or("", |place| &place.context);
        format!("{} {context}", fault.name())
    }

    /// Returns in which state of a lock the client is at a place.
    pub(crate) fn lock_at(&self, place: usize) -> &'static str {
        self.places.get(place).map_or("", |place| place.lock)
    }

    /// Returns a pattern for what a path of the first run is in another.
    pub(crate) fn pattern(&self, path: &str) -> String {
        self.names.pattern(path)
    }

    /// Learns from another run without faults. Returns whether names are new.
    pub(crate) fn learn(&mut self, entries: &[JournalEntry]) -> bool {
        let acts = acts_of(entries);
        let clients = clients_of(&acts);
        let seen = RunSeen {
            acts: &acts,
            clients: &clients,
        };
        let own = RunSeen {
            acts: &self.first,
            clients: &self.clients,
        };
        let names = RunNames::new(&acts);
        let is_new = learn(&mut self.names, own, (&names, seen));
        if is_new {
            self.find_places();
        }
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.remove(1);
        }
        self.samples.push(Sample {
            acts,
            names: names.all,
        });
        is_new
    }

    /// Returns whether a further run without faults may tell more: names are so short that two may be
    /// equal by chance.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.names.has_short_names()
    }

    /// Numbers the clients by what they do first.
    pub(crate) fn number(&mut self) {
        let mut clients: Vec<_> = (self.clients.iter())
            .map(|client| {
                let of = |index: &usize| {
                    let act = &self.first[*index];
                    let path = act.path().map(|path| self.names.pattern(path));
                    (act.name, path.unwrap_or_default())
                };
                (
                    client.requests.iter().map(of).collect::<Vec<_>>(),
                    client.session,
                )
            })
            .collect();
        order::sort_by(&mut clients, |(one, _), (other, _)| one.cmp(other));
        self.numbers.clear();
        for (number, (_, session)) in (1..).zip(clients) {
            self.numbers.insert(session, number);
        }
        self.find_places();
    }

    fn find_places(&mut self) {
        self.places = places_of(&self.first, &self.names, &self.numbers);
        self.number_by_rank();
        let step = |index: &usize| {
            let act = &self.first[*index];
            act.op.map(|op| PlaceStep {
                op,
                path: act.path().map_or(PathPattern::Any, |path| {
                    PathPattern::new(&self.names.pattern(path))
                }),
            })
        };
        let clients = self.clients.iter();
        self.histories = clients
            .map(|client| Arc::new(client.requests.iter().filter_map(step).collect()))
            .collect();
    }

    /// Numbers those clients that have done the same up to a place in the order in which they come to it:
    /// nothing else tells them apart, and which of them was the first to connect is another in each run.
    fn number_by_rank(&mut self) {
        for places in groups_of(&self.places, &self.first) {
            let mut numbers: Vec<u32> = Vec::new();
            numbers.extend(places.iter().map(|place| self.places[*place].client));
            order::sort_by_key(&mut numbers, |number| *number);
            for (place, number) in places.into_iter().zip(numbers) {
                self.places[place].client = number;
            }
        }
    }

    /// Returns the points of the first run, each with its place. Those of equivalent places are left
    /// out, unless `all`: the same fault at the same request with the same result, after the same one.
    pub(crate) fn points(&self, faults: &[SweepFault], all: bool) -> Vec<(FaultPoint, usize)> {
        points_of(&self.places, self.clients.len(), faults, all)
    }

    /// Returns the points of a run in which a fault acted, behind that fault, each with its place.
    pub(crate) fn points_behind(
        &self,
        entries: &[JournalEntry],
        faults: &[SweepFault],
        all: bool,
    ) -> Vec<(FaultPoint, PlaceBehind)> {
        let Some(acted) = acts::fault_in(entries) else {
            return Vec::new();
        };
        let acts = acts_of(entries);
        let clients = clients_of(&acts);
        let seen = RunSeen {
            acts: &acts,
            clients: &clients,
        };
        let first = RunSeen {
            acts: &self.first,
            clients: &self.clients,
        };
        let mut names = RunNames::new(&acts);
        learn(&mut names, seen, (&self.names, first));
        let numbers = self.numbers_of(seen);
        let places = places_of(&acts, &names, &numbers);
        let mut points = points_of(&places, clients.len(), faults, all);
        points.retain(|(_, place)| places[*place].at >= acted);
        let mut ranks = vec![1; places.len()];
        for group in groups_of(&places, &acts) {
            for (rank, place) in (1..).zip(group) {
                ranks[place] = rank;
            }
        }
        let request = |index: &usize| {
            let act = &acts[*index];
            let path = act.path().map(|path| names.pattern(path));
            act.op.map(|op| (op, path.unwrap_or_default()))
        };
        let requests = clients.iter().map(|client| {
            let requests = client.requests.iter().filter_map(request);
            (
                client.session,
                (client, Arc::new(requests.collect::<Vec<_>>())),
            )
        });
        let requests: BTreeMap<_, _> = requests.collect();
        let all_requests = requests.values().flat_map(|(_, requests)| &**requests);
        let bytes = all_requests.map(|(_, path)| size_of::<(OpCode, String)>() + path.capacity());
        let bytes = bytes.sum::<usize>() / points.len().max(1);
        let behind = |(point, index): (FaultPoint, usize)| {
            let place = &places[index];
            let (length, requests) = match requests.get(&acts[place.act].session) {
                Some((client, requests)) => (
                    client.requests.partition_point(|act| *act <= place.act),
                    Arc::clone(requests),
                ),
                None => (0, Arc::default()),
            };
            let behind = PlaceBehind {
                requests,
                length,
                rank: ranks[index],
                rank_of_any: place.rank,
                bytes,
            };
            (point, behind)
        };
        points.into_iter().map(behind).collect()
    }

    /// Returns the numbers of the clients of a run; those that the first run does not have get further
    /// numbers.
    fn numbers_of(&self, seen: RunSeen<'_>) -> BTreeMap<SessionId, u32> {
        let first = RunSeen {
            acts: &self.first,
            clients: &self.clients,
        };
        let mut numbers = BTreeMap::new();
        let mut last = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        for (client, same) in seen.clients.iter().zip(seen.match_clients(first)) {
            let number = same.and_then(|same| self.numbers.get(&self.clients[same].session));
            let number = number.copied().unwrap_or_else(|| {
                last = last.saturating_add(1);
                last
            });
            numbers.insert(client.session, number);
        }
        numbers
    }

    /// Returns the numbers of the clients in the journal of a run.
    pub(crate) fn clients_in(&self, entries: &[JournalEntry]) -> BTreeMap<SessionId, u32> {
        let acts = acts_of(entries);
        let clients = clients_of(&acts);
        self.numbers_of(RunSeen {
            acts: &acts,
            clients: &clients,
        })
    }

    /// Returns a point as its place is called now.
    pub(crate) fn renamed(&self, point: &FaultPoint, place: usize) -> FaultPoint {
        let (path, nth) = self.name_of(place);
        FaultPoint {
            path,
            nth,
            ..point.clone()
        }
    }

    /// Returns the path and the ordinal by which a place is called now.
    pub(crate) fn name_of(&self, place: usize) -> (String, u64) {
        let SweepPlace { path, nth, .. } = &self.places[place];
        (path.clone(), *nth)
    }

    /// Finds the place of a point that a report names, perhaps one of another process.
    pub(crate) fn place_of(&self, point: &FaultPoint) -> Option<usize> {
        let is_of_op = |place: &&SweepPlace| place.op == point.op;
        let is_nth = |place: &SweepPlace| place.nth == point.nth;
        let is_of_client = |place: &SweepPlace| place.client == point.client;
        let is_at = |place: &SweepPlace| is_same_pattern(&place.path, &point.path);
        let is_similar = |place: &SweepPlace| self.may_be_same(&place.path, &point.path);
        let tests: [&dyn Fn(&SweepPlace) -> bool; 4] = [
            &|place| is_of_client(place) && is_nth(place) && place.path == point.path,
            &|place| is_of_client(place) && is_nth(place) && is_at(place),
            &|place| is_nth(place) && is_at(place),
            // By the sequence of operations, though the path does not match.
            &|place| is_of_client(place) && is_nth(place) && is_similar(place),
        ];
        tests.into_iter().find_map(|test| {
            let mut places = self.places.iter().enumerate();
            let found = places.find(|(_, place)| is_of_op(place) && test(place));
            found.map(|(index, _)| index)
        })
    }

    /// Says how to find a place of the first run again: in the most precise way that finds it in the
    /// most runs. `attempt` counts from 0 those that did not.
    pub(crate) fn aim(&self, place: usize, attempt: usize) -> Option<FaultPlace> {
        let SweepPlace {
            act, op, path, nth, ..
        } = &self.places[place];
        let target = &self.first[*act];
        if target.is_handshake() {
            return None;
        }
        let client = (self.clients.iter()).position(|client| client.session == target.session);
        let (history, length) = match client {
            Some(client) => {
                let requests = &self.clients[client].requests;
                let length = requests.partition_point(|request| request <= act);
                (Arc::clone(&self.histories[client]), length)
            }
            None => (Arc::default(), 0),
        };
        let fault_op = op.parse::<FaultOp>().ok();
        let mut ways: Vec<(usize, FaultPlace)> = Vec::new();
        for by in PlaceBy::ALL {
            let is_of_requests = matches!(by, PlaceBy::History | PlaceBy::Sequence);
            if is_of_requests && target.op.is_none() {
                continue;
            }
            // What is known of a run from the run itself does not count there.
            let way = |except| {
                let path = match by {
                    PlaceBy::Sequence => self.similar(path, target, except),
                    _ => PathPattern::new(path),
                };
                FaultPlace::new(by, (Arc::clone(&history), length), (fault_op, path, *nth))
            };
            let Some(rank) = acts::rank_at(way(Some(0)), &self.first, *act) else {
                continue;
            };
            let ranked = |except| way(except).with_rank(rank);
            let finds =
                |(run, sample): &(usize, &Sample)| acts::reaches(ranked(Some(*run)), &sample.acts);
            let found = (1..).zip(&self.samples).filter(finds).count();
            let way = ranked(None);
            if attempt == 0 && found == self.samples.len() {
                return Some(way);
            }
            ways.push((found, way));
        }
        // Stable, so that the most precise one of those that find it as often comes first.
        order::sort_by_key(&mut ways, |(found, _)| std::cmp::Reverse(*found));
        let count = ways.len().max(1);
        ways.into_iter().nth(attempt % count).map(|(_, way)| way)
    }

    /// Returns a pattern for the paths that the request at a place may have in another run. `except` is
    /// the run that tells nothing of it: 0 for the first, then the samples.
    fn similar(&self, path: &str, target: &Act, except: Option<usize>) -> PathPattern {
        if path.is_empty() {
            return PathPattern::Any;
        }
        let samples = (1..).zip(&self.samples);
        let samples = samples.filter(|(run, _)| Some(*run) != except);
        let mut known: Vec<_> = samples
            .map(|(_, sample)| Arc::clone(&sample.names))
            .collect();
        let own = target.path().unwrap_or_default().split('/');
        let names = path.split('/').zip(own).map(|(pattern, own)| {
            let is_known = |own| known.iter().any(|names| names.contains(own));
            (pattern, pattern == "*" || pattern == own && !is_known(own))
        });
        let names: Vec<_> = names.collect();
        if except != Some(0) {
            known.push(Arc::clone(&self.names.all));
        }
        PathPattern::Similar(SimilarPath::new(names.into_iter(), known))
    }

    /// Returns whether two patterns, of which one may be of another process, may be for the same paths.
    fn may_be_same(&self, own: &str, other: &str) -> bool {
        let is_known = |name: &str| {
            let mut samples = self.samples.iter();
            self.names.all.contains(name) && samples.any(|sample| sample.names.contains(name))
        };
        let is_same = |(one, other): (&str, &str)| match (one.contains('*'), other.contains('*')) {
            (false, false) => one == other || !is_known(one) && !is_known(other),
            (true, true) => {
                let ends = |name| (start_of(name), end_of(name));
                let ((start, end), (others_start, others_end)) = (ends(one), ends(other));
                (start.starts_with(others_start) || others_start.starts_with(start))
                    && (end.ends_with(others_end) || others_end.ends_with(end))
            }
            // A pattern begins with a slash.
            _ => is_same_pattern(&format!("/{one}"), &format!("/{other}")),
        };
        own.split('/').count() == other.split('/').count()
            && own.split('/').zip(other.split('/')).all(is_same)
    }

    /// Returns the first request or event of a run, from its fault on, that the first run does not have as often.
    pub(crate) fn difference_from(&self, entries: &[JournalEntry]) -> Option<String> {
        let acted = acts::fault_in(entries)?;
        let mut left: BTreeMap<(&str, String, &str), (PathPattern, usize)> = BTreeMap::new();
        let of_first = self.first.iter().filter(|act| !act.is_handshake());
        for act in of_first {
            let path = act.path().map(|path| self.names.pattern(path));
            let pattern = path.as_deref().map_or(PathPattern::Any, PathPattern::new);
            let key = (act.name, path.unwrap_or_default(), error_of(act));
            left.entry(key).or_insert((pattern, 0)).1 += 1;
        }
        let acts = acts_of(entries);
        for act in acts.iter().filter(|act| !act.is_handshake()) {
            let path = act.path().unwrap_or_default();
            let same = left
                .iter_mut()
                .find(|((name, _, error), (pattern, count))| {
                    *name == act.name
                        && *error == error_of(act)
                        && *count > 0
                        && (path.is_empty() || pattern.matches(path.as_bytes()))
                });
            if let Some((_, (_, count))) = same {
                *count -= 1;
            } else if act.at >= acted {
                let pattern = left.keys().map(|(_, pattern, _)| pattern);
                let mut patterns = pattern.filter(|pattern| !pattern.is_empty());
                let known =
                    patterns.find(|pattern| PathPattern::new(pattern).matches(path.as_bytes()));
                let shown = known.map_or(path, String::as_str);
                return Some(format!("{} {shown} {}", act.name, error_of(act)));
            }
        }
        None
    }

    /// Says how a run without faults differs from the first in more than names, and why.
    pub(crate) fn difference(&self, entries: &[JournalEntry]) -> Option<String> {
        let acts = acts_of(entries);
        let clients = clients_of(&acts);
        let (own, other) = (
            RunSeen {
                acts: &self.first,
                clients: &self.clients,
            },
            RunSeen {
                acts: &acts,
                clients: &clients,
            },
        );
        let matched = own.match_clients(other);
        let mut first: Option<(usize, String)> = None;
        for (client, same) in self.clients.iter().zip(&matched) {
            let Some(same) = same else {
                continue;
            };
            let same = &clients[*same];
            let Some(place) = self.first_difference(client, other, same) else {
                continue;
            };
            let at = client.requests.get(place);
            let at = at.or_else(|| client.requests.last());
            let at = at.copied().unwrap_or_default();
            if first.as_ref().is_some_and(|(earlier, _)| *earlier <= at) {
                continue;
            }
            let named = |acts: &[Act], requests: &[usize]| match requests.get(place) {
                Some(index) => self.shown(&acts[*index]),
                None => "nothing".to_owned(),
            };
            let number = self.numbers.get(&client.session).copied().unwrap_or(0);
            let begins = self.shown(&self.first[client.requests[0]]);
            let text = format!(
                "request {} of client {number} (which begins with {begins}) is {} in one run, and {} in \
                 another. Likely cause: {}",
                place + 1,
                named(&self.first, &client.requests),
                named(&acts, &same.requests),
                cause(own.pair_up(client, other, same), own, client),
            );
            first = Some((at, text));
        }
        let mut text = if let Some((_, text)) = first {
            text
        } else if clients.len() != self.clients.len() {
            format!(
                "one run has {} clients, and another {}. Likely cause: threads that connect or not, \
                 depending on time",
                self.clients.len(),
                clients.len()
            )
        } else {
            return None;
        };
        text.insert_str(
            0,
            "The test is not the same each time, even without faults: ",
        );
        let _ = write!(text, ". Places that depend on it may not be reached.");
        Some(text)
    }

    /// Returns the place from which on two clients do not do the same.
    fn first_difference(
        &self,
        client: &SweepClient,
        other: RunSeen<'_>,
        same: &SweepClient,
    ) -> Option<usize> {
        let count = client.requests.len().max(same.requests.len());
        (0..count).find(|place| {
            let (Some(own), Some(others)) =
                (client.requests.get(*place), same.requests.get(*place))
            else {
                return true;
            };
            let (own, others) = (&self.first[*own], &other.acts[*others]);
            let is_same = |(own, other): (&String, &String)| {
                PathPattern::new(&self.names.pattern(own)).matches(other.as_bytes())
            };
            own.op != others.op
                || own.paths.len() != others.paths.len()
                || !own.paths.iter().zip(&others.paths).all(is_same)
        })
    }

    fn shown(&self, act: &Act) -> String {
        let path = act.path().map(|path| self.names.pattern(path));
        match path {
            Some(path) => format!("{} {}", act.name, path.escape_debug()),
            None => act.name.to_owned(),
        }
    }
}

/// Returns the error of a request; empty if it has none.
fn error_of(act: &Act) -> &str {
    let word = act.result.split(' ').next().unwrap_or_default();
    if word == "OK" { "" } else { word }
}

/// Says why a client does not do the same in two runs.
fn cause(pairing: acts::Pairing, own: RunSeen<'_>, client: &SweepClient) -> &'static str {
    if pairing.left.is_empty() && pairing.others_left.is_empty() {
        return "threads or tasks that share the client, whose requests come in any order";
    }
    let mut seen = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    for index in &client.requests {
        let act = &own.acts[*index];
        if !seen.insert((act.name, &act.paths)) {
            repeated.insert((act.name, &act.paths));
        }
    }
    let is_repeated =
        |index: &usize| repeated.contains(&(own.acts[*index].name, &own.acts[*index].paths));
    if pairing.left.iter().all(is_repeated) && !repeated.is_empty() {
        return "the clock: it asks again until something has happened, or a time is over";
    }
    "threads whose order decides what is done, a random choice, or the clock"
}

/// Groups the places that clients reach by the same requests, in the order in which they come. An event is
/// reached by the first request of its watcher, and its ordinal.
fn groups_of(places: &[SweepPlace], acts: &[Act]) -> Vec<Vec<usize>> {
    /// What clients have done up to a place: an index for each step from each such index.
    type Steps<'a> = BTreeMap<(usize, &'static str, &'a str, u64), usize>;
    let mut steps = Steps::new();
    let mut done: BTreeMap<SessionId, (usize, usize)> = BTreeMap::new();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, place) in places.iter().enumerate() {
        let act = &acts[place.act];
        if act.is_handshake() {
            continue;
        }
        let (begin, last) = done.entry(act.session).or_default();
        let next = steps.len() + 1;
        let mut step = |from, nth| {
            let key = (from, place.op, &place.path[..], nth);
            *steps.entry(key).or_insert(next)
        };
        let group = if act.op.is_some() {
            *last = step(*last, 0);
            if *begin == 0 {
                *begin = *last;
            }
            *last
        } else {
            // When an event comes among the requests is not the same in each run.
            step(*begin, place.nth)
        };
        groups.entry(group).or_default().push(index);
    }
    groups.into_values().collect()
}

/// Learns the random names of a run from another one.
fn learn(
    names: &mut RunNames,
    own: RunSeen<'_>,
    (other_names, other): (&RunNames, RunSeen<'_>),
) -> bool {
    let mut is_new = false;
    for (client, same) in own.clients.iter().zip(own.match_clients(other)) {
        let Some(same) = same else {
            continue;
        };
        for (own_act, other_act) in own.pair_up(client, other, &other.clients[same]).pairs {
            let paths = own.acts[own_act].paths.iter();
            for (path, others) in paths.zip(&other.acts[other_act].paths) {
                is_new |= names.learn(path, (others, other_names));
            }
        }
    }
    is_new
}

/// Returns what is before the first star of a pattern.
fn start_of(pattern: &str) -> &str {
    pattern.split('*').next().unwrap_or_default()
}

/// Returns what is behind the last star of a pattern.
fn end_of(pattern: &str) -> &str {
    pattern.rsplit('*').next().unwrap_or_default()
}

/// Returns whether two patterns are for the same paths, though one may be wider.
fn is_same_pattern(one: &str, other: &str) -> bool {
    let covers = |wide: &str, other: &str| PathPattern::new(wide).matches(other.as_bytes());
    one == other || covers(one, other) || covers(other, one)
}

/// Returns the places of a run.
fn places_of(
    acts: &[Act],
    names: &RunNames,
    numbers: &BTreeMap<SessionId, u32>,
) -> Vec<SweepPlace> {
    let mut places = Vec::new();
    let mut all_ordinals: Vec<Ordinals> = Vec::new();
    // What each client did last.
    let mut before: BTreeMap<u32, String> = BTreeMap::new();
    let mut queues = Queues::default();
    for (index, act) in acts.iter().enumerate() {
        let is_handshake = act.is_handshake();
        let lock = queues.state_at(act);
        queues.note(act);
        let (client, op) = if is_handshake {
            (0, "connect")
        } else {
            match numbers.get(&act.session) {
                Some(number) => (*number, act.name),
                // An event for a session that sends nothing.
                None => continue,
            }
        };
        let fault_op = op.parse::<FaultOp>().ok();
        if fault_op.is_none() && act.op.is_some() {
            continue;
        }
        let path = act.path().map(|path| names.pattern(path));
        // A pattern that is too long, or of a path that is not valid, is left out.
        let path = path.filter(|path| Glob::new(path).is_ok());
        let path = path.unwrap_or_default();
        let (nth, rank) = count((&acts[..=index], act), fault_op, &path, &mut all_ordinals);
        let did = format!("{op} {path} {} {lock}", act.result);
        let before = before.entry(client).or_default();
        // An event does not change what its watcher did last.
        let context = format!("{before}, {did}");
        if act.op.is_some() {
            *before = did;
        }
        places.push(SweepPlace {
            act: index,
            at: act.at,
            client,
            op,
            path,
            nth,
            rank,
            lock,
            context,
        });
    }
    places
}

/// Counts an act for all ordinals that it matches. Returns its own ordinal, and its rank among the
/// clients that came so far.
fn count(
    (acts, act): (&[Act], &Act),
    op: Option<FaultOp>,
    path: &str,
    all: &mut Vec<Ordinals>,
) -> (u64, u64) {
    let own = all
        .iter()
        .position(|ordinals| ordinals.op == op && ordinals.text == path);
    let mut found = None;
    for (place, ordinals) in all.iter_mut().enumerate() {
        let counted = ordinals.count(act);
        if Some(place) == own {
            found = counted;
        }
    }
    found.unwrap_or_else(|| {
        let mut ordinals = Ordinals {
            op,
            text: path.to_owned(),
            path: PathPattern::new(path),
            counts: BTreeMap::new(),
            arrivals: BTreeMap::new(),
        };
        let counted = acts.iter().filter_map(|act| ordinals.count(act)).last();
        all.push(ordinals);
        counted.unwrap_or((1, 1))
    })
}

impl Ordinals {
    /// Counts an act, if it matches. Returns its ordinal and rank.
    fn count(&mut self, act: &Act) -> Option<(u64, u64)> {
        let is_of_op = match (act.op, self.op) {
            (Some(op), Some(wanted)) => wanted.is_of_op(op),
            (None, None) => true,
            _ => false,
        };
        let is_at = || {
            self.text.is_empty()
                || act
                    .paths
                    .iter()
                    .any(|path| self.path.matches(path.as_bytes()))
        };
        if !is_of_op || !is_at() {
            return None;
        }
        // The client of a handshake is not known.
        let session = if act.is_handshake() {
            SessionId::NONE
        } else {
            act.session
        };
        let nth = self.counts.entry(session).or_default();
        *nth += 1;
        let rank = self.arrivals.entry(*nth).or_default();
        *rank += 1;
        Some((*nth, *rank))
    }
}

/// Returns the points at places, each with the place's index.
fn points_of(
    places: &[SweepPlace],
    clients: usize,
    faults: &[SweepFault],
    all: bool,
) -> Vec<(FaultPoint, usize)> {
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    for (index, place) in places.iter().enumerate() {
        for fault in faults {
            let is_possible = match place.op {
                EVENT => fault.is_late_event(),
                op => fault.is_possible_at(op, clients, all),
            };
            if !is_possible {
                continue;
            }
            if !all && !seen.insert(format!("{} {}", fault.name(), place.context)) {
                continue;
            }
            let point = FaultPoint {
                fault: *fault,
                client: place.client,
                op: place.op.to_owned(),
                nth: place.nth,
                path: place.path.clone(),
            };
            points.push((point, index));
        }
    }
    points
}
