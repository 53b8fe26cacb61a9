//! A znode that comes back: when it is deleted, and in a new session.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `PersistentNode`.

use std::{
    fmt,
    future::{Future as _, poll_fn},
    pin::Pin,
    sync::Arc,
};

use minikeeper_client::{CreateMode, Error, ErrorCode, Multi, Stat, ZnodePath, Zxid};
use tokio::sync::watch;

use crate::{
    client::ZooKeeper,
    error::LockError,
    leaders::runtime,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait, in_session, no_session},
        naming,
        pace::Pace,
        parents,
    },
};

/// A znode of any mode that is kept there, as Curator's class of the same name does: it is created
/// again when somebody deletes it, and, if it is ephemeral, in every new session.
///
/// A sequential one has a protection prefix, and keeps the name that it got first. If another has
/// created an ephemeral one of the same name, it is taken over when that goes. A persistent one
/// that is there already is taken over with the data given.
///
/// It is kept by a task of its own. Dropping this ends it: the task deletes the znode, whatever
/// its mode, as soon as there is a connection.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, CreateMode};
/// use minikeeper_recipes::PersistentNode;
///
/// let client = Client::connect(&address).await?;
/// let here = PersistentNode::start(client, "/workers/7", b"10.0.0.7", CreateMode::Ephemeral)?;
/// assert_eq!(here.created().await?.as_deref(), Some("/workers/7"));
/// here.set_data(b"10.0.0.8");
/// here.close().await?;
/// # Ok(()) }
/// ```
pub struct PersistentNode {
    orders: watch::Sender<NodeOrders>,
    stage: watch::Receiver<NodeStage>,
}

#[derive(Clone, Default, Debug)]
struct NodeOrders {
    is_closing: bool,
    data: Arc<[u8]>,
}

