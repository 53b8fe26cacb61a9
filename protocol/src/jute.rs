//! The primitive encodings of jute, ZooKeeper's record format. All integers are big-endian.
//!
//! Source: `docs/zookeeper-protocol.md` section 2.2; ZooKeeper's `BinaryInputArchive`.

use std::{borrow::Cow, fmt};

use bytes::Bytes;

use crate::error::DecodeError;

/// A jute string: the received bytes, which should be UTF-8.
///
/// Decoding does not check them. A malformed string can be looked up (no znode has that name) but
/// never stored, because [`crate::path::validate`] refuses it, so the check would only repeat work
/// on every read.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ustring(Bytes);

impl Ustring {
    /// Creates a string from a static one, without copying.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Returns the bytes as on the wire.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the string without its first `from` bytes, without copying.
    ///
    /// # Panics
    /// If the string is shorter than that.
    #[must_use]
    pub fn tail(&self, from: usize) -> Self {
        Self(self.0.slice(from..))
    }

    /// Returns the text, with malformed sequences replaced by U+FFFD as in ZooKeeper's decoder.
    #[must_use]
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        // Checking the whole string first is much faster than searching chunk by chunk.
        match std::str::from_utf8(&self.0) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.0),
        }
    }

    /// Returns the bytes that ZooKeeper sends back for it, after decoding and encoding it:
    /// malformed sequences are replaced, and characters above U+FFFF become two sequences of three
    /// bytes.
    ///
    /// Source: `docs/zookeeper-protocol.md` section 2.2; observed on a live server.
    #[must_use]
    pub fn as_echoed(&self) -> Cow<'_, [u8]> {
        if self.0.is_ascii() {
            return Cow::Borrowed(&self.0);
        }
        let mut out = Vec::with_capacity(self.0.len());
        for unit in self.to_str_lossy().encode_utf16() {
            let byte = |shift: u16, marker: u16| ((unit >> shift) & 0x3f | marker).to_be_bytes()[1];
            match unit {
                0..0x80 => out.push(unit.to_be_bytes()[1]),
                0x80..0x800 => out.extend([byte(6, 0xc0), byte(0, 0x80)]),
                _ => out.extend([
                    (unit >> 12 | 0xe0).to_be_bytes()[1],
                    byte(6, 0x80),
                    byte(0, 0x80),
                ]),
            }
        }
        Cow::Owned(out)
    }

    /// Returns the shared bytes.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Bytes> for Ustring {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Ustring {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Ustring {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl PartialEq<str> for Ustring {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Ustring {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Ustring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str_lossy(), f)
    }
}

impl fmt::Display for Ustring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_str_lossy(), f)
    }
}

