//! The leader selector: runs work in one process at a time.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `LeaderSelector`.

use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use minikeeper_client::{Client, Error, ZnodePath};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    call_limit::CallLimit,
    error::LockError,
    leaders::{Participant, leadership::ErrorPolicy, participants},
    locks::{guard::Guard, held::Held, mutex::InterProcessMutex},
    options::LockOptions,
    queue::{contending::Queue, order::Claim, pace::Pace},
    status::Status,
    task::{Task, message_of},
};

/// The work of a selector: it leads while this future runs.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{Guard, LeaderSelector, SelectorOptions, Work};
/// use minikeeper_client::Client;
///
/// fn report(guard: &Guard) -> Work<'_> {
///     Box::pin(async move { println!("reporting with token {}", guard.token()) })
/// }
///
/// let options = SelectorOptions::default();
/// let selector = LeaderSelector::start(client, "/leaders/report", "host 7", options, report)?;
/// selector.done().await?;
/// # Ok(()) });
/// ```
pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The options of a selector.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{LeaderSelector, SelectorOptions};
///
/// let mut options = SelectorOptions::default();
/// options.is_requeued = true;
/// let selector = LeaderSelector::start(client, "/leaders/report", "host 7", options, |_| {
///     Box::pin(async { println!("reporting, in turn with other processes") })
/// })?;
/// selector.close().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct SelectorOptions {
    /// Whether the selector queues again after its turn. See also [`LeaderSelector::requeue`].
    ///
    /// Default: false.
    pub is_requeued: bool,
    /// When the work is dropped: as soon as the connection is lost, or only when the session may be
    /// lost.
    ///
    /// Default: [`ErrorPolicy::Standard`].
    pub error_policy: ErrorPolicy,
    /// The options of the queue. [`LockOptions::data`] is replaced by the id, and
    /// [`LockOptions::attempts_max`] is ignored: the selector queues again after every lost
    /// session.
    ///
    /// Default: [`LockOptions::default`].
    pub lock: LockOptions,
}

/// A contender for leadership, compatible with Curator's class of the same name in Java. The
/// contenders lead in turn, each while its work runs.
///
/// The selector runs in a background task, and drops the work when it is no longer certain that it
/// leads. Dropping the selector drops the work and gives up the lock, in the background.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::{LeaderSelector, SelectorOptions};
///
/// let client = Client::connect(&address).await?;
/// let options = SelectorOptions::default();
/// let selector = LeaderSelector::start(client, "/leaders/report", "host 7", options, |guard| {
///     Box::pin(async move { println!("reporting with token {}", guard.token()) })
/// })?;
/// selector.done().await?;
/// selector.close().await?;
/// # Ok(()) });
/// ```
pub struct LeaderSelector {
    shared: Arc<SelectorShared>,
    orders: watch::Sender<SelectorOrders>,
    stage: watch::Receiver<SelectorStage>,
    _task: Task,
}

impl fmt::Debug for LeaderSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderSelector")
            .field("path", &self.shared.queue.path)
            .field("stage", &self.stage.borrow().clone())
            .finish_non_exhaustive()
    }
}

struct SelectorShared {
    queue: Queue,
    mutex: InterProcessMutex,
    options: SelectorOptions,
    /// The lock, while the work runs.
    held: Mutex<Option<Arc<Held>>>,
    /// The error of the latest attempt that failed, or of the latest work that panicked.
    last_error: Mutex<Option<LockError>>,
    stop: Option<Stop>,
}

/// Asks the work to end, instead of dropping it: it blocks a thread.
pub(crate) type Stop = Box<dyn Fn() + Send + Sync>;

/// The orders of the caller. The counts never decrease.
#[derive(Clone, Copy, Default, Debug)]
struct SelectorOrders {
    is_closing: bool,
    requeues: u64,
    interruptions: u64,
}

