//! Decides which orders to try: all with no unforced change, then all with one, and so on. Pure.
//!
//! Serving another client is unforced if the one that was served last has a further request; an event that
//! is late and a fault are unforced, too. Each run shows at which of its choices another request could have
//! been served; each of those is a branch, which a later run takes. A branch that leads to a state which
//! equivalent requests have led to, with no more changes, is left out: what follows is tried from there. So
//! every order with at most `k` changes is tried, or an equivalent one with at most `k` changes. Source:
//! Musuvathi, Qadeer, "Iterative context bounding for systematic testing of multithreaded programs", 2007.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use minikeeper_core::faults::chance::Chance;

use crate::orders::{
    choice::{CLIENTS_MAX, ChoicePoint, Mark, RequestOrder},
    chooser::{Goal, Streak},
    fault::SweepFault,
    past::{Class, Numbers, Past, numbers_of},
};

/// The maximum number of branches that are remembered; further ones are only counted.
const BRANCHES_MAX: usize = 1_000_000;

/// The maximum memory of the orders of branches. Unit: bytes.
const ORDERS_BYTES_MAX: usize = 256 << 20;

/// The maximum number of states that are remembered. Beyond it, equivalent orders are tried.
const STATES_MAX: usize = 4_000_000;

/// How often a branch is tried that could not be followed.
const ATTEMPTS_MAX: u32 = 3;

/// What a branch does where it leaves the order of another run.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Nothing: it is the first run.
    First,
    /// It serves another client.
    Client(u8),
    /// Something else happens with the last request.
    Mark(Mark),
}

/// The order of a run, for its branches. It counts its memory while it is kept.
#[derive(Debug)]
struct KeptOrder {
    order: RequestOrder,
    bytes: Arc<AtomicUsize>,
}

impl KeptOrder {
    fn new(order: RequestOrder, bytes: &Arc<AtomicUsize>) -> Self {
        bytes.fetch_add(order.bytes(), Ordering::Relaxed);
        Self {
            order,
            bytes: Arc::clone(bytes),
        }
    }
}

impl Drop for KeptOrder {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.order.bytes(), Ordering::Relaxed);
    }
}

/// A choice that no run has made yet.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// The order of the run that came by.
    order: Arc<KeptOrder>,
    /// How much of it comes before the branch.
    length: usize,
    next: Turn,
    /// The number of unforced changes.
    changes: u32,
    /// The class of the state that it leads to.
    class: u64,
    /// How many runs could not follow it.
    attempt: u32,
}

impl Branch {
    pub(crate) const fn changes(&self) -> u32 {
        self.changes
    }

    /// Returns the order up to the branch, and the branch.
    pub(crate) fn to_order(&self) -> RequestOrder {
        let mut order = self.order.order.prefix(self.length);
        match self.next {
            Turn::First => {}
            Turn::Client(client) => order.push(client),
            Turn::Mark(mark) => order.mark(mark),
        }
        order
    }

    /// Returns the number of requests that its order names.
    fn named(&self) -> usize {
        self.length + usize::from(matches!(self.next, Turn::Client(_)))
    }
}

/// How a state was reached with the fewest changes.
#[derive(Clone, Copy, Debug)]
struct Reached {
    changes: u32,
    /// The clients that were served last then, as bits.
    last: u64,
}

/// What a run of a branch showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Followed {
    Yes,
    /// Its order could not be followed, or a request came late.
    No,
}

