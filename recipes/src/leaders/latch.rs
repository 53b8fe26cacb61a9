//! The leader latch: a contender for leadership that goes about it by itself.
//!
//! Source: `docs/curator-recipes.md` section 17; hazards H5, H29, H39 and H42; Curator's
//! `LeaderLatch`.

use std::{fmt, sync::Arc};

use minikeeper_client::{Error, ZnodePath};
use tokio::sync::watch;

use crate::{
    client::ZooKeeper,
    error::LockError,
    leaders::{
        Participant, Task,
        leadership::{Contender, ErrorPolicy, Leadership, LeadershipChanges, LeadershipState},
        participants,
    },
    options::LockOptions,
    queue::{contending::Queue, order::Claim},
    status::FencingToken,
};

/// How a latch goes about its work.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{ErrorPolicy, LatchOptions, LeaderLatch};
///
/// let mut options = LatchOptions::default();
/// options.error_policy = ErrorPolicy::Session;
/// let latch = LeaderLatch::start_with(client, "/leaders/billing", "host 7", options)?;
/// latch.wait().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LatchOptions {
    /// What a leader does without a connection.
    ///
    /// Default: [`ErrorPolicy::Standard`].
    pub error_policy: ErrorPolicy,
    /// Which savings are made while waiting. The data is replaced by the id.
    ///
    /// Default: that of [`LockOptions`].
    pub lock: LockOptions,
}

/// Why a latch does not contend any more.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_recipes::{LatchError, LeaderLatch};
/// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
/// latch.close().await?;
/// match latch.wait().await {
///     Err(LatchError::Closed { path }) => assert_eq!(path, "/leaders/billing"),
///     other => panic!("it was closed, so not {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LatchError {
    /// It was closed.
    #[error("leader latch {path:?}: closed")]
    Closed {
        /// The latch.
        path: String,
    },
    /// It could not go on.
    #[error(transparent)]
    Failed(#[from] LockError),
}

/// A contender for leadership at a path, Java processes with Curator's class of the same name
/// included: the one that came first leads, until it is closed or its session ends.
///
/// It contends from its start on by a task of its own, in every session anew. Dropping it gives
/// its place up without waiting.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
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
/// # Ok(()) }
/// ```
pub struct LeaderLatch<C: ZooKeeper> {
    contender: Arc<Contender<C>>,
    closing: watch::Sender<bool>,
    _task: Task,
}

impl<C: ZooKeeper> fmt::Debug for LeaderLatch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderLatch")
            .field("path", &self.contender.queue.path)
            .field("leadership", &self.leadership())
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> LeaderLatch<C> {
    /// Contends for leadership at this path from now on, under this id, which others may read and
    /// which may be empty.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which. [`Error::NoRuntime`] outside a
    /// tokio runtime.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::LeaderLatch;
    ///
    /// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
    /// // It contends from now on; nothing has to be awaited for that.
    /// println!("leading already: {}", latch.has_leadership());
    /// # Ok(()) }
    /// ```
    pub fn start(client: C, path: &str, id: &str) -> Result<Self, Error> {
        Self::start_with(client, path, id, LatchOptions::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which. [`Error::NoRuntime`] outside a
    /// tokio runtime.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::{ErrorPolicy, LatchOptions, LeaderLatch};
    ///
    /// let mut options = LatchOptions::default();
    /// options.error_policy = ErrorPolicy::Session;
    /// let latch = LeaderLatch::start_with(client, "/leaders/billing", "host 7", options)?;
    /// latch.wait().await?;
    /// # Ok(()) }
    /// ```
    pub fn start_with(
        client: C,
        path: &str,
        id: &str,
        options: LatchOptions,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let queue = Queue {
            client,
            path: path.into(),
            options: Arc::new(options.lock.with_data(id)),
        };
        let contender = Arc::new(Contender::new(queue, options.error_policy));
        let closing = watch::Sender::new(false);
        let run = Arc::clone(&contender).run(closing.subscribe());
        let task = Task::spawn("leader latch", run)?;
        Ok(Self {
            contender,
            closing,
            _task: task,
        })
    }

    /// Whether it leads. Asks nobody: it compares what is known with the time, so that a process
    /// that was paused sees the loss at its first look.
    #[must_use]
    pub fn has_leadership(&self) -> bool {
        matches!(self.leadership(), Leadership::Leader { .. })
    }

    /// The same, with the token.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.contender.leadership()
    }

    /// Waits until it leads. Dropping the future changes nothing: it contends on.
    ///
    /// # Errors
    /// [`LatchError::Closed`] when the latch was closed, [`LatchError::Failed`] when the client is
    /// closed or a server refuses for a reason that does not pass, such as `NOAUTH`. It does not
    /// contend any more then: start another one. Lost connections, lost sessions and refusals for
    /// which [`Error::is_retryable`] is true are no errors: it contends on, at a slower pace as
    /// long as it is refused.
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

    /// Every change of the leadership, beginning with what it is if that is to lead.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{LeaderLatch, Leadership};
    /// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
    /// let mut changes = latch.changes();
    /// assert!(matches!(changes.next().await, Some(Leadership::Leader { .. })));
    /// latch.close().await?;
    /// assert_eq!(changes.next().await, Some(Leadership::Follower));
    /// assert_eq!(changes.next().await, None);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn changes(&self) -> LeadershipChanges {
        self.contender.changes()
    }

    /// The path of its own znode, if it has one.
    #[must_use]
    pub fn own_path(&self) -> Option<String> {
        self.contender.own_path.lock().clone()
    }

    /// Every contender there is, the leader first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        participants(&self.contender.queue, Claim::Latch).await
    }

    /// Who leads, if there is somebody.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    pub async fn leader(&self) -> Result<Option<Participant>, Error> {
        Ok(self.participants().await?.into_iter().next())
    }

    /// Stops contending, and waits until the znode is gone. It does not lead any more when the
    /// next one begins to. A creation that is not answered yet is taken back too, but that is not
    /// waited for.
    ///
    /// Dropping the future changes nothing: it is closed all the same. Closing again gives the
    /// same result.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`], [`Error::NotSent`] or [`Error::Refused`] when it is not certain
    /// that the znode is gone: nothing is to be done, it will be, with the next connection or with
    /// the session's end. Without a server that is known when the session is over, and no new one
    /// has come within 5 s.
    pub async fn close(&self) -> Result<(), Error> {
        self.closing.send_replace(true);
        let mut state = self.contender.state.subscribe();
        let end = state.wait_for(|state| {
            matches!(
                state,
                LeadershipState::Closed(_) | LeadershipState::Failed(_)
            )
        });
        match end.await.as_deref() {
            Ok(LeadershipState::Closed(result)) => result.clone(),
            // Nothing was left behind then, or its runtime is shutting down.
            _ => Ok(()),
        }
    }
}
