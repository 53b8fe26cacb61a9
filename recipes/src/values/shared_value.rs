//! The shared value: a few bytes that processes read, set, and wait for changes of.
//!
//! Nothing runs in the background and nobody is registered with the value: whoever waits for a
//! change watches for itself, and stops when it is dropped (hazard H17).
//!
//! Source: `docs/curator-recipes.md` section 7; Curator's `SharedValue`.

use std::{
    fmt,
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Waker},
};

use minikeeper_client::{Bytes, CreateMode, Error, ErrorCode, Stat, ZnodePath, Zxid};
use parking_lot::Mutex;

use crate::{
    client::{Standing, ZooKeeper},
    error::ValueError,
    queue::{naming, pace::Pace, parents},
};

/// How often the znode or its parent may go away between being made and being used.
const ATTEMPTS_MAX: u32 = 10;

/// A value as it was at some time.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_recipes::SharedValue;
/// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
/// let before = motto.get().await?;
/// let after = motto.set(b"steadily").await?;
/// assert_eq!((before.version, after.version), (0, 1));
/// assert!(before.mzxid < after.mzxid);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VersionedValue<T> {
    /// The value.
    pub value: T,
    /// How often it had been set; may run over.
    pub version: i32,
    /// The change that set it: what values are ordered by.
    pub mzxid: Zxid,
}

impl<T> VersionedValue<T> {
    const fn new(value: T, stat: &Stat) -> Self {
        Self {
            value,
            version: stat.version,
            mzxid: stat.mzxid,
        }
    }

    /// The same with another face.
    pub(crate) fn with<U>(&self, value: U) -> VersionedValue<U> {
        VersionedValue {
            value,
            version: self.version,
            mzxid: self.mzxid,
        }
    }
}

/// A value that processes share, Java processes with Curator's class of the same name included.
///
/// It is the data of one persistent znode. Of two readings the one with the larger mzxid counts,
/// so that what this object tells never goes back.
///
/// Cheap to clone; clones know the same.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::SharedValue;
///
/// let motto = SharedValue::start(client, "/motto", b"slowly").await?;
/// let mut changes = motto.changes();
/// let before = motto.get().await?;
/// assert!(motto.try_set(&before, b"steadily").await?.is_some());
/// assert_eq!(&changes.next().await?.value[..], b"steadily");
/// // Somebody was faster than whoever still has the old one.
/// assert!(motto.try_set(&before, b"hastily").await?.is_none());
/// # Ok(()) }
/// ```
pub struct SharedValue<C: ZooKeeper> {
    shared: Arc<ValueShared<C>>,
}

struct ValueShared<C: ZooKeeper> {
    client: C,
    path: String,
    state: Mutex<ValueState<C>>,
}

struct ValueState<C: ZooKeeper> {
    current: VersionedValue<Bytes>,
    /// As long as it has not fired, `current` is what a read would give.
    watch: Option<C::Watch>,
}

