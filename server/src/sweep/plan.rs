//! Decides what the runs of a sweep do, and judges them. Pure: no clock, no server.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    faults::chance::Chance,
    journal::entry::JournalEntry,
    order,
    story::cut,
    sweep::{
        point::{self, FaultPoint, SweepFault},
        report::{MESSAGE_CHARS_MAX, SweepFailure, SweepReport},
    },
};

/// What a sweep tries.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SweepOptions {
    /// Whether to try equivalent points, too: the same fault at the same request with the same
    /// result, after the same request of the client. Default: `false`.
    pub all: bool,
    /// How many faults a run has: 1, or 2 to try pairs, too, until a budget ends. Default: 1.
    pub depth: u32,
    /// The order in which points are tried. Default: 0.
    pub seed: u64,
    /// The maximum number of runs. Default: no limit.
    pub runs_max: Option<u64>,
    /// The time after which no run begins. Default: no limit.
    pub time_max: Option<Duration>,
    /// The faults to try. Default: all.
    pub faults: Vec<SweepFault>,
    /// The points to try, instead of those that a run shows: each entry is one run, with one point
    /// or two.
    pub only: Vec<Vec<FaultPoint>>,
    /// How many points may stay unreached in a sweep that is clean nevertheless. Default: 0.
    pub allow_unreached: u64,
    /// How many points a budget may leave untried in a sweep that is clean nevertheless. Default: 0.
    pub allow_untried: u64,
    /// Points that were tried already.
    pub tried: Vec<Vec<FaultPoint>>,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            all: false,
            depth: 1,
            seed: 0,
            runs_max: None,
            time_max: None,
            faults: SweepFault::ALL.to_vec(),
            only: Vec::new(),
            allow_unreached: 0,
            allow_untried: 0,
            tried: Vec::new(),
        }
    }
}

/// The maximum memory of the pairs that a sweep remembers to try; further ones are only counted.
/// Unit: bytes.
const PAIRS_BYTES_MAX: usize = 64 << 20;

/// The maximum number of failures that a report lists.
const FAILURES_MAX: usize = 1_000;

/// Why a run is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// The test without faults, whose requests are the places.
    Explore,
    /// The same once more: a test that then fails is flaky.
    Check,
    Try,
    /// The points of a failed run once more.
    Confirm,
    /// One point of a pair that failed.
    Reduce,
    /// The test without faults at the end.
    Finish,
}

/// A run to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// Counted from 1.
    pub(crate) number: u64,
    /// What goes wrong in it.
    pub(crate) points: Vec<FaultPoint>,
    purpose: Purpose,
}

impl Run {
    /// Returns whether it repeats a failure.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(self.purpose, Purpose::Confirm | Purpose::Reduce)
    }
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// The page with the story of a failure.
    pub(crate) story: Option<String>,
}

/// What a sweep still has to do, and what it has found.
#[derive(Debug)]
pub(crate) struct Plan {
    options: SweepOptions,
    chance: Chance,
    /// To do before anything else, last first.
    urgent: Vec<(Purpose, Vec<FaultPoint>)>,
    /// The points to try, last first.
    singles: Vec<FaultPoint>,
    /// The pairs to try, last first.
    pairs: Vec<Vec<FaultPoint>>,
    /// Their memory. Unit: bytes.
    pairs_bytes: usize,
    /// The number of pairs for which there was no room.
    forgotten: u64,
    /// The points that fail alone.
    failing: BTreeSet<FaultPoint>,
    /// The number of runs that have begun and not ended.
    running: u64,
    is_explored: bool,
    is_checked: bool,
    is_finished: bool,
    report: SweepReport,
}

impl Plan {
    pub(crate) fn new(options: SweepOptions) -> Self {
        Self {
            chance: Chance::new(options.seed),
            urgent: vec![(Purpose::Explore, Vec::new())],
            singles: Vec::new(),
            pairs: Vec::new(),
            pairs_bytes: 0,
            forgotten: 0,
            failing: BTreeSet::new(),
            running: 0,
            is_explored: false,
            is_checked: false,
            is_finished: false,
            report: SweepReport {
                seed: options.seed,
                allow_unreached: options.allow_unreached,
                allow_untried: options.allow_untried,
                is_only: !options.only.is_empty(),
                ..SweepReport::default()
            },
            options,
        }
    }

