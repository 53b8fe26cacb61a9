//! The blocking locks and their guards.

use std::time::Duration;

use minikeeper_client::{Bytes, Error, Multi, MultiResult};

use crate::{
    LockError, LockOptions, Loss, MaxLeases, MultiMember, Released, Status,
    blocking::{Blocking, Client, SharedCount, errors, waits},
};

/// Defines the methods that acquire a lock: without a time limit and with one.
macro_rules! acquires {
    ($kind:ident: $acquire:ident, $timeout:ident
        ($($arg:ident: $type:ty),*) -> $got:ty, $with:expr) => {
        impl $kind {
            #[doc = concat!(
                "Like [`", stringify!($kind), "::", stringify!($acquire), "`](crate::",
                stringify!($kind), "::", stringify!($acquire), "), and waits without a time limit."
            )]
            ///
            /// # Errors
            #[doc = $crate::blocking::errors!(wait)]
            pub fn $acquire(&self, $($arg: $type),*) -> Result<$got, LockError> {
                let what = concat!(stringify!($kind), "::", stringify!($acquire));
                let got = self.session.wait(what, self.object.$acquire($($arg),*))?;
                Ok($with(self, got))
            }

            #[doc = concat!("Like [`Self::", stringify!($acquire), "`], and waits at most this long.")]
            ///
            /// # Errors
            #[doc = concat!("[`LockError::TimedOut`]; those of [`Self::", stringify!($acquire), "`].")]
            pub fn $timeout(
                &self,
                $($arg: $type,)*
                within: Duration,
            ) -> Result<$got, LockError> {
                let what = concat!(stringify!($kind), "::", stringify!($timeout));
                let acquire = self.object.$acquire($($arg),*).within(within);
                Ok($with(self, self.session.wait(what, acquire)?))
            }
        }
    };
    // And at once.
    ($kind:ident: $acquire:ident, $timeout:ident, $at_once:ident
        ($($arg:ident: $type:ty),*) -> $got:ty, $with:expr) => {
        acquires! { $kind: $acquire, $timeout($($arg: $type),*) -> $got, $with }

        impl $kind {
            #[doc = concat!(
                "Like [`Self::", stringify!($acquire), "`], without waiting for other ",
                "contenders; `None` if they do not leave what this needs."
            )]
            ///
            /// # Errors
            #[doc = concat!("Those of [`Self::", stringify!($acquire), "`].")]
            pub fn $at_once(&self, $($arg: $type),*) -> Result<Option<$got>, LockError> {
                let what = concat!(stringify!($kind), "::", stringify!($at_once));
                let acquire = self.object.$acquire($($arg),*).at_once();
                let got = self.session.wait(what, acquire)?;
                Ok(got.map(|got| $with(self, got)))
            }
        }
    };
}

pub(super) use acquires;

/// Defines the constructors of a lock.
macro_rules! locks {
    ($($kind:ident),*) => {
        $(
            impl $kind {
                /// Creates a lock at this path. Sends nothing.
                ///
                /// # Errors
                /// [`Error::Path`] if the path is invalid.
                pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
                    Self::with_options(client, path, LockOptions::default())
                }

                /// Like [`Self::new`], with these options.
                ///
                /// # Errors
                /// [`Error::Path`] if the path is invalid.
                pub fn with_options(
                    client: &Client,
                    path: &str,
                    options: LockOptions,
                ) -> Result<Self, Error> {
                    let lock = crate::$kind::with_options(client.to_async(), path, options)?;
                    Ok(client.bind(lock))
                }
            }
        )*
    };
}

/// Defines what every guard has.
macro_rules! guards {
    ($($kind:ident),*) => {
        $(
            impl $kind {
                #[doc = concat!(
                    "Like [`", stringify!($kind), "::release`](crate::", stringify!($kind),
                    "::release), and waits."
                )]
                ///
                /// # Errors
                #[doc = $crate::blocking::errors!(finish)]
                /// In each case the lock is released in the background.
                pub fn release(self) -> Result<Released, Error> {
                    let Self { object, session } = self;
                    session.finish(concat!(stringify!($kind), "::release"), object.release())
                }

                /// Waits until the lock is lost.
                ///
                /// # Errors
                /// [`Error::InRuntime`], [`Error::Interrupted`].
                pub fn lost(&self) -> Result<Loss, Error> {
                    let lost = async { Ok(self.object.lost().await) };
                    self.session.wait(concat!(stringify!($kind), "::lost"), lost)
                }
            }
        )*
    };
}

