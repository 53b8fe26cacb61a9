//! Lets a chooser serve the requests of a universe, one after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use minikeeper_core::{
    faults::fault::Fault,
    order,
    state::{
        fault_turn,
        picking::{self, WaitingRequest},
    },
};
use minikeeper_protocol::SessionId;

use crate::{
    orders::{
        choice::{CLIENTS_MAX, Choice, ChoicePoint},
        chooser::{Chooser, Goal, ROW_MAX},
        fault::{FaultExtent, SweepFault},
    },
    universe::Universe,
};

/// The maximum number of requests of a run.
pub(crate) const STEPS_MAX: usize = 10_000;

/// How long an event is late, at most, by the server's clock: its watcher may send nothing until it comes.
const LATE: Duration = Duration::from_secs(10);

/// How many requests of other clients an event is late, at most: a client that asks again and again, until the
/// watcher has done something, keeps the clock from moving.
const LATE_REQUESTS_MAX: usize = ROW_MAX;

/// A run whose requests wait until they are picked.
#[derive(Debug)]
pub(crate) struct OrderedRun {
    universe: Universe,
    chooser: Chooser,
    /// The number of clients that the order names.
    named: usize,
    /// By client.
    sessions: Vec<SessionId>,
    steps: Vec<ChoicePoint>,
    /// The clients whose events are late.
    late: BTreeMap<usize, LateEvents>,
    /// Whether other clients may have been sent events.
    may_have_told: bool,
    stopped: Option<Stopped>,
}

/// The events of a client that wait until its next request is served.
#[derive(Clone, Copy, Debug)]
struct LateEvents {
    /// The fault that holds them back.
    fault: u64,
    /// The number of requests that were served when they began to wait.
    since: usize,
}

/// Why a run serves no more requests in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// What the order names does not happen. The text says what.
    NotFollowed(String),
    /// It has more than [`STEPS_MAX`] requests.
    Endless,
    /// It has more than [`CLIENTS_MAX`] clients.
    Crowded,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed(why) => write!(f, "the order could not be followed: {why}"),
            Self::Endless => write!(
                f,
                "it does not end: it has sent more than {STEPS_MAX} requests"
            ),
            Self::Crowded => write!(
                f,
                "it has more than {CLIENTS_MAX} clients, the limit of an order"
            ),
        }
    }
}

/// What happened at a point at which no further request is coming.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quiet {
    /// A request was served.
    Served,
    /// None waits.
    Nothing,
    /// The run has [stopped](Stopped).
    Stopped,
}

impl OrderedRun {
    /// Makes the requests of a universe wait, from now on.
    pub(crate) fn begin(universe: &Universe, goal: Goal) -> Self {
        picking::begin(&universe.shared);
        let named = match &goal {
            Goal::Follow(order) => order.count_clients(),
            Goal::Sample { .. } => 0,
        };
        Self {
            universe: universe.clone(),
            chooser: Chooser::new(goal),
            named,
            sessions: Vec::new(),
            steps: Vec::new(),
            late: BTreeMap::new(),
            may_have_told: false,
            stopped: None,
        }
    }

    /// Serves the next request. Call this when no further one is coming. `owners` finds the processes of the
    /// clients on these ports, by a number that does not differ from run to run.
    pub(crate) fn quiet(&mut self, owners: &dyn Fn(&[u16]) -> BTreeMap<u16, usize>) -> Quiet {
        let mut waiting = picking::waiting(&self.universe.shared);
        if waiting.is_empty() && self.stopped.is_none() {
            return Quiet::Nothing;
        }
        let is_new = |request: &&WaitingRequest| !self.sessions.contains(&request.session);
        let ports = waiting.iter().filter(is_new);
        let ports: Vec<_> = ports.map(|request| request.port).collect();
        let owners = match &ports[..] {
            // One client is numbered without.
            [] | [_] => BTreeMap::new(),
            ports => owners(ports),
        };
        let numbered = self.number(&mut waiting, &owners);
        self.serve(waiting, numbered)
    }

    /// Serves the request that the order names next, if it waits, whether or not a further one is coming.
    /// New clients are numbered together, so this is for when the order names none, and none has come.
    pub(crate) fn serve_named(&mut self) -> Option<Quiet> {
        let session = *self.sessions.get(self.chooser.named()?)?;
        if self.sessions.len() < self.named {
            return None;
        }
        let waiting = picking::waiting(&self.universe.shared);
        let is_new = |request: &WaitingRequest| !self.sessions.contains(&request.session);
        let is_there = waiting.iter().any(|request| request.session == session);
        (is_there && !waiting.iter().any(is_new)).then(|| self.serve(waiting, Ok(())))
    }

