//! The metrics, with the facade crate `metrics`: the program installs the recorder.
//!
//! What each cycle of a lock records has its handles looked up once for each lock object.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics::{
    Histogram, Label, SharedString, Unit, counter, describe_counter, describe_histogram, histogram,
};

use crate::{
    observe::{GRANTED, Observed},
    status::Loss,
};

/// Whether there are metrics.
pub(crate) const IS_ON: bool = true;

const WAIT: &str = "minikeeper_lock_wait_seconds";
const HOLD: &str = "minikeeper_lock_hold_seconds";
const QUEUE_LENGTH: &str = "minikeeper_lock_queue_length";
const RELISTS: &str = "minikeeper_lock_relists_total";
const RETRIES: &str = "minikeeper_lock_retries_total";
const REQUEUES: &str = "minikeeper_lock_requeues_total";
const LOSSES: &str = "minikeeper_lock_losses_total";
const UNSURE: &str = "minikeeper_lock_unsure_total";
const LONG_HOLDS: &str = "minikeeper_lock_long_holds_total";
const LEADER_CHANGES: &str = "minikeeper_leader_changes_total";
const TOKENS_REFUSED: &str = "minikeeper_tokens_refused_total";

/// Tells the recorder of this thread, or else the installed one, what each metric of this crate
/// means and its unit. Call it once, after the recorder is installed.
///
/// Install the recorder before the first lock is used: a lock object keeps the handles that it got
/// from the recorder of that time.
///
/// Only with the feature `metrics`.
///
/// # Examples
/// ```
/// minikeeper_recipes::describe_metrics();
/// ```
pub fn describe_metrics() {
    describe_histogram!(
        WAIT,
        Unit::Seconds,
        "Time from the first poll of an acquire to its end, by outcome"
    );
    describe_histogram!(
        HOLD,
        Unit::Seconds,
        "Time from the grant to the release, or to the drop of the last guard"
    );
    describe_histogram!(
        QUEUE_LENGTH,
        Unit::Count,
        "Contenders ahead when a contender enters the queue"
    );
    describe_counter!(
        RELISTS,
        Unit::Count,
        "Lists of contenders read beyond the first of a wait"
    );
    describe_counter!(
        RETRIES,
        Unit::Count,
        "Requests repeated after a temporary refusal or a lost connection"
    );
    describe_counter!(
        REQUEUES,
        Unit::Count,
        "Times that a waiting contender lost its znode or its session, and queued again"
    );
    describe_counter!(
        LOSSES,
        Unit::Count,
        "Holds that were lost before their release, by reason"
    );
    describe_counter!(
        UNSURE,
        Unit::Count,
        "Times that a holder found its connection down"
    );
    describe_counter!(
        LONG_HOLDS,
        Unit::Count,
        "Holds that exceeded hold_warn_after"
    );
    describe_counter!(
        LEADER_CHANGES,
        Unit::Count,
        "Terms of this process as leader that began (to=leader) or ended (to=follower)"
    );
    describe_counter!(
        TOKENS_REFUSED,
        Unit::Count,
        "Fencing tokens that a resource has refused"
    );
}

/// The handles of a lock object, from the recorder that was there when each was first needed.
#[derive(Clone, Default)]
pub(crate) struct Handles(Arc<KeptHandles>);

#[derive(Default)]
struct KeptHandles {
    granted: OnceLock<Histogram>,
    hold: OnceLock<Histogram>,
    queue_length: OnceLock<Histogram>,
}

impl fmt::Debug for Handles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").finish_non_exhaustive()
    }
}

pub(crate) fn waited(of: &Observed, outcome: &'static str, elapsed: Duration) {
    let histogram = || {
        let outcome = Some(Label::from_static_parts("outcome", outcome));
        histogram!(WAIT, labels(of, outcome))
    };
    if outcome == GRANTED {
        of.handles.0.granted.get_or_init(histogram).record(elapsed);
    } else {
        histogram().record(elapsed);
    }
}

pub(crate) fn held(of: &Observed, elapsed: Duration) {
    let histogram = || histogram!(HOLD, labels(of, None));
    of.handles.0.hold.get_or_init(histogram).record(elapsed);
}

#[expect(clippy::cast_precision_loss, reason = "no queue has 2^52 contenders")]
pub(crate) fn queue_length(of: &Observed, ahead: usize) {
    let histogram = || histogram!(QUEUE_LENGTH, labels(of, None));
    let kept = of.handles.0.queue_length.get_or_init(histogram);
    kept.record(ahead as f64);
}

pub(crate) fn relisted(of: &Observed) {
    counter!(RELISTS, labels(of, None)).increment(1);
}

pub(crate) fn retried(of: &Observed) {
    counter!(RETRIES, labels(of, None)).increment(1);
}

pub(crate) fn requeued(of: &Observed) {
    counter!(REQUEUES, labels(of, None)).increment(1);
}

pub(crate) fn lost(of: &Observed, loss: Loss) {
    let reason = match loss {
        Loss::SessionOver => "session_over",
        Loss::Presumed => "presumed",
        Loss::NodeDeleted => "node_deleted",
        Loss::Closed => "closed",
    };
    let reason = Some(Label::from_static_parts("reason", reason));
    counter!(LOSSES, labels(of, reason)).increment(1);
}

pub(crate) fn unsure(of: &Observed) {
    counter!(UNSURE, labels(of, None)).increment(1);
}

pub(crate) fn held_long(of: &Observed) {
    counter!(LONG_HOLDS, labels(of, None)).increment(1);
}

pub(crate) fn leader_changed(of: &Observed, to: &'static str) {
    let to = Some(Label::from_static_parts("to", to));
    counter!(LEADER_CHANGES, labels(of, to)).increment(1);
}

pub(crate) fn token_refused(resource: &'static str) {
    counter!(TOKENS_REFUSED, "resource" => resource).increment(1);
}

fn labels(of: &Observed, further: Option<Label>) -> Vec<Label> {
    let mut labels = Vec::with_capacity(3);
    labels.push(Label::from_static_parts("recipe", of.recipe));
    if of.is_path_label {
        // Shared, not copied.
        let path = SharedString::from_shared(of.path.clone());
        labels.push(Label::new("path", path));
    }
    labels.extend(further);
    labels
}
