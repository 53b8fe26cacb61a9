//! Hand-written locks on a plain client, for comparison and benchmarks.
//!
//! They exclude other holders, but each has the weaknesses of its algorithm, which its
//! documentation names. Use [`InterProcessMutex`](crate::InterProcessMutex) for anything else. They
//! avoid other defects: no wake-up is lost between a check and the wait, and a dropped future
//! leaves no znode behind.
//!
//! Source: `docs/curator-recipes.md` sections 13.1 to 13.3.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use minikeeper_client::{CreateMode, Error, ErrorCode, Stamped, ZnodePath};
use tokio::time::{sleep, sleep_until};

use crate::{
    client::ZooKeeper,
    error::LockError,
    locks::{acquire::Acquire, guard::Guard, held::Held},
    options::LockOptions,
    queue::{
        contending::{PARENTS_MAX, Queue, Wait},
        naming,
        order::Claim,
        pace::Pace,
        parents,
        queue_node::QueueNode,
        waiting::{self, Outcome},
    },
    status::FencingToken,
};

/// The next step of a contender that finds the lock taken.
#[derive(Clone, Copy, Debug)]
enum Then {
    Sleep(Duration),
    Watch,
}

/// A lock that is one ephemeral znode. The contender that creates it holds the lock; the others
/// retry after an interval.
///
/// Strength: one write if there is no other contender.
///
/// Weaknesses:
/// - The lock may stay free for up to one interval.
/// - Every waiting contender makes one failed write per interval.
/// - There is no order: a contender may never get the lock.
/// - The path cannot have children.
/// - A holder that releases after losing its session may delete the znode of the next holder, which
///   has the same path.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use std::time::Duration;
///
/// use minikeeper_client::Client;
/// use minikeeper_recipes::simple::PollingLock;
///
/// let client = Client::connect(&address).await?;
/// let lock = PollingLock::new(client, "/locks/printer", Duration::from_secs(1))?;
/// lock.acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PollingLock<C: ZooKeeper>(OneNode<C>);

/// Like [`PollingLock`], but waiting contenders watch the znode instead of polling.
///
/// Strength: with few contenders the next one gets the lock soon.
///
/// Weaknesses: every release wakes all waiting contenders, and all but one try in vain and watch
/// again. The last three weaknesses of [`PollingLock`] remain.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::simple::HerdLock;
///
/// let client = Client::connect(&address).await?;
/// let lock = HerdLock::new(client, "/locks/printer")?;
/// lock.acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HerdLock<C: ZooKeeper>(OneNode<C>);

/// A queue of ephemeral sequential znodes whose names are only their numbers.
///
/// Weakness: when the reply to a creation is lost, the contender cannot recognise its znode. The
/// call fails, and the znode stays in the queue until the session ends.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::simple::SequentialLock;
///
/// let client = Client::connect(&address).await?;
/// let lock = SequentialLock::new(client, "/locks/printer")?;
/// lock.acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SequentialLock<C: ZooKeeper>(Queue<C>);

macro_rules! shown {
    ($($lock:ident $path:ident,)+) => {$(
        impl<C: ZooKeeper> fmt::Debug for $lock<C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($lock)).field(&$path(&self.0)).finish()
            }
        }

        impl<C: ZooKeeper> $lock<C> {
            /// Acquires the lock, waiting without a time limit unless [`Acquire::within`] sets one.
            ///
            /// # Cancel safety
            /// Dropping the future deletes the znode if it was created, in the background.
            ///
            /// # Errors
            /// [`LockError::Client`] when a server refuses or the client is closed. With
            /// [`SequentialLock`] also when the outcome of the creation is unknown, and
            /// [`LockError::Lost`] when the session is lost.
            pub fn acquire(&self) -> Acquire<'_, &Self, Guard<C>> {
                Acquire::new(self, |lock, how| Box::pin(lock.take(how.wait())))
            }
        }
    )+};
}

shown!(PollingLock path_of_one, HerdLock path_of_one, SequentialLock path_of_queue,);

fn path_of_one<C: ZooKeeper>(one: &OneNode<C>) -> Arc<str> {
    Arc::clone(&one.queue.path)
}

fn path_of_queue<C: ZooKeeper>(queue: &Queue<C>) -> Arc<str> {
    Arc::clone(&queue.path)
}

fn queue<C: ZooKeeper>(client: C, path: &str) -> Result<Queue<C>, Error> {
    ZnodePath::new(path)?;
    Ok(Queue {
        client,
        path: path.into(),
        options: Arc::new(LockOptions::curator_exact()),
    })
}

fn guard<C: ZooKeeper>(client: C, place: QueueNode<C>) -> Guard<C> {
    let token = FencingToken::new(place.czxid);
    Guard::new(Held::new(client, place, token))
}

impl<C: ZooKeeper> PollingLock<C> {
    /// Creates a lock at this path, which contenders try to acquire once per interval. Sends
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: C, path: &str, interval: Duration) -> Result<Self, Error> {
        let queue = queue(client, path)?;
        let then = Then::Sleep(interval);
        Ok(Self(OneNode { queue, then }))
    }

    async fn take(&self, wait: Wait) -> Result<Guard<C>, LockError> {
        self.0.take(wait).await
    }
}

impl<C: ZooKeeper> HerdLock<C> {
    /// Creates a lock at this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: C, path: &str) -> Result<Self, Error> {
        let queue = queue(client, path)?;
        let then = Then::Watch;
        Ok(Self(OneNode { queue, then }))
    }

    async fn take(&self, wait: Wait) -> Result<Guard<C>, LockError> {
        self.0.take(wait).await
    }
}

