//! Connections: how they are accepted, limited, read and written.
//!
//! [`reachability`] binds the ports, [`listener`] accepts and counts connections, and each TCP
//! connection runs as one task, [`socket`], over a [`stream`] with or without `tls`. The task
//! passes bytes to a [`connection`], which does no I/O: it splits frames, decodes requests, and
//! takes turns ([`crate::turn`]). [`local`] drives the same `connection` inside the process,
//! without a task. [`binding`] finds the universe that a connection belongs to.
//!
//! Limits: [`limits`] (requests and memory), [`throttle`] (rate of handshakes),
//! [`handshake_deadlines`], and the number of connections in [`listener`]. [`scratch`] lends
//! buffers to busy connections, so that idle ones keep none.

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
