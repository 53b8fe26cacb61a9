//! What a sweep has found, as text and as a page.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    time::Duration,
};

use minikeeper_core::journal::entry::{JournalEntry, Occurrence};

use crate::{
    orders::fault::SweepFault,
    story::cut,
    sweep::{
        acts,
        coverage::Coverage,
        map::SweepMap,
        order_report::{FailedOrder, OrderCoverage},
        point::FaultPoint,
        rule::RuleUse,
        timeline::{SweepTimeline, is_shown},
    },
};

/// How many requests and events a failure shows before the fault, from it on, and at the end.
const BEFORE_MAX: usize = 5;
const AFTER_MAX: usize = 40;
const END_MAX: usize = 20;

/// The longest message that a report shows. Unit: characters.
pub(crate) const MESSAGE_CHARS_MAX: usize = 600;

/// The maximum number of further points of a group that the text names.
const FURTHER_MAX: usize = 5;

/// Why the sweep of a test that has no points is incomplete.
const NO_POINTS: &str = "nothing was tried: the test has sent no request to which these faults apply; is its client \
                         connected to the server of the run?";

/// Why the sweep of a test that has no clients is incomplete.
const NO_REQUESTS: &str =
    "nothing was tried: no client has sent a request; is it connected to the server of the run?";

/// Why the sweep of a test whose clients never ask at the same time is incomplete.
const NO_CHOICE: &str = "nothing was tried: no two clients had a request at the same time, so that there is one order; does \
                         the test let them wait for each other, or sleep, between their requests?";

/// The maximum number of failures that a report lists.
pub(crate) const FAILURES_MAX: usize = 1_000;

/// The maximum number of failures whose timelines are kept, each with a cause of its own.
const TIMELINES_MAX: usize = 50;

/// The maximum number of kinds of points that a text lists as left by the budget.
const LEFT_MAX: usize = 20;

/// The maximum number of points that a text lists as not reached.
const UNREACHED_MAX: usize = 20;

/// How a sweep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SweepState {
    /// Every point was tried, but for those that the options allow to miss, and the test passed.
    Clean,
    /// The test failed, with a fault or without any.
    Failed,
    /// The test passed with what was tried, and points were missed: see [`SweepReport::reasons`].
    Incomplete,
}

impl SweepState {
    /// Returns its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// What a sweep has found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SweepReport {
    /// The seed of the order.
    pub seed: u64,
    /// The number of points to try: places times faults, and with depth 2 pairs of them.
    pub points: u64,
    /// The number of points that were left out because equivalent ones are tried.
    pub equivalent: u64,
    /// The number of points tried: the fault acted, or the test failed without it.
    pub tried: u64,
    /// The number of points that passed in the sweep that this one resumes.
    pub earlier: u64,
    /// The number of points at which the test passed.
    pub passed: u64,
    /// The number of points at which it failed as an [allowance](crate::SweepOptions::allow) says.
    pub allowed: u64,
    /// The number of points at which it failed.
    pub failed: u64,
    /// The number of points at which it did not end in time.
    pub hung: u64,
    /// The number of points whose place was not reached in several runs, so that nothing is known of
    /// them.
    pub not_reached: u64,
    /// The number of those that the test [allows](crate::SweepOptions::allow_unreached).
    pub allow_unreached: u64,
    /// The number of failures that did not happen again.
    pub flaky: u64,
    /// The number of points that were not tried, because the time or the number of runs was over.
    pub left: u64,
    /// The number of those that the test [allows](crate::SweepOptions::allow_untried).
    pub allow_untried: u64,
    /// The number of entries of a run that the journal has dropped, or that are beyond 100,000: the
    /// places in them were not tried.
    pub unseen: u64,
    /// The failures that the test expects, and how many points failed so.
    pub allowances: Vec<RuleUse>,
    /// What the test leaves out, and how many points that are.
    pub left_out: Vec<RuleUse>,
    /// What some run of the test was to reach, by [`Universe::sometimes`](crate::Universe::sometimes), and whether
    /// one has.
    pub goals: BTreeMap<String, bool>,
    /// Whether the sweep has ended by itself.
    pub is_over: bool,
    /// Whether it was interrupted, for example by a signal.
    pub is_interrupted: bool,
    /// Whether the points were named, rather than found.
    pub is_only: bool,
    /// What differs between the runs without faults besides names, and the likely cause.
    pub nondeterminism: Option<String>,
    /// The number of runs, those without faults and those that confirm failures included.
    pub runs: u64,
    /// How long the sweep took.
    pub elapsed: Duration,
    /// The failure of the test without faults, if it fails: then the sweep tells nothing.
    pub without_faults: Option<String>,
    /// The page with the story of that failure.
    pub story: Option<String>,
    /// What was not reached, at most 1,000 of them.
    pub unreached: Vec<Vec<FaultPoint>>,
    /// The failures, at most 1,000.
    pub failures: Vec<SweepFailure>,
    /// Which orders of requests were tried; `None` for a sweep of faults. The points are orders then, and
    /// those that are left are branches of orders.
    pub orders: Option<OrderCoverage>,
    /// What was tried at each request.
    pub(crate) map: SweepMap,
}