impl<C: ZooKeeper> SequentialLock<C> {
    /// Creates a lock at this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: C, path: &str) -> Result<Self, Error> {
        Ok(Self(queue(client, path)?))
    }

    async fn take(&self, wait: Wait) -> Result<Guard<C>, LockError> {
        self.0.connected(wait).await?;
        let path = format!("{}/", self.0.path);
        let create = |caller| {
            create(
                self.0.clone(),
                path,
                CreateMode::EphemeralSequential,
                caller,
            )
        };
        let Some(place) = self.0.limited(wait, detached(create)).await?? else {
            return Err(self.lost());
        };
        // Bare numbers are their own keys.
        match waiting::wait(&self.0, Claim::Mutex, place, None, wait).await? {
            Outcome::Granted(place) => Ok(guard(self.0.client.clone(), place)),
            Outcome::Gone => Err(self.lost()),
            Outcome::TimedOut => Err(self.0.timed_out(wait)),
        }
    }

    fn lost(&self) -> LockError {
        LockError::Lost {
            path: self.0.path.to_string(),
            attempts: 1,
        }
    }
}

/// One znode for all contenders.
#[derive(Clone)]
struct OneNode<C: ZooKeeper> {
    queue: Queue<C>,
    then: Then,
}

impl<C: ZooKeeper> OneNode<C> {
    async fn take(&self, wait: Wait) -> Result<Guard<C>, LockError> {
        let queue = &self.queue;
        let mut pace = Pace::of(&queue.client);
        loop {
            queue.connected(wait).await?;
            let path = queue.path.to_string();
            let create = |caller| create(queue.clone(), path, CreateMode::Ephemeral, caller);
            if let Some(place) = queue.limited(wait, detached(create)).await?? {
                return Ok(guard(queue.client.clone(), place));
            }
            if wait.is_late() {
                return Err(queue.timed_out(wait));
            }
            match self.then {
                Then::Sleep(interval) => match wait.until {
                    Some(until) => tokio::select! {
                        () = sleep(interval) => {}
                        () = sleep_until(until) => {}
                    },
                    None => sleep(interval).await,
                },
                Then::Watch => {
                    let look = queue.client.watch_data(&queue.path);
                    match queue.limited(wait, look).await? {
                        Ok((_, watch)) => {
                            let _ = wait.event(watch).await;
                            pace.reset();
                        }
                        // The znode was deleted in between, which may happen repeatedly, or the
                        // server refused temporarily.
                        Err(error) if error.is(ErrorCode::NoNode) || error.is_retryable() => {
                            queue.pause(wait, &mut pace).await?;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }
}

/// Alive while the caller waits.
type Caller = Weak<()>;

/// Creates a znode in its own task. If the caller stops waiting, the task still finishes, and the
/// znode is deleted.
async fn detached<C, F>(work: impl FnOnce(Caller) -> F) -> Result<Option<QueueNode<C>>, LockError>
where
    C: ZooKeeper,
    F: Future<Output = Result<Option<QueueNode<C>>, LockError>> + Send + 'static,
{
    let waiting = Arc::new(());
    // The task does not panic; its runtime may be shutting down.
    let created = tokio::spawn(work(Arc::downgrade(&waiting))).await;
    drop(waiting);
    created.unwrap_or(Ok(None))
}

/// Creates an ephemeral znode; `None` if another contender has created it, or if the caller no
/// longer waits.
async fn create<C: ZooKeeper>(
    queue: Queue<C>,
    path: String,
    mode: CreateMode,
    caller: Caller,
) -> Result<Option<QueueNode<C>>, LockError> {
    let client = &queue.client;
    let mut is_unanswered = false;
    let mut pace = Pace::of(client);
    let mut parents_made = 0;
    loop {
        let epoch = queue.connected(Wait::FOR_EVER).await?;
        // After a lost reply the znode may exist: then look for it even without a caller.
        if caller.strong_count() == 0 && !is_unanswered {
            return Ok(None);
        }
        let error = match client.create(&path, b"", mode, false).await {
            Ok(created) => {
                let (made, made_in) = (created.value, created.epoch);
                let czxid = made.stat.czxid;
                return Ok(Some(QueueNode::new(
                    client.clone(),
                    made.path,
                    czxid,
                    made_in,
                )));
            }
            Err(error) if error.is(ErrorCode::NodeExists) && is_unanswered => {
                // It may be this contender's znode.
                match client.exists(&path).await {
                    Ok(Stamped {
                        value: Some(stat),
                        epoch: seen_in,
                        ..
                    }) if seen_in == epoch => {
                        let is_own = Some(stat.ephemeral_owner) == client.session();
                        let own = || QueueNode::new(client.clone(), path, stat.czxid, epoch);
                        return Ok(is_own.then(own));
                    }
                    Ok(_) => continue,
                    Err(error) => error,
                }
            }
            Err(error) if error.is(ErrorCode::NodeExists) => return Ok(None),
            Err(error) if error.is(ErrorCode::NoNode) && parents_made < PARENTS_MAX => {
                match parents::make(client, naming::parent_of(&path)).await {
                    Ok(()) => {
                        parents_made += 1;
                        continue;
                    }
                    Err(error) => error,
                }
            }
            Err(error) => {
                if error.is_outcome_unknown() && mode.is_sequential() {
                    return Err(error.into());
                }
                is_unanswered |= error.is_retryable();
                error
            }
        };
        if !error.is_retryable() {
            return Err(error.into());
        }
        // The reconnect after a lost connection has paused already.
        if error.code().is_some() {
            pace.pause().await;
        }
    }
}
