//! Apache Curator's lock recipes for async Rust.
//!
//! Contenders share the queue with Curator's in Java on the same path, in the same order. Beyond
//! Curator, every guard carries a [`FencingToken`], reports its [`Status`] and the moment when it
//! is [`lost`](Guard::lost). Dropping a waiting future always deletes its znode from the queue.
//!
//! # Choosing a recipe
//!
//! | need | recipe |
//! | --- | --- |
//! | one holder at a time | [`InterProcessMutex`] |
//! | many readers or one writer | [`InterProcessReadWriteLock`] |
//! | at most N holders at a time | [`InterProcessSemaphoreV2`]; N may be a [`SharedCount`] |
//! | several locks, all or none | [`InterProcessMultiLock`] |
//! | one process that leads until it ends | [`LeaderLatch`] |
//! | work that one process at a time does, in turn | [`LeaderSelector`] |
//! | a number that many processes change | [`DistributedAtomicLong`], [`DistributedAtomicInteger`] |
//! | unique numbers, with few requests | [`CachedAtomicLong`] |
//! | bytes, or a type of your own, that many processes change | [`DistributedAtomicValue`], [`DistributedAtomic`] |
//! | a setting that many processes read and watch | [`SharedValue`], [`SharedCount`] |
//! | processes that wait for a signal from another one | [`DistributedBarrier`] |
//! | N processes that begin and end together | [`DistributedDoubleBarrier`] |
//! | a znode that announces a process and survives lost sessions | [`PersistentNode`] |
//! | the same, and the others that do so | [`GroupMember`] |
//! | a znode that also survives restarts of its process | [`PersistentTtlNode`] |
//! | a copy of a tree in memory that follows the server's | [`CuratorCache`]; as views [`PathChildrenCache`], [`NodeCache`], [`TreeCache`] |
//! | processes that register where they can be reached, and find each other | `ServiceDiscovery`, with the feature `discovery` |
//! | a path that Java processes lock with `InterProcessSemaphoreMutex` | [`InterProcessSemaphoreMutex`] |
//!
//! # Getting started
//!
//! Add `minikeeper-recipes`, `minikeeper-client` and a tokio runtime to `Cargo.toml`, and for tests
//! `minikeeper`, the server.
//!
//! ```
//! use std::time::Duration;
//!
//! use minikeeper_client::Client;
//! use minikeeper_recipes::InterProcessMutex;
//!
//! # minikeeper_test_kit::example(async |server, _| {
//! # let address = server.connect_string();
//! let client = Client::connect(&address).await?; // "127.0.0.1:2181"
//! let printer = InterProcessMutex::new(client, "/locks/printer")?;
//! let guard = printer.acquire().within(Duration::from_secs(10)).await?;
//! println!("printing, with token {}", guard.token());
//! guard.release().await?; // or drop it, which does not wait
//! # Ok(()) });
//! ```
//!
//! One client serves any number of recipes, and they share its session. Creating a lock object is
//! cheap and sends nothing.
//!
//! Programs without a runtime use the module `blocking`, with the feature of that name: the same
//! types, whose calls block.
//!
//! # When a lock is lost
//!
//! A client holds a lock as long as its session lives. If no server receives anything from the
//! client for the session timeout (60 s unless
//! [set](minikeeper_client::ClientBuilder::session_timeout)), the session ends and the next
//! contender gets the lock, even if the holder is only paused or disconnected. There are four
//! protections, from weak to strong:
//!
//! - [`Guard::status`] says, without a request, whether the lock is held, suspended (no connection,
//!   and until when no other contender can hold the lock) or lost.
//! - [`Guard::run`] drops the work when the lock is lost; [`Guard::lost`] waits for the loss.
//! - [`Guard::multi`] changes znodes of the same ZooKeeper only while the lock is held.
//! - [`Guard::token`] protects everything else: a resource that refuses tokens smaller than the
//!   largest it has seen is safe even from a holder that has not noticed the loss yet.
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
//! #     server.expire(session).expect("the session exists");
//! #     std::future::pending::<()>().await;
//! # };
//! match guard.run(print_all).await {
//!     Ok(()) => println!("printed everything"),
//!     Err(loss) => println!("stopped in the middle: {loss:?}"),
//! }
//! # assert!(matches!(guard.status(), Status::Lost(_)));
//! # Ok(()) }
//! ```
//!
//! A waiting `acquire` survives lost connections and keeps its place in the queue. After a lost
//! session it queues again, at the end. [`LockError`] covers the rest.
//!
//! # Watching locks
//!
//! Waits, holds and terms of leaders are spans of `tracing`, with an event for each step; lost locks are
//! warnings. With the feature `metrics` they are metrics too. [`LockOptions::hold_warn_after`] warns
//! about a lock that is held too long, and [`TokenCheck`] counts the tokens that it refuses.
//! `docs/observability.md` lists all spans, events and metrics.
//!
//! # Testing
//!
//! Run a `minikeeper` server inside the test. It expires sessions and closes connections on
//! command:
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
//! // The server ends the session and deletes its znodes. The client may learn of either first.
//! let loss = guard.lost().await;
//! assert!(matches!(loss, Loss::SessionOver | Loss::NodeDeleted));
//! # Ok(()) }
//! ```
//!
//! All timers are tokio's. On a paused runtime, with in-process connections instead of sockets, an
//! hour passes at once:
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
//! Name the servers of an Apache ZooKeeper ensemble, and a root path if other applications share
//! it: `Client::connect("zk1:2181,zk2:2181,zk3:2181/app")`. Nothing else changes. Before you do:
//!
//! - Choose the session timeout: longer than the pauses of your processes and networks, but no
//!   longer than contenders may wait for the lock of a process that died.
//! - Set a limit ([`within`](Acquire::within)) where a user waits for the lock. Calls that wait for a
//!   server only, such as [`Guard::release`], have the client's
//!   [`call_timeout`](minikeeper_client::ClientBuilder::call_timeout), 60 s unless set.
//! - Send the token with every change that only the holder may make.
//! - Use one recipe per path, the same in all processes, and put nothing else into its directory:
//!   every child takes part in the queue, as it does in Java.
//! - Set an [`AclProvider`](minikeeper_client::AclProvider) and an
//!   [identity](minikeeper_client::ClientBuilder::identity): otherwise the znodes of recipes are
//!   open to all clients.
//!
//! # Differences from Curator
//!
//! - **No thread holds a lock.** A task that acquires twice waits for itself. To acquire again,
//!   name an [`Owner`] with [`as_owner`](Acquire::as_owner).
//! - **Guards.** `acquire` returns a [`Guard`], which releases the lock when it is dropped. It may
//!   move to other tasks.
//! - **Time.** `acquire(time, unit)` is [`within`](Acquire::within) with
//!   [`LockError::TimedOut`], or [`try_acquire`](InterProcessMutex::try_acquire) with `None`.
//! - **Interrupting** means dropping the future, at any point. Each method documents the effect.
//! - **Loss**: the guard reports it. There is no listener to register, and no retry policy.
//! - **Revocation**: a holder waits for [`Guard::revocation_requested`].
//! - **Several leases** are acquired at once, a [multi-lock](InterProcessMultiLock) has one
//!   deadline, and a reader that wants to write is refused. [`LockOptions`] switches these off, and
//!   the savings of requests; [`LockOptions::curator_exact`] is Curator, request by request.
//! - **Caches** have snapshots and streams of changes instead of listeners, see [`CuratorCache`].
//! - **Not here**: Curator's queues.
//!
//! Java processes on the same paths notice none of these differences.
//!
//! # The source
//!
//! | module | contents |
//! | --- | --- |
//! | [`naming`], [`order`] | names of znodes, and which contender holds the lock: pure functions |
//! | `client.rs` | what the recipes need of a client beyond its methods |
//! | `queue/` | entering a queue, waiting in it, leaving it |
//! | `locks/` | mutex, read/write lock, semaphore, multi-lock, and their guards |
//! | `leaders/` | latch, selector |
//! | `barriers/`, `values/` | barriers; values that processes share |
//! | `caches/` | copies of znodes that follow the server's |
//! | `blocking/` | the recipes without a runtime, feature `blocking` |
//! | `discovery/` | instances of services, with the feature `discovery` |
//! | `observe/` | spans, events and metrics; the check of fencing tokens |

#![warn(clippy::missing_panics_doc)]

mod barriers;
#[cfg(feature = "blocking")]
pub mod blocking;
mod caches;
mod call_limit;
mod client;
mod clock;
#[cfg(feature = "discovery")]
mod discovery;
mod error;
mod leaders;
mod locks;
mod observe;
mod options;
mod queue;
mod status;
mod task;
mod values;

#[cfg(feature = "discovery")]
pub use self::discovery::*;
pub use self::{
    barriers::*,
    caches::*,
    error::{AtomicError, LockError, Released, ValueError},
    leaders::*,
    locks::*,
    observe::{TokenCheck, TokenRefused},
    options::LockOptions,
    queue::{
        naming, order,
        position::{QueuePosition, Queued},
    },
    status::{FencingToken, Loss, Status},
    values::*,
};

#[cfg(feature = "metrics")]
pub use self::observe::meter::describe_metrics;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
