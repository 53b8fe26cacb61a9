//! The recipes for programs without a runtime: every call blocks its thread until it is done.
//!
//! Each type is the async type of the same name with methods that wait. It dereferences to that
//! type, whose methods that send nothing, such as [`Guard::token`](crate::Guard::token), are its
//! methods too. Contenders of both kinds queue together.
//!
//! - **Threads.** A [`Client`] has one thread of its own, on which its session is kept alive and
//!   background work is done, also while no call is made. All objects are `Send` and `Sync`.
//! - **The end of the session.** It is open until the client and everything that was made with it
//!   are dropped, guards included, or until [`Client::close`]. The last drop waits until the session
//!   has ended, at most for [`close_wait`](minikeeper_client::ClientBuilder::close_wait) (1 s). If a
//!   dropped [`PersistentNode`] has a znode to delete, it first waits for that, as long again.
//! - **Guards.** Dropping one releases the lock in the background.
//! - **Interrupting.** An [`Interrupt`] ends waits from another thread. [`Client::close`] ends them
//!   too, with an error of class [`Closed`](minikeeper_client::ErrorClass::Closed).
//! - **In a runtime.** On a thread of a tokio runtime calls fail with [`Error::InRuntime`], and a
//!   drop does not wait. That includes `spawn_blocking`; call `Handle::block_on` with the async type
//!   there.
//! - **fork and exit.** A child process of `fork` does not have the thread: connect after the fork.
//!   [`std::process::exit`] drops nothing, so locks stay until the session timeout: close the client
//!   before.
//! - **Anything else.** [`Client::wait`] waits for any future, such as those of async types that have
//!   no blocking form; [`Client::bind`] makes a blocking object of an async one.
//!
//! # Examples
//! ```
//! # let server = minikeeper::blocking::Server::builder().start()?;
//! # let address = server.connect_string();
//! use std::time::Duration;
//!
//! use minikeeper_recipes::blocking::{Client, InterProcessMutex};
//!
//! let client = Client::connect(&address)?; // "127.0.0.1:2181"
//! let printer = InterProcessMutex::new(&client, "/locks/printer")?;
//! let guard = printer.acquire_timeout(Duration::from_secs(10))?;
//! println!("printing, with token {}", guard.token());
//! guard.release()?; // or drop it, which does not wait
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod barriers;
mod caches;
mod client;
#[cfg(feature = "discovery")]
mod discovery;
mod leaders;
mod locks;
mod session;
mod values;

use std::ops::Deref;

#[cfg(doc)]
use minikeeper_client::Error;

#[cfg(feature = "discovery")]
pub use self::discovery::*;
use self::session::Session;
pub use self::{
    barriers::*, caches::*, client::*, leaders::*, locks::*, session::Interrupt, values::*,
};

/// An async object with methods that wait. It keeps the client's session open.
///
/// Its methods depend on the object, see the names for them in this [module](self).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let address = server.connect_string();
/// use minikeeper_recipes::{InterProcessMutex, Owner, blocking::Client};
///
/// let client = Client::connect(&address)?;
/// // What the blocking types lack is a call of the async ones.
/// let lock = InterProcessMutex::new(client.to_async(), "/locks/a")?;
/// let owner = Owner::new();
/// let guard = client.bind(client.wait(lock.acquire().as_owner(&owner))?);
/// guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Blocking<T> {
    // Dropped first: it may still need the session.
    object: T,
    session: Session,
}

/// Gives access to the methods of the async object.
impl<T> Deref for Blocking<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T> Blocking<T> {
    /// Returns the async object. It does not keep the session open.
    #[must_use]
    pub fn to_async(&self) -> T
    where
        T: Clone,
    {
        self.object.clone()
    }

    /// Makes a blocking object of another one, in the same session.
    fn with<U>(&self, object: U) -> Blocking<U> {
        Blocking {
            object,
            session: self.session.clone(),
        }
    }
}

/// Defines methods that wait like those of the async type with the same names and parameters.
/// `finish` instead of `wait`: they cannot be interrupted. `=> with`: the result is a blocking object.
macro_rules! waits {
    ($kind:ident $(<$free:ident: $bound:path>)? of $home:literal {
        $($wait:ident $name:ident(
            $($arg:ident: $type:ty),*
        ) -> $done:ty, $error:ty $(=> $with:ident)?;)*
    }) => {
        impl $(<$free: $bound>)? $kind $(<$free>)? {
            $(
                #[doc = concat!(
                    "Like [`", stringify!($kind), "::", stringify!($name), "`](", $home, "::",
                    stringify!($kind), "::", stringify!($name), "), and waits."
                )]
                ///
                /// # Errors
                #[doc = $crate::blocking::errors!($wait)]
                pub fn $name(&self, $($arg: $type),*) -> Result<$done, $error> {
                    let what = concat!(stringify!($kind), "::", stringify!($name));
                    // The call is made within the future: an async client sends when it is called.
                    let call = async { self.object.$name($($arg),*).await };
                    let done = self.session.$wait(what, call);
                    $(let done = done.map(|done| self.$with(done));)?
                    done
                }
            )*
        }
    };
}

/// Defines `next` of a stream of changes.
macro_rules! changes {
    ($changes:ident $(<$free:ident: $bound:path>)?: $change:ty, $error:ty) => {
        impl $(<$free: $bound>)? $changes $(<$free>)? {
            #[doc = concat!(
                "Like [`", stringify!($changes), "::next`](crate::", stringify!($changes),
                "::next), and waits."
            )]
            ///
            /// # Errors
            #[doc = $crate::blocking::errors!(wait)]
            #[expect(
                clippy::should_implement_trait,
                reason = "it is no iterator: it can fail"
            )]
            pub fn next(&mut self) -> Result<$change, $error> {
                let what = concat!(stringify!($changes), "::next");
                self.session.wait(what, async { self.object.next().await })
            }
        }
    };
}

/// The errors that waiting adds to those of the async method.
macro_rules! errors {
    (wait) => {
        "Those of the async method, [`Error::InRuntime`](minikeeper_client::Error::InRuntime), \
         [`Error::Interrupted`](minikeeper_client::Error::Interrupted)."
    };
    (finish) => {
        "Those of the async method, [`Error::InRuntime`](minikeeper_client::Error::InRuntime). It \
         cannot be interrupted."
    };
}

use {changes, errors, waits};
