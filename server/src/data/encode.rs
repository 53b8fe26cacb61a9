//! Writes a state in the original's snapshot format.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.1; the original's `FileSnap.serialize`, whose
//! files of version 3.9 have these sections in this order.

use std::io;

use adler2::Adler32;
use minikeeper_engine::{Image, ZnodeImage};
use minikeeper_protocol::jute;

use crate::data::format::{DB_ID, DIGEST_VERSION, END, MAGIC, VERSION};

/// Writes all of it.
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
    /// The record being put together.
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
        // No digest, in the form the original writes when it has none yet.
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

    /// The checksum of everything before it, and the mark behind.
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
