//! Decides which orders of requests the runs of a sweep try, and judges them. Pure.

use minikeeper_core::faults::chance::Chance;

use crate::{
    orders::{
        choice::{ChoicePoint, RequestOrder},
        chooser::{Goal, Streak},
        explorer::{Branch, Explorer, Followed},
        fault::SweepFault,
        run::{OrderSeen, Stopped},
    },
    story::cut,
    sweep::{
        order_report::{FailedOrder, OrderCoverage, missed},
        order_swaps::{swapped, swaps_of},
        plan::{RunResult, RunVerdict, SweepOptions},
        report::{MESSAGE_CHARS_MAX, SweepFailure, SweepReport},
        timeline::SweepTimeline,
    },
};

/// After this number of failed orders no further one is tried.
const FAILING_MAX: u64 = 100;

/// The number of further orders of a sweep without a budget.
const MORE: u64 = 1_000;

/// How many constraints on the order an error may need so that the chance of a sample is known.
pub(crate) const CONSTRAINTS: u32 = 3;

/// Why a run of an order is done.
#[derive(Clone, Debug)]
pub(crate) enum OrderTask {
    Branch(Branch),
    /// The first order again: the test must do the same.
    Check,
    Sample(Sampled),
    /// The caller named the order.
    Only,
    /// The order of this failure once more.
    Confirm(usize),
    /// The order of this failure, with two of its requests swapped.
    Swap(usize, (usize, usize)),
}

/// How an order is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sampled {
    /// With a known chance to show an error of [`CONSTRAINTS`].
    Few,
    /// With a change at every second request, on average.
    Many,
}

/// A failure whose order is looked at more closely.
#[derive(Debug)]
struct Found {
    /// Where it is in the report.
    failure: usize,
    steps: Vec<ChoicePoint>,
    /// The pairs of requests to swap, last first.
    swaps: Vec<(usize, usize)>,
}

/// The orders to try, and what is known of those that were.
#[derive(Debug)]
pub(crate) struct OrderPlan {
    explorer: Explorer,
    chance: Chance,
    urgent: Vec<(OrderTask, Goal)>,
    /// The first run.
    first: Option<Vec<ChoicePoint>>,
    found: Vec<Found>,
    is_only: bool,
    /// What else may happen with a request.
    faults: Vec<SweepFault>,
    changes_max: Option<u32>,
    more_max: Option<u64>,
    /// The number of orders begun beyond `changes_max`.
    more: u64,
    running: u64,
}

impl OrderPlan {
    pub(crate) fn new(options: &SweepOptions) -> Self {
        let has_budget = options.time_max.is_some() || options.runs_max.is_some();
        let only = options.only_orders.iter().rev();
        let only = only.map(|order| (OrderTask::Only, Goal::Follow(order.clone())));
        let faults = options.faults.iter().copied();
        let faults = faults
            .filter(|fault| fault.is_late_event() || options.depth > 1 && fault.is_of_orders());
        let faults: Vec<_> = faults.collect();
        Self {
            explorer: Explorer::new((!options.all, options.alike), faults.clone(), options.seed),
            chance: Chance::new(options.seed),
            urgent: only.collect(),
            first: None,
            found: Vec::new(),
            is_only: !options.only_orders.is_empty(),
            faults,
            changes_max: options.changes_max,
            more_max: options.more_max.or_else(|| (!has_budget).then_some(MORE)),
            more: 0,
            running: 0,
        }
    }

    /// Returns what to do next; `None` if nothing is known to be left. `is_spent` says that the budget is.
    pub(crate) fn next(
        &mut self,
        is_spent: bool,
        report: &SweepReport,
    ) -> Option<(OrderTask, Goal)> {
        let next = self.choose(is_spent, report);
        self.running += u64::from(next.is_some());
        next
    }

    fn choose(&mut self, is_spent: bool, report: &SweepReport) -> Option<(OrderTask, Goal)> {
        if is_spent {
            // They only tell more of a failure, and each may hang.
            self.urgent
                .retain(|(task, _)| !matches!(task, OrderTask::Swap(..)));
        }
        if let Some(urgent) = self.urgent.pop() {
            return Some(urgent);
        }
        if self.is_only || is_spent || report.failed + report.hung >= FAILING_MAX {
            return None;
        }
        let is_within = |changes| self.changes_max.is_none_or(|max| changes <= max);
        if self.explorer.next_changes().is_some_and(is_within) {
            return self.next_branch();
        }
        // A failure is looked for where it has the fewest changes. What runs may have branches.
        let is_enough = self.more_max.is_some_and(|max| self.more >= max);
        if is_enough || !report.failures.is_empty() || self.explorer.is_complete() {
            return None;
        }
        let next = match self.more % 4 {
            1 => Some(self.sample(Sampled::Few)),
            3 => Some(self.sample(Sampled::Many)),
            _ => self.next_branch(),
        };
        self.more += u64::from(next.is_some());
        next
    }

