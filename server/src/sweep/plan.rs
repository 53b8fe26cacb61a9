//! Decides what the runs of a sweep do, and judges them. Pure: no clock, no server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use minikeeper_core::{
    faults::{
        chance::Chance,
        op::FaultOp,
        place::{FaultPlace, PathPattern, PlaceBy},
        rule::ROLLBACK_MAX,
    },
    journal::entry::JournalEntry,
    order,
};

use parking_lot::Mutex;

use crate::{
    orders::{
        choice::RequestOrder,
        chooser::Goal,
        fault::{OUTAGE, SweepFault},
        run::OrderSeen,
    },
    story::cut,
    sweep::{
        SweepError, acts,
        map::PointState,
        model::{Model, PlaceBehind},
        oracle::{End, Oracle},
        order_plan::{OrderPlan, OrderTask},
        point::FaultPoint,
        report::{FAILURES_MAX, MESSAGE_CHARS_MAX, SweepFailure, SweepReport, text_of},
        rule::{RuleUse, SweepRule},
        suite::KnownPoints,
        timeline::SweepTimeline,
    },
};

/// What a sweep tries.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SweepOptions {
    /// Whether to try equivalent points, too: the same fault at the same request with the same
    /// result, after the same request of the client. Default: `false`.
    pub all: bool,
    /// How many faults a run has: 1, or 2 to try pairs, too, until a budget ends. With `orders` 2 lets one fault
    /// act in an order. Default: 1.
    pub depth: u32,
    /// The order in which points are tried. Default: 0.
    pub seed: u64,
    /// The maximum number of runs. Default: no limit.
    pub runs_max: Option<u64>,
    /// The time after which no run begins. Default: no limit.
    pub time_max: Option<Duration>,
    /// The faults to try; in orders, with `depth` 1, only `EventLate`, and otherwise the first seven of
    /// [`SweepFault::ALL`]. Default: [`SweepFault::USUAL`].
    pub faults: Vec<SweepFault>,
    /// How long an outage lasts, by the server's clock; `Duration::MAX` if it does not end. Default: 1 s.
    pub outage: Duration,
    /// How many changes a rollback takes back. Default: 1.
    pub rollback: u32,
    /// The failures that the test expects: a run that fails so counts as allowed. Default: none.
    pub allow: Vec<SweepRule>,
    /// The points that are not tried. Default: none.
    pub leave_out: Vec<SweepRule>,
    /// Whether to end with the first failure, once it is confirmed. Default: `false`.
    pub first: bool,
    /// Whether a run also fails if it leaves other znodes, clients or watches than the runs without faults.
    /// Default: `false`.
    pub compare: bool,
    /// The points to try, instead of those that a run shows: each entry is one run, with one point
    /// or two.
    pub only: Vec<Vec<FaultPoint>>,
    /// How many points may stay unreached in a sweep that is clean nevertheless. Default: 0.
    pub allow_unreached: u64,
    /// How many points a budget may leave untried in a sweep that is clean nevertheless. Default: 0.
    pub allow_untried: u64,
    /// Points that were tried already.
    pub tried: Vec<Vec<FaultPoint>>,
    /// Whether to try the orders in which requests can be served, instead of faults. Default: `false`.
    pub orders: bool,
    /// All orders with at most so many unforced changes are tried; `None` for all orders. Serving another client
    /// is unforced if the one that was served last has a further request; so are an event that is late, if
    /// `faults` have `EventLate`, and a fault, if `depth` is 2. Default: 2.
    pub changes_max: Option<u32>,
    /// Whether the clients that have a request at the first choice of a run, up to 4, do the same, so that orders
    /// which differ only in which of them is which are equivalent. The sweep cannot check that. Default: `false`.
    pub alike: bool,
    /// How many further orders are tried then, with more changes and at random in turn, unless an order has
    /// failed. Default: no limit if the sweep has a budget, otherwise 1,000.
    pub more_max: Option<u64>,
    /// The orders to try, instead of those that runs show.
    pub only_orders: Vec<RequestOrder>,
}

