//! The blocking values that processes share.

use std::time::Duration;

use minikeeper_client::{Bytes, CreateMode, Error};

use crate::{
    AtomicData, AtomicError, AtomicNumber, AtomicOptions, AtomicValue, CacheError, GroupError,
    LockError, TtlNodeOptions, ValueError, VersionedValue,
    blocking::{Blocking, Client, changes, waits},
};

/// A number that many processes change, compatible with Curator's.
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::DistributedAtomicLong;
///
/// let orders = DistributedAtomicLong::new(&client, "/counters/orders")?;
/// assert_eq!(orders.add(1)?.current, 1);
/// assert_eq!(orders.update(|orders| orders * 10)?.current, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type DistributedAtomicLong = DistributedAtomic<i64>;

/// A 32-bit number that many processes change; see
/// [`DistributedAtomicInteger`](crate::DistributedAtomicInteger).
pub type DistributedAtomicInteger = DistributedAtomic<i32>;

/// Bytes that many processes change; see
/// [`DistributedAtomicValue`](crate::DistributedAtomicValue).
pub type DistributedAtomicValue = DistributedAtomic<Vec<u8>>;

/// A value that many processes change; see [`DistributedAtomic`](crate::DistributedAtomic).
pub type DistributedAtomic<T> = Blocking<crate::DistributedAtomic<T>>;

impl<T: AtomicData> DistributedAtomic<T> {
    /// Creates an object for the value at this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::with_options(client, path, AtomicOptions::default())
    }

    /// Like [`Self::new`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if a path is invalid.
    pub fn with_options(
        client: &Client,
        path: &str,
        options: AtomicOptions,
    ) -> Result<Self, Error> {
        let value = crate::DistributedAtomic::with_options(client.to_async(), path, options)?;
        Ok(client.bind(value))
    }
}

waits! { DistributedAtomic<T: AtomicData> of "crate" {
    wait get() -> T, AtomicError;
    wait initialize(value: impl Into<T> + Send) -> bool, AtomicError;
    wait set(value: impl Into<T> + Send) -> AtomicValue<T>, AtomicError;
    wait compare_and_set(
        expected: impl Into<T> + Send,
        value: impl Into<T> + Send
    ) -> Option<AtomicValue<T>>, AtomicError;
    wait update(change: impl Fn(T) -> T + Send + Sync) -> AtomicValue<T>, AtomicError;
} }

waits! { DistributedAtomic<T: AtomicNumber> of "crate" {
    wait add(number: T) -> AtomicValue<T>, AtomicError;
} }

/// A counter that hands out unique numbers from blocks that it reserves; see
/// [`CachedAtomicLong`](crate::CachedAtomicLong).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::{CachedAtomicLong, DistributedAtomicLong};
///
/// let ids = DistributedAtomicLong::new(&client, "/counters/ids")?;
/// let ids = CachedAtomicLong::new(&ids, 100);
/// assert_eq!(ids.next()?.previous, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CachedAtomicLong = Blocking<crate::CachedAtomicLong>;

impl CachedAtomicLong {
    /// Hands out numbers of this counter, and reserves so many at once; 0 counts as 1.
    #[must_use]
    pub fn new(counter: &DistributedAtomicLong, block_length: u32) -> Self {
        counter.with(crate::CachedAtomicLong::new(
            counter.to_async(),
            block_length,
        ))
    }
}

waits! { CachedAtomicLong of "crate" {
    wait next() -> AtomicValue, AtomicError;
} }

/// A value that many processes read and watch, compatible with Curator's; see
/// [`SharedValue`](crate::SharedValue).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::SharedValue;
///
/// let motto = SharedValue::start(&client, "/motto", b"slowly")?;
/// let mut changes = motto.changes();
/// motto.set(b"steadily")?;
/// assert_eq!(&changes.next()?.value[..], b"steadily");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SharedValue = Blocking<crate::SharedValue>;

/// A stream of changes of a shared value. Returned by [`SharedValue::changes`].
pub type ValueChanges = Blocking<crate::ValueChanges>;

/// A number that many processes read and watch, compatible with Curator's; see
/// [`SharedCount`](crate::SharedCount).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::SharedCount;
///
/// let limit = SharedCount::start(&client, "/limits/workers", 3)?;
/// limit.set(5)?;
/// assert_eq!(limit.get()?.value, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SharedCount = Blocking<crate::SharedCount>;

/// A stream of changes of a shared count. Returned by [`SharedCount::changes`].
pub type CountChanges = Blocking<crate::CountChanges>;

