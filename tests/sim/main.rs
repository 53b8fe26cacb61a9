//! Server, clients and recipes in one process, over links that misbehave by chance and on time
//! that only passes when everybody waits: the same run for the same seed.
//!
//! In each run five contenders on four clients want the same things for a simulated minute, while
//! links, sessions and the server fail. A seed decides what they contend for, how each goes about
//! it, and what goes wrong when. Judged are, at every grant: who else believes to hold the same,
//! and whether tokens grow in the order of grants; and whether those who lost something are told.
//! Then all is well, and everybody must be served once more in time, and leave nothing behind.
//!
//! `cargo test -p minikeeper-tests --test sim` runs 390 seeds and prints what they saw.
//! `MINIKEEPER_SIM_SEEDS` sets how many, `MINIKEEPER_SIM_FROM` the first, `MINIKEEPER_SIM_SEED` one alone.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `seeds` | the tests: every seed, the same seed twice, planted bugs |
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
