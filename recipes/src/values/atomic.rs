//! Atomic values: numbers or bytes that several processes change.
//!
//! Source: `docs/curator-recipes.md` sections 14.6 and 17; Curator's `DistributedAtomicLong`,
//! `DistributedAtomicInteger`, `DistributedAtomicValue` and `CachedAtomicLong`.

use std::{fmt, marker::PhantomData, time::Duration};

use minikeeper_client::{Client, CreateMode, Epoch, Error, ErrorCode, Stat, ZnodePath};
use tokio::time::sleep;

use crate::{
    call_limit::CallLimit,
    client::new_id,
    error::AtomicError,
    locks::mutex::InterProcessMutex,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
        parents,
    },
};

/// The result of one change of an atomic value.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_recipes::DistributedAtomicLong;
/// let orders = DistributedAtomicLong::new(client, "/counters/orders")?;
/// let change = orders.add(1).await?;
/// assert_eq!((change.previous, change.current), (0, 1));
/// // No other client changed it at the same time.
/// assert_eq!(change.optimistic_attempts, 1);
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AtomicValue<T = i64> {
    /// The value before.
    pub previous: T,
    /// The value after.
    pub current: T,
    /// The number of attempts without the mutex; above 1 if other clients changed the
    /// value.
    pub optimistic_attempts: u32,
    /// The number of attempts under the mutex.
    pub promoted_attempts: u32,
}

/// The options of an atomic value: what it does when other clients change it at the same time.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{AtomicOptions, DistributedAtomicLong};
///
/// let mut options = AtomicOptions::default();
/// options.attempts_max = 50;
/// let busy = DistributedAtomicLong::with_options(client, "/counters/clicks", options)?;
/// busy.add(1).await?;
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AtomicOptions {
    /// The number of attempts of a change, and as many again under the mutex if there is one. With
    /// 0 every change fails.
    ///
    /// Default: 10.
    pub attempts_max: u32,
    /// The longest wait after the first failed attempt; it doubles with each further one. The wait
    /// is random up to this limit.
    ///
    /// Default: 2 ms.
    pub backoff: Duration,
    /// The mutex to take when all attempts have failed.
    ///
    /// Default: `None`: the change fails.
    pub promotion: Option<Promotion>,
}

impl Default for AtomicOptions {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            backoff: Duration::from_millis(2),
            promotion: None,
        }
    }
}

/// A mutex for changes that failed too often, under which they compete with fewer other clients.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_recipes::{AtomicOptions, DistributedAtomicLong, Promotion};
///
/// let mut options = AtomicOptions::default();
/// options.promotion = Some(Promotion {
///     path: "/locks/clicks".to_owned(),
///     within: Duration::from_secs(5),
/// });
/// let busy = DistributedAtomicLong::with_options(client, "/counters/clicks", options)?;
/// // The mutex was not needed: it is taken only after failed attempts.
/// assert_eq!(busy.add(1).await?.promoted_attempts, 0);
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promotion {
    /// The path of the mutex. It must not be the value's path, or below it.
    pub path: String,
    /// The time limit for acquiring it.
    pub within: Duration,
}

/// A 64-bit number that processes share, compatible with Curator's class of the same name in Java.
///
/// See [`DistributedAtomic`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::DistributedAtomicLong;
///
/// let client = Client::connect(&address).await?;
/// let orders = DistributedAtomicLong::new(client, "/counters/orders")?;
/// let change = orders.add(7).await?;
/// assert_eq!((change.previous, change.current), (0, 7));
/// assert_eq!(orders.get().await?, 7);
/// # Ok(()) });
/// ```
pub type DistributedAtomicLong = DistributedAtomic<i64>;

/// A 32-bit number that processes share, compatible with Curator's class of the same name in Java.
///
/// See [`DistributedAtomic`].
pub type DistributedAtomicInteger = DistributedAtomic<i32>;

