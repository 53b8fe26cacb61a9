//! Apache Curator's lock recipes for async Rust.
//!
//! A lock taken here queues beside locks taken with Curator in Java on the same path, in the same
//! order. Beyond Curator, every guard carries a [`FencingToken`], tells its [`Status`], and says
//! when it is [`lost`](Guard::lost); and dropping a future that waits gives its place in the queue
//! back, for certain.
//!
//! # Which recipe for what
//!
//! | wanted | recipe |
//! | --- | --- |
//! | one at a time | [`InterProcessMutex`] |
//! | many readers or one writer | [`InterProcessReadWriteLock`] |
//! | at most so many at a time | [`InterProcessSemaphoreV2`]; the number may be a [`SharedCount`] |
//! | several locks, all or none | [`InterProcessMultiLock`] |
//! | one process that leads, asked from time to time | [`LeaderLatch`] |
//! | a piece of work that one process at a time does, in turn | [`LeaderSelector`] |
//! | a number that many change | [`DistributedAtomicLong`] |
//! | a setting that many read, and are told when it changes | [`SharedValue`], [`SharedCount`] |
//! | everybody waits until somebody says go | [`DistributedBarrier`] |
//! | so many begin together and end together | [`DistributedDoubleBarrier`] |
//! | a znode that says "I am here" and survives lost sessions | [`PersistentNode`] |
//! | a path that Java processes lock with `InterProcessSemaphoreMutex` | [`InterProcessSemaphoreMutex`] |
//!
//! # How to start
//!
//! In `Cargo.toml`: `minikeeper-recipes` and `minikeeper-client`, a tokio runtime, and for tests
//! `minikeeper`, which is a server.
//!
//! ```
//! use std::time::Duration;
//!
//! use minikeeper_client::Client;
//! use minikeeper_recipes::InterProcessMutex;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = minikeeper::Server::builder().start().await?;
//! # let address = server.connect_string();
//! let client = Client::connect(&address).await?; // "127.0.0.1:2181"
//! let printer = InterProcessMutex::new(client, "/locks/printer")?;
//! let guard = printer.acquire().within(Duration::from_secs(10)).await?;
//! println!("printing, with token {}", guard.token());
//! guard.release().await?; // or drop it, which does not wait
//! # Ok(()) }
//! ```
//!
//! One client serves as many recipes as there are; all of them live and die with its session. Lock
//! objects are cheap, and nothing is asked of a server before they are used.
//!
//! # When a lock is lost
//!
//! A lock is held as long as the client's session lives. When no server hears from the client for
//! the session timeout (60 s unless [set](minikeeper_client::ClientBuilder::session_timeout)), the
//! session ends and the next contender gets the lock, whatever the holder does at that time: it
//! may be paused, or cut off. So, from weak to strong:
//!
//! - [`Guard::status`] tells at any time, without asking anybody: held, suspended (no connection,
//!   and until when nobody else can have it), or lost.
//! - [`Guard::run`] drops the work when the lock is lost; [`Guard::lost`] waits for that.
//! - [`Guard::multi`] changes znodes of the same ZooKeeper only while the lock is held.
//! - [`Guard::token`] is for everything else: a resource that refuses tokens smaller than the
//!   largest it has seen is safe even from a holder that does not know yet.
//!
//! ```
//! # use minikeeper_client::Client;
//! # use minikeeper_recipes::{InterProcessMutex, Status};
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = minikeeper::Server::builder().start().await?;
//! # let client = Client::connect(&server.connect_string()).await?;
//! # let session = client.session_id().ok_or("connected")?;
//! # let lock = InterProcessMutex::new(client, "/locks/printer")?;
//! let guard = lock.acquire().await?;
//! # let print_all = async {
//! #     server.expire(session).expect("it is there");
//! #     std::future::pending::<()>().await;
//! # };
//! match guard.run(print_all).await {
//!     Ok(()) => println!("all is printed"),
//!     Err(loss) => println!("stopped in the middle: {loss:?}"),
//! }
//! # assert!(matches!(guard.status(), Status::Lost(_)));
//! # Ok(()) }
//! ```
//!
//! Getting a lock rides out lost connections: it goes on waiting at its place in the queue. After
//! a lost session it queues again, at the end. [`LockError`] is what is left.
//!
//! # How to test
//!
//! With a server inside the test, which ends sessions and cuts connections when told to; the
//! crate `minikeeper` has that:
//!
//! ```
//! use minikeeper_client::Client;
//! use minikeeper_recipes::{InterProcessMutex, Loss};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = minikeeper::Server::builder().start().await?;
//! let client = Client::connect(&server.connect_string()).await?;
//! let lock = InterProcessMutex::new(client.clone(), "/locks/printer")?;
//! let guard = lock.acquire().await?;
//! server.expire(client.session_id().ok_or("it is connected")?)?;
//! // The end of the session, or that of the lock's znode with it: whichever is heard of first.
//! let loss = guard.lost().await;
//! assert!(matches!(loss, Loss::SessionOver | Loss::NodeDeleted));
//! # Ok(()) }
//! ```
//!
//! All time here is tokio's. On a paused runtime, with connections that are not sockets, an hour
//! passes at once:
//!
//! ```
//! use std::time::Duration;
//!
//! use minikeeper_client::{Client, Connecting};
//! use minikeeper_recipes::{InterProcessMutex, LockError};
//!
//! #[tokio::main(flavor = "current_thread", start_paused = true)] // or #[tokio::test(...)]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = minikeeper::Server::builder().start().await?;
//!     let transport = move |_host: &str| -> Connecting {
//!         let (reader, writer) = tokio::io::split(server.local());
//!         Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
//!     };
//!     let client = Client::builder("in-process")?.transport(transport).connect().await?;
//!     let lock = InterProcessMutex::new(client, "/locks/printer")?;
//!     let _guard = lock.acquire().await?;
//!     let late = lock.acquire().within(Duration::from_secs(3600)).await;
//!     assert!(matches!(late, Err(LockError::TimedOut { .. })));
//!     Ok(())
//! }
//! ```
//!
//! # Moving to production
//!
//! Name the servers of an Apache ZooKeeper ensemble, and a root if it is shared:
//! `Client::connect("zk1:2181,zk2:2181,zk3:2181/app")`. Nothing else changes. Before that:
//!
//! - Choose the session timeout: longer than the pauses of your processes and networks, no longer
//!   than others may wait for the lock of one that died.
//! - Give waits an end ([`within`](Acquire::within)) where somebody waits
//!   for them.
//! - Send the token along with whatever must not be done twice.
//! - Use one recipe at a path, the same everywhere, and put nothing else into its directory: every
//!   child takes part in the queue, as it does in Java.
//! - Access lists: znodes are made open to everybody, so shield them by network or by root.
//!
//! # What is not as in Curator
//!
//! - **No thread holds a lock.** A task that acquires twice waits for itself. What may be entered
//!   again is entered as an [`Owner`]: [`as_owner`](Acquire::as_owner).
//! - **Guards.** `acquire` gives a [`Guard`], and that is released, not the lock. It may move to
//!   other tasks. Dropping it gives the lock back.
//! - **Time.** `acquire(time, unit)` is [`within`](Acquire::within) with
//!   [`LockError::TimedOut`], or [`try_acquire`](InterProcessMutex::try_acquire) with `None`.
//! - **Interrupting** is dropping the future, at any point.
//! - **Loss** is told by the guard; there is no listener to register and to forget, and no retry
//!   policy: see above.
//! - **Revoking**: a holder waits for [`Guard::revocation_requested`].
//! - **Several leases** are got at once, a [multi-lock](InterProcessMultiLock) has one deadline, a
//!   reader who wants to write is refused. These, and savings of requests, are
//!   [`LockOptions`]; [`LockOptions::curator_exact`] is Curator, request by request.
//! - **Not here**: Curator's caches, queues, group membership and service discovery.
//!
//! Java processes that use the same paths do not notice any of that.
//!
//! # For those who read the source
//!
//! | module | what is there |
//! | --- | --- |
//! | [`naming`], [`order`] | names of znodes, and who holds a lock by a list of them: pure |
//! | [`client`] | what is needed of a client, as a trait; [`minikeeper_client::Client`] has it |
//! | `queue/` | getting in, waiting, getting out |
//! | `locks/` | mutex, read/write lock, semaphore, multi-lock, and what they give |
//! | `leaders/` | latch, selector |
//! | `barriers/`, `values/` | barriers; values that processes share |
//! | [`simple`] | locks written by hand, for comparison: weak |

