//! The shared value: a few bytes that processes read, set and watch.
//!
//! Nothing runs in the background, and the value keeps no list of listeners. Each stream of changes
//! has its own watch until it is dropped (hazard H17).
//!
//! Source: `docs/curator-recipes.md` section 7; Curator's `SharedValue`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Waker},
};

use minikeeper_client::{
    Bytes, Client, CreateMode, Error, ErrorCode, OneShot, Stat, ZnodePath, Zxid,
};
use parking_lot::Mutex;

use crate::{
    call_limit::CallLimit,
    client::{Standing, reconnected},
    error::ValueError,
    queue::{naming, pace::Pace, parents},
};

/// How often the znode or its parent may be deleted between its creation and its use.
const ATTEMPTS_MAX: u32 = 10;

/// A value, and the version of the znode when it was read.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_recipes::SharedValue;
/// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
/// let before = motto.get().await?;
/// let after = motto.set(b"steadily").await?;
/// assert_eq!((before.version, after.version), (0, 1));
/// assert!(before.mzxid < after.mzxid);
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VersionedValue<T> {
    /// The value.
    pub value: T,
    /// The znode's version, which counts how often it was set; it may wrap around.
    pub version: i32,
    /// The zxid of the change that set the value. It orders the values, unless the server goes back to
    /// an older state.
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

    /// Returns another value with the same version.
    pub(crate) fn with<U>(&self, value: U) -> VersionedValue<U> {
        VersionedValue {
            value,
            version: self.version,
            mzxid: self.mzxid,
        }
    }
}

/// A value that processes share, compatible with Curator's class of the same name in Java.
///
/// It is the data of one persistent znode. Of two replies this object keeps the one to the later
/// request, so it goes back to an older value only if the server does: after a restored snapshot, for
/// example.
///
/// Cheap to clone. Clones share the last known value.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::SharedValue;
///
/// let motto = SharedValue::start(client, "/motto", b"slowly").await?;
/// let mut changes = motto.changes();
/// let before = motto.get().await?;
/// assert!(motto.try_set(&before, b"steadily").await?.is_some());
/// assert_eq!(&changes.next().await?.value[..], b"steadily");
/// // The value has changed since `before`.
/// assert!(motto.try_set(&before, b"hastily").await?.is_none());
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct SharedValue {
    shared: Arc<ValueShared>,
}

struct ValueShared {
    client: Client,
    path: String,
    state: Mutex<ValueState>,
}

struct ValueState {
    current: VersionedValue<Bytes>,
    /// The request that has returned `current`.
    origin: Asked,
    /// How many requests were made. A client sends them in this order, and the replies show states in
    /// this order.
    requests: u64,
    /// While it has not fired and the connection is the same, a read would return `current`.
    watch: Option<(Asked, OneShot)>,
}

/// A request for the value, or for its change.
#[derive(Clone, Copy)]
struct Asked {
    /// Its number, from 1.
    number: u64,
    /// The number of connections when it was made.
    connections: u64,
}

impl fmt::Debug for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedValue")
            .field("path", &self.shared.path)
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}