impl SweepOptions {
    /// Checks that each of the faults would be tried.
    ///
    /// # Errors
    /// When a rollback takes nothing back or too much, or a fault cannot act in an order, or needs a `depth` of 2 there.
    pub fn check(&self) -> Result<(), SweepError> {
        if !(1..=ROLLBACK_MAX).contains(&self.rollback) {
            return Err(SweepError(format!(
                "rollback {}: from 1 to {ROLLBACK_MAX} changes",
                self.rollback
            )));
        }
        let is_default = self.faults == SweepFault::USUAL;
        let is_foreign = |fault: &&SweepFault| !fault.is_of_orders();
        if self.orders
            && !is_default
            && let Some(fault) = self.faults.iter().find(is_foreign)
        {
            let known = &SweepFault::NAMES[..SweepFault::OF_ORDERS];
            return Err(SweepError(format!(
                "fault {:?}: does not act in orders; one of {}",
                fault.name(),
                known.join(", ")
            )));
        }
        let is_ignored = |fault: &&SweepFault| !fault.is_late_event();
        match self.faults.iter().find(is_ignored) {
            Some(fault) if self.orders && self.depth == 1 && !is_default => {
                Err(SweepError(format!(
                    "fault {:?}: in an order it needs a depth of 2",
                    fault.name()
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            all: false,
            depth: 1,
            seed: 0,
            runs_max: None,
            time_max: None,
            faults: SweepFault::USUAL.to_vec(),
            outage: OUTAGE,
            rollback: 1,
            allow: Vec::new(),
            leave_out: Vec::new(),
            first: false,
            compare: false,
            only: Vec::new(),
            allow_unreached: 0,
            allow_untried: 0,
            tried: Vec::new(),
            orders: false,
            changes_max: Some(2),
            alike: false,
            more_max: None,
            only_orders: Vec::new(),
        }
    }
}

/// The maximum memory of the pairs that a sweep remembers to try; further ones are only counted.
/// Unit: bytes.
const PAIRS_BYTES_MAX: usize = 64 << 20;

/// The maximum number of runs in which a point is tried that is not reached.
const ATTEMPTS_MAX: usize = 5;

/// The maximum number of runs without faults at the beginning.
const LOOKS_MAX: usize = 3;

/// Why a run is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// The test without faults, whose requests are the places.
    Explore,
    /// The same once more: a test that then fails is flaky, and what differs is random.
    Check,
    Try,
    /// The points of a failed run once more.
    Confirm,
    /// One point of a pair that failed.
    Reduce,
    /// The test without faults at the end.
    Finish,
}

/// Where the place of a point is known from.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Known {
    /// The place with this index in the model.
    Place(usize),
    /// A run with a fault, behind which it is.
    Behind(PlaceBehind),
    /// The caller named it, and no run without faults shows it.
    Named,
}

/// A point to try.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Target {
    point: FaultPoint,
    known: Known,
}

impl Target {
    const fn is_behind(&self) -> bool {
        matches!(self.known, Known::Behind(_))
    }

    /// Returns where the point is in the map: `None` if it is not there.
    const fn in_map(&self) -> Option<Option<usize>> {
        match self.known {
            Known::Place(place) => Some(Some(place)),
            Known::Named => Some(None),
            Known::Behind(_) => None,
        }
    }
}

/// A run to do.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Counted from 1.
    pub(crate) number: u64,
    /// What goes wrong in it.
    pub(crate) points: Vec<FaultPoint>,
    /// How the place of each point is found; `None` where the conditions of a fault suffice.
    pub(crate) places: Vec<Option<FaultPlace>>,
    /// How long an outage lasts in it.
    pub(crate) outage: Duration,
    /// How many changes a rollback takes back in it.
    pub(crate) rollback: u32,
    /// Whether its end is compared.
    pub(crate) compares: bool,
    /// The order in which its requests are served; `None` for that in which they come.
    pub(crate) goal: Option<Goal>,
    task: Task,
}

/// What the plan does with the result of a run.
#[derive(Clone, Debug)]
enum Task {
    Faults(FaultTask),
    Order(OrderTask),
}

/// Points that a run tries.
#[derive(Clone, Debug)]
struct FaultTask {
    purpose: Purpose,
    targets: Vec<Target>,
    /// How many runs have not reached these points.
    attempt: usize,
}

impl FaultTask {
    fn points(&self) -> Vec<FaultPoint> {
        let points = self.targets.iter().map(|target| target.point.clone());
        points.collect()
    }
}

impl Run {
    /// Returns whether it repeats a failure.
    pub(crate) const fn is_repeated(&self) -> bool {
        match &self.task {
            Task::Faults(task) => matches!(task.purpose, Purpose::Confirm | Purpose::Reduce),
            Task::Order(task) => matches!(task, OrderTask::Confirm(_) | OrderTask::Swap(..)),
        }
    }

    /// Returns what is tried, as `--only` takes it.
    pub(crate) fn text(&self) -> String {
        match &self.goal {
            Some(Goal::Follow(order)) => order.to_string(),
            Some(Goal::Sample { seed, .. }) => format!("sample {seed}"),
            None => text_of(&self.points),
        }
    }
}

/// What to do next.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    Run(Run),
    /// What is next depends on runs that have not ended.
    Wait,
    Over,
}

/// How the test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RunVerdict {
    Passed,
    Failed(String),
    Hung(String),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunResult {
    pub(crate) verdict: RunVerdict,
    /// Whether every fault has acted.
    pub(crate) is_reached: bool,
    pub(crate) entries: Vec<JournalEntry>,
    /// The number of entries that are missing: the journal has dropped them, or the run has too many.
    pub(crate) missing: u64,
    /// The page with the story of a failure.
    pub(crate) story: Option<String>,
    /// Where in the program it failed, if that is known.
    pub(crate) place: Option<String>,
    /// What was left, if it is compared.
    pub(crate) end: Option<End>,
    /// The goals that the run has noted, and whether it has reached them.
    pub(crate) goals: BTreeMap<String, bool>,
    /// What was seen of the order, if the run had one.
    pub(crate) order: OrderSeen,
}

impl RunResult {
    /// Returns a result without anything that was seen.
    pub(crate) fn new(verdict: RunVerdict, is_reached: bool) -> Self {
        Self {
            verdict,
            is_reached,
            entries: Vec::new(),
            missing: 0,
            story: None,
            place: None,
            end: None,
            goals: BTreeMap::new(),
            order: OrderSeen::default(),
        }
    }
}