impl<C: ZooKeeper> Clone for SharedValue<C> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for SharedValue<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedValue")
            .field("path", &self.shared.path)
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> SharedValue<C> {
    /// The value at this path. If there is none yet, it is made, with the seed in it; so are the
    /// directories on the way, as containers.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule, [`Error::Refused`] when a server refuses,
    /// [`Error::NotSent`] when the client is closed. A lost connection is no error: it waits for
    /// the next one.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::SharedValue;
    ///
    /// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
    /// // The second who starts finds it: its seed counts for nothing.
    /// let same = SharedValue::start(client, "/motto", b"hastily").await?;
    /// assert_eq!(&same.get().await?.value[..], b"slowly");
    /// # Ok(()) }
    /// ```
    pub async fn start(client: C, path: &str, seed: &[u8]) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let mut attempts = 0;
        let mut pace = Pace::of(&client);
        loop {
            // Both leave together; the read sees the znode, whoever has made it.
            let create = client.create(path, seed, CreateMode::Persistent, false);
            let read = client.watch_data(path);
            let missing = match create.await {
                Err(error) if error.is(ErrorCode::NoNode) => {
                    let made = parents::make(&client, naming::parent_of(path)).await;
                    match made {
                        // One of them was cleared away in between.
                        Err(error) if error.is(ErrorCode::NoNode) => pace.pause().await,
                        Err(error) => {
                            retry(&mut pace, error).await?;
                            continue;
                        }
                        Ok(()) => {}
                    }
                    error
                }
                Err(error) if !error.is(ErrorCode::NodeExists) => {
                    retry(&mut pace, error).await?;
                    continue;
                }
                _ => match read.await {
                    Ok((data, watch)) => {
                        let value = data.data.unwrap_or_default();
                        let state = ValueState {
                            current: VersionedValue::new(value, &data.stat),
                            watch: Some(watch),
                        };
                        let shared = ValueShared {
                            client,
                            path: path.to_owned(),
                            state: Mutex::new(state),
                        };
                        return Ok(Self {
                            shared: Arc::new(shared),
                        });
                    }
                    // Deleted in between.
                    Err(error) if error.is(ErrorCode::NoNode) => error,
                    Err(error) => {
                        retry(&mut pace, error).await?;
                        continue;
                    }
                },
            };
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                return Err(missing);
            }
        }
    }

    /// The value as far as this object knows it: by the last of its calls, or of anybody's who
    /// waits for changes. Asks nobody.
    #[must_use]
    pub fn current(&self) -> VersionedValue<Bytes> {
        self.shared.state.lock().current.clone()
    }

    /// The value. Asks a server only if something has changed since the last time, or if there is
    /// no connection over which it could have told of that: then it waits for one.
    ///
    /// # Errors
    /// [`ValueError::Client`] when a server refuses, as it does with [`ErrorCode::NoNode`] when the
    /// znode was deleted, or the client is closed. A lost connection is no error: it waits for the
    /// next one.
    pub async fn get(&self) -> Result<VersionedValue<Bytes>, ValueError> {
        if let Some(current) = self.shared.unchanged() {
            return Ok(current);
        }
        self.shared.refresh().await?;
        Ok(self.current())
    }

    /// Sets the value, whatever it was.
    ///
    /// # Errors
    /// [`ValueError::Client`] when a server refuses or the client is closed, and when the
    /// connection is lost meanwhile: with [`Error::OutcomeUnknown`] nobody knows whether it was
    /// set. Setting it again does no harm unless others set it too.
    pub async fn set(&self, value: &[u8]) -> Result<VersionedValue<Bytes>, ValueError> {
        let set = self.shared.client.set_data(&self.shared.path, value, None);
        Ok(self.shared.learn(value, &set.await?))
    }

    /// Sets the value if it still is what it was. `None` if it is not: somebody was faster, and
    /// [`SharedValue::current`] has what is there now.
    ///
    /// # Errors
    /// [`ValueError::Unversioned`] after 2^32 changes, and those of [`SharedValue::set`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::SharedValue;
    /// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
    /// let before = motto.get().await?;
    /// assert!(motto.try_set(&before, b"steadily").await?.is_some());
    /// // It is not any more what it was.
    /// assert!(motto.try_set(&before, b"hastily").await?.is_none());
    /// # Ok(()) }
    /// ```
    pub async fn try_set(
        &self,
        previous: &VersionedValue<Bytes>,
        value: &[u8],
    ) -> Result<Option<VersionedValue<Bytes>>, ValueError> {
        let ValueShared { client, path, .. } = &*self.shared;
        if self.current() != *previous {
            return Ok(None);
        }
        if previous.version == -1 {
            return Err(ValueError::Unversioned { path: path.clone() });
        }
        match client.set_data(path, value, Some(previous.version)).await {
            Ok(stat) => Ok(Some(self.shared.learn(value, &stat))),
            Err(error) if error.is(ErrorCode::BadVersion) => {
                self.shared.refresh().await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Every change from here on, as far as this object knows the value. Whoever is slow is not
    /// told of values that were overwritten meanwhile.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::SharedValue;
    /// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
    /// let mut changes = motto.changes();
    /// motto.set(b"steadily").await?;
    /// assert_eq!(&changes.next().await?.value[..], b"steadily");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn changes(&self) -> ValueChanges<C> {
        ValueChanges {
            seen: self.shared.state.lock().current.mzxid,
            shared: Arc::clone(&self.shared),
            watch: None,
        }
    }

    /// The path of the znode.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.shared.path
    }
}

