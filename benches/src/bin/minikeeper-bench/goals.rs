//! The goals, looked up in what was found.

use minikeeper_benches::report::{GoalRow, Row};

/// Every goal that this run can tell of.
pub(crate) fn goals(_rows: &[Row]) -> Vec<GoalRow> {
    Vec::new()
}
