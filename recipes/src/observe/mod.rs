//! What operators see of the recipes: spans and events of `tracing`, and metrics.
//!
//! A wait, a hold and a term of a leader each have an observer here, which reports the end when it
//! is dropped. So a future that is dropped ends its wait too. `docs/observability.md` lists every
//! span, event and metric.
//!
//! | file | contents |
//! | --- | --- |
//! | `meter` | the metrics, with the feature `metrics` |
//! | `unmetered` | takes its place without the feature, and does nothing |
//! | `token_check` | refuses tokens that are too small |

#[cfg_attr(not(feature = "metrics"), path = "unmetered.rs")]
pub(crate) mod meter;
mod token_check;

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    task::AbortHandle,
    time::{Instant, sleep},
};
use tracing::{Instrument as _, Level, Span, debug, debug_span, enabled, info, warn};

pub use self::token_check::{TokenCheck, TokenRefused};
use crate::{
    clock,
    error::LockError,
    options::LockOptions,
    status::{FencingToken, Loss},
};

/// The outcome of a wait that ends with the lock.
pub(crate) const GRANTED: &str = "granted";

/// The lock whose waits and holds are observed: the labels of its metrics.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The name of the recipe's type.
    pub(crate) recipe: &'static str,
    /// The path that the program gave.
    pub(crate) path: Arc<str>,
    #[cfg_attr(
        not(feature = "metrics"),
        expect(dead_code, reason = "a label of metrics")
    )]
    pub(crate) is_path_label: bool,
    #[cfg_attr(
        not(feature = "metrics"),
        expect(dead_code, reason = "those of metrics")
    )]
    pub(crate) handles: meter::Handles,
}

impl Observed {
    pub(crate) fn new(recipe: &'static str, path: &str, options: &LockOptions) -> Self {
        Self {
            recipe,
            path: path.into(),
            is_path_label: options.path_label,
            handles: meter::Handles::default(),
        }
    }

    /// Runs an acquisition, which may wait. It is made here, so that the large future is not moved.
    pub(crate) async fn wait<T, F>(&self, acquire: impl FnOnce() -> F) -> Result<T, LockError>
    where
        F: Future<Output = Result<T, LockError>>,
    {
        let span = debug_span!("wait", recipe = self.recipe, path = &*self.path);
        if span.is_disabled() {
            let wait = WaitObserver::begin(self, meter::IS_ON);
            return wait.ended(acquire().await);
        }
        let acquiring = async {
            let wait = WaitObserver::begin(self, true);
            wait.ended(acquire().await)
        };
        Box::pin(acquiring).instrument(span).await
    }

    /// The contender is in the queue, behind so many others that it waits for.
    pub(crate) fn queued(&self, ahead: usize) {
        debug!(recipe = self.recipe, path = &*self.path, ahead, "queued");
        meter::queue_length(self, ahead);
    }

    /// The list of contenders is read again.
    pub(crate) fn listed_again(&self) {
        debug!(recipe = self.recipe, path = &*self.path, "listed again");
        meter::relisted(self);
    }

    /// A request is made again, after a temporary refusal or a lost connection.
    pub(crate) fn retried(&self) {
        debug!(recipe = self.recipe, path = &*self.path, "retry");
        meter::retried(self);
    }

    /// The contender's znode or session is gone during the wait: it queues again, at the end.
    pub(crate) fn requeued(&self) {
        debug!(recipe = self.recipe, path = &*self.path, "queued again");
        meter::requeued(self);
    }

    /// Begins a hold; `None` if nothing observes it.
    pub(crate) fn hold(
        &self,
        token: FencingToken,
        warn_after: Option<Duration>,
    ) -> Option<HoldObserver> {
        if !(meter::IS_ON || enabled!(Level::WARN)) {
            return None;
        }
        let span = debug_span!("hold", recipe = self.recipe, path = &*self.path, %token);
        debug!(parent: &span, "held");
        Some(HoldObserver {
            since: Some(clock::now()),
            warning: warn_after.and_then(|after| self.warn_after(after, token)),
            of: self.clone(),
            span,
            is_unsure: false,
        })
    }

