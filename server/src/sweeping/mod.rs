//! The callers that do a sweep's runs with servers of their own: `in_process` for tests in Rust, on
//! paused time, and [`command`] for any program. `sweep` decides what to run.

pub mod command;
#[cfg(feature = "sweep")]
pub(crate) mod in_process;