/// A run that failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SweepFailure {
    /// What went wrong in it.
    pub points: Vec<FaultPoint>,
    /// The failure of the test.
    pub message: String,
    /// Whether it did not end in time.
    pub is_hang: bool,
    /// Whether it passed when it was repeated.
    pub is_flaky: bool,
    /// The last requests and events before the first fault acted, and those after it.
    pub before: Vec<String>,
    /// The fault in the journal, and what followed.
    pub after: Vec<String>,
    /// The page with its story.
    pub story: Option<String>,
    /// The number of the run that found it, if the order was chosen; 0 otherwise.
    pub run: u64,
    /// How many other orders failed likewise.
    pub others: u64,
    /// Where in the program it fails, if that is known.
    pub place: Option<String>,
    /// The first request or event from the fault on that no run without faults has.
    pub difference: Option<String>,
    /// The test, if several were swept.
    pub test: Option<String>,
    /// The command that does the run again, if several tests were swept.
    pub repeat: Option<String>,
    /// What each client waited for, if the run of an order hung.
    pub waiting: Vec<String>,
    /// The run around the fault, of one failure for each cause.
    pub(crate) timeline: Option<SweepTimeline>,
    /// The order of the requests, if it was chosen.
    pub(crate) order: Option<FailedOrder>,
}

impl SweepFailure {
    pub(crate) fn new(
        points: Vec<FaultPoint>,
        message: String,
        is_hang: bool,
        entries: &[JournalEntry],
        story: Option<String>,
    ) -> Self {
        let acted = acts::fault_in(entries).unwrap_or(entries.len());
        let mut before = excerpt(entries[..acted].iter().rev(), BEFORE_MAX);
        before.reverse();
        let after = from_fault(&entries[acted..]);
        Self {
            points,
            message: cut(&message, MESSAGE_CHARS_MAX),
            is_hang,
            is_flaky: false,
            before,
            after,
            story,
            run: 0,
            others: 0,
            place: None,
            difference: None,
            test: None,
            repeat: None,
            waiting: Vec::new(),
            timeline: None,
            order: None,
        }
    }

    /// Returns the failure of a run in a chosen order.
    pub(crate) fn of_order(
        message: String,
        is_hang: bool,
        story: Option<String>,
        order: FailedOrder,
    ) -> Self {
        Self {
            order: Some(order),
            ..Self::new(Vec::new(), message, is_hang, &[], story)
        }
    }

    /// Returns its order, with a column for each client.
    pub(crate) fn order_text(&self) -> Option<String> {
        let order = self.order.as_ref()?;
        let mut text = format!("found in run {}\n", self.run);
        order.write(&mut text).ok()?;
        for line in &self.waiting {
            text += line;
            text.push('\n');
        }
        if self.others > 0 {
            let s = plural(self.others);
            text += &format!("{} more order{s} failed likewise.\n", self.others);
        }
        Some(text)
    }

    /// Returns what failures with the same cause have in common: the message without numbers, the place in the program,
    /// and the first difference from the runs without faults.
    fn cause(&self) -> String {
        let mut cause = format!("{:?} {:?} ", self.place, self.difference);
        let mut was_digit = false;
        for letter in decisive(&self.message).chars() {
            let is_digit = letter.is_ascii_hexdigit() && (was_digit || letter.is_ascii_digit());
            if !is_digit {
                cause.push(letter);
            } else if !was_digit {
                cause.push('#');
            }
            was_digit = is_digit;
        }
        cause
    }

    /// Returns what makes it simpler than others with the same cause, which may be found before it: fewer faults, a
    /// simpler one.
    fn complexity(&self) -> (usize, Option<SweepFault>, String) {
        let fault = self.points.first().map(|point| point.fault);
        (self.points.len(), fault, self.text())
    }

