//! The leader latch: contends for leadership in a background task until it is closed.
//!
//! Source: `docs/curator-recipes.md` section 17; hazards H5, H29, H39 and H42; Curator's
//! `LeaderLatch`.

use std::{fmt, sync::Arc};

use minikeeper_client::{Client, Error, ZnodePath};
use tokio::sync::watch;

use crate::{
    call_limit::CallLimit,
    error::LockError,
    leaders::{
        Participant,
        leadership::{Contender, ErrorPolicy, Leadership, LeadershipChanges, LeadershipState},
        participants,
    },
    options::LockOptions,
    queue::{contending::Queue, order::Claim},
    status::FencingToken,
    task::Task,
};

/// The options of a latch.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{ErrorPolicy, LatchOptions, LeaderLatch};
///
/// let mut options = LatchOptions::default();
/// options.error_policy = ErrorPolicy::Session;
/// let latch = LeaderLatch::start_with(client, "/leaders/billing", "host 7", options)?;
/// latch.wait().await?;
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LatchOptions {
    /// Whether a leader keeps leading while the connection is down.
    ///
    /// Default: [`ErrorPolicy::Standard`].
    pub error_policy: ErrorPolicy,
    /// Whether [`LeaderLatch::changes`] reports the end of the leadership when the latch is closed or
    /// dropped.
    ///
    /// Default: [`CloseMode::NotifyLeader`]. Curator: `SILENT`.
    pub close_mode: CloseMode,
    /// The options of the queue. [`LockOptions::data`] is replaced by the id.
    ///
    /// Default: [`LockOptions::default`].
    pub lock: LockOptions,
}

/// What closing a latch that leads reports.
///
/// Source: Curator's `LeaderLatch.CloseMode`.
///
/// # Examples
/// ```
/// use minikeeper_recipes::{CloseMode, LatchOptions};
///
/// let mut options = LatchOptions::default();
/// options.close_mode = CloseMode::Silent;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CloseMode {
    /// The stream of changes ends without another change.
    Silent,
    /// The stream of changes returns [`Leadership::Follower`] before it ends.
    #[default]
    NotifyLeader,
}

/// The reason why a latch no longer contends.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_recipes::{LatchError, LeaderLatch};
/// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
/// latch.close().await?;
/// match latch.wait().await {
///     Err(LatchError::Closed { path }) => assert_eq!(path, "/leaders/billing"),
///     other => panic!("the latch was closed, but the wait returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LatchError {
    /// The latch was closed.
    #[error("leader latch {path:?}: closed")]
    Closed {
        /// The path of the latch.
        path: String,
    },
    /// The latch has failed and does not retry: remove the cause, then start another one.
    #[error(transparent)]
    Failed(#[from] LockError),
}

impl From<Error> for LatchError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A contender for leadership, compatible with Curator's class of the same name in Java. The first
/// contender in the queue leads until it is closed or its session ends.
///
/// A background task contends from the start, and queues again in every new session. Dropping the
/// latch gives up the leadership or the place in the queue, in the background.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::LeaderLatch;
///
/// let client = Client::connect(&address).await?;
/// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
/// let token = latch.wait().await?;
/// println!("leading with token {token}");
/// assert!(latch.has_leadership());
/// latch.close().await?;
/// # Ok(()) });
/// ```
pub struct LeaderLatch {
    /// For the calls of this handle, within its limit.
    queue: Queue,
    contender: Arc<Contender>,
    closing: watch::Sender<bool>,
    close_mode: CloseMode,
    _task: Task,
}

impl fmt::Debug for LeaderLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderLatch")
            .field("path", &self.contender.queue.path)
            .field("leadership", &self.leadership())
            .finish_non_exhaustive()
    }
}

impl LeaderLatch {
    /// Starts to contend for leadership at this path. Other clients can read the id
    /// ([`LeaderLatch::participants`]), which may be empty.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid. [`Error::NoRuntime`] outside a
    /// tokio runtime.
    pub fn start(client: Client, path: &str, id: &str) -> Result<Self, Error> {
        Self::start_with(client, path, id, LatchOptions::default())
    }

    /// Like [`LeaderLatch::start`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid. [`Error::NoRuntime`] outside a
    /// tokio runtime.
    pub fn start_with(
        client: Client,
        path: &str,
        id: &str,
        options: LatchOptions,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let lock = options.lock.with_data(id);
        let unlimited = client.without_timeout();
        let queue = Queue::new("LeaderLatch", client, path, lock);
        let contender = queue.with_client(unlimited);
        let contender = Arc::new(Contender::new(contender, options.error_policy));
        let closing = watch::Sender::new(false);
        let run = Arc::clone(&contender).run(closing.subscribe());
        let of_task = Arc::clone(&contender);
        let task = Task::spawn("leader latch", run, move |error| of_task.fail(error.into()))?;
        Ok(Self {
            queue,
            contender,
            closing,
            close_mode: options.close_mode,
            _task: task,
        })
    }