/// What a sweep still has to do, and what it has found.
#[derive(Debug)]
pub(crate) struct Plan {
    options: SweepOptions,
    chance: Chance,
    /// To do before anything else, last first.
    urgent: Vec<(Purpose, Vec<Target>, usize)>,
    /// The points to try, last first.
    singles: Vec<Target>,
    /// The pairs to try, and the runs that the caller named, last first.
    pairs: Vec<Vec<Target>>,
    /// Their memory. Unit: bytes.
    pairs_bytes: usize,
    /// The number of pairs for which there was no room.
    forgotten: u64,
    /// The points that fail alone.
    failing: BTreeSet<FaultPoint>,
    /// The number of runs that have begun and not ended.
    running: u64,
    /// What the test does without faults, once it has run.
    model: Option<Model>,
    /// The number of runs without faults at the beginning that have passed.
    looks: usize,
    /// The places of the points of failures, for when they get another name.
    places: BTreeMap<FaultPoint, usize>,
    is_checked: bool,
    is_finished: bool,
    /// The orders to try, instead of faults.
    orders: Option<OrderPlan>,
    /// What the runs without faults at the beginning have left, if that is compared.
    ends: Vec<End>,
    oracle: Option<Oracle>,
    /// The points of the suite, if the test is one of several.
    suite: Option<Arc<Mutex<KnownPoints>>>,
    report: SweepReport,
}

impl Plan {
    pub(crate) fn new(options: SweepOptions) -> Self {
        Self {
            chance: Chance::new(options.seed),
            urgent: vec![(Purpose::Explore, Vec::new(), 0)],
            singles: Vec::new(),
            pairs: Vec::new(),
            pairs_bytes: 0,
            forgotten: 0,
            failing: BTreeSet::new(),
            running: 0,
            model: None,
            looks: 0,
            places: BTreeMap::new(),
            is_checked: false,
            is_finished: false,
            orders: options.orders.then(|| OrderPlan::new(&options)),
            ends: Vec::new(),
            oracle: None,
            suite: None,
            report: SweepReport {
                allowances: RuleUse::all(&options.allow),
                left_out: RuleUse::all(&options.leave_out),
                seed: options.seed,
                allow_unreached: options.allow_unreached,
                allow_untried: options.allow_untried,
                is_only: !options.only.is_empty() || !options.only_orders.is_empty(),
                ..SweepReport::default()
            },
            options,
        }
    }

    /// Leaves out the points that other tests of a suite try.
    pub(crate) fn in_suite(mut self, known: Arc<Mutex<KnownPoints>>) -> Self {
        self.suite = Some(known);
        self
    }

    /// Returns what to do next. `elapsed` is the time since the sweep began.
    pub(crate) fn next(&mut self, elapsed: Duration) -> Next {
        self.report.elapsed = elapsed;
        let is_spent = self.options.time_max.is_some_and(|max| elapsed >= max)
            || self
                .options
                .runs_max
                .is_some_and(|max| self.report.runs >= max)
            || self.options.first && !self.report.failures.is_empty();
        if self.orders.is_some() {
            return self.next_order(is_spent);
        }
        // What confirms a failure is not left out.
        let is_urgent =
            |(purpose, _, _): &(Purpose, Vec<Target>, usize)| !is_spent || *purpose != Purpose::Try;
        if let Some(place) = self.urgent.iter().rposition(is_urgent) {
            let (purpose, targets, attempt) = self.urgent.remove(place);
            return self.begin(purpose, targets, attempt);
        }
        if !self.is_checked {
            return if self.running > 0 {
                Next::Wait
            } else {
                self.report.is_over = true;
                Next::Over
            };
        }
        if !is_spent {
            if let Some(point) = self.singles.pop() {
                return self.begin(Purpose::Try, vec![point], 0);
            }
            if let Some(pair) = self.next_pair() {
                return self.begin(Purpose::Try, pair, 0);
            }
        }
        if self.running > 0 {
            return Next::Wait;
        }
        self.report.left = self.left();
        self.leave_to_suite();
        if self.is_finished || !self.options.only.is_empty() {
            self.report.is_over = true;
            return Next::Over;
        }
        self.is_finished = true;
        self.begin(Purpose::Finish, Vec::new(), 0)
    }

    /// Leaves the points that the budget has left to other tests of the suite.
    fn leave_to_suite(&self) {
        let (Some(suite), Some(model)) = (&self.suite, &self.model) else {
            return;
        };
        let mut known = suite.lock();
        for target in &self.singles {
            if let Known::Place(place) = target.known {
                known.leave(&model.key_of(target.point.fault, place));
            }
        }
    }

    fn next_order(&mut self, is_spent: bool) -> Next {
        let Some(orders) = &mut self.orders else {
            return Next::Over;
        };
        if let Some((task, goal)) = orders.next(is_spent, &self.report) {
            self.report.runs += 1;
            return Next::Run(Run {
                number: self.report.runs,
                points: Vec::new(),
                places: Vec::new(),
                outage: self.options.outage,
                rollback: self.options.rollback,
                compares: false,
                goal: Some(goal),
                task: Task::Order(task),
            });
        }
        if orders.is_running() {
            return Next::Wait;
        }
        orders.tell(&mut self.report);
        self.report.is_over = true;
        Next::Over
    }

    /// Returns the number of points that wait to be tried.
    fn left(&self) -> u64 {
        if self.orders.is_some() {
            return self.report.left;
        }
        let again = self.urgent.iter();
        let again = again
            .filter(|(purpose, _, _)| *purpose == Purpose::Try)
            .count();
        (self.singles.len() + self.pairs.len() + again) as u64 + self.forgotten
    }