    /// Says what went wrong, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match &self.order {
            None => FaultPoint::sentences(&self.points),
            Some(order) => order.sentence(),
        }
    }

    /// Returns the test, if several were swept, as what the sentence is about.
    fn of_test(&self) -> String {
        let test = self.test.as_ref();
        test.map_or_else(String::new, |test| format!("{test}: "))
    }

    /// Returns the options of `minikeeper sweep` that do this run again.
    #[must_use]
    pub fn only(&self) -> String {
        format!("--only {}", quoted(&self.text()))
    }

    /// Returns the command that does this run again, if it is known, or the options of `minikeeper sweep` that do.
    pub(crate) fn again(&self) -> String {
        self.repeat.clone().unwrap_or_else(|| self.only())
    }

    /// Returns its points or its order, as `--only` takes them.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.order {
            None => text_of(&self.points),
            Some(order) => order.order.to_string(),
        }
    }
}

/// Returns the line of a command's output that tells why it failed, as far as one can tell; all of another message.
fn decisive(message: &str) -> &str {
    let Some((status, output)) = message.split_once('\n') else {
        return message;
    };
    if !status.starts_with("exit status") && !status.starts_with("signal") {
        return message;
    }
    let tells = |line: &&str| {
        let line = line.to_lowercase();
        ["error", "exception", "assert", "panicked", "broken", "fail"]
            .iter()
            .any(|word| line.contains(word))
    };
    let mut lines = output.lines().filter(|line| !line.trim().is_empty());
    lines
        .clone()
        .rfind(tells)
        .or_else(|| lines.next_back())
        .unwrap_or(message)
}

/// Returns a message with the line that tells most in front: of a command that is not its exit status.
fn headed(message: &str) -> String {
    let told = decisive(message);
    match message.split_once('\n') {
        Some((status, output)) if output.trim() == told => format!("{told} ({status})"),
        Some((status, output)) if told.len() < message.len() => {
            format!("{told} ({status})\n{}", output.trim_end())
        }
        _ => message.trim_end().to_owned(),
    }
}

/// Returns the points of a run, as `--only` takes them.
pub(crate) fn text_of(points: &[FaultPoint]) -> String {
    let points: Vec<_> = points.iter().map(FaultPoint::to_string).collect();
    points.join("+")
}

