//! Reports for administrators: four-letter words, AdminServer's commands, and the metrics that both
//! and `/metrics` print. [`reports`] is the table of words and commands, [`metrics`] that of metrics; [`fields`]
//! are values that words and commands have in common.

#[cfg(feature = "control")]
pub(crate) mod commands;
pub(crate) mod fields;
pub(crate) mod four_letter;
pub(crate) mod metrics;
pub(crate) mod process;
#[cfg(feature = "control")]
pub(crate) mod prometheus;
pub(crate) mod reports;
pub(crate) mod version;
