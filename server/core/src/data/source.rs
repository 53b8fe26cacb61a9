//! Reads fields from a file, computes their checksum, and reports where a wrong field starts.
//!
//! Does not trust a claimed length: allocates memory only as the data arrives.

use std::io::{self, Read as _};

use adler2::Adler32;

use crate::data::{error::SnapshotFault as Fault, snapshot_file::END};

/// The most that is allocated for a claimed length before the data arrives. Unit: bytes.
const BELIEVED: usize = 1 << 16;

/// A fault, and where the wrong field starts.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    pub(crate) fault: Fault,
}

pub(crate) type Decoded<T> = Result<T, Damage>;

/// Reads fields, and keeps the checksum of everything read so far.
pub(crate) struct Source<R> {
    pub(crate) input: R,
    /// How much has been read.
    pub(crate) offset: u64,
    /// Where the last field starts.
    pub(crate) start: u64,
    pub(crate) adler: Adler32,
}

impl<R: io::Read> Source<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            offset: 0,
            start: 0,
            adler: Adler32::new(),
        }
    }

    /// Returns a fault at the last field.
    pub(crate) fn damage(&self, fault: impl Into<Fault>) -> Damage {
        Damage {
            offset: self.start,
            fault: fault.into(),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.start = self.offset;
        self.rest()
    }

    fn rest<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut bytes = [0; N];
        let mut filled = 0;
        while filled < N {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => return Err(self.ends(N - filled)),
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.damage(error)),
            }
        }
        self.adler.write_slice(&bytes);
        self.offset += N as u64;
        Ok(bytes)
    }

    fn ends(&self, missing: usize) -> Damage {
        self.damage(Fault::Ends {
            missing: missing as u64,
        })
    }

    pub(crate) fn int(&mut self) -> Decoded<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Decoded<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads the claimed number of elements that follow.
    pub(crate) fn count(&mut self, what: &'static str) -> Decoded<u32> {
        let value = self.int()?;
        u32::try_from(value).map_err(|_| self.damage(Fault::Negative { what, value }))
    }

    /// Reads a buffer and replaces the content of `into` with it. Returns false, and empties `into`, if
    /// it is null.
    pub(crate) fn buffer(&mut self, into: &mut Vec<u8>) -> Decoded<bool> {
        into.clear();
        let value = self.int()?;
        if value == -1 {
            return Ok(false);
        }
        let length = usize::try_from(value).map_err(|_| {
            self.damage(Fault::Negative {
                what: "length",
                value,
            })
        })?;
        into.reserve(length.min(BELIEVED));
        let read = (&mut self.input)
            .take(length as u64)
            .read_to_end(into)
            .map_err(|error| self.damage(error))?;
        if read < length {
            return Err(self.ends(length - read));
        }
        self.adler.write_slice(into);
        self.offset += length as u64;
        Ok(true)
    }

    /// Reads and checks the checksum of everything before it, and the mark that follows.
    pub(crate) fn seal(&mut self) -> Decoded<()> {
        let computed = self.adler.checksum();
        let found = self.long()?;
        if found != i64::from(computed) {
            return Err(self.damage(Fault::Checksum { found, computed }));
        }
        let mut mark = Vec::new();
        if !self.buffer(&mut mark)? || mark != END {
            return Err(self.damage(Fault::NoMark));
        }
        Ok(())
    }
}

/// Parses a record of fixed length.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .expect("the fields are as long as the record");
        self.0 = rest;
        *first
    }

    pub(crate) fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    pub(crate) fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }
}
