//! Reads ZooKeeper's snapshot files of versions 3.4 to 3.9, and writes those of 3.9.
//!
//! The reader trusts nothing in the file: it allocates at most as much as the file has, and every
//! record passes the engine's own checks.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.1; ZooKeeper's `FileSnap.serialize`, whose files
//! of version 3.9 have these sections in this order, `FileSnap.deserialize` and `FileHeader`.

use std::io::{self, Read as _};

use adler2::Adler32;
use minikeeper_engine::{Engine, Image, Restoration, SessionImage, Settings, ZnodeImage};
use minikeeper_protocol::{Acl, AclList, Perms, SessionId, Ustring, Zxid, jute};

use crate::data::{
    error::SnapshotFault as Fault,
    source::{Damage, Decoded, Fields, Source},
};

/// Writes a state as a snapshot.
pub(crate) fn encode(image: Image<'_>, out: &mut impl io::Write) -> io::Result<()> {
    let mut sealed = Sealed {
        out,
        adler: Adler32::new(),
        record: Vec::new(),
    };
    sealed.all(image)
}

/// Writes records and keeps the checksum of everything written so far.
struct Sealed<'a, W> {
    out: &'a mut W,
    adler: Adler32,
    /// The record under construction.
    record: Vec<u8>,
}

impl<W: io::Write> Sealed<'_, W> {
    fn all(&mut self, image: Image<'_>) -> io::Result<()> {
        self.record.extend_from_slice(&MAGIC.to_be_bytes());
        jute::put_int(&mut self.record, VERSION);
        self.record.extend_from_slice(&DB_ID);
        let sessions = image.sessions();
        jute::put_length(&mut self.record, sessions.len());
        for session in sessions {
            jute::put_long(&mut self.record, session.id.0);
            jute::put_int(&mut self.record, session.timeout_ms);
            self.write()?;
        }
        let lists = image.access_lists();
        jute::put_length(&mut self.record, lists.len());
        for (id, list) in lists {
            jute::put_long(&mut self.record, id);
            list.encode(&mut self.record);
            self.write()?;
        }
        for znode in image.znodes() {
            put_znode(&mut self.record, &znode);
            self.write()?;
        }
        jute::put_buffer(&mut self.record, Some(END));
        self.seal()?;
        // An empty digest, as ZooKeeper writes it before it has one.
        jute::put_long(&mut self.record, 0);
        jute::put_int(&mut self.record, DIGEST_VERSION);
        jute::put_long(&mut self.record, 0);
        self.seal()?;
        jute::put_long(&mut self.record, image.zxid().0);
        self.seal()
    }

    fn write(&mut self) -> io::Result<()> {
        self.adler.write_slice(&self.record);
        self.out.write_all(&self.record)?;
        self.record.clear();
        Ok(())
    }

    /// Writes the checksum of everything before it, and the mark that follows.
    fn seal(&mut self) -> io::Result<()> {
        self.write()?;
        jute::put_long(&mut self.record, i64::from(self.adler.checksum()));
        jute::put_buffer(&mut self.record, Some(END));
        self.write()
    }
}

fn put_znode(out: &mut Vec<u8>, znode: &ZnodeImage<'_>) {
    // The root is written under the empty path: "/" alone ends the list.
    let path = if znode.path == END { b"" } else { znode.path };
    jute::put_buffer(out, Some(path));
    jute::put_buffer(out, znode.data);
    jute::put_long(out, znode.acl);
    jute::put_long(out, znode.czxid.0);
    jute::put_long(out, znode.mzxid.0);
    jute::put_long(out, znode.ctime_ms);
    jute::put_long(out, znode.mtime_ms);
    jute::put_int(out, znode.version);
    jute::put_int(out, znode.created_children);
    jute::put_int(out, znode.aversion);
    jute::put_long(out, znode.owner);
    jute::put_long(out, znode.pzxid.0);
}

/// The length of the section with the last zxid, which follows the tree if there is no digest.
const ZXID_SECTION: usize = 8 + 8 + 4 + 1;

/// More than the sections after the tree can have, even with a digest of the old format. Unit: bytes.
const TAIL_MAX: u64 = 256;

/// Reads a snapshot; `name` is the zxid in the file's name. Returns its newest change, too: a snapshot
/// that ZooKeeper took while changes were made is newer than its name. Ours is not.
pub(crate) fn read(
    input: impl io::Read,
    settings: Settings,
    name: Option<Zxid>,
) -> Decoded<(Restoration, Zxid)> {
    let mut source = Source::new(input);
    let mut restoration = Restoration::new(settings);
    let is_ours = header(&mut source)?;
    sessions(&mut source, &mut restoration)?;
    access_lists(&mut source, &mut restoration)?;
    znodes(&mut source, &mut restoration)?;
    source.seal()?;
    let last = tail(&mut source)?;
    if let (Some(name), Some(zxid)) = (name, last) {
        // No name has a negative zxid.
        let zxid = zxid.max(Zxid(0));
        if zxid < name || is_ours && zxid != name {
            return Err(source.damage(Fault::SnapshotName { zxid }));
        }
    }
    Ok((restoration, name.max(last).unwrap_or_default()))
}

/// Reads a snapshot that is the whole state.
pub(crate) fn decode(input: impl io::Read, settings: Settings, zxid: Zxid) -> Decoded<Engine> {
    let (restoration, newest) = read(input, settings, None)?;
    Engine::restore(restoration, newest.max(zxid)).map_err(|error| Damage {
        offset: 0,
        fault: error.into(),
    })
}

/// Reads the header. Returns whether minikeeper wrote the file.
fn header(source: &mut Source<impl io::Read>) -> Decoded<bool> {
    let magic = source.int()?.cast_unsigned();
    if magic != MAGIC {
        return Err(source.damage(Fault::Magic { magic }));
    }
    let version = source.int()?;
    if version != VERSION {
        return Err(source.damage(Fault::Version { version }));
    }
    Ok(source.array::<8>()? == DB_ID)
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

/// Reads what newer versions put after the tree: a digest, which is ignored, and the last zxid.
/// Either may be missing, depending on ZooKeeper's version and settings.
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
            // In the old format the digest was a string.
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

/// "ZKSN".
pub(crate) const MAGIC: u32 = 0x5a4b_534e;

/// "ZKLG".
pub(crate) const LOG_MAGIC: u32 = 0x5a4b_4c47;

/// The only format version of snapshots and logs so far.
pub(crate) const VERSION: i32 = 2;

/// The database id that marks our own files, which we delete when they are old. ZooKeeper writes -1
/// to snapshots and 0 to logs, and ignores the field when it reads.
pub(crate) const DB_ID: [u8; 8] = *b"minikeep";

/// The version of ZooKeeper's tree digest that is written with an empty digest.
pub(crate) const DIGEST_VERSION: i32 = 2;

/// Ends the list of znodes, and follows every checksum.
pub(crate) const END: &[u8] = b"/";

/// Ends every complete entry of a log.
pub(crate) const ENTRY_END: u8 = b'B';