    /// Returns what to do next. `elapsed` is the time since the sweep began.
    pub(crate) fn next(&mut self, elapsed: Duration) -> Next {
        self.report.elapsed = elapsed;
        let is_spent = self.options.time_max.is_some_and(|max| elapsed >= max)
            || self
                .options
                .runs_max
                .is_some_and(|max| self.report.runs >= max);
        // What confirms a failure is not left out.
        if let Some((purpose, points)) = self.urgent.pop() {
            return self.begin(purpose, points);
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
                return self.begin(Purpose::Try, vec![point]);
            }
            if let Some(pair) = self.next_pair() {
                return self.begin(Purpose::Try, pair);
            }
        }
        if self.running > 0 {
            return Next::Wait;
        }
        self.report.left = self.left();
        if self.is_finished || !self.options.only.is_empty() {
            self.report.is_over = true;
            return Next::Over;
        }
        self.is_finished = true;
        self.begin(Purpose::Finish, Vec::new())
    }

    /// Returns the number of points that wait to be tried.
    fn left(&self) -> u64 {
        (self.singles.len() + self.pairs.len()) as u64 + self.forgotten
    }

    fn next_pair(&mut self) -> Option<Vec<FaultPoint>> {
        loop {
            let pair = self.pairs.pop()?;
            self.pairs_bytes = self.pairs_bytes.saturating_sub(bytes_of(&pair));
            // A pair with a point that fails alone shows nothing new.
            if self.options.only.is_empty() && pair.iter().any(|point| self.failing.contains(point))
            {
                continue;
            }
            return Some(pair);
        }
    }

    fn begin(&mut self, purpose: Purpose, points: Vec<FaultPoint>) -> Next {
        self.running += 1;
        self.report.runs += 1;
        Next::Run(Run {
            number: self.report.runs,
            points,
            purpose,
        })
    }

    /// Judges a run that has ended.
    pub(crate) fn ended(&mut self, run: Run, result: RunResult) {
        self.running -= 1;
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
            Purpose::Confirm => self.confirmed(&run, failure.is_some(), &result),
            Purpose::Reduce => {
                let alone = &run.points[0];
                if failure.is_some() && result.is_reached {
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
        if purpose == Purpose::Check {
            self.is_checked = true;
            return;
        }
        self.is_explored = true;
        if !self.options.only.is_empty() {
            self.is_checked = true;
            self.pairs = self.options.only.iter().rev().cloned().collect();
            self.report.points = self.pairs.len() as u64;
            return;
        }
        let faults = self.options.faults.clone();
        self.singles = point::points_of(&result.entries, &faults, self.options.all);
        let every = point::points_of(&result.entries, &faults, true).len();
        self.report.points = self.singles.len() as u64;
        self.report.equivalent = (every - self.singles.len()) as u64;
        let found = self.singles.len();
        self.singles.retain(|point| {
            !self
                .options
                .tried
                .iter()
                .any(|tried| tried[..] == [point.clone()])
        });
        self.report.earlier = (found - self.singles.len()) as u64;
        shuffle(&mut self.singles, &mut self.chance);
        self.urgent.push((Purpose::Check, Vec::new()));
    }

    fn tried(&mut self, run: Run, failure: Option<(String, bool)>, result: RunResult) {
        if result.is_reached || failure.is_some() {
            self.report.tried += 1;
        } else {
            self.report.not_reached += 1;
            if self.report.unreached.len() < FAILURES_MAX {
                self.report.unreached.push(run.points.clone());
            }
        }
        let Some((_, is_hang)) = failure else {
            self.report.passed += u64::from(result.is_reached);
            if result.is_reached && self.options.depth > 1 && run.points.len() == 1 {
                self.add_pairs(&run.points[0], &result.entries);
            }
            return;
        };
        if is_hang {
            self.report.hung += 1;
        } else {
            self.report.failed += 1;
        }
        match &run.points[..] {
            [point] => {
                self.failing.insert(point.clone());
            }
            points => {
                let alone = points.iter().map(|point| vec![point.clone()]);
                let reductions = alone.map(|points| (Purpose::Reduce, points));
                self.urgent.extend(reductions);
            }
        }
        self.urgent.push((Purpose::Confirm, run.points.clone()));
        self.found(run, failure, result);
    }

    /// Adds a failure to the report.
    fn found(&mut self, run: Run, failure: Option<(String, bool)>, result: RunResult) {
        let (message, is_hang) = failure.unwrap_or_default();
        if self.report.failures.len() < FAILURES_MAX {
            let failure =
                SweepFailure::new(run.points, message, is_hang, &result.entries, result.story);
            self.report.failures.push(failure);
        }
    }

    fn confirmed(&mut self, run: &Run, has_failed: bool, result: &RunResult) {
        let failure =
            (self.report.failures.iter_mut()).find(|failure| failure.points == run.points);
        let Some(failure) = failure else {
            return;
        };
        failure.is_flaky = !has_failed;
        if failure.is_flaky {
            self.report.flaky += 1;
        } else if failure.story.is_none() {
            failure.story.clone_from(&result.story);
        }
    }

    /// Adds the pairs of a point that passes with each point after it.
    fn add_pairs(&mut self, first: &FaultPoint, entries: &[JournalEntry]) {
        let acted = entries.iter().position(|entry| entry.kind() == "fault");
        let Some(acted) = acted else {
            return;
        };
        let before = point::points_of(&entries[..acted], &self.options.faults, true);
        let before: BTreeSet<_> = order::collect(before);
        for second in point::points_of(entries, &self.options.faults, self.options.all) {
            if before.contains(&second) {
                continue;
            }
            self.report.points += 1;
            let pair = vec![first.clone(), second];
            if self.options.tried.contains(&pair) {
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

/// Returns the memory of a pair, about. Unit: bytes.
fn bytes_of(points: &[FaultPoint]) -> usize {
    let of_point =
        |point: &FaultPoint| size_of::<FaultPoint>() + point.path.capacity() + point.op.capacity();
    size_of::<Vec<FaultPoint>>() + points.iter().map(of_point).sum::<usize>()
}

fn shuffle(points: &mut [FaultPoint], chance: &mut Chance) {
    for last in (1..points.len()).rev() {
        points.swap(last, chance.below(last + 1));
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
        RunResult {
            verdict,
            is_reached: true,
            entries: Vec::new(),
            story: None,
        }
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
        assert_eq!(runs[..3], [vec![], pair.clone(), pair.clone()]);
        assert!(runs[3..].contains(&vec![point(1)]) && runs[3..].contains(&vec![point(2)]));
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
        options.runs_max = Some(3);
        let (runs, report) = sweep(options, |_| RunVerdict::Passed);
        assert_eq!(runs.len(), 3);
        assert_eq!((report.tried, report.left), (2, 2));
        assert_eq!(report.reasons(), ["2 points were not tried"]);
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
        assert!(text.contains("--only 'reply-lost:1:create:2:/a'"), "{text}");
        assert!(
            text.contains("when the reply to the 2nd create of /a by client 1 was lost"),
            "{text}"
        );
    }
}