/// The orders that were tried, and those to try.
#[derive(Debug)]
pub(crate) struct Explorer {
    /// Whether equivalent orders are left out.
    reduces: bool,
    /// What else may happen with a request: events may be late, and one other fault may act.
    faults: Vec<SweepFault>,
    /// Whether the clients that begin a run do the same, so that orders which differ only in their numbers are
    /// equivalent.
    are_alike: bool,
    /// Their numberings, known from the first run.
    numbers: Arc<[Numbers]>,
    chance: Chance,
    /// By number of changes.
    branches: BTreeMap<u32, Vec<Branch>>,
    remembered: usize,
    /// The memory of their orders. Unit: bytes.
    orders_bytes: Arc<AtomicUsize>,
    /// How many runs with so many changes have begun and not ended.
    running: BTreeMap<u32, usize>,
    states: HashMap<u64, Reached>,
    /// The classes of the runs that have ended.
    ends: HashSet<u64>,
    /// The fewest changes of a branch that was forgotten, or could not be followed.
    missed: Option<u32>,
    pub(crate) forgotten: u64,
    pub(crate) not_followed: u64,
    /// The number of branches left out because equivalent ones are tried.
    pub(crate) equivalent: u64,
    /// The most requests of a run.
    pub(crate) length: usize,
    /// The most clients of a run.
    pub(crate) clients: usize,
}

/// A step of a run at which branches leave it.
#[derive(Clone, Copy, Debug)]
struct BranchOff<'a> {
    run: &'a Branch,
    order: &'a Arc<KeptOrder>,
    place: usize,
    step: &'a ChoicePoint,
}

impl BranchOff<'_> {
    fn branch(&self, length: usize, next: Turn, changes: u32, class: Option<Class>) -> Branch {
        Branch {
            order: Arc::clone(self.order),
            length,
            next,
            changes,
            class: class.map_or(0, |class| class.hash),
            attempt: 0,
        }
    }
}

impl Explorer {
    pub(crate) fn new(
        (reduces, are_alike): (bool, bool),
        faults: Vec<SweepFault>,
        seed: u64,
    ) -> Self {
        let (numbers, orders_bytes) = (numbers_of(0), Arc::default());
        let first = Branch {
            order: Arc::new(KeptOrder::new(RequestOrder::default(), &orders_bytes)),
            length: 0,
            next: Turn::First,
            changes: 0,
            class: Past::new(&numbers).class(),
            attempt: 0,
        };
        Self {
            reduces,
            faults,
            are_alike,
            numbers,
            chance: Chance::new(seed),
            branches: BTreeMap::from([(0, vec![first])]),
            remembered: 1,
            orders_bytes,
            running: BTreeMap::new(),
            states: HashMap::new(),
            ends: HashSet::new(),
            missed: None,
            forgotten: 0,
            not_followed: 0,
            equivalent: 0,
            length: 0,
            clients: 0,
        }
    }

    /// Returns the next branch to try, of those with the fewest changes; `None` if there is none now.
    pub(crate) fn next(&mut self) -> Option<Branch> {
        loop {
            let mut first = self.branches.first_entry()?;
            let branches = first.get_mut();
            let place = self.chance.below(branches.len());
            let branch = branches.swap_remove(place);
            if branches.is_empty() {
                first.remove();
            }
            self.remembered -= 1;
            let reached = self.states.get(&branch.class);
            if self.reduces && reached.is_some_and(|reached| reached.changes < branch.changes) {
                // Another order came to the same state with fewer changes.
                self.equivalent += 1;
                continue;
            }
            *self.running.entry(branch.changes).or_default() += 1;
            return Some(branch);
        }
    }

    /// Returns the goal of a run that takes a branch.
    pub(crate) fn goal(branch: &Branch) -> Goal {
        Goal::Follow(branch.to_order())
    }