    fn next_branch(&mut self) -> Option<(OrderTask, Goal)> {
        let branch = self.explorer.next()?;
        let goal = Explorer::goal(&branch);
        Some((OrderTask::Branch(branch), goal))
    }

    fn sample(&mut self, how: Sampled) -> (OrderTask, Goal) {
        let length = self.explorer.length;
        let goal = Goal::Sample {
            seed: self.chance.below(usize::MAX) as u64,
            changes: match how {
                Sampled::Few => CONSTRAINTS - 1,
                Sampled::Many => u32::try_from(length / 2).unwrap_or(u32::MAX),
            },
            length,
            // The chance is known without.
            faults: match how {
                Sampled::Few => Vec::new(),
                Sampled::Many => self.faults.clone(),
            },
        };
        (OrderTask::Sample(how), goal)
    }

    /// Returns whether a run is being done that may have something to do.
    pub(crate) const fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Judges a run that has ended.
    pub(crate) fn ended(
        &mut self,
        task: OrderTask,
        result: &RunResult,
        seen: OrderSeen,
        report: &mut SweepReport,
    ) {
        self.running -= 1;
        let coverage = report.orders.get_or_insert_default();
        coverage.late += seen.late;
        coverage.clients = coverage.clients.max(seen.sessions.len() as u64);
        // A test that fails may end before its order does.
        let is_short = seen.missing > 0 && result.verdict == RunVerdict::Passed;
        let is_followed =
            seen.late == 0 && !is_short && !matches!(seen.stopped, Some(Stopped::NotFollowed(_)));
        let endless = seen.stopped.as_ref().map(Stopped::to_string);
        if !is_followed && coverage.not_followed_why.is_none() {
            let order = match &task {
                OrderTask::Branch(branch) => branch.to_order(),
                // As far as it went.
                _ => RequestOrder::of(&seen.steps),
            };
            let why = match &seen.stopped {
                Some(Stopped::NotFollowed(why)) => why.clone(),
                _ if is_short => format!("the test has ended {} requests earlier", seen.missing),
                _ => "a request came later than the choice that should have known of it".to_owned(),
            };
            coverage.not_followed_why = Some(cut(&format!("{order}: {why}"), MESSAGE_CHARS_MAX));
        }
        let failure = match (&result.verdict, &endless) {
            _ if !is_followed => None,
            // Its further requests passed.
            (RunVerdict::Passed, Some(endless)) => Some((endless.as_str(), true)),
            (RunVerdict::Passed, None) => None,
            (RunVerdict::Failed(message), _) => Some((message.as_str(), false)),
            (RunVerdict::Hung(message), _) => Some((message.as_str(), true)),
        };
        let is_tried = match &task {
            OrderTask::Branch(branch) => {
                let followed = if is_followed {
                    Followed::Yes
                } else {
                    Followed::No
                };
                if is_followed && self.first.is_none() {
                    self.first = Some(seen.steps.clone());
                    let order = RequestOrder::of(&seen.steps);
                    self.urgent.push((OrderTask::Check, Goal::Follow(order)));
                }
                let is_more = self.changes_max.is_some_and(|max| branch.changes() > max);
                coverage.more += u64::from(is_followed && is_more);
                self.explorer.ended(branch.clone(), &seen.steps, followed);
                is_followed
            }
            OrderTask::Sample(_) | OrderTask::Only => {
                if let OrderTask::Sample(how) = task {
                    coverage.sampled += 1;
                    coverage.sampled_with_chance += u64::from(how == Sampled::Few);
                }
                coverage.not_followed += u64::from(!is_followed);
                if is_followed {
                    self.explorer.note_end(&seen.steps);
                }
                is_followed
            }
            OrderTask::Check => {
                let first = self.first.as_deref().unwrap_or_default();
                report.nondeterminism = report
                    .nondeterminism
                    .take()
                    .or_else(|| difference(first, &seen, is_followed));
                false
            }
            OrderTask::Confirm(found) => {
                let found = &self.found[*found];
                let has_failed = failure.is_some();
                let failure = &mut report.failures[found.failure];
                failure.is_flaky = !has_failed;
                report.flaky += u64::from(!has_failed);
                false
            }
            OrderTask::Swap(found, pair) => {
                self.swapped(*found, *pair, (is_followed, failure.is_some()), report);
                false
            }
        };
        if is_tried {
            report.tried += 1;
            match failure {
                None => report.passed += 1,
                Some((_, true)) => report.hung += 1,
                Some((_, false)) => report.failed += 1,
            }
            if let Some((message, is_hang)) = failure {
                self.found((message, is_hang), seen, result, report);
            }
        }
        self.tell(report);
    }