    /// Returns whether each of so many clients has come, and each that is connected has a request.
    pub(crate) fn have_all(&self, clients: usize) -> bool {
        let waiting = self.waiting_sessions();
        let is_new = |session: &&SessionId| !self.sessions.contains(session);
        let new = waiting.iter().filter(is_new).count();
        let connected = self.universe.sessions();
        let mut connected = connected.iter().map(|info| info.id);
        self.sessions.len() + new >= clients
            && connected.all(|session| is_new(&&session) || waiting.contains(&session))
    }

    /// Returns the number of requests that wait.
    pub(crate) fn count(&self) -> usize {
        picking::count(&self.universe.shared)
    }

    /// Returns the sessions whose requests wait.
    pub(crate) fn waiting_sessions(&self) -> BTreeSet<SessionId> {
        let waiting = picking::waiting(&self.universe.shared);
        waiting.iter().map(|request| request.session).collect()
    }

    /// Returns whether events may have been sent since the last call.
    pub(crate) const fn take_may_have_told(&mut self) -> bool {
        std::mem::replace(&mut self.may_have_told, false)
    }

    /// Returns the session that was served last.
    pub(crate) fn last_session(&self) -> Option<SessionId> {
        let last = self.steps.last()?.picked().client;
        self.sessions.get(last).copied()
    }

    pub(crate) const fn universe(&self) -> &Universe {
        &self.universe
    }

    /// Serves one of these requests, unless the run has stopped or a client has no number.
    fn serve(&mut self, waiting: Vec<WaitingRequest>, numbered: Result<(), Stopped>) -> Quiet {
        if self.stopped.is_none() {
            let served = numbered.and_then(|()| self.serve_one_of(waiting));
            self.stopped = served.err();
        }
        match self.stopped {
            None => Quiet::Served,
            Some(_) => Quiet::Stopped,
        }
    }

    fn serve_one_of(&mut self, mut waiting: Vec<WaitingRequest>) -> Result<(), Stopped> {
        if self.steps.len() >= STEPS_MAX {
            return Err(Stopped::Endless);
        }
        // A session that has moved to another connection may have a request on each.
        let mut clients: Vec<usize> = Vec::with_capacity(waiting.len());
        waiting.retain(|request| {
            let client = self.client_of(request.session);
            let is_first = !clients.contains(&client);
            if is_first {
                clients.push(client);
            }
            is_first
        });
        let is_named = self.chooser.named().is_some();
        let picked = self.chooser.choose(&clients);
        let picked = picked.map_err(|missing| {
            Stopped::NotFollowed(format!("client {} has no request", missing.client + 1))
        })?;
        // Of those that an order names only what was picked matters.
        let connections: Vec<_> = match is_named {
            true => vec![waiting[picked].connection],
            false => waiting.iter().map(|request| request.connection).collect(),
        };
        let footprints = picking::footprints(&self.universe.shared, &connections);
        let mut footprints = footprints.into_iter();
        let choices = waiting.into_iter().zip(clients).enumerate();
        let choices = choices.map(|(index, (request, client))| Choice {
            client,
            op: request.op,
            path: request.path,
            footprint: match is_named && index != picked {
                true => Arc::default(),
                false => Arc::new(footprints.next().unwrap_or_default()),
            },
        });
        let mut step = ChoicePoint {
            choices: choices.collect(),
            picked,
            told: Vec::new(),
            marks: Vec::new(),
        };
        step.told = self.told_by(&step);
        step.marks = self.chooser.marks(step.client(), &step.told);
        let picked = self.pick(&step);
        self.may_have_told |= !step.told.is_empty();
        self.steps.push(step);
        picked
    }

    /// Returns the other clients that may be sent an event, but for those whose events are late anyway.
    fn told_by(&self, step: &ChoicePoint) -> Vec<u8> {
        let footprint = &step.picked().footprint;
        let sessions = (0..).zip(&self.sessions);
        let told = sessions.filter(|(client, session)| {
            let is_late = self.late.contains_key(&usize::from(*client));
            *client != step.client() && !is_late && footprint.tells(**session)
        });
        told.map(|(client, _)| client).collect()
    }

