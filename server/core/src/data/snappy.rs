//! Decompresses ZooKeeper's snappy snapshots. They do not use the standard framing, but that of
//! snappy-java's `SnappyOutputStream`.
//!
//! A stream is a header, then blocks, each after its compressed length. Streams may be concatenated.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.1, point 7; ZooKeeper's `SnapStream`;
//! observed in files of a live server.

use std::io::{self, Read};

/// The start of a stream, before two version numbers.
const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";

/// The size of the two version numbers, of the writer and of the oldest compatible reader. Unit: bytes.
const VERSIONS: usize = 8;

/// The most bytes that one compressed byte can expand to: three bytes can copy 64.
const EXPANSION_MAX: usize = 22;

/// The most that is allocated for a claimed length before the data arrives. Unit: bytes.
const BELIEVED: usize = 1 << 16;

/// Decompresses a stream.
pub(crate) struct Snappy<R> {
    input: R,
    is_started: bool,
    compressed: Vec<u8>,
    /// The current block, decompressed.
    block: Vec<u8>,
    /// How much of it the caller has read.
    at: usize,
}

impl<R: Read> Snappy<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self {
            input,
            is_started: false,
            compressed: Vec::new(),
            block: Vec::new(),
            at: 0,
        }
    }

    /// Reads the next block. Returns false at the end of the input.
    fn next_block(&mut self) -> io::Result<bool> {
        if !self.is_started {
            let mut magic = [0; MAGIC.len()];
            self.input.read_exact(&mut magic).map_err(cut_off)?;
            if magic != MAGIC {
                return Err(invalid("not the header of a snappy stream"));
            }
            self.pass_versions()?;
            self.is_started = true;
        }
        loop {
            let mut length = [0; 4];
            match self.input.read_exact(&mut length) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            }
            if MAGIC.starts_with(&length) {
                // Another stream starts: reads the rest of its header.
                let mut rest = [0; MAGIC.len() - 4];
                self.input.read_exact(&mut rest).map_err(cut_off)?;
                if !MAGIC.ends_with(&rest) {
                    return Err(invalid("not the header of a snappy stream"));
                }
                self.pass_versions()?;
                continue;
            }
            let length = usize::try_from(i32::from_be_bytes(length))
                .map_err(|_| invalid("block of negative length"))?;
            self.read_block(length)?;
            return Ok(true);
        }
    }

    fn pass_versions(&mut self) -> io::Result<()> {
        let mut versions = [0; VERSIONS];
        self.input.read_exact(&mut versions).map_err(cut_off)
    }

    fn read_block(&mut self, length: usize) -> io::Result<()> {
        self.compressed.clear();
        self.compressed.reserve(length.min(BELIEVED));
        (&mut self.input)
            .take(length as u64)
            .read_to_end(&mut self.compressed)?;
        if self.compressed.len() < length {
            return Err(invalid("the last block is truncated"));
        }
        let claimed = snap::raw::decompress_len(&self.compressed).map_err(damaged)?;
        if claimed / EXPANSION_MAX > length {
            return Err(invalid("block claims an impossible uncompressed length"));
        }
        self.block.resize(claimed, 0);
        let read = snap::raw::Decoder::new()
            .decompress(&self.compressed, &mut self.block)
            .map_err(damaged)?;
        self.block.truncate(read);
        self.at = 0;
        Ok(())
    }
}

impl<R: Read> Read for Snappy<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.at == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let length = into.len().min(self.block.len() - self.at);
        into[..length].copy_from_slice(&self.block[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn damaged(error: snap::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn cut_off(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return invalid("the header of a snappy stream is truncated");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<u8> {
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec()
    }

    fn block(data: &[u8]) -> Vec<u8> {
        let compressed = snap::raw::Encoder::new().compress_vec(data).unwrap();
        let length = u32::try_from(compressed.len()).unwrap();
        [&length.to_be_bytes()[..], &compressed].concat()
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        match Snappy::new(bytes).read_to_end(&mut out) {
            Ok(_) => Ok(out),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn blocks_and_streams_follow_each_other() {
        let bytes = [
            header(),
            block(b"one, "),
            block(b""),
            block(b"two"),
            header(),
            block(b"!"),
        ];
        assert_eq!(read(&bytes.concat()).unwrap(), b"one, two!");
        assert_eq!(read(&header()).unwrap(), b"");
        let zeros = vec![0; 1 << 20];
        assert_eq!(read(&[header(), block(&zeros)].concat()).unwrap(), zeros);
    }

    #[test]
    fn damaged_streams_are_refused() {
        for (bytes, fault) in [
            (
                b"\x82SNAPPX\0\0\0\0\x01\0\0\0\x01".to_vec(),
                "not the header of a snappy stream",
            ),
            (
                header()[..9].to_vec(),
                "the header of a snappy stream is truncated",
            ),
            (
                [header(), vec![0xff; 4]].concat(),
                "block of negative length",
            ),
            (
                [header(), vec![0x7f, 0xff, 0xff, 0xff, 1]].concat(),
                "the last block is truncated",
            ),
            (
                // Six bytes that claim four gigabytes.
                [header(), vec![0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]].concat(),
                "block claims an impossible uncompressed length",
            ),
        ] {
            assert_eq!(read(&bytes).unwrap_err(), fault);
        }
        let whole = [header(), block(b"some data that is long enough")].concat();
        for length in (0..8).chain(9..16).chain(20..whole.len()) {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }
}
