//! The sweeps of a whole suite of tests: they share what is equivalent, a budget and a report.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use minikeeper_core::clock::Stopwatch;
use parking_lot::Mutex;

use crate::sweep::{
    plan::SweepOptions,
    report::{SweepFailure, SweepReport, SweepState, printable},
};

/// The maximum number of tests that a report lists.
const TESTS_MAX: usize = 1_000;

/// The maximum number of tests that are not clean that a text lists.
const SHOWN_MAX: usize = 50;

/// The longest title of a test. Unit: characters.
const TITLE_CHARS_MAX: usize = 300;

/// The maximum memory of the points that the tests of a suite share. Unit: bytes.
const KNOWN_BYTES_MAX: usize = 64 << 20;

/// The share of the time that is left which one test may take, in terms of an equal share: what others do not need is
/// passed on.
const SHARES: u32 = 4;

/// The points that tests of a suite try: the fault, with what the client did there and before.
#[derive(Debug, Default)]
pub(crate) struct KnownPoints {
    points: BTreeSet<String>,
    bytes: usize,
}

impl KnownPoints {
    /// Takes a point for a test. Returns false if another test tries it.
    pub(crate) fn take(&mut self, point: &str) -> bool {
        if self.points.contains(point) {
            return false;
        }
        // Without room it may be tried twice.
        if self.bytes + point.len() <= KNOWN_BYTES_MAX {
            self.bytes += point.len();
            self.points.insert(point.to_owned());
        }
        true
    }

    /// Leaves a point, which was not tried, to other tests.
    pub(crate) fn leave(&mut self, point: &str) {
        if self.points.remove(point) {
            self.bytes -= point.len();
        }
    }
}

/// A test of a suite.
#[derive(Clone, Debug)]
pub(crate) struct SuiteTest {
    /// Its name.
    pub(crate) title: String,
    /// The number of tests that are still to come, this one included, if it is known.
    pub(crate) left: Option<u32>,
    /// The command that does a run of it again, with {} in place of its points.
    pub(crate) repeat: Option<String>,
}

/// A suite whose tests are swept.
#[derive(Debug)]
pub(crate) struct Suite {
    options: SweepOptions,
    watch: Stopwatch,
    known: Arc<Mutex<KnownPoints>>,
    /// The tests whose sweeps have ended, with a line each.
    tests: Vec<(String, SweepState, String)>,
    ended: u64,
    report: SweepReport,
}

impl Suite {
    pub(crate) fn new(options: SweepOptions) -> Self {
        Self {
            report: SweepReport {
                seed: options.seed,
                allow_unreached: options.allow_unreached,
                allow_untried: options.allow_untried,
                ..SweepReport::default()
            },
            options,
            watch: Stopwatch::start(),
            known: Arc::default(),
            tests: Vec::new(),
            ended: 0,
        }
    }

    /// Returns what the sweep of a test tries, and the points of the suite. The test has rules of its own.
    pub(crate) fn options_for(
        &self,
        test: &SuiteTest,
        own: SweepOptions,
    ) -> (SweepOptions, Arc<Mutex<KnownPoints>>) {
        let mut options = self.options.clone();
        options.allow.extend(own.allow);
        options.leave_out.extend(own.leave_out);
        options.time_max = options.time_max.map(|max| {
            let left = max.saturating_sub(self.watch.elapsed());
            left / test.left.unwrap_or(1).max(1) * SHARES.min(test.left.unwrap_or(1).max(1))
        });
        (options, Arc::clone(&self.known))
    }

    /// Takes the report of a test's sweep.
    pub(crate) fn add(&mut self, test: &SuiteTest, mut report: SweepReport) {
        let title: String = test.title.chars().take(TITLE_CHARS_MAX).collect();
        for failure in &mut report.failures {
            let repeat = test.repeat.as_ref();
            failure.repeat = repeat.map(|command| command.replace("{}", &failure.text()));
        }
        self.ended += 1;
        if self.tests.len() < TESTS_MAX {
            self.tests
                .push((title.clone(), report.state(), report.summary()));
        }
        self.report.merge(&title, report);
    }

