//! Server, clients and recipes in one process, over links that misbehave by chance and on time
//! that passes only when all tasks wait: the same run for the same seed.
//!
//! In each run five contenders on four clients contend for one recipe for a simulated minute, while
//! links, sessions and the server fail. A seed decides the recipe, its options, and the faults with
//! their times. At every grant the judge checks that no other contender believes to hold the same,
//! that tokens grow in the order of grants, and that contenders notice their losses. Then the
//! faults end, and each contender must be served once more in time, and leave nothing behind.
//!
//! `cargo test -p minikeeper-tests --test sim` runs 65 seeds and prints what they saw.
//! `MINIKEEPER_SIM_SEEDS` sets how many, `MINIKEEPER_SIM_FROM` the first, `MINIKEEPER_SIM_SEED` one
//! alone.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `seeds` | the tests: every seed, the same seed twice |
//! | `run` | one run, and many |
//! | `chaos`, `site` | what goes wrong, and where |
//!
//! The contenders and their judge are those of `tests/src/sim`.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are not tests to the lint; time is paused"
)]

mod chaos;
mod run;
mod seeds;
mod site;

use minikeeper_test_kit::{clock, link, servers};
use minikeeper_tests::sim::{chance, contender, history, judge, worlds};