    /// Serves a request. The events for its client come first, also those that are late.
    fn pick(&mut self, step: &ChoicePoint) -> Result<(), Stopped> {
        let client = step.picked().client;
        let (served, shared) = (self.steps.len(), Arc::clone(&self.universe.shared));
        let faults = &shared.turns.faults;
        self.send_late_events(|watcher, late| {
            let is_over =
                served - late.since >= LATE_REQUESTS_MAX || !faults.is_holding(late.fault);
            watcher == client || is_over
        });
        let config = &shared.config;
        let past_timeout = u64::from(config.timeout_max_ms()) + u64::from(config.tick_time_ms);
        let past_timeout = Duration::from_millis(past_timeout);
        let mut injected = Vec::new();
        for mark in &step.marks {
            let fault = if !mark.fault.is_late_event() {
                mark.fault.to_fault(FaultExtent::new(past_timeout)).once()
            } else if step.told.contains(&mark.client) {
                Fault::delay_events(LATE)
            } else {
                return Err(Stopped::NotFollowed(format!(
                    "request {} causes no event for client {}",
                    served + 1,
                    mark.client + 1
                )));
            };
            let session = self.sessions[usize::from(mark.client)];
            let added = faults.add(fault.of(session).optional());
            let (id, hits) = added.map_err(|error| Stopped::NotFollowed(error.to_string()))?;
            injected.push((id, hits, *mark));
        }
        picking::pick(&shared, self.sessions[client]);
        let mut picked = Ok(());
        for (id, hits, mark) in injected {
            let has_acted = hits.seen().hits > 0;
            match mark.fault {
                SweepFault::EventLate if has_acted => {
                    let late = LateEvents {
                        fault: id,
                        since: served,
                    };
                    self.late.insert(usize::from(mark.client), late);
                    continue;
                }
                // An event was possible, and there was none.
                SweepFault::EventLate => {}
                fault if !has_acted => {
                    let (fault, request) = (fault.name(), served + 1);
                    let why = format!("{fault} did not act on request {request}");
                    picked = Err(Stopped::NotFollowed(why));
                }
                SweepFault::ReplyLate => self.universe.advance(past_timeout),
                SweepFault::ServerRestarted => self.universe.disconnect_all(),
                _ => {}
            }
            fault_turn::remove(&shared, Some(id));
        }
        picked
    }

    /// Returns whether events are late.
    pub(crate) fn has_late_events(&self) -> bool {
        !self.late.is_empty()
    }

    /// Sends all events that are late.
    pub(crate) fn send_all_late_events(&mut self) {
        self.send_late_events(|_, _| true);
    }

    fn send_late_events(&mut self, is_sent: impl Fn(usize, &LateEvents) -> bool) {
        let (shared, count) = (&self.universe.shared, self.late.len());
        self.late.retain(|watcher, late| {
            let is_sent = is_sent(*watcher, late);
            if is_sent {
                fault_turn::remove(shared, Some(late.fault));
            }
            !is_sent
        });
        self.may_have_told |= self.late.len() < count;
    }

    /// Numbers the clients that have come. Which of them asked first differs from run to run, and so may
    /// which of them connected first: those of other programs are told apart by the server to which they are
    /// connected, their process and their requests, too.
    fn number(
        &mut self,
        waiting: &mut [WaitingRequest],
        owners: &BTreeMap<u16, usize>,
    ) -> Result<(), Stopped> {
        order::sort_by_key(waiting, |request| {
            let (op, path) = match request.server {
                0 => ("", String::new()),
                _ => (request.op, without_names(request.path.as_deref())),
            };
            let owner = owners.get(&request.port).copied();
            (request.server, owner, op, path, request.connection)
        });
        for request in waiting {
            if !self.sessions.contains(&request.session) {
                if self.sessions.len() >= CLIENTS_MAX {
                    return Err(Stopped::Crowded);
                }
                self.sessions.push(request.session);
            }
        }
        Ok(())
    }

    fn client_of(&self, session: SessionId) -> usize {
        let known = self.sessions.iter().position(|known| *known == session);
        known.unwrap_or(0)
    }

    /// Serves the requests that wait, and lets later ones pass.
    pub(crate) fn end(&mut self) {
        self.send_all_late_events();
        picking::end(&self.universe.shared);
    }

