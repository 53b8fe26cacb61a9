//! The persistent TTL node: a znode that lives as long as some process keeps it, across sessions.
//!
//! Source: Curator's `PersistentTtlNode`.

use std::{fmt, sync::Arc, time::Duration};

use minikeeper_client::{
    AfterTimeout, Client, CreateMode, CreateOptions, Error, ErrorCode, Fired, Stat, ZnodePath, Zxid,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    call_limit::CallLimit,
    client::reconnected,
    clock,
    error::LockError,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
        parents,
    },
    task::Task,
};

/// The options of a persistent TTL node.
///
/// # Examples
/// ```
/// use minikeeper_recipes::TtlNodeOptions;
///
/// let mut options = TtlNodeOptions::default();
/// options.touches_per_ttl = 4;
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TtlNodeOptions {
    /// The name of the child whose time to live keeps the znode.
    ///
    /// Default: `touch`, as in Curator.
    pub child_name: String,
    /// How often the child is touched in its time to live; 0 counts as 1. Touches are at least 1 ms
    /// apart.
    ///
    /// Default: 2, as in Curator.
    pub touches_per_ttl: u32,
}

impl Default for TtlNodeOptions {
    fn default() -> Self {
        Self {
            child_name: "touch".to_owned(),
            touches_per_ttl: 2,
        }
    }
}

/// A znode that exists while a process keeps it, and for a time after that, whatever happens to
/// sessions. Compatible with Curator's class of the same name in Java.
///
/// The znode is a container, and has a child with a time to live, which a background task touches.
/// When no process has touched the child for that time, the server deletes it, and then the
/// container. An ephemeral znode ends with its session; this one outlives restarts of its process
/// that are shorter than the time to live. Several processes may keep the same znode.
///
/// Servers need `extendedTypesEnabled=true`, ZooKeeper's setting for times to live. They look for
/// expired znodes every `znode.container.checkIntervalMs`, 60 s by default, so these live up to two
/// intervals longer.
///
/// Dropping this stops the touching and deletes nothing.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_recipes::PersistentTtlNode;
///
/// let ttl = Duration::from_secs(300);
/// let here = PersistentTtlNode::start(client.clone(), "/workers/7", b"10.0.0.7", ttl)?;
/// here.created().await?;
/// assert_eq!(client.get_data("/workers/7").await?.as_bytes(), b"10.0.0.7");
/// # Ok(()) });
/// ```
pub struct PersistentTtlNode {
    data: watch::Sender<Arc<[u8]>>,
    stage: watch::Receiver<TtlStage>,
    path: Box<str>,
    call_timeout: Duration,
    _task: Task,
}

#[derive(Clone, Debug)]
enum TtlStage {
    Missing,
    Present,
    Failed(LockError),
}

impl fmt::Debug for PersistentTtlNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentTtlNode")
            .field("stage", &*self.stage.borrow())
            .finish_non_exhaustive()
    }
}