    /// Adds a failure to the report, unless one with the same cause is there.
    fn found(
        &mut self,
        (message, is_hang): (&str, bool),
        seen: OrderSeen,
        result: &RunResult,
        report: &mut SweepReport,
    ) {
        let order = FailedOrder::new(&seen, &result.entries, changes_in(&seen.steps));
        let mut failure = SweepFailure::of_order(
            cut(message, MESSAGE_CHARS_MAX),
            is_hang,
            result.story.clone(),
            order,
        );
        failure.run = seen.run;
        if is_hang {
            failure.waiting = seen.waiting;
            let missed = missed(failure.order.as_ref(), &seen.steps);
            failure.waiting.extend(missed);
        }
        let index = report.failures.len();
        if let Some(other) = report.same_cause(&failure) {
            other.others += 1;
            return;
        }
        if report.takes_timeline(&failure) {
            let numbers = (1..).zip(&seen.sessions);
            let clients = numbers
                .map(|(number, session)| (*session, number))
                .collect();
            failure.timeline = Some(SweepTimeline::new(&result.entries, clients));
        }
        let swaps = swaps_of(&seen.steps);
        report.failures.push(failure);
        self.found.push(Found {
            failure: index,
            steps: seen.steps,
            swaps,
        });
        let place = self.found.len() - 1;
        self.swap_next(place);
        let order = RequestOrder::of(&self.found[place].steps);
        let confirm = OrderTask::Confirm(place);
        self.urgent.push((confirm, Goal::Follow(order)));
    }

    /// Swaps the next pair of requests of a failure.
    fn swap_next(&mut self, place: usize) {
        let found = &mut self.found[place];
        if let Some(pair) = found.swaps.pop() {
            let goal = Goal::Follow(swapped(&found.steps, pair));
            self.urgent.push((OrderTask::Swap(place, pair), goal));
        }
    }

    fn swapped(
        &mut self,
        place: usize,
        pair: (usize, usize),
        (is_followed, has_failed): (bool, bool),
        report: &mut SweepReport,
    ) {
        if !is_followed || has_failed {
            return self.swap_next(place);
        }
        let failure = &mut report.failures[self.found[place].failure];
        if let Some(order) = &mut failure.order {
            order.set_swap(pair);
        }
    }

    /// Brings the report up to date.
    pub(crate) fn tell(&self, report: &mut SweepReport) {
        let explorer = &self.explorer;
        // Orders that the caller names have no branches.
        report.left = if self.is_only {
            0
        } else {
            explorer.left(self.changes_max)
        };
        report.equivalent = explorer.equivalent;
        let coverage = report.orders.get_or_insert_default();
        coverage.clients = coverage.clients.max(explorer.clients as u64);
        coverage.requests = explorer.length as u64;
        coverage.different = explorer.different() as u64;
        coverage.changes_done = explorer.changes_done();
        coverage.is_all = explorer.is_complete();
        if !self.is_only {
            coverage.not_followed = coverage.not_followed.max(explorer.not_followed);
        }
    }
}

/// Returns the number of unforced changes.
fn changes_in(steps: &[ChoicePoint]) -> u32 {
    let mut streak = Streak::default();
    let mut changes = 0;
    for step in steps {
        let goes_on = streak.goes_on(step.choices.iter().map(|choice| choice.client));
        let client = step.picked().client;
        changes += u32::from(goes_on.is_some_and(|last| last != client));
        changes += u32::try_from(step.marks.len()).unwrap_or(u32::MAX);
        streak.served(client);
    }
    changes
}

/// Returns how the same order went another way, and the likely cause.
fn difference(first: &[ChoicePoint], seen: &OrderSeen, is_followed: bool) -> Option<String> {
    let what = |step: &ChoicePoint| (step.picked().client, step.picked().op);
    let pairs = first.iter().zip(&seen.steps);
    let different = pairs
        .clone()
        .position(|(one, other)| what(one) != what(other));
    let place = match different {
        Some(place) => place,
        None if is_followed && first.len() == seen.steps.len() => return None,
        None => first.len().min(seen.steps.len()),
    };
    let describe = |steps: &[ChoicePoint]| match steps.get(place) {
        None => "the end of the run".to_owned(),
        Some(step) => {
            let picked = step.picked();
            let path = picked.path.as_deref().unwrap_or_default();
            format!("{} {path} of client {}", picked.op, picked.client + 1)
        }
    };
    Some(format!(
        "The test is not deterministic: two runs in the same order differ at request {}, {} and {}. What was tried \
         is not all there is; look for random choices, threads and times in the test.",
        place + 1,
        describe(first),
        describe(&seen.steps)
    ))
}

/// Returns how many random orders it takes on average to find an error of [`CONSTRAINTS`], at most.
pub(crate) const fn samples_needed(coverage: &OrderCoverage) -> u64 {
    let length = if coverage.requests == 0 {
        1
    } else {
        coverage.requests
    };
    coverage
        .clients
        .saturating_mul(length.saturating_pow(CONSTRAINTS - 1))
}
