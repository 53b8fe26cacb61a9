//! An async ZooKeeper client, built for lock recipes.
//!
//! It reports what locks need to know: the session to which a reply or event belongs ([`Epoch`]),
//! whether a failed request may have been carried out ([`Error`]), the time until which the session
//! is certainly alive ([`Client::safe_until`]), and every change of the connection in order
//! ([`States`]). It deletes znodes whose creator has stopped waiting
//! ([`CreateOptions::withdrawn_if_dropped`], [`Client::clean_up`]).
//!
//! | module | contents |
//! | --- | --- |
//! | `core` | the session state machine: no I/O, no clock |
//! | `client.rs`, `operations.rs`, `multi.rs`, `namespace.rs`, `acl_provider.rs`, `builder.rs` | the handle: session, operations, root, access lists, settings |
//! | `call.rs`, `watch.rs`, `watcher.rs`, `state.rs`, `error.rs` | the futures that callers await, and their results |
//! | `ensemble_tracker.rs`, `tls.rs` | the list of servers, the secure port |
//! | `shared.rs`, `notifications.rs`, `driver.rs`, `transport.rs` | the lock, the output, the task, the stream |
//!
//! # Examples
//! ```
//! # minikeeper_test_kit::example(async |server, _| {
//! # let address = server.connect_string();
//! use minikeeper_client::{Client, CreateMode};
//! let client = Client::connect(&address).await?;
//! // Both requests are sent together.
//! let created = client.create("/queue-", b"", CreateMode::EphemeralSequential);
//! let listed = client.children("/");
//! assert_eq!(created.await?.path, "/queue-0000000000");
//! assert_eq!(listed.await?.len(), 2);
//! # Ok(()) });
//! ```

#![warn(clippy::missing_panics_doc)]

mod acl_provider;
mod builder;
mod call;
mod client;
mod clock;
mod core;
mod driver;
mod ensemble_tracker;
mod error;
mod multi;
mod namespace;
mod notifications;
mod operations;
mod paths;
mod shared;
mod state;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod watch;
mod watcher;

pub use bytes::Bytes;
pub use minikeeper_protocol::{
    Acl, AclList, AddWatchMode, ClientInfo, CreateMode, ErrorCode, EventKind, MultiResult,
    PathError, Perms, SessionId, Stat, ZnodePath, Zxid,
};

pub use self::{
    acl_provider::AclProvider,
    builder::{CALL_TIMEOUT_DEFAULT, CALL_TIMEOUT_MAX, ClientBuilder, ConnectError},
    call::{Call, Children, Created, Data, Names, Stamped},
    client::Client,
    core::{
        backoff::Backoff,
        hosts::{ConnectString, ConnectStringError, PORT_DEFAULT},
        outcome::{Cause, Epoch, LostReason},
        sasl::{SaslError, SaslMechanism, SaslStart, SaslStep},
    },
    driver::Driver,
    ensemble_tracker::{EnsembleTracker, EnsembleTrackerError},
    error::{AfterTimeout, Error, ErrorClass},
    multi::Multi,
    operations::{CreateOptions, Reconfiguration},
    state::{ClientStatus, ConnectionState, States},
    transport::{Connecting, Reader, Tcp, Transport, Writer},
    watch::{Fired, OneShot, Persistent, WatchEvent, WatchEvents},
    watcher::{GapCause, Notification, PersistentWatcher},
};

#[cfg(feature = "sasl")]
pub use self::core::sasl::DigestMd5;
#[cfg(feature = "tls")]
pub use self::tls::{Tls, TlsBuilder, TlsError};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
