//! Takes the place of the metrics in a build without the feature `metrics`.

use std::time::Duration;

use crate::{observe::Observed, status::Loss};

/// Whether there are metrics.
pub(crate) const IS_ON: bool = false;

/// Nothing.
#[derive(Clone, Default, Debug)]
pub(crate) struct Handles(());

pub(crate) const fn waited(_: &Observed, _: &'static str, _: Duration) {}
pub(crate) const fn held(_: &Observed, _: Duration) {}
pub(crate) const fn queue_length(_: &Observed, _: usize) {}
pub(crate) const fn relisted(_: &Observed) {}
pub(crate) const fn retried(_: &Observed) {}
pub(crate) const fn requeued(_: &Observed) {}
pub(crate) const fn lost(_: &Observed, _: Loss) {}
pub(crate) const fn unsure(_: &Observed) {}
pub(crate) const fn held_long(_: &Observed) {}
pub(crate) const fn leader_changed(_: &Observed, _: &'static str) {}
pub(crate) const fn token_refused(_: &'static str) {}
