//! Simulates server, clients and recipes in one process, over links with random faults and on
//! paused time, which passes only when all tasks wait. The same seed gives the same run.
//!
//! In each run, five contenders on four clients contend for one recipe for a simulated minute,
//! while links, sessions and the server fail. The seed determines the recipe, its options, and the
//! faults with their times. At every grant the judge checks that no other contender believes that
//! it holds the same, that tokens grow in the order of grants, and that contenders notice their
//! losses. Then the faults end. Each contender must be served once more within a time limit, and
//! leave nothing behind.
//!
//! `cargo test -p minikeeper-tests --test sim` runs 51 seeds and prints their totals.
//! `MINIKEEPER_SIM_SEEDS` sets the number of seeds, `MINIKEEPER_SIM_FROM` the first one;
//! `MINIKEEPER_SIM_SEED` runs a single one.
//!
//! | module | contents |
//! | --- | --- |
//! | `seeds` | the tests: no violation with any seed, equal runs with equal seeds |
//! | `run` | one run, and many |
//! | `chaos` | the faults |
//! | `site` | the server and its clients |
//!
//! The contenders and the judge are in `tests/src/sim`.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the lint does not count test helpers as tests; time is paused"
)]

mod chaos;
mod run;
mod seeds;
mod site;

use minikeeper_test_kit::{clock, link, servers};
use minikeeper_tests::sim::{chance, contender, history, judge, worlds};
