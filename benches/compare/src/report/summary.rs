//! The parts common to all forms of the report: medians of the rounds, words for verdicts, groups.

use serde::{Serialize, Serializer};

use super::{Figures, Report, Row, Workload};
use crate::{
    judge::{Finding, Verdict},
    peers::Belief,
    stats::Spread,
    table,
};

impl Workload {
    /// Its name in headings.
    #[must_use]
    pub fn title(self) -> String {
        let grouped = |count: u32| table::grouped(count.into());
        let of = |contenders| match contenders {
            1 => "1 contender".to_owned(),
            more => format!("{} contenders", grouped(more)),
        };
        match self {
            Self::Cycle => "cycle, no other contender".into(),
            Self::HandOver(contenders) => format!("hand-over, {}", of(contenders)),
            Self::Saturated(contenders) => format!("no time held, {}", of(contenders)),
            Self::ReadWrite {
                contenders,
                readers,
            } => format!("read-write, {}, {readers} % readers", of(contenders)),
            Self::Semaphore { contenders, leases } => {
                format!("semaphore, {}, {} leases", of(contenders), grouped(leases))
            }
            Self::OpenLoop { contenders, rate } => {
                format!(
                    "open loop, {}, {} requests per second",
                    of(contenders),
                    grouped(rate)
                )
            }
            Self::Recovery => "recovery after the holder's death".into(),
            Self::Herd(contenders) => format!("herd, {}", of(contenders)),
        }
    }

    /// Whether its rows have latencies.
    #[must_use]
    pub const fn has_latency(self) -> bool {
        !matches!(self, Self::Herd(_))
    }
}

impl Row {
    /// The spread of a figure over the rounds that have it, without values that are not finite.
    #[must_use]
    pub fn spread(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<Spread> {
        let values = self.rounds.iter().filter_map(figure);
        Spread::of(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
    }

    /// The median of a figure over the rounds that have it.
    #[must_use]
    pub fn median(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }

    /// The median of a latency over the rounds, in nanoseconds; `None` if none is measured.
    #[must_use]
    pub fn latency(&self, figure: impl Fn(&Figures) -> f64) -> Option<f64> {
        let has_latency = self.workload.has_latency();
        self.median(|round| (has_latency && round.p50_ns > 0.0).then(|| figure(round)))
    }

    /// The rounds' p50, each divided by the round trip to the echo in the same round.
    #[must_use]
    pub fn over_echo(&self) -> Option<Spread> {
        let has_latency = self.workload.has_latency();
        self.spread(|round| {
            (has_latency && round.echo_ns > 0.0 && round.p50_ns > 0.0)
                .then(|| round.p50_ns / round.echo_ns)
        })
    }

    /// The rounds' p50 divided by the session or lease time-out.
    #[must_use]
    pub fn over_timeout(&self) -> Option<Spread> {
        let timeout_ns = self.timeout_ns.filter(|&timeout_ns| timeout_ns > 0.0)?;
        self.spread(|round| (round.p50_ns > 0.0).then(|| round.p50_ns / timeout_ns))
    }

    /// Whether the contestant is one of this project's own recipes, wherever they run.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        is_ours(&self.contestant)
    }
}

/// Whether a contestant is one of this project's own recipes: their names begin with `recipes`.
#[must_use]
pub fn is_ours(contestant: &str) -> bool {
    contestant.starts_with("recipes")
}

impl Belief {
    /// Its name in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Unsure => "unsure",
            Self::Lost => "lost",
            Self::NoAnswer => "cannot be asked",
        }
    }
}

/// A verdict in a word. Only [`Holds`](Self::Holds) is a pass of everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// Exclusion and fencing were checked, and hold.
    Holds,
    /// Exclusion holds; fencing was not checked.
    ExclusionOnly,
    /// Fencing holds; exclusion was not checked.
    FencingOnly,
    /// Nothing was checked.
    NotChecked,
    /// The judge refuses the run.
    Refused,
    /// Exclusion or fencing is violated.
    Violated,
}

impl Word {
    /// Its name in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::ExclusionOnly => "exclusion only",
            Self::FencingOnly => "fencing only",
            Self::NotChecked => "not checked",
            Self::Refused => "refused",
            Self::Violated => "VIOLATED",
        }
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl Verdict {
    /// The verdict in a word.
    #[must_use]
    pub const fn word(&self) -> Word {
        use Finding::{Holds, NotChecked, Violated};
        match (&self.exclusion, &self.fencing) {
            (Violated { .. }, _) | (_, Violated { .. }) => Word::Violated,
            _ if self.refusal.is_some() => Word::Refused,
            (Holds { .. }, Holds { .. }) => Word::Holds,
            (Holds { .. }, NotChecked(_)) => Word::ExclusionOnly,
            (NotChecked(_), Holds { .. }) => Word::FencingOnly,
            (NotChecked(_), NotChecked(_)) => Word::NotChecked,
        }
    }

    /// Returns the word, and the number of unknown outcomes.
    #[must_use]
    pub fn text(&self) -> String {
        match self.unknown {
            0 => self.word().text().into(),
            unknown => format!("{}, {unknown} unknown", self.word().text()),
        }
    }
}

/// The rows of each workload, in the order in which they first appear.
#[must_use]
pub fn groups(report: &Report) -> Vec<(Workload, Vec<&Row>)> {
    let mut groups: Vec<(Workload, Vec<&Row>)> = Vec::new();
    for row in &report.rows {
        match groups.iter_mut().find(|(of, _)| *of == row.workload) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((row.workload, vec![row])),
        }
    }
    groups
}