    fn next_pair(&mut self) -> Option<Vec<Target>> {
        loop {
            let pair = self.pairs.pop()?;
            self.pairs_bytes = self.pairs_bytes.saturating_sub(bytes_of(&pair));
            // A pair with a point that fails alone shows nothing new.
            if self.options.only.is_empty()
                && pair
                    .iter()
                    .any(|target| self.failing.contains(&target.point))
            {
                continue;
            }
            return Some(pair);
        }
    }

    fn begin(&mut self, purpose: Purpose, mut targets: Vec<Target>, attempt: usize) -> Next {
        self.running += 1;
        self.report.runs += 1;
        let is_only = self.report.is_only;
        for target in &mut targets {
            // What the caller names keeps its name.
            if let (Known::Place(place), Some(model), false) = (&target.known, &self.model, is_only)
            {
                target.point = model.renamed(&target.point, *place);
            }
        }
        let model = self.model.as_ref();
        // Each way to find the second place with each of the first.
        let ways = match targets.iter().any(Target::is_behind) {
            true => PlaceBehind::WAYS,
            false => 1,
        };
        let places = targets.iter().map(|target| {
            let ways = if target.is_behind() { 1 } else { ways };
            place_of(model, target, attempt / ways)
        });
        Next::Run(Run {
            number: self.report.runs,
            points: targets.iter().map(|target| target.point.clone()).collect(),
            places: places.collect(),
            outage: self.options.outage,
            rollback: self.options.rollback,
            compares: self.options.compare,
            goal: None,
            task: Task::Faults(FaultTask {
                purpose,
                targets,
                attempt,
            }),
        })
    }

    /// Judges a run that has ended.
    pub(crate) fn ended(&mut self, run: Run, mut result: RunResult) {
        for (goal, is_reached) in std::mem::take(&mut result.goals) {
            *self.report.goals.entry(goal).or_default() |= is_reached;
        }
        let run = match run.task {
            Task::Faults(task) => task,
            Task::Order(task) => {
                let mut seen = std::mem::take(&mut result.order);
                seen.run = run.number;
                if let Some(orders) = &mut self.orders {
                    orders.ended(task, &result, seen, &mut self.report);
                }
                return;
            }
        };
        self.running -= 1;
        self.compare(&mut result);
        let failure = match &result.verdict {
            RunVerdict::Passed => None,
            RunVerdict::Failed(message) => Some((message.clone(), false)),
            RunVerdict::Hung(message) => Some((message.clone(), true)),
        };
        match run.purpose {
            Purpose::Explore | Purpose::Check => self.looked(run.purpose, failure, &result),
            Purpose::Finish => {
                if let Some((message, _)) = failure {
                    let message = cut(&message, MESSAGE_CHARS_MAX);
                    self.report.without_faults = Some(format!("at the end: {message}"));
                }
            }
            Purpose::Try => self.tried(run, failure, result),
            Purpose::Confirm => self.confirmed(run, failure.is_some(), &result),
            Purpose::Reduce => {
                let alone = &run.targets[0].point;
                let is_allowed = (failure.as_ref())
                    .is_some_and(|(message, _)| self.allowance(&run.targets, message).is_some());
                if failure.is_some() && result.is_reached && !is_allowed {
                    self.note(&run.targets, PointState::Failed);
                    // One fault suffices: the pairs with it add nothing.
                    let is_pair = |found: &SweepFailure| found.points.len() > 1;
                    self.report
                        .failures
                        .retain(|found| !(is_pair(found) && found.points.contains(alone)));
                    if self.failing.insert(alone.clone()) {
                        self.found(run, failure, result);
                    }
                }
            }
        }
    }

    /// Lets a run fail that passed and has left something else than the runs without faults.
    fn compare(&self, result: &mut RunResult) {
        let (Some(oracle), Some(end), RunVerdict::Passed) =
            (&self.oracle, &result.end, &result.verdict)
        else {
            return;
        };
        let differences = oracle.differences(end);
        if !differences.is_empty() {
            let told = differences.join("; ");
            result.verdict =
                RunVerdict::Failed(format!("the test passed, and its end is another: {told}"));
        }
    }

    /// Judges a run without faults at the beginning.
    fn looked(&mut self, purpose: Purpose, failure: Option<(String, bool)>, result: &RunResult) {
        if let Some((message, _)) = failure {
            let message = cut(&message, MESSAGE_CHARS_MAX);
            self.report.without_faults = Some(match purpose {
                Purpose::Explore => message,
                _ => format!("the second time: {message}"),
            });
            // A story tells more than a message.
            self.report.story.clone_from(&result.story);
            return;
        }
        self.looks += 1;
        self.ends.extend(result.end.clone());
        self.report.unseen = self.report.unseen.max(result.missing);
        match &mut self.model {
            None => self.model = Some(Model::new(&result.entries)),
            Some(model) => {
                model.learn(&result.entries);
                let difference = model.difference(&result.entries);
                self.report.nondeterminism = self.report.nondeterminism.take().or(difference);
                // Names that are equal by chance, or clients that are taken for others.
                let is_in_doubt = model.is_in_doubt() || self.report.nondeterminism.is_some();
                if !is_in_doubt || self.looks >= LOOKS_MAX {
                    self.prepare();
                    return;
                }
            }
        }
        self.urgent.push((Purpose::Check, Vec::new(), 0));
    }

