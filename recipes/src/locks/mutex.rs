//! The mutex: one holder at a time, first come, first served.

use std::{fmt, sync::Arc, time::Duration};

use minikeeper_client::{Error, ZnodePath};

use crate::{
    client::ZooKeeper,
    error::LockError,
    locks::{
        guard::Guard,
        held::Held,
        local::Local,
        owner::{Acquiring, Holds, Owner},
    },
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        order::Claim,
        queue_node::QueueNode,
    },
    status::FencingToken,
};

/// A mutex that processes share, Java processes with Curator's class of the same name included.
///
/// Contenders are served in the order in which they came. The lock is held as long as the session
/// lives; see [`Guard::status`] for what that means when the connection is lost.
///
/// Cheap to clone; clones are the same lock object, to which owners belong.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::InterProcessMutex;
///
/// let client = Client::connect(&address).await?;
/// let printer = InterProcessMutex::new(client, "/locks/printer")?;
/// let guard = printer.acquire().await?;
/// println!("printing with token {}", guard.token());
/// guard.release().await?;
/// # Ok(()) }
/// ```
pub struct InterProcessMutex<C: ZooKeeper> {
    queue: Queue<C>,
    holds: Arc<Holds<C>>,
    local: Option<Arc<Local<C>>>,
}

impl<C: ZooKeeper> Clone for InterProcessMutex<C> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            holds: Arc::clone(&self.holds),
            local: self.local.clone(),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for InterProcessMutex<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessMutex")
            .field("path", &self.queue.path)
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> InterProcessMutex<C> {
    /// The mutex at this path. Nothing is asked of a server before it is acquired.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::InterProcessMutex;
    ///
    /// let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// // Paths begin with a slash.
    /// assert!(InterProcessMutex::new(client, "locks").is_err());
    /// # Ok(()) }
    /// ```
    pub fn new(client: C, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, LockOptions::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::{InterProcessMutex, LockOptions};
    ///
    /// let options = LockOptions::default().with_data("host 7");
    /// let lock = InterProcessMutex::with_options(client.clone(), "/locks/a", options)?;
    /// let guard = lock.acquire().await?;
    /// // For those who look.
    /// assert_eq!(client.get_data(guard.path()).await?.as_bytes(), b"host 7");
    /// # Ok(()) }
    /// ```
    pub fn with_options(client: C, path: &str, options: LockOptions) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let local = options.local_hand_over.map(Local::new).map(Arc::new);
        Ok(Self {
            local,
            queue: Queue {
                client,
                path: path.into(),
                options: Arc::new(options),
            },
            holds: Arc::default(),
        })
    }

    /// Waits for the lock for as long as it takes, as somebody no other call is: within one task a
    /// second call waits for the first.
    ///
    /// Dropping the future gives the place in the queue back.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often while it waits, [`LockError::Client`]
    /// when a server refuses or the client is closed. A lost connection is no error: it waits for
    /// the next one.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// println!("held, with token {}", guard.token());
    /// # Ok(()) }
    /// ```
    pub async fn acquire(&self) -> Result<Guard<C>, LockError> {
        self.take(Wait::FOR_EVER).await
    }

    /// Waits for the lock for so long at most. Zero is a try: the lock is taken if it is free.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessMutex::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessMutex, LockError};
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let guard = lock.acquire_within(Duration::from_secs(5)).await?;
    /// let late = lock.acquire_within(Duration::from_millis(10)).await;
    /// assert!(matches!(late, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn acquire_within(&self, within: Duration) -> Result<Guard<C>, LockError> {
        self.take(Wait::within(within)).await
    }

    /// Takes the lock if it is free. `None` if it is not.
    ///
    /// # Errors
    /// Those of [`InterProcessMutex::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let guard = lock.try_acquire().await?;
    /// assert!(guard.is_some());
    /// assert!(lock.try_acquire().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub async fn try_acquire(&self) -> Result<Option<Guard<C>>, LockError> {
        let wait = Wait::within(Duration::ZERO);
        let tried = async {
            let others = async { Ok(self.participants().await?) };
            if self.queue.options.peek
                && let Some(others) = self.queue.peek(wait, others).await?
                && !others.is_empty()
            {
                return Err(self.queue.timed_out(wait));
            }
            self.take(wait).await
        };
        match tried.await {
            Err(LockError::TimedOut { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Waits for the lock as this owner, who may have it already: then it is entered again, and
    /// the lock is free when the last of the owner's guards is gone.
    ///
    /// # Errors
    /// [`LockError::HoldLost`] if the owner's hold is lost, and those of
    /// [`InterProcessMutex::acquire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMutex, Owner};
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let owner = Owner::new();
    /// let outer = lock.acquire_as(&owner).await?;
    /// // Without an owner this would wait for ever.
    /// let inner = lock.acquire_as(&owner).await?;
    /// assert_eq!(outer.token(), inner.token());
    /// # Ok(()) }
    /// ```
    pub async fn acquire_as(&self, owner: &Owner) -> Result<Guard<C>, LockError> {
        self.take_as(owner, Wait::FOR_EVER).await
    }

    /// As [`InterProcessMutex::acquire_as`], for so long at most.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`InterProcessMutex::acquire_as`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{InterProcessMutex, LockError, Owner};
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let guard = lock.acquire_as(&Owner::new()).await?;
    /// let late = lock.acquire_as_within(&Owner::new(), Duration::from_millis(10)).await;
    /// assert!(matches!(late, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn acquire_as_within(
        &self,
        owner: &Owner,
        within: Duration,
    ) -> Result<Guard<C>, LockError> {
        self.take_as(owner, Wait::within(within)).await
    }

    /// Whether this owner holds the lock by this object.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMutex, Owner};
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let owner = Owner::new();
    /// let guard = lock.acquire_as(&owner).await?;
    /// assert!(lock.is_held_by(&owner));
    /// assert!(!lock.is_held_by(&Owner::new()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_held_by(&self, owner: &Owner) -> bool {
        self.holds.is_held_by(owner, Claim::Mutex)
    }

    /// The paths of all contenders' znodes, the holder's first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost meanwhile or the
    /// client is closed, [`Error::Refused`] when a server refuses. Nothing was changed: ask again.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// assert_eq!(lock.participants().await?, [guard.path()]);
    /// # Ok(()) }
    /// ```
    pub async fn participants(&self) -> Result<Vec<String>, Error> {
        self.queue.participants(Claim::Mutex).await
    }

    async fn take(&self, wait: Wait) -> Result<Guard<C>, LockError> {
        let Some(local) = &self.local else {
            let place = self.queue.acquire(Claim::Mutex, wait).await?;
            return Ok(Guard::new(self.held(place, 0)));
        };
        let mut turn = self.queue.in_time(wait, Arc::clone(local).turn()).await?;
        let kept = turn.take_over(&self.queue.client);
        let place = match kept {
            Some(place) => place,
            None => {
                let place = self.queue.acquire(Claim::Mutex, wait).await?;
                turn.begin();
                place
            }
        };
        let held = self.held(place, turn.passes());
        Ok(Guard::new(held.with_turn(turn)))
    }

    fn held(&self, place: QueueNode<C>, pass: u32) -> Held<C> {
        let token = FencingToken {
            pass,
            ..FencingToken::new(place.czxid)
        };
        Held::new(self.queue.client.clone(), place, token)
    }

    async fn take_as(&self, owner: &Owner, wait: Wait) -> Result<Guard<C>, LockError> {
        let begin = || {
            let this = self.clone();
            let acquiring: Acquiring<C> = Box::pin(async move { this.take(wait).await });
            Ok(acquiring)
        };
        self.holds
            .take(&self.queue, owner, Claim::Mutex, wait, begin)
            .await
    }
}