/// All verdicts with workload and contestant: of rows first, then of pauses.
fn judged(report: &Report) -> impl Iterator<Item = (String, &str, &Verdict)> {
    let rows = report.rows.iter();
    let rows = rows.map(|row| (row.workload.title(), &*row.contestant, &row.verdict));
    let pauses = report.pauses.iter();
    let pauses = pauses.map(|pause| {
        let holder = format!("{} holder", pause.outage.name());
        (holder, &*pause.contestant, &pause.verdict)
    });
    rows.chain(pauses)
}

/// A violation.
#[derive(Debug, Serialize)]
pub struct Violation<'a> {
    /// Workload and contestant.
    pub subject: String,
    /// `exclusion` or `fencing`.
    pub question: &'static str,
    /// The number of violations.
    pub times: usize,
    /// The smallest part of the history that shows it.
    pub counterexample: &'a str,
}

impl Violation<'_> {
    /// `VIOLATED once`, `VIOLATED 3 times`.
    #[must_use]
    pub fn text(&self) -> String {
        match self.times {
            1 => "VIOLATED once".into(),
            times => format!("VIOLATED {times} times"),
        }
    }
}

/// A question that was not checked, with all subjects that share the reason.
#[derive(Debug, Serialize)]
pub struct Unchecked<'a> {
    /// `exclusion` or `fencing`.
    pub question: &'static str,
    /// The reason.
    pub why: &'a str,
    /// Contestants, each with the workloads in which it was not checked.
    pub subjects: Vec<(&'a str, Vec<String>)>,
}

/// All that did not pass, and the number of verdicts of each kind.
#[derive(Debug, Default, Serialize)]
pub struct Findings<'a> {
    /// The violations.
    pub violations: Vec<Violation<'a>>,
    /// The questions that were not checked.
    pub unchecked: Vec<Unchecked<'a>>,
    /// Runs whose figures must not be published: subject and reason.
    pub refusals: Vec<(String, &'a str)>,
    /// Unknown outcomes: subject and number.
    pub unknown: Vec<(String, usize)>,
    /// The number of verdicts for each word; words without a verdict are omitted.
    pub tally: Vec<(Word, usize)>,
}

impl<'a> Findings<'a> {
    /// The findings of a report.
    #[must_use]
    pub fn of(report: &'a Report) -> Self {
        let mut findings = Self::default();
        for (workload, contestant, verdict) in judged(report) {
            findings.count(verdict.word());
            findings.add(&workload, contestant, "exclusion", &verdict.exclusion);
            findings.add(&workload, contestant, "fencing", &verdict.fencing);
            let subject = format!("{workload}: {contestant}");
            if verdict.unknown > 0 {
                findings.unknown.push((subject.clone(), verdict.unknown));
            }
            if let Some(why) = &verdict.refusal {
                findings.refusals.push((subject, why));
            }
        }
        findings
    }

    fn count(&mut self, word: Word) {
        match self.tally.iter_mut().find(|(of, _)| *of == word) {
            Some((_, count)) => *count += 1,
            None => self.tally.push((word, 1)),
        }
    }

    fn add(
        &mut self,
        workload: &str,
        contestant: &'a str,
        question: &'static str,
        finding: &'a Finding,
    ) {
        match finding {
            Finding::Holds { .. } => {}
            Finding::Violated {
                times,
                counterexample,
            } => self.violations.push(Violation {
                subject: format!("{workload}: {contestant}"),
                question,
                times: *times,
                counterexample,
            }),
            Finding::NotChecked(why) => self.add_unchecked(workload, contestant, question, why),
        }
    }

    fn add_unchecked(
        &mut self,
        workload: &str,
        contestant: &'a str,
        question: &'static str,
        why: &'a str,
    ) {
        let all = &mut self.unchecked;
        let at = all
            .iter()
            .position(|of| of.question == question && of.why == why);
        let at = at.unwrap_or_else(|| {
            all.push(Unchecked {
                question,
                why,
                subjects: Vec::new(),
            });
            all.len() - 1
        });
        let subjects = &mut all[at].subjects;
        match subjects.iter_mut().find(|(of, _)| *of == contestant) {
            Some((_, workloads)) => workloads.push(workload.into()),
            None => subjects.push((contestant, vec![workload.into()])),
        }
    }

    /// `30 holds, 2 VIOLATED`, or `nothing was judged`.
    #[must_use]
    pub fn text(&self) -> String {
        if self.tally.is_empty() {
            return "nothing was judged".into();
        }
        let counts = self.tally.iter();
        let counts: Vec<_> = counts
            .map(|(word, count)| format!("{count} {}", word.text()))
            .collect();
        counts.join(", ")
    }
}

/// Formats a number for tables. A number that would be rounded to zero keeps its digits, and one
/// that is too long to read has an exponent.
#[must_use]
pub fn figure(value: f64) -> String {
    if value > 0.0 && value < 0.000_5 {
        return "<0.001".into();
    }
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    table::number(value)
}

/// Formats nanoseconds for tables.
#[must_use]
pub fn duration(ns: f64) -> String {
    if ns >= 1e24 {
        return format!("{} s", figure(ns / 1e9));
    }
    table::duration_ns(ns)
}
