//! Sweeps: a test runs once without faults, and then once for every place where something can go
//! wrong.
//!
//! [`acts`] reads from the journal what the clients of a run did. [`names`] learns what differs
//! between runs without faults, and [`model`] where the fault points are and how to find each again; a
//! [`point`] is the text of one. [`plan`] decides what the next run does and judges the last one; it is
//! pure. [`order_plan`] does the same for [orders](crate::orders), [`order_swaps`] finds the requests of a
//! failed one that matter, and [`order_report`] tells of them. A [`rule`] says which failures a test expects; an [`oracle`]
//! compares what a run leaves with what those without faults have left. The tests of a [`suite`] share a budget and a report. With [`run_notes`] a
//! test asks what its run tries, and names goals.
//! [`armed`] injects the faults of a run into a universe. [`report`] tells what was found, with a
//! [`map`] and the [`coverage`] of what was tried and the [`timeline`] of each kind of failure; [`page`] shows it in a browser.
//! Three callers run tests so: [`sweeping`](crate::sweeping) on paused time in the process, and a command
//! for `minikeeper sweep`; and the verbs `sweep_...`, through [`remote`], tests in other languages.

pub(crate) mod acts;
pub(crate) mod armed;
pub(crate) mod coverage;
pub(crate) mod map;
pub(crate) mod model;
pub(crate) mod names;
pub(crate) mod oracle;
pub(crate) mod order_plan;
pub(crate) mod order_report;
pub(crate) mod order_swaps;
pub(crate) mod page;
pub(crate) mod plan;
pub(crate) mod point;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod rule;
mod run_notes;
pub(crate) mod suite;
pub(crate) mod timeline;

/// Why a sweep cannot be done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SweepError(pub(crate) String);

impl From<String> for SweepError {
    fn from(text: String) -> Self {
        Self(text)
    }
}