/// A lock that is held. Dropping the guard releases the lock, in the background.
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::{Loss, Status, blocking::InterProcessMutex};
///
/// let guard = InterProcessMutex::new(&client, "/locks/a")?.acquire()?;
/// assert_eq!(guard.status(), Status::Held);
/// // An operator deletes its znode.
/// client.delete(guard.path(), None)?;
/// assert_eq!(guard.lost()?, Loss::NodeDeleted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Guard = Blocking<crate::Guard>;

guards! { Guard, WriteGuard, Lease, MultiGuard }

/// Defines what the guard of a mutex has besides.
macro_rules! mutex_guards {
    ($($kind:ident),*) => {
        $(
            impl $kind {
                /// Like [`Guard::reenter`](crate::Guard::reenter).
                ///
                /// # Errors
                /// The [`Loss`] if the lock is lost.
                pub fn reenter(&self) -> Result<Guard, Loss> {
                    Ok(self.with(self.object.reenter()?))
                }

                /// Like [`Guard::unsure`](crate::Guard::unsure), and waits.
                ///
                /// # Errors
                /// [`Error::InRuntime`], [`Error::Interrupted`].
                pub fn unsure(&self) -> Result<Status, Error> {
                    let unsure = async { Ok(self.object.unsure().await) };
                    self.session.wait(concat!(stringify!($kind), "::unsure"), unsure)
                }

                /// Like [`Guard::multi`](crate::Guard::multi), and waits.
                ///
                /// # Errors
                #[doc = $crate::blocking::errors!(wait)]
                pub fn multi(
                    &self,
                    change: impl FnOnce(Multi) -> Multi,
                ) -> Result<Vec<MultiResult>, Error> {
                    let what = concat!(stringify!($kind), "::multi");
                    self.session.wait(what, self.object.multi(change))
                }
            }
        )*
    };
}

mutex_guards! { Guard, WriteGuard }

locks! { InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex }

/// A mutex between processes, compatible with Curator's; see
/// [`InterProcessMutex`](crate::InterProcessMutex).
///
/// Threads contend with each other like processes.
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let address = server.connect_string();
/// use minikeeper_recipes::blocking::{Client, InterProcessMutex};
///
/// let client = Client::connect(&address)?;
/// let printer = InterProcessMutex::new(&client, "/locks/printer")?;
/// let guard = printer.acquire()?;
/// assert!(printer.try_acquire()?.is_none());
/// guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type InterProcessMutex = Blocking<crate::InterProcessMutex>;

acquires! { InterProcessMutex: acquire, acquire_timeout, try_acquire() -> Guard, Blocking::with }

waits! { InterProcessMutex of "crate" {
    wait participants() -> Vec<String>, Error;
} }

/// Many readers or one writer, compatible with Curator's; see
/// [`InterProcessReadWriteLock`](crate::InterProcessReadWriteLock).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::InterProcessReadWriteLock;
///
/// let catalogue = InterProcessReadWriteLock::new(&client, "/locks/catalogue")?;
/// let writer = catalogue.acquire_write()?;
/// assert!(catalogue.try_acquire_read()?.is_none());
/// let reader = writer.downgrade()?;
/// let other = catalogue.acquire_read()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type InterProcessReadWriteLock = Blocking<crate::InterProcessReadWriteLock>;

acquires! { InterProcessReadWriteLock:
acquire_read, acquire_read_timeout, try_acquire_read() -> Guard, Blocking::with }
acquires! { InterProcessReadWriteLock:
acquire_write, acquire_write_timeout, try_acquire_write() -> WriteGuard, Blocking::with }

waits! { InterProcessReadWriteLock of "crate" {
    wait readers() -> Vec<String>, Error;
    wait writers() -> Vec<String>, Error;
} }

/// A lock that is held to write. Dropping the guard releases the lock, in the background.
pub type WriteGuard = Blocking<crate::WriteGuard>;

impl WriteGuard {
    /// Like [`WriteGuard::downgrade`](crate::WriteGuard::downgrade), and waits.
    ///
    /// # Errors
    #[doc = errors!(wait)]
    /// In each case the lock is released in the background.
    pub fn downgrade(self) -> Result<Guard, LockError> {
        let Self { object, session } = self;
        let object = session.wait("WriteGuard::downgrade", object.downgrade())?;
        Ok(Blocking { object, session })
    }
}