    fn warn_after(&self, after: Duration, token: FencingToken) -> Option<AbortHandle> {
        let of = self.clone();
        let warning = async move {
            sleep(after).await;
            warn!(
                recipe = of.recipe,
                path = &*of.path,
                %token,
                limit_ms = millis(after),
                "lock held longer than the limit"
            );
            meter::held_long(&of);
        };
        let runtime = Handle::try_current().ok()?;
        Some(runtime.spawn(warning).abort_handle())
    }

    /// Begins a term of a leader.
    pub(crate) fn term(&self, token: FencingToken) -> TermObserver {
        let span = debug_span!("term", recipe = self.recipe, path = &*self.path, %token);
        info!(parent: &span, recipe = self.recipe, path = &*self.path, %token, "leader");
        meter::leader_changed(self, "leader");
        TermObserver {
            of: self.clone(),
            span,
        }
    }
}

/// Reports the end of a wait when it is dropped.
struct WaitObserver<'a> {
    of: &'a Observed,
    since: Option<Instant>,
    outcome: &'static str,
}

impl<'a> WaitObserver<'a> {
    fn begin(of: &'a Observed, is_on: bool) -> Self {
        Self {
            of,
            since: is_on.then(clock::now),
            outcome: "dropped",
        }
    }

    fn ended<T>(mut self, result: Result<T, LockError>) -> Result<T, LockError> {
        self.outcome = match &result {
            Ok(_) => GRANTED,
            Err(LockError::TimedOut { .. }) => "timed_out",
            Err(_) => "failed",
        };
        result
    }
}

impl Drop for WaitObserver<'_> {
    fn drop(&mut self) {
        let Some(since) = self.since else {
            return;
        };
        let elapsed = clock::now() - since;
        let outcome = self.outcome;
        debug!(outcome, elapsed_ms = millis(elapsed), "wait ended");
        meter::waited(self.of, outcome, elapsed);
    }
}

/// A hold. Reports its end when it is dropped, unless [`Self::end`] did.
#[derive(Debug)]
pub(crate) struct HoldObserver {
    pub(crate) of: Observed,
    /// `None` after the end.
    since: Option<Instant>,
    span: Span,
    warning: Option<AbortHandle>,
    is_unsure: bool,
}

impl HoldObserver {
    /// The hold is lost; called once.
    pub(crate) fn lost(&mut self, loss: Loss) {
        self.end_warning();
        let Observed { recipe, path, .. } = &self.of;
        warn!(parent: &self.span, recipe, path = &**path, %loss, "lock lost");
        meter::lost(&self.of, loss);
    }

    /// Whether it is certain that the lock is held.
    pub(crate) fn set_unsure(&mut self, is_unsure: bool) {
        if is_unsure && !self.is_unsure {
            let Observed { recipe, path, .. } = &self.of;
            info!(parent: &self.span, recipe, path = &**path, "lock unsure");
            meter::unsure(&self.of);
        }
        self.is_unsure = is_unsure;
    }

    /// The release begins.
    pub(crate) fn end(&mut self) {
        self.end_warning();
        if let Some(since) = self.since.take() {
            let elapsed = clock::now() - since;
            debug!(parent: &self.span, elapsed_ms = millis(elapsed), "hold ended");
            self.span = Span::none();
            meter::held(&self.of, elapsed);
        }
    }

    fn end_warning(&mut self) {
        if let Some(warning) = self.warning.take() {
            warning.abort();
        }
    }
}

impl Drop for HoldObserver {
    fn drop(&mut self) {
        self.end();
    }
}

/// A term of a leader. Reports its end when it is dropped.
#[derive(Debug)]
pub(crate) struct TermObserver {
    of: Observed,
    span: Span,
}

impl Drop for TermObserver {
    fn drop(&mut self) {
        let Observed { recipe, path, .. } = &self.of;
        info!(parent: &self.span, recipe, path = &**path, "follower");
        meter::leader_changed(&self.of, "follower");
    }
}

/// Returns whole milliseconds, for a field.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
