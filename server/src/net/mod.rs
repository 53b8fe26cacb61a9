//! Connections: how they are accepted, limited, read and written.

pub(crate) mod binding;
pub(crate) mod connection;
pub(crate) mod handshake_deadlines;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod local;
pub(crate) mod reachability;
pub(crate) mod scratch;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod throttle;
#[cfg(feature = "tls")]
pub(crate) mod tls;
