//! Reads a snapshot of ours or of an original, version 3.4 to 3.9, uncompressed.
//!
//! Nothing in the file is believed: lengths are met only as far as there are bytes, and every
//! record goes through the engine's own checks.
//!
//! Source: reference section 22.1; the original's `FileSnap.deserialize`.

use std::io::{self, Read as _};

use adler2::Adler32;
use minikeeper_engine::{Engine, Restoration, SessionImage, Settings, ZnodeImage};
use minikeeper_protocol::{Acl, AclList, Perms, SessionId, Ustring, Zxid};

use crate::snapshot::{
    error::SnapshotFault as Fault,
    format::{DIGEST_VERSION, END, MAGIC, VERSION},
};

/// How much of a claimed length is believed before the bytes are there.
const BELIEVED: usize = 1 << 16;

/// A last zxid and its seal: what follows the tree where there is no digest.
const ZXID_SECTION: usize = 8 + 8 + 4 + 1;

/// More than the sections behind the tree can be long, a digest of the old kind included.
const TAIL_MAX: u64 = 256;

/// What is wrong, and where the field starts.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    pub(crate) fault: Fault,
}

type Decoded<T> = Result<T, Damage>;

/// Reads all of it; `zxid` is the one in the file's name.
pub(crate) fn decode(input: impl io::Read, settings: Settings, zxid: Zxid) -> Decoded<Engine> {
    let mut source = Source {
        input,
        offset: 0,
        start: 0,
        adler: Adler32::new(),
    };
    let mut restoration = Restoration::new(settings);
    header(&mut source)?;
    sessions(&mut source, &mut restoration)?;
    access_lists(&mut source, &mut restoration)?;
    znodes(&mut source, &mut restoration)?;
    source.seal()?;
    let last = tail(&mut source)?;
    // A snapshot that was taken while changes were made is newer than its name.
    let newest = zxid.max(last.unwrap_or(zxid));
    Engine::restore(restoration, newest).map_err(|error| source.damage(error))
}

fn header(source: &mut Source<impl io::Read>) -> Decoded<()> {
    let magic = source.int()?.cast_unsigned();
    if magic != MAGIC {
        return Err(source.damage(Fault::Magic { magic }));
    }
    let version = source.int()?;
    if version != VERSION {
        return Err(source.damage(Fault::Version { version }));
    }
    // Who wrote it.
    source.long().map(|_| ())
}

fn sessions(source: &mut Source<impl io::Read>, restoration: &mut Restoration) -> Decoded<()> {
    for _ in 0..source.count("number of sessions")? {
        let fields: [u8; 8 + 4] = source.array()?;
        let mut fields = Fields(&fields);
        let session = SessionImage {
            id: SessionId(fields.long()),
            timeout_ms: fields.int(),
        };
        restoration
            .session(session)
            .map_err(|error| source.damage(error))?;
    }
    Ok(())
}

fn access_lists(source: &mut Source<impl io::Read>, restoration: &mut Restoration) -> Decoded<()> {
    for _ in 0..source.count("number of access lists")? {
        let id = source.long()?;
        let start = source.start;
        let mut entries = Vec::new();
        for _ in 0..source.count("length of an access list")? {
            entries.push(Acl {
                perms: Perms(source.int()?),
                scheme: ustring(source)?,
                id: ustring(source)?,
            });
        }
        restoration
            .access_list(id, &AclList::new(&entries))
            .map_err(|error| Damage {
                offset: start,
                fault: error.into(),
            })?;
    }
    Ok(())
}

fn ustring(source: &mut Source<impl io::Read>) -> Decoded<Option<Ustring>> {
    let mut bytes = Vec::new();
    let is_null = !source.buffer(&mut bytes)?;
    Ok((!is_null).then(|| Ustring::from(bytes::Bytes::from(bytes))))
}

fn znodes(source: &mut Source<impl io::Read>, restoration: &mut Restoration) -> Decoded<()> {
    let (mut path, mut data) = (Vec::new(), Vec::new());
    loop {
        if !source.buffer(&mut path)? {
            return Err(source.damage(Fault::NullPath));
        }
        let start = source.start;
        if path == END {
            return Ok(());
        }
        // The root is written under the empty path.
        if path.is_empty() {
            path.extend_from_slice(END);
        }
        let has_data = source.buffer(&mut data)?;
        let fields: [u8; 8 + 4 * 8 + 3 * 4 + 2 * 8] = source.array()?;
        let mut fields = Fields(&fields);
        let znode = ZnodeImage {
            path: &path,
            data: has_data.then_some(&data),
            acl: fields.long(),
            czxid: Zxid(fields.long()),
            mzxid: Zxid(fields.long()),
            ctime_ms: fields.long(),
            mtime_ms: fields.long(),
            version: fields.int(),
            created_children: fields.int(),
            aversion: fields.int(),
            owner: fields.long(),
            pzxid: Zxid(fields.long()),
        };
        restoration.znode(&znode).map_err(|error| Damage {
            offset: start,
            fault: error.into(),
        })?;
    }
}

/// What newer versions put behind the tree: a digest, which is not compared, and the last zxid.
/// Either may be missing, depending on version and settings of the original.
fn tail<R: io::Read>(source: &mut Source<R>) -> Decoded<Option<Zxid>> {
    let mut tail = Vec::new();
    (&mut source.input)
        .take(TAIL_MAX)
        .read_to_end(&mut tail)
        .map_err(|error| source.damage(error))?;
    let mut tail = Source {
        input: &tail[..],
        offset: source.offset,
        start: source.offset,
        adler: source.adler,
    };
    if tail.input.is_empty() {
        return Ok(None);
    }
    if tail.input.len() != ZXID_SECTION {
        tail.long()?;
        if tail.int()? < DIGEST_VERSION {
            // In those days a text.
            tail.buffer(&mut Vec::new())?;
        } else {
            tail.long()?;
        }
        tail.seal()?;
    }
    if tail.input.is_empty() {
        return Ok(None);
    }
    let zxid = Zxid(tail.long()?);
    tail.seal()?;
    if !tail.input.is_empty() {
        tail.start = tail.offset;
        return Err(tail.damage(Fault::Surplus));
    }
    Ok(Some(zxid))
}

/// Reads fields, and keeps the checksum of everything read so far.
struct Source<R> {
    input: R,
    /// How much has been read.
    offset: u64,
    /// Where the field that was read last starts.
    start: u64,
    adler: Adler32,
}

impl<R: io::Read> Source<R> {
    /// What is wrong with the field that was read last.
    fn damage(&self, fault: impl Into<Fault>) -> Damage {
        Damage {
            offset: self.start,
            fault: fault.into(),
        }
    }

    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
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

    fn int(&mut self) -> Decoded<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Decoded<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// The number of elements that are claimed to follow.
    fn count(&mut self, what: &'static str) -> Decoded<u32> {
        let value = self.int()?;
        u32::try_from(value).map_err(|_| self.damage(Fault::Negative { what, value }))
    }

    /// Replaces what is in `into` by a buffer; false, and empty, if it is null.
    fn buffer(&mut self, into: &mut Vec<u8>) -> Decoded<bool> {
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

    /// The checksum of everything before it, and the mark behind.
    fn seal(&mut self) -> Decoded<()> {
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

/// Takes apart a record of fixed length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .expect("the fields are as long as the record");
        self.0 = rest;
        *first
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }
}
