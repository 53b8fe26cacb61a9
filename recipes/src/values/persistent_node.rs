//! The persistent node: a znode that is created again when it is deleted, and in a new session.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `PersistentNode`.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use minikeeper_client::{
    AfterTimeout, Client, CreateMode, Error, ErrorCode, Multi, SessionId, Stat, ZnodePath, Zxid,
};
use tokio::sync::watch;

use crate::{
    call_limit::CallLimit,
    client::{new_id, reconnected},
    error::LockError,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait, in_session, no_session},
        naming,
        pace::Pace,
        parents,
    },
    task::spawn,
};

/// A znode that is created again when another client deletes it and, if it is ephemeral, in every
/// new session. It works like Curator's class of the same name, with any create mode.
///
/// - A sequential znode has a protection prefix, and keeps its first name.
/// - If another client has an ephemeral znode of this name, this one is created once that one is
///   gone.
/// - If a persistent znode of this name exists, it is taken over and its data replaced.
///
/// A background task keeps the znode. Dropping the `PersistentNode` ends the task, which first
/// deletes the znode, whatever its mode, as soon as there is a connection.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, CreateMode};
/// use minikeeper_recipes::PersistentNode;
///
/// let client = Client::connect(&address).await?;
/// let here = PersistentNode::start(client, "/workers/7", b"10.0.0.7", CreateMode::Ephemeral)?;
/// assert_eq!(here.created().await?.as_deref(), Some("/workers/7"));
/// here.set_data(b"10.0.0.8");
/// here.close().await?;
/// # Ok(()) });
/// ```
pub struct PersistentNode {
    orders: watch::Sender<NodeOrders>,
    stage: watch::Receiver<NodeStage>,
    /// The path that the caller gave, for messages.
    asked_path: Box<str>,
    call_timeout: Duration,
}

#[derive(Clone, Default, Debug)]
struct NodeOrders {
    is_closing: bool,
    /// How often the data was set.
    revision: u64,
    data: Arc<[u8]>,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeStage {
    Missing,
    /// Another session has an ephemeral znode of this name.
    Taken(SessionId),
    Present {
        path: String,
        /// The number of the change of data that the znode has.
        revision: u64,
    },
    Ended(Result<(), LockError>),
}

impl fmt::Debug for PersistentNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentNode")
            .field("stage", &*self.stage.borrow())
            .finish_non_exhaustive()
    }
}

