//! Reports for administrators: four-letter words, AdminServer's commands, and the metrics that both
//! and `/metrics` print.

#[cfg(feature = "control")]
pub(crate) mod commands;
pub(crate) mod four_letter;
pub(crate) mod metrics;
pub(crate) mod process;
#[cfg(feature = "control")]
pub(crate) mod prometheus;
pub(crate) mod version;