/// Defines what shared values and counts have.
macro_rules! shared {
    ($kind:ident, $changes:ident, $given:ty, $read:ty) => {
        impl $kind {
            #[doc = concat!(
                        "Like [`", stringify!($kind), "::start`](crate::", stringify!($kind),
                        "::start), and waits."
                    )]
            ///
            /// # Errors
            #[doc = $crate::blocking::errors!(wait)]
            pub fn start(client: &Client, path: &str, seed: $given) -> Result<Self, Error> {
                let start = async { crate::$kind::start(client.to_async(), path, seed).await };
                let what = concat!(stringify!($kind), "::start");
                Ok(client.bind(client.session.wait(what, start)?))
            }

            /// Returns a stream of later changes. It skips values that are overwritten before the
            /// caller reads them.
            #[must_use]
            pub fn changes(&self) -> $changes {
                self.with(self.object.changes())
            }
        }

        waits! { $kind of "crate" {
            wait get() -> VersionedValue<$read>, ValueError;
            wait set(value: $given) -> VersionedValue<$read>, ValueError;
            wait try_set(
                previous: &VersionedValue<$read>,
                value: $given
            ) -> Option<VersionedValue<$read>>, ValueError;
        } }

        changes! { $changes: VersionedValue<$read>, ValueError }
    };
}

shared!(SharedValue, ValueChanges, &[u8], Bytes);
shared!(SharedCount, CountChanges, i32, i32);

/// A znode that is created again after a lost session, compatible with Curator's; see
/// [`PersistentNode`](crate::PersistentNode).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_client::CreateMode;
/// use minikeeper_recipes::blocking::PersistentNode;
///
/// let mode = CreateMode::Ephemeral;
/// let here = PersistentNode::start(&client, "/workers/7", b"10.0.0.7", mode)?;
/// assert_eq!(here.created()?.as_deref(), Some("/workers/7"));
/// here.close()?;
/// assert!(client.exists("/workers/7")?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PersistentNode = Blocking<crate::PersistentNode>;

impl PersistentNode {
    /// Starts to keep a znode at this path. Servers refuse modes with a time to live.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn start(
        client: &Client,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<Self, Error> {
        let start = async { crate::PersistentNode::start(client.to_async(), path, data, mode) };
        let node = client.session.wait("PersistentNode::start", start)?;
        client.session.outlive(node.ended());
        Ok(client.bind(node))
    }
}

waits! { PersistentNode of "crate" {
    wait created() -> Option<String>, LockError;
    wait updated() -> Option<String>, LockError;
    finish close() -> (), LockError;
} }

/// A znode with a time to live that is touched as long as this exists, compatible with Curator's; see
/// [`PersistentTtlNode`](crate::PersistentTtlNode).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use std::time::Duration;
///
/// use minikeeper_recipes::blocking::PersistentTtlNode;
///
/// let job = PersistentTtlNode::start(&client, "/jobs/7", b"running", Duration::from_secs(60))?;
/// job.created()?;
/// assert!(job.is_present());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PersistentTtlNode = Blocking<crate::PersistentTtlNode>;

impl PersistentTtlNode {
    /// Starts to keep a znode at this path.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::TimeToLive`], [`Error::InRuntime`],
    /// [`Error::Interrupted`].
    pub fn start(client: &Client, path: &str, data: &[u8], ttl: Duration) -> Result<Self, Error> {
        Self::start_with(client, path, data, ttl, TtlNodeOptions::default())
    }

    /// Like [`Self::start`], with these options.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn start_with(
        client: &Client,
        path: &str,
        data: &[u8],
        ttl: Duration,
        options: TtlNodeOptions,
    ) -> Result<Self, Error> {
        let start = async {
            let client = client.to_async();
            crate::PersistentTtlNode::start_with(client, path, data, ttl, options)
        };
        let node = client.session.wait("PersistentTtlNode::start", start)?;
        Ok(client.bind(node))
    }
}

waits! { PersistentTtlNode of "crate" {
    wait created() -> (), LockError;
} }

/// A member of a group, which sees the other members, compatible with Curator's; see
/// [`GroupMember`](crate::GroupMember).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::GroupMember;
///
/// let member = GroupMember::start(&client, "/workers", "host 7", b"10.0.0.7:8080")?;
/// member.joined()?;
/// for (id, payload) in member.members() {
///     println!("{id} is at {}", String::from_utf8_lossy(&payload));
/// }
/// member.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type GroupMember = Blocking<crate::GroupMember>;

impl GroupMember {
    /// Joins the group in this directory, with an id that is the name of a znode.
    ///
    /// # Errors
    /// [`Error::Path`] if the directory or the id is invalid, [`Error::InRuntime`],
    /// [`Error::Interrupted`].
    pub fn start(
        client: &Client,
        directory: &str,
        id: &str,
        payload: &[u8],
    ) -> Result<Self, Error> {
        let start = async { crate::GroupMember::start(client.to_async(), directory, id, payload) };
        let member = client.session.wait("GroupMember::start", start)?;
        Ok(client.bind(member))
    }

    /// Returns a stream of changes of the group.
    #[must_use]
    pub fn changes(&self) -> GroupChanges {
        self.with(self.object.changes())
    }
}

waits! { GroupMember of "crate" {
    wait joined() -> (), GroupError;
    finish close() -> (), LockError;
} }

/// A stream of changes of a group. Returned by [`GroupMember::changes`].
pub type GroupChanges = Blocking<crate::GroupChanges>;

changes! { GroupChanges: Option<String>, CacheError }