/// Bytes that processes share, compatible with Curator's class of the same name in Java.
///
/// See [`DistributedAtomic`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::DistributedAtomicValue;
///
/// let phase = DistributedAtomicValue::new(client, "/phase")?;
/// phase.set(b"draining").await?;
/// assert!(phase.compare_and_set(b"running", b"stopped").await?.is_none());
/// let change = phase.compare_and_set(b"draining", b"stopped").await?;
/// assert_eq!(change.map(|change| change.previous), Some(b"draining".to_vec()));
/// # Ok(()) });
/// ```
pub type DistributedAtomicValue = DistributedAtomic<Vec<u8>>;

/// A value that processes share: a [`DistributedAtomicLong`], [`DistributedAtomicInteger`] or
/// [`DistributedAtomicValue`].
///
/// A change reads the value and writes the new one if no other client has changed it since;
/// otherwise it retries. If the reply is lost, the change is made once or not at all: the value is
/// read again, and if that does not show the outcome, the result is [`Error::OutcomeUnknown`]. Sums
/// wrap around, as they do in Java. A missing value is 0 or empty, and the first change creates it.
#[derive(Clone)]
pub struct DistributedAtomic<T: AtomicData> {
    node: AtomicNode<T>,
    options: AtomicOptions,
    mutex: Option<(InterProcessMutex, Duration)>,
}

/// A type of value that a [`DistributedAtomic`] holds. Implement it to share values of your own
/// types.
pub trait AtomicData: Clone + Default + PartialEq + Send + Sync + 'static {
    /// What it is, for errors, such as "64-bit number".
    const NAME: &'static str;

    /// Returns the data of the znode.
    fn encode(&self) -> Vec<u8>;

    /// Returns the value that the data holds; `None` if it holds none.
    fn decode(data: &[u8]) -> Option<Self>;
}

/// A type of number that a [`DistributedAtomic`] holds.
pub trait AtomicNumber: AtomicData {
    /// Returns the sum, which wraps around.
    #[must_use]
    fn plus(self, number: Self) -> Self;
}

impl AtomicData for Vec<u8> {
    const NAME: &'static str = "bytes";

    fn encode(&self) -> Vec<u8> {
        self.clone()
    }

    fn decode(data: &[u8]) -> Option<Self> {
        Some(data.to_vec())
    }
}

/// Implements the traits for an integer as Java's `ByteBuffer` writes it: big-endian. Empty data is
/// 0, and further bytes are ignored.
macro_rules! number {
    ($type:ty, $name:literal) => {
        impl AtomicData for $type {
            const NAME: &'static str = $name;

            fn encode(&self) -> Vec<u8> {
                self.to_be_bytes().to_vec()
            }

            fn decode(data: &[u8]) -> Option<Self> {
                match data.first_chunk() {
                    Some(value) => Some(Self::from_be_bytes(*value)),
                    None => data.is_empty().then_some(0),
                }
            }
        }

        impl AtomicNumber for $type {
            fn plus(self, number: Self) -> Self {
                self.wrapping_add(number)
            }
        }
    };
}

number!(i64, "64-bit number");
number!(i32, "32-bit number");

impl<T: AtomicData> fmt::Debug for DistributedAtomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedAtomic")
            .field("path", &self.node.queue.path)
            .finish_non_exhaustive()
    }
}