    /// Says of each client what it has asked last and what it watches.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let sessions = self.universe.sessions();
        let mut lines = Vec::new();
        for (client, session) in self.sessions.iter().enumerate() {
            let mut steps = self.steps.iter().rev().map(ChoicePoint::picked);
            let last = steps.find(|picked| picked.client == client);
            let found = sessions.iter().find(|found| found.id == *session);
            let (Some(last), Some(found)) = (last, found) else {
                continue;
            };
            let watches: Vec<_> = found
                .watches
                .iter()
                .map(|watch| format!("{} ({})", watch.path, watch.kind))
                .collect();
            let watches = match &watches[..] {
                [] => "it watches nothing".to_owned(),
                watches => format!("it watches {}", watches.join(", ")),
            };
            let path = last.path.as_deref().unwrap_or_default();
            lines.push(format!(
                "client {}: its last request was {} {path}; {watches}",
                client + 1,
                last.op
            ));
        }
        lines
    }

    pub(crate) fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// Returns the choices so far, and takes them.
    pub(crate) fn take_steps(&mut self) -> Vec<ChoicePoint> {
        std::mem::take(&mut self.steps)
    }

    /// Returns the session of each client.
    pub(crate) fn sessions(&self) -> &[SessionId] {
        &self.sessions
    }
}

/// What a run of an order showed besides its verdict.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderSeen {
    /// The number of the run.
    pub(crate) run: u64,
    pub(crate) steps: Vec<ChoicePoint>,
    /// Why requests were no longer served in order.
    pub(crate) stopped: Option<Stopped>,
    /// The number of requests that the order names and that did not come.
    pub(crate) missing: usize,
    /// The session of each client.
    pub(crate) sessions: Vec<SessionId>,
    /// The number of requests that came after the choice that they should have been part of.
    pub(crate) late: u64,
    /// What each client waited for when a run hung.
    pub(crate) waiting: Vec<String>,
}

impl OrderSeen {
    /// Returns what a run shows that was not served to its end.
    pub(crate) fn broken() -> Self {
        let why = "the thread that served it has ended".to_owned();
        Self {
            stopped: Some(Stopped::NotFollowed(why)),
            ..Self::default()
        }
    }

    /// Lets the requests of a run pass again. Returns what it showed.
    pub(crate) fn of(mut run: OrderedRun, has_failed: bool) -> Self {
        let waiting = if has_failed {
            run.waiting()
        } else {
            Vec::new()
        };
        run.end();
        Self {
            run: 0,
            missing: run.chooser.missing(),
            steps: run.take_steps(),
            stopped: run.stopped().cloned(),
            sessions: run.sessions().to_vec(),
            late: 0,
            waiting,
        }
    }
}

/// Returns a path without what looks like a random name: UUIDs, and long words with a digit.
fn without_names(path: Option<&str>) -> String {
    let mut kept = String::new();
    let mut rest = path.unwrap_or_default();
    while let Some(next) = rest.chars().next() {
        let word = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
        let word = &rest[..word.unwrap_or(rest.len())];
        let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
        let (length, is_name) = match word {
            _ if is_uuid(rest) => (UUID.len(), true),
            "" => (next.len_utf8(), false),
            _ => (word.len(), word.len() >= 8 && has_digit),
        };
        if !is_name {
            kept.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    kept
}

const UUID: &[u8; 36] = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// Returns whether a text begins with a UUID.
fn is_uuid(text: &str) -> bool {
    let is_part = |(letter, shape): (u8, &u8)| match shape {
        b'-' => letter == b'-',
        _ => letter.is_ascii_hexdigit(),
    };
    text.len() >= UUID.len() && text.bytes().zip(UUID).all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_names_do_not_number_clients() {
        let kept = |path| without_names(Some(path));
        for (path, expected) in [
            // A part of this one is a word without a digit.
            (
                "/lock/_c_4fa3d26b-dead-415d-beef-460c1ec78aa3-lock-",
                "/lock/_c_-lock-",
            ),
            (
                "/lock/0d1b0cbf1f8f4b8ba0f6ff09fdb7a9ab__lock__",
                "/lock/__lock__",
            ),
            ("/queue/n-0000000012", "/queue/n-"),
            ("/workers/2/state", "/workers/2/state"),
            ("/größe/4fa3d26b", "/größe/"),
            ("/4fa3d26b-253f-415d-b6ba", "/-253f-415d-b6ba"),
        ] {
            assert_eq!(kept(path), expected, "{path}");
        }
        assert_eq!(without_names(None), "");
    }
}