#[derive(Clone, Debug)]
enum NodeStage {
    Missing,
    Present { path: String },
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
    /// Keeps a znode at this path from now on. To be called within a tokio runtime. Modes with a
    /// time to live are refused by servers.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_client::CreateMode;
    /// use minikeeper_recipes::PersistentNode;
    ///
    /// let mode = CreateMode::Ephemeral;
    /// let here = PersistentNode::start(client.clone(), "/workers/7", b"10.0.0.7", mode)?;
    /// here.created().await?;
    /// // Somebody deletes it by hand: it comes back.
    /// client.delete("/workers/7", None).await?;
    /// while client.exists("/workers/7").await?.is_none() {
    ///     tokio::task::yield_now().await;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn start<C: ZooKeeper>(
        client: C,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let orders = watch::Sender::new(NodeOrders {
            is_closing: false,
            data: data.into(),
        });
        let (stage, stages) = watch::channel(NodeStage::Missing);
        let pace = Pace::of(&client);
        let keeper = Keeper {
            queue: Queue {
                client,
                path: path.into(),
                options: Arc::new(LockOptions::default()),
            },
            mode,
            orders: orders.subscribe(),
            own: None,
            is_unanswered: false,
            pace,
        };
        // Not ended with this: it sees the order to close, or that nobody can give one any more.
        drop(runtime("persistent node")?.spawn(keeper.run(stage)));
        Ok(Self {
            orders,
            stage: stages,
        })
    }

    /// The path of the znode, while it is known to be there.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        match &*self.stage.borrow() {
            NodeStage::Present { path } => Some(path.clone()),
            _ => None,
        }
    }

    /// Waits until the znode is there; gives its path, or `None` if this was closed.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed: the znode is not kept
    /// any more then, start another one.
    pub async fn created(&self) -> Result<Option<String>, LockError> {
        let mut stage = self.stage.clone();
        let there = stage.wait_for(|stage| !matches!(stage, NodeStage::Missing));
        match there.await.as_deref() {
            Ok(NodeStage::Present { path }) => Ok(Some(path.clone())),
            Ok(NodeStage::Ended(Err(error))) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    /// What the znode is to hold from now on.
    pub fn set_data(&self, data: &[u8]) {
        self.orders.send_modify(|orders| orders.data = data.into());
    }

    /// Deletes the znode, whatever its mode, and waits for that, and for a connection if there is
    /// none.
    ///
    /// Dropping the future changes nothing: it is closed all the same.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed: a persistent znode
    /// stays then.
    pub async fn close(&self) -> Result<(), LockError> {
        self.orders.send_modify(|orders| orders.is_closing = true);
        let mut stage = self.stage.clone();
        let end = stage.wait_for(|stage| matches!(stage, NodeStage::Ended(_)));
        match end.await.as_deref() {
            Ok(NodeStage::Ended(result)) => result.clone(),
            _ => Ok(()),
        }
    }
}

/// The task.
struct Keeper<C: ZooKeeper> {
    queue: Queue<C>,
    mode: CreateMode,
    orders: watch::Receiver<NodeOrders>,
    /// The znode's path, once it is fixed, and which one of that name is the own.
    own: Option<(String, Option<Zxid>)>,
    /// Whether a creation was not answered, and nobody has looked since.
    is_unanswered: bool,
    pace: Pace,
}

impl<C: ZooKeeper> Keeper<C> {
    async fn run(mut self, stage: watch::Sender<NodeStage>) {
        let kept = self.keep(&stage).await;
        stage.send_replace(NodeStage::Missing);
        let end = match kept {
            Ok(()) => self.remove().await,
            Err(error) => {
                // An ephemeral znode says that somebody keeps it. The first error is what its owner
                // has to know.
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

    /// The mode of a znode whose name is known.
    const fn mode_again(&self) -> CreateMode {
        match self.mode {
            CreateMode::EphemeralSequential => CreateMode::Ephemeral,
            CreateMode::PersistentSequential => CreateMode::Persistent,
            other => other,
        }
    }

    /// Keeps the znode there until it is to be closed.
    async fn keep(&mut self, stage: &watch::Sender<NodeStage>) -> Result<(), LockError> {
        let prefix = naming::protection(self.queue.client.new_id());
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
            let kept = match self.create(&prefix).await {
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

    /// Creates the znode; false if that has to be tried again. True says that one of its name is
    /// there.
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
        match client.create(&made_as, &data, mode, false).await {
            Ok(created) => {
                let created = created.value;
                self.own = Some((created.path, Some(created.stat.czxid)));
                Ok(true)
            }
            // No sequential name can be there already: a server that says so is not asked again.
            Err(error) if error.is(ErrorCode::NodeExists) && self.own.is_some() => Ok(true),
            Err(error) if error.is(ErrorCode::NoNode) => {
                match parents::make(client, directory).await {
                    // One of them was cleared away in between: once more, after a pause.
                    Err(error) if error.is(ErrorCode::NoNode) => {
                        self.pace.pause().await;
                        Ok(false)
                    }
                    Err(error) => Err(error.into()),
                    Ok(()) => Ok(false),
                }
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

    /// Finds out which name a znode got whose creation was not answered, if it was created.
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
                    let found = list.value.iter().find(|name| name.starts_with(prefix));
                    self.own = found.map(|name| (naming::join(directory, name), None));
                    return Ok(());
                }
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) if error.is_retryable() => self.pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a znode of the right name is the own, or may be taken over.
    fn is_own(&self, stat: &Stat) -> bool {
        if self.is_ephemeral() {
            Some(stat.ephemeral_owner) == self.queue.client.session()
        } else {
            stat.ephemeral_owner.0 == 0
        }
    }

    /// Watches the znode that is there until it goes, or is to go.
    async fn watch(&mut self, stage: &watch::Sender<NodeStage>) -> Result<(), LockError> {
        let mut held: Option<Arc<[u8]>> = None;
        while let Some((path, created)) = self.own.clone() {
            let client = &self.queue.client;
            let (seen, mut watch) = match client.watch_data(&path).await {
                Ok(read) => read,
                Err(error) if error.is(ErrorCode::NoNode) => {
                    // Made, or there, and gone at once: whoever takes it away is not raced.
                    self.pace.pause().await;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let is_own = self.is_own(&seen.stat);
            if is_own {
                self.is_unanswered = false;
                self.own = Some((path.clone(), Some(seen.stat.czxid)));
                let data = Arc::clone(&self.orders.borrow_and_update().data);
                let is_set = held.as_ref() == Some(&data) || *seen.as_bytes() == *data;
                if !is_set {
                    match client.set_data(&path, &data, None).await {
                        Ok(_) => {}
                        Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                        Err(error) => return Err(error.into()),
                    }
                }
                self.pace.reset();
                held = Some(data);
                stage.send_replace(NodeStage::Present { path: path.clone() });
            } else if created == Some(seen.stat.czxid) {
                // The own one of a session that is over.
                match client.multi(Multi::new().delete(&path, None)).await {
                    Err(error) if !error.is(ErrorCode::NoNode) => return Err(error.into()),
                    _ => return Ok(()),
                }
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
                }
            }
            if self.is_closing() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Deletes the znode if it is the own.
    async fn remove(&mut self) -> Result<(), LockError> {
        let Some((path, created)) = self.own.clone() else {
            return Ok(());
        };
        let client = self.queue.client.clone();
        match in_session(&client, self.remove_at(&path, created)).await {
            Some(removed) => removed,
            // An ephemeral znode goes with its session.
            None if self.is_ephemeral() => Ok(()),
            None => Err(no_session("delete", &path).into()),
        }
    }

    async fn remove_at(&mut self, path: &str, created: Option<Zxid>) -> Result<(), LockError> {
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            let client = &self.queue.client;
            let deleted = match client.exists(path).await {
                Ok(seen) => match seen.value {
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

    /// Whether a znode is one's own, and to go.
    fn is_due(&self, created: Option<Zxid>, stat: &Stat) -> bool {
        match created {
            Some(created) if !self.is_unanswered => stat.czxid == created,
            _ => self.is_unanswered && self.is_own(stat),
        }
    }
}
