//! The time that the user of a subcommand waits, whatever a server does with its clock.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use std::time::Instant;

pub(crate) fn now() -> Instant {
    Instant::now()
}
