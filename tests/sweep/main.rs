//! Sweeps: every fault at every place.
//!
//! | module | contents |
//! | --- | --- |
//! | `behaviour` | what a sweep finds, and what it says of it |
//! | `faults` | programs that one fault breaks, and no other |
//! | `known_orders` | errors that users have met in one order of requests |
//! | `names` | names that differ from run to run, and what is not tried |
//! | `order_counts` | how many orders there are, compared with a model |
//! | `orders` | what a sweep of orders finds |
//! | `recipes` | the recipes pass with every fault |
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the lint does not count test helpers as tests; time is paused; a sweep prints what it tried"
)]

mod behaviour;
mod faults;
mod known_orders;
mod names;
mod order_counts;
mod orders;
mod recipes;
