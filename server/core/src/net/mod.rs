//! Connections: how they are accepted, read and written.
//!
//! [`listener`] accepts connections, and each TCP connection runs as one task, `socket`, over a
//! [stream](crate::stream) with or without TLS. The task passes bytes to a `connection`, which does no
//! I/O: it splits frames, decodes requests, and takes turns ([`crate::turn`]). [`local`] drives the same
//! `connection` inside the process, without a task. `binding` finds the universe that a connection
//! belongs to, and `handover` passes one that speaks HTTP to control.
//!
//! What counts against the limits is in [`crate::limits`].

pub(crate) mod binding;
pub(crate) mod connection;
#[cfg(feature = "control")]
pub(crate) mod handover;
pub mod listener;
pub mod local;
pub(crate) mod socket;