#![warn(clippy::missing_panics_doc)]

mod barriers;
pub mod client;
mod clock;
mod error;
mod leaders;
mod locks;
mod options;
#[cfg(feature = "planted")]
mod planted;
mod queue;
pub mod simple;
mod status;
mod values;

#[cfg(feature = "planted")]
pub use self::planted::Planted;
pub use self::{
    barriers::{
        barrier::DistributedBarrier,
        double_barrier::{DistributedDoubleBarrier, Member},
    },
    error::{AtomicError, LockError, Released, ValueError},
    leaders::{
        Participant,
        latch::{LatchError, LatchOptions, LeaderLatch},
        leadership::{ErrorPolicy, Leadership, LeadershipChanges},
        selector::{LeaderSelector, SelectorOptions, Work},
    },
    locks::{
        acquire::{Acquire, Reentrant},
        guard::Guard,
        local::LocalHandOver,
        multi_lock::{InterProcessMultiLock, MultiGuard, MultiMember},
        mutex::InterProcessMutex,
        owner::Owner,
        read_write::{InterProcessReadWriteLock, WriteGuard},
        revoke::{REVOKE, Revoker},
        semaphore::{InterProcessSemaphoreV2, Lease, MaxLeases},
        semaphore_mutex::InterProcessSemaphoreMutex,
    },
    options::LockOptions,
    queue::{naming, order},
    status::{FencingToken, Loss, Status},
    values::{
        atomic::{AtomicOptions, AtomicValue, DistributedAtomicLong, Promotion},
        persistent_node::PersistentNode,
        shared_count::{CountChanges, SharedCount},
        shared_value::{SharedValue, ValueChanges, VersionedValue},
    },
};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