#[derive(Clone, Debug)]
enum SelectorStage {
    Queued,
    Leading,
    /// Its turn is over, or the error that prevented it.
    Idle(Result<(), LockError>),
    /// With the result of releasing the lock.
    Closed(Result<(), Error>),
    /// Its task has ended before it was closed.
    Failed(Error),
}

impl LeaderSelector {
    /// Starts to contend for leadership at this path, and runs the work once per turn. Other
    /// clients can read the id ([`LeaderSelector::participants`]), which may be empty.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid. [`Error::NoRuntime`] outside a tokio runtime.
    pub fn start(
        client: Client,
        path: &str,
        id: &str,
        options: SelectorOptions,
        work: impl for<'a> Fn(&'a Guard) -> Work<'a> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::start_with_stop(client, path, id, options, work, None)
    }

    /// Like [`Self::start`]. A turn whose work cannot be dropped ends with its work, after `stop`.
    pub(crate) fn start_with_stop(
        client: Client,
        path: &str,
        id: &str,
        options: SelectorOptions,
        work: impl for<'a> Fn(&'a Guard) -> Work<'a> + Send + Sync + 'static,
        stop: Option<Stop>,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let mut lock = options.lock.clone().with_data(id);
        lock.attempts_max = u32::MAX;
        let shared = Arc::new(SelectorShared {
            // The limit of a handle is that of its calls, not of the task.
            mutex: InterProcessMutex::with_options(client.without_timeout(), path, lock.clone())?
                .observed_as("LeaderSelector"),
            queue: Queue::new("LeaderSelector", client, path, lock),
            options,
            held: Mutex::new(None),
            last_error: Mutex::new(None),
            stop,
        });
        let orders = watch::Sender::new(SelectorOrders::default());
        let (stage, stages) = watch::channel(SelectorStage::Queued);
        let run = Arc::clone(&shared).run(stage.clone(), orders.subscribe(), work);
        let of_task = Arc::clone(&shared);
        let task = Task::spawn("leader selector", run, move |error| {
            *of_task.last_error.lock() = Some(error.clone().into());
            stage.send_replace(SelectorStage::Failed(error));
        })?;
        Ok(Self {
            shared,
            orders,
            stage: stages,
            _task: task,
        })
    }

    /// Returns whether the work runs and the selector leads, without a request. It compares what
    /// the client knows with the current time.
    #[must_use]
    pub fn has_leadership(&self) -> bool {
        let held = self.shared.held.lock().clone();
        held.is_some_and(|held| match held.status() {
            Status::Held => true,
            Status::Suspended { .. } => self.shared.options.error_policy == ErrorPolicy::Session,
            Status::Lost(_) => false,
        })
    }

    /// Queues again when the turn is over. Returns false if the selector is already in the queue or
    /// is closed.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::{LeaderSelector, SelectorOptions};
    /// # let options = SelectorOptions::default();
    /// let selector = LeaderSelector::start(client, "/leaders/report", "host 7", options, |_| {
    ///     Box::pin(async { println!("reporting") })
    /// })?;
    /// selector.done().await?;
    /// assert!(selector.requeue());
    /// # Ok(()) });
    /// ```
    pub fn requeue(&self) -> bool {
        let is_queued = matches!(
            *self.stage.borrow(),
            SelectorStage::Queued | SelectorStage::Closed(_) | SelectorStage::Failed(_)
        );
        if !is_queued {
            self.orders.send_modify(|orders| orders.requeues += 1);
        }
        !is_queued
    }

    /// Drops the work, which ends the turn. Returns false if no work runs.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::{LeaderSelector, SelectorOptions};
    /// # let options = SelectorOptions::default();
    /// let selector = LeaderSelector::start(client, "/leaders/report", "host 7", options, |_| {
    ///     Box::pin(std::future::pending())
    /// })?;
    /// while !selector.interrupt() {
    ///     tokio::task::yield_now().await;
    /// }
    /// selector.done().await?;
    /// # Ok(()) });
    /// ```
    pub fn interrupt(&self) -> bool {
        let is_leading = matches!(*self.stage.borrow(), SelectorStage::Leading);
        if is_leading {
            self.orders.send_modify(|orders| orders.interruptions += 1);
        }
        is_leading
    }

    /// Waits until the selector neither queues nor leads: its turn is over, or it is closed.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`LockError::WorkPanicked`] when the work panicked and the selector does not queue again
    /// automatically; [`LockError::Client`] when it had no turn because the client is closed or a
    /// server refuses permanently, for example with `NOAUTH`, or its task has ended
    /// ([`Error::TaskEnded`]). Lost connections, lost sessions and
    /// refusals for which [`Error::is_retryable`] is true are not errors: the selector stays in the
    /// queue.
    pub async fn done(&self) -> Result<(), LockError> {
        let mut stage = self.stage.clone();
        let end = stage
            .wait_for(|stage| !matches!(stage, SelectorStage::Queued | SelectorStage::Leading));
        match end.await.as_deref() {
            Ok(SelectorStage::Idle(result)) => result.clone(),
            Ok(SelectorStage::Failed(error)) => Err(error.clone().into()),
            // It is closed.
            _ => Ok(()),
        }
    }

    /// Returns the error of the latest failed attempt to get a turn, or of the latest work that
    /// panicked. Later turns may have succeeded.
    #[must_use]
    pub fn last_error(&self) -> Option<LockError> {
        self.shared.last_error.lock().clone()
    }

    /// Reads all contenders, the leader first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        participants(&self.shared.queue, Claim::Mutex).await
    }

    /// Reads which contender leads; `None` if there is no contender.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn leader(&self) -> Result<Option<Participant>, Error> {
        Ok(self.participants().await?.into_iter().next())
    }

    /// Drops the work if it runs, and waits until the lock is released. If the selector is in the
    /// queue, it leaves, in the background.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`], [`Error::NotSent`] or [`Error::Refused`] when the release was not
    /// confirmed. The caller need not do anything: the lock is released with the next connection or
    /// at the end of the session. [`Error::TaskEnded`] when the task of the selector had ended before,
    /// which has released the lock.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn close(&self) -> Result<(), Error> {
        self.orders.send_modify(|orders| orders.is_closing = true);
        let mut stage = self.stage.clone();
        let end = async {
            match stage
                .wait_for(|stage| {
                    matches!(stage, SelectorStage::Closed(_) | SelectorStage::Failed(_))
                })
                .await
                .as_deref()
            {
                Ok(SelectorStage::Closed(result)) => result.clone(),
                Ok(SelectorStage::Failed(error)) => Err(error.clone()),
                _ => Ok(()),
            }
        };
        let Queue { client, path, .. } = &self.shared.queue;
        CallLimit::background(client, "close", path).run(end).await
    }
}

