//! Input that a connection could not serve yet.

use bytes::BytesMut;

use crate::net::limits::Held;

/// Part of a frame, or frames that wait for the writer. Exists only while there is some.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    pub(crate) bytes: BytesMut,
    /// When the whole frames in it were read, in milliseconds since the start; `None` if there are
    /// none, or if nobody asks.
    pub(crate) read_ms: Option<u64>,
    /// Whether it waits for a request in front of it that a fault delays.
    pub(crate) is_delayed: bool,
    /// What it counts against the limits.
    pub(crate) held: Held,
}
