//! The blocking barriers.

use std::time::Duration;

use minikeeper_client::Error;

use crate::{
    LockError,
    blocking::{Blocking, Client, errors, locks::acquires, waits},
};

/// A barrier at which processes wait for a signal, compatible with Curator's; see
/// [`DistributedBarrier`](crate::DistributedBarrier).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use std::thread;
///
/// use minikeeper_recipes::blocking::DistributedBarrier;
///
/// let barrier = DistributedBarrier::new(&client, "/barriers/start")?;
/// barrier.set()?;
/// thread::scope(|scope| {
///     let waiting = scope.spawn(|| barrier.wait());
///     barrier.remove()?;
///     waiting.join().expect("no panic")
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type DistributedBarrier = Blocking<crate::DistributedBarrier>;

impl DistributedBarrier {
    /// Creates a barrier object for this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(client.bind(crate::DistributedBarrier::new(client.to_async(), path)?))
    }
}

waits! { DistributedBarrier of "crate" {
    wait set() -> bool, LockError;
    wait remove() -> bool, LockError;
} }

acquires! { DistributedBarrier: wait, wait_timeout() -> (), no_object }

fn no_object<T>(_: &T, (): ()) {}

/// A barrier that N processes enter and leave together, compatible with Curator's; see
/// [`DistributedDoubleBarrier`](crate::DistributedDoubleBarrier).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use std::thread;
///
/// use minikeeper_recipes::blocking::DistributedDoubleBarrier;
///
/// let barrier = DistributedDoubleBarrier::new(&client, "/barriers/round", 2)?;
/// thread::scope(|scope| {
///     let other = scope.spawn(|| barrier.enter()?.leave());
///     barrier.enter()?.leave()?;
///     other.join().expect("no panic")
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type DistributedDoubleBarrier = Blocking<crate::DistributedDoubleBarrier>;

impl DistributedDoubleBarrier {
    /// Creates a barrier object for this path and number of members. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: &Client, path: &str, members: usize) -> Result<Self, Error> {
        let barrier = crate::DistributedDoubleBarrier::new(client.to_async(), path, members)?;
        Ok(client.bind(barrier))
    }
}

acquires! { DistributedDoubleBarrier: enter, enter_timeout() -> Member, Blocking::with }

/// A member of a double barrier. Dropping it removes the member, in the background.
pub type Member = Blocking<crate::Member>;

impl Member {
    /// Like [`Member::leave`](crate::Member::leave), and waits without a time limit.
    ///
    /// # Errors
    #[doc = errors!(wait)]
    /// The member is removed in each case.
    pub fn leave(self) -> Result<(), LockError> {
        let Self { object, session } = self;
        session.wait("Member::leave", object.leave())
    }

    /// Like [`Self::leave`], and waits at most this long.
    ///
    /// # Errors
    /// [`LockError::TimedOut`]; those of [`Self::leave`]. The member is removed in each case.
    pub fn leave_timeout(self, within: Duration) -> Result<(), LockError> {
        let Self { object, session } = self;
        session.wait("Member::leave_timeout", object.leave().within(within))
    }
}