impl SelectorShared {
    async fn run(
        self: Arc<Self>,
        stage: watch::Sender<SelectorStage>,
        mut orders: watch::Receiver<SelectorOrders>,
        work: impl for<'a> Fn(&'a Guard) -> Work<'a> + Send + Sync + 'static,
    ) {
        let mut released = Ok(());
        let mut requeues = 0;
        let mut pace = Pace::of(&self.queue.client);
        loop {
            stage.send_replace(SelectorStage::Queued);
            let acquired = tokio::select! {
                biased;
                _ = orders.wait_for(|orders| orders.is_closing) => break,
                acquired = self.mutex.acquire() => acquired,
            };
            let result = match acquired {
                Ok(guard) => {
                    // Read before the turn is visible, so that every interruption of it comes
                    // later.
                    let before = orders.borrow().interruptions;
                    stage.send_replace(SelectorStage::Leading);
                    let led = self.lead(&guard, orders.clone(), before, &work).await;
                    let is_closing = orders.borrow().is_closing;
                    match guard.status() {
                        Status::Lost(_) => drop(guard),
                        // No caller waits for it; the next connection releases it.
                        Status::Suspended { .. } if !is_closing => drop(guard),
                        _ => released = guard.release().await.map(drop),
                    }
                    match led {
                        Some(led) => led,
                        None => {
                            pace.pause().await;
                            continue;
                        }
                    }
                }
                Err(error) => Err(error),
            };
            let is_again = match &result {
                Ok(()) => {
                    pace.reset();
                    self.options.is_requeued
                }
                Err(LockError::WorkPanicked { .. }) => self.options.is_requeued,
                Err(error) => error.is_passing(),
            };
            if let Err(error) = &result {
                *self.last_error.lock() = Some(error.clone());
                if is_again {
                    stage.send_replace(SelectorStage::Queued);
                    tokio::select! {
                        biased;
                        _ = orders.wait_for(|orders| orders.is_closing) => break,
                        () = pace.pause() => {}
                    }
                }
            }
            if is_again {
                continue;
            }
            stage.send_replace(SelectorStage::Idle(result));
            let next = orders
                .wait_for(|orders| orders.is_closing || orders.requeues > requeues)
                .await
                .map(|orders| *orders);
            match next {
                Ok(orders) if !orders.is_closing => requeues = orders.requeues,
                _ => break,
            }
        }
        stage.send_replace(SelectorStage::Closed(released));
    }

    /// Runs the work until it is done, the interruptions exceed `before`, the lock is in doubt or
    /// the selector closes. Returns `None` if the lock was in doubt before the work began: that was
    /// no turn.
    async fn lead(
        &self,
        guard: &Guard,
        mut orders: watch::Receiver<SelectorOrders>,
        before: u64,
        work: &(impl for<'a> Fn(&'a Guard) -> Work<'a> + Send + Sync + 'static),
    ) -> Option<Result<(), LockError>> {
        // Dropped before the guard, however this future ends.
        let _leading = Leading::begin(&self.held, guard);
        let term = Mutex::new(None);
        let doubt = async {
            match self.options.error_policy {
                ErrorPolicy::Standard => drop(guard.unsure().await),
                ErrorPolicy::Session => drop(guard.lost().await),
            }
        };
        let panicked = |message| LockError::WorkPanicked {
            path: self.queue.path.to_string(),
            message,
        };
        let mut work = Box::pin(async {
            let done = caught(|| {
                *term.lock() = Some(self.queue.observed.term(guard.token()));
                work(guard)
            });
            done.await.map_err(panicked)
        });
        tokio::select! {
            biased;
            _ = orders.wait_for(|orders| orders.is_closing || orders.interruptions > before) => {}
            () = doubt => if term.lock().is_none() {
                return None;
            },
            done = &mut work => return Some(done),
        }
        match &self.stop {
            Some(stop) if term.lock().is_some() => {
                stop();
                Some(work.await)
            }
            _ => {
                // What the work drops may panic, too.
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(work)));
                Some(dropped.map_err(|panic| panicked(message_of(&*panic))))
            }
        }
    }
}

/// Runs the work to its end. If it panics, returns the message as the error.
async fn caught<'a>(begin: impl FnOnce() -> Work<'a>) -> Result<(), String> {
    let message = |panic: Box<dyn Any + Send>| message_of(&*panic);
    // Nothing that has panicked is used again.
    let mut work = catch_unwind(AssertUnwindSafe(begin)).map_err(message)?;
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(message(panic))),
        }
    })
    .await
}

/// Shows that the selector leads, until this is dropped.
struct Leading<'a>(&'a Mutex<Option<Arc<Held>>>);

impl<'a> Leading<'a> {
    fn begin(held: &'a Mutex<Option<Arc<Held>>>, guard: &Guard) -> Self {
        *held.lock() = Some(Arc::clone(&guard.held));
        Self(held)
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
