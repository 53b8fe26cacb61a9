//! Reports for administrators: four-letter words, AdminServer's commands, and the metrics that both
//! and `/metrics` print.
//!
//! [`reports`] is the table of words and commands; [`four_letter`] and [`commands`] have what their rows
//! call, and [`fields`] the values that both have. [`metrics`] is the table of metrics, which
//! [`prometheus`] renders for `/metrics`. [`process`] reads figures of the process, and [`version`] is
//! the ZooKeeper version that the server reports.

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