    /// Returns whether the latch leads, without a request. It compares what the client knows with
    /// the current time, so a process that was paused sees the loss in its first call.
    #[must_use]
    pub fn has_leadership(&self) -> bool {
        matches!(self.leadership(), Leadership::Leader { .. })
    }

    /// Like [`LeaderLatch::has_leadership`], with the fencing token.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.contender.leadership()
    }

    /// Waits until the latch leads.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect: the latch continues to contend.
    ///
    /// # Errors
    /// [`LatchError::Closed`] when the latch was closed, [`LatchError::Failed`] when the client is
    /// closed or a server refuses permanently, for example with `NOAUTH`, or its task has ended
    /// ([`Error::TaskEnded`]). The latch no longer contends then: start another one. Lost connections, lost sessions and refusals for which
    /// [`Error::is_retryable`] is true are not errors: the latch retries, more slowly after
    /// refusals.
    pub async fn wait(&self) -> Result<FencingToken, LatchError> {
        let contender = &self.contender;
        let mut state = contender.state.subscribe();
        loop {
            let now = state.borrow_and_update().clone();
            match (now, contender.leadership()) {
                (LeadershipState::Failed(error), _) => return Err(error.into()),
                (LeadershipState::Closed(_), _) => return Err(self.closed()),
                (_, Leadership::Leader { token }) => return Ok(token),
                (_, Leadership::Follower) => {}
            }
            if state.changed().await.is_err() {
                return Err(self.closed());
            }
        }
    }

    fn closed(&self) -> LatchError {
        LatchError::Closed {
            path: self.contender.queue.path.to_string(),
        }
    }

    /// Returns a stream of changes of leadership. If the latch leads now, that is the first change.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::{LeaderLatch, Leadership};
    /// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
    /// let mut changes = latch.changes();
    /// assert!(matches!(changes.next().await, Some(Leadership::Leader { .. })));
    /// latch.close().await?;
    /// assert_eq!(changes.next().await, Some(Leadership::Follower));
    /// assert_eq!(changes.next().await, None);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn changes(&self) -> LeadershipChanges {
        self.contender.changes()
    }

    /// Returns the path of the latch's znode, if it has one.
    #[must_use]
    pub fn own_path(&self) -> Option<String> {
        self.contender.own_path.lock().clone()
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
        participants(&self.queue, Claim::Latch).await
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

    /// Stops contending and waits until the latch's znode is deleted. The latch stops leading
    /// before the next contender leads. A znode whose creation is still unanswered is deleted too,
    /// but this call does not wait for that. Later calls return the same result.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`], [`Error::NotSent`] or [`Error::Refused`] when the deletion was
    /// not confirmed. The caller need not do anything: the znode is deleted with the next
    /// connection or at the end of the session. Without a server this returns when the session is
    /// over and no new session has begun within 5 s. [`Error::TaskEnded`] when the task of the latch
    /// had ended before: the latch no longer contends.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn close(&self) -> Result<(), Error> {
        self.close_with(self.close_mode).await
    }

    /// Like [`LeaderLatch::close`], with this mode instead of that of the options.
    ///
    /// # Cancel safety
    /// Same as [`LeaderLatch::close`].
    ///
    /// # Errors
    /// Those of [`LeaderLatch::close`].
    pub async fn close_with(&self, mode: CloseMode) -> Result<(), Error> {
        self.contender.set_close_mode(mode);
        self.closing.send_replace(true);
        let mut state = self.contender.state.subscribe();
        let end = state.wait_for(|state| {
            matches!(
                state,
                LeadershipState::Closed(_) | LeadershipState::Failed(_)
            )
        });
        let end = async {
            match end.await.as_deref() {
                Ok(LeadershipState::Closed(result)) => result.clone(),
                Ok(LeadershipState::Failed(LockError::Client(error @ Error::TaskEnded { .. }))) => {
                    Err(error.clone())
                }
                // It failed and left nothing behind.
                _ => Ok(()),
            }
        };
        let Queue { client, path, .. } = &self.queue;
        CallLimit::background(client, "close", path).run(end).await
    }
}

impl Drop for LeaderLatch {
    fn drop(&mut self) {
        if !*self.closing.borrow() {
            self.contender.set_close_mode(self.close_mode);
        }
    }
}