impl SharedValue {
    /// Reads the value at this path, and creates it with the seed if it is missing. Missing
    /// directories are created as containers.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a request: the znode may have been created.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::Refused`] when a server refuses,
    /// [`Error::NotSent`] when the client is closed. A lost connection is not an error: it waits
    /// for the next connection.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_recipes::SharedValue;
    ///
    /// let motto = SharedValue::start(client.clone(), "/motto", b"slowly").await?;
    /// // The value exists now, so the second seed is ignored.
    /// let same = SharedValue::start(client, "/motto", b"hastily").await?;
    /// assert_eq!(&same.get().await?.value[..], b"slowly");
    /// # Ok(()) });
    /// ```
    pub async fn start(client: Client, path: &str, seed: &[u8]) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        let limit = CallLimit::change(&client, "start", path);
        limit.run(Self::begin(client.clone(), path, seed)).await
    }

    async fn begin(client: Client, path: &str, seed: &[u8]) -> Result<Self, Error> {
        let mut attempts = 0;
        let mut pace = Pace::of(&client);
        loop {
            let asked = Asked {
                number: 1,
                connections: client.connections(),
            };
            // Both leave together. The read sees the znode, even if another client has created it.
            let create = client.create(path, seed, CreateMode::Persistent);
            let read = client.get_data_and_watch(path);
            let missing = match create.await {
                Err(error) if error.is(ErrorCode::NoNode) => {
                    let made = parents::make(&client, naming::parent_of(path)).await;
                    match made {
                        Ok(parents::Made::Directories) => {}
                        Ok(parents::Made::Interrupted) => pace.pause().await,
                        Err(error) => {
                            retry(&mut pace, error).await?;
                            continue;
                        }
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
                            origin: asked,
                            requests: asked.number,
                            watch: Some((asked, watch)),
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

    /// Returns the value that this object, its clones or its streams of changes read last, without
    /// a request.
    #[must_use]
    pub fn current(&self) -> VersionedValue<Bytes> {
        self.shared.state.lock().current.clone()
    }

    /// Returns the value. Reads it from a server only if it may have changed since the last read:
    /// its watch has fired, or the connection was lost. Waits for a connection.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`ValueError::Client`] when a server refuses, as it does with [`ErrorCode::NoNode`] when the
    /// znode was deleted, or the client is closed. A lost connection is not an error: it waits for
    /// the next connection.
    /// [`ValueError::Client`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn get(&self) -> Result<VersionedValue<Bytes>, ValueError> {
        let limit = CallLimit::read(&self.shared.client, "get", &self.shared.path);
        limit.run(self.fresh()).await
    }

    /// Like [`SharedValue::get`], without a limit.
    pub(crate) async fn fresh(&self) -> Result<VersionedValue<Bytes>, ValueError> {
        if let Some(current) = self.shared.unchanged() {
            return Ok(current);
        }
        self.shared.refresh().await?;
        Ok(self.current())
    }

    /// Sets the value unconditionally.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a request: the value may have been set.
    ///
    /// # Errors
    /// [`ValueError::Client`] when a server refuses, the client is closed or the connection is
    /// lost. With [`Error::OutcomeUnknown`] the value may have been set. A retry does no harm
    /// unless other clients set it too.
    /// [`ValueError::Client`] with [`Error::CallTimedOut`] after the client's
    /// [`call_timeout`](Client::call_timeout).
    pub async fn set(&self, value: &[u8]) -> Result<VersionedValue<Bytes>, ValueError> {
        let ValueShared { client, path, .. } = &*self.shared;
        let (asked, set) = self.shared.ask(|| client.set_data(path, value, None));
        let stat = CallLimit::change(client, "set", path).run(set).await?;
        Ok(self.shared.learn(asked, value, &stat))
    }

    /// Sets the value if it has not changed since `previous` was read. `None` if it has:
    /// [`SharedValue::current`] then returns the new value.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall a request: the value may have been set.
    ///
    /// # Errors
    /// [`ValueError::Unversioned`] if the version has wrapped around to -1, and those of
    /// [`SharedValue::set`].
    pub async fn try_set(
        &self,
        previous: &VersionedValue<Bytes>,
        value: &[u8],
    ) -> Result<Option<VersionedValue<Bytes>>, ValueError> {
        let ValueShared { client, path, .. } = &*self.shared;
        let set = async {
            // An older state of the server may have another value of the same version.
            if self.shared.is_of_earlier_connection() {
                self.shared.refresh().await?;
            }
            if self.current() != *previous {
                return Ok(None);
            }
            if previous.version == -1 {
                return Err(ValueError::Unversioned { path: path.clone() });
            }
            let set = || client.set_data(path, value, Some(previous.version));
            let (asked, set) = self.shared.ask(set);
            match set.await {
                Ok(stat) => Ok(Some(self.shared.learn(asked, value, &stat))),
                Err(error) if error.is(ErrorCode::BadVersion) => {
                    self.shared.refresh().await?;
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        };
        CallLimit::change(client, "try_set", path).run(set).await
    }

    /// Returns a stream of the changes after the last known value. It skips values that are
    /// overwritten before the caller reads them.
    #[must_use]
    pub fn changes(&self) -> ValueChanges {
        ValueChanges {
            seen: self.current(),
            shared: Arc::clone(&self.shared),
            watch: None,
            is_stale: false,
        }
    }

    /// Returns the path of the znode.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.shared.path
    }
}

/// Waits before a retry; returns the error if a retry cannot help.
async fn retry(pace: &mut Pace, error: Error) -> Result<(), Error> {
    if !error.is_retryable() {
        return Err(error);
    }
    pace.after(&error).await;
    Ok(())
}

impl ValueShared {
    /// Makes a request, and numbers it.
    fn ask<F: Future>(&self, request: impl FnOnce() -> F) -> (Asked, F) {
        // Locked until the request is made: so the numbers have the order of the requests.
        let mut state = self.state.lock();
        state.requests += 1;
        let asked = Asked {
            number: state.requests,
            connections: self.client.connections(),
        };
        (asked, request())
    }

    /// Keeps a value unless a later request has returned another, and returns it.
    fn learn(&self, asked: Asked, value: &[u8], stat: &Stat) -> VersionedValue<Bytes> {
        let new = VersionedValue::new(Bytes::copy_from_slice(value), stat);
        let mut state = self.state.lock();
        if asked.number > state.origin.number {
            state.origin = asked;
            state.current = new.clone();
        }
        new
    }

    /// Returns whether the last known value was read on an earlier connection.
    fn is_of_earlier_connection(&self) -> bool {
        self.state.lock().origin.connections != self.client.connections()
    }

    /// Returns the last known value if it is certain that it has not changed.
    fn unchanged(&self) -> Option<VersionedValue<Bytes>> {
        let is_connected = matches!(Standing::of(&self.client), Standing::Connected { .. });
        let connections = self.client.connections();
        let mut state = self.state.lock();
        let (asked, watch) = state.watch.as_mut().filter(|_| is_connected)?;
        if asked.connections != connections {
            return None;
        }
        let mut cx = Context::from_waker(Waker::noop());
        if Pin::new(watch).poll(&mut cx).is_pending() {
            return Some(state.current.clone());
        }
        state.watch = None;
        None
    }

    /// Reads the value, and keeps the watch for [`ValueShared::unchanged`].
    async fn refresh(&self) -> Result<(), Error> {
        let watch = self.read().await?;
        // The old watch is dropped after the lock is released.
        let before = self.state.lock().watch.replace(watch);
        drop(before);
        Ok(())
    }

    /// Reads the value, and returns its watch.
    async fn read(&self) -> Result<(Asked, OneShot), Error> {
        let mut pace = Pace::of(&self.client);
        loop {
            let (asked, read) = self.ask(|| self.client.get_data_and_watch(&self.path));
            match read.await {
                Ok((data, watch)) => {
                    self.learn(asked, data.as_bytes(), &data.stat);
                    return Ok((asked, watch));
                }
                Err(error) => retry(&mut pace, error).await?,
            }
        }
    }
}

/// A stream of changes of a shared value. Returned by [`SharedValue::changes`].
///
/// It has its own watch from the first call until it is dropped.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::SharedValue;
///
/// let motto = SharedValue::start(client, "/motto", b"slowly").await?;
/// let mut changes = motto.changes();
/// let waiting = tokio::spawn(async move { changes.next().await });
/// motto.set(b"steadily").await?;
/// assert_eq!(&waiting.await??.value[..], b"steadily");
/// # Ok(()) });
/// ```
pub struct ValueChanges {
    shared: Arc<ValueShared>,
    seen: VersionedValue<Bytes>,
    watch: Option<(Asked, OneShot)>,
    /// Whether the value may have changed since the watch was set.
    is_stale: bool,
}

impl ValueChanges {
    /// Waits for the next value. Lost connections and sessions do not end the wait, and are no
    /// changes.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// [`ValueError::Client`] when a server refuses, as it does with [`ErrorCode::NoNode`] when the
    /// znode was deleted, or the client is closed. The next call retries.
    pub async fn next(&mut self) -> Result<VersionedValue<Bytes>, ValueError> {
        loop {
            let current = self.shared.state.lock().current.clone();
            if current != self.seen {
                self.seen = current.clone();
                return Ok(current);
            }
            match &mut self.watch {
                Some((asked, watch)) if !self.is_stale => tokio::select! {
                    biased;
                    _ = watch => {}
                    () = reconnected(&self.shared.client, asked.connections) => {}
                },
                _ => {
                    // The old watch is dropped now: the server keeps the new one.
                    self.watch = Some(self.shared.read().await?);
                    self.is_stale = false;
                    continue;
                }
            }
            self.is_stale = true;
        }
    }
}

impl fmt::Debug for ValueChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueChanges")
            .field("path", &self.shared.path)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