const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Quotes a text for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl SweepReport {
    /// Returns how the sweep ended.
    #[must_use]
    pub fn state(&self) -> SweepState {
        if !self.failures.is_empty() || self.without_faults.is_some() {
            SweepState::Failed
        } else if self.reasons().is_empty() {
            SweepState::Clean
        } else {
            SweepState::Incomplete
        }
    }

    /// Returns whether every point was tried, but for those that the options allow to miss, and the
    /// test passed with each, and without any fault.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.state() == SweepState::Clean
    }

    /// Returns why the sweep is incomplete, each reason a phrase. Empty if it is complete.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        if self.without_faults.is_some() {
            // Nothing else counts.
            return Vec::new();
        }
        if let Some(orders) = &self.orders {
            return self.reasons_of_orders(orders);
        }
        let mut reasons = Vec::new();
        let were = |count: u64| match count {
            1 => "1 point was".to_owned(),
            count => format!("{count} points were"),
        };
        reasons.extend(self.unended());
        if self.is_over && self.points == 0 && self.equivalent == 0 {
            reasons.push(NO_POINTS.to_owned());
        } else if self.tried + self.earlier == 0
            && self.not_reached == 0
            && (self.points > 0 || self.equivalent == 0)
        {
            reasons.push("nothing was tried".to_owned());
        }
        if self.is_only && self.not_reached > 0 {
            // Its caller wants to know of exactly these points.
            reasons.push(match self.not_reached {
                1 => "the point that was named was not reached".to_owned(),
                count => format!("{count} of the points that were named were not reached"),
            });
        } else if self.not_reached > self.allow_unreached {
            reasons.push(format!("{} not reached", were(self.not_reached)));
        }
        if self.left > self.allow_untried {
            reasons.push(format!("{} not tried", were(self.left)));
        }
        let unmet = self.goals.iter().filter(|(_, is_reached)| !**is_reached);
        let unmet: Vec<_> = unmet.map(|(goal, _)| format!("{goal:?}")).collect();
        if !unmet.is_empty() && !self.is_only {
            let s = plural(unmet.len() as u64);
            reasons.push(format!(
                "no run has reached the goal{s} {}",
                unmet.join(", ")
            ));
        }
        if self.unseen > 0 && !self.is_only {
            reasons.push(format!(
                "the places of {} journal entries are not known: raise --journal-bytes, or sweep a test of fewer \
                 than 100,000 requests and events",
                self.unseen
            ));
        }
        reasons
    }

    fn unended(&self) -> Option<String> {
        if self.is_interrupted {
            Some("the sweep was interrupted".to_owned())
        } else if !self.is_over {
            Some("the sweep has not ended".to_owned())
        } else {
            None
        }
    }

    /// Returns why a sweep of orders is incomplete.
    fn reasons_of_orders(&self, orders: &OrderCoverage) -> Vec<String> {
        let mut reasons = Vec::from_iter(self.unended());
        match orders.clients {
            0 => reasons.push(NO_REQUESTS.to_owned()),
            // With faults it has tried those.
            1 if self.tried <= 1 && !self.is_only => reasons.push(
                "nothing was tried: the test has one client, whose requests have one order"
                    .to_owned(),
            ),
            _ if self.tried == 1 && self.is_over && orders.is_all && !self.is_only => {
                reasons.push(NO_CHOICE.to_owned());
            }
            _ => {}
        }
        let were = |count: u64| match count {
            1 => "1 order".to_owned(),
            count => format!("{count} orders"),
        };
        if orders.not_followed > 0 {
            let why = orders.not_followed_why.as_deref();
            let why = why.map_or_else(String::new, |why| format!(", such as {why}"));
            reasons.push(format!(
                "{} could not be followed{why}",
                were(orders.not_followed)
            ));
        }
        if orders.late > 0 {
            let s = plural(orders.late);
            reasons.push(format!(
                "{} request{s} came later than the choice that should have known of them",
                orders.late
            ));
        }
        if self.left > self.allow_untried {
            let are = if self.left == 1 { " was" } else { "es were" };
            reasons.push(format!("{} branch{are} not tried", self.left));
        }
        if let Some(difference) = &self.nondeterminism {
            reasons.push(difference.clone());
        }
        reasons
    }

    /// Returns the failure that has the same cause as this one.
    pub(crate) fn same_cause(&mut self, failure: &SweepFailure) -> Option<&mut SweepFailure> {
        let cause = failure.cause();
        let mut failures = self.failures.iter_mut();
        failures.find(|other| other.cause() == cause)
    }

    /// Panics with the report unless the sweep [is clean](SweepReport::is_clean).
    ///
    /// # Panics
    /// If a run failed, or the sweep is incomplete.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "{self}");
    }

    /// Adds the report of the sweep of a test to that of its suite.
    pub(crate) fn merge(&mut self, title: &str, other: Self) {
        self.points += other.points;
        self.equivalent += other.equivalent;
        self.tried += other.tried;
        self.earlier += other.earlier;
        self.passed += other.passed;
        self.allowed += other.allowed;
        self.failed += other.failed;
        self.hung += other.hung;
        self.not_reached += other.not_reached;
        self.flaky += other.flaky;
        self.left += other.left;
        self.unseen += other.unseen;
        self.runs += other.runs;
        self.is_interrupted |= other.is_interrupted;
        let named = |text: String| format!("{title}: {text}");
        if self.without_faults.is_none() {
            self.without_faults = other.without_faults.map(named);
            self.story = other.story;
        }
        if self.nondeterminism.is_none() {
            self.nondeterminism = other.nondeterminism.map(named);
        }
        let room = FAILURES_MAX.saturating_sub(self.failures.len());
        self.failures
            .extend(other.failures.into_iter().take(room).map(|mut failure| {
                failure.test = Some(title.to_owned());
                failure
            }));
        let room = FAILURES_MAX.saturating_sub(self.unreached.len());
        self.unreached
            .extend(other.unreached.into_iter().take(room));
        for (rules, others) in [
            (&mut self.allowances, other.allowances),
            (&mut self.left_out, other.left_out),
        ] {
            for RuleUse { rule, points } in others {
                match rules.iter_mut().find(|known| known.rule == rule) {
                    Some(known) => known.points += points,
                    None => rules.push(RuleUse { rule, points }),
                }
            }
        }
        for (goal, is_reached) in other.goals {
            *self.goals.entry(goal).or_default() |= is_reached;
        }
        self.map.merge(title, other.map);
    }

    /// Returns how many of the points were tried, by fault, operation, path, and state of a lock.
    #[must_use]
    pub fn coverage(&self) -> Vec<Coverage> {
        self.map.coverage()
    }

    /// Returns the failures in groups with one cause each, the largest group first, and in a group the simplest
    /// fault first.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<&SweepFailure>> {
        let mut groups: Vec<(String, Vec<&SweepFailure>)> = Vec::new();
        for failure in &self.failures {
            let cause = failure.cause();
            match groups.iter_mut().find(|(other, _)| *other == cause) {
                Some((_, group)) => group.push(failure),
                None => groups.push((cause, vec![failure])),
            }
        }
        minikeeper_core::order::sort_by_key(&mut groups, |(_, group)| {
            std::cmp::Reverse(group.len())
        });
        for (_, group) in &mut groups {
            minikeeper_core::order::sort_by(group, |one, other| {
                one.complexity().cmp(&other.complexity())
            });
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns whether `failure` is the simplest of those with its cause, and there is room for its timeline. The one
    /// that was the simplest loses its own.
    pub(crate) fn takes_timeline(&mut self, failure: &SweepFailure) -> bool {
        let cause = failure.cause();
        let mut with_timeline: Vec<_> = (self.failures.iter_mut())
            .filter(|other| other.timeline.is_some())
            .collect();
        match with_timeline.iter_mut().find(|it| it.cause() == cause) {
            Some(other) if other.complexity() <= failure.complexity() => false,
            Some(other) => {
                other.timeline = None;
                true
            }
            None => with_timeline.len() < TIMELINES_MAX,
        }
    }

    /// Returns how the sweep ended and what was tried, in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self {
            points,
            tried,
            passed,
            failed,
            hung,
            not_reached,
            runs,
            ..
        } = self;
        let ms = self.elapsed.as_millis();
        let allowed = match self.allowed {
            0 => String::new(),
            count => format!("{count} allowed to fail, "),
        };
        let state = self.state();
        let mut line = state.name().to_owned();
        let reasons = self.reasons();
        if self.without_faults.is_some() {
            line += " (without any fault)";
        } else if !reasons.is_empty() && state == SweepState::Incomplete {
            let _ = write!(line, " ({})", reasons.join("; "));
        }
        if let Some(orders) = &self.orders {
            let _ = write!(
                line,
                ": {tried} order{} of {} clients tried, {} of them different, {}: {passed} passed, {failed} failed, {hung} hung, {} not \
                 followed; {runs} runs in {}.{:03} s, seed {}",
                plural(*tried),
                orders.clients,
                orders.different,
                if self.is_only {
                    "as named".to_owned()
                } else {
                    orders.phrase()
                },
                orders.not_followed,
                ms / 1_000,
                ms % 1_000,
                self.seed
            );
            if self.equivalent > 0 {
                let s = if self.equivalent == 1 { "" } else { "es" };
                let _ = write!(line, "; {} equivalent branch{s} left out", self.equivalent);
            }
            return line;
        }
        let _ = write!(
            line,
            ": {tried} of {points} points tried: {passed} passed, {allowed}{failed} failed, {hung} hung, \
             {not_reached} not reached; {runs} runs in {}.{:03} s, seed {}",
            ms / 1_000,
            ms % 1_000,
            self.seed
        );
        if self.left > 0 {
            let are = if self.left == 1 { " is" } else { "s are" };
            let _ = write!(line, "; {} point{are} left", self.left);
        }
        if self.earlier > 0 {
            let s = plural(self.earlier);
            let _ = write!(line, "; {} point{s} passed earlier", self.earlier);
        }
        if self.equivalent > 0 {
            let s = plural(self.equivalent);
            let _ = write!(line, "; {} equivalent point{s} left out", self.equivalent);
        }
        let left_out = self.left_out.iter().map(|rule| rule.points).sum();
        if left_out > 0 {
            let s = plural(left_out);
            let _ = write!(line, "; {left_out} point{s} left out by rules");
        }
        if self.flaky > 0 {
            let s = plural(self.flaky);
            let _ = write!(line, "; {} failure{s} did not happen again", self.flaky);
        }
        line
    }

    /// Says of which kinds of points the budget has left some.
    fn write_left(&self, f: &mut String) -> fmt::Result {
        if self.left == 0 || self.orders.is_some() {
            return Ok(());
        }
        let coverage = self.coverage();
        let some_left = coverage.iter().filter(|it| it.tried < it.known);
        writeln!(
            f,
            "\nTried of the points known, where the budget has left some:"
        )?;
        for coverage in some_left.clone().take(LEFT_MAX) {
            writeln!(f, "   {coverage}")?;
        }
        if let Some(more @ 1..) = some_left.count().checked_sub(LEFT_MAX) {
            writeln!(f, "   and {more} more")?;
        }
        Ok(())
    }

    /// Says what the rules of the test were used for, also those that were not.
    fn write_rules(&self, f: &mut String) -> fmt::Result {
        let (allowed, left_out) = (self.allowances.iter(), self.left_out.iter());
        let rules = allowed.map(|rule| ("Allowed", rule));
        let mut rules = rules
            .chain(left_out.map(|rule| ("Left out", rule)))
            .peekable();
        if rules.peek().is_some() {
            writeln!(f)?;
        }
        for (what, RuleUse { rule, points }) in rules {
            let s = plural(*points);
            match points {
                0 => writeln!(f, "{what}: {rule}: not needed, remove it")?,
                _ => writeln!(f, "{what}: {rule}: {points} point{s}")?,
            }
        }
        Ok(())
    }

    /// Returns the report for people. `repeat` makes the command that does a failed run again.
    pub(crate) fn to_text(&self, repeat: &dyn Fn(&SweepFailure) -> String) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text, repeat);
        printable(&text)
    }

    fn write_text(&self, f: &mut String, repeat: &dyn Fn(&SweepFailure) -> String) -> fmt::Result {
        writeln!(f, "minikeeper sweep: {}", self.summary())?;
        let reasons = self.reasons();
        if self.state() == SweepState::Failed && !reasons.is_empty() {
            writeln!(f, "It is incomplete, too: {}", reasons.join("; "))?;
        }
        if let (Some(difference), None) = (&self.nondeterminism, &self.orders) {
            writeln!(f, "\n{difference}")?;
        }
        if let Some(message) = &self.without_faults {
            writeln!(f, "\nThe test fails without any fault: {message}")?;
            if let Some(story) = &self.story {
                writeln!(f, "  story: {story}")?;
            }
        }
        for (index, group) in self.groups().into_iter().enumerate() {
            let first = group[0];
            let kind = if first.is_hang { "hangs" } else { "fails" };
            let number = index + 1;
            writeln!(f, "\n{number}. The test {kind}: {}", headed(&first.message))?;
            let flaky = |failure: &SweepFailure| match failure.is_flaky {
                true => " (passed when it was repeated)",
                false => "",
            };
            let test = first.of_test();
            writeln!(f, "   {test}when {}{}", first.sentence(), flaky(first))?;
            writeln!(f, "     {}", repeat(first))?;
            if let Some(story) = &first.story {
                writeln!(f, "     story: {story}")?;
            }
            for line in first.order_text().iter().flat_map(|text| text.lines()) {
                writeln!(f, "     {line}")?;
            }
            for line in &first.before {
                writeln!(f, "       {line}")?;
            }
            for (place, line) in first.after.iter().enumerate() {
                let mark = if place == 0 { "    -> " } else { "       " };
                writeln!(f, "{mark}{line}")?;
            }
            let further = &group[1..];
            if !further.is_empty() {
                let s = plural(further.len() as u64);
                writeln!(f, "   and likewise at {} further point{s}:", further.len())?;
            }
            for failure in further.iter().take(FURTHER_MAX) {
                let test = failure.of_test();
                writeln!(f, "     {test}{}{}", failure.text(), flaky(failure))?;
            }
            if let Some(more @ 1..) = further.len().checked_sub(FURTHER_MAX) {
                writeln!(f, "     and {more} more")?;
            }
        }
        self.write_rules(f)?;
        self.write_left(f)?;
        if !self.unreached.is_empty() {
            writeln!(
                f,
                "\nNot reached in several runs, so that nothing is known of these points:"
            )?;
        }
        for points in self.unreached.iter().take(UNREACHED_MAX) {
            writeln!(f, "   {}", text_of(points))?;
        }
        if let Some(more @ 1..) = self.unreached.len().checked_sub(UNREACHED_MAX) {
            writeln!(f, "   and {more} more")?;
        }
        Ok(())
    }
}

