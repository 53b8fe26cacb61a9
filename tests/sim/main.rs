//! Server, clients and recipes in one process, over links that misbehave by chance and on time
//! that only passes when everybody waits: the same run for the same seed.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `simulation` | one run: contenders, faults, and what must hold at any time |
//! | `link`, `kit` | the link and its faults; servers and clients: those of the recipes' own tests |

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    dead_code,
    reason = "helpers of tests are not tests to the lint, and shared with others; time is paused"
)]

#[path = "../../recipes/client/tests/it/clock.rs"]
mod clock;
#[path = "../../recipes/tests/it/kit.rs"]
mod kit;
#[path = "../../recipes/client/tests/it/link.rs"]
mod link;
mod simulation;