/// The lock of Java's class of the same name; see
/// [`InterProcessSemaphoreMutex`](crate::InterProcessSemaphoreMutex).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::InterProcessSemaphoreMutex;
///
/// let lock = InterProcessSemaphoreMutex::new(&client, "/locks/legacy")?;
/// let guard = lock.acquire()?;
/// assert!(lock.try_acquire()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type InterProcessSemaphoreMutex = Blocking<crate::InterProcessSemaphoreMutex>;

acquires! { InterProcessSemaphoreMutex:
acquire, acquire_timeout, try_acquire() -> Guard, Blocking::with }

/// A semaphore between processes, compatible with Curator's; see
/// [`InterProcessSemaphoreV2`](crate::InterProcessSemaphoreV2).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::blocking::{InterProcessSemaphoreV2, SharedCount};
///
/// let max = SharedCount::start(&client, "/limits/licences", 3)?;
/// let licences = InterProcessSemaphoreV2::new(&client, "/licences", &max)?;
/// let two = licences.acquire_many(2)?;
/// let one = licences.acquire()?;
/// assert!(licences.try_acquire()?.is_none());
/// one.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type InterProcessSemaphoreV2 = Blocking<crate::InterProcessSemaphoreV2>;

impl InterProcessSemaphoreV2 {
    /// Creates a semaphore at this path with this number of leases. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: &Client, path: &str, max: impl Into<MaxLeases>) -> Result<Self, Error> {
        Self::with_options(client, path, max, LockOptions::default())
    }

    /// Like [`Self::new`], with these options.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn with_options(
        client: &Client,
        path: &str,
        max: impl Into<MaxLeases>,
        options: LockOptions,
    ) -> Result<Self, Error> {
        let semaphore =
            crate::InterProcessSemaphoreV2::with_options(client.to_async(), path, max, options)?;
        Ok(client.bind(semaphore))
    }
}

acquires! { InterProcessSemaphoreV2:
acquire, acquire_timeout, try_acquire() -> Lease, Blocking::with }
acquires! { InterProcessSemaphoreV2:
acquire_many, acquire_many_timeout, try_acquire_many(wanted: u32) -> Vec<Lease>, with_each }

waits! { InterProcessSemaphoreV2 of "crate" {
    wait available() -> u32, LockError;
    wait participants() -> Vec<String>, Error;
} }

fn with_each<T, U>(one: &Blocking<T>, objects: Vec<U>) -> Vec<Blocking<U>> {
    objects.into_iter().map(|object| one.with(object)).collect()
}

impl From<&SharedCount> for MaxLeases {
    fn from(count: &SharedCount) -> Self {
        count.to_async().into()
    }
}

/// A lease of a semaphore. Dropping it returns the lease, in the background.
pub type Lease = Blocking<crate::Lease>;

waits! { Lease of "crate" {
    wait data() -> Bytes, Error;
} }

/// Several locks, all or none; see [`InterProcessMultiLock`](crate::InterProcessMultiLock).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::{
///     MultiMember,
///     blocking::{InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock},
/// };
///
/// let stock = InterProcessMutex::new(&client, "/locks/stock")?;
/// let catalogue = InterProcessReadWriteLock::new(&client, "/locks/catalogue")?;
/// let members = [(&stock).into(), MultiMember::Read(catalogue.to_async())];
/// let sale = InterProcessMultiLock::new(&client, members);
/// let guard = sale.acquire()?;
/// assert_eq!(guard.tokens().len(), 2);
/// guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type InterProcessMultiLock = Blocking<crate::InterProcessMultiLock>;

impl InterProcessMultiLock {
    /// Combines these locks, in this order.
    #[must_use]
    pub fn new(client: &Client, members: impl IntoIterator<Item = impl Into<MultiMember>>) -> Self {
        client.bind(crate::InterProcessMultiLock::new(members))
    }

    /// Combines a mutex for each path, sorted by bytes and without duplicates.
    ///
    /// # Errors
    /// [`Error::Path`] if a path is invalid.
    pub fn from_paths_sorted<P: AsRef<str>>(
        client: &Client,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, Error> {
        let lock = crate::InterProcessMultiLock::from_paths_sorted(client.to_async(), paths)?;
        Ok(client.bind(lock))
    }
}

acquires! { InterProcessMultiLock: acquire, acquire_timeout, try_acquire() -> MultiGuard, Blocking::with }

impl<T: Clone + Into<Self>> From<&Blocking<T>> for MultiMember {
    fn from(lock: &Blocking<T>) -> Self {
        lock.to_async().into()
    }
}

/// The members of a multi-lock that are held. Dropping the guard releases them, in the background.
pub type MultiGuard = Blocking<crate::MultiGuard>;