/// Returns the entries from a fault to the end of the run as text, without those in the middle if there are too many.
fn from_fault(entries: &[JournalEntry]) -> Vec<String> {
    let first = excerpt(entries.iter(), AFTER_MAX);
    let shown = entries
        .iter()
        .filter(is_shown)
        .filter(|entry| !is_of_connection(entry));
    let all = shown.count();
    if all <= AFTER_MAX + END_MAX {
        return excerpt(entries.iter(), AFTER_MAX + END_MAX);
    }
    let mut last = excerpt(entries.iter().rev(), END_MAX);
    last.push(format!(
        "... {} further lines, which the story has",
        all - AFTER_MAX - END_MAX
    ));
    first.into_iter().chain(last.into_iter().rev()).collect()
}

/// Returns the first of these entries as text. If there are too many, how connections and sessions begin and
/// end is left out: a client that makes one request has six such entries.
fn excerpt<'a>(entries: impl Iterator<Item = &'a JournalEntry> + Clone, max: usize) -> Vec<String> {
    let shown = entries.filter(is_shown);
    let is_cut = shown.clone().nth(max).is_some();
    shown
        .filter(|entry| !is_cut || !is_of_connection(entry))
        .take(max)
        .map(JournalEntry::to_string)
        .collect()
}

fn is_of_connection(entry: &JournalEntry) -> bool {
    match &entry.what {
        Occurrence::ConnectionOpened
        | Occurrence::ConnectionClosed { .. }
        | Occurrence::SessionBegan { is_new: true, .. }
        | Occurrence::SessionEnded { expired: false } => true,
        Occurrence::Request(_) => matches!(entry.op(), Some("createSession" | "closeSession")),
        _ => false,
    }
}

