//! One line of the report: a figure, its goal, and how both are printed.

use minikeeper_benches::{
    stats::Spread,
    table::{duration_ns, number},
};
use serde_json::{Value, json};

/// The unit in which a row is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    /// Nanoseconds, printed in a readable unit.
    Time,
    /// Bytes.
    Bytes,
    /// Mebibytes, from bytes.
    Mebibytes,
    /// Megabytes, from bytes.
    Megabytes,
    /// Percent of a core, from a share.
    Percent,
    /// A ratio.
    Ratio,
}

impl Unit {
    /// Formats the value with its unit.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Time => duration_ns(value),
            Self::Bytes => format!("{} B", number(value)),
            Self::Mebibytes => format!("{} MiB", number(value / 1_048_576.0)),
            Self::Megabytes => format!("{} MB", number(value / 1e6)),
            Self::Percent => format!("{} %", number(value * 100.0)),
            Self::Ratio => number(value),
        }
    }
}

/// One line of the report.
#[derive(Debug)]
pub(crate) struct Row {
    name: &'static str,
    values: Vec<f64>,
    unit: Unit,
    /// The largest value that meets the goal.
    goal: Option<f64>,
    note: String,
}

impl Row {
    /// Creates a row whose median should be at most `goal`.
    pub(crate) fn new(name: &'static str, values: Vec<f64>, unit: Unit, goal: f64) -> Self {
        Self {
            name,
            values,
            unit,
            goal: Some(goal),
            note: String::new(),
        }
    }

    /// Adds a description of the figure.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Removes the goal: the row is only for information.
    pub(crate) fn without_goal(mut self) -> Self {
        self.goal = None;
        self
    }

    /// Returns whether the goal is met; `None` without a goal.
    pub(crate) fn holds(&self) -> Option<bool> {
        Some(Spread::of(&self.values)?.median <= self.goal?)
    }

    /// Returns the cells of the report: name, median, spread, goal, verdict, note.
    pub(crate) fn cells(&self) -> Vec<String> {
        let spread = Spread::of(&self.values);
        let median = spread.map(|spread| self.unit.text(spread.median));
        let range = spread.filter(|_| self.values.len() > 1).map(|spread| {
            let (min, max) = (self.unit.text(spread.min), self.unit.text(spread.max));
            format!("{min} - {max}")
        });
        let goal = self.goal.map(|goal| format!("<= {}", self.unit.text(goal)));
        let holds = match self.holds() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        vec![
            self.name.into(),
            median.unwrap_or_default(),
            range.unwrap_or_default(),
            goal.unwrap_or_default(),
            holds.into(),
            self.note.clone(),
        ]
    }

    /// Returns the form for the JSON file, in the basic unit: nanoseconds, bytes, share.
    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "values": self.values,
            "spread": Spread::of(&self.values).map(|spread| spread.json()),
            "goal": self.goal,
            "holds": self.holds(),
            "note": self.note,
        })
    }
}