    /// Lists the points, once the test has run without faults.
    fn prepare(&mut self) {
        self.is_checked = true;
        let Some(model) = &mut self.model else {
            return;
        };
        model.number();
        if let Some((first, others)) = self.ends.split_first() {
            let mut oracle = Oracle::new(model, first);
            others.iter().for_each(|end| oracle.learn(end));
            self.oracle = Some(oracle);
        }
        if !self.options.only.is_empty() {
            let target = |point: &FaultPoint| Target {
                point: point.clone(),
                known: model.place_of(point).map_or(Known::Named, Known::Place),
            };
            let runs = self.options.only.iter().rev();
            self.pairs = runs
                .map(|points| points.iter().map(target).collect())
                .collect();
            self.report.points = self.pairs.len() as u64;
            for run in self.pairs.iter().rev() {
                match &run[..] {
                    [one] => {
                        let place = one.in_map().flatten();
                        let map = &mut self.report.map;
                        let lock = place.map_or("", |place| model.lock_at(place));
                        map.add((place, lock), &one.point, PointState::Untried);
                    }
                    _ => self.report.map.pairs += 1,
                }
            }
            return;
        }
        let mut points = model.points(&self.options.faults, self.options.all);
        let every = model.points(&self.options.faults, true);
        let left_out = &mut self.report.left_out;
        let rule_of = |point: &FaultPoint| {
            let mut rules = self.options.leave_out.iter();
            rules.position(|rule| rule.is_about(point))
        };
        points.retain(|(point, _)| match rule_of(point) {
            Some(rule) => {
                left_out[rule].points += 1;
                false
            }
            None => true,
        });
        if let Some(suite) = &self.suite {
            let mut known = suite.lock();
            points.retain(|(point, place)| known.take(&model.key_of(point.fault, *place)));
        }
        self.report.points = points.len() as u64;
        let left_out: u64 = self.report.left_out.iter().map(|rule| rule.points).sum();
        self.report.equivalent = (every.len() - points.len()) as u64 - left_out;
        let alone = self
            .options
            .tried
            .iter()
            .filter_map(|tried| match &tried[..] {
                [one] => Some(one),
                _ => None,
            });
        let alone: BTreeSet<_> = order::collect(alone);
        let is_tried = |point: &FaultPoint| alone.contains(point);
        // In the same order.
        let mut next = points.iter().peekable();
        for target in &every {
            let (point, place) = target;
            let state = match next.next_if_eq(&target) {
                None if rule_of(point).is_some() => PointState::LeftOut,
                None => PointState::Equivalent,
                Some(_) if is_tried(point) => PointState::PassedEarlier,
                Some(_) => PointState::Untried,
            };
            let place = (Some(*place), model.lock_at(*place));
            self.report.map.add(place, point, state);
        }
        self.singles = points
            .into_iter()
            .filter(|(point, _)| !is_tried(point))
            .map(|(point, place)| Target {
                point,
                known: Known::Place(place),
            })
            .collect();
        self.report.earlier = self.report.points - self.singles.len() as u64;
        shuffle(&mut self.singles, &mut self.chance);
        most_different_first(&mut self.singles, model);
    }

    /// Learns from a run in which no fault acted, so that it is one without faults.
    fn learn(&mut self, entries: &[JournalEntry]) {
        if entries.iter().any(|entry| entry.kind() == "fault") {
            return;
        }
        let Some(model) = &mut self.model else {
            return;
        };
        if !model.learn(entries) || self.report.is_only {
            return;
        }
        // What was found must be found again by its name.
        let rename = |point: &mut FaultPoint| {
            if let Some(place) = self.places.get(point) {
                *point = model.renamed(point, *place);
            }
        };
        let found = self.report.failures.iter_mut();
        let found = found.flat_map(|failure| &mut failure.points);
        found
            .chain(self.report.unreached.iter_mut().flatten())
            .for_each(rename);
        for row in &mut self.report.map.rows {
            if let Some(place) = row.place {
                (row.path, row.nth) = model.name_of(place);
            }
        }
        let places = std::mem::take(&mut self.places);
        for (point, place) in places {
            self.places.insert(model.renamed(&point, place), place);
        }
        let failing = std::mem::take(&mut self.failing);
        for point in failing {
            let place = self.places.get(&point);
            let renamed = place.map(|place| model.renamed(&point, *place));
            self.failing.insert(renamed.unwrap_or(point));
        }
    }

    fn tried(&mut self, run: FaultTask, failure: Option<(String, bool)>, result: RunResult) {
        let is_told = result.is_reached || failure.is_some();
        if !is_told {
            self.learn(&result.entries);
            let attempt = run.attempt + 1;
            if attempt < ATTEMPTS_MAX {
                self.urgent.push((Purpose::Try, run.targets, attempt));
                return;
            }
        }
        for target in &run.targets {
            if let Known::Place(place) = &target.known {
                self.places.insert(target.point.clone(), *place);
            }
        }
        if is_told {
            self.report.tried += 1;
        } else {
            self.report.not_reached += 1;
            if self.report.unreached.len() < FAILURES_MAX {
                self.report.unreached.push(run.points());
            }
        }
        let allowance =
            (failure.as_ref()).and_then(|(message, _)| self.allowance(&run.targets, message));
        if let Some(allowance) = allowance {
            self.report.allowances[allowance].points += 1;
            self.report.allowed += 1;
            self.note(&run.targets, PointState::Allowed);
            return;
        }
        let state = match &failure {
            Some((_, true)) => PointState::Hung,
            Some((_, false)) => PointState::Failed,
            None if result.is_reached => PointState::Passed,
            None => PointState::NotReached,
        };
        self.note(&run.targets, state);
        let Some((_, is_hang)) = failure else {
            self.report.passed += u64::from(result.is_reached);
            if result.is_reached && self.options.depth > 1 && run.targets.len() == 1 {
                self.add_pairs(&run.targets[0], &result.entries, result.missing);
            }
            return;
        };
        if is_hang {
            self.report.hung += 1;
        } else {
            self.report.failed += 1;
        }
        match &run.points()[..] {
            [point] => {
                self.failing.insert(point.clone());
            }
            _ => {
                let reductions = run.targets.iter().map(|target| {
                    // Without the first fault, clients do something else before the second one.
                    let attempt = usize::from(target.is_behind());
                    (Purpose::Reduce, vec![target.clone()], attempt)
                });
                self.urgent.extend(reductions);
            }
        }
        self.urgent
            .push((Purpose::Confirm, run.targets.clone(), run.attempt));
        self.found(run, failure, result);
    }