/// Returns a text without control characters but line feeds: escape sequences would reach the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' && letter != '\t' {
            printable.extend(letter.escape_debug());
        } else {
            printable.push(letter);
        }
    }
    printable
}

/// Each failure with the options of `minikeeper sweep` that do its run again.
impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(&SweepFailure::only))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_a_command_is_headed_by_the_line_that_tells_why() {
        let message = "exit status: 1\nTransition to CONNECTING\nbroken: two jobs\nbye";
        assert_eq!(
            headed(message),
            "broken: two jobs (exit status: 1)\nTransition to CONNECTING\nbroken: two jobs\nbye"
        );
        assert_eq!(
            headed("exit status: 1\nno luck\n"),
            "no luck (exit status: 1)"
        );
        assert_eq!(headed("signal: 9 (SIGKILL)"), "signal: 9 (SIGKILL)");
        let panic = "assertion failed\n left: 1\n right: 2, a.rs:3";
        assert_eq!(headed(panic), panic);
    }

    /// It said "1 equivalent points left out".
    #[test]
    fn summary_counts_one_as_one() {
        let summary = |count| {
            let report = SweepReport {
                left: count,
                earlier: count,
                equivalent: count,
                flaky: count,
                ..SweepReport::default()
            };
            report.summary()
        };
        let (one, two) = (summary(1), summary(2));
        assert!(
            one.ends_with(
                "; 1 point is left; 1 point passed earlier; 1 equivalent point left out; 1 failure did not happen again"
            ),
            "{one}"
        );
        assert!(
            two.ends_with(
                "; 2 points are left; 2 points passed earlier; 2 equivalent points left out; 2 failures did not happen again"
            ),
            "{two}"
        );
    }

    #[test]
    fn simplest_failure_of_a_cause_is_first_and_has_the_timeline() {
        let mut report = SweepReport::default();
        for point in [
            "server-restarted:1:create:1:/a",
            "reply-lost:1:create:1:/a",
            "session-expired:1:create:1:/a",
        ] {
            let points = vec![point.parse().unwrap()];
            let mut failure = SweepFailure::new(points, "no".into(), false, &[], None);
            if report.takes_timeline(&failure) {
                failure.timeline = Some(SweepTimeline::new(&[], BTreeMap::new()));
            }
            report.failures.push(failure);
        }
        let groups = report.groups();
        let [group] = &groups[..] else { panic!() };
        let shown = |it: &&SweepFailure| (it.text(), it.timeline.is_some());
        assert_eq!(
            group.iter().map(shown).collect::<Vec<_>>(),
            [
                ("reply-lost:1:create:1:/a".into(), true),
                ("session-expired:1:create:1:/a".into(), false),
                ("server-restarted:1:create:1:/a".into(), false),
            ]
        );
    }
}