/// Reads primitives from a message, from start to end.
///
/// A reader sees a window of a shared buffer; it returns slices of that buffer.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    buffer: &'a Bytes,
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    /// Reads all of `buffer`.
    #[must_use]
    pub fn new(buffer: &'a Bytes) -> Self {
        Self {
            buffer,
            at: 0,
            end: buffer.len(),
        }
    }

    /// Reads the part `window` of `buffer`, so that one buffer can contain a batch of messages.
    ///
    /// # Panics
    /// If the window is not inside the buffer.
    #[must_use]
    #[inline]
    pub fn window(buffer: &'a Bytes, window: std::ops::Range<usize>) -> Self {
        assert!(
            window.start <= window.end && window.end <= buffer.len(),
            "window inside buffer"
        );
        Self {
            buffer,
            at: window.start,
            end: window.end,
        }
    }

    /// Returns how many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.end - self.at
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.buffer[self.at..self.end]
            .first_chunk::<N>()
            .ok_or_else(|| DecodeError::Truncated {
                missing: N - self.remaining(),
            })?;
        self.at += N;
        Ok(*bytes)
    }

    /// Reads one byte; any value but zero is true.
    ///
    /// # Errors
    /// When the message ends first.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "two percent of a getData, counted: it has other callers than requests"
    )]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        self.take::<1>().map(|[byte]| byte != 0)
    }

    /// Reads four bytes, two's complement.
    ///
    /// # Errors
    /// When the message ends first.
    #[inline]
    pub fn int(&mut self) -> Result<i32, DecodeError> {
        self.take().map(i32::from_be_bytes)
    }

    /// Reads eight bytes, two's complement.
    ///
    /// # Errors
    /// When the message ends first.
    #[inline]
    pub fn long(&mut self) -> Result<i64, DecodeError> {
        self.take().map(i64::from_be_bytes)
    }

    /// Reads a length and that many bytes; length -1 is null, which differs from empty.
    ///
    /// # Errors
    /// When the length is below -1 or the message ends first.
    pub fn buffer(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(length) else {
            return Err(DecodeError::NegativeLength { length });
        };
        if length > self.remaining() {
            return Err(DecodeError::Truncated {
                missing: length - self.remaining(),
            });
        }
        let start = self.at;
        self.at += length;
        // An empty slice must not keep the read buffer alive.
        if length == 0 {
            return Ok(Some(Bytes::new()));
        }
        Ok(Some(self.buffer.slice(start..self.at)))
    }

    /// Reads a string, encoded as [`Reader::buffer`].
    ///
    /// # Errors
    /// Those of [`Reader::buffer`].
    pub fn ustring(&mut self) -> Result<Option<Ustring>, DecodeError> {
        Ok(self.buffer()?.map(Ustring))
    }

    /// Reads the count of a vector; `None` is the null vector.
    ///
    /// Other negative counts mean empty, as in ZooKeeper. The count is untrusted: do not allocate
    /// memory by it.
    ///
    /// # Errors
    /// When the message ends first.
    pub fn count(&mut self) -> Result<Option<usize>, DecodeError> {
        let count = self.int()?;
        Ok(if count == -1 {
            None
        } else {
            Some(usize::try_from(count).unwrap_or(0))
        })
    }

    /// Reads a vector of strings; `None` is the null vector. A null string becomes an empty one.
    ///
    /// # Errors
    /// When an element is malformed or the message ends first.
    pub fn ustrings(&mut self) -> Result<Option<Vec<Ustring>>, DecodeError> {
        let Some(count) = self.count()? else {
            return Ok(None);
        };
        // A string takes at least four bytes, so the remaining bytes bound the allocation.
        let mut strings = Vec::with_capacity(count.min(self.remaining() / 4));
        for _ in 0..count {
            strings.push(self.ustring()?.unwrap_or_default());
        }
        Ok(Some(strings))
    }

    /// Skips these bytes if they come next. Returns whether they did.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> bool {
        let comes_next = self.buffer[self.at..self.end].starts_with(bytes);
        if comes_next {
            self.at += bytes.len();
        }
        comes_next
    }

    /// Returns everything read since `start`, an earlier [`Reader::position`].
    pub(crate) fn since(&self, start: usize) -> Bytes {
        self.buffer.slice(start..self.at)
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }
}

/// Appends a bool.
pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(u8::from(value));
}

/// Appends an int.
pub fn put_int(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a long.
pub fn put_long(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a length or count.
///
/// # Panics
/// If the length does not fit into 31 bits; every caller's buffers are far smaller.
pub fn put_length(out: &mut Vec<u8>, length: usize) {
    put_int(
        out,
        i32::try_from(length).expect("lengths on the wire have 31 bits"),
    );
}

/// Returns the size of a buffer or string on the wire. Unit: bytes.
#[inline]
pub(crate) fn buffer_bytes(value: Option<&[u8]>) -> usize {
    4 + value.map_or(0, <[u8]>::len)
}

/// Appends a buffer or string; `None` is null.
#[inline]
pub fn put_buffer(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => put_int(out, -1),
        Some(bytes) => {
            put_length(out, bytes.len());
            out.extend_from_slice(bytes);
        }
    }
}

/// Appends a string; `None` is null.
pub fn put_ustring(out: &mut Vec<u8>, value: Option<&Ustring>) {
    put_buffer(out, value.map(Ustring::as_bytes));
}

/// Appends a vector of strings; `None` is the null vector.
pub fn put_ustrings(out: &mut Vec<u8>, value: Option<&[Ustring]>) {
    let Some(strings) = value else {
        return put_int(out, -1);
    };
    put_length(out, strings.len());
    for string in strings {
        put_ustring(out, Some(string));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_replaces_malformed_utf8_and_encodes_surrogates_separately() {
        let echoed = |bytes: &'static [u8]| {
            Ustring::from(Bytes::from_static(bytes))
                .as_echoed()
                .into_owned()
        };
        // Observed on a live server: `docs/zookeeper-protocol.md` section 2.2.
        assert_eq!(echoed("/😀".as_bytes()), b"\x2f\xed\xa0\xbd\xed\xb8\x80");
        assert_eq!(echoed("/é€".as_bytes()), "/é€".as_bytes());
        assert_eq!(echoed(b"/\xff"), "/\u{fffd}".as_bytes());
    }
}