    /// Returns the rule that expects a failure with this message.
    fn allowance(&self, targets: &[Target], message: &str) -> Option<usize> {
        let points: Vec<_> = targets.iter().map(|target| target.point.clone()).collect();
        let mut rules = self.report.allowances.iter();
        rules.position(|known| known.rule.expects(&points, message))
    }

    /// Notes in the map what became of a run.
    fn note(&mut self, targets: &[Target], state: PointState) {
        match targets {
            [one] => {
                if let Some(place) = one.in_map() {
                    self.report.map.set(place, &one.point, state);
                }
            }
            _ => self.report.map.add_pair(state),
        }
    }

    /// Adds a failure to the report.
    fn found(&mut self, run: FaultTask, failure: Option<(String, bool)>, result: RunResult) {
        if self.report.failures.len() >= FAILURES_MAX {
            return;
        }
        let (message, is_hang) = failure.unwrap_or_default();
        let mut failure = SweepFailure::new(
            run.points(),
            message,
            is_hang,
            &result.entries,
            result.story,
        );
        failure.place = result.place;
        failure.difference =
            (self.model.as_ref()).and_then(|model| model.difference_from(&result.entries));
        if self.report.takes_timeline(&failure) {
            let clients = self.model.as_ref().map(|model| {
                let mut clients = model.clients_in(&result.entries);
                // Clients that do the same are told apart only where they come to the point.
                let number = failure.points.first().map_or(0, |point| point.client);
                let acted = acts::fault_in(&result.entries);
                let session = acted.and_then(|acted| result.entries[acted].session);
                if let (1.., Some(session)) = (number, session)
                    && let Some(found) = clients.get(&session).copied()
                {
                    for other in clients.values_mut().filter(|other| **other == number) {
                        *other = found;
                    }
                    clients.insert(session, number);
                }
                clients
            });
            failure.timeline = Some(SweepTimeline::new(
                &result.entries,
                clients.unwrap_or_default(),
            ));
        }
        self.report.failures.push(failure);
    }

    fn confirmed(&mut self, run: FaultTask, has_failed: bool, result: &RunResult) {
        if !has_failed && !result.is_reached {
            // It tells nothing of the failure.
            self.learn(&result.entries);
            let attempt = run.attempt + 1;
            if attempt < 2 * ATTEMPTS_MAX {
                self.urgent.push((Purpose::Confirm, run.targets, attempt));
                return;
            }
        }
        let points = run.points();
        let failure = (self.report.failures.iter_mut()).find(|failure| failure.points == points);
        let Some(failure) = failure else {
            return;
        };
        failure.is_flaky = !has_failed;
        if failure.is_flaky {
            self.report.flaky += 1;
            if let [one] = &run.targets[..]
                && let Some(place) = one.in_map()
            {
                let map = &mut self.report.map;
                map.set(place, &one.point, PointState::Flaky);
            }
        } else if failure.story.is_none() {
            failure.story.clone_from(&result.story);
        }
    }

    /// Adds the pairs of a point that passes with each point after it.
    fn add_pairs(&mut self, first: &Target, entries: &[JournalEntry], missing: u64) {
        self.report.unseen = self.report.unseen.max(missing);
        let Some(model) = &self.model else {
            return;
        };
        let seconds = model.points_behind(entries, &self.options.faults, self.options.all);
        for (second, place) in seconds {
            self.report.points += 1;
            self.report.map.pairs += 1;
            let second = Target {
                point: second,
                known: Known::Behind(place),
            };
            let pair = vec![first.clone(), second];
            let is_tried =
                |tried: &Vec<FaultPoint>| tried.iter().eq(pair.iter().map(|target| &target.point));
            if self.options.tried.iter().any(is_tried) {
                self.report.earlier += 1;
                self.report.map.add_pair(PointState::PassedEarlier);
                continue;
            }
            let bytes = bytes_of(&pair);
            if self.pairs_bytes + bytes > PAIRS_BYTES_MAX {
                self.forgotten += 1;
                continue;
            }
            self.pairs_bytes += bytes;
            self.pairs.push(pair);
            // Each gets a random place at once, because they are tried while others come.
            let last = self.pairs.len() - 1;
            self.pairs.swap(last, self.chance.below(last + 1));
        }
    }

    /// Returns what differs between the runs without faults besides names.
    pub(crate) fn nondeterminism(&self) -> Option<&str> {
        self.report.nondeterminism.as_deref()
    }

