//! The record of a run.

use std::collections::BTreeMap;

use tokio::time::Instant;

use minikeeper_test_kit::clock;

/// The prefix of the line of a violation.
pub const VIOLATION: &str = "VIOLATION";

/// The counts of one or more runs.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Totals {
    pub runs: u64,
    pub simulated_ms: u64,
    /// By recipe.
    pub grants: BTreeMap<&'static str, u64>,
    /// By kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Other counts.
    pub events: BTreeMap<&'static str, u64>,
}

impl Totals {
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.simulated_ms += other.simulated_ms;
        for (all, some) in [
            (&mut self.grants, other.grants),
            (&mut self.faults, other.faults),
            (&mut self.events, other.events),
        ] {
            for (name, count) in some {
                *all.entry(name).or_default() += count;
            }
        }
    }
}

/// The record of a run, in order.
pub struct History {
    began: Instant,
    pub totals: Totals,
    /// Each begins with its time in milliseconds.
    pub lines: Vec<String>,
    pub violations: Vec<String>,
}

impl History {
    pub fn begin() -> Self {
        Self {
            began: clock::now(),
            totals: Totals::default(),
            lines: Vec::new(),
            violations: Vec::new(),
        }
    }

    pub fn line(&mut self, what: std::fmt::Arguments<'_>) {
        let ms = self.elapsed_ms();
        self.lines.push(format!("{ms:>6} {what}"));
    }

    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from((clock::now() - self.began).as_millis()).unwrap_or(u64::MAX)
    }

    pub fn violation(&mut self, what: String) {
        self.line(format_args!("{VIOLATION}: {what}"));
        self.violations.push(what);
    }

    pub fn event(&mut self, name: &'static str) {
        *self.totals.events.entry(name).or_default() += 1;
    }
}
