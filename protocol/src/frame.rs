//! The length prefix around every message: four bytes, big-endian, signed, then the message.
//!
//! Source: `docs/zookeeper-protocol.md` section 2.1.

use std::{fmt, ops::Range};

/// The default limit on the length of a message, in bytes.
///
/// Source: `jute.maxbuffer` of ZooKeeper, `0xFFFFF`; a length of `0x100000` closes the
/// connection on a live server.
pub const BYTES_MAX_DEFAULT: usize = 0xFFFFF;

/// The size of the length prefix, in bytes.
pub const PREFIX_BYTES: usize = 4;

/// An invalid length prefix. The stream cannot be decoded any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// The length is below zero.
    Negative {
        /// The received length.
        length: i32,
    },
    /// The length is above the limit.
    TooLong {
        /// The received length, in bytes.
        length: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative { length } => write!(f, "frame length {length} is negative"),
            Self::TooLong { length, bytes_max } => {
                write!(
                    f,
                    "frame of {length} bytes exceeds the limit of {bytes_max} bytes"
                )
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Finds the message at the start of `buffer`. Returns its range without the prefix, or `None`
/// while it is incomplete.
///
/// # Errors
/// When the length is negative or above `bytes_max`, as soon as the prefix has arrived.
pub fn next(buffer: &[u8], bytes_max: usize) -> Result<Option<Range<usize>>, FrameError> {
    let Some(prefix) = buffer.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*prefix);
    let Ok(length) = usize::try_from(length) else {
        return Err(FrameError::Negative { length });
    };
    if length > bytes_max {
        return Err(FrameError::TooLong { length, bytes_max });
    }
    let end = PREFIX_BYTES + length;
    Ok((buffer.len() >= end).then_some(PREFIX_BYTES..end))
}

/// Appends a frame. `write` appends the message; the prefix is filled in afterwards.
///
/// # Panics
/// If the length of the message does not fit into 31 bits.
pub fn put(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    write(out);
    let length = i32::try_from(out.len() - start - PREFIX_BYTES).expect("a message has 31 bits");
    out[start..start + PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
}