/// A call that was not answered is made again, and waits for a connection then.
async fn retry(pace: &mut Pace, error: Error) -> Result<(), Error> {
    if !error.is_retryable() {
        return Err(error);
    }
    pace.after(&error).await;
    Ok(())
}

impl<C: ZooKeeper> ValueShared<C> {
    /// Takes in a value, if it is newer than what is known; gives it back.
    fn learn(&self, value: &[u8], stat: &Stat) -> VersionedValue<Bytes> {
        let new = VersionedValue::new(Bytes::copy_from_slice(value), stat);
        let mut state = self.state.lock();
        if new.mzxid > state.current.mzxid {
            state.current = new.clone();
        }
        new
    }

    /// What is known, if it cannot have changed without a word.
    fn unchanged(&self) -> Option<VersionedValue<Bytes>> {
        let is_connected = matches!(self.client.standing(), Standing::Connected { .. });
        let mut state = self.state.lock();
        let watch = state.watch.as_mut().filter(|_| is_connected)?;
        let mut cx = Context::from_waker(Waker::noop());
        if Pin::new(watch).poll(&mut cx).is_pending() {
            return Some(state.current.clone());
        }
        state.watch = None;
        None
    }

    /// Reads, and leaves a watch for [`ValueShared::unchanged`].
    async fn refresh(&self) -> Result<(), Error> {
        let watch = self.read().await?;
        // The one before must not go under the lock.
        let before = self.state.lock().watch.replace(watch);
        drop(before);
        Ok(())
    }

    /// Reads, and says when to read again.
    async fn read(&self) -> Result<C::Watch, Error> {
        let mut pace = Pace::of(&self.client);
        loop {
            match self.client.watch_data(&self.path).await {
                Ok((data, watch)) => {
                    self.learn(data.as_bytes(), &data.stat);
                    return Ok(watch);
                }
                Err(error) => retry(&mut pace, error).await?,
            }
        }
    }
}

/// The changes of a shared value. Made by [`SharedValue::changes`].
///
/// Watches on its own, from the first call on until it is dropped.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::SharedValue;
///
/// let motto = SharedValue::start(client, "/motto", b"slowly").await?;
/// let mut changes = motto.changes();
/// let told = tokio::spawn(async move { changes.next().await });
/// motto.set(b"steadily").await?;
/// assert_eq!(&told.await??.value[..], b"steadily");
/// # Ok(()) }
/// ```
pub struct ValueChanges<C: ZooKeeper> {
    shared: Arc<ValueShared<C>>,
    seen: Zxid,
    watch: Option<C::Watch>,
}

impl<C: ZooKeeper> ValueChanges<C> {
    /// The next value. Goes on over lost connections and sessions, which are no changes.
    ///
    /// Cancel safe: a change is either given or still to come.
    ///
    /// # Errors
    /// [`ValueError::Client`] when a server refuses, as it does with [`ErrorCode::NoNode`] when the
    /// znode was deleted, or the client is closed. The next call asks again at once.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::SharedValue;
    /// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
    /// let mut changes = motto.changes();
    /// motto.set(b"steadily").await?;
    /// assert_eq!(&changes.next().await?.value[..], b"steadily");
    /// # Ok(()) }
    /// ```
    pub async fn next(&mut self) -> Result<VersionedValue<Bytes>, ValueError> {
        loop {
            let current = self.shared.state.lock().current.clone();
            if current.mzxid > self.seen {
                self.seen = current.mzxid;
                return Ok(current);
            }
            match &mut self.watch {
                None => self.watch = Some(self.shared.read().await?),
                Some(watch) => {
                    watch.await;
                    self.watch = None;
                }
            }
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for ValueChanges<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueChanges")
            .field("path", &self.shared.path)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