impl<T: AtomicData> DistributedAtomic<T> {
    /// Creates an object for the value at this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, AtomicOptions::default())
    }

    /// Like [`Self::new`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if a path is invalid.
    pub fn with_options(client: Client, path: &str, options: AtomicOptions) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let mutex = match &options.promotion {
            Some(Promotion { path, within }) => {
                Some((InterProcessMutex::new(client.clone(), path)?, *within))
            }
            None => None,
        };
        Ok(Self {
            node: AtomicNode {
                queue: Queue::new("DistributedAtomic", client, path, LockOptions::default()),
                data: PhantomData,
            },
            options,
            mutex,
        })
    }

    /// Reads the value; 0 or empty if it is missing.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`AtomicError::Corrupted`] when the znode holds something else, [`AtomicError::Failed`]
    /// when a server refuses or the client is closed. A lost connection is not an error: it waits
    /// for the next connection.
    /// [`AtomicError::Failed`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn get(&self) -> Result<T, AtomicError> {
        let Queue { client, path, .. } = &self.node.queue;
        let seen = CallLimit::read(client, "get", path).run(self.node.read());
        Ok(seen.await?.value)
    }

    /// Creates the znode with this value unless it exists, and returns whether it created it.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a request: the znode may have been created.
    ///
    /// # Errors
    /// [`AtomicError::Corrupted`] when the znode holds something else, [`AtomicError::Failed`]
    /// when a server refuses, the client is closed, or, with [`Error::OutcomeUnknown`], when it is
    /// unknown whether the znode was created: read it then.
    /// [`AtomicError::Failed`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn initialize(&self, value: impl Into<T> + Send) -> Result<bool, AtomicError> {
        let value = value.into();
        let initialized = async {
            loop {
                let seen = self.node.read().await?;
                if seen.stat.is_some() {
                    return Ok(false);
                }
                if self.node.write(&seen, &value).await? {
                    return Ok(true);
                }
            }
        };
        self.change_limit("initialize").run(initialized).await
    }

    /// Sets the value unconditionally.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a request: the change may have been made. The mutex of a
    /// [`Promotion`] is released.
    ///
    /// # Errors
    /// [`AtomicError::Contended`] when other clients changed the value during every attempt:
    /// retry later, or set a [`Promotion`]. [`AtomicError::Corrupted`] when the znode does not hold
    /// a counter. [`AtomicError::Failed`] when a server refuses, the client is closed, or, with
    /// [`Error::OutcomeUnknown`], when it is unknown whether the change was made: a retry may make
    /// it twice.
    /// [`AtomicError::Failed`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn set(&self, value: impl Into<T> + Send) -> Result<AtomicValue<T>, AtomicError> {
        let value = value.into();
        self.update(|_| value.clone()).await
    }

    /// Sets the value if it equals `expected`. `None` if it does not, if it is missing, or if
    /// another client changes it at the same time.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a request: the value may have been set.
    ///
    /// # Errors
    /// [`AtomicError::Corrupted`] when the znode holds something else, [`AtomicError::Failed`]
    /// when a server refuses, the client is closed, or, with [`Error::OutcomeUnknown`], when it is
    /// unknown whether the value was set: read it then.
    /// [`AtomicError::Failed`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::DistributedAtomicLong;
    /// let orders = DistributedAtomicLong::new(client, "/counters/orders")?;
    /// orders.set(5).await?;
    /// assert!(orders.compare_and_set(4, 9).await?.is_none());
    /// assert!(orders.compare_and_set(5, 9).await?.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn compare_and_set(
        &self,
        expected: impl Into<T> + Send,
        value: impl Into<T> + Send,
    ) -> Result<Option<AtomicValue<T>>, AtomicError> {
        let (expected, value) = (expected.into(), value.into());
        let set = async {
            let seen = self.node.read().await?;
            let is_expected = seen.stat.is_some() && seen.value == expected;
            Ok::<_, AtomicError>(is_expected && self.node.write(&seen, &value).await?)
        };
        let is_set = self.change_limit("compare_and_set").run(set).await?;
        Ok(is_set.then_some(AtomicValue {
            previous: expected,
            current: value,
            optimistic_attempts: 1,
            promoted_attempts: 0,
        }))
    }

    /// Changes the value with a function, which may be called several times.
    ///
    /// # Cancel safety
    /// Same as [`DistributedAtomic::set`].
    ///
    /// # Errors
    /// Those of [`DistributedAtomic::set`], and [`AtomicError::Failed`] with
    /// [`LockError::TimedOut`](crate::LockError::TimedOut) if the mutex of a [`Promotion`] was not
    /// free in time.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_recipes::DistributedAtomicLong;
    /// let orders = DistributedAtomicLong::new(client, "/counters/orders")?;
    /// orders.set(21).await?;
    /// let doubled = orders.update(|orders| orders * 2).await?;
    /// assert_eq!(doubled.current, 42);
    /// # Ok(()) });
    /// ```
    pub async fn update(
        &self,
        change: impl Fn(T) -> T + Send + Sync,
    ) -> Result<AtomicValue<T>, AtomicError> {
        self.update_limit("update").run(self.updated(change)).await
    }

    fn change_limit(&self, call: &'static str) -> CallLimit<'_> {
        let Queue { client, path, .. } = &self.node.queue;
        CallLimit::change(client, call, path)
    }

    /// The limit of a change that may take the mutex, which is a wait for other contenders with a
    /// limit of its own.
    pub(super) fn update_limit(&self, call: &'static str) -> CallLimit<'_> {
        let promotion = self.mutex.as_ref().map(|(_, within)| *within);
        self.change_limit(call).and(promotion.unwrap_or_default())
    }

    async fn updated(
        &self,
        change: impl Fn(T) -> T + Send + Sync,
    ) -> Result<AtomicValue<T>, AtomicError> {
        let (done, attempts) = self.attempt(&change).await?;
        if let Some((previous, current)) = done {
            return Ok(AtomicValue {
                previous,
                current,
                optimistic_attempts: attempts,
                promoted_attempts: 0,
            });
        }
        let Some((mutex, within)) = &self.mutex else {
            return Err(self.contended(attempts));
        };
        // Other clients may still change the value without the mutex, which only reduces their
        // number.
        let guard = mutex.acquire().within(*within).await?;
        let (done, promoted_attempts) = self.attempt(&change).await?;
        drop(guard);
        match done {
            Some((previous, current)) => Ok(AtomicValue {
                previous,
                current,
                optimistic_attempts: attempts,
                promoted_attempts,
            }),
            None => Err(self.contended(attempts + promoted_attempts)),
        }
    }

    fn contended(&self, attempts: u32) -> AtomicError {
        AtomicError::Contended {
            path: self.node.queue.path.to_string(),
            attempts,
        }
    }

    /// Returns the values before and after, `None` if all attempts failed, and the number of
    /// attempts.
    async fn attempt(
        &self,
        change: &(impl Fn(T) -> T + Send + Sync),
    ) -> Result<(Option<(T, T)>, u32), AtomicError> {
        for attempt in 1..=self.options.attempts_max {
            let seen = self.node.read().await?;
            let current = change(seen.value.clone());
            if self.node.write(&seen, &current).await? {
                return Ok((Some((seen.value, current)), attempt));
            }
            if attempt < self.options.attempts_max {
                sleep(self.pause(attempt)).await;
            }
        }
        Ok((None, self.options.attempts_max))
    }

    /// Returns a random wait, longer after more attempts, so that clients that failed together
    /// spread out.
    fn pause(&self, attempt: u32) -> Duration {
        // The last bits of a random UUID are random.
        let id = new_id(&self.node.queue.client);
        let [.., high, low] = *id.as_bytes();
        let part = u32::from(u16::from_be_bytes([high, low]));
        let longest = self
            .options
            .backoff
            .saturating_mul(1 << attempt.min(16).saturating_sub(1));
        longest / (1 << 16) * part
    }
}

impl<T: AtomicNumber> DistributedAtomic<T> {
    /// Adds a number, which may be negative. The sum wraps around.
    ///
    /// # Cancel safety
    /// Same as [`DistributedAtomic::set`].
    ///
    /// # Errors
    /// Those of [`DistributedAtomic::set`].
    pub async fn add(&self, number: T) -> Result<AtomicValue<T>, AtomicError> {
        self.update(|value| value.plus(number.clone())).await
    }
}

/// A value that was read, and the stat that identifies it.
struct Seen<T> {
    value: T,
    /// `None` if the znode is missing.
    stat: Option<Stat>,
}

/// The znode of a value.
#[derive(Clone)]
struct AtomicNode<T> {
    queue: Queue,
    data: PhantomData<fn() -> T>,
}

impl<T: AtomicData> AtomicNode<T> {
    async fn read(&self) -> Result<Seen<T>, AtomicError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            match client.get_data(path).await {
                Ok(data) => {
                    let bytes = data.as_bytes();
                    let value = T::decode(bytes).ok_or_else(|| AtomicError::Corrupted {
                        path: path.to_string(),
                        bytes: bytes.len(),
                        expected: T::NAME,
                    })?;
                    let stat = Some(data.stat);
                    return Ok(Seen { value, stat });
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    return Ok(Seen {
                        value: T::default(),
                        stat: None,
                    });
                }
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets the value if it is unchanged since it was read; false if it was changed.
    async fn write(&self, seen: &Seen<T>, value: &T) -> Result<bool, AtomicError> {
        let Queue { client, path, .. } = &self.queue;
        let bytes = value.encode();
        let mut pace = Pace::of(client);
        let mut made = false;
        loop {
            let epoch = self.queue.connected(Wait::FOR_EVER).await?;
            let result = match seen.stat {
                // To a server -1 means any version. It occurs after 2^32 - 1 changes.
                Some(stat) if stat.version == -1 => return Ok(false),
                Some(stat) => {
                    let set = client.set_data(path, &bytes, Some(stat.version));
                    set.await.map(drop)
                }
                None => {
                    let create = client.create(path, &bytes, CreateMode::Persistent);
                    create.await.map(drop)
                }
            };
            match result {
                Ok(()) => return Ok(true),
                Err(error) if error.is(ErrorCode::NoNode) && seen.stat.is_none() => {
                    match parents::make(client, naming::parent_of(path)).await {
                        // A server that refuses again is asked after a pause.
                        Ok(parents::Made::Directories) if !std::mem::replace(&mut made, true) => {}
                        Ok(_) => pace.pause().await,
                        Err(error) if error.is_retryable() => pace.after(&error).await,
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error)
                    if error.is(ErrorCode::BadVersion)
                        || error.is(ErrorCode::NodeExists)
                        || error.is(ErrorCode::NoNode) =>
                {
                    return Ok(false);
                }
                Err(error) if error.is_outcome_unknown() && error.is_retryable() => {
                    if !self.is_certainly_not_made(epoch, seen, value).await? {
                        return Err(error.into());
                    }
                }
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether a change whose reply was lost was not made, and never will be.
    async fn is_certainly_not_made(
        &self,
        epoch: Epoch,
        seen: &Seen<T>,
        value: &T,
    ) -> Result<bool, AtomicError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            // A server closes a session's connection before it accepts the next one. So after a
            // sync on the new connection the change is made, or never will be (section 14.6).
            if self.queue.connected(Wait::FOR_EVER).await? != epoch {
                return Ok(false);
            }
            match client.sync(path).await {
                Ok(()) => {}
                Err(error) if error.is_retryable() => {
                    pace.after(&error).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let now = self.read().await?;
            if self.queue.connected(Wait::FOR_EVER).await? != epoch {
                return Ok(false);
            }
            return Ok(match (seen.stat, now.stat) {
                (None, None) => true,
                (None, Some(now_stat)) => now_stat.version == 0 && now.value != *value,
                // Deleted since, perhaps after the change was made.
                (Some(_), None) => false,
                (Some(seen_stat), Some(now_stat)) => {
                    let is_same_znode = seen_stat.czxid == now_stat.czxid;
                    let changes = now_stat.version.wrapping_sub(seen_stat.version);
                    is_same_znode && (changes == 0 || changes == 1 && now.value != *value)
                }
            });
        }
    }
}