    /// Returns what was found so far.
    pub(crate) fn report(&self) -> SweepReport {
        let mut report = self.report.clone();
        report.left = self.left();
        report
    }

    /// Returns what was found. A sweep that is not over was interrupted.
    pub(crate) fn into_report(mut self) -> SweepReport {
        if !self.report.is_over {
            self.report.is_interrupted = true;
            self.report.left = self.left();
        }
        self.report
    }
}

/// Says how to find the place of a point.
fn place_of(model: Option<&Model>, target: &Target, attempt: usize) -> Option<FaultPlace> {
    let FaultPoint {
        client,
        op,
        nth,
        path,
        ..
    } = &target.point;
    if *client == 0 {
        // Handshakes are counted.
        return None;
    }
    match &target.known {
        Known::Place(place) => model?.aim(*place, attempt),
        Known::Behind(place) => Some(place.aim(&target.point, attempt)),
        Known::Named => {
            let what = (op.parse::<FaultOp>().ok(), PathPattern::new(path), *nth);
            let place = FaultPlace::new(PlaceBy::Anyone, (Arc::default(), 0), what);
            Some(place.with_rank(1))
        }
    }
}

/// Returns the memory of a pair, about. Unit: bytes.
fn bytes_of(targets: &[Target]) -> usize {
    let of_target = |Target { point, known }: &Target| {
        let of_requests = match known {
            Known::Behind(place) => place.bytes,
            Known::Place(_) | Known::Named => 0,
        };
        size_of::<Target>() + point.path.capacity() + point.op.capacity() + of_requests
    };
    size_of::<Vec<Target>>() + targets.iter().map(of_target).sum::<usize>()
}

fn shuffle(points: &mut [Target], chance: &mut Chance) {
    for last in (1..points.len()).rev() {
        points.swap(last, chance.below(last + 1));
    }
}

