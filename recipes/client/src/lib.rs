//! An async ZooKeeper client, built for lock recipes.
//!
//! It tells what locks need to know and other clients keep to themselves: in which session
//! something was learned ([`Epoch`]), whether a request that failed can have been carried out
//! ([`Error`]), until when the session is certainly alive ([`Client::safe_until`]), every change of
//! the connection in order ([`States`]); and it cleans up after those who do not wait
//! ([`CreateOptions::withdrawn_if_dropped`], [`Client::clean_up`]).
//!
//! | module | what is there |
//! | --- | --- |
//! | `core` | the session state machine: no I/O, no clock |
//! | `client.rs`, `operations.rs`, `reads.rs`, `create.rs`, `multi.rs`, `clean_up.rs`, `builder.rs` | the handle: one method an operation; what it sees to by itself; settings |
//! | `call.rs`, `results.rs`, `watch.rs`, `state.rs`, `states.rs`, `error.rs` | what its users wait for and get |
//! | `shared.rs`, `notifications.rs`, `driver.rs`, `transport.rs` | the lock, the output, the task, the stream |
//!
//! # Examples
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = minikeeper::Server::builder().start().await?;
//! # let address = server.connect_string();
//! use minikeeper_client::{Client, CreateMode};
//! let client = Client::connect(&address).await?;
//! // Both requests leave in one piece.
//! let created = client.create("/queue-", b"", CreateMode::EphemeralSequential);
//! let listed = client.children("/");
//! assert_eq!(created.await?.path, "/queue-0000000000");
//! assert_eq!(listed.await?.len(), 2);
//! # Ok(()) }
//! ```

#![warn(clippy::missing_panics_doc)]

mod builder;
mod call;
mod clean_up;
mod client;
mod clock;
mod core;
mod create;
mod driver;
mod error;
mod multi;
mod notifications;
mod operations;
mod paths;
mod reads;
mod results;
mod shared;
mod state;
mod states;
mod transport;
mod watch;

pub use bytes::Bytes;
pub use minikeeper_protocol::{
    Acl, AclList, AddWatchMode, ClientInfo, CreateMode, ErrorCode, EventKind, MultiResult,
    PathError, Perms, SessionId, Stat, ZnodePath, Zxid,
};

pub use self::{
    builder::{ClientBuilder, ConnectError},
    call::{Call, Stamped},
    client::Client,
    core::{
        backoff::Backoff,
        hosts::{ConnectString, ConnectStringError, PORT_DEFAULT},
        outcome::{Cause, Epoch, LostReason},
    },
    create::CreateOptions,
    driver::Driver,
    error::{Error, ErrorClass},
    multi::{Multi, MultiStep},
    results::{Children, Created, Data, Names},
    state::{ClientStatus, ConnectionState},
    states::States,
    transport::{Connecting, Reader, Tcp, Transport, Writer},
    watch::{Fired, OneShot, Persistent, WatchEvent},
};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
