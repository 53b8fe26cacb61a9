//! The blocking locks and their guards.

use std::time::Duration;

use minikeeper_client::{Client as AsyncClient, Error, Multi, MultiResult};

use crate::{
    LockError, LockOptions, Loss, Released, Status,
    blocking::{Blocking, Client, waits},
};

/// Defines the three methods that acquire a lock: without a time limit, with one, and at once.
macro_rules! acquires {
    ($kind:ident: $acquire:ident, $timeout:ident, $at_once:ident
        ($($arg:ident: $type:ty),*) -> $guard:ty, $wrap:expr) => {
        impl $kind {
            #[doc = concat!(
                "Like [`", stringify!($kind), "::", stringify!($acquire), "`](crate::",
                stringify!($kind), "::", stringify!($acquire), "), and waits without a time limit."
            )]
            ///
            /// # Errors
            #[doc = $crate::blocking::errors!(wait)]
            pub fn $acquire(&self, $($arg: $type),*) -> Result<$guard, LockError> {
                let what = concat!(stringify!($kind), "::", stringify!($acquire));
                let done = self.session.wait(what, self.object.$acquire($($arg),*))?;
                Ok($wrap(self, done))
            }

            #[doc = concat!("Like [`Self::", stringify!($acquire), "`], and waits at most this long.")]
            ///
            /// # Errors
            #[doc = concat!("[`LockError::TimedOut`]; those of [`Self::", stringify!($acquire), "`].")]
            pub fn $timeout(
                &self,
                $($arg: $type,)*
                within: Duration,
            ) -> Result<$guard, LockError> {
                let what = concat!(stringify!($kind), "::", stringify!($timeout));
                let acquire = self.object.$acquire($($arg),*).within(within);
                let done = self.session.wait(what, acquire)?;
                Ok($wrap(self, done))
            }

            #[doc = concat!(
                "Like [`Self::", stringify!($acquire), "`], without waiting for other contenders; ",
                "`None` if they hold it."
            )]
            ///
            /// # Errors
            #[doc = concat!("Those of [`Self::", stringify!($acquire), "`].")]
            pub fn $at_once(&self, $($arg: $type),*) -> Result<Option<$guard>, LockError> {
                match self.$timeout($($arg,)* Duration::ZERO) {
                    Err(LockError::TimedOut { .. }) => Ok(None),
                    other => other.map(Some),
                }
            }
        }
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
pub type Guard = Blocking<crate::Guard<AsyncClient>>;

guards! { Guard }

impl Guard {
    /// Like [`Guard::reenter`](crate::Guard::reenter).
    ///
    /// # Errors
    /// The [`Loss`] if the lock is lost.
    pub fn reenter(&self) -> Result<Self, Loss> {
        Ok(self.with(self.object.reenter()?))
    }

    /// Like [`Guard::unsure`](crate::Guard::unsure), and waits.
    ///
    /// # Errors
    /// [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn unsure(&self) -> Result<Status, Error> {
        let unsure = async { Ok(self.object.unsure().await) };
        self.session.wait("Guard::unsure", unsure)
    }
}

waits! { Guard of "crate" {
    wait multi(change: impl FnOnce(Multi) -> Multi) -> Vec<MultiResult>, Error;
} }

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
pub type InterProcessMutex = Blocking<crate::InterProcessMutex<AsyncClient>>;

impl InterProcessMutex {
    /// Creates a mutex at this path. Sends nothing.
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
    pub fn with_options(client: &Client, path: &str, options: LockOptions) -> Result<Self, Error> {
        let lock = crate::InterProcessMutex::with_options(client.to_async(), path, options)?;
        Ok(client.bind(lock))
    }
}

acquires! { InterProcessMutex: acquire, acquire_timeout, try_acquire() -> Guard, Blocking::with }

waits! { InterProcessMutex of "crate" {
    wait participants() -> Vec<String>, Error;
} }