impl PersistentNode {
    /// Starts to keep a znode at this path. Servers refuse modes with a time to live.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid. [`Error::NoRuntime`] outside a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_client::CreateMode;
    /// use minikeeper_recipes::PersistentNode;
    ///
    /// let mode = CreateMode::Ephemeral;
    /// let here = PersistentNode::start(client.clone(), "/workers/7", b"10.0.0.7", mode)?;
    /// here.created().await?;
    /// // An operator deletes it: it is created again.
    /// client.delete("/workers/7", None).await?;
    /// while client.exists("/workers/7").await?.is_none() {
    ///     tokio::task::yield_now().await;
    /// }
    /// # Ok(()) });
    /// ```
    pub fn start(client: Client, path: &str, data: &[u8], mode: CreateMode) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let orders = watch::Sender::new(NodeOrders {
            is_closing: false,
            revision: 0,
            data: data.into(),
        });
        let (stage, stages) = watch::channel(NodeStage::Missing);
        let pace = Pace::of(&client);
        let call_timeout = client.call_timeout();
        let task = NodeTask {
            // The limit of a handle is that of its calls, not of the task.
            queue: Queue::new(
                "PersistentNode",
                client.without_timeout(),
                path,
                LockOptions::default(),
            ),
            mode,
            orders: orders.subscribe(),
            own: None,
            is_unanswered: false,
            pace,
        };
        // Dropping this does not abort the task: it sees the order to close, or that the sender was
        // dropped.
        let run = Box::pin(task.run(stage.clone()));
        let ended = move |error: Error| {
            stage.send_replace(NodeStage::Ended(Err(error.into())));
        };
        drop(spawn("persistent node", run, Box::new(ended))?);
        Ok(Self {
            orders,
            stage: stages,
            asked_path: path.into(),
            call_timeout,
        })
    }

    /// Returns the path of the znode while it is known to exist.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        match &*self.stage.borrow() {
            NodeStage::Present { path, .. } => Some(path.clone()),
            _ => None,
        }
    }

    /// Returns the session that has an ephemeral znode of this name, for whose end this waits;
    /// [`SessionId::NONE`] if the znode is persistent, and this keeps an ephemeral one. `None` if there
    /// is no such znode.
    #[must_use]
    pub fn taken_by(&self) -> Option<SessionId> {
        match *self.stage.borrow() {
            NodeStage::Taken(owner) => Some(owner),
            _ => None,
        }
    }

    /// Waits until another session has a znode of this name, and returns what
    /// [`PersistentNode::taken_by`] does; `None` if this has ended.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn taken(&self) -> Option<SessionId> {
        let mut stage = self.stage.clone();
        let taken =
            stage.wait_for(|stage| matches!(stage, NodeStage::Taken(_) | NodeStage::Ended(_)));
        match taken.await.as_deref() {
            Ok(NodeStage::Taken(owner)) => Some(*owner),
            _ => None,
        }
    }

    /// Waits until the znode exists and returns its path; `None` if this was closed.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed, or the task has ended for
    /// another reason ([`Error::TaskEnded`]). Start another one.
    /// [`LockError::Client`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn created(&self) -> Result<Option<String>, LockError> {
        self.reached("created", |stage| {
            !matches!(stage, NodeStage::Missing | NodeStage::Taken(_))
        })
        .await
    }

    /// Waits until the znode exists and has the data that was set last, and returns its path; `None`
    /// if this was closed.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// Those of [`PersistentNode::created`].
    pub async fn updated(&self) -> Result<Option<String>, LockError> {
        let wanted = self.orders.borrow().revision;
        self.reached("updated", |stage| match stage {
            NodeStage::Missing | NodeStage::Taken(_) => false,
            // It is larger if a later call has set the data too.
            NodeStage::Present { revision, .. } => *revision >= wanted,
            NodeStage::Ended(_) => true,
        })
        .await
    }

    async fn reached(
        &self,
        call: &'static str,
        is_reached: impl FnMut(&NodeStage) -> bool,
    ) -> Result<Option<String>, LockError> {
        let mut stage = self.stage.clone();
        let there = stage.wait_for(is_reached);
        let reached = async {
            match there.await.as_deref() {
                Ok(NodeStage::Present { path, .. }) => Ok(Some(path.clone())),
                Ok(NodeStage::Ended(Err(error))) => Err(error.clone()),
                _ => Ok(None),
            }
        };
        self.limit(call).run(reached).await
    }

    /// Waits until the znode exists. Returns the session that has one of this name, if it is another.
    /// A later call with the same receiver waits for the next change.
    #[cfg(feature = "discovery")]
    pub(crate) async fn settled(
        stage: &mut watch::Receiver<NodeStage>,
    ) -> Result<Option<SessionId>, LockError> {
        loop {
            match &*stage.borrow_and_update() {
                NodeStage::Missing => {}
                NodeStage::Taken(owner) => return Ok(Some(*owner)),
                NodeStage::Ended(Err(error)) => return Err(error.clone()),
                NodeStage::Present { .. } | NodeStage::Ended(Ok(())) => return Ok(None),
            }
            // Its task reports how it ends.
            if stage.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Returns what [`PersistentNode::settled`] follows.
    #[cfg(feature = "discovery")]
    pub(crate) fn stages(&self) -> watch::Receiver<NodeStage> {
        self.stage.clone()
    }

    /// Sets the data of the znode, now and whenever it is created again. What another client sets
    /// later stays. Does not wait.
    pub fn set_data(&self, data: &[u8]) {
        self.orders.send_modify(|orders| {
            orders.revision += 1;
            orders.data = data.into();
        });
    }

    /// Deletes the znode, whatever its mode, and waits until it is deleted. Waits for a connection.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. A persistent znode then
    /// remains.
    /// [`LockError::Client`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn close(&self) -> Result<(), LockError> {
        self.orders.send_modify(|orders| orders.is_closing = true);
        let mut stage = self.stage.clone();
        let end = stage.wait_for(|stage| matches!(stage, NodeStage::Ended(_)));
        let end = async {
            match end.await.as_deref() {
                Ok(NodeStage::Ended(result)) => result.clone(),
                _ => Ok(()),
            }
        };
        self.limit("close").run(end).await
    }

    /// Returns a future that ends with the background task.
    #[cfg(feature = "blocking")]
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stage = self.stage.clone();
        async move {
            let _ = stage
                .wait_for(|stage| matches!(stage, NodeStage::Ended(_)))
                .await;
        }
    }

    fn limit(&self, call: &'static str) -> CallLimit<'_> {
        CallLimit::of(
            self.call_timeout,
            call,
            &self.asked_path,
            AfterTimeout::Continues,
        )
    }
}