impl PersistentTtlNode {
    /// Starts to keep a znode at this path.
    ///
    /// `ttl` is how long the znode outlives the last touch. Unit: whole milliseconds. Range:
    /// [`CreateOptions::TTL_MIN`] to [`CreateOptions::TTL_MAX`].
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::TimeToLive`] if `ttl` is out of range.
    /// [`Error::NoRuntime`] outside a tokio runtime.
    pub fn start(client: Client, path: &str, data: &[u8], ttl: Duration) -> Result<Self, Error> {
        Self::start_with(client, path, data, ttl, TtlNodeOptions::default())
    }

    /// Like [`PersistentTtlNode::start`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if the path or the child's name is invalid, [`Error::TimeToLive`] if `ttl` is
    /// out of range. [`Error::NoRuntime`] outside a tokio runtime.
    pub fn start_with(
        client: Client,
        path: &str,
        data: &[u8],
        ttl: Duration,
        options: TtlNodeOptions,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        // With a slash it would be a path below the znode: doubled, that is refused.
        let child = naming::join(path, &options.child_name.replace('/', "//"));
        ZnodePath::new(child.as_str())?;
        if !(CreateOptions::TTL_MIN..=CreateOptions::TTL_MAX).contains(&ttl) {
            return Err(Error::TimeToLive { path: child, ttl });
        }
        let (data, wanted) = watch::channel(Arc::from(data));
        let (stage, stages) = watch::channel(TtlStage::Missing);
        let pace = Pace::of(&client);
        let call_timeout = client.call_timeout();
        let mut task = TtlNodeTask {
            // The limit of a handle is that of its calls, not of the task.
            queue: Queue::new(
                "PersistentTtlNode",
                client.without_timeout(),
                path,
                LockOptions::default(),
            ),
            child,
            ttl,
            pause: (ttl / options.touches_per_ttl.max(1)).max(CreateOptions::TTL_MIN),
            data: wanted,
            set: None,
            seen: Zxid(0),
            pace,
        };
        let of_task = stage.clone();
        let run = async move {
            let error = task.keep(&stage).await;
            stage.send_replace(TtlStage::Failed(error));
        };
        let ended = move |error: Error| {
            of_task.send_replace(TtlStage::Failed(error.into()));
        };
        Ok(Self {
            data,
            stage: stages,
            path: path.into(),
            call_timeout,
            _task: Task::spawn("persistent TTL node", run, ended)?,
        })
    }

    /// Waits until the znode and its child exist.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses, for example with `UNIMPLEMENTED` if it has no
    /// times to live, or the client is closed, or the task has ended for another reason
    /// ([`Error::TaskEnded`]). Start another one.
    /// [`LockError::Client`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn created(&self) -> Result<(), LockError> {
        let mut stage = self.stage.clone();
        let there = stage.wait_for(|stage| !matches!(stage, TtlStage::Missing));
        let created = async {
            match there.await.as_deref() {
                Ok(TtlStage::Failed(error)) => Err(error.clone()),
                _ => Ok(()),
            }
        };
        let then = AfterTimeout::Continues;
        CallLimit::of(self.call_timeout, "created", &self.path, then)
            .run(created)
            .await
    }

    /// Returns whether the znode is known to exist.
    #[must_use]
    pub fn is_present(&self) -> bool {
        matches!(&*self.stage.borrow(), TtlStage::Present)
    }

    /// Sets the data of the znode, now and whenever this creates it again. What another client sets
    /// later stays. Does not wait.
    pub fn set_data(&self, data: &[u8]) {
        self.data.send_replace(data.into());
    }
}

/// The task that keeps the znode.
struct TtlNodeTask {
    queue: Queue,
    child: String,
    ttl: Duration,
    pause: Duration,
    data: watch::Receiver<Arc<[u8]>>,
    /// The data that this task has set.
    set: Option<Arc<[u8]>>,
    /// The latest mzxid of the znode.
    seen: Zxid,
    pace: Pace,
}

/// Why a wait for the next touch has ended.
enum Ended {
    Due,
    Deleted,
    Session,
}

impl TtlNodeTask {
    /// Keeps the znode until an error that a retry cannot help.
    async fn keep(&mut self, stage: &watch::Sender<TtlStage>) -> LockError {
        loop {
            let kept = match self.queue.connected(Wait::FOR_EVER).await {
                Ok(_) => self.keep_once(stage).await,
                Err(error) => return error,
            };
            stage.send_replace(TtlStage::Missing);
            match kept {
                Ok(()) => {}
                Err(error) if error.is_retryable() => self.pace.after(&error).await,
                // An ephemeral znode of another client is in the way, until it is deleted.
                Err(error) if error.is(ErrorCode::NoChildrenForEphemerals) => {
                    self.pace.pause().await;
                }
                Err(error) => return error.into(),
            }
        }
    }

    /// Creates what is missing and touches the child, until the session is over or a request fails.
    async fn keep_once(&mut self, stage: &watch::Sender<TtlStage>) -> Result<(), Error> {
        loop {
            let touched_at = clock::now();
            if !(self.put().await? && self.touch().await?) {
                // It was deleted in between.
                self.pace.pause().await;
                continue;
            }
            match self.watch_until(touched_at + self.pause, stage).await? {
                Ended::Due => self.pace.reset(),
                Ended::Deleted => {
                    // Pause, so as not to race the client that deletes it.
                    stage.send_replace(TtlStage::Missing);
                    self.pace.pause().await;
                }
                Ended::Session => return Ok(()),
            }
        }
    }

    /// Creates the znode if it is missing, and sets its data if that is due; false if the caller must
    /// retry.
    ///
    /// What another client wrote stays: with another task on the same znode, each would replace the
    /// other's data for ever.
    async fn put(&mut self) -> Result<bool, Error> {
        let Queue { client, path, .. } = &self.queue;
        let data = Arc::clone(&self.data.borrow_and_update());
        let is_set = self.set.as_ref().is_some_and(|set| Arc::ptr_eq(set, &data));
        loop {
            match client.create(path, &data, CreateMode::Container).await {
                Ok(_) => break,
                Err(error) if error.is(ErrorCode::NodeExists) => {
                    if is_set {
                        break;
                    }
                    let there = client.get_data(path).await?;
                    let is_foreign = there.stat.ephemeral_owner.0 != 0;
                    if is_foreign || there.as_bytes() == &data[..] {
                        break;
                    }
                    client.set_data(path, &data, None).await?;
                    break;
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    if parents::make(client, naming::parent_of(path)).await?
                        == parents::Made::Interrupted
                    {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.set = Some(data);
        Ok(true)
    }

    /// Waits until the next touch is due or the data was set, while the znode exists.
    async fn watch_until(
        &mut self,
        due: Instant,
        stage: &watch::Sender<TtlStage>,
    ) -> Result<Ended, Error> {
        let Queue { client, path, .. } = &self.queue;
        loop {
            let connections = client.connections();
            let (there, mut watch) = client.exists_and_watch(path).await?;
            let Some(Stat { mzxid, .. }) = there else {
                return Ok(Ended::Deleted);
            };
            if std::mem::replace(&mut self.seen, mzxid) > mzxid {
                // An older state of the server, which may not have the data.
                self.set = None;
                return Ok(Ended::Due);
            }
            stage.send_replace(TtlStage::Present);
            tokio::select! {
                () = sleep_until(due) => return Ok(Ended::Due),
                // If the owner was dropped, so was this task.
                _ = self.data.changed() => return Ok(Ended::Due),
                fired = &mut watch => match fired {
                    Fired::Event { .. } if fired.is_deleted() => return Ok(Ended::Deleted),
                    // Its data was set.
                    Fired::Event { .. } => {}
                    _ => return Ok(Ended::Session),
                },
                () = reconnected(client, connections) => {}
            }
        }
    }

    /// Creates or touches the child; false if its parent is missing.
    async fn touch(&self) -> Result<bool, Error> {
        let client = &self.queue.client;
        let mode = CreateOptions::new(CreateMode::PersistentWithTtl).ttl(self.ttl);
        // The server counts from the latest change.
        let touched = match client.set_data(&self.child, b"", None).await {
            Err(error) if error.is(ErrorCode::NoNode) => {
                client.create(&self.child, b"", mode).await.map(drop)
            }
            touched => touched.map(drop),
        };
        match touched {
            Ok(()) => Ok(true),
            // Another process has created it.
            Err(error) if error.is(ErrorCode::NodeExists) => Ok(true),
            Err(error) if error.is(ErrorCode::NoNode) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
