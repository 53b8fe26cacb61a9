//! The mutex: one holder at a time, in order of arrival.

use std::{fmt, sync::Arc};

use minikeeper_client::{Client, Error, ZnodePath};

use crate::{
    error::LockError,
    locks::{
        acquire::{Acquire, Reentrant},
        guard::Guard,
        held::Held,
        local::{Local, Turn},
        owner::{Acquiring, Holds, Owner},
    },
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        order::Claim,
        position::{QueuePosition, Queued},
        queue_node::QueueNode,
    },
    status::FencingToken,
};

/// A mutex between processes, compatible with Curator's class of the same name in Java.
///
/// It serves contenders in order of arrival. The holder keeps the lock while its session lives;
/// [`Guard::status`] says what that means when the connection is lost.
///
/// Cheap to clone. Clones are the same lock object: an owner that holds one holds all.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::InterProcessMutex;
///
/// let client = Client::connect(&address).await?;
/// let printer = InterProcessMutex::new(client, "/locks/printer")?;
/// let guard = printer.acquire().await?;
/// println!("printing with token {}", guard.token());
/// guard.release().await?;
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct InterProcessMutex {
    queue: Queue,
    holds: Arc<Holds>,
    local: Option<Arc<Local>>,
}

impl fmt::Debug for InterProcessMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessMutex")
            .field("path", &self.queue.path)
            .finish_non_exhaustive()
    }
}

impl Reentrant for &InterProcessMutex {}

impl Queued for InterProcessMutex {
    fn set_position(&mut self, position: &QueuePosition) {
        self.queue.position = Some(position.clone());
    }
}

impl InterProcessMutex {
    /// Creates a mutex at this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, LockOptions::default())
    }

    /// Like [`Self::new`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn with_options(client: Client, path: &str, options: LockOptions) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let local = options.local_hand_over.map(Local::new).map(Arc::new);
        Ok(Self {
            local,
            queue: Queue::new("InterProcessMutex", client, path, options),
            holds: Arc::default(),
        })
    }

    /// Acquires the lock, waiting without a time limit unless [`Acquire::within`] sets one. Not
    /// reentrant unless [`Acquire::as_owner`] names an owner.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue, see [`Acquire`].
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often during the wait,
    /// [`LockError::Client`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    pub fn acquire(&self) -> Acquire<'_, &Self, Guard> {
        Acquire::new(self, |lock, how| {
            Box::pin(async move {
                let lock = how.reporting(lock);
                match how.owner {
                    Some(owner) => lock.take_as(owner, how.wait()).await,
                    None => lock.take(how.wait()).await,
                }
            })
        })
    }

    /// Acquires the lock if it is free; `None` if it is not.
    ///
    /// # Cancel safety
    /// Same as [`InterProcessMutex::acquire`].
    ///
    /// # Errors
    /// Those of [`InterProcessMutex::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, LockError> {
        self.acquire().at_once().await
    }

    /// Returns whether this owner holds the lock through this lock object, without a request.
    #[must_use]
    pub fn is_held_by(&self, owner: &Owner) -> bool {
        self.holds.is_held_by(owner, Claim::Mutex)
    }

    /// Reads the paths of all contenders' znodes, the holder's first.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn participants(&self) -> Result<Vec<String>, Error> {
        self.queue.participants(Claim::Mutex).await
    }

    /// Reads who contends: the paths of all contenders' znodes, the holder's first, each with its data
    /// ([`LockOptions::data`]). Omits contenders that leave during the call.
    ///
    /// # Errors
    /// Those of [`InterProcessMutex::participants`].
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_recipes::{InterProcessMutex, LockOptions};
    ///
    /// let lock = InterProcessMutex::new(client, "/locks/printer")?;
    /// let _guard = lock.acquire().await?;
    /// let contenders = lock.participants_with_data().await?;
    /// let (path, data) = &contenders[0];
    /// println!("{path} is of {}", String::from_utf8_lossy(data)); // host-7 pid 4711 billing
    /// # assert_eq!(*data, LockOptions::process_data());
    /// # Ok(()) });
    /// ```
    pub async fn participants_with_data(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        self.queue.participants_with_data(Claim::Mutex).await
    }

    /// Names the recipe that this mutex is part of.
    pub(crate) const fn observed_as(mut self, recipe: &'static str) -> Self {
        self.queue.observed.recipe = recipe;
        self
    }

    async fn take(&self, wait: Wait) -> Result<Guard, LockError> {
        let (place, turn) = self.queue.observed.wait(|| self.contend(wait)).await?;
        let token = FencingToken {
            pass: turn.as_ref().map_or(0, Turn::passes),
            ..FencingToken::new(place.czxid)
        };
        Ok(Guard::new(Held::new(&self.queue, place, turn, token)))
    }

    async fn contend(&self, wait: Wait) -> Result<(QueueNode, Option<Turn>), LockError> {
        let others = async { Ok(self.participants().await?) };
        if let Some(others) = self.queue.peek(wait, others).await?
            && !others.is_empty()
        {
            return Err(self.queue.timed_out(wait));
        }
        let Some(local) = &self.local else {
            return Ok((self.queue.acquire(Claim::Mutex, wait).await?, None));
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
        Ok((place, Some(turn)))
    }

    async fn take_as(&self, owner: &Owner, wait: Wait) -> Result<Guard, LockError> {
        let begin = || {
            let this = self.clone();
            let acquiring: Acquiring = Box::pin(async move { this.take(wait).await });
            Ok(acquiring)
        };
        self.holds
            .take(&self.queue, owner, Claim::Mutex, wait, begin)
            .await
    }
}