/// The task that keeps the znode.
struct NodeTask {
    queue: Queue,
    mode: CreateMode,
    orders: watch::Receiver<NodeOrders>,
    /// The znode's path, once it is known, and the czxid of the znode that this task created there.
    own: Option<(String, Option<Zxid>)>,
    /// Whether the reply to a creation was lost and the znode has not been read since.
    is_unanswered: bool,
    pace: Pace,
}

impl NodeTask {
    async fn run(mut self, stage: watch::Sender<NodeStage>) {
        let kept = self.keep(&stage).await;
        stage.send_replace(NodeStage::Missing);
        let end = match kept {
            Ok(()) => self.remove().await,
            Err(error) => {
                // An ephemeral znode must not outlive its task. The caller gets the first error.
                if self.is_ephemeral() {
                    let _ = self.remove().await;
                }
                Err(error)
            }
        };
        stage.send_replace(NodeStage::Ended(end));
    }

    fn is_closing(&self) -> bool {
        self.orders.borrow().is_closing || self.orders.has_changed().is_err()
    }

    const fn is_ephemeral(&self) -> bool {
        matches!(
            self.mode,
            CreateMode::Ephemeral | CreateMode::EphemeralSequential
        )
    }

    /// Returns the mode for creating the znode under its known name.
    const fn mode_again(&self) -> CreateMode {
        match self.mode {
            CreateMode::EphemeralSequential => CreateMode::Ephemeral,
            CreateMode::PersistentSequential => CreateMode::Persistent,
            other => other,
        }
    }

    /// Keeps the znode until it is closed.
    async fn keep(&mut self, stage: &watch::Sender<NodeStage>) -> Result<(), LockError> {
        let mut prefix = None;
        if !self.mode.is_sequential() {
            self.own = Some((self.queue.path.to_string(), None));
        }
        let mut orders = self.orders.clone();
        while !self.is_closing() {
            let queue = &self.queue;
            tokio::select! {
                biased;
                _ = orders.wait_for(|orders| orders.is_closing) => return Ok(()),
                connected = queue.connected(Wait::FOR_EVER) => drop(connected?),
            }
            // Not before the first session, which makes it unique.
            let new = || naming::protection(new_id(&self.queue.client));
            let prefix: &str = prefix.get_or_insert_with(new);
            let kept = match self.create(prefix).await {
                Ok(true) => self.watch(stage).await,
                other => other.map(drop),
            };
            stage.send_replace(NodeStage::Missing);
            let is_refused = match kept {
                Ok(()) => false,
                Err(error) if !error.is_passing() => return Err(error),
                Err(LockError::Client(error)) => error.code().is_some(),
                Err(_) => true,
            };
            if is_refused {
                tokio::select! {
                    biased;
                    _ = orders.wait_for(|orders| orders.is_closing) => return Ok(()),
                    () = self.pace.pause() => {}
                }
            }
        }
        Ok(())
    }

    /// Creates the znode. True if a znode of this name exists now, false if the caller must retry.
    async fn create(&mut self, prefix: &str) -> Result<bool, LockError> {
        let Queue { client, path, .. } = &self.queue;
        let directory = naming::parent_of(path);
        let data = Arc::clone(&self.orders.borrow().data);
        let (made_as, mode) = match &self.own {
            Some((own, _)) => (own.clone(), self.mode_again()),
            None => {
                let name = format!("{prefix}{}", naming::name_of(path));
                (naming::join(directory, &name), self.mode)
            }
        };
        match client.create(&made_as, &data, mode).await {
            Ok(created) => {
                self.own = Some((created.path, Some(created.stat.czxid)));
                Ok(true)
            }
            // A sequential name cannot exist already. If a server says so, that is an error.
            Err(error) if error.is(ErrorCode::NodeExists) && self.own.is_some() => Ok(true),
            Err(error) if error.is(ErrorCode::NoNode) => {
                if parents::make(client, directory).await? == parents::Made::Interrupted {
                    self.pace.pause().await;
                }
                Ok(false)
            }
            Err(error) => {
                if error.is_retryable() && error.is_outcome_unknown() {
                    self.is_unanswered = true;
                    if self.own.is_none() {
                        self.find(prefix).await?;
                    }
                }
                Err(error.into())
            }
        }
    }