/// Orders points, of which the last is the first to be tried, so that those which have the least in common with
/// the ones before come first: other faults at other operations, then other paths and states of locks.
fn most_different_first(points: &mut [Target], model: &Model) {
    /// How often each key has come so far.
    type Counts<K> = BTreeMap<K, u64>;
    fn count<K: Ord>(counts: &mut Counts<K>, key: K) -> u64 {
        let count = counts.entry(key).or_default();
        *count += 1;
        *count
    }
    let (mut places, mut at_operations) = (Counts::new(), Counts::new());
    let (mut faults, mut operations) = (Counts::new(), Counts::new());
    let mut ranks = Vec::new();
    for Target { point, known } in points.iter() {
        let (fault, op) = (point.fault, &point.op[..]);
        let lock = match known {
            Known::Place(place) => model.lock_at(*place),
            Known::Behind(_) | Known::Named => "",
        };
        ranks.push((
            count(&mut places, (fault, op, &point.path[..], lock)),
            count(&mut at_operations, (fault, op)),
            count(&mut faults, fault) + count(&mut operations, op),
        ));
    }
    let mut ranked: Vec<_> = ranks.into_iter().zip(points.iter().cloned()).collect();
    order::sort_by_key(&mut ranked, |(rank, _)| std::cmp::Reverse(*rank));
    for (place, (_, target)) in points.iter_mut().zip(ranked) {
        *place = target;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::report::SweepState;

    fn point(nth: u64) -> FaultPoint {
        format!("reply-lost:1:create:{nth}:/a").parse().unwrap()
    }

    fn result(verdict: RunVerdict) -> RunResult {
        RunResult::new(verdict, true)
    }

    fn failed(why: &str) -> RunVerdict {
        RunVerdict::Failed(why.to_owned())
    }

    /// Does a whole sweep of these points with a test that ends so; returns the points of each run.
    fn sweep(
        options: SweepOptions,
        mut test: impl FnMut(&[FaultPoint]) -> RunVerdict,
    ) -> (Vec<Vec<FaultPoint>>, SweepReport) {
        let mut plan = Plan::new(options);
        let mut runs = Vec::new();
        loop {
            match plan.next(Duration::ZERO) {
                Next::Run(run) => {
                    runs.push(run.points.clone());
                    let verdict = test(&run.points);
                    plan.ended(run, result(verdict));
                }
                Next::Wait => panic!("nothing runs"),
                Next::Over => return (runs, plan.into_report()),
            }
        }
    }

    fn only(points: &[&[u64]]) -> SweepOptions {
        let run = |numbers: &&[u64]| numbers.iter().map(|nth| point(*nth)).collect();
        SweepOptions {
            only: points.iter().map(run).collect(),
            ..SweepOptions::default()
        }
    }

    #[test]
    fn test_that_fails_without_faults_ends_the_sweep() {
        let (runs, report) = sweep(SweepOptions::default(), |_| failed("always"));
        assert_eq!(runs, [vec![]]);
        assert_eq!(report.without_faults.as_deref(), Some("always"));
        assert!(!report.is_clean());
        let mut count = 0;
        let (runs, report) = sweep(SweepOptions::default(), |_| {
            count += 1;
            if count == 2 {
                failed("now and then")
            } else {
                RunVerdict::Passed
            }
        });
        assert_eq!(runs.len(), 2);
        let why = report.without_faults.unwrap();
        assert_eq!(why, "the second time: now and then");
    }

    #[test]
    fn sweep_ends_with_a_run_without_faults() {
        let mut count = 0;
        let (runs, report) = sweep(SweepOptions::default(), |_| {
            count += 1;
            if count == 3 {
                failed("worn out")
            } else {
                RunVerdict::Passed
            }
        });
        assert_eq!(runs.len(), 3);
        assert_eq!(
            report.without_faults.as_deref(),
            Some("at the end: worn out")
        );
    }

    #[test]
    fn sweep_that_has_nothing_to_try_is_not_clean() {
        let (runs, report) = sweep(SweepOptions::default(), |_| RunVerdict::Passed);
        assert_eq!(runs.len(), 3);
        assert_eq!(report.state(), SweepState::Incomplete);
        let why = report.reasons().join("; ");
        assert!(why.starts_with("nothing was tried: "), "{why}");
    }

    #[test]
    fn failure_is_repeated_and_one_that_passes_then_is_flaky() {
        let mut count = 0;
        let (runs, report) = sweep(only(&[&[1], &[2]]), |points| {
            count += u64::from(points == [point(1)]);
            match points {
                [one] if *one == point(2) => failed("always"),
                [one] if *one == point(1) && count == 1 => failed("once"),
                _ => RunVerdict::Passed,
            }
        });
        assert_eq!(
            runs,
            [
                vec![],
                vec![],
                vec![point(1)],
                vec![point(1)],
                vec![point(2)],
                vec![point(2)]
            ]
        );
        let flaky: Vec<_> = report
            .failures
            .iter()
            .map(|failure| failure.is_flaky)
            .collect();
        assert_eq!(flaky, [true, false]);
        assert_eq!((report.tried, report.failed, report.flaky), (2, 2, 1));
    }

    #[test]
    fn pair_that_fails_is_reduced_to_the_fault_that_suffices() {
        let (runs, report) = sweep(only(&[&[1, 2]]), |points| {
            if points.contains(&point(2)) {
                failed("because of 2")
            } else {
                RunVerdict::Passed
            }
        });
        let pair = vec![point(1), point(2)];
        assert_eq!(runs[..4], [vec![], vec![], pair.clone(), pair.clone()]);
        assert!(runs[4..].contains(&vec![point(1)]) && runs[4..].contains(&vec![point(2)]));
        let found: Vec<_> = report
            .failures
            .iter()
            .map(|failure| &failure.points[..])
            .collect();
        assert_eq!(found, [&[point(2)]], "the pair adds nothing");
    }

    #[test]
    fn pair_stays_if_neither_fault_suffices() {
        let (_, report) = sweep(only(&[&[1, 2]]), |points| {
            if points.len() == 2 {
                failed("both")
            } else {
                RunVerdict::Passed
            }
        });
        let found: Vec<_> = report
            .failures
            .iter()
            .map(|failure| failure.points.len())
            .collect();
        assert_eq!(found, [2]);
    }

    #[test]
    fn budget_ends_a_sweep_and_the_rest_is_counted() {
        let mut options = only(&[&[1], &[2], &[3], &[4]]);
        options.runs_max = Some(4);
        let (runs, report) = sweep(options, |_| RunVerdict::Passed);
        assert_eq!(runs.len(), 4);
        assert_eq!((report.tried, report.left), (2, 2));
        assert_eq!(report.reasons(), ["2 points were not tried"]);
    }

    #[test]
    fn map_has_what_became_of_each_point() {
        let mut options = only(&[&[1], &[2], &[3], &[4], &[1, 2]]);
        // Three more runs confirm failures, and the last two points are beyond the budget.
        options.runs_max = Some(6);
        let mut flaky = 0;
        let (_, report) = sweep(options, |points| match points {
            [one] if one.nth == 1 => failed("always"),
            [one] if one.nth == 2 => {
                flaky += 1;
                match flaky {
                    1 => failed("once"),
                    _ => RunVerdict::Passed,
                }
            }
            _ => RunVerdict::Passed,
        });
        let map = &report.map;
        let states: Vec<_> = map
            .rows
            .iter()
            .map(|row| (row.nth, row.states[0].1))
            .collect();
        let expected = [
            (1, PointState::Failed),
            (2, PointState::Flaky),
            (3, PointState::Untried),
            (4, PointState::Untried),
        ];
        assert_eq!(states, expected);
        assert_eq!((map.pairs, &map.pair_states[..]), (1, &[][..]));
    }

    #[test]
    fn failures_of_one_cause_have_one_timeline() {
        let (_, report) = sweep(only(&[&[1], &[2], &[3]]), |points| match points {
            [] => RunVerdict::Passed,
            [one] if one.nth == 3 => failed("something else"),
            _ => failed("the same"),
        });
        let failures = report.failures.iter();
        let timelines: Vec<_> = failures.map(|failure| failure.timeline.is_some()).collect();
        assert_eq!(timelines, [true, false, true]);
    }

    #[test]
    fn causes_group_failures_whatever_their_numbers() {
        let (_, report) = sweep(only(&[&[1], &[2], &[3]]), |points| match points {
            [] => RunVerdict::Passed,
            [one] if one.nth == 3 => failed("something else"),
            [one] => failed(&format!("7{} of 0xabc{} left", one.nth, one.nth)),
            _ => unreachable!(),
        });
        let sizes: Vec<_> = report.groups().iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1]);
        let text = report.to_string();
        assert!(text.contains("--only 'reply-lost:1:create:1:/a'"), "{text}");
        assert!(
            text.contains("and likewise at 1 further point:\n     reply-lost:1:create:2:/a"),
            "{text}"
        );
    }
}