    /// Returns what was found in all tests. `running` are those whose sweeps have not ended.
    pub(crate) fn report(&self, running: &[String]) -> SweepReport {
        let mut report = self.report.clone();
        report.elapsed = self.watch.elapsed();
        report.is_over = running.is_empty();
        report.is_interrupted = !running.is_empty();
        report
    }

    /// Returns the report as text, with a line for each test that is not clean in front.
    pub(crate) fn text(&self, report: &SweepReport) -> String {
        let mut text = String::new();
        let tests = self.tests.iter();
        let not_clean = tests.filter(|(_, state, _)| *state != SweepState::Clean);
        for (title, _, summary) in not_clean.clone().take(SHOWN_MAX) {
            let _ = writeln!(text, "{title}: {summary}");
        }
        if let Some(more @ 1..) = not_clean.count().checked_sub(SHOWN_MAX) {
            let _ = writeln!(text, "and {more} more");
        }
        let (ended, clean) = self.count(SweepState::Clean);
        let _ = writeln!(text, "{ended} tests swept, {clean} of them clean\n");
        printable(&text) + &report.to_text(&SweepFailure::again)
    }

    /// Returns how many tests were swept, and how many of them are in this state.
    pub(crate) fn count(&self, state: SweepState) -> (u64, u64) {
        let of_state = self.tests.iter().filter(|(_, its, _)| *its == state);
        (self.ended, of_state.count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn point_is_tried_by_one_test_unless_that_leaves_it() {
        let mut known = KnownPoints::default();
        assert!(known.take("a") && !known.take("a") && known.take("b"));
        known.leave("a");
        assert!(known.take("a"));
        assert_eq!(known.bytes, 2);
    }

    #[test]
    fn test_may_take_four_equal_shares_of_the_time_that_is_left() {
        let options = SweepOptions {
            time_max: Some(Duration::from_secs(100)),
            ..SweepOptions::default()
        };
        let suite = Suite::new(options);
        let share = |left: Option<u32>| {
            let title = "a".to_owned();
            let (options, _) = suite.options_for(
                &SuiteTest {
                    title,
                    left,
                    repeat: None,
                },
                SweepOptions::default(),
            );
            (options.time_max.unwrap().as_millis() + 500) / 1_000
        };
        assert_eq!(
            [Some(100), Some(2), Some(1), None].map(share),
            [4, 100, 100, 100]
        );
    }

    #[test]
    fn reports_of_tests_are_one() {
        let mut suite = Suite::new(SweepOptions::default());
        for (title, passed, failed) in [("one", 3, 0), ("two", 1, 1)] {
            let mut report = SweepReport {
                points: passed + failed,
                tried: passed + failed,
                passed,
                failed,
                runs: 9,
                is_over: true,
                ..SweepReport::default()
            };
            if failed > 0 {
                let points = vec!["reply-lost:1:create:1:/a".parse().unwrap()];
                let failure = SweepFailure::new(points, "two jobs".to_owned(), false, &[], None);
                report.failures.push(failure);
            }
            let test = SuiteTest {
                title: title.to_owned(),
                left: None,
                repeat: Some("pytest --only '{}'".to_owned()),
            };
            suite.add(&test, report);
        }
        let report = suite.report(&[]);
        assert_eq!(
            (report.points, report.passed, report.failed, report.runs),
            (5, 4, 1, 18)
        );
        assert_eq!(report.state(), SweepState::Failed);
        assert_eq!(suite.count(SweepState::Clean), (2, 1));
        let text = suite.text(&report);
        assert!(
            text.starts_with("two: failed: 2 of 2 points tried"),
            "{text}"
        );
        assert!(
            text.contains("\n2 tests swept, 1 of them clean\n"),
            "{text}"
        );
        assert!(
            text.contains("pytest --only 'reply-lost:1:create:1:/a'"),
            "{text}"
        );
        assert!(
            text.contains("two: when the reply to the 1st create"),
            "{text}"
        );
        assert_eq!(
            suite.report(&["three".to_owned()]).reasons(),
            ["the sweep was interrupted"]
        );
    }
}