    /// Looks for the znode after a lost reply, and records its name if it was created.
    async fn find(&mut self, prefix: &str) -> Result<(), LockError> {
        let Queue { client, path, .. } = &self.queue;
        let directory = naming::parent_of(path);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            let (sync, list) = (client.sync(directory), client.children(directory));
            let both = async {
                sync.await?;
                list.await
            };
            match both.await {
                Ok(list) => {
                    let found = list.names().find(|name| name.starts_with(prefix));
                    self.own = found.map(|name| (naming::join(directory, &name), None));
                    return Ok(());
                }
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) if error.is_retryable() => self.pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether a znode of the right name belongs to this client, or may be taken over.
    fn is_own(&self, stat: &Stat) -> bool {
        if self.is_ephemeral() {
            Some(stat.ephemeral_owner) == self.queue.client.session_id()
        } else {
            stat.ephemeral_owner.0 == 0
        }
    }

    /// Watches the existing znode until it is deleted or this is closed.
    async fn watch(&mut self, stage: &watch::Sender<NodeStage>) -> Result<(), LockError> {
        // The number of the change of data that the znode has had, and the mzxid that was seen last.
        let mut held: Option<(u64, Zxid)> = None;
        while let Some((path, created)) = self.own.clone() {
            let client = &self.queue.client;
            let connections = client.connections();
            let (seen, mut watch) = match client.get_data_and_watch(&path).await {
                Ok(read) => read,
                Err(error) if error.is(ErrorCode::NoNode) => {
                    // It was deleted at once: pause, so as not to race the client that deletes it.
                    self.pace.pause().await;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let is_own = self.is_own(&seen.stat);
            if is_own {
                self.is_unanswered = false;
                self.own = Some((path.clone(), Some(seen.stat.czxid)));
                let NodeOrders { data, revision, .. } = self.orders.borrow_and_update().clone();
                // What another client sets later stays. An earlier mzxid is of an older state of the
                // server, which may not have the data.
                let is_later = |(set, mzxid)| set == revision && mzxid <= seen.stat.mzxid;
                let is_set = held.is_some_and(is_later) || *seen.as_bytes() == *data;
                if !is_set {
                    match client.set_data(&path, &data, None).await {
                        Ok(_) => {}
                        Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                        Err(error) => return Err(error.into()),
                    }
                }
                self.pace.reset();
                held = Some((revision, seen.stat.mzxid));
                let path = path.clone();
                stage.send_replace(NodeStage::Present { path, revision });
            } else if created == Some(seen.stat.czxid) {
                // This task's znode of an ended session.
                match client.multi(Multi::new().delete(&path, None)).await {
                    Err(error) if !error.is(ErrorCode::NoNode) => return Err(error.into()),
                    _ => return Ok(()),
                }
            } else {
                stage.send_replace(NodeStage::Taken(seen.stat.ephemeral_owner));
            }
            if self.is_closing() {
                return Ok(());
            }
            let fired = poll_fn(|cx| Pin::new(&mut watch).poll(cx));
            tokio::select! {
                biased;
                fired = fired => {
                    let is_kept = matches!(fired, minikeeper_client::Fired::Event { .. });
                    if !is_kept || fired.is_deleted() {
                        return Ok(());
                    }
                }
                changed = self.orders.changed() => if changed.is_err() {
                    return Ok(());
                },
                () = reconnected(client, connections) => {}
            }
            if self.is_closing() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Deletes the znode if it is this task's own.
    async fn remove(&mut self) -> Result<(), LockError> {
        let Some((path, created)) = self.own.clone() else {
            return Ok(());
        };
        let client = self.queue.client.clone();
        match in_session(&client, self.remove_at(&path, created)).await {
            Some(removed) => removed,
            // An ephemeral znode ends with its session.
            None if self.is_ephemeral() => Ok(()),
            None => Err(no_session("delete", &path).into()),
        }
    }

    async fn remove_at(&mut self, path: &str, created: Option<Zxid>) -> Result<(), LockError> {
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            let client = &self.queue.client;
            let deleted = match client.exists(path).await {
                Ok(seen) => match seen {
                    Some(stat) if self.is_due(created, &stat) => {
                        client.multi(Multi::new().delete(path, None)).await
                    }
                    _ => return Ok(()),
                },
                Err(error) => Err(error),
            };
            match deleted {
                Ok(_) => return Ok(()),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) if error.is_retryable() => self.pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether a znode is this task's own and must be deleted.
    fn is_due(&self, created: Option<Zxid>, stat: &Stat) -> bool {
        match created {
            Some(created) if !self.is_unanswered => stat.czxid == created,
            _ => self.is_unanswered && self.is_own(stat),
        }
    }
}