    /// Learns the choices of the run of a branch.
    pub(crate) fn ended(&mut self, branch: Branch, steps: &[ChoicePoint], followed: Followed) {
        if let Some(count) = self.running.get_mut(&branch.changes) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(&branch.changes);
            }
        }
        self.length = self.length.max(steps.len());
        if followed == Followed::No {
            let attempt = branch.attempt + 1;
            if attempt < ATTEMPTS_MAX {
                self.remember(Branch { attempt, ..branch });
            } else {
                self.not_followed += 1;
                self.miss(branch.changes);
            }
            return;
        }
        let order = Arc::new(KeptOrder::new(RequestOrder::of(steps), &self.orders_bytes));
        self.note_clients(steps);
        let (mut past, mut streak) = (Past::new(&self.numbers), Streak::default());
        let mut is_new = true;
        for (place, step) in steps.iter().enumerate() {
            let at = BranchOff {
                run: &branch,
                order: &order,
                place,
                step,
            };
            if place >= branch.named() && is_new {
                is_new = self.branch_off(&at, &past, streak);
            }
            past.add(step.picked());
            streak.served(step.picked().client);
            for mark in &step.marks {
                past.add_mark(*mark);
            }
            if place + 1 >= branch.named() && is_new {
                self.branch_off_with_marks(&at, &past);
            }
        }
        self.add_end(&past);
    }

    /// Notes which orders are not equivalent.
    pub(crate) fn note_end(&mut self, steps: &[ChoicePoint]) {
        let mut past = Past::new(&self.numbers);
        for step in steps {
            past.add(step.picked());
            step.marks.iter().for_each(|mark| past.add_mark(*mark));
        }
        self.add_end(&past);
    }

    fn add_end(&mut self, past: &Past) {
        if self.ends.len() < STATES_MAX {
            self.ends.insert(past.class());
        }
    }

    /// Returns the number of orders that were tried and are not equivalent.
    pub(crate) fn different(&self) -> usize {
        self.ends.len()
    }

    fn note_clients(&mut self, steps: &[ChoicePoint]) {
        let choices = steps.iter().flat_map(|step| &step.choices);
        let most = choices.map(|choice| choice.client + 1).max();
        // A session that opens later goes on with what another one has begun.
        if self.clients == 0
            && self.are_alike
            && let Some(first) = steps.first()
        {
            self.numbers = numbers_of(first.choices.len());
        }
        self.clients = self.clients.max(most.unwrap_or(0));
    }

    /// Adds the branches that serve another client at a step of a run. Returns whether what follows the step is
    /// new.
    fn branch_off(&mut self, at: &BranchOff<'_>, past: &Past, streak: Streak) -> bool {
        let BranchOff { run, step, .. } = at;
        let goes_on = streak.goes_on(step.choices.iter().map(|choice| choice.client));
        let mut is_new = true;
        for (index, choice) in step.choices.iter().enumerate() {
            let is_unforced = goes_on.is_some_and(|client| client != choice.client);
            let changes = run.changes + u32::from(is_unforced);
            let is_picked = index == step.picked;
            let class = self.reduces.then(|| past.class_with(choice));
            if class.is_some_and(|class| !self.reach(class, changes)) {
                if is_picked {
                    is_new = false;
                } else {
                    self.equivalent += 1;
                }
                continue;
            }
            if is_picked {
                continue;
            }
            if let Ok(client) = u8::try_from(choice.client) {
                self.remember(at.branch(at.place, Turn::Client(client), changes, class));
            }
        }
        is_new
    }

    /// Adds the branches on which something else happens with the request of a step.
    fn branch_off_with_marks(&mut self, at: &BranchOff<'_>, past: &Past) {
        let BranchOff { run, step, .. } = at;
        let client = step.client();
        let mut known = at.order.order.marks().iter();
        let has_fault = known.any(|(_, mark)| !mark.fault.is_late_event());
        let (op, clients) = (step.picked().op, self.clients);
        let mut marks = Vec::new();
        for fault in self.faults.iter().copied() {
            if fault.is_late_event() {
                if step.is_lost() {
                    continue;
                }
                marks.extend(step.told.iter().map(|told| Mark::late(*told)));
            } else if !has_fault && fault.is_possible_at(op, clients, !self.reduces) {
                marks.push(Mark { fault, client });
            }
        }
        // Several come in ascending order.
        let last = step.marks.last().copied();
        marks.retain(|mark| last.is_none_or(|last| last < *mark));
        let changes = run.changes + 1;
        for mark in marks {
            let last = step.picked().client;
            let class = self.reduces.then(|| past.class_with_mark(last, mark));
            if class.is_some_and(|class| !self.reach(class, changes)) {
                self.equivalent += 1;
            } else {
                self.remember(at.branch(at.place + 1, Turn::Mark(mark), changes, class));
            }
        }
    }

    /// Notes that a state is reached. Returns false if that is known, with no more changes.
    fn reach(&mut self, class: Class, changes: u32) -> bool {
        let last = 1 << (class.last % CLIENTS_MAX);
        if let Some(reached) = self.states.get_mut(&class.hash) {
            if reached.changes < changes || reached.changes == changes && reached.last & last != 0 {
                return false;
            }
            if reached.changes > changes {
                *reached = Reached { changes, last: 0 };
            }
            reached.last |= last;
        } else if self.states.len() < STATES_MAX {
            self.states.insert(class.hash, Reached { changes, last });
        }
        true
    }

    fn remember(&mut self, branch: Branch) {
        if self.remembered >= BRANCHES_MAX
            || self.orders_bytes.load(Ordering::Relaxed) > ORDERS_BYTES_MAX
        {
            self.forgotten += 1;
            return self.miss(branch.changes);
        }
        self.remembered += 1;
        let of_as_many = self.branches.entry(branch.changes).or_default();
        of_as_many.push(branch);
    }

    fn miss(&mut self, changes: u32) {
        self.missed = Some(self.missed.map_or(changes, |missed| missed.min(changes)));
    }

    /// Returns the number of changes of the next branch; `None` if there is none now.
    pub(crate) fn next_changes(&self) -> Option<u32> {
        self.branches.keys().next().copied()
    }

    /// Returns the number of branches with at most so many changes that were not tried.
    pub(crate) fn left(&self, changes_max: Option<u32>) -> u64 {
        let is_within = |changes: u32| changes_max.is_none_or(|max| changes <= max);
        let branches = self
            .branches
            .iter()
            .filter(|(changes, _)| is_within(**changes));
        let left: usize = branches.map(|(_, branches)| branches.len()).sum();
        let forgotten = if self.missed.is_some_and(is_within) {
            self.forgotten
        } else {
            0
        };
        left as u64 + forgotten
    }

    /// Returns whether every order was tried, or an equivalent one.
    pub(crate) fn is_complete(&self) -> bool {
        self.first_left().is_none()
    }

    /// Returns how many changes the first order has that was not tried; `None` if none is left.
    fn first_left(&self) -> Option<u32> {
        let running = self.running.keys().next().copied();
        [self.next_changes(), running, self.missed]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the number of changes up to which every order was tried, or an equivalent one; `None` if not
    /// even all without changes were.
    pub(crate) fn changes_done(&self) -> Option<u32> {
        self.first_left()
            .map_or(Some(u32::MAX), |changes| changes.checked_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use minikeeper_engine::Footprint;

    use super::*;
    use crate::orders::choice::Choice;

    #[test]
    fn orders_of_branches_are_freed_once_those_are_done() {
        let choice = |client| Choice {
            client,
            op: "setData",
            path: None,
            footprint: Arc::new(Footprint::everything()),
        };
        let step = |picked| ChoicePoint {
            choices: vec![choice(0), choice(1)],
            picked,
            told: Vec::new(),
            marks: Vec::new(),
        };
        let mut explorer = Explorer::new((true, false), Vec::new(), 0);
        let first = explorer.next().unwrap();
        explorer.ended(first, &[step(0)], Followed::Yes);
        assert_eq!(explorer.orders_bytes.load(Ordering::Relaxed), 1);
        for _ in 0..ATTEMPTS_MAX {
            let branch = explorer.next().unwrap();
            explorer.ended(branch.clone(), &[], Followed::No);
        }
        assert!(explorer.next().is_none());
        assert_eq!(explorer.not_followed, 1);
        assert_eq!(explorer.orders_bytes.load(Ordering::Relaxed), 0);
    }
}
